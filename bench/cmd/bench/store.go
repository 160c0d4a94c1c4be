package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"deepcrawl/bench/queue"
)

// claimers is how many of them claim at once in the scenarios of that name.
const claimers = 8

// storePair is two ways to work a store. Each is a queue of its own, so that neither grows what the other looks at.
type storePair struct {
	base, deep []queue.Turn
	// atOnce has both worked at the same time instead of one after the other: the second is their ratio alone.
	atOnce bool
	slice  time.Duration
	close  func() error
}

// newDatabase returns the DSN that a scenario means: of a file in the folder, or of a new database on a server. An empty one stays empty.
func newDatabase(ctx context.Context, db, dir string, servers map[string]string) (dsn string, drop func() error, err error) {
	switch db {
	case "{postgres}":
		dsn, drop, err = queue.Postgres(ctx, servers[db])
	case "{mysql}":
		dsn, drop, err = queue.MySQL(ctx, servers[db])
	default:
		return strings.ReplaceAll(db, "{dir}", dir), func() error { return nil }, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("make a database on %s: %w", strings.Trim(db, "{}"), err)
	}
	return dsn, drop, nil
}

// store runs the rounds of a scenario of the store alone.
func (r *runner) store(ctx context.Context, s scenario, o options) (rounds []round, err error) {
	r.runs++
	dir := filepath.Join(r.dir, "run-"+strconv.Itoa(r.runs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	p, err := s.Store(ctx, s, o, dir)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	defer func() { err = errors.Join(err, p.close()) }()
	fmt.Fprintf(r.say, "%s: ready after %.0f s\n", s.Name, time.Since(began).Seconds())
	if !p.atOnce {
		if _, err := p.round(ctx, 0); err != nil { // statements are prepared, caches filled
			return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
		}
	}
	for n := range s.Rounds {
		got, err := p.round(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		fmt.Fprintf(r.say, "%s round %d: %s %.0f pages/s, %s %.0f\n", s.Name, n+1, s.Heads[0], got.Null.PagesPerSecond, s.Heads[1], got.Deep.PagesPerSecond)
		rounds = append(rounds, got)
	}
	return rounds, nil
}

// round works both. One after the other each is worked twice, the one that began last first the second time, so that a drift within
// the round harms both alike; which begins changes with the round.
func (p *storePair) round(ctx context.Context, n int) (round, error) {
	if p.atOnce {
		type out struct {
			rate queue.Rate
			err  error
		}
		base := make(chan out, 1)
		go func() {
			rate, err := queue.Work(ctx, p.slice, p.base...)
			base <- out{rate, err}
		}()
		deep, err := queue.Work(ctx, p.slice, p.deep...)
		b := <-base
		got := round{Null: rateSide(b.rate), Deep: rateSide(deep)}
		got.Null.CPUMicros, got.Deep.CPUMicros = 0, 0 // nobody knows whose it was
		return got, errors.Join(err, b.err)
	}
	order := []bool{true, false, false, true}
	if n%2 == 1 {
		order = []bool{false, true, true, false}
	}
	var base, deep queue.Rate
	for _, isBase := range order {
		to, turns := &deep, p.deep
		if isBase {
			to, turns = &base, p.base
		}
		got, err := queue.Work(ctx, p.slice, turns...)
		if err != nil {
			return round{}, err
		}
		to.Pages, to.Wall, to.CPU = to.Pages+got.Pages, to.Wall+got.Wall, to.CPU+got.CPU
	}
	return round{Null: rateSide(base), Deep: rateSide(deep)}, nil
}

func rateSide(r queue.Rate) *side {
	n := float64(max(r.Pages, 1))
	return &side{Pages: r.Pages, Seconds: r.Wall.Seconds(), PagesPerSecond: float64(r.Pages) / r.Wall.Seconds(), CPUMicros: float64(r.CPU.Microseconds()) / n}
}

// servers are by what stands for a database of theirs in a DSN.
func (o options) servers() map[string]string {
	return map[string]string{"{postgres}": o.postgres, "{mysql}": o.mysql}
}

// opened is databases and queues to be closed together.
type opened struct{ closers []func() error }

func (c *opened) close() error {
	var errs []error
	for _, f := range slices.Backward(c.closers) {
		errs = append(errs, f())
	}
	c.closers = nil
	return errors.Join(errs...)
}

// queue opens a queue in a new database.
func (c *opened) queue(ctx context.Context, s scenario, o options, dir, name string, queued, workers int) (*queue.Queue, string, error) {
	dir = filepath.Join(dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, "", err
	}
	dsn, drop, err := newDatabase(ctx, s.DB, dir, o.servers())
	if err != nil {
		return nil, "", err
	}
	c.closers = append(c.closers, drop)
	q, err := queue.Open(ctx, dsn, queued, workers)
	if err != nil {
		return nil, "", err
	}
	c.closers = append(c.closers, q.Close)
	return q, dsn, nil
}

// openQueues makes a short queue and one a hundred times as long.
func openQueues(ctx context.Context, s scenario, o options, dir string) (storePair, error) {
	var c opened
	p := storePair{slice: s.Slice, close: c.close}
	for _, part := range []struct {
		queued int
		turns  *[]queue.Turn
	}{{s.Queued / 100, &p.base}, {s.Queued, &p.deep}} {
		q, _, err := c.queue(ctx, s, o, dir, strconv.Itoa(part.queued), part.queued, 1)
		if err != nil {
			return p, errors.Join(err, c.close())
		}
		*part.turns = q.Turns(1)
	}
	return p, nil
}

// openClaimers makes two queues alike, one to be worked by hand.
func openClaimers(ctx context.Context, s scenario, o options, dir string) (storePair, error) {
	var c opened
	p := storePair{slice: s.Slice, close: c.close}
	q, _, err := c.queue(ctx, s, o, dir, "store", s.Queued, claimers)
	if err != nil {
		return p, errors.Join(err, c.close())
	}
	p.deep = q.Turns(claimers)
	hand, dsn, err := c.queue(ctx, s, o, dir, "hand", s.Queued, claimers)
	if err != nil {
		return p, errors.Join(err, c.close())
	}
	byHand := queue.PostgresByHand
	if s.DB == "{mysql}" {
		byHand = queue.MySQLByHand
	}
	turns, done, err := byHand(ctx, hand, dsn, claimers)
	if err != nil {
		return p, errors.Join(err, c.close())
	}
	c.closers = append(c.closers, func() error { done(); return nil })
	p.base = turns
	return p, nil
}

// openSnapshot makes two queues alike, and holds a snapshot in the database of one.
func openSnapshot(ctx context.Context, s scenario, o options, dir string) (storePair, error) {
	var c opened
	p := storePair{slice: o.snapshot / time.Duration(s.Rounds), atOnce: true, close: c.close}
	free, _, err := c.queue(ctx, s, o, dir, "free", s.Queued, 1)
	if err != nil {
		return p, errors.Join(err, c.close())
	}
	held, dsn, err := c.queue(ctx, s, o, dir, "held", s.Queued, 1)
	if err != nil {
		return p, errors.Join(err, c.close())
	}
	release, err := queue.Hold(ctx, dsn)
	if err != nil {
		return p, errors.Join(err, c.close())
	}
	c.closers = append(c.closers, release)
	p.base, p.deep = free.Turns(1), held.Turns(1)
	return p, nil
}
