package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"deepcrawl/coord"
	"deepcrawl/fair"
	"deepcrawl/storage"
)

// life is one session of a node: what it claims and holds dies with it.
type life struct {
	node    *Node
	cfg     *Config
	log     *slog.Logger
	store   storage.Store
	cluster clusterStore // nil: the store has no such roles
	sess    coord.Session
	owner   storage.Owner
	hosts   *hosts
	bans    bans

	finisher *finisher
	claimer  *claimer
	pages    chan *response // fetched, to be read

	// hard ends when the session is fenced or the store failed for good: everything stops at once. Draining is only a stop of
	// taking new work.
	hard     context.Context
	hardStop context.CancelCauseFunc

	mu      sync.Mutex
	jobs    map[storage.RunID]*job
	listed  atomic.Pointer[[]*job]      // jobs, for who may not wait for mu
	away    map[storage.RunID]time.Time // runs with nothing to do here before that time
	wake    chan struct{}               // closed when a run may have become ready for a worker
	looking chan struct{}               // held by the idle worker that looks for work
	crews   sync.WaitGroup              // lanes of left turns

	done chan struct{} // closed when the only run is over
	over sync.Once

	roomMu sync.Mutex
	room   error // what MayStore said last
	roomAt time.Time

	leading  atomic.Bool
	shown    atomic.Bool // the last pick had runs to choose from
	late     atomic.Int64
	picks    atomic.Int64
	wasted   atomic.Int64
	dwell    dwell
	fairness atomic.Pointer[Fairness]
}

func newLife(n *Node, sess coord.Session) *life {
	l := &life{
		node: n, cfg: &n.cfg, store: n.cfg.Store, sess: sess, owner: storage.Owner(sess.ID().String()),
		log:   n.log.With("node", sess.ID().String()),
		hosts: newHosts(n.cfg.HostCap),
		jobs:  make(map[storage.RunID]*job), away: make(map[storage.RunID]time.Time),
		wake: make(chan struct{}), looking: make(chan struct{}, 1), done: make(chan struct{}),
	}
	l.cluster, _ = n.cfg.Store.(clusterStore)
	l.hard, l.hardStop = context.WithCancelCause(context.Background())
	l.finisher = newFinisher(l)
	l.claimer = newClaimer(l)
	l.pages = make(chan *response, 32)
	return l
}

// run works until ctx ends (and drains), the session is fenced (errFenced), or nothing can be done (an error).
func (l *life) run(ctx context.Context) error {
	defer l.hardStop(nil)
	soft, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-l.sess.Done():
			l.hardStop(errFenced)
		case <-l.hard.Done():
		}
		stop()
	}()
	go func() {
		select {
		case <-l.done:
			stop()
		case <-soft.Done():
		}
	}()

	var service sync.WaitGroup
	service.Go(l.finisher.run)
	service.Go(l.claimer.run)
	var readers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		readers.Go(l.readPages)
	}

	if err := l.reclaimOthers(soft); err != nil && soft.Err() == nil {
		l.hardStop(err)
	}
	service.Go(func() { l.watch(soft) })
	var workers sync.WaitGroup
	idle := newIdleWatch(l.cfg.IdleExit, stop)
	defer idle.close()
	for range l.cfg.Workers {
		workers.Go(func() { l.work(soft, idle) })
	}
	workers.Wait()
	l.crews.Wait()
	close(l.pages)
	readers.Wait()
	l.returnAll()
	l.claimer.close()
	l.finisher.close()
	service.Wait()
	l.closeJobs()

	if cause := context.Cause(l.hard); cause != nil {
		return cause
	}
	return nil
}

// fail stops everything: the store cannot be used any more.
func (l *life) fail(err error) { l.hardStop(err) }

// reclaimOthers takes back what sessions left behind that are certainly over. The leader does it again and again, every node
// when it starts: one that follows its own killed predecessor need not wait for the leader.
func (l *life) reclaimOthers(ctx context.Context) error {
	gone := func(storage.Owner) bool { return true }
	var owners []storage.Owner
	err := retryStore(ctx, l.log, "list owners", func() (err error) {
		if owners, err = l.store.Owners(ctx); err == nil && l.cfg.Gone != nil && others(owners, l.owner) {
			gone, err = l.cfg.Gone(ctx) // read after the owners: a session that is new then is in it
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list owners: %w", err)
	}
	for _, o := range owners {
		if o == l.owner || !gone(o) {
			continue
		}
		total := 0
		for more := true; more; {
			err := retryStore(ctx, l.log, "reclaim", func() (err error) {
				var n int
				n, more, err = l.store.Reclaim(ctx, o, reclaimBatch)
				total += n
				return err
			})
			if err != nil {
				return fmt.Errorf("reclaim from %s: %w", o, err)
			}
		}
		l.log.Info("took back what a dead session held", "from", string(o), "claims", total)
	}
	return nil
}

// others says whether some owner is not self.
func others(owners []storage.Owner, self storage.Owner) bool {
	return slices.ContainsFunc(owners, func(o storage.Owner) bool { return o != self })
}

// work is one worker: it asks which run to serve, serves it for a turn, and asks again.
func (l *life) work(ctx context.Context, idle *idleWatch) {
	for {
		seat, run, occupied, ok := l.findWork(ctx)
		if !ok {
			return
		}
		idle.begin()
		for ok && ctx.Err() == nil {
			seat, run, occupied, ok = l.serve(ctx, seat, run, occupied)
		}
		if ok {
			l.leaveSeat(seat)
		}
		idle.end()
	}
}

// findWork waits for a run to serve; ok is false when there is nothing more to do. Of the idle workers of a node one looks at a
// time, and the next at once when it has found something: a hundred idle workers ask as much of the database as one.
func (l *life) findWork(ctx context.Context) (seat storage.Seat, run storage.Run, occupied int, ok bool) {
	select {
	case l.looking <- struct{}{}:
	case <-ctx.Done():
		return seat, run, 0, false
	}
	defer func() { <-l.looking }()
	for began := l.cfg.Now(); ctx.Err() == nil; {
		wake := l.wakeChannel()
		if l.mayStore() == nil && !l.nothingToDo(ctx) {
			var err error
			if seat, run, occupied, ok, err = l.pick(ctx, nil); err != nil {
				if ctx.Err() == nil {
					l.fail(err)
				}
				return seat, run, 0, false
			}
			if ok || l.onlyRunIsOver(ctx) {
				return seat, run, occupied, ok
			}
		}
		poll := idlePoll
		if l.cfg.Now().Sub(began) > idleLong {
			poll = idleSlow
		}
		timer := time.NewTimer(jitter(poll))
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	return seat, run, 0, false
}

// nothingToDo says that there is no unfinished run: it asks once where a pick asks twice. Only where the last pick was shown no run
// is that worth a question.
func (l *life) nothingToDo(ctx context.Context) bool {
	if l.shown.Load() || l.cluster == nil || l.cfg.Only != 0 {
		return false
	}
	list, err := l.cluster.Unfinished(ctx, 1)
	return err == nil && len(list) == 0
}

// pick takes a seat on the run that fairness names.
func (l *life) pick(ctx context.Context, held *storage.Seat) (seat storage.Seat, run storage.Run, occupied int, ok bool, err error) {
	now := l.cfg.Now()
	l.mu.Lock()
	away := make(map[storage.RunID]bool, len(l.away))
	for id, until := range l.away {
		if now.Before(until) {
			away[id] = true
		} else {
			delete(l.away, id)
		}
	}
	l.mu.Unlock()
	var idle []idleRun // of the last call: choose may be called again
	shown := false
	defer func() { l.shown.Store(shown) }()
	choose := func(all []storage.Candidate) int {
		shown = true
		runs, index := make([]fair.Run, 0, len(all)), make([]int, 0, len(all))
		idle = idle[:0]
		for i, c := range all {
			if away[c.Run] || l.cfg.Only != 0 && c.Run != l.cfg.Only || l.cfg.Only == 0 && c.Home != "" && c.Home != l.cfg.Name {
				continue
			}
			runs = append(runs, fair.Run{ID: int64(c.Run), Occupied: c.Occupied, Allowed: c.Allowed, Served: c.Served})
			index = append(index, i)
			if c.Occupied == 0 && (held == nil || held.Run != c.Run) {
				idle = append(idle, idleRun{c.Run, c.Served})
			}
		}
		i := fair.Next(runs)
		if i < 0 {
			return -1
		}
		occupied = runs[i].Occupied + 1
		return index[i]
	}
	err = retryStore(ctx, l.log, "pick a run", func() (err error) {
		seat, run, ok, err = l.store.Pick(ctx, l.owner, l.cfg.RunWorkers, held, choose)
		return err
	})
	if err != nil {
		return seat, run, occupied, ok, err
	}
	var taken storage.RunID
	if ok {
		l.picks.Add(1)
		taken = run.ID
	}
	if d, waited := l.dwell.look(l.cfg.Now(), idle, taken); waited {
		l.cfg.Metrics.Dwelt(d)
	}
	return seat, run, occupied, ok, nil
}

// onlyRunIsOver says whether the run this node is restricted to needs nothing more.
func (l *life) onlyRunIsOver(ctx context.Context) bool {
	if l.cfg.Only == 0 {
		return false
	}
	run, err := l.store.Run(ctx, l.cfg.Only)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil, run.State.Active(), run.State == storage.RunQueued:
		return false
	}
	l.over.Do(func() { close(l.done) })
	return true
}

func (l *life) wakeChannel() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wake
}

// wakeWorkers lets idle workers look again.
func (l *life) wakeWorkers() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.wake)
	l.wake = make(chan struct{})
}

// backOff keeps this node's workers from a run until then.
func (l *life) backOff(run storage.RunID, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away[run] = until
}

// comeBack ends a backOff; it reports whether there was one.
func (l *life) comeBack(run storage.RunID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, was := l.away[run]
	delete(l.away, run)
	return was
}

func (l *life) leaveSeat(seat storage.Seat) {
	ctx, cancel := context.WithTimeout(l.hard, 10*time.Second)
	defer cancel()
	err := retryStore(ctx, l.log, "leave seat", func() error { return l.store.Leave(ctx, l.owner, seat) })
	if err != nil && l.hard.Err() == nil {
		l.log.Warn("leave seat", "run", seat.Run, "err", err)
	}
}

// fence turns a lease's fence into the store's.
func (l *life) fence(name string, f coord.Fence) storage.Fence {
	return storage.Fence{Name: name, Epoch: l.cfg.FenceBase + f.Epoch, Number: f.Number}
}

// idleWatch calls stop when no worker has served a run for a while.
type idleWatch struct {
	mu    sync.Mutex
	after time.Duration
	busy  int
	timer *time.Timer // nil: never
}

func newIdleWatch(after time.Duration, stop func()) *idleWatch {
	w := &idleWatch{after: after}
	if after > 0 {
		w.timer = time.AfterFunc(after, stop)
	}
	return w
}

// begin and end are called by a worker around serving.
func (w *idleWatch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy++
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *idleWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy--
	if w.busy == 0 && w.timer != nil {
		w.timer.Reset(w.after)
	}
}

func (w *idleWatch) close() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
