package memcoord_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/memcoord"
)

func join(t *testing.T, c *memcoord.Coord, node coord.NodeID) coord.Session {
	t.Helper()
	s, err := c.Join(t.Context(), coord.Options{Node: node, Role: coord.RoleNode})
	if err != nil {
		t.Fatalf("join %s: %v", node, err)
	}
	return s
}

func TestPermits(t *testing.T) {
	t.Run("two sessions share the cap of a host and of a run", func(t *testing.T) {
		c := memcoord.New(nil)
		a, b := join(t, c, "a"), join(t, c, "b")
		need := coord.Need{Keys: []coord.CappedKey{{Key: coord.HostKey("x"), Cap: 4}, {Key: coord.RunKey(1), Cap: 3}}, N: 10}
		got, err := a.Acquire(t.Context(), need)
		if err != nil || len(got) != 3 {
			t.Fatalf("got %d permits (%v), want 3", len(got), err)
		}
		if more, _ := b.Acquire(t.Context(), need); len(more) != 0 {
			t.Fatalf("got %d permits above the cap", len(more))
		}
		got[0].Release()
		got[0].Release()
		if more, _ := b.Acquire(t.Context(), need); len(more) != 1 {
			t.Fatalf("got %d permits after one release, want 1", len(more))
		}
	})
	t.Run("a pause stops starts at once and ends by itself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := memcoord.New(nil)
			a := join(t, c, "a")
			got, _ := a.Acquire(t.Context(), coord.Need{Keys: []coord.CappedKey{{Key: coord.HostKey("x"), Cap: 4}}, N: 1})
			if err := a.Pause(t.Context(), coord.HostKey("x"), time.Minute, "429"); err != nil {
				t.Fatal(err)
			}
			if err := got[0].MayStart(); !errors.Is(err, coord.ErrGated) {
				t.Fatalf("got %v, want ErrGated", err)
			}
			ch := a.Changed()
			<-ch
			if err := got[0].MayStart(); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("leaving gives everything back", func(t *testing.T) {
		c := memcoord.New(nil)
		a := join(t, c, "a")
		l, err := a.Lease(t.Context(), "leader", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Leave(context.Background()); err != nil {
			t.Fatal(err)
		}
		if l.Held() {
			t.Fatal("a lease outlived its session")
		}
		b := join(t, c, "a")
		next, err := b.Lease(t.Context(), "leader", time.Minute)
		if err != nil || !l.Fence().Less(next.Fence()) {
			t.Fatalf("got fence %v after %v (%v)", next, l.Fence(), err)
		}
	})
}
