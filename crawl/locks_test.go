package crawl

import (
	"log/slog"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/storage"
)

type namedSession struct{ coord.Session }

func (namedSession) ID() coord.Member { return coord.Member{Node: "n", Incarnation: 1} }

// TestFactsWaitForNoJob: a session asks for facts under its own lock, which who holds a job's lock may wait for.
func TestFactsWaitForNoJob(t *testing.T) {
	n := &Node{cfg: Config{Now: time.Now}, log: slog.New(slog.DiscardHandler)}
	l := newLife(n, namedSession{})
	n.setLife(l)
	j := &job{life: l}
	j.inflight.Store(3)
	l.mu.Lock()
	l.jobs[storage.RunID(1)] = j
	l.listJobs()
	j.mu.Lock()
	told := make(chan Stats, 1)
	go func() { told <- n.Stats() }()
	select {
	case s := <-told:
		if s.Runs != 1 || s.InFlight != 3 {
			t.Errorf("got %d runs and %d requests, want 1 and 3", s.Runs, s.InFlight)
		}
	case <-time.After(10 * time.Second):
		t.Error("Stats waits for a lock under which the session is asked")
	}
	j.mu.Unlock()
	l.mu.Unlock()
}
