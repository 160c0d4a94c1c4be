package coordtest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"deepcrawl/coord"
)

func testSlots(t *testing.T, authority Authority) {
	t.Run("the smallest free number is granted, never above the cap", func(t *testing.T) {
		open := authority(t)
		a, b := register(t, open(t), "a"), register(t, open(t), "b")
		for i := range 3 {
			if n := a.one("host:x", 3); n != i+1 {
				t.Fatalf("got %d, want %d", n, i+1)
			}
		}
		if n := b.one("host:x", 3); n != 0 {
			t.Fatalf("got %d above the cap", n)
		}
		a.giveBack(2)
		a.giveBack(2, 77)
		if n := b.one("host:x", 3); n != 2 {
			t.Errorf("got %d, want the free 2", n)
		}
		if n := b.one("host:X", 1); n != 1 {
			t.Errorf("keys differ by case, got %d", n)
		}
	})
	t.Run("what a request needs is granted all or nothing", func(t *testing.T) {
		c := authority(t)(t)
		m := register(t, c, "a")
		m.one("run:1", 1)
		g := m.grant([]coord.AskKey{m.key("host:x", 5), m.key("run:1", 1)}, []coord.AskKey{m.key("host:x", 5), m.key("run:2", 1)})
		if g[0].N != nil || g[0].Full != "run:1" || !slices.Equal(g[1].N, []int{1, 1}) {
			t.Errorf("got %+v", g)
		}
		if s := occupied(t, c, "host:x"); len(s) != 1 {
			t.Errorf("recorded %v", s)
		}
	})
	t.Run("a refusal says how many wait", func(t *testing.T) {
		open := authority(t)
		a, b, c := register(t, open(t), "a"), register(t, open(t), "b"), register(t, open(t), "c")
		a.one("host:x", 1)
		for i, m := range []*member{b, c, b, c} {
			if g := m.grant([]coord.AskKey{m.key("host:x", 1)}); g[0].Full != "host:x" || g[0].Waiting != min(i+1, 2) {
				t.Errorf("ask %d: got %+v", i, g)
			}
		}
		if g := a.grant([]coord.AskKey{a.key("host:y", 1)}); g[0].Waiting != 0 {
			t.Errorf("granted: %+v", g)
		}
	})
	t.Run("a token is granted once however often it is asked for", func(t *testing.T) {
		c := authority(t)(t)
		m := register(t, c, "a")
		k := m.key("host:x", 2)
		for range 3 {
			if g := m.grant([]coord.AskKey{k}); !slices.Equal(g[0].N, []int{1}) {
				t.Fatalf("got %+v", g)
			}
		}
		if s := occupied(t, c, ""); len(s) != 1 || s[0].Token != k.Token || s[0].Member != m.id {
			t.Errorf("recorded %v", s)
		}
	})
	t.Run("the smallest declared cap holds", func(t *testing.T) {
		open := authority(t)
		a, b := register(t, open(t), "a"), register(t, open(t), "b")
		for range 3 {
			a.one("host:x", 5)
		}
		if n := b.one("host:x", 3); n != 0 {
			t.Fatalf("got %d although three are recorded", n)
		}
		if n := a.one("host:x", 5); n != 0 {
			t.Errorf("got %d although another wants it with cap 3", n)
		}
		a.giveBack(1)
		if n := b.one("host:x", 3); n != 1 {
			t.Errorf("got %d", n)
		}
		if n := a.one("host:x", 5); n != 0 {
			t.Errorf("got %d although a slot is recorded with cap 3", n)
		}
	})
	t.Run("stale and ended views, strangers and the dead get nothing", func(t *testing.T) {
		c := authority(t)(t)
		m := register(t, c, "a")
		ask := func(change func(*coord.Ask)) error {
			a := coord.Ask{Member: m.id, View: m.v, Groups: [][]coord.AskKey{{m.key("host:x", 9)}}}
			change(&a)
			_, err := c.Grant(t.Context(), a)
			return err
		}
		want(t, ask(func(a *coord.Ask) { a.View.Epoch++ }), coord.ErrStale, "a later epoch")
		want(t, ask(func(a *coord.Ask) { a.View.Epoch-- }), coord.ErrStale, "an earlier epoch")
		if err := ask(func(a *coord.Ask) { a.View.Mode = coord.ModeRedis }); !errors.Is(err, coord.ErrUnavailable) { // where that one is not there
			want(t, err, coord.ErrStale, "another mode")
		}
		want(t, ask(func(a *coord.Ask) { a.View.DB.System = "other" }), coord.ErrStale, "another database")
		want(t, ask(func(a *coord.Ask) { a.View.Until = m.r.Now }), coord.ErrNoView, "an ended view")
		want(t, ask(func(a *coord.Ask) { a.Member.Incarnation++ }), coord.ErrFenced, "a stranger")
		if err := c.Leave(t.Context(), m.id); err != nil {
			t.Fatal(err)
		}
		want(t, ask(func(*coord.Ask) {}), coord.ErrFenced, "a session that left")
		if s := occupied(t, c, ""); len(s) != 0 {
			t.Errorf("recorded %v", s)
		}
	})
	t.Run("leaving frees all", func(t *testing.T) {
		c := authority(t)(t)
		m := register(t, c, "a")
		m.grant([]coord.AskKey{m.key("host:x", 5), m.key("run:1", 1)})
		if err := c.Leave(t.Context(), m.id); err != nil {
			t.Fatal(err)
		}
		if err := c.Leave(t.Context(), m.id); err != nil {
			t.Errorf("again: %v", err)
		}
		if s := occupied(t, c, ""); len(s) != 0 {
			t.Errorf("recorded %v", s)
		}
	})
}

func testReconcile(t *testing.T, authority Authority) {
	open := authority(t)
	a, b := register(t, open(t), "a"), register(t, open(t), "b")
	for range 4 {
		a.one("host:x", 6)
	}
	b.one("host:x", 6)
	reconcile := func(upto coord.Token, tokens ...coord.Token) coord.Reconciled {
		t.Helper()
		r, err := a.c.Reconcile(t.Context(), coord.Reconcile{Member: a.id, View: a.v, Upto: upto, Tokens: tokens})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Run("unnamed tokens are freed, those above are not touched", func(t *testing.T) {
		r := reconcile(3, 1, 3)
		if r.Freed != 1 || len(r.Missing) != 0 {
			t.Errorf("got %+v", r)
		}
		var have []coord.Token
		for _, s := range occupied(t, a.c, "host:x") {
			if s.Member == a.id {
				have = append(have, s.Token)
			}
		}
		slices.Sort(have)
		if !slices.Equal(have, []coord.Token{1, 3, 4}) {
			t.Errorf("left %v", have)
		}
	})
	t.Run("what is not recorded is named", func(t *testing.T) {
		if r := reconcile(4, 1, 2, 3, 4); !slices.Equal(r.Missing, []coord.Token{2}) || r.Freed != 0 {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("a stale view changes nothing", func(t *testing.T) {
		v := a.v
		v.Epoch++
		_, err := a.c.Reconcile(t.Context(), coord.Reconcile{Member: a.id, View: v, Upto: 99})
		want(t, err, coord.ErrStale, "reconcile")
		if s := occupied(t, a.c, "host:x"); len(s) != 4 {
			t.Errorf("recorded %v", s)
		}
	})
	t.Run("another's cap is told", func(t *testing.T) {
		b.one("host:x", 2)
		if r := reconcile(4, 1, 3, 4); r.Caps["host:x"] != 2 {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("two seconds of wanting are pressure", func(t *testing.T) {
		deadline := time.Now().Add(10 * time.Second)
		for {
			b.one("host:x", 2)
			r := reconcile(4, 1, 3, 4)
			if len(r.Pressure) == 1 && r.Pressure[0] == (coord.Pressure{Key: "host:x", Share: 1, Cap: 2}) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("got %+v", r)
			}
			time.Sleep(100 * time.Millisecond) // the condition is the authority's clock
		}
	})
}

func testGates(t *testing.T, authority Authority) {
	c := authority(t)(t)
	m := register(t, c, "a")
	pause := func(d time.Duration, gen uint64, reason string) coord.Gate {
		t.Helper()
		g, err := c.Pause(t.Context(), coord.GateWrite{Key: "host:x", For: d, Gen: gen, Reason: reason})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	first := pause(time.Minute, 0, "429")
	t.Run("a gate only lengthens", func(t *testing.T) {
		if g := pause(time.Second, 0, "short"); g.At != first.At || g.Reason != "429" {
			t.Errorf("got %+v, was %+v", g, first)
		}
		if g := pause(2*time.Minute, first.Gen, "503"); g.At <= first.At || g.Reason != "503" {
			t.Errorf("got %+v, was %+v", g, first)
		}
	})
	t.Run("beats tell the gates that changed", func(t *testing.T) {
		r := m.beat()
		if len(r.Gates) != 1 || r.Gates[0].Key != "host:x" || r.Gates[0].For < time.Minute || r.Gates[0].For > 2*time.Minute {
			t.Errorf("got %+v", r.Gates)
		}
	})
	t.Run("beats write gates", func(t *testing.T) {
		m.seq++
		_, err := c.Beat(t.Context(), coord.Beat{Member: m.id, Seq: m.seq, Gates: []coord.GateWrite{{Key: "host:z", For: time.Hour, Reason: "b"}, {Key: "host:y", For: time.Hour, Reason: "a"}}})
		if err != nil {
			t.Fatal(err)
		}
		all, err := c.Gates(t.Context())
		if err != nil || len(all) != 3 || all[1].Key != "host:y" || all[2].Reason != "b" || all[2].For < 59*time.Minute {
			t.Errorf("got %+v, %v", all, err)
		}
	})
	t.Run("a cleared gate is open, and rewrites from before are void", func(t *testing.T) {
		before := pause(time.Second, 0, "")
		g, err := c.Clear(t.Context(), "host:x")
		if err != nil || g.For > 0 || g.Gen <= before.Gen {
			t.Fatalf("got %+v, %v", g, err)
		}
		if g := pause(time.Hour, before.Gen, "rewrite"); g.For > 0 {
			t.Errorf("a rewrite closed it: %+v", g)
		}
		late := coord.GateWrite{Key: "host:x", For: time.Minute, Reason: "late", Set: 1}
		if g, err := c.Pause(t.Context(), late); err != nil || g.For > 0 || g.Gen <= before.Gen {
			t.Errorf("a pause set before, and told after, closed it: %+v, %v", g, err)
		}
		late.Set = m.beat().Now + 1
		if g, err := c.Pause(t.Context(), late); err != nil || g.For < 59*time.Second {
			t.Errorf("one set after did not: %+v, %v", g, err)
		}
		if g := pause(2*time.Minute, 0, "new"); g.For < 119*time.Second {
			t.Errorf("a new pause did not: %+v", g)
		}
	})
	t.Run("a lost clear comes back with who knows it", func(t *testing.T) {
		if g := pause(time.Second, 9, "later"); g.Gen != 9 || g.For > time.Second {
			t.Errorf("got %+v", g)
		}
	})
	t.Run("more than a day counts as a day", func(t *testing.T) {
		if g := pause(1000*time.Hour, 0, "long"); g.For > coord.MaxPause || g.For < coord.MaxPause-time.Minute {
			t.Errorf("got %v", g.For)
		}
	})
}

func testRate(t *testing.T, authority Authority) {
	limit := coord.RateLimit{PerSecond: 20, Burst: 3}
	t.Run("a missing bucket is empty, and fills", func(t *testing.T) {
		c := authority(t)(t)
		m := register(t, c, "a")
		slow := coord.RateLimit{PerSecond: 2, Burst: 4}
		r, err := c.Take(t.Context(), coord.Take{Member: m.id, View: m.v, Key: "host:x", Limit: slow})
		if err != nil || r.Wait <= 0 || r.Wait > 500*time.Millisecond {
			t.Fatalf("got %+v, %v", r, err)
		}
		again, err := c.Take(t.Context(), coord.Take{Member: m.id, View: m.v, Key: "host:x", Limit: slow})
		if err != nil || again.Wait <= 0 || again.Wait > r.Wait {
			t.Errorf("got %+v, %v", again, err)
		}
	})
	t.Run("a call that came late gets nothing", func(t *testing.T) {
		c := authority(t)(t)
		m := register(t, c, "a")
		_, err := c.Take(t.Context(), coord.Take{Member: m.id, View: m.v, Key: "host:x", Limit: limit, ClockBound: m.r.Now - 5e6})
		want(t, err, coord.ErrStale, "take")
	})
	t.Run("racing takers stay within burst and rate", func(t *testing.T) {
		open := authority(t)
		var mu sync.Mutex
		var at []time.Time
		var wg sync.WaitGroup
		begin := time.Now()
		for i := range 4 {
			m := register(t, open(t), coord.NodeID([]string{"a", "b", "c", "d"}[i]))
			wg.Go(func() {
				for time.Since(begin) < 1500*time.Millisecond {
					r, err := m.c.Take(t.Context(), coord.Take{Member: m.id, View: m.v, Key: "host:x", Limit: limit})
					if err != nil {
						t.Error(err)
						return
					}
					if r.Wait > 0 {
						time.Sleep(min(r.Wait, 20*time.Millisecond)) // the authority's word
						continue
					}
					mu.Lock()
					at = append(at, time.Now())
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if allowed := limit.PerSecond*time.Since(begin).Seconds() + float64(limit.Burst); float64(len(at)) > allowed || len(at) < 8 {
			t.Errorf("got %d grants, allowed %.1f", len(at), allowed)
		}
	})
}
