package fair_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deepcrawl/fair"
)

func genRun(id int64) *rapid.Generator[fair.Run] {
	return rapid.Custom(func(t *rapid.T) fair.Run {
		return fair.Run{
			ID:       id,
			Occupied: rapid.IntRange(0, 5).Draw(t, "occupied"),
			Allowed:  rapid.IntRange(0, 5).Draw(t, "allowed"),
			Served:   time.Unix(int64(rapid.IntRange(0, 3).Draw(t, "served")), 0),
		}
	})
}

func TestLessIsAStrictTotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := genRun(1).Draw(t, "a"), genRun(2).Draw(t, "b"), genRun(3).Draw(t, "c")
		if fair.Less(a, b) == fair.Less(b, a) {
			t.Fatalf("Less(%v, %v) = Less of the two swapped", a, b)
		}
		if fair.Less(a, b) && fair.Less(b, c) && !fair.Less(a, c) {
			t.Fatalf("not transitive: %v %v %v", a, b, c)
		}
	})
}

var seedFlag = flag.Uint64("seed", 0, "replay the random cases of this seed; 0 takes a new one")

// cases is how many random cases the bound is tried on.
const cases = 1_000_000

// A run that stays eligible with nothing occupied is picked within R-1 picks of others (PROTOCOL, Fairness), whatever happens to those
// others meanwhile: workers leave them, they are gated, end, lose or gain seats, and new ones come. Each case is small: the bound
// is broken by few runs where it is broken.
func TestARunAtZeroIsPickedWithinRMinusOnePicks(t *testing.T) {
	n := cases
	if testing.Short() {
		n /= 20
	}
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	picks, most := 0, 0
	for i := range n {
		size := 1 + rng.IntN(8)
		waited, err := boundCase(rng, size)
		if err != nil {
			t.Fatalf("seed %d, case %d: %v", seed, i, err)
		}
		picks += waited
		if size == 8 {
			most = max(most, waited)
		}
	}
	t.Logf("seed %d: %d cases, %d picks of others; of 8 runs up to %d before", seed, n, picks, most)
	if most != 7 {
		t.Errorf("of 8 runs at most %d went before: the bound was not reached, so not tried", most)
	}
}

// boundCase makes some runs and lets workers pick until the victim is, and returns how many picks others got.
func boundCase(rng *rand.Rand, size int) (picks int, err error) {
	now := time.Unix(100, 0)
	lastID := int64(0)
	fresh := func() fair.Run {
		lastID++
		r := fair.Run{ID: lastID, Allowed: rng.IntN(6), Served: now.Add(-time.Duration(rng.IntN(4)))}
		if rng.IntN(2) == 0 {
			r.Occupied = rng.IntN(4)
		}
		return r
	}
	runs := make([]fair.Run, size)
	for i := range runs {
		runs[i] = fresh()
	}
	// The victim is any of them; the ids of the others are on both sides of its own.
	victim := rng.IntN(size)
	runs[victim].Occupied = 0
	if rng.IntN(2) == 0 {
		runs[victim].Served = now // the last of all
	}
	id := runs[victim].ID
	gated := map[int64]bool{}
	for {
		shown := make([]fair.Run, 0, len(runs))
		for _, r := range runs {
			if !gated[r.ID] {
				shown = append(shown, r)
			}
		}
		i := fair.Next(shown)
		if i < 0 {
			return picks, errors.New("nothing was picked though a run has a free seat")
		}
		if shown[i].ID == id {
			return picks, nil
		}
		if picks++; picks > size-1 {
			return picks, fmt.Errorf("%d others of %d runs were picked before run %d: %+v", picks, size, id, runs)
		}
		now = now.Add(time.Duration(1 + rng.IntN(3)))
		at := slices.IndexFunc(runs, func(r fair.Run) bool { return r.ID == shown[i].ID })
		runs[at].Served = now
		runs[at].Occupied++
		for range rng.IntN(4) {
			k := rng.IntN(len(runs))
			other := &runs[k]
			if other.ID == id {
				other.Allowed = rng.IntN(6) // its tariff may change too
				continue
			}
			switch rng.IntN(6) {
			case 0, 1:
				other.Occupied = max(0, other.Occupied-1)
			case 2:
				other.Allowed = rng.IntN(6)
			case 3:
				gated[other.ID] = !gated[other.ID]
			case 4:
				runs = slices.Delete(runs, k, k+1)
			case 5:
				now = now.Add(1) // a new run's last served is its creation
				runs = append(runs, fair.Run{ID: lastID + 1, Allowed: rng.IntN(6), Served: now})
				lastID++
			}
		}
	}
}

// The key is compared as exact rationals: with a rational library as the oracle, up to the largest numbers.
func TestLessComparesExactRationals(t *testing.T) {
	numbers := rapid.OneOf(rapid.IntRange(0, 12), rapid.IntRange(math.MaxInt32-3, math.MaxInt32+3), rapid.IntRange(math.MaxInt-3, math.MaxInt), rapid.IntRange(0, math.MaxInt))
	rapid.Check(t, func(t *rapid.T) {
		a := fair.Run{ID: 1, Occupied: numbers.Draw(t, "a"), Allowed: numbers.Draw(t, "of a"), Served: time.Unix(2, 0)}
		b := fair.Run{ID: 2, Occupied: numbers.Draw(t, "b"), Allowed: numbers.Draw(t, "of b"), Served: time.Unix(1, 0)}
		ratio := func(r fair.Run) *big.Rat {
			if r.Allowed == 0 {
				r.Allowed = fair.MaxAllowed
			}
			return big.NewRat(int64(r.Occupied), int64(r.Allowed))
		}
		// b was served longer ago, so a comes first only where its share is lower.
		if got, want := fair.Less(a, b), ratio(a).Cmp(ratio(b)) < 0; got != want {
			t.Fatalf("Less(%+v, %+v): got %v, want %v", a, b, got, want)
		}
	})
}

func TestNextPrefersTheEmptiestQuota(t *testing.T) {
	at := time.Unix(0, 0)
	for _, c := range []struct {
		name string
		runs []fair.Run
		want int
	}{
		{"none", nil, -1},
		{"all full", []fair.Run{{1, 2, 2, at}}, -1},
		{"lowest share", []fair.Run{{1, 1, 2, at}, {2, 1, 3, at}, {3, 2, 3, at}}, 1},
		{"equal rationals go to the longest unserved", []fair.Run{{1, 1, 2, at.Add(1)}, {2, 2, 4, at}}, 1},
		{"unlimited compares low", []fair.Run{{1, 1, 100, at}, {2, 5, 0, at}}, 1},
		{"same time goes to the smaller id", []fair.Run{{7, 0, 1, at}, {3, 0, 1, at}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fair.Next(c.runs); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
