package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// lease is one acquisition, renewed in the background.
type lease struct {
	s     *Session
	h     coord.Hold
	fence coord.Fence
	lost  chan struct{}
	ended chan struct{} // the renewing goroutine has

	mu    sync.Mutex
	trust core.Trusted
	gone  bool
}

// Lease takes a lease and keeps it.
func (s *Session) Lease(ctx context.Context, name string, ttl time.Duration) (coord.Lease, error) {
	if name == "" || len(name) > coord.MaxKey || ttl < time.Second {
		return nil, fmt.Errorf("lease %q for %v, the smallest allowed is 1s: %w", name, ttl, coord.ErrArgument)
	}
	s.mu.Lock()
	began := s.now()
	v, err := s.m.View(began)
	_, busy := s.leasing[name]
	if l := s.leases[name]; err == nil && (busy || l != nil) {
		err = fmt.Errorf("lease %s: this session has it: %w", name, coord.ErrHeld)
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	s.leasing[name] = struct{}{}
	s.tokens++
	s.trips++
	h := coord.Hold{Member: s.id, View: v, Name: name, Token: s.tokens, TTL: ttl}
	s.mu.Unlock()
	call, cancel := context.WithTimeout(ctx, s.timeout(nil))
	held, err := s.c.Hold(call, h)
	err = unknown(call, err)
	cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leasing, name)
	if err != nil {
		return nil, fmt.Errorf("lease %s: %w", name, err)
	}
	if over := s.m.Over(); over != nil {
		return nil, over
	}
	l := &lease{
		s: s, h: h, fence: held.Fence, lost: make(chan struct{}), ended: make(chan struct{}), trust: core.Trusted{From: began, TTL: ttl},
	}
	s.leases[name] = l
	s.calls.Go(l.renew)
	return l, nil
}

// Held reports whether the lease may be relied on.
func (l *lease) Held() bool {
	now := l.s.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.gone && l.trust.Holds(0, now)
}

// Fence is the acquisition's.
func (l *lease) Fence() coord.Fence { return l.fence }

// Lost is closed once Held is false for good.
func (l *lease) Lost() <-chan struct{} { return l.lost }

// lose ends the trust. It holds no lock of the session.
func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gone {
		l.gone = true
		close(l.lost)
	}
}

// stop ends the trust and waits for the renewals to end.
func (l *lease) stop() {
	l.lose()
	<-l.ended
}

// renew renews until the lease is lost.
func (l *lease) renew() {
	defer close(l.ended)
	s, every := l.s, core.RenewEvery(l.h.TTL)
	next := every
	for {
		t := s.o.Clock.NewTimer(next)
		select {
		case <-t.C:
		case <-l.lost:
			t.Stop()
			return
		}
		next = every
		if err := l.renewOnce(); err != nil {
			next = min(every/2, time.Second)
			if l.over(err) {
				s.o.Log.Warn("lease is lost", "lease", l.h.Name, "err", err)
				l.forget()
				l.lose()
				return
			}
		}
	}
}

// over reports that no later renewal can help.
func (l *lease) over(err error) bool {
	return errors.Is(err, coord.ErrLost) || errors.Is(err, coord.ErrHeld) || errors.Is(err, coord.ErrFenced) || !l.Held()
}

// forget lets the session take the lease anew.
func (l *lease) forget() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.leases[l.h.Name] == l {
		delete(l.s.leases, l.h.Name)
	}
}

func (l *lease) renewOnce() error {
	s := l.s
	s.mu.Lock()
	began := s.now()
	v, err := s.m.View(began)
	s.trips++
	s.mu.Unlock()
	if err != nil {
		return err
	}
	l.mu.Lock()
	left := core.Trust(l.h.TTL) - (began.Mono - l.trust.From.Mono)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, max(min(s.timeout(nil), left), time.Millisecond))
	defer cancel()
	h := l.h
	h.View = v
	held, err := s.c.Hold(ctx, h)
	if err != nil {
		return unknown(ctx, err)
	}
	if held.Fence != l.fence {
		return fmt.Errorf("renewed with fence %v instead of %v: %w", held.Fence, l.fence, coord.ErrLost)
	}
	l.mu.Lock()
	l.trust.From = began
	l.mu.Unlock()
	return nil
}

// Release gives the lease back.
func (l *lease) Release(ctx context.Context) error {
	l.mu.Lock()
	gone := l.gone
	l.mu.Unlock()
	l.stop()
	l.forget()
	if gone {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.s.timeout(nil))
	defer cancel()
	if err := l.s.c.Drop(ctx, l.h); err != nil {
		return fmt.Errorf("release lease %s: %w", l.h.Name, unknown(ctx, err))
	}
	return nil
}
