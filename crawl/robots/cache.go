package robots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Response is what a FetchFunc reports for one hop.
type Response struct {
	Status     int           // 0 with Err
	Body       []byte        // at most MaxBytes need be read
	Location   string        // of a 3xx, as sent
	RetryAfter time.Duration // 0 when not asked for
	MaxAge     time.Duration // Cache-Control max-age, 0 when none
	Err        error         // the exchange did not complete
}

// FetchFunc performs one HTTP exchange for url without following redirects. It
// takes the slot of url's own host and gives it back before it returns, so the
// cache never holds one host's slot while it waits for another's. It must return
// when ctx ends.
type FetchFunc func(ctx context.Context, url string) Response

// Config sets up a Cache. Zero values stand for the defaults named.
type Config struct {
	Product string    // product token, e.g. "DeepcrawlCluster"; what follows "/" is dropped
	Fetch   FetchFunc // required
	Now     func() time.Time

	MaxDelay   time.Duration // most crawl-delay honoured; 30 s
	TTL        time.Duration // how long an answer is good; 24 h, and never more (RFC 9309 section 2.4)
	MinTTL     time.Duration // least a Cache-Control max-age shortens TTL to; 10 min
	MaxStale   time.Duration // age up to which a copy is used while robots.txt is unreachable; 48 h
	RetryMin   time.Duration // first wait after a failure, doubled each time; 30 s
	RetryMax   time.Duration // longest such wait; 30 min
	PauseAfter time.Duration // pause after a 429 without Retry-After; 60 s, doubled up to RetryMax
	MaxOrigins int           // origins kept, the least recently used leave; 10,000
	MaxMemory  int64         // bytes of policies kept, estimated; 64 MiB
}

// maxRetryAfter caps what a site can ask for (DESIGN section 7).
const maxRetryAfter = 24 * time.Hour

// maxRedirects is how many redirects in a row are followed, RFC 9309 section 2.3.1.2.
const maxRedirects = 5

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.MaxDelay, 30*time.Second)
	def(&c.TTL, 24*time.Hour)
	c.TTL = min(c.TTL, 24*time.Hour)
	def(&c.MinTTL, 10*time.Minute)
	c.MinTTL = min(c.MinTTL, c.TTL)
	def(&c.MaxStale, 48*time.Hour)
	def(&c.RetryMin, 30*time.Second)
	def(&c.RetryMax, 30*time.Minute)
	def(&c.PauseAfter, time.Minute)
	if c.MaxOrigins <= 0 {
		c.MaxOrigins = 10_000
	}
	if c.MaxMemory <= 0 {
		c.MaxMemory = 64 << 20
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Cache keeps a Policy for each origin and fetches each at most once at a time.
// It is safe for concurrent use. It starts no goroutine beyond those of the
// fetches in flight, so there is nothing to close.
type Cache struct {
	cfg Config

	mu      sync.RWMutex
	entries map[string]*entry
	memory  int64
}

// entry is one origin. Fields are guarded by Cache.mu except used.
type entry struct {
	policy *Policy // nil before the first answer
	good   *Policy // the last Found or AllowAll, used while unreachable
	fails  int     // failures in a row
	flight *flight
	size   int64
	used   atomic.Int64 // unix nanoseconds of the last use
}

// flight is a fetch that several callers wait for.
type flight struct {
	done    chan struct{}
	policy  *Policy // set before done is closed
	waiters int     // guarded by Cache.mu; at 0 the fetch is cancelled
	cancel  context.CancelFunc
}

// NewCache builds a cache. It panics without Config.Fetch.
func NewCache(cfg Config) *Cache {
	if cfg.Fetch == nil {
		panic("robots: Config.Fetch is nil")
	}
	return &Cache{cfg: cfg.withDefaults(), entries: map[string]*entry{}}
}

// Get returns the policy of an origin ("https://host" or "https://host:port", no
// path), fetching robots.txt where none is known or it has expired. Callers for
// one origin share one fetch; it ends early only when all of them are gone. The
// error wraps ctx's; there is no other.
func (c *Cache) Get(ctx context.Context, origin string) (*Policy, error) {
	if p := c.Peek(origin); p != nil {
		return p, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("robots.txt of %s: %w", origin, err)
	}
	f, p := c.join(ctx, origin)
	if p != nil {
		return p, nil
	}
	select {
	case <-f.done:
		return f.policy, nil
	case <-ctx.Done():
	}
	c.leave(origin, f)
	return nil, fmt.Errorf("robots.txt of %s: %w", origin, ctx.Err())
}

// Peek returns the policy of an origin without I/O, or nil when it is unknown or
// due to be fetched (again).
func (c *Cache) Peek(origin string) *Policy {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.entries[origin]
	if e == nil || e.policy == nil {
		return nil
	}
	now := c.cfg.Now()
	if !now.Before(e.policy.expires) {
		return nil
	}
	e.used.Store(now.UnixNano())
	return e.policy
}

// Forget drops what is known of an origin. A fetch in flight goes on for those
// who wait for it, and its answer is not kept.
func (c *Cache) Forget(origin string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[origin]; e != nil {
		c.memory -= e.size
		delete(c.entries, origin)
	}
}

// join returns the flight for an origin, starting it where there is none, or a
// policy that arrived meanwhile.
func (c *Cache) join(ctx context.Context, origin string) (*flight, *Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Now()
	e := c.entries[origin]
	if e == nil {
		e = &entry{}
		c.entries[origin] = e
		defer c.evict() // with its flight set, e itself stays
	}
	e.used.Store(now.UnixNano())
	if e.policy != nil && now.Before(e.policy.expires) {
		return nil, e.policy
	}
	if e.flight == nil {
		// The values of ctx (a trace, a run) are kept, its end is not: others may join.
		fctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		e.flight = &flight{done: make(chan struct{}), cancel: cancel}
		go c.fly(fctx, origin, e, e.flight)
	}
	e.flight.waiters++
	return e.flight, nil
}

// leave takes a waiter off a flight and cancels it when it was the last.
func (c *Cache) leave(origin string, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiters--
	if f.waiters > 0 {
		return
	}
	f.cancel()
	if e := c.entries[origin]; e != nil && e.flight == f {
		e.flight = nil // who comes now starts afresh
	}
}

// fly runs a fetch and files its result. The filing is deferred so that neither
// a panic nor runtime.Goexit in the FetchFunc leaves waiters behind.
func (c *Cache) fly(ctx context.Context, origin string, e *entry, f *flight) {
	a := answer{url: origin + "/robots.txt", resp: Response{Err: errors.New("the fetch ended without an answer")}}
	defer func() {
		if r := recover(); r != nil {
			a.resp = Response{Err: fmt.Errorf("panic: %v", r)}
		}
		c.file(ctx, origin, e, f, a)
	}()
	a = c.fetch(ctx, origin)
}

// file ends a flight with the answer it got.
func (c *Cache) file(ctx context.Context, origin string, e *entry, f *flight, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer f.cancel()
	defer close(f.done)
	if f.waiters <= 0 && ctx.Err() != nil {
		return // nobody is left, and a cancelled fetch says nothing of the site
	}
	f.policy = c.judge(e, a)
	if e.flight == f {
		e.flight = nil
	}
	if c.entries[origin] != e {
		return // forgotten or evicted meanwhile
	}
	e.policy = f.policy
	size := e.policy.size()
	if e.good != nil && e.good != e.policy {
		size += e.good.size()
	}
	c.memory += size - e.size
	e.size = size
	c.evict()
}

// evict makes room by dropping the least recently used origins, some more than
// needed so that it is rare. Origins being fetched stay. Cache.mu is held.
func (c *Cache) evict() {
	if len(c.entries) <= c.cfg.MaxOrigins && c.memory <= c.cfg.MaxMemory {
		return
	}
	type use struct {
		origin string
		at     int64
	}
	idle := make([]use, 0, len(c.entries))
	for origin, e := range c.entries {
		if e.flight == nil {
			idle = append(idle, use{origin, e.used.Load()})
		}
	}
	slices.SortFunc(idle, func(a, b use) int { return cmp.Compare(a.at, b.at) })
	origins, memory := c.cfg.MaxOrigins-c.cfg.MaxOrigins/16, c.cfg.MaxMemory-c.cfg.MaxMemory/16
	for _, u := range idle {
		if len(c.entries) <= origins && c.memory <= memory {
			return
		}
		c.memory -= c.entries[u.origin].size
		delete(c.entries, u.origin)
	}
}

var errTooManyRedirects = errors.New("more than five redirects")
