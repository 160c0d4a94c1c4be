package fetch

import (
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// rawConn is the TCP connection with counters beside it, under TLS where there
// is TLS. A counter of attempted writes is what tells "no byte was written"
// from "the site may have seen it".
type rawConn struct {
	net.Conn
	sys   syscall.RawConn               // nil where the platform or a test's connection has none
	tried atomic.Int64                  // bytes handed to Write, counted before they are written
	wake  atomic.Pointer[chan struct{}] // closed by the next Write
}

func newRawConn(c net.Conn) *rawConn {
	r := &rawConn{Conn: c}
	if s, ok := c.(syscall.Conn); ok {
		if sys, err := s.SyscallConn(); err == nil {
			r.sys = sys
		}
	}
	return r
}

func (c *rawConn) Write(p []byte) (int, error) {
	c.tried.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	if w := c.wake.Swap(nil); w != nil {
		close(*w)
	}
	return n, err
}

// awaitWrite waits until something was written after the counter stood at
// since, or d has passed; it reports which.
func (c *rawConn) awaitWrite(since int64, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		w := c.wake.Load()
		if w == nil {
			ch := make(chan struct{})
			if w = &ch; !c.wake.CompareAndSwap(nil, w) {
				continue
			}
		}
		if c.tried.Load() > since {
			return true
		}
		select {
		case <-*w:
		case <-timer.C:
			return false
		}
	}
}

func (c *rawConn) remote() netip.AddrPort {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	ap, _ := netip.ParseAddrPort(c.RemoteAddr().String())
	return ap
}
