package crawl

import (
	"log/slog"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/storage"
)

type openSession struct{ namedSession }

func (openSession) Gate(coord.Key) (until time.Time, reason string, closed bool) { return }
func (openSession) Yield(coord.Key)                                              {}

// TestUnstoredIsCountedOnBothWays: whatever way a claim leaves its buffer and its result is committed or it is put back, what is not
// stored is none in the end. A count below would let a node request without bound, one above would stop it.
func TestUnstoredIsCountedOnBothWays(t *testing.T) {
	n := &Node{cfg: Config{Now: time.Now, Metrics: noMetrics{}}, log: slog.New(slog.DiscardHandler)}
	l := newLife(n, openSession{})
	const runCap = 4
	newJob := func(claims int) (*job, *queue) {
		j := &job{life: l, queues: map[string]*queue{}, wake: make(chan struct{}), runKey: coord.CappedKey{Key: coord.RunKey(1), Cap: runCap}, users: 1}
		q := &queue{host: "h.example", key: coord.HostKey("h.example"), state: l.hosts.get("h.example"), dry: true}
		q.need = []coord.CappedKey{{Key: q.key, Cap: q.state.declared()}, j.runKey}
		j.queues[q.host] = q
		for i := range claims {
			q.buf = append(q.buf, storage.Claim{Run: 1, ID: storage.URLID(i + 1), URL: "http://h.example/"})
		}
		j.open = claims
		return j, q
	}
	pop := func(j *job) start {
		s, _, _ := j.take(time.Now())
		if s.queue == nil {
			t.Fatal("nothing to take")
		}
		return s
	}
	commit := func(j *job) {
		for len(l.finisher.in) > 0 {
			o := <-l.finisher.in
			j.committed(&o.result, storage.OutcomeStale)
		}
	}
	for name, way := range map[string]func(*job){
		"put back":           func(j *job) { j.putBack(pop(j), time.Now(), "") },
		"no slot":            func(j *job) { j.putBackFull(pop(j), time.Now()) },
		"given up":           func(j *job) { j.giveUp(pop(j).claim, ReasonHostDown) },
		"given up with rest": func(j *job) { j.giveUpAll(pop(j), ReasonBanned) },
		"not started":        func(j *job) { j.notStarted(pop(j), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := newJob(20)
			way(j)
			commit(j)
			if n := j.unstored.Load(); n != 0 {
				t.Errorf("%d are not stored", n)
			}
		})
	}
	t.Run("no more than the bound", func(t *testing.T) {
		j, _ := newJob(20)
		for range maxUnstored * runCap {
			pop(j)
		}
		if s, wake, _ := j.take(time.Now()); s.queue != nil || wake == nil {
			t.Errorf("got %+v beyond the bound", s)
		}
	})
}
