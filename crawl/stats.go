package crawl

import (
	"maps"
	"slices"
	"sync"
	"time"

	"deepcrawl/coord"
	"deepcrawl/storage"
)

// Metrics is told what a node does. Calls must not block and are made from many goroutines.
type Metrics interface {
	// Page: a result was committed; of a delayed URL state is storage.Delayed. Bytes of the decoded body.
	Page(state storage.State, reason storage.Reason, bytes int64)
	// LateRefused: a result was refused because its claim was no longer this session's.
	LateRefused()
	// Claimed and Finished: n URLs were claimed, or results written, in one call that took d.
	Claimed(n int, d time.Duration)
	Finished(n int, d time.Duration)
	// SlotWaited: a request began d after it first found no free slot.
	SlotWaited(d time.Duration)
	// Dwelt: a run that had no worker got one, d after it could be served.
	Dwelt(d time.Duration)
}

// noMetrics is told when nobody listens.
type noMetrics struct{}

func (noMetrics) Page(storage.State, storage.Reason, int64) {}
func (noMetrics) LateRefused()                              {}
func (noMetrics) Claimed(int, time.Duration)                {}
func (noMetrics) Finished(int, time.Duration)               {}
func (noMetrics) SlotWaited(time.Duration)                  {}
func (noMetrics) Dwelt(time.Duration)                       {}

// Stats is a node at one moment.
type Stats struct {
	Session  string // empty: not in the cluster now
	Paused   string // why no work is begun, for lack of room
	Leading  bool
	Runs     int // runs it holds claims or workers of
	InFlight int
	Unsent   int // results waiting to be written
	Unread   int // responses waiting to be read
	Late     int64
	Picks    int64 // runs taken by workers
	Wasted   int64 // turns without a request
	Dwell    Dwell
	Fairness *Fairness // of the last window; the leader's only
}

// Dwell are times from when a run could be served to when a worker came, over the last minute.
type Dwell struct {
	N             int
	P50, P95, Max time.Duration
}

// Holding is what a node's session has now.
type Holding struct {
	Coord  coord.Status
	NoWork error // why no request may start (see coord.Permits.MayWork)
	Claims int   // URLs claimed and not yet finished
}

func (n *Node) life() *life {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current
}

// Holding asks the session; ok is false when the node is in no cluster now.
func (n *Node) Holding() (h Holding, ok bool) {
	l := n.life()
	if l == nil {
		return Holding{}, false
	}
	h = Holding{Coord: l.sess.Status(), NoWork: l.sess.MayWork()}
	l.mu.Lock()
	jobs := slices.Collect(maps.Values(l.jobs))
	l.mu.Unlock()
	for _, j := range jobs {
		j.mu.Lock()
		h.Claims += j.open
		j.mu.Unlock()
	}
	return h, true
}

// Stats returns figures of the node. It is what coord.Options.Facts may call, which is called under the session's lock: it does not ask
// the session, and takes neither the lock of a job, under which the session is asked, nor that of the jobs, under which a job's is taken.
func (n *Node) Stats() Stats {
	l := n.life()
	if l == nil {
		return Stats{}
	}
	s := Stats{
		Session: string(l.owner), Leading: l.leading.Load(),
		Unsent: len(l.finisher.in), Unread: len(l.pages), Late: l.late.Load(), Picks: l.picks.Load(), Wasted: l.wasted.Load(),
		Dwell: l.dwell.figures(n.cfg.Now()), Fairness: l.fairness.Load(),
	}
	if err := l.mayStore(); err != nil {
		s.Paused = err.Error()
	}
	s.Runs, s.InFlight = l.inFlight()
	return s
}

// dwell measures how long runs without a worker wait for one, as this node sees it. A run is taken to have become ready right
// after the look before the one it was first seen in, so what is measured is never too short.
type dwell struct {
	mu      sync.Mutex
	looked  time.Time // the look before
	ready   map[storage.RunID]readySince
	samples []dwellSample // of the last minute, oldest first
}

type readySince struct {
	served time.Time // as the store had it: another worker's turn in between makes it another wait
	at     time.Time
}

type dwellSample struct {
	at time.Time
	d  time.Duration
}

// idleRun is a run that could be served and had no worker.
type idleRun struct {
	id     storage.RunID
	served time.Time
}

const (
	dwellWindow = time.Minute
	maxDwells   = 10_000
)

// look notes the runs that waited at a pick, and the one taken (0: none of them). It returns how long that one waited.
func (w *dwell) look(now time.Time, idle []idleRun, taken storage.RunID) (d time.Duration, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.looked
	if before.IsZero() {
		before = now
	}
	w.looked = now
	next := make(map[storage.RunID]readySince, len(idle))
	for _, r := range idle {
		since, known := w.ready[r.id]
		if !known || !since.served.Equal(r.served) {
			since = readySince{r.served, latest(before, r.served)}
		}
		if r.id == taken {
			d, ok = max(now.Sub(since.at), 0), true
			continue
		}
		next[r.id] = since
	}
	w.ready = next
	if ok {
		w.forget(now)
		if len(w.samples) < maxDwells {
			w.samples = append(w.samples, dwellSample{now, d})
		}
	}
	return d, ok
}

func (w *dwell) forget(now time.Time) {
	n := 0
	for n < len(w.samples) && now.Sub(w.samples[n].at) > dwellWindow {
		n++
	}
	w.samples = slices.Delete(w.samples, 0, n)
}

func (w *dwell) figures(now time.Time) Dwell {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(now)
	n := len(w.samples)
	if n == 0 {
		return Dwell{}
	}
	all := make([]time.Duration, 0, n)
	for _, s := range w.samples {
		all = append(all, s.d)
	}
	slices.Sort(all)
	return Dwell{N: n, P50: all[n/2], P95: all[n*95/100], Max: all[n-1]}
}

// Fairness tells how evenly runs that had work all along were served over a window.
type Fairness struct {
	At   time.Time
	Runs int     // that had work at both ends of the window
	Jain float64 // of the time they were served: 1 is even, 1/Runs is one run having it all
	// Starved are the runs that got less than half of their fair share.
	Starved []storage.RunID
}

// fairWindow is how long a window lasts (PROTOCOL, Fairness).
const fairWindow = time.Minute

// maxStarved bounds the runs named.
const maxStarved = 20

// fairnessOf compares how long runs were served.
func fairnessOf(now time.Time, served map[storage.RunID]time.Duration) *Fairness {
	f := &Fairness{At: now, Runs: len(served), Jain: 1}
	var sum, squares float64
	for _, d := range served {
		x := d.Seconds()
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return f
	}
	n := float64(len(served))
	f.Jain = sum * sum / (n * squares)
	for id, d := range served {
		if d.Seconds() < sum/n/2 {
			f.Starved = append(f.Starved, id)
		}
	}
	slices.Sort(f.Starved)
	if len(f.Starved) > maxStarved {
		f.Starved = f.Starved[:maxStarved]
	}
	return f
}

// told tells the metrics of a result.
func (l *life) told(r *storage.Result) {
	if r.Page == nil {
		l.cfg.Metrics.Page(storage.Delayed, r.Delay.Reason, 0)
		return
	}
	l.cfg.Metrics.Page(r.Page.State, r.Page.Reason, r.Page.Bytes)
}
