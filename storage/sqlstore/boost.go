package sqlstore

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// boosted reports whether a place in the frontier is one of those before all others.
func boosted(pos int64) bool { return pos < 0 || pos == again }

// ordered is what places are compared by: boosted ones before all others, of them those first that were claimed before.
func ordered(pos, weight int64) int64 {
	switch {
	case pos < 0:
		return pos
	case pos == again:
		return -boost
	}
	return weight
}

const (
	// maxBoost bounds the URLs of one call, sweepRows the rows one transaction puts back.
	maxBoost  = 1000
	sweepRows = 500
	// sweepEvery is how often a store that claims looks for boosts that are over.
	sweepEvery = time.Second
)

// boostable is a URL of a run that may be boosted.
type boostable struct {
	id, host, weight int64
}

// Boost implements [storage.Frontier].
func (s *Store) Boost(ctx context.Context, run storage.RunID, keys []storage.Key, d time.Duration) (n int, err error) {
	if len(keys) == 0 || d <= 0 {
		return 0, nil
	}
	if len(keys) > maxBoost {
		keys = keys[:maxBoost]
	}
	var ask sqldb.Table
	asked := map[storage.Key]bool{}
	for i := range keys {
		if !asked[keys[i]] {
			asked[keys[i]] = true
			ask.Add(keys[i][:])
		}
	}
	var moved []boostable
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
		found := map[int64]boostable{}
		tx.QueryRows(s.set.Get("boost_find"), func(r *sqldb.Row) error {
			found[r.Int(0)] = boostable{r.Int(0), r.Int(1), r.Int(2)}
			return nil
		}, &ask, int64(run))
		if err := tx.Flush(); err != nil {
			return err
		}
		var at, move, put sqldb.Table
		for _, b := range sortedByPlace(found) {
			at.Add(int64(run), b.host, b.id, b.weight, b.weight+again, b.weight-boost, int64(again))
		}
		n, moved = 0, moved[:0]
		tx.QueryRows(s.set.Get("boost_places"), func(r *sqldb.Row) error {
			b, pos := found[r.Int(0)], r.Int(1)
			n++
			put.Add(int64(run), b.id, b.host, b.weight)
			if !boosted(pos) {
				to := b.weight - boost
				if pos >= again {
					to = again
				}
				move.Add(int64(run), b.host, pos, b.id, to)
				moved = append(moved, b)
			}
			return nil
		}, &at)
		if err := tx.Flush(); err != nil {
			return err
		}
		tx.ExecRows(s.set.Get("boost_move"), &move) // what is claimed meanwhile is not met
		tx.ExecRows(s.set.Get("boost_put"), &put, d.Microseconds())
		return nil
	})
	if err != nil {
		return 0, doing(err, "boost URLs of run %d", run)
	}
	for _, b := range moved {
		s.heads.queued(run, b.host, b.weight-boost)
	}
	return n, nil
}

// sortedByPlace puts URLs in the order claims lock them in.
func sortedByPlace(found map[int64]boostable) []boostable {
	out := make([]boostable, 0, len(found))
	for _, b := range found {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b boostable) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.weight, b.weight), cmp.Compare(a.id, b.id))
	})
	return out
}

// sweeps says when boosts that are over were last looked for.
type sweeps struct{ last atomic.Int64 }

func (w *sweeps) due(now time.Time) bool {
	last := w.last.Load()
	return now.UnixNano()-last >= int64(sweepEvery) && w.last.CompareAndSwap(last, now.UnixNano())
}

// endBoosts puts URLs whose boost is over back to their places, now and then: so claims pay nothing for boosts, and a boost may end
// up to a second late. Where it fails the next claim tells why; boosts wait for the next look.
func (s *Store) endBoosts(ctx context.Context) {
	if !s.sweeps.due(time.Now()) {
		return
	}
	for {
		n, err := s.sweep(ctx)
		if err != nil {
			s.log.Debug("end boosts", "err", err)
		}
		if err != nil || n < sweepRows {
			return
		}
	}
}

func (s *Store) sweep(ctx context.Context) (n int, err error) {
	var move, drop sqldb.Table
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		n = 0
		move.Reset()
		drop.Reset()
		tx.Query(s.set.Get("boost_over"), func(r *sqldb.Row) error {
			n++
			run, host, id, weight := r.Int(0), r.Int(1), r.Int(2), r.Int(3)
			move.Add(run, host, weight-boost, id, weight)
			move.Add(run, host, int64(again), id, weight+again)
			drop.Add(run, id, r.Int(4))
			return nil
		}, int64(sweepRows))
		return nil
	})
	if err != nil || n == 0 {
		return n, err
	}
	return n, s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.ExecRows(s.set.Get("boost_drop"), &drop)
		tx.ExecRows(s.set.Get("boost_move"), &move)
		return nil
	})
}

// askBoosted queues the look for the boosted URLs of hosts.
func (s *Store) askBoosted(tx *sqldb.Tx, run storage.RunID, hosts *sqldb.Table, each func(r *sqldb.Row) error) {
	tx.QueryRows(s.set.Get("url_boosted"), each, hosts, int64(run), int64(math.MinInt64), int64(-1))
	tx.QueryRows(s.set.Get("url_boosted"), each, hosts, int64(run), int64(again), int64(again))
}

// aheadOf counts the boosted URLs of a host that leave before one of them; ok is false when it is none.
func (s *Store) aheadOf(tx *sqldb.Tx, run storage.RunID, host string, id int64) (ahead int64, ok bool, err error) {
	var hosts sqldb.Table
	hosts.Add(host)
	var places []place
	s.askBoosted(tx, run, &hosts, func(r *sqldb.Row) error {
		places = append(places, place{ordered(r.Int(2), 0), r.Int(0)})
		return nil
	})
	if err := tx.Flush(); err != nil {
		return 0, false, err
	}
	i := slices.IndexFunc(places, func(p place) bool { return p.id == id })
	if i < 0 {
		return 0, false, nil
	}
	for _, p := range places {
		if p.less(places[i]) {
			ahead++
		}
	}
	return ahead, true, nil
}
