package failover_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy passes connections to a server until it is cut: then what is open hangs without a word, as with a cable pulled, and so does
// what is opened. It can be cut for one direction only, and led to another server.
type proxy struct {
	l net.Listener

	mu     sync.Mutex
	target string
	pass   *sync.Cond
	off    bool // both ways
	deaf   bool // answers do not come back
	ended  bool
	conns  map[net.Conn]struct{}
	wg     sync.WaitGroup
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target, conns: map[net.Conn]struct{}{}}
	p.pass = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) cut(yes bool) {
	p.mu.Lock()
	p.off = yes
	p.pass.Broadcast()
	p.mu.Unlock()
}

// deafen lets requests through and keeps their answers.
func (p *proxy) deafen(yes bool) {
	p.mu.Lock()
	p.deaf = yes
	p.pass.Broadcast()
	p.mu.Unlock()
}

// lead ends what is open and takes new connections to another server, as an address that moves does.
func (p *proxy) lead(target string) {
	p.mu.Lock()
	p.target = target
	for c := range p.conns {
		_ = c.Close() // ends its copies
	}
	clear(p.conns)
	p.mu.Unlock()
}

func (p *proxy) close() {
	_ = p.l.Close() // ends accept
	p.mu.Lock()
	p.ended = true
	p.pass.Broadcast()
	for c := range p.conns {
		_ = c.Close() // ends its copies
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// wait returns once the proxy passes; false when it is closed.
func (p *proxy) wait(answer bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for (p.off || answer && p.deaf) && !p.ended {
		p.pass.Wait()
	}
	return !p.ended
}

// keep remembers a connection for close; false when it is closed already.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = c.Close() // nobody uses it
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *proxy) accept() {
	for {
		in, err := p.l.Accept()
		if err != nil {
			return
		}
		if p.keep(in) {
			p.wg.Go(func() { p.serve(in) })
		}
	}
}

func (p *proxy) serve(in net.Conn) {
	defer in.Close()
	if !p.wait(false) {
		return
	}
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	out, err := net.Dial("tcp", target)
	if err != nil || !p.keep(out) {
		return
	}
	defer out.Close()
	p.wg.Go(func() { p.copy(in, out, true) })
	p.copy(out, in, false)
}

// copy passes what arrives; what arrives while the proxy is cut arrives when it passes again, as a network would deliver it late.
func (p *proxy) copy(to io.WriteCloser, from io.Reader, answer bool) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !p.wait(answer) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
