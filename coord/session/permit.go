package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// maxKeys is how many keys a permit may cover.
const maxKeys = 4

func checkNeed(need coord.Need) error {
	if need.N < 1 || len(need.Keys) < 1 || len(need.Keys) > maxKeys {
		return fmt.Errorf("acquire %d permits of %d keys, allowed are at least 1 of 1 to %d: %w", need.N, len(need.Keys), maxKeys, coord.ErrArgument)
	}
	for i, k := range need.Keys {
		if k.Cap < 1 {
			return fmt.Errorf("acquire %s with cap %d, the smallest allowed is 1: %w", k.Key, k.Cap, coord.ErrArgument)
		}
		if err := k.Key.Check(); err != nil {
			return err
		}
		for _, other := range need.Keys[:i] {
			if other.Key == k.Key {
				return fmt.Errorf("acquire %s twice at once: %w", k.Key, coord.ErrArgument)
			}
		}
	}
	return nil
}

// Acquire gives kept slots, and makes at most one call for the rest.
func (s *Session) Acquire(ctx context.Context, need coord.Need) ([]coord.Permit, error) {
	if err := checkNeed(need); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if err := s.m.Over(); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	got, ask := s.m.Acquire(s.now(), need, nil)
	if ask == 0 {
		s.pump()
		s.mu.Unlock()
		return s.wrap(got), nil
	}
	answered := make(chan struct{})
	s.waiters[ask] = answered
	s.pump()
	s.mu.Unlock()
	select {
	case <-answered:
		s.mu.Lock()
		got, _ = s.m.Asked(ask, got)
		s.mu.Unlock()
		return s.wrap(got), nil
	case <-ctx.Done():
		s.mu.Lock()
		if !s.over {
			s.calls.Go(func() { s.keepLate(ask, answered) })
		}
		s.mu.Unlock()
		if len(got) > 0 {
			return s.wrap(got), nil
		}
		return nil, ctx.Err()
	}
}

// keepLate puts into the pool what was granted after its caller had gone.
func (s *Session) keepLate(ask uint64, answered <-chan struct{}) {
	<-answered
	s.mu.Lock()
	defer s.mu.Unlock()
	late, _ := s.m.Asked(ask, nil)
	for _, p := range late {
		s.m.Release(s.now(), p)
	}
	s.pump()
}

func (s *Session) wrap(got []*core.Permit) []coord.Permit {
	if len(got) == 0 {
		return nil
	}
	out := make([]coord.Permit, len(got))
	all := make([]permit, len(got))
	for i, p := range got {
		all[i] = permit{s: s, p: p}
		out[i] = &all[i]
	}
	return out
}

// Yield says that there is no work for key now.
func (s *Session) Yield(key coord.Key) {
	s.mu.Lock()
	s.m.Yield(key)
	s.pump()
	s.mu.Unlock()
}

// Changed returns a channel closed at the next change.
func (s *Session) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// MayWork is nil when requests could start.
func (s *Session) MayWork() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.MayWork(s.now())
}

type permit struct {
	s *Session
	p *core.Permit
}

func (p *permit) MayStart() error {
	s := p.s
	s.mu.Lock()
	now := s.now()
	err := s.m.MayStart(now, p.p)
	s.mu.Unlock()
	if err == nil {
		return nil
	}
	var g *core.Gated
	if errors.As(err, &g) {
		return &coord.GateError{Key: g.Key, Until: s.o.Clock.Now().Add(g.Left), Reason: g.Reason}
	}
	return err
}

func (p *permit) Take(ctx context.Context, key coord.Key, l coord.RateLimit) (time.Duration, error) {
	return p.s.take(ctx, key, l, p.p)
}

func (p *permit) Release() {
	s := p.s
	s.mu.Lock()
	s.m.Release(s.now(), p.p)
	s.pump()
	s.mu.Unlock()
}

func (p *permit) Abort() {
	s := p.s
	s.mu.Lock()
	s.m.Abort(s.now(), p.p)
	s.pump()
	s.mu.Unlock()
}

// Gate looks a gate up.
func (s *Session) Gate(key coord.Key) (time.Time, string, bool) {
	s.mu.Lock()
	left, reason, closed := s.m.Gate(s.now(), key)
	s.mu.Unlock()
	if !closed {
		return time.Time{}, "", false
	}
	return s.o.Clock.Now().Add(left), reason, true
}

// Pause closes a gate here, then everywhere.
func (s *Session) Pause(ctx context.Context, key coord.Key, d time.Duration, reason string) error {
	if err := key.Check(); err != nil {
		return err
	}
	if d <= 0 {
		return fmt.Errorf("pause %s for %v, the smallest allowed is above 0: %w", key, d, coord.ErrArgument)
	}
	s.mu.Lock()
	if err := s.m.Over(); err != nil {
		s.mu.Unlock()
		return err
	}
	w := s.m.Pause(s.now(), key, d, reason)
	s.trips++
	s.pump()
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.timeout(nil))
	defer cancel()
	g, err := s.c.Pause(ctx, w)
	if err != nil {
		s.mu.Lock()
		s.m.Untold(key)
		s.mu.Unlock()
		return fmt.Errorf("pause %s: %w", key, unknown(ctx, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m.Paused(s.now(), g)
	s.pump()
	return nil
}

// Clear opens a gate everywhere.
func (s *Session) Clear(ctx context.Context, key coord.Key) error {
	if err := key.Check(); err != nil {
		return err
	}
	if err := s.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout(nil))
	defer cancel()
	g, err := s.c.Clear(ctx, key)
	if err != nil {
		return fmt.Errorf("clear %s: %w", key, unknown(ctx, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m.Cleared(s.now(), g)
	s.pump()
	return nil
}

// Take takes from a shared budget.
func (s *Session) Take(ctx context.Context, key coord.Key, l coord.RateLimit) (time.Duration, error) {
	return s.take(ctx, key, l, nil)
}

func (s *Session) take(ctx context.Context, key coord.Key, l coord.RateLimit, p *core.Permit) (time.Duration, error) {
	if err := key.Check(); err != nil {
		return 0, err
	}
	if !(l.PerSecond > 0) || l.Burst < 1 {
		return 0, fmt.Errorf("take from %s at %v a second, burst %d, the smallest allowed are above 0 and 1: %w", key, l.PerSecond, l.Burst, coord.ErrArgument)
	}
	s.mu.Lock()
	began := s.now()
	v, err := s.m.View(began)
	if err == nil && v.Mode == coord.ModeDrain {
		// Nobody grants; the budget of the next epoch starts empty.
		s.mu.Unlock()
		return s.o.Timing.Beat / 4, nil
	}
	wait := s.rates[key] - began.Mono
	bound := s.m.ClockBound(began)
	if err == nil && wait <= 0 {
		s.trips++
	}
	s.mu.Unlock()
	if err != nil || wait > 0 {
		return max(wait, 0), err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout(nil))
	defer cancel()
	t, err := s.c.Take(ctx, coord.Take{Member: s.id, View: v, Key: key, Limit: l, ClockBound: bound})
	if errors.Is(err, coord.ErrStale) {
		return s.o.Timing.Beat / 8, nil // the epoch changed on the way, or it took too long
	}
	if err != nil {
		return 0, fmt.Errorf("take from %s: %w", key, unknown(ctx, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	switch {
	case t.Wait > 0:
		s.putOff(key, now.Mono+t.Wait, now.Mono)
		return t.Wait, nil
	case !s.m.AcceptTaken(v, t) || now.Mono-began.Mono >= s.o.Timing.RateVoid:
		return time.Duration(core.Interval(l)) * time.Microsecond, nil
	}
	if p != nil {
		s.m.Rated(p, began.Mono)
	}
	return 0, nil
}

// putOff remembers when a budget has something again, so that a hundred workers do not ask for it. The caller holds mu.
func (s *Session) putOff(key coord.Key, until, now time.Duration) {
	if len(s.rates) >= 1024 {
		for k, t := range s.rates {
			if t <= now {
				delete(s.rates, k)
			}
		}
	}
	s.rates[key] = until
}
