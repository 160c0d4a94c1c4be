package crawl

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"deepcrawl/storage"
)

// Progress counts what a run has come to, as far as this node knows: its own results at once, those of others at each look
// at the ledger.
type Progress struct {
	discovered, fetched, failed, excluded atomic.Int64
	retries, late                         atomic.Int64
	worked                                atomic.Int64 // nanoseconds, with earlier sessions

	mu          sync.Mutex
	state       storage.RunState
	step        string
	unreachable map[string]time.Time // robots.txt of an origin: since when
	traps       map[string]string    // kind: first URL
	cuts        map[string]string    // what was left out for a limit: first URL
}

// maxTraps bounds the kinds of traps remembered.
const maxTraps = 100

// Snapshot is a Progress at one moment, for people.
type Snapshot struct {
	Run                                   storage.RunID
	State                                 storage.RunState
	Step                                  string // what preparing or finishing is doing
	Discovered, Fetched, Failed, Excluded int64
	Retries                               int64 // attempts that met transient trouble
	LateRefused                           int64
	InFlight                              int
	Waiting                               string    // why nothing starts now; empty while it goes on
	Until                                 time.Time // earliest time it goes on, zero unknown
	Worked                                time.Duration
	Traps                                 map[string]string // kinds of crawler traps met, each with a URL
	Cuts                                  map[string]string // what was left out, for a limit of deepcrawl's or as a sitemap was broken, each with a URL
}

// Queued is what is left to do.
func (s Snapshot) Queued() int64 { return max(s.Discovered-s.Fetched-s.Failed-s.Excluded, 0) }

func (p *Progress) load(run storage.Run, l storage.Ledger) {
	p.worked.Store(int64(run.WorkedFor))
	p.mu.Lock()
	p.state = run.State
	p.mu.Unlock()
	p.refresh(l)
}

func (p *Progress) refresh(l storage.Ledger) {
	p.discovered.Store(l.Discovered)
	p.fetched.Store(l.Fetched)
	p.failed.Store(l.Failed)
	p.excluded.Store(l.Excluded)
}

func (p *Progress) count(r *storage.Result) {
	if r.Page == nil {
		p.retries.Add(1)
		return
	}
	switch r.Page.State {
	case storage.Fetched:
		p.fetched.Add(1)
	case storage.Failed:
		p.failed.Add(1)
	default:
		p.excluded.Add(1)
	}
}

func (p *Progress) setStep(state storage.RunState, step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.step = state, step
}

// robotsUnreachable notes that an origin's robots.txt cannot be had, and returns for how long.
func (p *Progress) robotsUnreachable(origin string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unreachable == nil {
		p.unreachable = make(map[string]time.Time)
	}
	since, ok := p.unreachable[origin]
	if !ok {
		if len(p.unreachable) > maxIdleHosts {
			clear(p.unreachable)
		}
		p.unreachable[origin] = now
		return 0
	}
	return now.Sub(since)
}

// trap notes a kind of trap; it reports whether it is the first of its kind.
func (p *Progress) trap(kind, url string) bool { return p.first(&p.traps, kind, url) }

// cut notes what was left out; it reports whether it is the first of its kind.
func (p *Progress) cut(kind, url string) bool { return p.first(&p.cuts, kind, url) }

func (p *Progress) first(of *map[string]string, kind, url string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if *of == nil {
		*of = make(map[string]string)
	}
	if _, ok := (*of)[kind]; ok || len(*of) >= maxTraps {
		return false
	}
	(*of)[kind] = url
	return true
}

func (j *job) snapshot(now time.Time) Snapshot {
	p := &j.progress
	s := Snapshot{
		Run: j.run.ID, Discovered: p.discovered.Load(), Fetched: p.fetched.Load(), Failed: p.failed.Load(), Excluded: p.excluded.Load(),
		Retries: p.retries.Load(), LateRefused: p.late.Load(), InFlight: int(j.inflight.Load()), Worked: time.Duration(p.worked.Load()),
	}
	p.mu.Lock()
	s.State, s.Step = p.state, p.step
	s.Traps, s.Cuts = maps.Clone(p.traps), maps.Clone(p.cuts)
	p.mu.Unlock()
	s.Waiting, s.Until = j.waitsFor(now)
	if err := j.life.mayStore(); err != nil {
		s.Waiting, s.Until = err.Error(), time.Time{}
	}
	if s.Waiting == "" {
		if err := j.life.sess.MayWork(); err != nil {
			s.Waiting = "coordination: " + err.Error()
		}
	}
	return s
}

// Progress returns what the node knows of a run it works on or worked on; ok is false for a run it has not touched.
func (n *Node) Progress(run storage.RunID) (s Snapshot, ok bool) {
	n.mu.Lock()
	l := n.current
	s, ok = n.ended[run]
	n.mu.Unlock()
	if l == nil {
		return s, ok
	}
	l.mu.Lock()
	j := l.jobs[run]
	l.mu.Unlock()
	if j == nil {
		return s, ok
	}
	return j.snapshot(n.cfg.Now()), true
}

// InFlight is the number of requests of this node under way.
func (n *Node) InFlight() int {
	if n == nil {
		return 0
	}
	n.mu.Lock()
	l := n.current
	n.mu.Unlock()
	if l == nil {
		return 0
	}
	_, requests := l.inFlight()
	return requests
}

// maxEnded bounds the runs whose last progress is remembered.
const maxEnded = 1000

// remember keeps the last progress of a run the node is done with.
func (n *Node) remember(j *job) {
	s := j.snapshot(n.cfg.Now())
	s.Waiting, s.Until = "", time.Time{}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.ended) >= maxEnded {
		clear(n.ended)
	}
	n.ended[j.run.ID] = s
}

// refreshProgress brings in what other nodes did.
func (l *life) refreshProgress(j *job) {
	ledger, err := l.store.Ledger(l.hard, j.run.ID)
	if err == nil {
		j.progress.refresh(ledger)
	}
}
