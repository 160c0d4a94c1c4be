// Package fair decides which run a free worker serves next. It is pure arithmetic: no clock, no store, no randomness.
//
// The rule: the run with the lowest occupied/allowed, compared as exact rationals; among equals the one served longest ago;
// among those the smaller id. Ties by id alone starve late runs for ever; ties to the longest unserved bound the wait: of R
// runs, one that stays eligible with nothing occupied is picked within R-1 picks.
package fair

import (
	"math/bits"
	"time"
)

// Run is what the decision needs to know of a run.
type Run struct {
	ID       int64
	Occupied int       // seats taken, all nodes; at least 0
	Allowed  int       // seats allowed; 0 or less counts as unlimited, which compares as occupied/MaxAllowed
	Served   time.Time // when a worker last picked it, its creation at first
}

// MaxAllowed stands for an unlimited allowance in comparisons.
const MaxAllowed = 1 << 30

// Less orders runs: the one to be served first comes first. It is a strict total order over runs of different ids.
func Less(a, b Run) bool {
	if c := compareRatio(a.Occupied, a.Allowed, b.Occupied, b.Allowed); c != 0 {
		return c < 0
	}
	if c := a.Served.Compare(b.Served); c != 0 {
		return c < 0
	}
	return a.ID < b.ID
}

// Next returns the index of the run to serve among those with a free seat, -1 when there is none.
func Next(runs []Run) int {
	best := -1
	for i, r := range runs {
		if r.Allowed > 0 && r.Occupied >= r.Allowed {
			continue
		}
		if best < 0 || Less(r, runs[best]) {
			best = i
		}
	}
	return best
}

// compareRatio compares a/b with c/d exactly, by 128-bit cross products.
func compareRatio(a, b, c, d int) int {
	h1, l1 := bits.Mul64(uint64(max(a, 0)), uint64(allowance(d)))
	h2, l2 := bits.Mul64(uint64(max(c, 0)), uint64(allowance(b)))
	switch {
	case h1 != h2:
		if h1 < h2 {
			return -1
		}
		return 1
	case l1 < l2:
		return -1
	case l1 > l2:
		return 1
	}
	return 0
}

func allowance(n int) int {
	if n <= 0 {
		return MaxAllowed
	}
	return n
}
