//go:build unix

package sqldb

import (
	"net"
	"syscall"
)

// alive asks the kernel about a connection that should be silent: false when the other side has closed it or has said something
// unasked, as a server does that shuts down. Nothing is sent, so a peer that vanished without a word passes. known is false
// where there is no socket to ask.
func alive(c net.Conn) (ok, known bool) {
	for {
		if t, isTLS := c.(interface{ NetConn() net.Conn }); isTLS {
			c = t.NetConn()
			continue
		}
		break
	}
	sc, isSocket := c.(syscall.Conn)
	if !isSocket {
		return false, false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false, true
	}
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		ok = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR
	})
	return ok && err == nil, true
}
