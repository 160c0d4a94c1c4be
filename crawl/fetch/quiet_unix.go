//go:build unix

package fetch

import "syscall"

// quiet reports whether a kept connection has neither ended nor anything to
// read. net/http's reader learns of that by itself, but only when its
// goroutine gets to run; asking the kernel right before use leaves the site's
// own round trip as the only window in which a request can be lost.
func (c *rawConn) quiet() bool {
	if c.sys == nil {
		return true
	}
	quiet := true
	err := c.sys.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR
	})
	return err == nil && quiet
}
