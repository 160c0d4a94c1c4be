package fetch

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// dnsCache remembers addresses of hosts. The standard resolver does not tell
// the records' own TTL, so entries live for a set time.
type dnsCache struct {
	resolver    Resolver
	timeout     time.Duration
	ttl, negTTL time.Duration
	max         int
	base        context.Context // of look-ups: they outlive the exchange that asked first
	stop        context.CancelFunc
	mu          sync.Mutex
	entries     map[string]*list.Element // of *dnsEntry
	recent      *list.List               // most recently used first
	running     sync.WaitGroup
	closed      bool
}

type dnsEntry struct {
	host    string
	ready   chan struct{} // closed when the look-up has ended
	addrs   []netip.Addr
	err     error
	expires time.Time // zero while looking up
}

func newDNSCache(cfg *Config) *dnsCache {
	base, stop := context.WithCancel(context.Background())
	return &dnsCache{
		resolver: cfg.Resolver, timeout: cfg.DNSTimeout, ttl: cfg.DNSTTL, negTTL: cfg.DNSNegativeTTL, max: cfg.DNSEntries,
		base: base, stop: stop, entries: make(map[string]*list.Element), recent: list.New(),
	}
}

// lookup returns the addresses of host; the slice must not be changed. One
// look-up serves all who ask meanwhile, and goes on when those give up.
func (d *dnsCache) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, ErrClosed
	}
	el := d.entries[host]
	if el != nil {
		if e := el.Value.(*dnsEntry); !e.expires.IsZero() && !time.Now().Before(e.expires) {
			d.removeLocked(el)
			el = nil
		}
	}
	if el == nil {
		e := &dnsEntry{host: host, ready: make(chan struct{})}
		el = d.recent.PushFront(e)
		d.entries[host] = el
		if d.recent.Len() > d.max {
			d.removeLocked(d.recent.Back())
		}
		d.running.Add(1)
		go d.resolve(e)
	} else {
		d.recent.MoveToFront(el)
	}
	e := el.Value.(*dnsEntry)
	d.mu.Unlock()
	select {
	case <-e.ready:
		return e.addrs, e.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *dnsCache) resolve(e *dnsEntry) {
	defer d.running.Done()
	ctx, cancel := context.WithTimeout(d.base, d.timeout)
	defer cancel()
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", e.host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "no addresses", Name: e.host, IsNotFound: true}
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = ErrTimeout
	}
	e.addrs, e.err = addrs, err
	ttl := d.ttl
	if err != nil {
		ttl = d.negTTL
	}
	d.mu.Lock()
	e.expires = time.Now().Add(ttl)
	d.mu.Unlock()
	close(e.ready)
}

func (d *dnsCache) removeLocked(el *list.Element) {
	e := el.Value.(*dnsEntry)
	d.recent.Remove(el)
	if d.entries[e.host] == el {
		delete(d.entries, e.host)
	}
}

func (d *dnsCache) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.stop()
	d.running.Wait()
}
