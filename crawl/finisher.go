package crawl

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"deepcrawl/crawl/frontier"
	"deepcrawl/storage"
)

// outcome is what became of one claim, on its way to the store.
type outcome struct {
	job    *job
	result storage.Result
	done   chan struct{} // of a flush marker: closed when everything before it is committed
}

// presses says that what waits is to be committed now.
func (o *outcome) presses() bool { return o.done != nil || o.job.risksMuch() }

// finisher commits results in groups: one writer, at most maxBatch results or maxBatchURLs discovered URLs a transaction,
// waiting linger for more unless lanes have nothing to do or the run has much that is not stored.
type finisher struct {
	life   *life
	in     chan *outcome
	hungry atomic.Int64
	poke   chan struct{}
	once   sync.Once
	batch  []*outcome
	send   []storage.Result
}

const (
	maxBatch     = 100
	maxBatchURLs = 1_000 // a transaction of that many takes some 20 ms on SQLite, and claims wait for it
	linger       = 20 * time.Millisecond
)

func newFinisher(l *life) *finisher {
	return &finisher{life: l, in: make(chan *outcome, 2*maxBatch), poke: make(chan struct{}, 1)}
}

// submit hands a result over. It blocks while the store is behind.
func (f *finisher) submit(o *outcome) {
	select {
	case f.in <- o:
	case <-f.life.hard.Done(): // its claim is reclaimed
	}
}

// hurry counts lanes that wait for URLs: what they wait for may be in an uncommitted result.
func (f *finisher) hurry(n int64) {
	if f.hungry.Add(n) > 0 && n > 0 {
		select {
		case f.poke <- struct{}{}:
		default:
		}
	}
}

// flush returns when every result submitted before is committed.
func (f *finisher) flush() {
	o := &outcome{done: make(chan struct{})}
	f.submit(o)
	select {
	case <-o.done:
	case <-f.life.hard.Done():
	}
}

// close ends run once everything is committed. Nothing may be submitted afterwards.
func (f *finisher) close() { f.once.Do(func() { close(f.in) }) }

func (f *finisher) run() {
	timer := time.NewTimer(linger)
	defer timer.Stop()
	for o := range f.in {
		f.batch = append(f.batch[:0], o)
		f.collect(timer)
		f.commit()
		clear(f.batch)
	}
}

func (f *finisher) collect(timer *time.Timer) {
	timer.Reset(linger)
	urls := len(f.batch[0].result.Discovered)
	marked := f.batch[0].presses()
	for len(f.batch) < maxBatch && urls < maxBatchURLs {
		var o *outcome
		var open bool
		select {
		case o, open = <-f.in:
		default:
			if marked || f.hungry.Load() > 0 {
				return
			}
			select {
			case o, open = <-f.in:
			case <-f.poke:
				continue
			case <-timer.C:
				return
			}
		}
		if !open {
			return
		}
		f.batch = append(f.batch, o)
		urls += len(o.result.Discovered)
		marked = marked || o.presses()
	}
}

func (f *finisher) commit() {
	f.send = f.send[:0]
	results := f.batch[:0]
	var markers []*outcome
	for _, o := range f.batch {
		if o.done != nil {
			markers = append(markers, o)
			continue
		}
		o.forgetKnown()
		results = append(results, o)
		f.send = append(f.send, o.result)
	}
	if len(results) > 0 {
		f.write(results)
	}
	for _, m := range markers {
		close(m.done)
	}
	clear(f.send)
}

// forgetKnown takes out the discoveries that were stored while the result waited: what every page links to reaches the store with the
// first of them only.
func (o *outcome) forgetKnown() {
	o.result.Discovered = slices.DeleteFunc(o.result.Discovered, func(d storage.Discovery) bool { return o.job.seen.Has(d.Key) })
}

func (f *finisher) write(results []*outcome) {
	l := f.life
	if err := f.prioritise(l.hard, results); err != nil {
		l.fail(err)
		return
	}
	var outs []storage.Outcome
	err := retryStore(l.hard, l.log, "finish", func() (err error) {
		began := l.cfg.Now()
		if outs, err = l.store.Finish(l.hard, l.owner, f.send); err == nil {
			l.cfg.Metrics.Finished(len(f.send), l.cfg.Now().Sub(began))
		}
		return err
	})
	if err != nil {
		if l.hard.Err() == nil {
			l.fail(err)
		}
		return
	}
	for i, o := range results {
		o.job.committed(&o.result, outs[i])
	}
}

// prioritise gives discovered URLs that an earlier run knew their place: they matter less than new ones.
func (f *finisher) prioritise(ctx context.Context, results []*outcome) error {
	keys := make(map[storage.RunID][]storage.Key)
	for _, o := range results {
		if before := o.job.run.Previous; before != 0 {
			for i := range o.result.Discovered {
				keys[before] = append(keys[before], o.result.Discovered[i].Key)
			}
		}
	}
	for before, list := range keys {
		var known map[storage.Key]int64
		err := retryStore(ctx, f.life.log, "look up known URLs", func() (err error) {
			known, err = f.life.store.Known(ctx, before, list)
			return err
		})
		if err != nil {
			return err
		}
		for _, o := range results {
			if o.job.run.Previous != before {
				continue
			}
			for i := range o.result.Discovered {
				if _, ok := known[o.result.Discovered[i].Key]; ok {
					o.result.Discovered[i].Priority = knownPriority
				}
			}
		}
	}
	return nil
}

// Priorities of URLs that no sitemap says anything about.
var (
	newPriority   = frontier.Priority(frontier.Signals{}, time.Time{})
	knownPriority = frontier.Priority(frontier.Signals{Known: true}, time.Time{})
)

// committed updates what the node knows after a result was written, or refused.
func (j *job) committed(r *storage.Result, out storage.Outcome) {
	host := ""
	if out == storage.OutcomeDone {
		for i := range r.Discovered {
			d := &r.Discovered[i]
			if !j.seen.Has(d.Key) { // an estimate until the next look at the ledger
				j.seen.Add(d.Key)
				j.progress.discovered.Add(1)
			}
			if d.Exclude == "" && d.Host != host {
				host = d.Host
				j.discovered(host)
			}
		}
		j.progress.count(r)
		j.life.told(r)
	} else {
		j.progress.late.Add(1)
		j.life.late.Add(1)
		j.life.cfg.Metrics.LateRefused()
		j.life.log.Warn("late result refused", "run", r.Run, "url", int64(r.ID))
	}
	j.unstored.Add(-1)
	j.closeClaims(1)
}

// claimer asks the store for claims, for all runs and hosts of the node at once.
type claimer struct {
	life *life
	mu   sync.Mutex
	asks []ask
	poke chan struct{}
	stop chan struct{}
	once sync.Once
}

type ask struct {
	job   *job
	queue *queue
	n     int
}

func newClaimer(l *life) *claimer {
	return &claimer{life: l, poke: make(chan struct{}, 1), stop: make(chan struct{})}
}

// ask notes a wish; the answer comes by job.claimed. It does not block.
func (c *claimer) ask(j *job, q *queue, n int) {
	c.mu.Lock()
	c.asks = append(c.asks, ask{j, q, n})
	c.mu.Unlock()
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

func (c *claimer) close() { c.once.Do(func() { close(c.stop) }) }

func (c *claimer) run() {
	for {
		select {
		case <-c.poke:
		case <-c.stop:
			return
		case <-c.life.hard.Done():
			return
		}
		c.mu.Lock()
		asks := c.asks
		c.asks = nil
		c.mu.Unlock()
		if len(asks) > 0 {
			c.claim(asks)
		}
	}
}

func (c *claimer) claim(asks []ask) {
	l := c.life
	reqs := make([]storage.ClaimRequest, len(asks))
	for i, a := range asks {
		reqs[i] = storage.ClaimRequest{Run: a.job.run.ID, Host: a.queue.host, N: a.n, MaxPages: a.job.pageLimit().most}
	}
	var claims []storage.Claim
	err := retryStore(l.hard, l.log, "claim", func() (err error) {
		began := l.cfg.Now()
		if claims, err = l.store.Claim(l.hard, l.owner, reqs); err == nil {
			l.cfg.Metrics.Claimed(len(claims), l.cfg.Now().Sub(began))
		}
		return err
	})
	if err != nil {
		if l.hard.Err() == nil {
			l.fail(err)
		}
		return
	}
	for i, a := range asks {
		var mine []storage.Claim
		for _, cl := range claims {
			if cl.Run == reqs[i].Run && cl.Host == reqs[i].Host {
				mine = append(mine, cl)
			}
		}
		if a.job.claimed(a.queue, a.n, mine) {
			l.returnClaims(a.job, mine)
		}
	}
}
