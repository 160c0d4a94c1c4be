package chaos

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// Proxy stands between one node and a server, and can cut the way: then what is sent hangs without a word, as with a cable pulled,
// in one direction or both, and arrives late when the way is mended. It knows nothing of what it passes.
type Proxy struct {
	l net.Listener

	mu       sync.Mutex
	pass     *sync.Cond
	network  string
	target   string
	requests bool // do not pass
	answers  bool // do not pass
	ended    bool
	conns    map[net.Conn]struct{}
	wg       sync.WaitGroup
}

// NewProxy listens on a free port of the loopback and passes what comes to a server.
func NewProxy(network, target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", target, err)
	}
	p := &Proxy{l: l, network: network, target: target, conns: map[net.Conn]struct{}{}}
	p.pass = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where the node finds the server.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Cut stops what goes to the server, what comes from it, or both. Connections are opened as long as requests pass.
func (p *Proxy) Cut(requests, answers bool) {
	p.mu.Lock()
	p.requests, p.answers = requests, answers
	p.pass.Broadcast()
	p.mu.Unlock()
}

// Mend lets everything pass again, what was held back first. With reset, connections are closed instead, as by a firewall that has
// forgotten them.
func (p *Proxy) Mend(reset bool) {
	if reset {
		p.Reset()
	}
	p.Cut(false, false)
}

// Retarget sends connections that are opened from now on to another server.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
}

// Reset closes all connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close() // ends its copies
	}
}

// Close ends the proxy and all connections, and returns when nothing of it is left. It is idempotent.
func (p *Proxy) Close() {
	_ = p.l.Close() // ends accept
	p.mu.Lock()
	p.ended = true
	p.pass.Broadcast()
	p.mu.Unlock()
	p.Reset()
	p.wg.Wait()
}

// wait returns once a direction passes; false when the proxy is closed.
func (p *Proxy) wait(cut *bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for *cut && !p.ended {
		p.pass.Wait()
	}
	return !p.ended
}

// keep remembers a connection; false when the proxy is closed already.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = c.Close() // nobody uses it
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	_ = c.Close() // may be closed already
}

func (p *Proxy) accept() {
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

func (p *Proxy) serve(in net.Conn) {
	defer p.drop(in)
	if !p.wait(&p.requests) {
		return
	}
	p.mu.Lock()
	network, target := p.network, p.target
	p.mu.Unlock()
	out, err := net.Dial(network, target)
	if err != nil || !p.keep(out) {
		return
	}
	defer p.drop(out)
	p.wg.Go(func() { p.copy(in, out, &p.answers) })
	p.copy(out, in, &p.requests)
}

// copy passes what arrives, and what arrives while the direction is cut once it is mended.
func (p *Proxy) copy(to io.WriteCloser, from io.Reader, cut *bool) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !p.wait(cut) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
