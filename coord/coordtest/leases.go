package coordtest

import (
	"errors"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

func (m *member) hold(name string, token coord.Token, ttl time.Duration) (coord.Held, error) {
	return m.c.Hold(m.t.Context(), coord.Hold{Member: m.id, View: m.v, Name: name, Token: token, TTL: ttl})
}

func testLeases(t *testing.T, authority Authority) {
	open := authority(t)
	a, b := register(t, open(t), "a"), register(t, open(t), "b")
	must := func(t *testing.T, m *member, name string, token coord.Token, ttl time.Duration) coord.Held {
		t.Helper()
		h, err := m.hold(name, token, ttl)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	t.Run("one holder, a greater fence each time", func(t *testing.T) {
		first := must(t, a, "l", 1, time.Minute)
		if again := must(t, a, "l", 1, time.Minute); again.Fence != first.Fence || again.For < 50*time.Second {
			t.Errorf("renewed to %+v, was %+v", again, first)
		}
		_, err := b.hold("l", 1, time.Minute)
		want(t, err, coord.ErrHeld, "second holder")
		if h, err := b.c.Holder(t.Context(), "l"); err != nil || h.Member != a.id || h.Fence != first.Fence {
			t.Errorf("holder %+v, %v", h, err)
		}
		if err := a.c.Drop(t.Context(), coord.Hold{Member: a.id, Name: "l", Token: 1}); err != nil {
			t.Fatal(err)
		}
		_, err = a.hold("l", 1, time.Minute)
		want(t, err, coord.ErrLost, "a delayed renewal of a lease that was given back")
		second := must(t, b, "l", 1, time.Minute)
		if !first.Fence.Less(second.Fence) {
			t.Errorf("fence %v after %v", second.Fence, first.Fence)
		}
		if err := a.c.Drop(t.Context(), coord.Hold{Member: a.id, Name: "l", Token: 1}); err != nil {
			t.Fatal(err)
		}
		if h, _ := b.c.Holder(t.Context(), "l"); h.Member != b.id {
			t.Errorf("a delayed drop took it from its holder: %+v", h)
		}
	})
	t.Run("a session takes over from itself, never backwards", func(t *testing.T) {
		first := must(t, a, "m", 5, time.Minute)
		second := must(t, a, "m", 6, time.Minute)
		if !first.Fence.Less(second.Fence) {
			t.Errorf("fence %v after %v", second.Fence, first.Fence)
		}
		_, err := a.hold("m", 5, time.Minute)
		want(t, err, coord.ErrLost, "the earlier acquisition")
	})
	t.Run("it ends by itself, and what ended is not renewed", func(t *testing.T) {
		first := must(t, a, "n", 1, 300*time.Millisecond)
		deadline := time.Now().Add(5 * time.Second)
		for {
			h, err := b.hold("n", 1, time.Minute)
			if err == nil {
				if !first.Fence.Less(h.Fence) {
					t.Errorf("fence %v after %v", h.Fence, first.Fence)
				}
				break
			}
			want(t, err, coord.ErrHeld, "before the end")
			if time.Now().After(deadline) {
				t.Fatal("never ended")
			}
			time.Sleep(20 * time.Millisecond) // the condition is the authority's clock
		}
		_, err := a.hold("n", 1, time.Minute)
		want(t, err, coord.ErrHeld, "renewal after the end")
		first = must(t, a, "p", 1, 50*time.Millisecond)
		for {
			h, err := a.c.Holder(t.Context(), "p")
			if err != nil {
				t.Fatal(err)
			}
			if h == (coord.Held{}) {
				break
			}
			time.Sleep(20 * time.Millisecond) // the condition is the authority's clock
		}
		_, err = a.hold("p", 1, time.Minute)
		want(t, err, coord.ErrLost, "renewal of what ended")
	})
	t.Run("an ended view gets nothing", func(t *testing.T) {
		_, err := a.c.Hold(t.Context(), coord.Hold{Member: a.id, View: coord.View{Until: a.r.Now}, Name: "v", Token: 1, TTL: time.Minute})
		want(t, err, coord.ErrNoView, "hold")
	})
	t.Run("the lease of a dead session is free", func(t *testing.T) {
		first := must(t, b, "o", 1, time.Hour)
		if _, err := a.c.Bury(t.Context(), coord.Burial{Member: b.id, Proof: true}); err != nil {
			t.Fatal(err)
		}
		_, err := b.hold("o", 1, time.Hour)
		want(t, err, coord.ErrFenced, "renewal by the dead")
		if h := must(t, a, "o", 1, time.Hour); !first.Fence.Less(h.Fence) {
			t.Errorf("fence %v after %v", h.Fence, first.Fence)
		}
	})
}

func testSwitch(t *testing.T, authority Authority) {
	t.Run("a drain ends when all have acked, with what they carry", func(t *testing.T) {
		open := authority(t)
		a, b := register(t, open(t), "a"), register(t, open(t), "b")
		a.one("host:x", 3)
		b.one("host:x", 3)
		b.one("host:x", 3)
		if _, err := a.c.Drain(t.Context(), coord.Drain{From: 7, Target: coord.ModeDB}); err == nil {
			t.Fatal("drained from an epoch that is not today's")
		}
		d, err := a.c.Drain(t.Context(), coord.Drain{By: a.id, From: a.v.Epoch, Target: coord.ModeDB, Reason: "test"})
		if err != nil || d.Epoch != 2 || d.Mode != coord.ModeDrain || d.Target != coord.ModeDB {
			t.Fatalf("got %+v, %v", d, err)
		}
		_, err = b.c.Grant(t.Context(), coord.Ask{Member: b.id, View: b.v, Groups: [][]coord.AskKey{{b.key("host:y", 1)}}})
		want(t, err, coord.ErrStale, "grant during the drain")
		a.beat()
		_, err = a.c.Grant(t.Context(), coord.Ask{Member: a.id, View: a.v, Groups: [][]coord.AskKey{{a.key("host:y", 1)}}})
		want(t, err, coord.ErrStale, "grant under the drain's epoch")
		openDB := coord.Open{Epoch: 2, Mode: coord.ModeDB}
		_, err = a.c.Open(t.Context(), openDB)
		want(t, err, coord.ErrWaiting, "nobody has acked")
		if r := a.ack(coord.Slot{Key: "host:x", N: 1, Token: 1, Cap: 3}); r.Acked != 2 {
			t.Fatalf("got %+v", r)
		}
		_, err = a.c.Carried(t.Context(), 2)
		want(t, err, coord.ErrWaiting, "one has not acked")
		b.beat()
		b.ack(coord.Slot{Key: "host:x", N: 2, Token: 1, Cap: 3}) // token 2 was given back
		carried, err := a.c.Carried(t.Context(), 2)
		if err != nil || len(carried) != 2 || carried[0].Epoch != 2 || carried[1].Member != b.id {
			t.Fatalf("got %+v, %v", carried, err)
		}
		o, err := b.c.Open(t.Context(), openDB)
		if err != nil || o.Mode != coord.ModeDB || o.Epoch != 2 {
			t.Fatalf("got %+v, %v", o, err)
		}
		_, err = a.c.Open(t.Context(), openDB)
		want(t, err, coord.ErrStale, "opened twice")
		a.beat()
		if n := a.one("host:x", 3); n != 3 {
			t.Errorf("got %d, want the one that was given back", n)
		}
	})
	t.Run("an ack counts once", func(t *testing.T) {
		c := authority(t)(t)
		a := register(t, c, "a")
		a.one("host:x", 3)
		if _, err := c.Drain(t.Context(), coord.Drain{From: 1, Target: coord.ModeDB}); err != nil {
			t.Fatal(err)
		}
		a.beat()
		a.ack()
		a.ack(coord.Slot{Key: "host:x", N: 1, Token: 1, Cap: 3}) // a delayed one
		if s := occupied(t, c, ""); len(s) != 0 {
			t.Errorf("recorded %v", s)
		}
	})
	t.Run("an ack of another epoch is none", func(t *testing.T) {
		c := authority(t)(t)
		a := register(t, c, "a")
		a.one("host:x", 3)
		if _, err := c.Drain(t.Context(), coord.Drain{From: 1, Target: coord.ModeDB}); err != nil {
			t.Fatal(err)
		}
		if r := a.ack(); r.Acked != 1 { // of epoch 1, as it was read
			t.Errorf("got %+v", r)
		}
		if s := occupied(t, c, ""); len(s) != 1 {
			t.Errorf("recorded %v", s)
		}
	})
	t.Run("no carried token is left out where numbers collide", func(t *testing.T) {
		open := authority(t)
		a, b := register(t, open(t), "a"), register(t, open(t), "b")
		if _, err := a.c.Drain(t.Context(), coord.Drain{From: 1, Target: coord.ModeDB}); err != nil {
			t.Fatal(err)
		}
		a.beat()
		b.beat()
		a.ack(coord.Slot{Key: "host:x", N: 1, Token: 1, Cap: 1})
		b.ack(coord.Slot{Key: "host:x", N: 1, Token: 1, Cap: 1}, coord.Slot{Key: "host:x", N: 2, Token: 2, Cap: 1})
		if s := occupied(t, a.c, "host:x"); len(s) != 3 {
			t.Errorf("recorded %v", s)
		}
	})
	t.Run("the dead and the left are not waited for, the new have acked", func(t *testing.T) {
		open := authority(t)
		a, b, c := register(t, open(t), "a"), register(t, open(t), "b"), register(t, open(t), "c")
		if _, err := a.c.Drain(t.Context(), coord.Drain{From: 1, Target: coord.ModeDB}); err != nil {
			t.Fatal(err)
		}
		d := register(t, open(t), "d")
		if d.r.Acked != 2 || d.v.Mode != coord.ModeDrain {
			t.Errorf("a new session reads %+v", d.r)
		}
		a.beat()
		a.ack()
		if _, err := a.c.Bury(t.Context(), coord.Burial{Member: b.id, Seq: b.seq}); err != nil {
			t.Fatal(err)
		}
		_, err := a.c.Open(t.Context(), coord.Open{Epoch: 2, Mode: coord.ModeDB})
		want(t, err, coord.ErrWaiting, "one is live")
		if err := a.c.Leave(t.Context(), c.id); err != nil {
			t.Fatal(err)
		}
		if _, err := a.c.Open(t.Context(), coord.Open{Epoch: 2, Mode: coord.ModeDB}); err != nil {
			t.Error(err)
		}
	})
	t.Run("opening Redis takes the slots out of the database", func(t *testing.T) {
		c := authority(t)(t)
		a := register(t, c, "a")
		a.one("host:x", 3)
		if _, err := c.Drain(t.Context(), coord.Drain{From: 1, Target: coord.ModeRedis}); err != nil {
			t.Fatal(err)
		}
		a.beat()
		a.ack(coord.Slot{Key: "host:x", N: 1, Token: 1, Cap: 3})
		id := coord.RedisIdent{RunID: "r", ReplID: "p", Stamp: 1 << 52}
		if _, err := c.Open(t.Context(), coord.Open{Epoch: 2, Mode: coord.ModeRedis, Redis: id}); err != nil {
			t.Fatal(err)
		}
		if r := a.beat(); r.Authority.Redis != id || r.Authority.Mode != coord.ModeRedis {
			t.Errorf("got %+v", r.Authority)
		}
		if s, err := c.Occupied(t.Context(), ""); len(s) != 0 || err != nil && !errors.Is(err, coord.ErrUnavailable) { // where that Redis is not there
			t.Errorf("recorded %v, %v", s, err)
		}
	})
	t.Run("lost commits hold the barrier and new leases", func(t *testing.T) {
		c := authority(t)(t)
		a := register(t, c, "a")
		d, err := c.Drain(t.Context(), coord.Drain{From: 1, Seen: 41, Target: coord.ModeDB, Lost: true, Hold: time.Hour, Pin: coord.ModeDB})
		if err != nil || d.Epoch < 42+core.LostEpochs || d.Epoch > 42+core.LostEpochs+60_000 || d.HoldUntil <= a.r.Now || d.Pin != coord.ModeDB {
			t.Fatalf("got %+v, %v", d, err)
		}
		a.beat()
		a.ack()
		_, err = c.Open(t.Context(), coord.Open{Epoch: d.Epoch, Mode: coord.ModeDB})
		want(t, err, coord.ErrWaiting, "open")
		_, err = a.hold("l", 1, time.Minute)
		want(t, err, coord.ErrWaiting, "a new lease")
	})
	t.Run("of racing drains one wins", func(t *testing.T) {
		open := authority(t)
		register(t, open(t), "a")
		won := make(chan bool, 6)
		for range 6 {
			c := open(t)
			go func() {
				_, err := c.Drain(t.Context(), coord.Drain{From: 1, Target: coord.ModeDB})
				won <- err == nil
			}()
		}
		n := 0
		for range 6 {
			if <-won {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d won", n)
		}
	})
}
