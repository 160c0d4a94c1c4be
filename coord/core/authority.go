package core

import (
	"fmt"

	"deepcrawl/coord"
)

// CheckView is what every grant in the database checks: the view's epoch, mode and database are today's, the server is the
// row's, and the view has not ended on the server's clock. ErrStale.
func CheckView(off Off, a coord.Authority, server coord.Ident, v coord.View, now coord.Micros) error {
	switch {
	case a.Epoch != v.Epoch:
		return stale("epoch %d, today's is %d", v.Epoch, a.Epoch)
	case a.Mode != v.Mode && off.on(R8NoGrant), a.Mode != coord.ModeDB && off.on(R8NoGrant):
		return stale("mode %s, today's is %s", v.Mode, a.Mode)
	case off.on(R4Ident) && (a.DB != server || v.DB != server):
		return stale("database %q, expected %q", server.System, v.DB.System)
	case now >= v.Until && off.on(R4Until) && off.on(R2ViewEnds):
		return ended(now - v.Until)
	}
	return nil
}

// FirstAuthority is the row of a new cluster.
func FirstAuthority(server coord.Ident, now coord.Micros) coord.Authority {
	return coord.Authority{Epoch: 1, Mode: coord.ModeDB, DB: server, ChangedAt: now, Reason: "first start"}
}

// CheckHold is what taking or renewing a lease checks before the lease itself. It goes on during a drain: leases never leave
// the database. ErrFenced, ErrStale, ErrNoView.
func CheckHold(off Off, a coord.Authority, server coord.Ident, row SessionRow, ok bool, h coord.Hold, now coord.Micros) error {
	switch {
	case !ok || row.State != coord.Live:
		return fmt.Errorf("%s is not live: %w", h.Member, coord.ErrFenced)
	case a.DB != server && off.on(R4Ident):
		return stale("database %q, expected %q", server.System, a.DB.System)
	case now >= h.View.Until && off.on(R4Until) && off.on(R2ViewEnds):
		return ended(now - h.View.Until)
	}
	return nil
}

// SessionRow is a session as stored.
type SessionRow struct {
	Role     coord.Role
	Machine  string
	LockFile string
	Facts    map[string]string
	Seq      uint64
	BeatAt   coord.Micros
	EndedAt  coord.Micros
	Acked    coord.Epoch
	State    coord.State
	Redis    coord.Health
}

// CheckSession is what grants in the database check of the session's own row, under its lock. ErrFenced, ErrStale.
func CheckSession(off Off, row SessionRow, ok bool, e coord.Epoch) error {
	if !off.on(R4Session) {
		return nil
	}
	if !ok {
		return fmt.Errorf("session has no row: %w", coord.ErrFenced)
	}
	if row.State != coord.Live {
		return fmt.Errorf("session is %s: %w", row.State, coord.ErrFenced)
	}
	if row.Acked != e {
		return stale("session acked %d, today's epoch is %d", row.Acked, e)
	}
	return nil
}

// CheckBeat decides whether a beat counts. ErrFenced.
func CheckBeat(off Off, row SessionRow, ok bool, seq uint64) error {
	if !off.on(R14Fence) {
		return nil
	}
	switch {
	case !ok:
		return fmt.Errorf("session has no row: %w", coord.ErrFenced)
	case row.State != coord.Live:
		return fmt.Errorf("session is %s: %w", row.State, coord.ErrFenced)
	case row.Seq >= seq:
		return fmt.Errorf("beat %d after beat %d of the same session: %w", seq, row.Seq, coord.ErrFenced)
	}
	return nil
}

// CheckAck decides whether an ack takes effect: only for today's epoch, and only once.
func CheckAck(off Off, a coord.Authority, row SessionRow, ack coord.Epoch) bool {
	return ack == a.Epoch && (row.Acked < ack || !off.on(R7Once))
}

// CarrySlots are the rows that replace a session's own at its ack. others are the recorded slots of other sessions of the
// same keys. No token is ever left out: where its number is taken, which takes a fault nobody detected, it gets the next.
func CarrySlots(m coord.Member, e coord.Epoch, carried, others []coord.Slot) []coord.Slot {
	out := make([]coord.Slot, 0, len(carried))
	for _, s := range carried {
		s.Member, s.Epoch = m, e
		for taken(s.Key, s.N, others) || taken(s.Key, s.N, out) {
			s.N++
		}
		out = append(out, s)
	}
	return out
}

func taken(k coord.Key, n int, slots []coord.Slot) bool {
	for _, s := range slots {
		if s.Key == k && s.N == n {
			return true
		}
	}
	return false
}

// LostEpochs is by how much the epoch rises at least where commits may be lost, beside the one above all that is known: an epoch
// may have been begun and used by sessions that are all dead, in commits that are lost, and must not be begun again. It rises by
// the milliseconds since the row was changed as well: what was begun after the surviving history, even in other losses, took
// longer.
const LostEpochs = 1000

func lostEpochs(a coord.Authority, now coord.Micros) coord.Epoch {
	return LostEpochs + coord.Epoch(max(now-a.ChangedAt, 0)/1000)
}

// DecideDrain enters the next drain. highest is the greatest epoch any session's row has acked. ErrStale.
func DecideDrain(off Off, a coord.Authority, server coord.Ident, highest coord.Epoch, d coord.Drain, now coord.Micros) (coord.Authority, error) {
	if a.Epoch != d.From {
		return a, stale("drain from %d, today's epoch is %d", d.From, a.Epoch)
	}
	if !d.NewIdent && a.DB != server && off.on(R4Ident) {
		return a, stale("database %q, expected %q", server.System, a.DB.System)
	}
	next := a
	next.Epoch = a.Epoch + 1
	if off.on(R13Seen) {
		next.Epoch = max(a.Epoch, d.Seen, highest) + 1
	}
	lost := d.Lost || d.NewIdent && (a.DB.System != server.System || a.DB.Lossy || server.Lossy)
	if lost && off.on(R13Seen) {
		next.Epoch += lostEpochs(a, now)
	}
	next.Mode, next.Target, next.Redis = coord.ModeDrain, d.Target, coord.RedisIdent{}
	if !off.on(R1Drain) && d.Target == coord.ModeDB {
		next.Mode = coord.ModeDB
	}
	next.ChangedAt, next.Reason = now, d.Reason
	if d.NewIdent {
		next.DB = server
	}
	if lost && off.on(R13Hold) {
		next.HoldUntil = max(a.HoldUntil, now+micros(d.Hold))
		if d.NewIdent && a.DB.System != server.System {
			next.HoldUntil = now + micros(d.Hold) // the old one was on another clock
		}
	}
	if d.Fall {
		if now-a.FellAt > micros(fallMemory) {
			next.Falls = 0
		}
		next.Falls++
		next.FellAt = now
	}
	switch d.Pin {
	case coord.ModeDB:
		next.Pin = coord.ModeDB
	case coord.ModeRedis:
		next.Pin = ""
	}
	return next, nil
}

// CheckBarrier is nil when the drain of epoch e may end: every live session has acked it, and the hold is over. ErrStale,
// ErrWaiting.
func CheckBarrier(off Off, a coord.Authority, server coord.Ident, e coord.Epoch, lowest coord.Epoch, anyLive bool, now coord.Micros) error {
	switch {
	case a.Epoch != e || a.Mode != coord.ModeDrain:
		return stale("end of drain %d, today is %s %d", e, a.Mode, a.Epoch)
	case a.DB != server && off.on(R4Ident):
		return stale("database %q, expected %q", server.System, a.DB.System)
	case anyLive && lowest < e && off.on(R9Barrier):
		return fmt.Errorf("a session has acked %d of %d only: %w", lowest, e, coord.ErrWaiting)
	case now < a.HoldUntil && off.on(R13Hold):
		return fmt.Errorf("commits were lost, %d us to go: %w", a.HoldUntil-now, coord.ErrWaiting)
	}
	return nil
}

// DecideOpen ends a drain whose barrier was checked.
func DecideOpen(a coord.Authority, o coord.Open, now coord.Micros) coord.Authority {
	a.Mode, a.Target, a.Redis, a.ChangedAt, a.HoldUntil = o.Mode, "", o.Redis, now, 0
	return a
}

func stale(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, coord.ErrStale)...)
}

func ended(ago coord.Micros) error {
	return fmt.Errorf("view ended %d us ago: %w", ago, coord.ErrNoView)
}
