package core

import (
	"fmt"
	"maps"
	"slices"

	"deepcrawl/coord"
)

// Redis is what the Lua scripts do with a Redis, in memory: slots and rates of epochs the database has opened there. Each
// method is one script, at a time of its clock. The zero value with maps is a Redis that was never seeded.
type Redis struct {
	Off    Off
	Server coord.RedisIdent // RunID and ReplID are the server's; Stamp is of the last seed, 0 after a flush
	Guard  coord.Epoch      // of the last seed
	Epochs map[coord.Epoch]*RedisEpoch
}

// RedisEpoch is what is stored under an epoch's prefix.
type RedisEpoch struct {
	Slots []coord.Slot // by key and number
	Wants []Want
	Rates map[coord.Key]RateRow
}

// NewRedis is an empty Redis.
func NewRedis(off Off, runID, replID string) *Redis {
	r := &Redis{Off: off, Server: coord.RedisIdent{RunID: runID, ReplID: replID}}
	r.Flush()
	return r
}

// Flush is FLUSHALL.
func (r *Redis) Flush() {
	r.Server.Stamp, r.Guard, r.Epochs = 0, 0, map[coord.Epoch]*RedisEpoch{}
}

// Clone is a copy that shares nothing that changes.
func (r *Redis) Clone() *Redis {
	c := *r
	c.Epochs = make(map[coord.Epoch]*RedisEpoch, len(r.Epochs))
	for e, x := range r.Epochs {
		c.Epochs[e] = &RedisEpoch{Slots: slices.Clone(x.Slots), Wants: slices.Clone(x.Wants), Rates: maps.Clone(x.Rates)}
	}
	return &c
}

// Seed starts an epoch with the carried slots. now stamps the guard. ErrStale where the guard is not below e: the reply has
// it, and the next epoch must be above.
func (r *Redis) Seed(now coord.Micros, e coord.Epoch, carried []coord.Slot) (coord.RedisIdent, coord.Epoch, error) {
	if r.Guard >= e && r.Off.on(R10Guard) {
		return r.Server, r.Guard, fmt.Errorf("seed epoch %d: %w", e, stale("guard is at %d", r.Guard))
	}
	r.Guard = e
	r.Server.Stamp = max(r.Server.Stamp+1, uint64(now))
	seeded := &RedisEpoch{Rates: map[coord.Key]RateRow{}}
	if r.Off.on(R10Carry) {
		seeded.Slots = slices.Clone(carried)
		slices.SortFunc(seeded.Slots, SlotOrder)
	}
	r.Epochs = map[coord.Epoch]*RedisEpoch{e: seeded}
	return r.Server, e, nil
}

// check is what every script checks first.
func (r *Redis) check(now coord.Micros, v coord.View) (*RedisEpoch, error) {
	x := r.Epochs[v.Epoch]
	if x == nil && !r.Off.on(R4Epoch) {
		for _, any := range r.Epochs {
			x = any
		}
	}
	switch {
	case x == nil:
		return nil, stale("epoch %d is not here", v.Epoch)
	case v.Redis.Stamp != r.Server.Stamp && r.Off.on(R4Stamp):
		return nil, stale("stamp %d, expected %d", r.Server.Stamp, v.Redis.Stamp)
	case !v.Redis.Same(r.Server) && r.Off.on(R4RunID):
		return nil, stale("redis %s/%s, expected %s/%s", r.Server.RunID, r.Server.ReplID, v.Redis.RunID, v.Redis.ReplID)
	case now >= v.RedisUntil && r.Off.on(R4Until) && r.Off.on(R2ViewEnds):
		return nil, ended(now - v.RedisUntil)
	}
	return x, nil
}

// Grant decides an ask.
func (r *Redis) Grant(now coord.Micros, a coord.Ask) (coord.Granted, error) {
	x, err := r.check(now, a.View)
	if err != nil {
		return coord.Granted{}, fmt.Errorf("grant to %s: %w", a.Member, err)
	}
	keys := AskKeys(a)
	var slots []coord.Slot
	for _, s := range x.Slots {
		if slices.Contains(keys, s.Key) {
			slots = append(slots, s)
		}
	}
	g := DecideGrant(r.Off, a.View.Epoch, now, a, slots, x.Wants)
	x.Slots = append(x.Slots, g.Insert...)
	slices.SortFunc(x.Slots, SlotOrder)
	x.Wants = slices.DeleteFunc(x.Wants, func(w Want) bool {
		return w.Member == a.Member && slices.Contains(g.Settled, w.Key) || !w.Fresh(now)
	})
	for _, w := range g.Wanted {
		x.Wants = PutWant(x.Wants, w)
	}
	return g.Reply, nil
}

// Occupied lists the slots of the epoch seeded last.
func (r *Redis) Occupied() []coord.Slot {
	if x := r.Epochs[r.Guard]; x != nil {
		return slices.Clone(x.Slots)
	}
	return nil
}

// Return removes slots, in the epoch of the view.
func (r *Redis) Return(q coord.Return) {
	if x := r.Epochs[q.View.Epoch]; x != nil {
		x.Slots = slices.DeleteFunc(x.Slots, func(s coord.Slot) bool { return s.Member == q.Member && slices.Contains(q.Tokens, s.Token) })
	}
}

// Reconcile removes what nobody knows.
func (r *Redis) Reconcile(now coord.Micros, q coord.Reconcile) (coord.Reconciled, error) {
	x, err := r.check(now, q.View)
	if err != nil {
		return coord.Reconciled{}, fmt.Errorf("reconcile %s: %w", q.Member, err)
	}
	var own []coord.Slot
	for _, s := range x.Slots {
		if s.Member == q.Member {
			own = append(own, s)
		}
	}
	out := DecideReconcile(r.Off, q.View.Epoch, now, q, own, x.Slots, x.Wants)
	x.Slots = slices.DeleteFunc(x.Slots, func(s coord.Slot) bool { return slices.Contains(out.Delete, s) })
	return out.Reply, nil
}

// Reap removes what ended sessions had.
func (r *Redis) Reap(now coord.Micros, v coord.View, live []coord.Member, before coord.Incarnation) (int, error) {
	x, err := r.check(now, v)
	if err != nil {
		return 0, fmt.Errorf("reap: %w", err)
	}
	had := len(x.Slots)
	ended := func(m coord.Member) bool { return m.Incarnation < before && !slices.Contains(live, m) }
	x.Slots = slices.DeleteFunc(x.Slots, func(s coord.Slot) bool { return ended(s.Member) })
	x.Wants = slices.DeleteFunc(x.Wants, func(w Want) bool { return ended(w.Member) })
	return had - len(x.Slots), nil
}

// Take takes from a bucket.
func (r *Redis) Take(now coord.Micros, t coord.Take) (coord.Taken, error) {
	x, err := r.check(now, t.View)
	if err != nil {
		return coord.Taken{}, fmt.Errorf("take from %s: %w", t.Key, err)
	}
	row, ok := x.Rates[t.Key]
	row, wait, err := DecideTake(r.Off, row, ok, t.View.Epoch, now, t.ClockBound, t.Limit)
	if err != nil {
		return coord.Taken{}, fmt.Errorf("take from %s: %w", t.Key, err)
	}
	x.Rates[t.Key] = row
	return coord.Taken{Epoch: t.View.Epoch, Wait: wait}, nil
}
