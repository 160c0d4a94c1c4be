// Package memcoord coordinates the sessions of one process in memory: the core's database behind a mutex. It is what tests
// use, and the yardstick the shared backends are measured against.
package memcoord

import (
	"context"
	"sync"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
	"deepcrawl/coord/session"
)

// Coord is an authority in memory.
type Coord struct {
	clock  coord.Clock
	origin time.Time
	mu     sync.Mutex
	db     *core.DB
}

var _ coord.Coord = (*Coord)(nil)

// New returns an empty authority on clock, the system's when nil.
func New(clock coord.Clock) *Coord {
	if clock == nil {
		clock = coord.SystemClock{}
	}
	return &Coord{clock: clock, origin: clock.Now(), db: core.NewDB(0, coord.Ident{System: "memory", Start: "0"})}
}

// Join starts a session on this authority; see session.Join.
func (c *Coord) Join(ctx context.Context, o coord.Options) (coord.Session, error) {
	if o.Clock == nil {
		o.Clock = c.clock
	}
	s, err := session.Join(ctx, c, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// now is monotonic: an authority in memory ends with its process, so its clock need not survive it.
func (c *Coord) now() coord.Micros {
	return coord.Micros(c.origin.UnixMicro() + c.clock.Now().Sub(c.origin).Microseconds())
}

// do runs one transaction.
func do[T any](ctx context.Context, c *Coord, fn func(d *core.DB, now coord.Micros) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return fn(c.db, c.now())
}

// Register implements coord.Roster.
func (c *Coord) Register(ctx context.Context, r coord.Registration) (coord.Registered, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.Registered, error) { return d.Register(now, r) })
}

// Beat implements coord.Roster.
func (c *Coord) Beat(ctx context.Context, b coord.Beat) (coord.BeatReply, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.BeatReply, error) { return d.Beat(now, b) })
}

// Bury implements coord.Roster.
func (c *Coord) Bury(ctx context.Context, b coord.Burial) (bool, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (bool, error) { return d.Bury(now, b) })
}

// Leave implements coord.Roster.
func (c *Coord) Leave(ctx context.Context, m coord.Member) error {
	_, err := do(ctx, c, func(d *core.DB, now coord.Micros) (struct{}, error) { return struct{}{}, d.Leave(now, m) })
	return err
}

// Sessions implements coord.Roster.
func (c *Coord) Sessions(ctx context.Context) ([]coord.SessionInfo, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) ([]coord.SessionInfo, error) { return d.List(now), nil })
}

// Grant implements coord.Slots.
func (c *Coord) Grant(ctx context.Context, a coord.Ask) (coord.Granted, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.Granted, error) { return d.Grant(now, a) })
}

// Return implements coord.Slots.
func (c *Coord) Return(ctx context.Context, r coord.Return) error {
	_, err := do(ctx, c, func(d *core.DB, _ coord.Micros) (struct{}, error) { d.Return(r); return struct{}{}, nil })
	return err
}

// Reconcile implements coord.Slots.
func (c *Coord) Reconcile(ctx context.Context, r coord.Reconcile) (coord.Reconciled, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.Reconciled, error) { return d.Reconcile(now, r) })
}

// Occupied implements coord.Slots.
func (c *Coord) Occupied(ctx context.Context, key coord.Key) ([]coord.Slot, error) {
	return do(ctx, c, func(d *core.DB, _ coord.Micros) ([]coord.Slot, error) { return d.Occupied(key), nil })
}

// Pause implements coord.Gatekeeper.
func (c *Coord) Pause(ctx context.Context, w coord.GateWrite) (coord.Gate, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.Gate, error) { return d.Pause(now, w), nil })
}

// Clear implements coord.Gatekeeper.
func (c *Coord) Clear(ctx context.Context, key coord.Key) (coord.Gate, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.Gate, error) { return d.Clear(now, key), nil })
}

// Gates implements coord.Gatekeeper.
func (c *Coord) Gates(ctx context.Context) ([]coord.Gate, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) ([]coord.Gate, error) { return d.Closed(now), nil })
}

// Take implements coord.Rate.
func (c *Coord) Take(ctx context.Context, t coord.Take) (coord.Taken, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.Taken, error) { return d.Take(now, t) })
}

// Hold implements coord.Leaser.
func (c *Coord) Hold(ctx context.Context, h coord.Hold) (coord.Held, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.Held, error) { return d.Hold(now, h) })
}

// Drop implements coord.Leaser.
func (c *Coord) Drop(ctx context.Context, h coord.Hold) error {
	_, err := do(ctx, c, func(d *core.DB, _ coord.Micros) (struct{}, error) { d.Drop(h); return struct{}{}, nil })
	return err
}

// Holder implements coord.Leaser.
func (c *Coord) Holder(ctx context.Context, name string) (coord.Held, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.Held, error) { return d.Holder(now, name), nil })
}

// Authority implements coord.Switch.
func (c *Coord) Authority(ctx context.Context) (coord.Authority, coord.Ident, error) {
	var id coord.Ident
	a, err := do(ctx, c, func(d *core.DB, _ coord.Micros) (coord.Authority, error) { id = d.Server; return d.Auth, nil })
	return a, id, err
}

// Drain implements coord.Switch.
func (c *Coord) Drain(ctx context.Context, r coord.Drain) (coord.Authority, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.Authority, error) { return d.Drain(now, r) })
}

// Carried implements coord.Switch.
func (c *Coord) Carried(ctx context.Context, e coord.Epoch) ([]coord.Slot, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) ([]coord.Slot, error) { return d.Carried(now, e) })
}

// Open implements coord.Switch.
func (c *Coord) Open(ctx context.Context, o coord.Open) (coord.Authority, error) {
	return do(ctx, c, func(d *core.DB, now coord.Micros) (coord.Authority, error) { return d.Open(now, o) })
}
