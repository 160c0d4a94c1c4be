package fetch

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// conn is a connection in the pool or lent to an exchange.
type conn struct {
	key    string
	cc     *http.ClientConn
	raw    *rawConn
	head   *headConn // nil for HTTP/2
	keep   time.Duration
	idleAt time.Time
	lent   int  // HTTP/2: exchanges on it; under pool.mu
	gone   bool // HTTP/2: not in the pool any more; under pool.mu
}

func (c *conn) http2() bool { return c.head == nil }

// hostConns is what the pool knows of one scheme, host and port.
type hostConns struct {
	idle    []*conn       // HTTP/1, least recently used first
	h2      []*conn       // HTTP/2, shared
	dialing chan struct{} // closed when the first dial to an unknown https host has ended
	known   bool          // the protocol is known, or the first dial failed
	users   int           // calls of get under way
}

// pool keeps connections. Unlike http.Transport's it lends a connection to one
// exchange and never moves a request to another.
type pool struct {
	transport *http.Transport
	cfg       *Config

	mu     sync.Mutex
	hosts  map[string]*hostConns
	idle   int // connections no exchange is on, HTTP/2 included
	sweep  *time.Timer
	closed bool
	dead   []*conn // to be closed once mu is free
}

// unlock releases mu, then closes the connections dropped under it: closing
// may write, and so wait.
func (p *pool) unlock() {
	dead := p.dead
	p.dead = nil
	p.mu.Unlock()
	for _, c := range dead {
		c.cc.Close()
	}
}

func newPool(t *http.Transport, cfg *Config) *pool {
	return &pool{transport: t, cfg: cfg, hosts: make(map[string]*hostConns)}
}

// get lends a connection with one exchange reserved on it; fresh forbids a
// kept one.
func (p *pool) get(ctx context.Context, t *target, fresh bool) (c *conn, reused bool, err error) {
	key := t.scheme() + "|" + t.addr()
	p.mu.Lock()
	h := p.hosts[key]
	if h == nil {
		h = &hostConns{}
		p.hosts[key] = h
	}
	h.users++
	lead := false
	for {
		if p.closed {
			p.leaveLocked(key, h)
			p.unlock()
			return nil, false, ErrClosed
		}
		if !fresh {
			if c := p.takeLocked(h); c != nil {
				p.leaveLocked(key, h)
				p.unlock()
				return c, true, nil
			}
		}
		if !t.https || h.known {
			break
		}
		// Whether the host speaks HTTP/2 is not known: let one dial find out,
		// or every worker would open a connection for itself.
		if h.dialing == nil {
			h.dialing, lead = make(chan struct{}), true
			break
		}
		wait := h.dialing
		p.unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			p.mu.Lock()
			p.leaveLocked(key, h)
			p.unlock()
			return nil, false, context.Cause(ctx)
		}
		p.mu.Lock()
	}
	p.unlock()

	c, err = p.dial(ctx, t, key)

	p.mu.Lock()
	defer p.unlock()
	if lead {
		close(h.dialing)
		h.dialing, h.known = nil, true
	}
	if err == nil && p.closed {
		p.dead = append(p.dead, c)
		c, err = nil, ErrClosed
	}
	if err == nil && c.http2() {
		h.h2 = append(h.h2, c)
		p.idle++
		p.lendLocked(c)
		p.armLocked()
	}
	p.leaveLocked(key, h)
	return c, false, err
}

// dial opens a connection with one exchange reserved.
func (p *pool) dial(ctx context.Context, t *target, key string) (*conn, error) {
	var d dialed
	cc, err := p.transport.NewClientConn(context.WithValue(ctx, dialedKey{}, &d), t.scheme(), t.addr())
	if err != nil {
		return nil, err
	}
	c := &conn{key: key, cc: cc, raw: d.raw, head: d.head, keep: p.cfg.IdleConnTimeout}
	if err := cc.Reserve(); err != nil {
		cc.Close()
		return nil, err
	}
	return c, nil
}

// takeLocked reserves a kept connection, or returns nil.
func (p *pool) takeLocked(h *hostConns) *conn {
	for i := 0; i < len(h.h2); i++ {
		c := h.h2[i]
		if c.cc.Reserve() == nil {
			p.lendLocked(c)
			return c
		}
		if c.cc.Err() != nil {
			if c.lent == 0 {
				p.idle--
			}
			p.removeH2Locked(h, c)
			i--
		}
	}
	now := time.Now()
	for n := len(h.idle); n > 0; n = len(h.idle) {
		c := h.idle[n-1]
		h.idle[n-1] = nil
		h.idle = h.idle[:n-1]
		p.idle--
		if now.Sub(c.idleAt) < c.keep && c.cc.Reserve() == nil && c.raw.quiet() {
			return c
		}
		p.dead = append(p.dead, c)
	}
	return nil
}

// put takes a connection back after an exchange that left it usable as far as
// the exchange can tell.
func (p *pool) put(c *conn) {
	if c.http2() {
		p.discard(c, false)
		return
	}
	c.head.idle.Store(true)
	if c.cc.Available() == 0 || c.keep <= 0 {
		c.cc.Close()
		return
	}
	c.idleAt = time.Now()
	p.mu.Lock()
	h := p.hosts[c.key]
	if h == nil {
		h = &hostConns{known: true}
		p.hosts[c.key] = h
	}
	switch {
	case p.closed, len(h.idle) >= p.cfg.IdlePerHost, p.idle >= p.cfg.MaxIdle && !p.evictLocked():
		p.cleanLocked(c.key, h)
		p.unlock()
		c.cc.Close()
		return
	}
	h.idle = append(h.idle, c)
	p.idle++
	p.armLocked()
	p.unlock()
}

// release takes back a connection on which nothing was written.
func (p *pool) release(c *conn) {
	c.cc.Release()
	p.put(c)
}

// retire keeps an HTTP/2 connection from further exchanges, such as one whose
// site has fallen silent; those on it go on.
func (p *pool) retire(c *conn) {
	p.mu.Lock()
	defer p.unlock()
	p.removeH2Locked(p.hosts[c.key], c)
}

// discard ends an exchange on a connection. An HTTP/1 connection is closed. An
// HTTP/2 one is shared: it goes on unless it is broken, or gone from the pool
// and this was its last exchange.
func (p *pool) discard(c *conn, broken bool) {
	if !c.http2() {
		c.cc.Close()
		return
	}
	p.mu.Lock()
	defer p.unlock()
	c.lent--
	c.idleAt = time.Now()
	h := p.hosts[c.key]
	switch {
	case broken:
		p.removeH2Locked(h, c)
	case !c.gone && c.lent == 0:
		if p.idle >= p.cfg.MaxIdle && !p.evictLocked() {
			p.removeH2Locked(h, c)
			break
		}
		p.idle++
	}
	if broken || c.gone && c.lent == 0 {
		p.dead = append(p.dead, c)
	}
}

// lendLocked counts one more exchange on an HTTP/2 connection.
func (p *pool) lendLocked(c *conn) {
	if c.lent == 0 {
		p.idle--
	}
	c.lent++
}

// removeH2Locked takes an HTTP/2 connection out of the pool.
func (p *pool) removeH2Locked(h *hostConns, c *conn) {
	if c.gone || h == nil {
		return
	}
	c.gone = true
	for i, o := range h.h2 {
		if o == c {
			h.h2 = append(h.h2[:i], h.h2[i+1:]...)
			break
		}
	}
	p.cleanLocked(c.key, h)
}

func (p *pool) leaveLocked(key string, h *hostConns) {
	h.users--
	p.cleanLocked(key, h)
}

// cleanLocked forgets a host without connections.
func (p *pool) cleanLocked(key string, h *hostConns) {
	if h.users == 0 && len(h.idle) == 0 && len(h.h2) == 0 && p.hosts[key] == h {
		delete(p.hosts, key)
	}
}

// evictLocked closes the longest kept connection of some host.
func (p *pool) evictLocked() bool {
	for key, h := range p.hosts {
		n := 1
		p.dropLocked(key, h, func(*conn) bool { n--; return n == 0 })
		if n <= 0 {
			return true
		}
	}
	return false
}

// dropLocked closes the connections of h that no exchange is on and for which
// drop says so.
func (p *pool) dropLocked(key string, h *hostConns, drop func(*conn) bool) {
	sift := func(list []*conn) []*conn {
		kept := list[:0]
		for _, c := range list {
			if c.lent > 0 || !drop(c) {
				kept = append(kept, c)
				continue
			}
			p.idle--
			c.gone = true
			p.dead = append(p.dead, c)
		}
		clear(list[len(kept):])
		return kept
	}
	h.idle, h.h2 = sift(h.idle), sift(h.h2)
	p.cleanLocked(key, h)
}

// sweepIdle closes what has been kept too long or was closed by its site.
func (p *pool) sweepIdle() {
	p.mu.Lock()
	defer p.unlock()
	now := time.Now()
	for key, h := range p.hosts {
		p.dropLocked(key, h, func(c *conn) bool { return now.Sub(c.idleAt) >= c.keep || c.cc.Err() != nil })
	}
	p.sweep = nil
	if len(p.hosts) > 0 {
		p.armLocked()
	}
}

// armLocked sees to it that the pool is swept.
func (p *pool) armLocked() {
	if p.sweep == nil && !p.closed {
		p.sweep = time.AfterFunc(p.cfg.IdleConnTimeout/2+time.Millisecond, p.sweepIdle)
	}
}

func (p *pool) closeIdle() {
	p.mu.Lock()
	defer p.unlock()
	p.closeIdleLocked()
}

func (p *pool) closeIdleLocked() {
	for key, h := range p.hosts {
		p.dropLocked(key, h, func(*conn) bool { return true })
	}
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.unlock()
	p.closed = true
	p.closeIdleLocked()
	if p.sweep != nil {
		p.sweep.Stop()
	}
}

// keepAlive reads "Keep-Alive: timeout=N" (RFC 2068 section 19.7.1.1, still
// sent by Apache and Node). A connection used just when its site drops it is
// a request lost, so it is given up a second early.
func keepAlive(value string, limit time.Duration) time.Duration {
	for part := range strings.SplitSeq(value, ",") {
		name, v, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || !strings.EqualFold(name, "timeout") {
			continue
		}
		n, err := strconv.ParseUint(strings.Trim(v, ` "`), 10, 31)
		if err != nil {
			continue
		}
		return min(limit, time.Duration(n)*time.Second-time.Second)
	}
	return limit
}
