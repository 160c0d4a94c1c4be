package coordtest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// testModel runs random calls on the backend and on the core's database, and compares every answer: the SQL and the scripts
// decide what the model decides.
func testModel(t *testing.T, authority Authority) {
	rapid.Check(t, func(rt *rapid.T) {
		scope := &scope{TB: t}
		defer scope.end()
		m := &modelMachine{t: t, real: authority(scope)(scope), model: core.NewDB(0, coord.Ident{System: "model"})}
		rt.Repeat(rapid.StateMachineActions(m))
	})
}

// scope ends what a check opened with the check, not with the test of a hundred.
type scope struct {
	testing.TB
	ends []func()
}

func (s *scope) Cleanup(end func()) { s.ends = append(s.ends, end) }

func (s *scope) end() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
}

// twin is a session on both sides.
type twin struct {
	real, model coord.Member
	rv, mv      coord.View
	seq         uint64
	tok         coord.Token
	held        map[coord.Token]coord.Slot
}

type modelMachine struct {
	t      testing.TB
	real   coord.Coord
	model  *core.DB
	twins  []*twin
	leases coord.Token
}

var modelKeys = []coord.Key{"host:a", "host:b", "run:1"}

func (m *modelMachine) now() coord.Micros { return coord.Micros(time.Now().UnixMicro()) }

// same fails unless both errors are of one kind.
func same(t *rapid.T, what string, real, model error) bool {
	for _, s := range []error{coord.ErrStale, coord.ErrFenced, coord.ErrNoView, coord.ErrWaiting, coord.ErrHeld, coord.ErrLost, coord.ErrNodeBusy} {
		if errors.Is(real, s) != errors.Is(model, s) {
			t.Fatalf("%s: the backend says %v, the model %v", what, real, model)
		}
	}
	if (real == nil) != (model == nil) {
		t.Fatalf("%s: the backend says %v, the model %v", what, real, model)
	}
	return real == nil
}

func (m *modelMachine) pick(t *rapid.T) *twin {
	if len(m.twins) == 0 {
		t.Skip("no session")
	}
	return m.twins[rapid.IntRange(0, len(m.twins)-1).Draw(t, "session")]
}

func (m *modelMachine) Register(t *rapid.T) {
	if len(m.twins) > 6 {
		t.Skip("enough sessions")
	}
	r := coord.Registration{
		Node: coord.NodeID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "node")),
		Role: rapid.SampledFrom([]coord.Role{coord.RoleNode, coord.RoleCrawl}).Draw(t, "role"),
	}
	a, ae := m.real.Register(m.t.Context(), r)
	b, be := m.model.Register(m.now(), r)
	if same(t, "register", ae, be) {
		m.twins = append(m.twins, &twin{real: a.Member, model: b.Member, held: map[coord.Token]coord.Slot{}})
		m.sameAuthority(t, a.Authority, b.Authority)
	}
}

func (m *modelMachine) sameAuthority(t *rapid.T, a, b coord.Authority) {
	if a.Epoch != b.Epoch || a.Mode != b.Mode || a.Target != b.Target || a.Reason != b.Reason || a.Falls != b.Falls || a.Pin != b.Pin || a.Redis != b.Redis {
		t.Fatalf("the backend's authority is %+v, the model's %+v", a, b)
	}
}

func (m *modelMachine) beat(t *rapid.T, w *twin, ack *coord.Ack, gates []coord.GateWrite) {
	ra, ma := ack, ack
	if ack != nil {
		x, y := *ack, *ack
		x.Slots, y.Slots = slices.Clone(ack.Slots), slices.Clone(ack.Slots)
		ra, ma = &x, &y
	}
	a, ae := m.real.Beat(m.t.Context(), coord.Beat{Member: w.real, Seq: w.seq, Ack: ra, Gates: gates})
	b, be := m.model.Beat(m.now(), coord.Beat{Member: w.model, Seq: w.seq, Ack: ma, Gates: gates})
	if !same(t, "beat", ae, be) {
		return
	}
	m.sameAuthority(t, a.Authority, b.Authority)
	if a.Acked != b.Acked || a.Prev != b.Prev || len(a.Sessions) != len(b.Sessions) || len(a.Gates) != len(b.Gates) {
		t.Fatalf("the backend answers %+v, the model %+v", a, b)
	}
	for i, g := range a.Gates {
		h := b.Gates[i]
		if g.Key != h.Key || g.Gen != h.Gen || g.Reason != h.Reason || (g.For-h.For).Abs() > 10*time.Second {
			t.Fatalf("the backend's gate is %+v, the model's %+v", g, h)
		}
	}
	until := coord.Micros(time.Hour / time.Microsecond)
	w.rv = coord.View{Epoch: a.Authority.Epoch, Mode: a.Authority.Mode, DB: a.Authority.DB, Until: a.Now + until}
	w.mv = coord.View{Epoch: b.Authority.Epoch, Mode: b.Authority.Mode, DB: b.Authority.DB, Until: b.Now + until}
}

func (m *modelMachine) Beat(t *rapid.T) {
	w := m.pick(t)
	w.seq += uint64(rapid.IntRange(0, 2).Draw(t, "step"))
	var gates []coord.GateWrite
	for range rapid.IntRange(0, 2).Draw(t, "gates") {
		gates = append(gates, m.gate(t))
	}
	m.beat(t, w, nil, gates)
}

func (m *modelMachine) Ack(t *rapid.T) {
	w := m.pick(t)
	w.seq++
	ack := &coord.Ack{Epoch: w.rv.Epoch}
	for _, tok := range sortedTokens(w.held) {
		if rapid.Float64().Draw(t, "carry") < 0.7 {
			ack.Slots = append(ack.Slots, w.held[tok])
		}
	}
	m.beat(t, w, ack, nil)
}

func sortedTokens(held map[coord.Token]coord.Slot) []coord.Token {
	var out []coord.Token
	for tok := range held {
		out = append(out, tok)
	}
	slices.Sort(out)
	return out
}

func (m *modelMachine) Grant(t *rapid.T) {
	w := m.pick(t)
	var groups [][]coord.AskKey
	for range rapid.IntRange(1, 3).Draw(t, "groups") {
		var g []coord.AskKey
		for _, k := range modelKeys {
			if rapid.Bool().Draw(t, "key") {
				w.tok++
				g = append(g, coord.AskKey{Key: k, Cap: rapid.IntRange(1, 4).Draw(t, "cap"), Token: w.tok})
			}
		}
		if len(g) > 0 {
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 {
		return
	}
	a, ae := m.real.Grant(m.t.Context(), coord.Ask{Member: w.real, View: w.rv, Groups: groups})
	b, be := m.model.Grant(m.now(), coord.Ask{Member: w.model, View: w.mv, Groups: groups})
	if m.refused(t, "grant", w, ae, be) || !same(t, "grant", ae, be) {
		return
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("the backend grants %+v, the model %+v", a, b)
	}
	for i, g := range a.Groups {
		for j, n := range g.N {
			k := groups[i][j]
			w.held[k.Token] = coord.Slot{Key: k.Key, N: n, Token: k.Token, Cap: k.Cap}
		}
	}
}

// refused handles a view that sends the call to a Redis, which nobody has seeded here: both must refuse, each for its own reason.
func (m *modelMachine) refused(t *rapid.T, what string, w *twin, real, model error) bool {
	if w.rv.Mode != coord.ModeRedis {
		return false
	}
	if real == nil || model == nil {
		t.Fatalf("%s in a Redis that was never seeded: the backend says %v, the model %v", what, real, model)
	}
	return true
}

func (m *modelMachine) Return(t *rapid.T) {
	w := m.pick(t)
	if w.tok == 0 || w.rv.Mode == coord.ModeRedis {
		return
	}
	tokens := []coord.Token{coord.Token(rapid.IntRange(1, int(w.tok)).Draw(t, "token"))}
	if err := m.real.Return(m.t.Context(), coord.Return{Member: w.real, View: w.rv, Tokens: tokens}); err != nil {
		t.Fatal(err)
	}
	m.model.Return(coord.Return{Member: w.model, View: w.mv, Tokens: tokens})
	delete(w.held, tokens[0])
}

func (m *modelMachine) Reconcile(t *rapid.T) {
	w := m.pick(t)
	if w.tok == 0 {
		return
	}
	r := coord.Reconcile{Upto: coord.Token(rapid.IntRange(0, int(w.tok)).Draw(t, "upto"))}
	for tok := coord.Token(1); tok <= w.tok; tok++ {
		if rapid.Float64().Draw(t, "name") < 0.8 {
			r.Tokens = append(r.Tokens, tok)
		}
	}
	x, y := r, r
	x.Member, x.View, y.Member, y.View = w.real, w.rv, w.model, w.mv
	a, ae := m.real.Reconcile(m.t.Context(), x)
	b, be := m.model.Reconcile(m.now(), y)
	if m.refused(t, "reconcile", w, ae, be) || !same(t, "reconcile", ae, be) {
		return
	}
	a.Pressure, b.Pressure = nil, nil // depends on seconds that passed
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("the backend reconciles %+v, the model %+v", a, b)
	}
}

func (m *modelMachine) gate(t *rapid.T) coord.GateWrite {
	return coord.GateWrite{
		Key: rapid.SampledFrom(modelKeys).Draw(t, "key"), For: time.Duration(rapid.IntRange(1, 30).Draw(t, "minutes")) * time.Minute,
		Gen: rapid.SampledFrom([]uint64{0, 0, 1, 2, 3}).Draw(t, "gen"), Reason: rapid.SampledFrom([]string{"429", "503"}).Draw(t, "reason"),
		Set: rapid.SampledFrom([]coord.Micros{0, 0, 1, 1 << 60}).Draw(t, "set"), // unknown, before and after any clear
	}
}

func (m *modelMachine) Pause(t *rapid.T) {
	w := m.gate(t)
	a, err := m.real.Pause(m.t.Context(), w)
	b := m.model.Pause(m.now(), w)
	if err != nil || a.Gen != b.Gen || a.Reason != b.Reason || (a.For-b.For).Abs() > 10*time.Second {
		t.Fatalf("the backend's gate is %+v, %v, the model's %+v", a, err, b)
	}
}

func (m *modelMachine) Clear(t *rapid.T) {
	k := rapid.SampledFrom(modelKeys).Draw(t, "key")
	a, err := m.real.Clear(m.t.Context(), k)
	b := m.model.Clear(m.now(), k)
	if err != nil || a.Gen != b.Gen || a.For != b.For {
		t.Fatalf("the backend's gate is %+v, %v, the model's %+v", a, err, b)
	}
}

func (m *modelMachine) Hold(t *rapid.T) {
	w := m.pick(t)
	if rapid.Bool().Draw(t, "anew") {
		m.leases++
	}
	h := coord.Hold{Name: "l", Token: m.leases, TTL: time.Hour}
	x, y := h, h
	x.Member, x.View, y.Member, y.View = w.real, w.rv, w.model, w.mv
	a, ae := m.real.Hold(m.t.Context(), x)
	b, be := m.model.Hold(m.now(), y)
	if same(t, "hold", ae, be) && (a.Token != b.Token || a.Fence.Epoch != b.Fence.Epoch) {
		t.Fatalf("the backend's lease is %+v, the model's %+v", a, b)
	}
}

func (m *modelMachine) Drop(t *rapid.T) {
	w := m.pick(t)
	h := coord.Hold{Name: "l", Token: m.leases - coord.Token(rapid.IntRange(0, 1).Draw(t, "back"))}
	x, y := h, h
	x.Member, y.Member = w.real, w.model
	if err := m.real.Drop(m.t.Context(), x); err != nil {
		t.Fatal(err)
	}
	m.model.Drop(y)
}

func (m *modelMachine) End(t *rapid.T) {
	w := m.pick(t)
	var ae, be error
	if rapid.Bool().Draw(t, "leave") {
		ae, be = m.real.Leave(m.t.Context(), w.real), m.model.Leave(m.now(), w.model)
	} else {
		b := coord.Burial{Seq: w.seq, Proof: rapid.Bool().Draw(t, "proof")}
		x, y := b, b
		x.Member, y.Member = w.real, w.model
		var ad, bd bool
		ad, ae = m.real.Bury(m.t.Context(), x)
		bd, be = m.model.Bury(m.now(), y)
		if ad != bd {
			t.Fatalf("the backend says dead %v, the model %v", ad, bd)
		}
	}
	same(t, "end", ae, be)
}

func (m *modelMachine) Drain(t *rapid.T) {
	d := coord.Drain{
		From: m.model.Auth.Epoch - coord.Epoch(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "behind")), Target: coord.ModeDB, Reason: "model",
		Fall: rapid.Bool().Draw(t, "fall"), Pin: rapid.SampledFrom([]coord.Mode{"", coord.ModeDB, coord.ModeRedis}).Draw(t, "pin"),
		Seen: m.model.Auth.Epoch + coord.Epoch(rapid.IntRange(0, 1).Draw(t, "seen")),
	}
	if m.model.Auth.Epoch == 0 {
		t.Skip("no session has been")
	}
	a, ae := m.real.Drain(m.t.Context(), d)
	b, be := m.model.Drain(m.now(), d)
	if same(t, "drain", ae, be) {
		m.sameAuthority(t, a, b)
	}
}

func (m *modelMachine) Open(t *rapid.T) {
	o := coord.Open{Epoch: m.model.Auth.Epoch, Mode: coord.ModeDB}
	if rapid.Float64().Draw(t, "redis") < 0.2 {
		o.Mode, o.Redis = coord.ModeRedis, coord.RedisIdent{RunID: "r", ReplID: "p", Stamp: 7}
	}
	a, ae := m.real.Open(m.t.Context(), o)
	b, be := m.model.Open(m.now(), o)
	if same(t, "open", ae, be) {
		m.sameAuthority(t, a, b)
	}
}

// Check compares all slots after every call.
func (m *modelMachine) Check(t *rapid.T) {
	names := map[coord.Member]int{}
	for i, w := range m.twins {
		names[w.real] = i
		names[w.model] = i
	}
	list := func(slots []coord.Slot) []string {
		var out []string
		for _, s := range slots {
			out = append(out, fmt.Sprintf("%s %d session %d token %d epoch %d cap %d", s.Key, s.N, names[s.Member], s.Token, s.Epoch, s.Cap))
		}
		slices.Sort(out)
		return out
	}
	slots, err := m.real.Occupied(m.t.Context(), "")
	if m.model.Auth.Mode == coord.ModeRedis && errors.Is(err, coord.ErrUnavailable) {
		return // where that Redis is not there
	}
	if err != nil {
		t.Fatal(err)
	}
	if a, b := list(slots), list(m.model.Occupied("")); !slices.Equal(a, b) {
		t.Fatalf("the backend has\n%v, the model\n%v", a, b)
	}
}
