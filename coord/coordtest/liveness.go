package coordtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/session"
)

// Liveness runs what must happen in time where the backend answers.
func Liveness(t *testing.T, authority Authority) {
	host := coord.CappedKey{Key: "host:x", Cap: 3}
	t.Run("kept slots cost no calls", func(t *testing.T) {
		t.Parallel() // they mostly wait
		s := join(t, authority(t)(t), "a")
		first := eventually(t, s, coord.Need{Keys: []coord.CappedKey{host, {Key: "run:1", Cap: 2}}, N: 2}, 5*time.Second)
		for _, p := range first {
			p.Release()
		}
		before, begin := s.Status().RoundTrips, time.Now()
		for range 300 {
			got, err := s.Acquire(t.Context(), coord.Need{Keys: []coord.CappedKey{host, {Key: "run:1", Cap: 2}}, N: 1})
			if err != nil || len(got) != 1 {
				t.Fatalf("got %d permits, %v", len(got), err)
			}
			if err := got[0].MayStart(); err != nil {
				t.Fatal(err)
			}
			got[0].Release()
		}
		beats := uint64(time.Since(begin)/Timing().Beat) + 2
		if calls := s.Status().RoundTrips - before; calls > 3*beats {
			t.Errorf("%d calls in %v", calls, time.Since(begin))
		}
	})
	t.Run("idle slots go back, and a waiting session is woken", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		a, b := join(t, open(t), "a"), join(t, open(t), "b")
		for _, p := range eventually(t, a, coord.Need{Keys: []coord.CappedKey{host}, N: 3}, 5*time.Second) {
			p.Release()
		}
		for _, p := range eventually(t, b, coord.Need{Keys: []coord.CappedKey{host}, N: 3}, 10*time.Second) {
			p.Release()
		}
	})
	t.Run("slots of a key without work go to who waits, and stay where nobody could", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		slow := Timing()
		slow.KeepIdle = time.Minute
		a := joinWith(t, open(t), "a", slow)
		for _, p := range eventually(t, a, coord.Need{Keys: []coord.CappedKey{host}, N: 3}, 5*time.Second) {
			p.Release()
		}
		a.Yield(host.Key)
		a.Yield("host:never-asked")
		for range 3 {
			time.Sleep(2 * coord.KeepYielded) // that nothing is given back shows only with time
			if n := a.Status().Slots; n != 3 {
				t.Fatalf("alone it has %d slots, want 3", n)
			}
		}
		b := joinWith(t, open(t), "b", slow)
		for changed := a.Changed(); a.Status().Slots > 0; changed = a.Changed() {
			select {
			case <-changed:
			case <-time.After(10 * time.Second):
				t.Fatal("beside another it keeps what it yielded")
			}
		}
		taken := eventually(t, b, coord.Need{Keys: []coord.CappedKey{host}, N: 3}, 10*time.Second)
		b.Yield(host.Key) // while they are in use: each goes back after its request
		begin := time.Now()
		for _, p := range taken {
			p.Release()
		}
		for _, p := range eventually(t, a, coord.Need{Keys: []coord.CappedKey{host}, N: 2}, 20*time.Second) {
			p.Release()
		}
		t.Logf("moved after %v", time.Since(begin).Round(time.Millisecond))
		for end := time.Now().Add(4 * coord.KeepYielded); time.Now().Before(end); time.Sleep(coord.KeepYielded / 4) {
			if n := a.Status().Slots; n < 2 {
				t.Fatalf("wished for again, and given back after all: %d slots", n)
			}
		}
	})
	t.Run("who has more than its share gives it to who waits", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		a, b := join(t, open(t), "a"), join(t, open(t), "b")
		busy := eventually(t, a, coord.Need{Keys: []coord.CappedKey{host}, N: 3}, 5*time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { // a host at full speed: every slot is used again at once
			defer close(done)
			for ctx.Err() == nil {
				for _, p := range busy {
					p.Release()
				}
				var err error
				if busy, err = a.Acquire(ctx, coord.Need{Keys: []coord.CappedKey{host}, N: 3}); err != nil {
					return
				}
				time.Sleep(2 * time.Millisecond) // the exchange
			}
		}()
		got := eventually(t, b, coord.Need{Keys: []coord.CappedKey{host}, N: 1}, 10*time.Second)
		cancel()
		<-done
		got[0].Release()
		for _, p := range busy {
			p.Release()
		}
	})
	t.Run("leaving gives back at once", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		a, b := join(t, open(t), "a"), join(t, open(t), "b")
		l, err := a.Lease(t.Context(), "leader", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Lease(t.Context(), "leader", time.Minute)
		want(t, err, coord.ErrHeld, "second leader")
		eventually(t, a, coord.Need{Keys: []coord.CappedKey{host}, N: 3}, 5*time.Second)
		if err := a.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l.Held() || !errors.Is(a.Err(), coord.ErrLeft) {
			t.Errorf("held %v, %v", l.Held(), a.Err())
		}
		next, err := b.Lease(t.Context(), "leader", time.Minute)
		if err != nil || !l.Fence().Less(next.Fence()) {
			t.Fatalf("got %v, %v", next, err)
		}
		// A switch of the cluster's own may be under way; a death would take longer.
		eventually(t, b, coord.Need{Keys: []coord.CappedKey{host}, N: 3}, Timing().Death/2)
	})
	t.Run("a lease is kept, and lost with its session", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		a, c := join(t, open(t), "a"), open(t)
		l, err := a.Lease(t.Context(), "leader", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if h, err := c.Holder(t.Context(), "leader"); err != nil || h.Fence != l.Fence() || !l.Held() {
				t.Fatalf("holder %+v, %v, held %v", h, err, l.Held())
			}
		}
		if _, err := c.Bury(t.Context(), coord.Burial{Member: a.ID(), Proof: true}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-a.Done():
		case <-time.After(5 * time.Second):
			t.Fatal("a buried session goes on")
		}
		<-l.Lost()
		want(t, a.Err(), coord.ErrFenced, "the session")
		want(t, a.MayWork(), coord.ErrFenced, "work")
	})
	t.Run("a silent session is found dead, and its slots return", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		c := open(t)
		silent := register(t, c, "silent")
		for range 3 {
			silent.one("host:x", 3)
		}
		begin := time.Now()
		s := join(t, open(t), "a")
		eventually(t, s, coord.Need{Keys: []coord.CappedKey{host}, N: 1}, 20*time.Second)[0].Release()
		if passed := time.Since(begin); passed < Timing().Death*9/10 {
			t.Errorf("dead after %v, T is %v", passed, Timing().Death)
		}
	})
	t.Run("who obtains its lock takes over at once", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		silent := register(t, open(t), "a")
		silent.one("host:x", 1)
		begin := time.Now()
		s, err := session.Join(t.Context(), open(t), coord.Options{Node: "a", Role: coord.RoleNode, Machine: "m", LockFile: "f:a", Timing: Timing()})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, s, coord.Need{Keys: []coord.CappedKey{{Key: "host:x", Cap: 1}}, N: 1}, 5*time.Second)[0].Release()
		if passed := time.Since(begin); passed > 4*time.Second {
			t.Errorf("took %v", passed)
		}
		if err := s.Leave(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("a pause is in force here at once, elsewhere after a beat, and ends", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		a, b := join(t, open(t), "a"), join(t, open(t), "b")
		pa := eventually(t, a, coord.Need{Keys: []coord.CappedKey{host}, N: 1}, 5*time.Second)[0]
		pb := eventually(t, b, coord.Need{Keys: []coord.CappedKey{host}, N: 1}, 5*time.Second)[0]
		begin := time.Now()
		if err := a.Pause(t.Context(), host.Key, 2*time.Second, "429"); err != nil {
			t.Fatal(err)
		}
		want(t, pa.MayStart(), coord.ErrGated, "where it was set")
		for !errors.Is(pb.MayStart(), coord.ErrGated) {
			if time.Since(begin) > Timing().Beat+time.Second {
				t.Fatal("not known after a beat and a second")
			}
			time.Sleep(5 * time.Millisecond) // the condition is the other session's beat
		}
		var g *coord.GateError
		if err := pb.MayStart(); !errors.As(err, &g) || g.Reason != "429" || g.Key != host.Key || time.Until(g.Until) > 2*time.Second {
			t.Errorf("got %v", err)
		}
		if got, err := b.Acquire(t.Context(), coord.Need{Keys: []coord.CappedKey{host}, N: 1}); err != nil || len(got) != 0 {
			t.Errorf("acquired %d through a closed gate, %v", len(got), err)
		}
		for {
			changed := b.Changed()
			if pb.MayStart() == nil {
				break
			}
			select {
			case <-changed:
			case <-time.After(5 * time.Second):
				t.Fatal("never ended")
			}
		}
		if passed := time.Since(begin); passed < 1900*time.Millisecond {
			t.Errorf("ended after %v", passed)
		}
		pa.Release()
		pb.Abort()
	})
	t.Run("an operator clears a pause everywhere", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		a, b := join(t, open(t), "a"), join(t, open(t), "b")
		if err := a.Pause(t.Context(), host.Key, time.Hour, "429"); err != nil {
			t.Fatal(err)
		}
		if err := b.Clear(t.Context(), host.Key); err != nil {
			t.Fatal(err)
		}
		eventually(t, a, coord.Need{Keys: []coord.CappedKey{host}, N: 1}, 5*time.Second)[0].Release()
	})
	t.Run("active hosts go on through a switch, new ones soon after", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		a, b := join(t, open(t), "a"), join(t, open(t), "b")
		kept := eventually(t, a, coord.Need{Keys: []coord.CappedKey{host}, N: 1}, 5*time.Second)[0]
		operator := open(t)
		var from coord.Epoch
		for {
			now, _, err := operator.Authority(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			from = now.Epoch
			_, err = operator.Drain(t.Context(), coord.Drain{From: from, Target: coord.ModeDB, Reason: "operator", Pin: coord.ModeDB})
			if err == nil {
				break
			}
			if !errors.Is(err, coord.ErrStale) { // a switch of the cluster's own was first
				t.Fatal(err)
			}
		}
		begin := time.Now()
		for a.Status().Authority.Epoch <= from || a.Status().Authority.Mode != coord.ModeDB {
			if err := kept.MayStart(); err != nil {
				t.Fatalf("an active host stops: %v", err)
			}
			if time.Since(begin) > 12*time.Second {
				t.Fatal("still draining")
			}
			time.Sleep(time.Millisecond) // poll the guard through the switch
		}
		if err := kept.MayStart(); err != nil {
			t.Fatal(err)
		}
		kept.Release()
		eventually(t, b, coord.Need{Keys: []coord.CappedKey{{Key: "host:new", Cap: 1}}, N: 1}, 5*time.Second)[0].Release()
		t.Logf("switched in %v", time.Since(begin).Round(time.Millisecond))
	})
	t.Run("a lower cap drains what was granted under the higher", func(t *testing.T) {
		t.Parallel() // they mostly wait
		open := authority(t)
		a, c := join(t, open(t), "a"), open(t)
		for _, p := range eventually(t, a, coord.Need{Keys: []coord.CappedKey{host}, N: 3}, 5*time.Second) {
			p.Release()
		}
		low := coord.CappedKey{Key: host.Key, Cap: 1}
		got := eventually(t, a, coord.Need{Keys: []coord.CappedKey{low}, N: 1}, 5*time.Second)
		if more, err := a.Acquire(t.Context(), coord.Need{Keys: []coord.CappedKey{low}, N: 1}); err != nil || len(more) != 0 {
			t.Errorf("got %d more permits, %v", len(more), err)
		}
		if s := occupied(t, c, host.Key); len(s) != 1 {
			t.Errorf("recorded %v", s)
		}
		got[0].Release()
	})
	t.Run("bad arguments are refused with what is allowed", func(t *testing.T) {
		t.Parallel() // they mostly wait
		s := join(t, authority(t)(t), "a")
		_, err := s.Acquire(t.Context(), coord.Need{Keys: []coord.CappedKey{{Key: "host:x", Cap: 0}}, N: 1})
		want(t, err, coord.ErrArgument, "cap 0")
		_, err = s.Acquire(t.Context(), coord.Need{Keys: []coord.CappedKey{{Key: "x", Cap: 1}}, N: 1})
		want(t, err, coord.ErrKey, "a key without kind")
		_, err = s.Acquire(t.Context(), coord.Need{N: 1})
		want(t, err, coord.ErrArgument, "no keys")
		_, err = s.Acquire(t.Context(), coord.Need{Keys: []coord.CappedKey{host, host}, N: 1})
		want(t, err, coord.ErrArgument, "a key twice")
		want(t, s.Pause(t.Context(), "host:x", -time.Second, ""), coord.ErrArgument, "a negative pause")
		_, err = s.Take(t.Context(), "host:x", coord.RateLimit{PerSecond: 0, Burst: 1})
		want(t, err, coord.ErrArgument, "rate 0")
		_, err = s.Lease(t.Context(), "l", time.Millisecond)
		want(t, err, coord.ErrArgument, "a short lease")
		bad := Timing()
		bad.Death = time.Second
		_, err = session.Join(t.Context(), authority(t)(t), coord.Options{Node: "a", Timing: bad})
		want(t, err, coord.ErrTiming, "a death below the bound")
		_, err = session.Join(t.Context(), authority(t)(t), coord.Options{Node: "a b"})
		want(t, err, coord.ErrNodeID, "a node id with a space")
	})
}
