package fair_test

import (
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

// A run that stays eligible with nothing occupied waits for at most R-1 picks of others (PROTOCOL, Fairness).
func TestARunAtZeroIsPickedWithinRMinusOnePicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "runs")
		runs := make([]fair.Run, n)
		for i := range runs {
			runs[i] = genRun(int64(i+1)).Draw(t, "run")
		}
		victim := rapid.IntRange(0, n-1).Draw(t, "victim")
		runs[victim].Occupied = 0
		now := time.Unix(10, 0)
		for picks := 0; ; picks++ {
			i := fair.Next(runs)
			if i == victim {
				return
			}
			if picks >= n-1 {
				t.Fatalf("run %d not picked after %d picks of %d runs", victim, picks, n)
			}
			now = now.Add(time.Millisecond)
			runs[i].Served = now
			runs[i].Occupied++
			if rapid.Bool().Draw(t, "someone leaves") {
				j := rapid.IntRange(0, n-1).Draw(t, "who")
				if runs[j].Occupied > 0 {
					runs[j].Occupied--
				}
			}
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
