package sim

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// Small is a small world that is explored completely: two sessions, one key with cap 1, both of them controllers, time in
// steps of a second, and budgets of what may go wrong. Every order of events within the budgets is tried.
type Small struct {
	Redis    bool // one is there; the sessions go to it by themselves, which is a switch
	Switches int  // drains an operator may ask for
	Losses   int  // requests or answers that are lost
	Delays   int  // answers that come after other things have happened
	Late     int  // requests that are executed at any time after their sender has given up
	Crashes  int  // processes that are killed
	Flushes  int  // FLUSHALL
	Length   time.Duration
	Max      int // states; 0: no bound
	// Deep explores depth first, which remembers far fewer states to go on from; a violation then comes with a long path.
	Deep bool
	Off  core.Off
}

// Explored is what Exhaust saw.
type Explored struct {
	States, Steps int
	Fixed         bool // every state was explored
	Depth         int
	Requests      int // states in which one is in flight
	Switched      int // states after a switch
	Violation     string
	Path          []string
}

func (e Explored) String() string {
	s := fmt.Sprintf("%d states, %d steps, depth %d, %d with a request in flight, %d after a switch", e.States, e.Steps, e.Depth, e.Requests, e.Switched)
	if e.Fixed {
		return s + ", fixed point"
	}
	return s + ", not exhausted"
}

const (
	smallKey = coord.Key("host:x")
	tick     = time.Second
)

func smallTiming() coord.Timing {
	return coord.Timing{
		Beat: tick, View: 3 * tick, Request: 2 * tick, Death: 8 * tick, LeaseTTL: 9 * tick, RateVoid: tick, KeepIdle: tick,
	}
}

// small is a state.
type small struct {
	cfg     *Small
	now     time.Duration
	db      *core.DB
	redis   *core.Redis
	s       [2]smallProc
	msgs    []smallMsg
	left    Small // budgets
	grants  map[coord.Epoch]string
	path    *smallStep
	depth   int
	problem string
}

// smallStep is how a state was reached.
type smallStep struct {
	before *smallStep
	action string
}

type smallProc struct {
	m      *core.Session
	permit *core.Permit
	ends   time.Duration // a request is in flight until then at the latest; 0: none
	ask    uint64
}

type smallMsg struct {
	p      int
	call   core.Call
	sent   time.Duration
	done   bool // executed
	reply  any
	err    error
	orphan bool // nobody waits for its answer
}

func (w *small) micros() coord.Micros {
	return coord.Micros((1000*time.Hour + w.now) / time.Microsecond)
}

func (w *small) clock() core.Now { return core.Now{Mono: time.Hour + w.now, Wall: time.Hour + w.now} }

func newSmall(cfg *Small) *small {
	// Who gives back for whom is a matter of liveness; without it wants decide nothing.
	cfg.Off = cfg.Off.Without(core.R16Share)
	w := &small{cfg: cfg, left: *cfg, grants: map[coord.Epoch]string{}}
	w.db = core.NewDB(cfg.Off, coord.Ident{System: "db", Start: "0"})
	w.redis = core.NewRedis(cfg.Off, "r", "r")
	for i, node := range []coord.NodeID{"a", "b"} {
		r, err := w.db.Register(w.micros(), coord.Registration{Node: node, Role: coord.RoleNode})
		if err != nil {
			panic(err)
		}
		w.s[i].m = core.NewSession(core.Config{Timing: smallTiming(), Off: cfg.Off, Redis: cfg.Redis, Eager: true, Rare: 1, Retry: tick / 10}, r, nil, w.clock())
	}
	w.settle()
	return w
}

// copy makes a successor.
func (w *small) copy(action string) *small {
	c := *w
	c.db, c.redis = w.db.Clone(), w.redis.Clone()
	c.msgs = slices.Clone(w.msgs)
	c.grants = make(map[coord.Epoch]string, len(w.grants))
	for e, by := range w.grants {
		c.grants[e] = by
	}
	for i := range c.s {
		p := &c.s[i]
		if p.m != nil {
			m, permits := p.m.Clone(p.permit)
			p.m = m
			if p.permit != nil {
				p.permit = permits[0]
			}
		}
	}
	c.path, c.depth = &smallStep{before: w.path, action: action}, w.depth+1
	return &c
}

// settle lets the machines do what is due now and sends their calls. Probes are answered at once.
func (w *small) settle() {
	for i := range w.s {
		p := &w.s[i]
		if p.m == nil {
			continue
		}
		p.m.Tick(w.clock())
		for calls := p.m.Calls(); len(calls) > 0; calls = p.m.Calls() {
			for _, c := range calls {
				if _, ok := c.Req.(core.Probe); ok {
					p.m.Handle(w.clock(), core.Answer{ID: c.ID, Reply: coord.Probed{Ident: w.redis.Server, Now: w.micros(), Eligible: true}})
					continue
				}
				w.msgs = append(w.msgs, smallMsg{p: i, call: c, sent: w.now})
			}
		}
	}
}

// exec runs a message's request.
func (w *small) exec(m *smallMsg) {
	m.done = true
	now := w.micros()
	inRedis := func(v coord.View) bool { return v.Mode == coord.ModeRedis }
	switch q := m.call.Req.(type) {
	case coord.Beat:
		m.reply, m.err = reply2(w.db.Beat(now, q))
	case coord.Ask:
		var g coord.Granted
		by := "db"
		if inRedis(q.View) {
			g, m.err = w.redis.Grant(now, q)
			by = fmt.Sprint("redis ", w.redis.Server.Stamp)
		} else {
			g, m.err = w.db.Grant(now, q)
		}
		m.reply = g
		if m.err == nil && len(g.Groups[0].N) > 0 {
			if was, ok := w.grants[g.Epoch]; ok && was != by {
				w.problem = fmt.Sprintf("I1: epoch %d is granted by %s and %s", g.Epoch, was, by)
			}
			w.grants[g.Epoch] = by
		}
	case coord.Return:
		if inRedis(q.View) {
			w.redis.Return(q)
		} else {
			w.db.Return(q)
		}
	case coord.Reconcile:
		if inRedis(q.View) {
			m.reply, m.err = reply2(w.redis.Reconcile(now, q))
		} else {
			m.reply, m.err = reply2(w.db.Reconcile(now, q))
		}
	case coord.Burial:
		was := w.db.Sessions[q.Member].State
		m.reply, m.err = reply2(w.db.Bury(now, q))
		for i := range w.s {
			if p := &w.s[i]; was == coord.Live && w.db.Sessions[q.Member].State == coord.Dead && p.m != nil && p.m.ID() == q.Member && p.ends > 0 {
				w.problem = fmt.Sprintf("I5: %s is buried with a request in flight", q.Member.Node)
			}
		}
	case coord.Drain:
		m.reply, m.err = reply2(w.db.Drain(now, q))
	case core.Carried:
		m.reply, m.err = reply2(w.db.Carried(now, q.Epoch))
	case coord.Open:
		m.reply, m.err = reply2(w.db.Open(now, q))
	case core.Seed:
		var s coord.Seeded
		s.Ident, s.Guard, m.err = w.redis.Seed(now, q.Epoch, q.Slots)
		m.reply = s
	case core.Reap:
		m.reply, m.err = reply2(w.redis.Reap(now, q.View, q.Live, q.Before))
	default:
		panic(fmt.Sprintf("sim: no such call %T", q))
	}
}

func reply2[T any](v T, err error) (any, error) { return v, err }

// answer hands an answer to its machine.
func (w *small) answer(m smallMsg, reply any, err error) {
	p := &w.s[m.p]
	if m.orphan || p.m == nil {
		return
	}
	p.m.Handle(w.clock(), core.Answer{ID: m.call.ID, Reply: reply, Err: err})
	if p.ask == m.call.ID && p.ask != 0 {
		got, _ := p.m.Asked(p.ask, nil)
		p.ask = 0
		if len(got) > 0 {
			p.permit = got[0]
		}
	}
}

func (w *small) drop(i int) { w.msgs = slices.Delete(w.msgs, i, i+1) }

// next are the states after every possible event.
func (w *small) next() []*small {
	var out []*small
	add := func(action string, do func(c *small)) {
		c := w.copy(action)
		do(c)
		c.settle()
		c.check()
		out = append(out, c)
	}
	mayPass := w.now < w.cfg.Length
	if i := w.urgent(); i >= 0 {
		w.calls(i, add)
		return out
	}
	seen := map[int]bool{}
	for i, m := range w.msgs {
		name := fmt.Sprintf("%c %T", 'a'+rune(m.p), m.call.Req)
		if m.orphan {
			if !m.done {
				add("late "+name, func(c *small) { c.exec(&c.msgs[i]); c.drop(i) })
				if len(w.msgs) > 6 {
					add("lost at last "+name, func(c *small) { c.drop(i) })
				}
			}
			continue
		}
		if m.sent+tick <= w.now {
			mayPass = false
		}
		// What a session sends is executed in its order, unless something goes wrong.
		if seen[m.p] && !m.done {
			continue
		}
		seen[m.p] = true
		w.calls(i, add)
	}
	for i := range w.s {
		p := &w.s[i]
		if p.m == nil {
			continue
		}
		name := string('a' + rune(i))
		if p.ends > 0 {
			add(name+" ends its request", func(c *small) {
				c.s[i].ends = 0
				c.s[i].m.Release(c.clock(), c.s[i].permit)
				c.s[i].permit = nil
			})
			if p.ends <= w.now {
				mayPass = false
			}
		} else if p.permit != nil {
			if p.m.MayStart(w.clock(), p.permit) == nil {
				add(name+" starts a request", func(c *small) { c.s[i].ends = c.now + 2*tick })
			}
			if p.m.MayStart(w.clock(), p.permit) != nil {
				add(name+" lets its permit go", func(c *small) {
					c.s[i].m.Release(c.clock(), c.s[i].permit)
					c.s[i].permit = nil
				})
			}
		} else if p.ask == 0 {
			c := w.copy(name + " acquires")
			need := coord.Need{Keys: []coord.CappedKey{{Key: smallKey, Cap: 1}}, N: 1}
			got, ask := c.s[i].m.Acquire(c.clock(), need, nil)
			if len(got) > 0 {
				c.s[i].permit = got[0]
			}
			c.s[i].ask = ask
			if len(got) > 0 || ask != 0 {
				c.settle()
				c.check()
				out = append(out, c)
			}
		}
		if w.left.Crashes > 0 {
			add(name+" is killed", func(c *small) {
				c.left.Crashes--
				c.s[i] = smallProc{}
				for j := len(c.msgs) - 1; j >= 0; j-- {
					if c.msgs[j].p == i {
						if c.msgs[j].done {
							c.drop(j)
						} else {
							c.msgs[j].orphan = true
						}
					}
				}
			})
		}
	}
	if w.left.Switches > 0 && w.db.Auth.Mode != coord.ModeDrain {
		add("the operator drains", func(c *small) {
			c.left.Switches--
			_, _ = c.db.Drain(c.micros(), coord.Drain{From: c.db.Auth.Epoch, Target: coord.ModeDB, Pin: coord.ModeDB})
		})
	}
	if w.left.Flushes > 0 && w.redis.Guard > 0 {
		add("redis is flushed", func(c *small) { c.left.Flushes--; c.redis.Flush() })
	}
	if mayPass {
		add("a second passes", func(c *small) { c.now += tick })
	}
	return out
}

// urgent is a message that is executed at once unless something goes wrong with it: nothing that others do before matters to
// it, so other orders lead to the same states. -1 if there is none.
func (w *small) urgent() int {
	for i, m := range w.msgs {
		if m.done || m.orphan {
			continue
		}
		switch m.call.Req.(type) {
		case coord.Return, coord.Reconcile, core.Carried, core.Reap:
			return i
		}
	}
	return -1
}

// calls adds what may become of a message whose sender waits.
func (w *small) calls(i int, add func(string, func(*small))) {
	m := w.msgs[i]
	name := fmt.Sprintf("%c %T", 'a'+rune(m.p), m.call.Req)
	lose := func(c *small) {
		x := c.msgs[i]
		c.drop(i)
		c.left.Losses--
		c.answer(x, nil, coord.ErrUnknown)
	}
	if m.done {
		add("answer "+name, func(c *small) { x := c.msgs[i]; c.drop(i); c.answer(x, x.reply, x.err) })
		if w.left.Losses > 0 {
			add("answer lost "+name, lose)
		}
		return
	}
	add("call "+name, func(c *small) { c.exec(&c.msgs[i]); x := c.msgs[i]; c.drop(i); c.answer(x, x.reply, x.err) })
	if w.left.Delays > 0 {
		add("executed "+name, func(c *small) { c.left.Delays--; c.exec(&c.msgs[i]) })
	}
	if w.left.Losses > 0 {
		add("request lost "+name, lose)
		add("answer lost "+name, func(c *small) { c.exec(&c.msgs[i]); lose(c) })
	}
	if w.left.Late > 0 {
		add("given up "+name, func(c *small) {
			x := c.msgs[i]
			c.left.Late--
			c.answer(x, nil, coord.ErrUnknown)
			c.msgs[i].orphan = true
		})
	}
}

// check looks for what must never be.
func (w *small) check() {
	flying := 0
	for i := range w.s {
		if w.s[i].ends > 0 {
			flying++
		}
	}
	if flying > 1 && w.problem == "" {
		w.problem = "cap: two requests in flight, cap 1"
	}
	if w.db.Auth.Mode == coord.ModeDB && len(w.db.Slots[smallKey]) > 1 && w.problem == "" {
		w.problem = "I4: two slots recorded, cap 1"
	}
	if r := w.redis.Occupied(); len(r) > 1 && w.problem == "" {
		w.problem = "I4: two slots recorded in Redis, cap 1"
	}
}

// Exhaust explores breadth first, so that a violation comes with a shortest path, unless told to go deep.
func Exhaust(cfg Small) Explored {
	if cfg.Length == 0 {
		cfg.Length = time.Hour
	}
	var e Explored
	seen := map[[16]byte]struct{}{}
	canon := &core.Canon{Horizon: 12 * tick}
	visit := func(w *small) bool {
		k := w.key(canon)
		if _, ok := seen[k]; ok {
			return false
		}
		seen[k] = struct{}{}
		e.States++
		e.Depth = max(e.Depth, w.depth)
		if w.s[0].ends > 0 || w.s[1].ends > 0 {
			e.Requests++
		}
		if w.db.Auth.Epoch > 1 && w.db.Auth.Mode != coord.ModeDrain {
			e.Switched++
		}
		return true
	}
	first := newSmall(&cfg)
	visit(first)
	queue := []*small{first}
	for len(queue) > 0 {
		at := 0
		if cfg.Deep {
			at = len(queue) - 1
		}
		w := queue[at]
		queue[at] = nil
		if cfg.Deep {
			queue = queue[:at]
		} else {
			queue = queue[1:]
		}
		for _, n := range w.next() {
			e.Steps++
			if n.problem != "" {
				e.Violation = n.problem
				for at := n.path; at != nil; at = at.before {
					e.Path = append(e.Path, at.action)
				}
				slices.Reverse(e.Path)
				return e
			}
			if !visit(n) {
				continue
			}
			if cfg.Max > 0 && e.States >= cfg.Max {
				return e
			}
			queue = append(queue, n)
		}
	}
	e.Fixed = true
	return e
}

// key is the state's canonical form, hashed.
func (w *small) key(c *core.Canon) [16]byte {
	c.Reset()
	w.write(c)
	c.Ranked()
	w.write(c)
	h := fnv.New128a()
	h.Write(c.Buf)
	return [16]byte(h.Sum(nil))
}
