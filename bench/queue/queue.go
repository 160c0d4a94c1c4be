// Package queue works a store as the engine does, without a crawl: claims of batches of URLs and the results of each, with links found
// on them, at a steady number of queued URLs. Beside the store itself it holds what a program without one would write: the same
// statements through the drivers, by hand.
package queue

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

const (
	// Batch is how many URLs one claim asks for.
	Batch = 24
	// linksPerPage are found on each page; one of them is new, and the engine hands the store no other.
	linksPerPage = 20
	host         = "example.com"
	fillBatch    = 2000
)

// Turn is a claim and the results of what it gave; it returns how many pages that were.
type Turn func(ctx context.Context) (pages int, err error)

// Rate is what working for a while gave.
type Rate struct {
	Pages int
	Wall  time.Duration
	CPU   time.Duration // of this process: the store's client and what it is worked with
}

// Work has each of the turns taken by a goroutine of its own, again and again, for a time.
func Work(ctx context.Context, d time.Duration, turns ...Turn) (Rate, error) {
	var pages atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, len(turns))
	began, cpu := time.Now(), cpuTime()
	for i, turn := range turns {
		wg.Go(func() {
			for time.Since(began) < d {
				n, err := turn(ctx)
				if err == nil && n == 0 {
					err = errors.New("nothing could be claimed")
				}
				if err != nil {
					errs[i] = err
					return
				}
				pages.Add(int64(n))
			}
		})
	}
	wg.Wait()
	return Rate{Pages: int(pages.Load()), Wall: time.Since(began), CPU: cpuTime() - cpu}, errors.Join(errs...)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Queue is a run with queued URLs in a database of its own.
type Queue struct {
	store *sqlstore.Store
	run   storage.RunID
	next  atomic.Int64 // URLs made so far
	facts []byte
	links []byte
}

// Open migrates the database, and queues URLs of one host in it.
func Open(ctx context.Context, dsn string, queued, workers int) (_ *Queue, err error) {
	if _, err := sqlstore.Migrate(ctx, dsn); err != nil {
		return nil, err
	}
	s, err := sqlstore.Open(ctx, dsn, sqlstore.Options{Workers: 4 * workers})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	run, err := s.CreateRun(ctx, storage.NewRun{Tenant: storage.DefaultTenant, Site: host})
	if err == nil {
		_, err = s.SetRunState(ctx, run.ID, []storage.RunState{storage.RunQueued}, storage.RunCrawling, "", time.Time{})
	}
	if err != nil {
		return nil, err
	}
	q := &Queue{store: s, run: run.ID, facts: make([]byte, 450), links: make([]byte, 200)}
	for i := range q.facts {
		q.facts[i] = byte(rand.Uint32())
	}
	for q.next.Load() < int64(queued) {
		list := make([]storage.Discovery, min(fillBatch, queued-int(q.next.Load())))
		for i := range list {
			list[i] = discovery(q.next.Add(1) - 1)
		}
		if _, err := s.Discover(ctx, run.ID, list, nil); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// Close closes the store.
func (q *Queue) Close() error { return q.store.Close() }

// discovery is the i-th URL of the run. URLs leave in the order they came, as in a crawl that goes from level to level.
func discovery(i int64) storage.Discovery {
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], uint64(i))
	sum := sha256.Sum256(raw[:])
	return storage.Discovery{
		Key: storage.Key(sum[:16]), URL: fmt.Sprintf("https://www.example.com/section-%d/some-product-page-%d.html", i%37, i), Host: host,
		Priority: 350, Depth: 1,
	}
}

// new is a URL that no page has linked to yet, one hop deeper than the page.
func (q *Queue) new(depth int) storage.Discovery {
	d := discovery(q.next.Add(1) - 1)
	d.Depth = depth + 1
	return d
}

func (q *Queue) page() *storage.PageResult {
	return &storage.PageResult{
		State: storage.Fetched, Status: 200, ContentType: "text/html; charset=utf-8", Bytes: 11000, WireBytes: 3000, TTFB: 5 * time.Millisecond,
		Total: 9 * time.Millisecond, Attempts: 1, Title: "A product page with a title of usual length | Example", Outlinks: linksPerPage,
		Facts: q.facts, Links: q.links,
	}
}

// Turns returns as many turns of the store as workers are to take them.
func (q *Queue) Turns(workers int) []Turn {
	turns := make([]Turn, workers)
	for w := range turns {
		owner := storage.Owner(fmt.Sprintf("node.%d", w+1))
		turns[w] = func(ctx context.Context) (int, error) { return q.turn(ctx, owner) }
	}
	return turns
}

func (q *Queue) turn(ctx context.Context, owner storage.Owner) (int, error) {
	claims, err := q.store.Claim(ctx, owner, []storage.ClaimRequest{{Run: q.run, Host: host, N: Batch}})
	if err != nil {
		return 0, err
	}
	results := make([]storage.Result, 0, len(claims))
	for _, c := range claims {
		found := []storage.Discovery{q.new(c.Depth)}
		results = append(results, storage.Result{Run: c.Run, ID: c.ID, Token: c.Token, Discovered: found, Page: q.page()})
	}
	out, err := q.store.Finish(ctx, owner, results)
	for i := range out {
		if err == nil && out[i] != storage.OutcomeDone {
			err = fmt.Errorf("result %d of a claim was refused", i)
		}
	}
	return len(out), err
}
