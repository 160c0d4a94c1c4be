package sim

import (
	"fmt"
	"maps"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// clockOf is a clock with its own offset and rate.
type clockOf struct {
	offset time.Duration
	rate   float64
}

func (c clockOf) at(now time.Duration) time.Duration {
	return c.offset + time.Duration(float64(now)*c.rate)
}

func (w *World) newClock() clockOf {
	return clockOf{offset: 1000*time.Hour + w.between(-time.Second, time.Second), rate: 0.955 + 0.09*w.rng.Float64()}
}

func (w *World) micros(c clockOf) coord.Micros { return coord.Micros(c.at(w.now) / time.Microsecond) }

// dbServer is whatever answers at the database's address.
type dbServer struct {
	w       *World
	db      *core.DB
	clock   clockOf
	upAt    time.Duration
	systems int
	starts  int
	history []*core.DB // states after the last commits, the newest last; kept only where a failover may lose them
}

const historyLen = 40

func newDBServer(w *World) *dbServer {
	d := &dbServer{w: w, clock: w.newClock()}
	d.db = core.NewDB(w.cfg.Off, coord.Ident{System: "db0", Start: "0", Lossy: w.chance(0.3)})
	return d
}

func (d *dbServer) now() coord.Micros { return d.w.micros(d.clock) }

// committed keeps history.
func (d *dbServer) committed() {
	if !d.w.faultable || !d.w.oracle.mayLose {
		return
	}
	if len(d.history) == historyLen {
		copy(d.history, d.history[1:])
		d.history = d.history[:historyLen-1]
	}
	d.history = append(d.history, d.db.Clone())
}

// failover lets another server answer, on another clock, without the last n commits.
func (d *dbServer) failover(n int) {
	if n = min(n, len(d.history)-1); n > 0 {
		d.db = d.history[len(d.history)-1-n].Clone()
	}
	d.history = nil
	d.systems++
	d.db.Server.System = fmt.Sprintf("db%d", d.systems)
	d.db.Server.Start = fmt.Sprint(d.starts)
	// Leases bound how far two servers' clocks may differ.
	d.clock.offset += d.w.between(-500*time.Millisecond, 500*time.Millisecond)
	d.w.oracle.dbLost()
}

// restart keeps the data, or loses the last n commits where the server is lossy.
func (d *dbServer) restart(n int) {
	if d.db.Server.Lossy {
		if n = min(n, len(d.history)-1); n > 0 {
			d.db = d.history[len(d.history)-1-n].Clone()
			d.w.oracle.dbLost()
		}
	}
	d.history = nil
	d.starts++
	d.db.Server.Start = fmt.Sprint(d.starts)
}

// redisServer is one Redis.
type redisServer struct {
	w     *World
	name  string
	r     *core.Redis
	clock clockOf
	upAt  time.Duration
	runs  int
	repls int
	stale *core.Redis // what a replica would have
}

func newRedisServer(w *World, i int) *redisServer {
	s := &redisServer{w: w, name: string(rune('a' + i)), clock: w.newClock()}
	s.r = core.NewRedis(w.cfg.Off, s.name+"0", s.name+"0")
	s.stale = s.r.Clone()
	return s
}

func (s *redisServer) now() coord.Micros { return s.w.micros(s.clock) }

// restartEmpty is a restart without persistence.
func (s *redisServer) restartEmpty() {
	s.runs++
	s.repls++
	s.r = core.NewRedis(s.w.cfg.Off, fmt.Sprintf("%s%d", s.name, s.runs), fmt.Sprintf("%s%d", s.name, s.repls))
	s.stale = s.r.Clone()
}

// promote makes the other Redis the one clients are told of: it has what it replicated some while ago, its own run_id, and a
// new replication id.
func (w *World) promote() {
	old := w.redis[w.active]
	w.active = 1 - w.active
	s := w.redis[w.active]
	data := old.stale.Clone()
	s.repls++
	s.r = data
	s.r.Server.RunID = fmt.Sprintf("%s%d", s.name, s.runs)
	s.r.Server.ReplID = fmt.Sprintf("%s%d", s.name, s.repls)
	s.stale = s.r.Clone()
}

// reply is what a call came to at the server.
type reply struct {
	val any
	err error
}

// execDB runs a request at the database.
func (w *World) execDB(p *proc, req any) reply {
	d := w.db
	now := d.now()
	was := d.db.Auth
	var r reply
	switch q := req.(type) {
	case coord.Beat:
		var v coord.BeatReply
		ack := q.Ack != nil
		before, gates := d.db.Sessions[q.Member].Acked, maps.Clone(d.db.Gates)
		v, r.err = d.db.Beat(now, q)
		r.val = v
		if r.err == nil {
			w.oracle.beat(q, v, ack && v.Acked > before, gates)
		}
	case coord.Ask:
		var v coord.Granted
		before := d.db.Occupied("")
		v, r.err = d.db.Grant(now, q)
		r.val = v
		if r.err == nil {
			w.oracle.granted(q, v, "db "+d.db.Server.System, before, d.db.Occupied(""))
		}
	case coord.Return:
		d.db.Return(q)
	case coord.Reconcile:
		var v coord.Reconciled
		v, r.err = d.db.Reconcile(now, q)
		r.val = v
	case coord.Burial:
		wasLive := d.db.Sessions[q.Member].State == coord.Live
		var dead bool
		dead, r.err = d.db.Bury(now, q)
		r.val = dead
		if dead && wasLive {
			w.stats.Deaths++
			w.oracle.buried(q)
		}
	case coord.Drain:
		var v coord.Authority
		v, r.err = d.db.Drain(now, q)
		r.val = v
	case core.Carried:
		var v []coord.Slot
		v, r.err = d.db.Carried(now, q.Epoch)
		r.val = v
	case coord.Open:
		var v coord.Authority
		v, r.err = d.db.Open(now, q)
		r.val = v
	case coord.GateWrite:
		before := d.db.Gates[q.Key]
		r.val = d.db.Pause(now, q)
		w.oracle.wrote(q, before)
	case clearGate:
		g := d.db.Clear(now, q.key)
		r.val = g
		w.oracle.cleared(q.key)
		w.trace("%s is cleared: %+v", q.key, g)
	case coord.Take:
		var v coord.Taken
		v, r.err = d.db.Take(now, q)
		r.val = v
		if r.err == nil && v.Wait == 0 {
			w.oracle.rated(q.Key)
		}
	case holdLease:
		var v coord.Held
		v, r.err = d.db.Hold(now, q.Hold)
		r.val = v
		if r.err == nil {
			w.oracle.held(q.Hold, v)
		}
	case dropLease:
		d.db.Drop(q.Hold)
	case leave:
		r.err = d.db.Leave(now, q.member)
	case coord.Registration:
		if w.cfg.Off.Lacks(core.RRegister) && w.oracle.lastAuth.Epoch > 0 {
			// Without the lock it may have read the authority before the transaction that holds the row now.
			d.db.Auth = w.oracle.lastAuth
		}
		var v coord.Registered
		v, r.err = d.db.Register(now, q)
		if w.cfg.Off.Lacks(core.RRegister) && was.Epoch > 0 {
			d.db.Auth = was
		}
		r.val = v
	default:
		panic(fmt.Sprintf("sim: no such call %T", req))
	}
	if d.db.Auth != was {
		w.oracle.authority(was, d.db.Auth)
	}
	if r.err == nil {
		d.committed()
	}
	return r
}

// execRedis runs a script at a Redis.
func (w *World) execRedis(s *redisServer, req any) reply {
	now := s.now()
	var r reply
	switch q := req.(type) {
	case core.Probe:
		r.val = coord.Probed{Ident: s.r.Server, Now: now, Eligible: true}
	case coord.Ask:
		var v coord.Granted
		before := s.r.Occupied()
		v, r.err = s.r.Grant(now, q)
		r.val = v
		if r.err == nil {
			w.oracle.granted(q, v, fmt.Sprintf("redis %v", s.r.Server), before, s.r.Occupied())
		}
	case coord.Return:
		s.r.Return(q)
	case coord.Reconcile:
		var v coord.Reconciled
		v, r.err = s.r.Reconcile(now, q)
		r.val = v
	case core.Reap:
		var n int
		n, r.err = s.r.Reap(now, q.View, q.Live, q.Before)
		r.val = n
	case core.Seed:
		var v coord.Seeded
		v.Ident, v.Guard, r.err = s.r.Seed(now, q.Epoch, q.Slots)
		r.val = v
	case coord.Take:
		var v coord.Taken
		v, r.err = s.r.Take(now, q)
		r.val = v
		if r.err == nil && v.Wait == 0 {
			w.oracle.rated(q.Key)
		}
	default:
		panic(fmt.Sprintf("sim: no such script %T", req))
	}
	if w.chance(0.2) {
		s.stale = s.r.Clone() // the replica caught up
	}
	return r
}

type (
	clearGate struct{ key coord.Key }
	holdLease struct{ coord.Hold }
	dropLease struct{ coord.Hold }
	leave     struct{ member coord.Member }
)
