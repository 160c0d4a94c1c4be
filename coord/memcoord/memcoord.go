// Package memcoord coordinates the sessions of one process in memory. It is what tests use, and the yardstick the shared
// backends are measured against.
package memcoord

import (
	"context"
	"fmt"
	"sync"
	"time"

	"deepcrawl/coord"
)

// Coord is an authority in memory.
type Coord struct {
	mu       sync.Mutex
	clock    coord.Clock
	last     coord.Incarnation
	fence    uint64
	sessions map[coord.Member]*session
	used     map[coord.Key]int
	caps     map[coord.Key]map[coord.Member]int
	gates    map[coord.Key]gate
	tats     map[coord.Key]time.Time
	leases   map[string]*lease
	changed  chan struct{}
}

type gate struct {
	until  time.Time
	reason string
}

// New returns an empty authority on clock, the system's when nil.
func New(clock coord.Clock) *Coord {
	if clock == nil {
		clock = coord.SystemClock{}
	}
	return &Coord{
		clock: clock, sessions: map[coord.Member]*session{}, used: map[coord.Key]int{},
		caps: map[coord.Key]map[coord.Member]int{}, gates: map[coord.Key]gate{}, tats: map[coord.Key]time.Time{},
		leases: map[string]*lease{}, changed: make(chan struct{}),
	}
}

// wake closes the channel all waiters hold. The caller holds mu.
func (c *Coord) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Join starts a session. ErrNodeID, ErrTiming, ErrNodeBusy.
func (c *Coord) Join(_ context.Context, o coord.Options) (coord.Session, error) {
	if err := o.Node.Check(); err != nil {
		return nil, err
	}
	if o.Timing == (coord.Timing{}) {
		o.Timing = coord.DefaultTiming()
	}
	if err := o.Timing.Check(); err != nil {
		return nil, err
	}
	if o.Role == "" {
		o.Role = coord.RoleTool
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Role == coord.RoleNode {
		for m, s := range c.sessions {
			if m.Node == o.Node && s.role == coord.RoleNode {
				return nil, fmt.Errorf("join as %s: %w", o.Node, coord.ErrNodeBusy)
			}
		}
	}
	c.last++
	s := &session{c: c, id: coord.Member{Node: o.Node, Incarnation: c.last}, role: o.Role, timing: o.Timing, done: make(chan struct{})}
	c.sessions[s.id] = s
	return s, nil
}

type session struct {
	c      *Coord
	id     coord.Member
	role   coord.Role
	timing coord.Timing
	done   chan struct{}
	out    map[*permit]struct{}
}

var _ coord.Session = (*session)(nil)

func (s *session) ID() coord.Member      { return s.id }
func (s *session) Timing() coord.Timing  { return s.timing }
func (s *session) Done() <-chan struct{} { return s.done }

func (s *session) Err() error {
	select {
	case <-s.done:
		return coord.ErrLeft
	default:
		return nil
	}
}

func (s *session) MayWork() error { return s.Err() }

func (s *session) Leave(context.Context) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if s.Err() != nil {
		return nil
	}
	close(s.done)
	for p := range s.out {
		s.c.free(p)
	}
	for _, m := range s.c.caps {
		delete(m, s.id)
	}
	for _, l := range s.c.leases {
		if l.s == s {
			s.c.drop(l)
		}
	}
	delete(s.c.sessions, s.id)
	s.c.wake()
	return nil
}

// cap is the smallest declared by a live session.
func (c *Coord) cap(k coord.Key) int {
	least := 0
	for _, v := range c.caps[k] {
		if least == 0 || v < least {
			least = v
		}
	}
	return least
}

func (s *session) Acquire(ctx context.Context, need coord.Need) ([]coord.Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if need.N < 1 || len(need.Keys) == 0 {
		return nil, fmt.Errorf("acquire %d permits of %d keys: %w", need.N, len(need.Keys), coord.ErrArgument)
	}
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.Err(); err != nil {
		return nil, err
	}
	for _, k := range need.Keys {
		if err := k.Key.Check(); err != nil {
			return nil, err
		}
		if k.Cap < 1 {
			return nil, fmt.Errorf("acquire %s with cap %d, the smallest allowed is 1: %w", k.Key, k.Cap, coord.ErrArgument)
		}
		if c.caps[k.Key] == nil {
			c.caps[k.Key] = map[coord.Member]int{}
		}
		c.caps[k.Key][s.id] = k.Cap
	}
	n := need.N
	for _, k := range need.Keys {
		if _, _, closed := c.closed(k.Key); closed {
			return nil, nil
		}
		n = min(n, c.cap(k.Key)-c.used[k.Key])
	}
	var got []coord.Permit
	for range n {
		p := &permit{s: s}
		for _, k := range need.Keys {
			p.keys = append(p.keys, k.Key)
			c.used[k.Key]++
		}
		if s.out == nil {
			s.out = map[*permit]struct{}{}
		}
		s.out[p] = struct{}{}
		got = append(got, p)
	}
	return got, nil
}

func (s *session) Changed() <-chan struct{} {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.c.changed
}

type permit struct {
	s    *session
	keys []coord.Key
	gone bool
	rate time.Time
}

// free gives the permit's slots back. The caller holds mu.
func (c *Coord) free(p *permit) {
	if p.gone {
		return
	}
	p.gone = true
	delete(p.s.out, p)
	for _, k := range p.keys {
		c.used[k]--
	}
	c.wake()
}

func (p *permit) MayStart() error {
	c := p.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := p.s.Err(); err != nil {
		return err
	}
	if p.gone {
		return fmt.Errorf("start with a released permit: %w", coord.ErrVoid)
	}
	if !p.rate.IsZero() && c.clock.Now().Sub(p.rate) > p.s.timing.RateVoid {
		return fmt.Errorf("start on an old rate grant: %w", coord.ErrVoid)
	}
	for _, k := range p.keys {
		if until, reason, closed := c.closed(k); closed {
			return &coord.GateError{Key: k, Until: until, Reason: reason}
		}
	}
	return nil
}

func (p *permit) Take(ctx context.Context, key coord.Key, l coord.RateLimit) (time.Duration, error) {
	wait, err := p.s.Take(ctx, key, l)
	if err == nil && wait == 0 {
		p.s.c.mu.Lock()
		p.rate = p.s.c.clock.Now()
		p.s.c.mu.Unlock()
	}
	return wait, err
}

func (p *permit) Release() {
	p.s.c.mu.Lock()
	defer p.s.c.mu.Unlock()
	p.s.c.free(p)
}

func (p *permit) Abort() {
	time.AfterFunc(p.s.timing.AbortGrace, p.Release)
}

// closed looks a gate up. The caller holds mu.
func (c *Coord) closed(k coord.Key) (time.Time, string, bool) {
	g, ok := c.gates[k]
	if !ok || !c.clock.Now().Before(g.until) {
		return time.Time{}, "", false
	}
	return g.until, g.reason, true
}

func (s *session) Gate(k coord.Key) (time.Time, string, bool) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	return s.c.closed(k)
}

func (s *session) Pause(_ context.Context, k coord.Key, d time.Duration, reason string) error {
	if err := k.Check(); err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("pause %s for %v: %w", k, d, coord.ErrArgument)
	}
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	d = min(d, coord.MaxPause)
	if until := c.clock.Now().Add(d); until.After(c.gates[k].until) {
		c.gates[k] = gate{until: until, reason: reason}
		time.AfterFunc(d, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.wake()
		})
	}
	return nil
}

func (s *session) Clear(_ context.Context, k coord.Key) error {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	delete(s.c.gates, k)
	s.c.wake()
	return nil
}

// Take is GCRA with an empty missing bucket.
func (s *session) Take(_ context.Context, k coord.Key, l coord.RateLimit) (time.Duration, error) {
	if err := k.Check(); err != nil {
		return 0, err
	}
	if !(l.PerSecond > 0) || l.Burst < 1 {
		return 0, fmt.Errorf("take from %s at %v a second, burst %d: %w", k, l.PerSecond, l.Burst, coord.ErrArgument)
	}
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.Err(); err != nil {
		return 0, err
	}
	now := c.clock.Now()
	interval := time.Duration(float64(time.Second) / l.PerSecond)
	span := interval * time.Duration(l.Burst)
	tat, ok := c.tats[k]
	if !ok {
		tat = now.Add(span)
		c.tats[k] = tat
	}
	if tat.Before(now) {
		tat = now
	}
	next := tat.Add(interval)
	if wait := next.Add(-span).Sub(now); wait > 0 {
		return wait, nil
	}
	c.tats[k] = next
	return 0, nil
}

type lease struct {
	s     *session
	name  string
	fence coord.Fence
	lost  chan struct{}
}

// drop ends an acquisition. The caller holds mu.
func (c *Coord) drop(l *lease) {
	if c.leases[l.name] == l {
		delete(c.leases, l.name)
		close(l.lost)
	}
}

func (s *session) Lease(_ context.Context, name string, ttl time.Duration) (coord.Lease, error) {
	if name == "" || ttl < time.Second {
		return nil, fmt.Errorf("lease %q for %v, the smallest allowed is 1s: %w", name, ttl, coord.ErrArgument)
	}
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := s.Err(); err != nil {
		return nil, err
	}
	if l := c.leases[name]; l != nil {
		return nil, fmt.Errorf("lease %s: held by %s: %w", name, l.s.id, coord.ErrHeld)
	}
	c.fence++
	l := &lease{s: s, name: name, fence: coord.Fence{Epoch: 1, Number: c.fence}, lost: make(chan struct{})}
	c.leases[name] = l
	return l, nil
}

func (l *lease) Held() bool {
	select {
	case <-l.lost:
		return false
	default:
		return true
	}
}

func (l *lease) Fence() coord.Fence    { return l.fence }
func (l *lease) Lost() <-chan struct{} { return l.lost }

func (l *lease) Release(context.Context) error {
	l.s.c.mu.Lock()
	defer l.s.c.mu.Unlock()
	l.s.c.drop(l)
	return nil
}
