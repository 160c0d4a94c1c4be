package sqlstore

import (
	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// walk goes over the hosts of runs that have URLs in the frontier, in order of their ids. Each host costs a look or two at the
// index, whatever is queued on it.
type walk struct {
	s *Store
	// all and one name the statement for many hosts, and MySQL's for one, which gives the same columns.
	all, one string
	host     int // the column that holds the host's id
	args     []any
}

// Chunks of hosts in one round trip: small at first, since most runs have a few.
const (
	firstHosts = 4
	moreHosts  = 256
)

// over calls each for each host of each run.
func (w walk) over(tx *sqldb.Tx, runs []storage.RunID, each func(run int, r *sqldb.Row)) error {
	type cursor struct {
		run  int
		last int64
	}
	left := make([]cursor, len(runs))
	for i := range left {
		left[i].run = i
	}
	for chunk := firstHosts; len(left) > 0; chunk = moreHosts {
		seen := make([]int, len(left))
		for i := range left {
			c := &left[i]
			w.queue(tx, runs[c.run], c.last, chunk, func(r *sqldb.Row) error {
				if r.Null(w.host) {
					return nil // the walk has ended before
				}
				seen[i]++
				c.last = max(c.last, r.Int(w.host))
				each(c.run, r)
				return nil
			})
		}
		if err := tx.Flush(); err != nil {
			return err
		}
		var more []cursor
		for i := range left {
			if seen[i] == chunk {
				more = append(more, left[i])
			}
		}
		left = more
	}
	return nil
}

func (w walk) queue(tx *sqldb.Tx, run storage.RunID, after int64, chunk int, each func(*sqldb.Row) error) {
	args := append([]any{int64(run)}, w.args...)
	one := w.s.set.Find(w.one)
	if one == nil {
		tx.Query(w.s.set.Get(w.all), each, append(args, after, int64(chunk))...)
		return
	}
	tx.Exec(w.s.set.Get("walk_from"), after)
	for range chunk {
		tx.Exec(w.s.set.Get("walk_next"), int64(run))
		tx.Query(one, each, args...)
	}
}

// countFrom counts a run's URLs in the frontier from a place on.
func (s *Store) countFrom(tx *sqldb.Tx, run storage.RunID, low int64) (n int64, err error) {
	w := walk{s: s, all: "count_from", one: "walk_count", host: 0, args: []any{low}}
	err = w.over(tx, []storage.RunID{run}, func(_ int, r *sqldb.Row) { n += r.Int(1) })
	return n, err
}
