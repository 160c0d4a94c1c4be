package coordtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"deepcrawl/coord"
)

// Faults are chances, each in [0, 1], that a call fails in this way.
type Faults struct {
	Before float64       // it is not made, and fails
	After  float64       // it is made, and its answer is lost
	Hang   float64       // its answer is lost, and it is made up to Late afterwards
	Late   time.Duration // see Hang
	Slow   float64       // it takes up to Late/4
	// Flap: now and then all calls fail for up to FlapFor.
	Flap    float64
	FlapFor time.Duration
}

// DefaultFaults are what the storm uses.
func DefaultFaults() Faults {
	return Faults{Before: 0.03, After: 0.03, Hang: 0.02, Late: 2 * time.Second, Slow: 0.03, Flap: 0.01, FlapFor: 1500 * time.Millisecond}
}

// Faulty wraps a backend with seeded faults. What is made late is made although its caller has given up long ago.
func Faulty(c coord.Coord, seed uint64, f Faults) coord.Coord {
	w := &faulty{c: c, f: f, rng: rand.New(rand.NewPCG(seed, 0x6661756c7479))}
	if second, ok := c.(coord.Second); ok {
		return &faultySecond{faulty: w, second: second}
	}
	return w
}

// faultySecond keeps the Redis of what it wraps.
type faultySecond struct {
	*faulty
	second coord.Second
}

func (f *faultySecond) Probe(ctx context.Context) (coord.Probed, error) {
	return pass(ctx, f.faulty, f.second.Probe)
}

func (f *faultySecond) Seed(ctx context.Context, e coord.Epoch, carried []coord.Slot) (coord.Seeded, error) {
	return pass(ctx, f.faulty, func(ctx context.Context) (coord.Seeded, error) { return f.second.Seed(ctx, e, carried) })
}

func (f *faultySecond) Reap(ctx context.Context, v coord.View, live []coord.Member, before coord.Incarnation) (int, error) {
	return pass(ctx, f.faulty, func(ctx context.Context) (int, error) { return f.second.Reap(ctx, v, live, before) })
}

type faulty struct {
	c coord.Coord
	f Faults

	mu   sync.Mutex
	rng  *rand.Rand
	down time.Time
}

type fate int

const (
	fateWell fate = iota
	fateBefore
	fateAfter
	fateHang
)

func (f *faulty) draw() (fate, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if now.Before(f.down) {
		return fateBefore, 0
	}
	if f.rng.Float64() < f.f.Flap {
		f.down = now.Add(time.Duration(f.rng.Float64() * float64(f.f.FlapFor)))
		return fateBefore, 0
	}
	wait := time.Duration(f.rng.Float64() * float64(f.f.Late))
	x := f.rng.Float64()
	switch {
	case x < f.f.Before:
		return fateBefore, 0
	case x < f.f.Before+f.f.After:
		return fateAfter, 0
	case x < f.f.Before+f.f.After+f.f.Hang:
		return fateHang, wait
	case x < f.f.Before+f.f.After+f.f.Hang+f.f.Slow:
		return fateWell, wait / 4
	}
	return fateWell, 0
}

func pass[T any](ctx context.Context, f *faulty, call func(context.Context) (T, error)) (T, error) {
	var none T
	kind, wait := f.draw()
	switch kind {
	case fateBefore:
		return none, fmt.Errorf("injected: %w", coord.ErrUnavailable)
	case fateAfter:
		_, _ = call(context.WithoutCancel(ctx))
		return none, fmt.Errorf("injected: %w", coord.ErrUnknown)
	case fateHang:
		late := context.WithoutCancel(ctx)
		time.AfterFunc(wait, func() { _, _ = call(late) })
		<-ctx.Done()
		return none, fmt.Errorf("injected: %w: %w", coord.ErrUnknown, ctx.Err())
	}
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return none, fmt.Errorf("injected: %w: %w", coord.ErrUnavailable, ctx.Err())
		}
	}
	return call(ctx)
}

func passErr(ctx context.Context, f *faulty, call func(context.Context) error) error {
	_, err := pass(ctx, f, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func (f *faulty) Register(ctx context.Context, r coord.Registration) (coord.Registered, error) {
	return f.c.Register(ctx, r)
}

func (f *faulty) Beat(ctx context.Context, b coord.Beat) (coord.BeatReply, error) {
	return pass(ctx, f, func(ctx context.Context) (coord.BeatReply, error) { return f.c.Beat(ctx, b) })
}

func (f *faulty) Bury(ctx context.Context, b coord.Burial) (bool, error) {
	return pass(ctx, f, func(ctx context.Context) (bool, error) { return f.c.Bury(ctx, b) })
}

func (f *faulty) Leave(ctx context.Context, m coord.Member) error { return f.c.Leave(ctx, m) }

func (f *faulty) Sessions(ctx context.Context) ([]coord.SessionInfo, error) { return f.c.Sessions(ctx) }

func (f *faulty) Grant(ctx context.Context, a coord.Ask) (coord.Granted, error) {
	return pass(ctx, f, func(ctx context.Context) (coord.Granted, error) { return f.c.Grant(ctx, a) })
}

func (f *faulty) Return(ctx context.Context, r coord.Return) error {
	return passErr(ctx, f, func(ctx context.Context) error { return f.c.Return(ctx, r) })
}

func (f *faulty) Reconcile(ctx context.Context, r coord.Reconcile) (coord.Reconciled, error) {
	return pass(ctx, f, func(ctx context.Context) (coord.Reconciled, error) { return f.c.Reconcile(ctx, r) })
}

func (f *faulty) Occupied(ctx context.Context, k coord.Key) ([]coord.Slot, error) {
	return f.c.Occupied(ctx, k)
}

func (f *faulty) Pause(ctx context.Context, w coord.GateWrite) (coord.Gate, error) {
	return pass(ctx, f, func(ctx context.Context) (coord.Gate, error) { return f.c.Pause(ctx, w) })
}

func (f *faulty) Clear(ctx context.Context, k coord.Key) (coord.Gate, error) {
	return pass(ctx, f, func(ctx context.Context) (coord.Gate, error) { return f.c.Clear(ctx, k) })
}

func (f *faulty) Gates(ctx context.Context) ([]coord.Gate, error) { return f.c.Gates(ctx) }

func (f *faulty) Take(ctx context.Context, t coord.Take) (coord.Taken, error) {
	return pass(ctx, f, func(ctx context.Context) (coord.Taken, error) { return f.c.Take(ctx, t) })
}

func (f *faulty) Hold(ctx context.Context, h coord.Hold) (coord.Held, error) {
	return pass(ctx, f, func(ctx context.Context) (coord.Held, error) { return f.c.Hold(ctx, h) })
}

func (f *faulty) Drop(ctx context.Context, h coord.Hold) error {
	return passErr(ctx, f, func(ctx context.Context) error { return f.c.Drop(ctx, h) })
}

func (f *faulty) Holder(ctx context.Context, name string) (coord.Held, error) {
	return f.c.Holder(ctx, name)
}

func (f *faulty) Authority(ctx context.Context) (coord.Authority, coord.Ident, error) {
	return f.c.Authority(ctx)
}

func (f *faulty) Drain(ctx context.Context, d coord.Drain) (coord.Authority, error) {
	return pass(ctx, f, func(ctx context.Context) (coord.Authority, error) { return f.c.Drain(ctx, d) })
}

func (f *faulty) Carried(ctx context.Context, e coord.Epoch) ([]coord.Slot, error) {
	return pass(ctx, f, func(ctx context.Context) ([]coord.Slot, error) { return f.c.Carried(ctx, e) })
}

func (f *faulty) Open(ctx context.Context, o coord.Open) (coord.Authority, error) {
	return pass(ctx, f, func(ctx context.Context) (coord.Authority, error) { return f.c.Open(ctx, o) })
}
