package core_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// world is one database and machines that reach it without delay.
type world struct {
	t   *testing.T
	now time.Duration
	db  *core.DB
	cfg core.Config
	all []*core.Session
}

func newWorld(t *testing.T, off core.Off) *world {
	cfg := core.Config{Timing: coord.DefaultTiming(), Off: off}
	return &world{t: t, now: time.Hour, db: core.NewDB(off, coord.Ident{System: "db"}), cfg: cfg}
}

func (w *world) clock() core.Now      { return core.Now{Mono: w.now, Wall: w.now} }
func (w *world) micros() coord.Micros { return coord.Micros(w.now / time.Microsecond) }

func (w *world) join(node coord.NodeID) *core.Session {
	w.t.Helper()
	r, err := w.db.Register(w.micros(), coord.Registration{Node: node, Role: coord.RoleNode})
	if err != nil {
		w.t.Fatal(err)
	}
	s := core.NewSession(w.cfg, r, nil, w.clock())
	w.all = append(w.all, s)
	w.step(0)
	return s
}

// step lets time pass and everything happen that is due.
func (w *world) step(d time.Duration) {
	for end := w.now + d; ; w.now += 50 * time.Millisecond {
		for _, s := range w.all {
			s.Tick(w.clock())
			w.pump(s)
		}
		if w.now >= end {
			return
		}
	}
}

func (w *world) pump(s *core.Session) {
	for calls := s.Calls(); len(calls) > 0; calls = s.Calls() {
		for _, c := range calls {
			s.Handle(w.clock(), w.exec(c))
		}
	}
}

func (w *world) exec(c core.Call) core.Answer {
	a := core.Answer{ID: c.ID}
	switch q := c.Req.(type) {
	case coord.Beat:
		a.Reply, a.Err = any2(w.db.Beat(w.micros(), q))
	case coord.Ask:
		a.Reply, a.Err = any2(w.db.Grant(w.micros(), q))
	case coord.Return:
		w.db.Return(q)
	case coord.Reconcile:
		a.Reply, a.Err = any2(w.db.Reconcile(w.micros(), q))
	case coord.Drain:
		a.Reply, a.Err = any2(w.db.Drain(w.micros(), q))
	case coord.Open:
		a.Reply, a.Err = any2(w.db.Open(w.micros(), q))
	case coord.Burial:
		a.Reply, a.Err = any2(w.db.Bury(w.micros(), q))
	default:
		w.t.Fatalf("no such call %T", q)
	}
	return a
}

func any2[T any](v T, err error) (any, error) { return v, err }

func (w *world) acquire(s *core.Session, need coord.Need) []*core.Permit {
	got, ask := s.Acquire(w.clock(), need, nil)
	w.pump(s)
	if ask != 0 {
		got, _ = s.Asked(ask, got)
	}
	return got
}

func TestSuspend(t *testing.T) {
	need := coord.Need{Keys: []coord.CappedKey{{Key: "host:x", Cap: 2}}, N: 1}
	t.Run("a wall clock that ran ahead of the monotonic one stops starts until the next beat", func(t *testing.T) {
		w := newWorld(t, 0)
		s := w.join("a")
		p := w.acquire(s, need)[0]
		now := w.clock()
		if err := s.MayStart(now, p); err != nil {
			t.Fatal(err)
		}
		now.Wall += time.Hour
		if err := s.MayStart(now, p); !errors.Is(err, coord.ErrNoView) {
			t.Errorf("got %v, want ErrNoView", err)
		}
		if next := s.Next(now); next > now.Mono+w.cfg.Timing.Beat/4 {
			t.Errorf("the next beat is %v away", next-now.Mono)
		}
		off := newWorld(t, core.Off(0).Without(core.R3Wall))
		s = off.join("a")
		p = off.acquire(s, need)[0]
		now = off.clock()
		now.Wall += time.Hour
		if err := s.MayStart(now, p); err != nil {
			t.Errorf("without the rule: %v", err)
		}
	})
	t.Run("a lease is not trusted over a suspend", func(t *testing.T) {
		l := core.Trusted{From: core.Now{Mono: time.Hour, Wall: time.Hour}, TTL: 90 * time.Second}
		if !l.Holds(0, core.Now{Mono: time.Hour + 74*time.Second, Wall: time.Hour + 74*time.Second}) {
			t.Error("not held after 74 s")
		}
		if l.Holds(0, core.Now{Mono: time.Hour + 75*time.Second, Wall: time.Hour}) || l.Holds(0, core.Now{Mono: time.Hour, Wall: time.Hour + 75*time.Second}) {
			t.Error("held after 75 s on one of the clocks")
		}
	})
}

// TestShare is the directed test of R16Share: a holder at full speed never goes idle, so without the rule nobody else is
// served.
func TestShare(t *testing.T) {
	need := coord.Need{Keys: []coord.CappedKey{{Key: "host:x", Cap: 2}}, N: 2}
	served := func(off core.Off) bool {
		w := newWorld(t, off)
		a, b := w.join("a"), w.join("b")
		held := w.acquire(a, need)
		for range 400 {
			for _, p := range held {
				a.Release(w.clock(), p)
			}
			held = w.acquire(a, need)
			if got := w.acquire(b, coord.Need{Keys: need.Keys, N: 1}); len(got) > 0 {
				return true
			}
			w.step(100 * time.Millisecond)
		}
		return false
	}
	if !served(0) {
		t.Error("nobody gave back")
	}
	if served(core.Off(0).Without(core.R16Share)) {
		t.Error("served without the rule: the test shows nothing")
	}
}

func TestPickFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		taken := rapid.SliceOfDistinct(rapid.IntRange(1, 12), rapid.ID[int]).Draw(t, "taken")
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		n, ok := core.PickFree(taken, limit)
		switch {
		case ok != (len(taken) < limit):
			t.Fatalf("%d of %d taken: granted %v", len(taken), limit, ok)
		case ok && (slices.Contains(taken, n) || n > limit):
			t.Fatalf("got %d of %v, cap %d", n, taken, limit)
		}
		for i := 1; ok && i < n; i++ {
			if !slices.Contains(taken, i) {
				t.Fatalf("got %d, %d is free", n, i)
			}
		}
	})
}

func TestTakeHoldsTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := coord.RateLimit{PerSecond: rapid.Float64Range(0.01, 5000).Draw(t, "rate"), Burst: rapid.IntRange(1, 20).Draw(t, "burst")}
		var row core.RateRow
		known := false
		now, epoch := coord.Micros(1e12), coord.Epoch(1)
		var at []coord.Micros
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			now += coord.Micros(rapid.Int64Range(0, 2*int64(core.Interval(limit))).Draw(t, "step"))
			if rapid.IntRange(0, 50).Draw(t, "switch") == 0 {
				epoch++
				if rapid.Bool().Draw(t, "lost") {
					known = false
				}
			}
			next, wait, err := core.DecideTake(0, row, known, epoch, now, 0, limit)
			if err != nil {
				t.Fatal(err)
			}
			row, known = next, true
			if wait > 0 {
				continue
			}
			at = append(at, now)
			for i := range at {
				window := float64(now-at[i]) / 1e6
				if n := float64(len(at) - i); n > float64(limit.Burst)+limit.PerSecond*window+1e-6 {
					t.Fatalf("%v grants in %v s, burst %d, %v a second", n, window, limit.Burst, limit.PerSecond)
				}
			}
		}
	})
}

func TestGatesOnlyLengthen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		row := core.GateRow{}
		now := coord.Micros(1e12)
		for range 20 {
			now += coord.Micros(rapid.Int64Range(0, 1e9).Draw(t, "step"))
			w := coord.GateWrite{For: time.Duration(rapid.Int64Range(1, int64(2*coord.MaxPause)).Draw(t, "for")), Gen: rapid.Uint64Range(0, 2).Draw(t, "gen")}
			next, changed := core.DecidePause(0, row, w, now)
			if next.Gen == max(row.Gen, 1) && next.At < row.At {
				t.Fatalf("%+v shortened %+v to %+v", w, row, next)
			}
			if changed != (next.At != row.At || next.Gen != max(row.Gen, 1)) {
				t.Fatalf("%+v on %+v gives %+v, changed %v", w, row, next, changed)
			}
			row = next
			if rapid.IntRange(0, 9).Draw(t, "clear") == 0 {
				row = core.DecideClear(row, now)
				if late, changed := core.DecidePause(0, row, coord.GateWrite{For: time.Hour, Gen: row.Gen - 1}, now); changed || late.At > now {
					t.Fatalf("a rewrite from before the clear closed it: %+v", late)
				}
			}
		}
	})
}

func TestInterval(t *testing.T) {
	for _, c := range []struct {
		rate float64
		want coord.Micros
	}{{1, 1e6}, {3, 333334}, {1e9, 1}, {1e-12, 365 * 24 * 3600 * 1e6}} {
		if got := core.Interval(coord.RateLimit{PerSecond: c.rate, Burst: 1}); got != c.want {
			t.Errorf("%v a second: got %d us, want %d", c.rate, got, c.want)
		}
	}
}

func TestTiming(t *testing.T) {
	if err := coord.DefaultTiming().Check(); err != nil {
		t.Error(err)
	}
	if err := coord.SoakTiming().Check(); err != nil {
		t.Error(err)
	}
	low := coord.DefaultTiming()
	low.Death = low.MinDeath() - 1
	if err := low.Check(); !errors.Is(err, coord.ErrTiming) {
		t.Errorf("below the bound: %v", err)
	}
}
