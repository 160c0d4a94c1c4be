// Package failover coordinates through a database with a Redis beside it. The authority, the roster, the gates and the leases are
// with the database; slots and rates are in Redis while the authority's mode is redis, and in the database otherwise. Which of the
// two it is says the view that comes with each call; which it becomes decide the sessions together (coord/core), so a Redis that
// dies, restarts, is emptied, frozen or cut off moves nothing but the place where the next slot is granted.
//
// A Redis that is not reached is never an error here, not even at the start: the cluster goes through the database until every
// session has seen one stable Redis for a while.
package failover

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"deepcrawl/coord"
)

// Redis is what is needed of one: rediscoord.Second.
type Redis interface {
	coord.Second
	// Grant, Return, Reconcile and Take are those of coord.Slots and coord.Rate, for views in mode redis.
	Grant(ctx context.Context, a coord.Ask) (coord.Granted, error)
	Return(ctx context.Context, r coord.Return) error
	Reconcile(ctx context.Context, r coord.Reconcile) (coord.Reconciled, error)
	Take(ctx context.Context, t coord.Take) (coord.Taken, error)
	// Occupied lists the slots of an epoch, of all keys when key is empty.
	Occupied(ctx context.Context, e coord.Epoch, key coord.Key) ([]coord.Slot, error)
	// Forget frees what a session had that has ended.
	Forget(ctx context.Context, m coord.Member) (int, error)
}

// Coord is an authority in a database whose slots and rates can move to a Redis. What is not overridden is the database's.
type Coord struct {
	coord.Coord
	redis Redis
	log   *slog.Logger

	mu      sync.Mutex
	probed  bool
	trouble string // why Redis is not used, as of the last probe
}

var (
	_ coord.Coord  = (*Coord)(nil)
	_ coord.Second = (*Coord)(nil)
)

// New puts redis beside db. log gets one line when Redis begins or ceases to be usable; nil discards it.
func New(db coord.Coord, redis Redis, log *slog.Logger) *Coord {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Coord{Coord: db, redis: redis, log: log}
}

// forgetTime bounds what a burial or a leaving waits for Redis.
const forgetTime = 500 * time.Millisecond

// Grant implements coord.Slots.
func (c *Coord) Grant(ctx context.Context, a coord.Ask) (coord.Granted, error) {
	if a.View.Mode == coord.ModeRedis {
		return c.redis.Grant(ctx, a)
	}
	return c.Coord.Grant(ctx, a)
}

// Return implements coord.Slots.
func (c *Coord) Return(ctx context.Context, r coord.Return) error {
	if r.View.Mode == coord.ModeRedis {
		return c.redis.Return(ctx, r)
	}
	return c.Coord.Return(ctx, r)
}

// Reconcile implements coord.Slots.
func (c *Coord) Reconcile(ctx context.Context, r coord.Reconcile) (coord.Reconciled, error) {
	if r.View.Mode == coord.ModeRedis {
		return c.redis.Reconcile(ctx, r)
	}
	return c.Coord.Reconcile(ctx, r)
}

// Take implements coord.Rate.
func (c *Coord) Take(ctx context.Context, t coord.Take) (coord.Taken, error) {
	if t.View.Mode == coord.ModeRedis {
		return c.redis.Take(ctx, t)
	}
	return c.Coord.Take(ctx, t)
}

// Occupied implements coord.Slots: the slots of where they are.
func (c *Coord) Occupied(ctx context.Context, key coord.Key) ([]coord.Slot, error) {
	a, _, err := c.Authority(ctx)
	if err != nil {
		return nil, err
	}
	if a.Mode == coord.ModeRedis {
		return c.redis.Occupied(ctx, a.Epoch, key)
	}
	return c.Coord.Occupied(ctx, key)
}

// Sessions implements coord.Roster. In mode redis the numbers of slots are Redis's, and zero while it is not reached.
func (c *Coord) Sessions(ctx context.Context) ([]coord.SessionInfo, error) {
	all, err := c.Coord.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	a, _, err := c.Authority(ctx)
	if err != nil {
		return nil, err
	}
	if a.Mode != coord.ModeRedis || c.Trouble() != "" {
		return all, nil
	}
	short, cancel := context.WithTimeout(ctx, 2*forgetTime)
	defer cancel()
	slots, err := c.redis.Occupied(short, a.Epoch, "")
	if err != nil {
		c.log.Debug("slots are not counted", "err", err)
		return all, nil
	}
	n := map[coord.Member]int{}
	for _, s := range slots {
		n[s.Member]++
	}
	for i := range all {
		all[i].Slots += n[all[i].Member]
	}
	return all, nil
}

// Bury implements coord.Roster.
func (c *Coord) Bury(ctx context.Context, b coord.Burial) (bool, error) {
	dead, err := c.Coord.Bury(ctx, b)
	if dead && err == nil {
		c.forget(ctx, b.Member)
	}
	return dead, err
}

// Leave implements coord.Roster.
func (c *Coord) Leave(ctx context.Context, m coord.Member) error {
	if err := c.Coord.Leave(ctx, m); err != nil {
		return err
	}
	c.forget(ctx, m)
	return nil
}

// forget frees in Redis what an ended session had there. Where that fails, others reap it.
func (c *Coord) forget(ctx context.Context, m coord.Member) {
	if c.Trouble() != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, forgetTime)
	defer cancel()
	if _, err := c.redis.Forget(ctx, m); err != nil {
		c.log.Debug("slots stay until others reap them", "err", err)
	}
}

// Trouble is why Redis was not usable at the last probe; empty when it was, or was not probed yet.
func (c *Coord) Trouble() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.trouble
}

// Probe implements coord.Second.
func (c *Coord) Probe(ctx context.Context) (coord.Probed, error) {
	p, err := c.redis.Probe(ctx)
	trouble := ""
	switch {
	case err != nil:
		trouble = err.Error()
	case !p.Eligible:
		trouble = "it may not be used"
	}
	c.mu.Lock()
	first, was := !c.probed, c.trouble
	c.probed, c.trouble = true, trouble
	c.mu.Unlock()
	switch {
	case trouble != "" && (first || was == ""):
		c.log.Warn("redis is not usable; what it granted is granted by the database after a switch", "err", errors.New(trouble))
	case trouble == "" && was != "":
		c.log.Info("redis is usable again")
	}
	return p, err
}

// Seed implements coord.Second.
func (c *Coord) Seed(ctx context.Context, e coord.Epoch, carried []coord.Slot) (coord.Seeded, error) {
	return c.redis.Seed(ctx, e, carried)
}

// Reap implements coord.Second.
func (c *Coord) Reap(ctx context.Context, v coord.View, live []coord.Member, before coord.Incarnation) (int, error) {
	return c.redis.Reap(ctx, v, live, before)
}
