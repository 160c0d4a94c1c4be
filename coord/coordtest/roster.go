package coordtest

import (
	"testing"

	"deepcrawl/coord"
)

func testRoster(t *testing.T, authority Authority) {
	t.Run("the first session finds epoch 1 in the database", func(t *testing.T) {
		c := authority(t)(t)
		m := register(t, c, "a")
		if a := m.r.Authority; a.Epoch != 1 || a.Mode != coord.ModeDB || a.DB != m.r.DB {
			t.Errorf("got %+v, answered by %+v", a, m.r.DB)
		}
	})
	t.Run("incarnations of a node rise", func(t *testing.T) {
		c := authority(t)(t)
		last := coord.Incarnation(0)
		for range 4 {
			m := register(t, c, "a")
			if m.id.Incarnation <= last {
				t.Fatalf("incarnation %d after %d", m.id.Incarnation, last)
			}
			last = m.id.Incarnation
			if err := c.Leave(t.Context(), m.id); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("a node lives once, other roles beside it", func(t *testing.T) {
		open := authority(t)
		c := open(t)
		m := register(t, c, "a")
		_, err := open(t).Register(t.Context(), coord.Registration{Node: "a", Role: coord.RoleNode})
		want(t, err, coord.ErrNodeBusy, "second node")
		if _, err := c.Register(t.Context(), coord.Registration{Node: "a", Role: coord.RoleCrawl}); err != nil {
			t.Errorf("crawl beside the node: %v", err)
		}
		if err := c.Leave(t.Context(), m.id); err != nil {
			t.Fatal(err)
		}
		register(t, c, "a")
	})
	t.Run("a beat with a number that was used is fenced", func(t *testing.T) {
		c := authority(t)(t)
		m := register(t, c, "a")
		m.beat()
		m.seq--
		_, err := m.tryBeat(nil)
		want(t, err, coord.ErrFenced, "same number")
		m.seq += 5
		m.beat()
	})
	t.Run("a beat says what the last one was", func(t *testing.T) {
		c := authority(t)(t)
		m := register(t, c, "a")
		for range 3 {
			last := m.seq
			if r := m.beat(); r.Prev != last {
				t.Errorf("got previous beat %d, want %d", r.Prev, last)
			}
		}
	})
	t.Run("sessions see each other, and the ended for a while", func(t *testing.T) {
		open := authority(t)
		a, b := register(t, open(t), "a"), register(t, open(t), "b")
		r := a.beat()
		if len(r.Sessions) != 2 || r.Sessions[1].Member != b.id || r.Sessions[1].Seq != b.seq || r.Sessions[1].State != coord.Live {
			t.Fatalf("got %+v", r.Sessions)
		}
		if err := b.c.Leave(t.Context(), b.id); err != nil {
			t.Fatal(err)
		}
		if r = a.beat(); len(r.Sessions) != 2 || r.Sessions[1].State != coord.Left {
			t.Fatalf("got %+v", r.Sessions)
		}
		_, err := b.tryBeat(nil)
		want(t, err, coord.ErrFenced, "beat after leaving")
	})
	t.Run("a burial needs the beat that was observed, or proof", func(t *testing.T) {
		open := authority(t)
		a, b := register(t, open(t), "a"), register(t, open(t), "b")
		b.one("host:x", 3)
		observed := b.seq
		b.beat()
		bury := func(x coord.Burial) bool {
			t.Helper()
			x.By, x.Member = a.id, b.id
			dead, err := a.c.Bury(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			return dead
		}
		if bury(coord.Burial{Seq: observed}) {
			t.Fatal("buried although it has beaten since")
		}
		b.beat()
		if !bury(coord.Burial{Seq: b.seq}) || !bury(coord.Burial{Seq: 0}) {
			t.Fatal("not dead")
		}
		if left := occupied(t, a.c, "host:x"); len(left) != 0 {
			t.Errorf("a dead session has %v", left)
		}
		_, err := b.tryBeat(nil)
		want(t, err, coord.ErrFenced, "beat after death")
		c := register(t, open(t), "c")
		if dead, err := a.c.Bury(t.Context(), coord.Burial{Member: c.id, Proof: true}); err != nil || !dead {
			t.Errorf("with proof: dead %v, %v", dead, err)
		}
		if dead, err := a.c.Bury(t.Context(), coord.Burial{Member: coord.Member{Node: "none", Incarnation: 9}, Proof: true}); err != nil || dead {
			t.Errorf("of nobody: dead %v, %v", dead, err)
		}
	})
	t.Run("listings have facts and slots", func(t *testing.T) {
		c := authority(t)(t)
		m := register(t, c, "a")
		m.seq++
		if _, err := c.Beat(t.Context(), coord.Beat{Member: m.id, Seq: m.seq, Facts: map[string]string{"version": "1", "ü": "\"\x00"}}); err != nil {
			t.Fatal(err)
		}
		m.one("host:x", 2)
		all, err := c.Sessions(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("got %v, %v", all, err)
		}
		if i := all[0]; i.Facts["version"] != "1" || i.Facts["ü"] != "\"\x00" || i.Slots != 1 || i.Role != coord.RoleNode || i.LockFile != "f:a" || i.Age < 0 {
			t.Errorf("got %+v", i)
		}
	})
}
