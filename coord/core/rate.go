package core

import (
	"time"

	"deepcrawl/coord"
)

// RateRow is a bucket of the generic cell rate algorithm (ITU-T I.371): TAT is the theoretical arrival time.
type RateRow struct {
	Epoch coord.Epoch
	TAT   coord.Micros
}

// TakeLate is how much later than it can have been sent a Take is still executed: its grant would be void.
const TakeLate = time.Second

// DecideTake takes one request. ok tells whether the row exists. The row is always to be stored: an empty bucket fills from
// the first time anybody asks. ErrStale where the clock shows a time it cannot show if the call was fast and it did not step.
func DecideTake(off Off, row RateRow, ok bool, epoch coord.Epoch, now, bound coord.Micros, l coord.RateLimit) (RateRow, time.Duration, error) {
	if bound > 0 && now > bound && off.on(RRateBound) {
		if now > bound+micros(TakeLate) {
			return row, 0, stale("the call came late, or the clock stepped by %d us", now-bound)
		}
		now = bound
	}
	interval := Interval(l)
	span := interval * coord.Micros(l.Burst)
	if !ok || row.Epoch != epoch && off.on(RRateEpoch) {
		row = RateRow{Epoch: epoch, TAT: now + span}
		if !off.on(RRateEmpty) {
			row.TAT = now
		}
	}
	row.Epoch = epoch
	base := max(row.TAT, now)
	if wait := base + interval - span - now; wait > 0 {
		return row, time.Duration(wait) * time.Microsecond, nil
	}
	row.TAT = base + interval
	return row, 0, nil
}

// Interval is the time between two requests at the limit, rounded up to a microsecond.
func Interval(l coord.RateLimit) coord.Micros {
	d := 1e6 / l.PerSecond
	if d >= 365*24*3600*1e6 {
		return 365 * 24 * 3600 * 1e6
	}
	i := coord.Micros(d)
	if float64(i) < d {
		i++
	}
	return max(i, 1)
}
