package session_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/memcoord"
	"deepcrawl/coord/session"
)

// flaky is a backend that can be cut off.
type flaky struct {
	coord.Coord
	down atomic.Bool
}

func (f *flaky) Beat(ctx context.Context, b coord.Beat) (coord.BeatReply, error) {
	if f.down.Load() {
		return coord.BeatReply{}, coord.ErrUnavailable
	}
	return f.Coord.Beat(ctx, b)
}

func (f *flaky) Pause(ctx context.Context, w coord.GateWrite) (coord.Gate, error) {
	if f.down.Load() {
		return coord.Gate{}, coord.ErrUnavailable
	}
	return f.Coord.Pause(ctx, w)
}

func (f *flaky) Leave(ctx context.Context, m coord.Member) error {
	if f.down.Load() {
		return coord.ErrUnavailable
	}
	return f.Coord.Leave(ctx, m)
}

func join(t *testing.T, c coord.Coord, o coord.Options) *session.Session {
	t.Helper()
	s, err := session.Join(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func leave(t *testing.T, s *session.Session) {
	t.Helper()
	if err := s.Leave(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("leave: %v", err)
	}
}

var need = coord.Need{Keys: []coord.CappedKey{{Key: "host:x", Cap: 3}}, N: 1}

func one(t *testing.T, s *session.Session) coord.Permit {
	t.Helper()
	got, err := s.Acquire(t.Context(), need)
	if err != nil || len(got) != 1 {
		t.Fatalf("got %d permits, %v", len(got), err)
	}
	return got[0]
}

func TestSession(t *testing.T) {
	t.Run("without the authority nothing starts after the view has ended, and it goes on by itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &flaky{Coord: memcoord.New(nil)}
			s := join(t, f, coord.Options{Node: "a"})
			p := one(t, s)
			f.down.Store(true)
			begin := time.Now()
			view := s.Timing().View
			for time.Since(begin) < view-3*time.Second {
				if err := p.MayStart(); err != nil {
					t.Fatalf("after %v: %v", time.Since(begin), err)
				}
				time.Sleep(time.Second)
			}
			time.Sleep(3 * time.Second)
			if err := p.MayStart(); !errors.Is(err, coord.ErrNoView) {
				t.Fatalf("after %v: got %v, want ErrNoView", time.Since(begin), err)
			}
			if got, err := s.Acquire(t.Context(), need); err != nil || len(got) != 0 {
				t.Errorf("acquired %d without a view, %v", len(got), err)
			}
			f.down.Store(false)
			time.Sleep(s.Timing().Beat)
			if err := p.MayStart(); err != nil {
				t.Errorf("after the outage: %v", err)
			}
			p.Release()
			leave(t, s)
		})
	})
	t.Run("silent for too long it is fenced, and joins anew as another", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &flaky{Coord: memcoord.New(nil)}
			s := join(t, f, coord.Options{Node: "a"})
			p := one(t, s)
			l, err := s.Lease(t.Context(), "leader", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			f.down.Store(true)
			begin := time.Now()
			<-s.Done()
			if d := time.Since(begin); d > s.Timing().Death || d < s.Timing().Death*8/10 {
				t.Errorf("fenced after %v, T is %v", d, s.Timing().Death)
			}
			if !errors.Is(s.Err(), coord.ErrFenced) || !errors.Is(p.MayStart(), coord.ErrFenced) || l.Held() {
				t.Errorf("got %v, start %v, lease held %v", s.Err(), p.MayStart(), l.Held())
			}
			if err := s.Leave(t.Context()); !errors.Is(err, coord.ErrFenced) {
				t.Errorf("leave: %v", err)
			}
			f.down.Store(false)
			again := join(t, f, coord.Options{Node: "a"})
			if again.ID().Incarnation <= s.ID().Incarnation {
				t.Errorf("%v after %v", again.ID(), s.ID())
			}
			leave(t, again)
		})
	})
	t.Run("a pause that could not be told is in force here and told with the next beat", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := memcoord.New(nil)
			f := &flaky{Coord: c}
			s, other := join(t, f, coord.Options{Node: "a"}), join(t, c, coord.Options{Node: "b"})
			f.down.Store(true)
			if err := s.Pause(t.Context(), "host:x", time.Minute, "429"); !errors.Is(err, coord.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
			if _, reason, closed := s.Gate("host:x"); !closed || reason != "429" {
				t.Error("not in force where it was set")
			}
			f.down.Store(false)
			time.Sleep(2*s.Timing().Beat + time.Second)
			if until, _, closed := other.Gate("host:x"); !closed || time.Until(until) > time.Minute {
				t.Errorf("elsewhere closed %v until %v", closed, until)
			}
			leave(t, s)
			leave(t, other)
		})
	})
	t.Run("a pause that is told after it was cleared is void, and one set after the clear is not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := memcoord.New(nil)
			f := &flaky{Coord: c}
			s, other := join(t, f, coord.Options{Node: "a"}), join(t, c, coord.Options{Node: "b"})
			closed := func() (here, there bool) {
				_, _, here = s.Gate("host:x")
				_, _, there = other.Gate("host:x")
				return here, there
			}
			time.Sleep(10 * time.Second)
			f.down.Store(true)
			if err := s.Pause(t.Context(), "host:x", time.Minute, "429"); !errors.Is(err, coord.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
			time.Sleep(5 * time.Second)
			if err := other.Clear(t.Context(), "host:x"); err != nil {
				t.Fatal(err)
			}
			if here, there := closed(); !here || there {
				t.Errorf("before it is heard of: closed here %v, there %v", here, there)
			}
			f.down.Store(false)
			for range 20 {
				time.Sleep(s.Timing().Beat / 2)
				if _, there := closed(); there {
					t.Fatal("a pause from before the clear closed the gate again")
				}
			}
			if here, _ := closed(); here {
				t.Error("it is still closed where it was set")
			}
			f.down.Store(true)
			if err := s.Pause(t.Context(), "host:x", time.Minute, "429"); !errors.Is(err, coord.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
			f.down.Store(false)
			time.Sleep(2*s.Timing().Beat + time.Second)
			if here, there := closed(); !here || !there {
				t.Errorf("a pause set after the clear: closed here %v, there %v", here, there)
			}
			leave(t, s)
			leave(t, other)
		})
	})
	t.Run("an aborted request keeps its slot for a moment", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := memcoord.New(nil)
			s := join(t, c, coord.Options{Node: "a"})
			lone := coord.Need{Keys: []coord.CappedKey{{Key: "host:x", Cap: 1}}, N: 1}
			got, err := s.Acquire(t.Context(), lone)
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			got[0].Abort()
			got[0].Release()
			if more, _ := s.Acquire(t.Context(), lone); len(more) != 0 {
				t.Error("the slot was free at once")
			}
			time.Sleep(s.Timing().AbortGrace + 20*time.Millisecond)
			more, err := s.Acquire(t.Context(), lone)
			if err != nil || len(more) != 1 {
				t.Fatalf("a moment later: %v, %v", more, err)
			}
			more[0].Release()
			leave(t, s)
		})
	})
	t.Run("a rate grant is void after a while", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := join(t, memcoord.New(nil), coord.Options{Node: "a"})
			p := one(t, s)
			limit := coord.RateLimit{PerSecond: 1, Burst: 1}
			for {
				wait, err := p.Take(t.Context(), "host:x", limit)
				if err != nil {
					t.Fatal(err)
				}
				if wait == 0 {
					break
				}
				time.Sleep(wait)
			}
			if err := p.MayStart(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(s.Timing().RateVoid)
			if err := p.MayStart(); !errors.Is(err, coord.ErrVoid) {
				t.Errorf("got %v", err)
			}
			p.Release()
			if err := p.MayStart(); !errors.Is(err, coord.ErrVoid) {
				t.Errorf("released: %v", err)
			}
			leave(t, s)
		})
	})
	t.Run("waiting for a budget costs one call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := join(t, memcoord.New(nil), coord.Options{Node: "a"})
			limit := coord.RateLimit{PerSecond: 0.1, Burst: 1}
			first, err := s.Take(t.Context(), "host:x", limit)
			if err != nil || first != 10*time.Second {
				t.Fatal(first, err)
			}
			before := s.Status().RoundTrips
			time.Sleep(time.Second)
			for range 100 {
				if wait, err := s.Take(t.Context(), "host:x", limit); err != nil || wait != 9*time.Second {
					t.Fatal(wait, err)
				}
			}
			if calls := s.Status().RoundTrips - before; calls > 2 {
				t.Errorf("%d calls", calls)
			}
			leave(t, s)
		})
	})
	t.Run("what comes after the caller has gone goes to the pool", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &slow{Coord: memcoord.New(nil)}
			s := join(t, c, coord.Options{Node: "a"})
			c.wait.Store(int64(time.Second))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := s.Acquire(ctx, need); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
			time.Sleep(time.Second)
			before := s.Status().RoundTrips
			one(t, s).Release()
			if s.Status().RoundTrips != before {
				t.Error("the late slot was not in the pool")
			}
			leave(t, s)
		})
	})
	t.Run("an idle session makes a beat every two seconds and nothing else", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := join(t, memcoord.New(nil), coord.Options{Node: "a"})
			one(t, s).Release()
			time.Sleep(10 * time.Second)
			before := s.Status().RoundTrips
			time.Sleep(100 * time.Second)
			// jitter makes beats up to a fifth closer; every fifth is followed by a reconcile
			if calls := s.Status().RoundTrips - before; calls > 80 {
				t.Errorf("%d calls in 100 s", calls)
			}
			leave(t, s)
		})
	})
	t.Run("nobody joins without an authority", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &flaky{Coord: memcoord.New(nil)}
			f.down.Store(true)
			if _, err := session.Join(t.Context(), f, coord.Options{Node: "a"}); !errors.Is(err, coord.ErrNoView) {
				t.Errorf("got %v", err)
			}
		})
	})
}

// slow delays grants.
type slow struct {
	coord.Coord
	wait atomic.Int64
}

func (s *slow) Grant(ctx context.Context, a coord.Ask) (coord.Granted, error) {
	time.Sleep(time.Duration(s.wait.Load()))
	return s.Coord.Grant(ctx, a)
}
