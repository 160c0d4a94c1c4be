package crawl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl/fetch"
	"deepcrawl/crawl/frontier"
	"deepcrawl/crawl/robots"
	"deepcrawl/crawl/scope"
	"deepcrawl/storage"
)

// job is a run as this node works on it: compiled rules, known URLs, claims taken ahead. All workers of the node that serve
// the run share one.
type job struct {
	life   *life
	run    storage.Run // as loaded; the state in it is that of the last pick
	rules  *rules
	client *fetch.Client
	robots *robots.Cache
	seen   *frontier.Seen
	traps  *scope.Traps
	runKey coord.CappedKey
	rate   coord.RateLimit // of the run; PerSecond 0: none

	product  string // robots product token
	progress Progress

	mu      sync.Mutex
	queues  map[string]*queue
	open    int       // claims held: buffered, in flight, in the finisher
	users   int       // crews
	unused  time.Time // since when there is none
	waiting int       // lanes in wait
	done    bool      // the run's slots were yielded
	asking  bool      // a look at the store's frontier is under way
	// ends counts claims that ended, endsSeen is what it was at the last look.
	ends, endsSeen uint64
	asked          time.Time
	due            time.Time // next delayed URL, where nothing else is left
	wake           chan struct{}

	reading  underWay  // responses on their way through the readers
	readers  sync.Pool // *reader
	inflight atomic.Int64
	starts   atomic.Int64
	unstored atomic.Int64 // claims taken from their buffers whose results are not committed: see maxUnstored

	empty atomic.Bool // the frontier is empty, or a limit is reached: nothing more to claim
	ended chan struct{}
	end   sync.Once
	limit storage.Reason // why the frontier is to be closed

	limits   atomic.Pointer[pageLimit]
	stopStep context.CancelCauseFunc // of the step that runs here; nil: none

	reasons map[string]fetch.Reason // how the last robots.txt request of an origin ended
}

// queue holds the claims of one host of the run that were taken ahead of need.
type queue struct {
	host   string
	state  *host
	key    coord.Key
	need   []coord.CappedKey
	buf    []storage.Claim // in claim order; buf[at:] are left
	at     int
	asked  bool      // a claim is under way
	asking bool      // its robots.txt is being asked for
	dry    bool      // the last claim gave less than was asked for
	done   bool      // its slots were yielded: there is nothing to request
	gen    int       // grows with each discovery on the host
	askGen int       // gen when the claim under way was asked
	until  time.Time // nothing starts before: gate, cooldown, rate, robots.txt
	why    string    // what until is for, for people
	full   time.Time // no slot free: not tried again before, or until one comes back
	rate   float64   // starts a second, smoothed
	window time.Time // since when count counts
	count  int
}

func (q *queue) left() int { return len(q.buf) - q.at }

func (q *queue) pop() storage.Claim {
	c := q.buf[q.at]
	q.buf[q.at] = storage.Claim{}
	q.at++
	if q.at == len(q.buf) {
		q.buf, q.at = q.buf[:0], 0
	}
	return c
}

// unpop puts the claim just popped back in front.
func (q *queue) unpop(c storage.Claim) {
	if q.at > 0 {
		q.at--
		q.buf[q.at] = c
		return
	}
	q.buf = append(q.buf, storage.Claim{})
	copy(q.buf[1:], q.buf)
	q.buf[0] = c
}

const (
	claimAhead     = time.Second // claims taken ahead: what can start within this time
	rateWindow     = time.Second / 4
	keepUnused     = time.Minute // a run nobody here serves is remembered this long
	minAhead       = 8
	maxAhead       = 200
	maxBannedAhead = 1000
	maxOpenHosts   = 64 // hosts of a run whose claims are held at a time
	frontierPoll   = time.Second
	longWait       = 10 * time.Second // claims of a host that waits longer go back to the store
	slotRetry      = 100 * time.Millisecond
	maxCrawlDelay  = 30 * time.Second

	// maxUnstored bounds, as a multiple of the run's concurrency, the requests of a node that are under way or answered and not
	// yet committed: what is requested again when the process is killed.
	maxUnstored = 3
)

// risksMuch says that a commit should not wait for more.
func (j *job) risksMuch() bool { return 2*j.unstored.Load() >= int64((maxUnstored+1)*j.runKey.Cap) }

// risksEnough says that no more may be requested before something is committed.
func (j *job) risksEnough() bool { return j.unstored.Load() >= int64(maxUnstored*j.runKey.Cap) }

func (l *life) newJob(run storage.Run) (*job, error) {
	spec, err := DecodeSpec(run.Spec)
	if err != nil {
		return nil, err
	}
	r, err := spec.compile()
	if err != nil {
		return nil, err
	}
	client, err := l.node.client(spec.UserAgent, l.sess.Timing().Request)
	if err != nil {
		return nil, err
	}
	concurrency := r.profile.Concurrency
	if concurrency <= 0 || concurrency > l.cfg.HostCap {
		concurrency = l.cfg.HostCap
	}
	j := &job{
		life: l, run: run, rules: r, client: client,
		seen: frontier.NewSeen(l.node.memory), traps: scope.NewTraps(scope.Limits{}),
		runKey: coord.CappedKey{Key: coord.RunKey(int64(run.ID)), Cap: concurrency},
		queues: make(map[string]*queue), wake: make(chan struct{}), ended: make(chan struct{}),
		reasons: make(map[string]fetch.Reason), product: productToken(l.agent(spec)),
	}
	if r.profile.PerSecond > 0 {
		j.rate = coord.RateLimit{PerSecond: r.profile.PerSecond, Burst: 1}
	}
	j.robots = robots.NewCache(robots.Config{
		Product: j.product, Fetch: j.fetchRobots, Now: l.cfg.Now, MaxDelay: maxCrawlDelay,
	})
	err = retryStore(l.hard, l.log, "open run", func() error {
		ledger, err := l.store.Ledger(l.hard, run.ID)
		if err != nil {
			return fmt.Errorf("ledger of run %d: %w", run.ID, err)
		}
		j.progress.load(run, ledger)
		if l.cluster != nil {
			if err := l.bans.fresh(l.hard, l.cluster, l.cfg.Now()); err != nil {
				return fmt.Errorf("banned hosts: %w", err)
			}
		}
		if _, err := j.readAllowance(l.hard); err != nil {
			return fmt.Errorf("tariff of run %d: %w", run.ID, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return j, nil
}

// productToken is the name robots.txt rules are matched with: what stands before the slash of a user agent, in lower case
// (RFC 9309 section 2.2.1).
func productToken(agent string) string {
	token, _, _ := strings.Cut(agent, "/")
	token, _, _ = strings.Cut(strings.TrimSpace(token), " ")
	return strings.ToLower(token)
}

func (l *life) agent(s Spec) string {
	if s.UserAgent != "" {
		return s.UserAgent
	}
	return l.cfg.UserAgent
}

// openJob returns the run's job, made new when no worker of this node has one.
func (l *life) openJob(run storage.Run) (*job, error) {
	l.mu.Lock()
	j := l.jobs[run.ID]
	if j != nil {
		j.mu.Lock()
		j.users++
		j.run.State = run.State
		j.mu.Unlock()
		l.mu.Unlock()
		return j, nil
	}
	l.mu.Unlock()
	j, err := l.newJob(run)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.jobs[run.ID]; other != nil {
		j.seen.Free()
		j = other
	} else {
		l.jobs[run.ID] = j
		l.listJobs()
	}
	j.mu.Lock()
	j.users++
	j.mu.Unlock()
	return j, nil
}

// listJobs follows a change of jobs. The caller holds mu.
func (l *life) listJobs() {
	list := slices.Collect(maps.Values(l.jobs))
	l.listed.Store(&list)
}

// inFlight is the number of runs worked on here, and of their requests under way. It takes no lock.
func (l *life) inFlight() (runs, requests int) {
	list := l.listed.Load()
	if list == nil {
		return 0, 0
	}
	for _, j := range *list {
		requests += int(j.inflight.Load())
	}
	return len(*list), requests
}

// closeJob is the end of a crew. Claims that nobody serves any more go back; a job whose run is over is forgotten.
func (l *life) closeJob(j *job) {
	j.mu.Lock()
	j.users--
	var back []storage.Claim
	if j.users == 0 {
		j.unused = l.cfg.Now()
		back = j.takeBuffered(nil)
		for _, q := range j.queues {
			j.yield(q)
		}
		j.yieldRun()
	}
	j.mu.Unlock()
	l.returnClaims(j, back)
	l.forgetUnused()
}

// yield gives other nodes the slots of a host that has nothing to request here. The caller holds j.mu.
func (j *job) yield(q *queue) {
	if !q.done {
		q.done = true
		j.life.sess.Yield(q.key)
	}
}

func (j *job) yieldRun() {
	if !j.done {
		j.done = true
		j.life.sess.Yield(j.runKey.Key)
	}
}

// forgetUnused drops the jobs of runs that another node may have ended long ago.
func (l *life) forgetUnused() {
	var old []*job
	now := l.cfg.Now()
	l.mu.Lock()
	for _, j := range l.jobs {
		j.mu.Lock()
		if j.users == 0 && j.open == 0 && now.Sub(j.unused) > keepUnused {
			old = append(old, j)
		}
		j.mu.Unlock()
	}
	l.mu.Unlock()
	for _, j := range old {
		l.forget(j)
	}
}

// forget drops a job whose run has ended here.
func (l *life) forget(j *job) {
	l.mu.Lock()
	if l.jobs[j.run.ID] == j {
		delete(l.jobs, j.run.ID)
		l.listJobs()
	}
	l.mu.Unlock()
	l.node.remember(j)
	j.seen.Free()
}

func (l *life) closeJobs() {
	l.mu.Lock()
	jobs := make([]*job, 0, len(l.jobs))
	for _, j := range l.jobs {
		jobs = append(jobs, j)
	}
	l.mu.Unlock()
	for _, j := range jobs {
		l.forget(j)
	}
}

// returnAll gives back every claim that was not started.
func (l *life) returnAll() {
	l.mu.Lock()
	jobs := make([]*job, 0, len(l.jobs))
	for _, j := range l.jobs {
		jobs = append(jobs, j)
	}
	l.mu.Unlock()
	for _, j := range jobs {
		j.mu.Lock()
		back := j.takeBuffered(nil)
		j.mu.Unlock()
		l.returnClaims(j, back)
	}
}

// takeBuffered empties the buffers of one queue, or of all. The caller holds j.mu.
func (j *job) takeBuffered(only *queue) []storage.Claim {
	var out []storage.Claim
	for _, q := range j.queues {
		if only != nil && q != only || q.left() == 0 {
			continue
		}
		out = append(out, q.buf[q.at:]...)
		q.buf, q.at, q.dry = nil, 0, false // what went back is there to be claimed again
	}
	return out
}

func (l *life) returnClaims(j *job, claims []storage.Claim) {
	if len(claims) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(l.hard, 30*time.Second)
	defer cancel()
	err := retryStore(ctx, l.log, "return claims", func() error { return l.store.Return(ctx, l.owner, claims) })
	if err != nil && l.hard.Err() == nil {
		l.log.Warn("return claims", "run", j.run.ID, "claims", len(claims), "err", err)
	}
	j.closeClaims(len(claims))
}

// closeClaims says that n claims are no longer held.
func (j *job) closeClaims(n int) {
	j.mu.Lock()
	j.open -= n
	j.ends += uint64(n)
	j.mu.Unlock()
	j.notify()
}

// notify wakes the waiting lanes.
func (j *job) notify() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notifyLocked()
}

func (j *job) notifyLocked() {
	if j.waiting > 0 {
		close(j.wake)
		j.wake = make(chan struct{})
		j.waiting = 0
	}
}

// finish marks that there is nothing more to claim; reason says why the rest of the frontier is to be closed, if at all.
func (j *job) finish(reason storage.Reason) {
	j.end.Do(func() {
		j.mu.Lock()
		j.limit = reason
		j.mu.Unlock()
		close(j.ended)
	})
}

func (j *job) queueOf(name string) *queue {
	q, ok := j.queues[name]
	if !ok {
		key := coord.HostKey(name)
		q = &queue{
			host: name, key: key, state: j.life.hosts.get(name),
			need: []coord.CappedKey{{Key: key, Cap: j.life.cfg.HostCap}, j.runKey},
		}
		j.queues[name] = q
	}
	return q
}
