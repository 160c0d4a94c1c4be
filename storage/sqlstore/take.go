package sqlstore

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// errUncounted says that a run's page limit has not been counted yet.
var errUncounted = errors.New("page limit not counted")

// claimAtOnce claims where one statement can, which makes the call one round trip.
func (s *Store) claimAtOnce(ctx context.Context, take *sqldb.Stmt, c *call) error {
	for {
		began := time.Now()
		low := s.heads.of(c, began)
		err := s.db.Do(ctx, func(tx *sqldb.Tx) error { return s.take(tx, take, c, low) })
		if err == nil {
			c.claims = c.claims[:0]
			cost := time.Since(began) - time.Duration(len(c.asks))*askCost
			for i, a := range c.asks {
				slices.SortFunc(a.rows, func(x, y picked) int { return x.before(&y) })
				for k := range a.rows {
					c.claims = append(c.claims, a.rows[k].claim)
				}
				s.heads.claimed(a, low[i], began, cost)
			}
			err = s.uncounted(c)
		}
		if !errors.Is(err, errUncounted) || len(c.claims) > 0 {
			if errors.Is(err, errUncounted) {
				err = nil // what waited for another attempt was enough for now
			}
			return err
		}
		if err := s.countLimits(ctx, c); err != nil {
			return err
		}
	}
}

func (s *Store) take(tx *sqldb.Tx, take *sqldb.Stmt, c *call, low []place) error {
	clear(c.allotted)
	tx.QueryRows(s.set.Get("budget_lock"), c.readAllotted(), &c.limit)
	tx.ExecRows(s.set.Get("frontier_promote"), &c.pairs, int64(delayed), int64(again))
	for i, a := range c.asks {
		tx.Query(take, a.collect(c.base), int64(a.run), a.hostID, int64(a.n), low[i].pos, low[i].id, int64(again), int64(delayed), int64(a.maxPages), c.base, string(c.owner), int64(-boost))
	}
	return nil
}

// uncounted reports whether a run under a page limit is active and not counted yet.
func (s *Store) uncounted(c *call) error {
	for _, run := range c.limited {
		if n, active := c.allotted[run]; active && n < 0 {
			return errUncounted
		}
	}
	return nil
}

// countLimits counts what page limits have given out so far, once in the life of a limit.
func (s *Store) countLimits(ctx context.Context, c *call) error {
	return s.db.Do(ctx, func(tx *sqldb.Tx) error {
		clear(c.allotted)
		tx.QueryRows(s.set.Get("budget_lock"), c.readAllotted(), &c.limit)
		if err := tx.Flush(); err != nil {
			return err
		}
		for _, run := range c.limited {
			if n, active := c.allotted[run]; !active || n >= 0 {
				continue
			}
			n, err := s.countAllotted(tx, run)
			if err != nil {
				return err
			}
			tx.Exec(s.set.Get("budget_set"), int64(run), n)
		}
		return nil
	})
}

// place is a point in the order of a host's URLs.
type place struct{ pos, id int64 }

func (p place) less(o place) bool { return p.pos < o.pos || p.pos == o.pos && p.id < o.id }

var start = place{math.MinInt64, math.MinInt64}

// heads remembers where the dead rows at the head of a host's URLs end. A snapshot held open for long, as a dump does, keeps PostgreSQL
// from removing the rows that claims delete, and each claim wades through all of them again. Only while claims are slow do they start
// from the place where the last one ended; a look from the very start is taken every second or more rarely, by its cost, so that
// what other nodes have put before that place waits so long at most. What this node puts there moves the place back at once.
type heads struct {
	mu  sync.Mutex
	low map[head]*headMark
}

type head struct {
	run  storage.RunID
	host int64
}

type headMark struct {
	low  place
	cost time.Duration // of the last look from the start
	full time.Time     // when the next one is due
}

const (
	slowClaim  = 25 * time.Millisecond // beyond what many asks take by their number
	askCost    = time.Millisecond
	fullEvery  = time.Second
	fullShare  = 20 // looks from the start cost at most this part of the time
	fullAtMost = 10 * time.Second
	headShort  = 4 // and this part where claims get less than they ask for
	maxHeads   = 100_000
)

// of returns the places to start from.
func (h *heads) of(c *call, now time.Time) []place {
	out := make([]place, len(c.asks))
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, a := range c.asks {
		out[i] = start
		if m := h.low[head{a.run, a.hostID}]; m != nil && now.Before(m.full) {
			out[i] = m.low
		}
	}
	return out
}

// claimed notes where a claim that began at low ended and what it cost.
func (h *heads) claimed(a *ask, low place, began time.Time, cost time.Duration) {
	k := head{a.run, a.hostID}
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.low[k]
	if low == start {
		if cost < slowClaim {
			delete(h.low, k)
			return
		}
		if h.low == nil || len(h.low) >= maxHeads {
			h.low = map[head]*headMark{}
		}
		m = &headMark{low: start, cost: cost, full: began.Add(cost + min(max(fullShare*cost, fullEvery), fullAtMost))}
		h.low[k] = m
	}
	if m == nil || m.low != low {
		return // moved meanwhile, by another claim or by what was queued
	}
	for i := range a.rows {
		p := &a.rows[i]
		if end := (place{p.pos, int64(p.claim.ID)}); p.fresh() && m.low.less(end) {
			m.low = end
		}
	}
	if soon := began.Add(headShort * m.cost); len(a.rows) < a.n && soon.Before(m.full) {
		m.full = soon // little is left behind it
	}
}

// queued notes that this node has put URLs at a place.
func (h *heads) queued(run storage.RunID, host, pos int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.low[head{run, host}]; m != nil && pos <= m.low.pos {
		m.low = place{pos, math.MinInt64}
	}
}

// forget drops all marks: URLs were put at places not known here.
func (h *heads) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.low)
}
