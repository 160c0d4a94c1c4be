package crawl

import (
	"slices"
	"testing"
	"time"

	"deepcrawl/storage"
)

func TestDwellIsNeverTooShort(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	var w dwell
	if _, ok := w.look(at(0), nil, 0); ok {
		t.Error("a look at nothing gave a wait")
	}
	// Run 1 was made at 0.5 s, between two looks; run 2 lost its worker some time between them, after a turn that began at -5 s.
	one, two := idleRun{1, at(0.5)}, idleRun{2, at(-5)}
	if d, ok := w.look(at(2), []idleRun{one, two}, 1); !ok || d != 1500*time.Millisecond {
		t.Errorf("got %v, %v: it was made 1.5 s before it was taken", d, ok)
	}
	if d, ok := w.look(at(4), []idleRun{two}, 2); !ok || d != 4*time.Second {
		t.Errorf("got %v, %v: it may have waited since the look before the one that saw it first, 4 s", d, ok)
	}
	// Another node served run 2 meanwhile: it is another wait.
	w.look(at(6), []idleRun{two}, 0)
	served := idleRun{2, at(7)}
	if d, ok := w.look(at(8), []idleRun{served}, 2); !ok || d != time.Second {
		t.Errorf("got %v, %v: its last turn began 1 s ago", d, ok)
	}
	// A run that has a worker is taken a second time.
	if _, ok := w.look(at(9), nil, 3); ok {
		t.Error("a run that did not wait gave a wait")
	}
	if f := w.figures(at(10)); f.N != 3 || f.Max != 4*time.Second || f.P50 != 1500*time.Millisecond {
		t.Errorf("got %+v", f)
	}
	if f := w.figures(at(100)); f.N != 0 {
		t.Errorf("got %+v after the window", f)
	}
}

func TestFairnessOfAWindow(t *testing.T) {
	served := func(all ...time.Duration) map[storage.RunID]time.Duration {
		m := map[storage.RunID]time.Duration{}
		for i, d := range all {
			m[storage.RunID(i+1)] = d
		}
		return m
	}
	now := time.Now()
	for _, c := range []struct {
		name    string
		served  map[storage.RunID]time.Duration
		jain    float64
		starved []storage.RunID
	}{
		{"nothing to compare", nil, 1, nil},
		{"nobody was served", served(0, 0), 1, nil},
		{"even", served(time.Second, time.Second, time.Second), 1, nil},
		{"one has it all", served(0, time.Minute, 0, 0), 0.25, []storage.RunID{1, 3, 4}},
		{"half of the share is enough", served(2*time.Second, time.Second, 3*time.Second), 36. / 42, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fairnessOf(now, c.served)
			if f.Runs != len(c.served) || f.Jain < c.jain-1e-9 || f.Jain > c.jain+1e-9 || !slices.Equal(f.Starved, c.starved) {
				t.Errorf("got %+v, want Jain %v, starved %v", f, c.jain, c.starved)
			}
		})
	}
}
