package sim

import (
	"fmt"
	"math"
	"time"

	"deepcrawl/coord"
)

// Fault is a kind of fault.
type Fault string

// The faults.
const (
	Freeze        Fault = "freeze"         // SIGSTOP, then SIGCONT
	Suspend       Fault = "suspend"        // the machine sleeps: its monotonic clock too
	Kill          Fault = "kill"           // kill -9, started again on its machine or gone
	Cycle         Fault = "leave"          // a clean exit, started again
	Join          Fault = "join"           // another machine, perhaps without Redis
	CutDB         Fault = "cut-db"         // partition from the database
	CutRedis      Fault = "cut-redis"      // partition from Redis
	Deaf          Fault = "deaf"           // requests arrive, answers do not
	Slow          Fault = "slow"           // messages take up to minutes
	DBDown        Fault = "db-down"        // not answering
	DBRestart     Fault = "db-restart"     // restarted; lossy ones lose commits
	DBFailover    Fault = "db-failover"    // another server without the last commits
	RedisDown     Fault = "redis-down"     // not answering, comes back with its data
	RedisRestart  Fault = "redis-restart"  // comes back empty
	RedisFlush    Fault = "redis-flush"    // FLUSHALL
	RedisPromote  Fault = "redis-promote"  // the replica takes over with what it had; the next time back again
	RedisClock    Fault = "redis-clock"    // its clock is stepped
	Operator      Fault = "operator"       // cluster coord db|redis
	Caps          Fault = "caps"           // a cap changes
	DoubleControl Fault = "double-control" // somebody else drains at the wrong moment
)

// Faults is every kind.
var Faults = []Fault{
	Freeze, Suspend, Kill, Cycle, Join, CutDB, CutRedis, Deaf, Slow, DBDown, DBRestart, DBFailover, RedisDown, RedisRestart,
	RedisFlush, RedisPromote, RedisClock, Operator, Caps, DoubleControl,
}

func (w *World) pickFaults() {
	if w.cfg.Faults == nil {
		for _, f := range Faults {
			if w.chance(0.4) {
				w.cfg.Faults = append(w.cfg.Faults, f)
			}
		}
		if len(w.cfg.Faults) == 0 {
			w.cfg.Faults = []Fault{Freeze, RedisDown}
		}
	}
	for _, f := range w.cfg.Faults {
		if f == DBFailover || f == DBRestart {
			w.oracle.mayLose = true
		}
	}
}

// someone is a running process, nil if there is none.
func (w *World) someone() *proc {
	var up []*proc
	for _, p := range w.procs {
		if p.running {
			up = append(up, p)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[w.rng.IntN(len(up))]
}

// span is how long a fault lasts: often around what matters, sometimes far beyond.
func (w *World) span() time.Duration {
	t := w.timing
	switch w.rng.IntN(5) {
	case 0:
		return w.between(0, t.Beat*2)
	case 1:
		return w.between(0, t.Pause)
	case 2:
		return w.between(t.Pause, t.View*2)
	case 3:
		return w.between(t.View, t.Death)
	}
	return w.between(t.Death, t.Death*5/2)
}

// fault lets something happen and plans the next.
func (w *World) fault() {
	if !w.faultable {
		return
	}
	w.after(w.exp(w.calm)+100*time.Millisecond, w.fault)
	f := w.cfg.Faults[w.rng.IntN(len(w.cfg.Faults))]
	w.stats.Faults++
	p := w.someone()
	d := w.span()
	if p == nil {
		if len(w.procs) < 12 {
			w.spawn(false)
		}
		return
	}
	switch f {
	case Freeze, Suspend, CutDB, Deaf:
		p.troubled = max(p.troubled, w.now+d)
	case Kill, Cycle:
		p.troubled = w.now + w.timing.Death*10
	}
	w.trace("fault %s on %s for %v", f, p.name(), d)
	switch f {
	case Freeze:
		if w.chance(0.3) {
			p.freezeIn = d // with its next beat under way
		} else {
			p.freeze(d)
		}
	case Suspend:
		if p.frozenUntil <= w.now {
			p.suspendedAt = w.now
			p.freeze(d)
		}
	case Kill:
		p.kill()
		if w.chance(0.8) {
			w.after(w.between(0, w.timing.Death/2), p.restart)
		}
	case Cycle:
		p.leave(func() { w.after(w.exp(5*time.Second), p.restart) })
	case Join:
		if w.running() < 5 {
			w.spawn(w.chance(0.15))
		}
	case CutDB:
		p.cutDB = w.now + d
	case CutRedis:
		p.cutRedis = w.now + d
	case Deaf:
		p.deaf = w.now + d
	case Slow:
		w.slow = d / 2
		w.after(d, func() { w.slow = 0 })
	case DBDown:
		w.db.upAt = w.now + min(d, w.timing.Death*3/2)
	case DBRestart:
		w.db.upAt = w.now + w.between(time.Second, 20*time.Second)
		w.db.restart(w.rng.IntN(historyLen))
	case DBFailover:
		w.db.upAt = w.now + w.between(0, 20*time.Second)
		w.db.failover(w.rng.IntN(historyLen))
	case Operator:
		w.operate()
	case Caps:
		i := w.rng.IntN(len(w.keys))
		w.keys[i].cap = 1 + w.rng.IntN(3)
		w.oracle.capsAt[w.keys[i].key] = append(w.oracle.capsAt[w.keys[i].key], capChange{at: w.now, cap: w.keys[i].cap})
	case DoubleControl:
		a := w.db.db.Auth
		if a.Epoch > 0 && a.DB == w.db.db.Server {
			w.execDB(nil, coord.Drain{From: a.Epoch, Target: coord.ModeDB, Reason: "somebody"})
		}
	default:
		w.redisFault(f, d)
	}
}

func (w *World) redisFault(f Fault, d time.Duration) {
	if !w.withRedis {
		return
	}
	s := w.redis[w.active]
	switch f {
	case RedisDown:
		s.upAt = w.now + d
	case RedisRestart:
		s.restartEmpty()
		s.upAt = w.now + w.between(0, 10*time.Second)
	case RedisFlush:
		s.r.Flush()
	case RedisPromote:
		w.promote()
	case RedisClock:
		s.clock.offset += w.between(-w.timing.View*2, w.timing.View*2)
	}
}

func (w *World) running() int {
	n := 0
	for _, p := range w.procs {
		if p.running {
			n++
		}
	}
	return n
}

// operate is `cluster coord db|redis`.
func (w *World) operate() {
	a := w.db.db.Auth
	if a.Epoch == 0 || a.DB != w.db.db.Server || w.db.upAt > w.now {
		return
	}
	target := coord.ModeDB
	if w.withRedis && w.chance(0.5) {
		target = coord.ModeRedis
	}
	pin := coord.Mode("")
	if w.chance(0.3) {
		pin = target
	}
	w.execDB(nil, coord.Drain{From: a.Epoch, Target: target, Reason: "operator", Pin: pin})
}

// freeze stops the process; what happens to it waits.
func (p *proc) freeze(d time.Duration) {
	w := p.w
	p.frozenUntil = max(p.frozenUntil, w.now+d)
	life := p.life
	w.after(p.frozenUntil-w.now, func() {
		if p.life == life {
			p.wake()
		}
	})
	if d > w.timing.Pause {
		for r := range p.inFlight {
			r.excused = true
		}
	}
}

// wake lets happen what waited.
func (p *proc) wake() {
	if p.frozenUntil > p.w.now {
		return
	}
	if p.suspendedAt > 0 {
		slept := time.Duration(float64(p.w.now-p.suspendedAt) * p.mono.rate)
		p.mono.offset -= slept
		p.wall += slept
		p.suspendedAt = 0
	}
	waited := p.deferred
	p.deferred = nil
	for _, e := range waited {
		e.at = p.w.now
		p.w.push(e)
	}
}

// kill ends the process at once; the site notices within a second.
func (p *proc) kill() {
	w := p.w
	p.running = false
	p.life++
	p.frozenUntil, p.suspendedAt, p.freezeIn, p.deferred = 0, 0, 0, nil
	for _, rs := range w.oracle.open {
		for _, r := range rs {
			if r.p == p && !r.orphan {
				r.orphan = true
				w.after(w.between(0, 900*time.Millisecond), func() { w.oracle.ended(r) })
			}
		}
	}
}

// leave is a clean exit: no new requests, wait for the last, tell.
func (p *proc) leave(then func()) {
	if p.m == nil || p.m.Over() != nil || p.leaving {
		return
	}
	p.leaving = true
	var wait func()
	wait = func() {
		if p.m == nil || p.m.Over() != nil {
			p.leaving = false
			return
		}
		if len(p.inFlight) > 0 || p.m.Permits() > 0 {
			p.after(300*time.Millisecond, wait)
			return
		}
		v, err := p.m.View(p.clock())
		m := p.member
		p.m.Leave()
		p.m = nil
		finish := func() {
			p.send(leave{m}, func(reply) {
				p.kill()
				then()
			})
		}
		if err == nil && v.Mode == coord.ModeRedis {
			p.send(coord.Reconcile{Member: m, View: v, Upto: math.MaxInt64}, func(reply) { finish() })
			return
		}
		finish()
	}
	p.after(0, wait)
}

// heal ends every fault.
func (w *World) heal() {
	w.slow = 0
	w.db.upAt = w.now
	for _, s := range w.redis {
		s.upAt = min(s.upAt, w.now)
	}
	for _, p := range w.procs {
		p.cutDB, p.cutRedis, p.deaf, p.freezeIn = 0, 0, 0, 0
		p.frozenUntil = min(p.frozenUntil, w.now)
		p.wake()
	}
	if w.running() == 0 {
		w.spawn(false)
	}
	if w.db.db.Auth.Pin == coord.ModeDB {
		w.trace("pinned to the database")
	}
	w.trace("healed: %s", fmt.Sprint(w.running(), " processes"))
}
