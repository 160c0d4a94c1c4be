package sim

import (
	"errors"
	"fmt"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// proc is a process on a machine: the real client machine, and workers that make requests.
type proc struct {
	w        *World
	node     coord.NodeID
	life     int // rises with each death: events of the past life are void
	lockFile string
	running  bool
	plain    bool // no Redis is configured for it
	mono     clockOf
	wall     time.Duration // what the wall clock is ahead of mono
	m        *core.Session
	member   coord.Member

	beatSeq     uint64 // of the last beat that was sent
	beatSent    time.Duration
	freezeIn    time.Duration // how long to freeze at the next beat
	suspendedAt time.Duration
	frozenUntil time.Duration
	deferred    []*event      // what happened to it while it was frozen
	cutDB       time.Duration // no messages until then
	cutRedis    time.Duration
	deaf        time.Duration // answers are lost until then

	waiting  map[uint64]func() // by ask
	tick     *event
	inFlight map[*request]struct{}
	lease    *lease
	holding  bool // a call about the lease is out
	leaving  bool
	probed   bool
	wish     map[int]coord.Need // of its workers
	troubled time.Duration      // until when something kept it from beating
	lastView coord.Epoch
	rejoin   bool
}

func (p *proc) name() string { return p.member.String() }

func (p *proc) alive() bool { return p.running && p.m != nil && p.m.Over() == nil && !p.leaving }

func (p *proc) clock() core.Now {
	mono := p.mono.at(p.w.now)
	return core.Now{Mono: mono, Wall: mono + p.wall}
}

// real is the true time in which this process's clock runs d.
func (p *proc) real(d time.Duration) time.Duration {
	return time.Duration(float64(d)/p.mono.rate) + time.Microsecond
}

// spawn starts a process on a new machine; a plain one has no Redis configured.
func (w *World) spawn(plain bool) *proc {
	w.nodes++
	p := &proc{w: w, plain: plain, node: coord.NodeID(fmt.Sprintf("n%d", w.nodes)), lockFile: fmt.Sprintf("f%d", w.nodes)}
	p.mono = w.newClock()
	w.procs = append(w.procs, p)
	p.start()
	return p
}

// start is exec: nothing is known.
func (p *proc) start() {
	p.life++
	p.running, p.m, p.leaving, p.lease, p.holding, p.rejoin = true, nil, false, nil, false, false
	p.waiting, p.inFlight, p.wish = map[uint64]func(){}, map[*request]struct{}{}, map[int]coord.Need{}
	p.member, p.lastView, p.troubled = coord.Member{Node: p.node}, 0, p.w.now
	p.tick = nil
	p.register()
}

// restart starts it unless it runs.
func (p *proc) restart() {
	if !p.running {
		p.start()
	}
}

// register joins; a process that holds its machine's lock file buries its past self first, a second later.
func (p *proc) register() {
	join := func() {
		p.send(coord.Registration{Node: p.node, Role: coord.RoleNode, LockFile: p.lockFile}, func(r reply) {
			v, ok := r.val.(coord.Registered)
			if r.err != nil || !ok {
				p.after(p.w.between(time.Second, 3*time.Second), p.register)
				return
			}
			p.join(v)
		})
	}
	var past *coord.Member
	for m, s := range p.w.db.db.Sessions {
		if s.LockFile == p.lockFile && s.State == coord.Live && (past == nil || m.Incarnation > past.Incarnation) {
			m := m
			past = &m
		}
	}
	if past == nil {
		join()
		return
	}
	dead := *past
	p.after(time.Second, func() {
		p.send(coord.Burial{Member: dead, Proof: true}, func(reply) { join() })
	})
}

func (p *proc) join(v coord.Registered) {
	w := p.w
	cfg := core.Config{Timing: w.timing, Off: w.cfg.Off, Redis: w.withRedis && !p.plain, Eager: w.cfg.Seed%2 == 0}
	cfg.Jitter = func(d time.Duration) time.Duration { return time.Duration(float64(d) * (0.8 + 0.2*w.rng.Float64())) }
	p.member = v.Member
	p.m = core.NewSession(cfg, v, nil, p.clock())
	w.trace("%s joins in epoch %d %s", p.name(), v.Authority.Epoch, v.Authority.Mode)
	p.pump()
	for i := range 1 + w.rng.IntN(3) {
		p.after(w.exp(time.Second), func() { p.work(i) })
	}
	p.after(w.exp(10*time.Second), p.leader)
}

// pump sends what the machine wants sent and sets its timer. It is called after everything that touches the machine.
func (p *proc) pump() {
	if p.m == nil {
		return
	}
	for _, c := range p.m.Calls() {
		p.send(c.Req, func(r reply) {
			if p.m == nil || p.m.Over() != nil {
				return
			}
			p.m.Handle(p.clock(), core.Answer{ID: c.ID, Reply: r.val, Err: r.err})
			if fn := p.waiting[c.ID]; fn != nil {
				delete(p.waiting, c.ID)
				fn()
			}
			p.pump()
		})
	}
	if err := p.m.Over(); err != nil {
		if errors.Is(err, coord.ErrFenced) && !p.rejoin {
			p.w.stats.Fenced++
			p.w.trace("%s is fenced: %v", p.name(), err)
			p.rejoin = true
			p.again()
		}
		return
	}
	next := p.m.Next(p.clock())
	at := p.w.now + p.real(next-p.mono.at(p.w.now))
	if p.tick != nil && p.tick.at <= at && p.tick.at > p.w.now {
		return
	}
	e := &event{at: at, p: p, life: p.life}
	e.fn = func() {
		if p.tick != e || p.m == nil {
			return
		}
		p.tick = nil
		p.m.Tick(p.clock())
		p.pump()
	}
	p.tick = e
	p.w.push(e)
}

// again joins anew once the requests of the fenced session have ended (rule 14).
func (p *proc) again() {
	if len(p.inFlight) > 0 && !p.w.cfg.Off.Lacks(core.R14Wait) {
		p.after(p.w.between(100*time.Millisecond, time.Second), p.again)
		return
	}
	kept := p.inFlight
	p.m = nil
	p.tick = nil
	p.waiting, p.inFlight, p.wish = map[uint64]func(){}, map[*request]struct{}{}, map[int]coord.Need{}
	p.life++
	for r := range kept {
		p.w.oracle.orphan(r)
	}
	p.member, p.lastView, p.lease, p.holding, p.rejoin = coord.Member{Node: p.node}, 0, nil, false, false
	p.register()
}

const (
	callTimeout  = 5 * time.Second
	probeTimeout = 500 * time.Millisecond
)

// send carries a request to its server, in some time, perhaps; done is called exactly once, with ErrUnknown when no answer
// came in time.
func (p *proc) send(req any, done func(reply)) {
	w := p.w
	timeout := callTimeout
	toRedis := p.toRedis(req)
	if b, ok := req.(coord.Beat); ok {
		p.beatSeq, p.beatSent = b.Seq, w.now
	}
	if _, ok := req.(coord.Beat); ok && p.freezeIn > 0 {
		d, life := p.freezeIn, p.life
		p.freezeIn = 0
		w.after(w.between(0, 5*time.Millisecond), func() {
			if p.life == life && p.running {
				p.troubled = max(p.troubled, w.now+d)
				p.freeze(d)
			}
		})
	}
	if q, ok := req.(core.Probe); ok && !q.Beside {
		timeout = probeTimeout
	}
	answered := false
	life := p.life
	answer := func(r reply) {
		if !answered && p.life == life {
			answered = true
			done(r)
		}
	}
	p.after(p.real(timeout), func() { answer(reply{err: coord.ErrUnknown}) })
	if toRedis && p.cutRedis > w.now || !toRedis && p.cutDB > w.now {
		if w.chance(0.5) {
			p.after(w.between(time.Millisecond, 20*time.Millisecond), func() { answer(reply{err: coord.ErrUnavailable}) })
		}
		return
	}
	// The server a connection leads to is chosen when the request is sent.
	var target *redisServer
	if toRedis {
		target = w.redis[w.active]
	}
	copies := 1
	switch req.(type) {
	case coord.Beat, coord.Registration: // the two that must not be sent again
	case core.Seed:
		if w.chance(0.2) {
			copies = 2
		}
	default:
		if w.chance(0.01) {
			copies = 2 // a client library that sends again
		}
	}
	for range copies {
		w.after(w.latency()+w.dawdle(req), func() {
			if toRedis {
				if target.upAt > w.now {
					p.after(w.latency(), func() { answer(reply{err: coord.ErrUnavailable}) })
					return
				}
			} else if w.db.upAt > w.now {
				p.after(w.latency(), func() { answer(reply{err: coord.ErrUnavailable}) })
				return
			}
			var r reply
			if toRedis {
				r = w.execRedis(target, req)
			} else {
				r = w.execDB(p, req)
			}
			if p.deaf > w.now || toRedis && p.cutRedis > w.now || !toRedis && p.cutDB > w.now || w.chance(0.004) {
				return
			}
			p.after(w.latency(), func() { answer(r) })
		})
	}
}

// dawdle delays the steps of a switch, so that they meet later ones.
func (w *World) dawdle(req any) time.Duration {
	switch req.(type) {
	case core.Seed, core.Carried, coord.Open, coord.Drain, coord.Burial:
		if w.faultable && w.chance(0.15) {
			return w.exp(w.timing.View)
		}
	}
	return 0
}

// latency is a one-way trip: mostly short, sometimes beyond every timeout.
func (w *World) latency() time.Duration {
	d := w.between(100*time.Microsecond, 5*time.Millisecond)
	if w.faultable && w.chance(0.01) {
		d += w.exp(2 * time.Second)
	}
	if w.faultable && w.slow > 0 && w.chance(0.1) {
		d += w.exp(w.slow)
	}
	return d
}

// toRedis reports where a request goes.
func (p *proc) toRedis(req any) bool {
	if p.plain {
		return false
	}
	switch q := req.(type) {
	case core.Probe, core.Seed, core.Reap:
		return true
	case coord.Ask:
		return q.View.Mode == coord.ModeRedis
	case coord.Return:
		return q.View.Mode == coord.ModeRedis
	case coord.Reconcile:
		return q.View.Mode == coord.ModeRedis
	case coord.Take:
		return q.View.Mode == coord.ModeRedis
	}
	return false
}
