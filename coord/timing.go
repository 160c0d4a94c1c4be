package coord

import (
	"fmt"
	"time"
)

// Timing are the constants of the protocol. They are settings of tests and of the soak; an operator sets only Death.
type Timing struct {
	Beat       time.Duration // between beats
	View       time.Duration // E: how long a beat's view is good, from its start
	Request    time.Duration // M: hard deadline of a request
	Pause      time.Duration // P: longest pause of a process that costs nothing
	Death      time.Duration // T: silence after which a session is dead
	LeaseTTL   time.Duration // of leader leases
	RateVoid   time.Duration // a rate grant may start a request for this long
	AbortGrace time.Duration // from aborting a request to reusing its slot; part of Request
	KeepIdle   time.Duration // an idle slot is kept this long for the next request

	// Of the ways between Redis and the database (rules 11 and 12); 0 is production's: 5 s, 60 s, 30 s, 5 min.
	Fall        time.Duration // most sessions without Redis for this long: the cluster leaves it
	Stable      time.Duration // all sessions with one Redis for this long: the cluster may return
	ReturnEvery time.Duration // between attempts to return
	ReturnPause time.Duration // from a fallback to the return, doubling up to six times that while fallbacks repeat
}

// DefaultTiming is production's.
func DefaultTiming() Timing {
	return Timing{
		Beat: 2 * time.Second, View: 20 * time.Second, Request: 60 * time.Second, Pause: 10 * time.Second,
		Death: 120 * time.Second, LeaseTTL: 90 * time.Second, RateVoid: time.Second, AbortGrace: time.Second,
		KeepIdle: 2 * time.Second,
	}
}

// SoakTiming is what the soak uses, so that deaths take seconds.
func SoakTiming() Timing {
	t := DefaultTiming()
	t.Beat, t.View, t.Request, t.Pause, t.Death = time.Second, 4*time.Second, 5*time.Second, 3*time.Second, 15*time.Second
	t.LeaseTTL = 12 * time.Second
	return t
}

// Abort is when the client cuts off a request, counted from its start, so that it has ended at Request.
func (t Timing) Abort() time.Duration { return t.Request - t.AbortGrace }

// MinDeath is the smallest Death under which a dead session's requests have certainly ended:
// (View + Request) x 1.1 + Pause + 2 s (5 % clock error on each side).
func (t Timing) MinDeath() time.Duration {
	return (t.View+t.Request)*11/10 + t.Pause + 2*time.Second
}

// Check returns ErrTiming, naming the field and the smallest allowed value.
func (t Timing) Check() error {
	for _, f := range []struct {
		name string
		d    time.Duration
		min  time.Duration
	}{
		{"beat", t.Beat, 10 * time.Millisecond},
		{"view", t.View, 2 * t.Beat},
		{"request deadline", t.Request, t.AbortGrace + time.Second},
		{"pause", t.Pause, 0},
		{"lease", t.LeaseTTL, time.Second},
		{"rate grant", t.RateVoid, 10 * time.Millisecond},
		{"abort grace", t.AbortGrace, 0},
		{"idle slot", t.KeepIdle, 0},
		{"reclaim time", t.Death, t.MinDeath()},
	} {
		if f.d < f.min {
			return fmt.Errorf("%w: %s is %v, the smallest allowed is %v", ErrTiming, f.name, f.d, f.min)
		}
	}
	return nil
}

// Clock is the time of one process. Now returns the wall clock with a monotonic reading, as time.Now does; differences of
// two readings are monotonic.
type Clock interface {
	Now() time.Time
	// NewTimer returns a timer that sends once on its channel after d.
	NewTimer(d time.Duration) *time.Timer
}

// SystemClock is the machine's clock. Under testing/synctest it is the bubble's.
type SystemClock struct{}

// Now is time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// NewTimer is time.NewTimer.
func (SystemClock) NewTimer(d time.Duration) *time.Timer { return time.NewTimer(d) }

// SkewedClock is a clock that is wrong: it stood Offset off when it was made, and runs too fast by the share Drift since. For the
// soak and for tests.
type SkewedClock struct {
	began  time.Time
	offset time.Duration
	drift  float64
}

// NewSkewedClock starts one.
func NewSkewedClock(offset time.Duration, drift float64) *SkewedClock {
	return &SkewedClock{began: time.Now(), offset: offset, drift: drift}
}

// Now is the wrong time.
func (c *SkewedClock) Now() time.Time {
	past := time.Since(c.began)
	return c.began.Add(c.offset + past + time.Duration(float64(past)*c.drift))
}

// NewTimer returns a timer that fires when the wrong clock has gone on by d.
func (c *SkewedClock) NewTimer(d time.Duration) *time.Timer {
	return time.NewTimer(time.Duration(float64(d) / (1 + c.drift)))
}
