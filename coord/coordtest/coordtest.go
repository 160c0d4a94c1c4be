// Package coordtest is the contract of coordination made executable: what every backend passes.
//
//	func TestSQLite(t *testing.T) {
//		coordtest.Safety(t, authority)
//		coordtest.Liveness(t, authority)
//	}
//
// Safety holds under any fault, and is also run under [Faulty], which fails calls before and after their effect, hangs them and
// answers late. Liveness holds where the backend answers.
package coordtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/session"
)

// Open opens another handle on one authority: what another node would have.
type Open func(t testing.TB) coord.Coord

// Authority makes a new, empty authority.
type Authority func(t testing.TB) Open

// Timing is what tests with real time use: deaths in six seconds.
func Timing() coord.Timing {
	return coord.Timing{
		Beat: 100 * time.Millisecond, View: time.Second, Request: 1200 * time.Millisecond, Pause: 200 * time.Millisecond,
		Death: 5 * time.Second, LeaseTTL: time.Second, RateVoid: 500 * time.Millisecond, AbortGrace: 100 * time.Millisecond,
		KeepIdle: 200 * time.Millisecond,
	}
}

// Safety runs what must hold whatever fails.
func Safety(t *testing.T, authority Authority) {
	t.Run("roster", func(t *testing.T) { testRoster(t, authority) })
	t.Run("slots", func(t *testing.T) { testSlots(t, authority) })
	t.Run("reconcile", func(t *testing.T) { testReconcile(t, authority) })
	t.Run("gates", func(t *testing.T) { testGates(t, authority) })
	t.Run("rate", func(t *testing.T) { testRate(t, authority) })
	t.Run("leases", func(t *testing.T) { testLeases(t, authority) })
	t.Run("switch", func(t *testing.T) { testSwitch(t, authority) })
	t.Run("races", func(t *testing.T) { testRaces(t, authority) })
	t.Run("as the model", func(t *testing.T) {
		t.Parallel() // the longest of them, and nothing in it is short of time
		testModel(t, authority)
	})
	t.Run("histories", func(t *testing.T) { testHistories(t, authority) })
	t.Run("storm", func(t *testing.T) { testStorm(t, authority, nil) })
	t.Run("storm with faults", func(t *testing.T) {
		for seed := uint64(1); seed <= 3; seed++ {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				testStorm(t, authority, func(c coord.Coord, node int) coord.Coord { return Faulty(c, seed*100+uint64(node), DefaultFaults()) })
			})
		}
	})
}

// member is a registered session with the view of its last beat, driven by hand.
type member struct {
	t   testing.TB
	c   coord.Coord
	id  coord.Member
	seq uint64
	v   coord.View
	tok coord.Token
	r   coord.BeatReply
}

func register(t testing.TB, c coord.Coord, node coord.NodeID) *member {
	t.Helper()
	r, err := c.Register(t.Context(), coord.Registration{Node: node, Role: coord.RoleNode, Machine: "m", LockFile: "f:" + string(node)})
	if err != nil {
		t.Fatalf("register %s: %v", node, err)
	}
	m := &member{t: t, c: c, id: r.Member}
	m.beat()
	return m
}

func (m *member) beat() coord.BeatReply {
	m.t.Helper()
	r, err := m.tryBeat(nil)
	if err != nil {
		m.t.Fatalf("beat of %s: %v", m.id, err)
	}
	return r
}

func (m *member) tryBeat(ack *coord.Ack) (coord.BeatReply, error) {
	m.seq++
	r, err := m.c.Beat(m.t.Context(), coord.Beat{Member: m.id, Seq: m.seq, Ack: ack})
	if err == nil {
		m.r = r
		m.v = coord.View{Epoch: r.Authority.Epoch, Mode: r.Authority.Mode, DB: r.Authority.DB, Redis: r.Authority.Redis, Until: r.Now + coord.Micros(time.Hour/time.Microsecond)}
		m.v.RedisUntil = m.v.Until
	}
	return r, err
}

// ack acks the epoch read last, with these slots.
func (m *member) ack(slots ...coord.Slot) coord.BeatReply {
	m.t.Helper()
	r, err := m.tryBeat(&coord.Ack{Epoch: m.v.Epoch, Slots: slots})
	if err != nil {
		m.t.Fatalf("ack of %s: %v", m.id, err)
	}
	return r
}

func (m *member) key(k coord.Key, limit int) coord.AskKey {
	m.tok++
	return coord.AskKey{Key: k, Cap: limit, Token: m.tok}
}

func (m *member) grant(groups ...[]coord.AskKey) []coord.GroupGrant {
	m.t.Helper()
	r, err := m.c.Grant(m.t.Context(), coord.Ask{Member: m.id, View: m.v, Groups: groups})
	if err != nil {
		m.t.Fatalf("grant to %s: %v", m.id, err)
	}
	return r.Groups
}

// one asks for one slot, and returns its number, 0 if there was none.
func (m *member) one(k coord.Key, limit int) int {
	m.t.Helper()
	g := m.grant([]coord.AskKey{m.key(k, limit)})
	if len(g[0].N) == 0 {
		return 0
	}
	return g[0].N[0]
}

func (m *member) giveBack(tokens ...coord.Token) {
	m.t.Helper()
	if err := m.c.Return(m.t.Context(), coord.Return{Member: m.id, View: m.v, Tokens: tokens}); err != nil {
		m.t.Fatalf("return by %s: %v", m.id, err)
	}
}

func occupied(t testing.TB, c coord.Coord, k coord.Key) []coord.Slot {
	t.Helper()
	s, err := c.Occupied(t.Context(), k)
	if err != nil {
		t.Fatalf("list slots: %v", err)
	}
	return s
}

func want(t testing.TB, err, sentinel error, what string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("%s: got %v, want %v", what, err, sentinel)
	}
}

func join(t testing.TB, c coord.Coord, node coord.NodeID) coord.Session {
	t.Helper()
	return joinWith(t, c, node, Timing())
}

func joinWith(t testing.TB, c coord.Coord, node coord.NodeID, timing coord.Timing) coord.Session {
	t.Helper()
	s, err := session.Join(t.Context(), c, coord.Options{Node: node, Role: coord.RoleNode, Timing: timing})
	if err != nil {
		t.Fatalf("join as %s: %v", node, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.Leave(ctx); err != nil && !errors.Is(err, coord.ErrFenced) {
			t.Errorf("leave as %s: %v", node, err)
		}
	})
	return s
}

// eventually acquires n permits, waiting as the contract says.
func eventually(t testing.TB, s coord.Session, need coord.Need, within time.Duration) []coord.Permit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var all []coord.Permit
	total := need.N
	for len(all) < total {
		changed := s.Changed()
		need.N = total - len(all)
		got, err := s.Acquire(ctx, need)
		all = append(all, got...)
		if err != nil || len(all) == total {
			if err != nil {
				t.Fatalf("acquire: %v, have %d of %d (%v)", err, len(all), total, s.MayWork())
			}
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("acquire: have %d of %d after %v (%v)", len(all), total, within, s.MayWork())
		}
	}
	return all
}
