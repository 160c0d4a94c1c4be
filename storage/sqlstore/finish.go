package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// Finish implements [storage.Frontier].
//
// It first writes as if every claim still held, which is one round trip; the database refuses where one does not, and only then each
// is looked at.
func (s *Store) Finish(ctx context.Context, _ storage.Owner, results []storage.Result) ([]storage.Outcome, error) {
	if len(results) == 0 {
		return nil, nil
	}
	b := new(batch)
	groups := make([][]storage.Discovery, len(results))
	for i := range results {
		if (results[i].Page == nil) == (results[i].Delay == nil) {
			return nil, fmt.Errorf("finish: result of URL %d needs a page or a delay", results[i].ID)
		}
		groups[i] = results[i].Discovered
	}
	if err := s.prepare(ctx, b, func(i int) storage.RunID { return results[i].Run }, groups); err != nil {
		return nil, doing(err, "finish")
	}
	shard := s.shard()
	all := func(int) bool { return true }
	s.build(b, results, all)
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error { s.writeBatch(tx, b, shard); return nil })
	if err == nil {
		s.queued(b, all)
		out := make([]storage.Outcome, len(results))
		for i := range out {
			out[i] = storage.OutcomeDone
		}
		return out, nil
	}
	if errors.Is(err, sqldb.ErrMismatch) || errors.Is(err, sqldb.ErrUnique) {
		return s.finishChecked(ctx, b, results, shard)
	}
	return nil, doing(err, "finish")
}

// finishChecked finishes results of which some are not their claim's any more.
func (s *Store) finishChecked(ctx context.Context, b *batch, results []storage.Result, shard int64) ([]storage.Outcome, error) {
	at := make(map[held]int, len(results)) // the first result with a token is the one written
	var ask, askDelays sqldb.Table
	for i := range results {
		h := held{int64(results[i].Run), int64(results[i].ID), int64(results[i].Token), 0}
		if _, dup := at[h]; dup {
			continue
		}
		at[h] = i
		ask.Add(h.run, h.id, h.token)
		if results[i].Delay != nil {
			askDelays.Add(h.run, h.id, h.token)
		}
	}
	first := func(i int) int {
		return at[held{int64(results[i].Run), int64(results[i].ID), int64(results[i].Token), 0}]
	}
	var holds, done []bool
	keep := func(i int) bool { return holds[i] }
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		holds, done = make([]bool, len(results)), make([]bool, len(results))
		mark := func(in []bool) func(r *sqldb.Row) error {
			return func(r *sqldb.Row) error {
				in[at[held{r.Int(0), r.Int(1), r.Int(2), 0}]] = true
				return nil
			}
		}
		tx.QueryRows(s.set.Get("claim_match"), mark(holds), &ask)
		tx.QueryRows(s.set.Get("page_match"), mark(done), &ask)
		tx.QueryRows(s.set.Get("delay_match"), mark(done), &askDelays, int64(delayed))
		if err := tx.Flush(); err != nil {
			return err
		}
		s.build(b, results, keep)
		for i := range results {
			if j := first(i); !holds[j] && !done[j] {
				b.count(results[i].Run, tallyLate, 1)
			}
		}
		b.fillTally()
		s.writeBatch(tx, b, shard)
		return nil
	})
	if err != nil {
		return nil, doing(err, "finish")
	}
	s.queued(b, keep)
	out := make([]storage.Outcome, len(results))
	for i := range out {
		out[i] = storage.OutcomeStale
		if j := first(i); holds[j] || done[j] {
			out[i] = storage.OutcomeDone
		}
	}
	return out, nil
}

// Discover implements [storage.Frontier].
func (s *Store) Discover(ctx context.Context, run storage.RunID, list []storage.Discovery, fence *storage.Fence) (added int, err error) {
	b := new(batch)
	if err := s.prepare(ctx, b, func(int) storage.RunID { return run }, [][]storage.Discovery{list}); err != nil {
		return 0, doing(err, "discover")
	}
	shard := s.shard()
	all := func(int) bool { return true }
	s.build(b, nil, all)
	var n *sqldb.Count
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
		if fence != nil {
			if err := s.passFence(tx, *fence); err != nil {
				return err
			}
		}
		n = s.writeBatch(tx, b, shard)
		return nil
	})
	if err != nil {
		return 0, doing(fenced(err, fence), "discover")
	}
	s.queued(b, all)
	return int(n.N), nil
}

// build fills all tables with those results that keep says.
func (s *Store) build(b *batch, results []storage.Result, keep func(int) bool) {
	for _, t := range []*sqldb.Table{&b.claims, &b.pages, &b.links, &b.delays, &b.urls, &b.fills, &b.ranges, &b.excluded, &b.exclTally, &b.tally, &b.give} {
		t.Reset()
	}
	if b.counts == nil {
		b.counts = map[counter]int64{}
	}
	clear(b.counts)
	give := map[storage.RunID]int64{}
	for i := range results {
		if !keep(i) {
			continue
		}
		r := &results[i]
		b.claims.Add(int64(r.Run), int64(r.ID), int64(r.Token))
		if r.Delay != nil {
			b.delays.Add(int64(r.Run), int64(r.ID), max(r.Delay.For.Microseconds(), 0), int64(r.Delay.Attempts), int64(r.Token),
				clean(string(r.Delay.Reason), maxReason))
			continue
		}
		b.addPage(r)
		if r.Page.State == storage.Excluded {
			give[r.Run]++
		}
	}
	for _, run := range sortedRuns(give) {
		b.give.Add(int64(run), give[run])
	}
	s.addFound(b, keep)
	b.fillTally()
}

func (b *batch) addPage(r *storage.Result) {
	p := r.Page
	reason := clean(string(p.Reason), maxReason)
	b.pages.Add(int64(r.Run), int64(r.ID), int64(r.Token), int64(p.State), int64(p.Status), int64(p.Attempts), int64(p.Outlinks), p.Bytes, p.WireBytes,
		p.TTFB.Microseconds(), p.Total.Microseconds(), reason, clean(p.ContentType, maxContentType), clean(p.Title, maxTitle),
		clean(p.RedirectTo, maxLocation), p.Facts)
	if len(p.Links) > 0 {
		b.links.Add(int64(r.Run), int64(r.ID), p.Links)
	}
	switch p.State {
	case storage.Fetched:
		b.count(r.Run, tallyFetched, 1)
	case storage.Failed:
		b.count(r.Run, tallyFailed, 1)
	default:
		b.count(r.Run, tallyExcluded, 1)
	}
	if p.State != storage.Fetched {
		b.count(r.Run, tallyReason+reason, 1)
	}
	if p.Status != 0 {
		b.count(r.Run, statusTally(p.Status), 1)
	}
	b.count(r.Run, tallyBytes, p.Bytes)
	b.count(r.Run, tallyWire, p.WireBytes)
}

func statusTally(status int) string {
	if status == 200 {
		return tallyStatus + "200"
	}
	return tallyStatus + strconv.Itoa(status)
}

func (b *batch) count(run storage.RunID, name string, n int64) {
	if n != 0 {
		b.counts[counter{run, name}] += n
	}
}

// fillTally fills the table of counters, in the order all writers change them.
func (b *batch) fillTally() {
	list := make([]counter, 0, len(b.counts))
	for c := range b.counts {
		list = append(list, c)
	}
	slices.SortFunc(list, func(x, y counter) int { return cmp.Or(cmp.Compare(x.run, y.run), cmp.Compare(x.name, y.name)) })
	b.tally.Reset()
	for _, c := range list {
		b.tally.Add(int64(c.run), c.name, b.counts[c])
	}
}

func sortedRuns[V any](m map[storage.RunID]V) []storage.RunID {
	runs := make([]storage.RunID, 0, len(m))
	for run := range m {
		runs = append(runs, run)
	}
	slices.Sort(runs)
	return runs
}

// writeBatch queues the statements of a batch. The claims are deleted first: what follows counts on their rows. It returns the
// count of URLs that were new.
func (s *Store) writeBatch(tx *sqldb.Tx, b *batch, shard int64) (added *sqldb.Count) {
	if b.claims.Len() > 0 {
		tx.ExecExactly(b.claims.Len(), s.set.Get("claim_delete"), &b.claims)
	}
	tx.ExecRows(s.set.Get("page_insert"), &b.pages)
	tx.ExecRows(s.set.Get("link_insert"), &b.links)
	tx.ExecRows(s.set.Get("frontier_delay"), &b.delays)
	added = tx.ExecRows(s.set.Get("url_insert"), &b.urls)
	tx.ExecRows(s.set.Get("frontier_fill"), &b.fills)
	tx.ExecRows(s.set.Get("page_exclude"), &b.excluded)
	tx.ExecRows(s.set.Get("tally_found"), &b.ranges, shard)
	tx.ExecRows(s.set.Get("tally_excluded"), &b.exclTally, shard)
	tx.ExecRows(s.set.Get("tally_add"), &b.tally, shard)
	tx.ExecRows(s.set.Get("budget_give"), &b.give)
	return added
}

// queued tells the marks of slow claims what this process has put before them.
func (s *Store) queued(b *batch, keep func(int) bool) {
	for i := range b.found {
		if f := &b.found[i]; keep(f.result) && f.d.Exclude == "" {
			s.heads.queued(f.run, f.host, weight(f.d.Priority, f.d.Depth))
		}
	}
}

// CloseFrontier implements [storage.Frontier].
func (s *Store) CloseFrontier(ctx context.Context, run storage.RunID, reason storage.Reason, limit int) (n int, more bool, err error) {
	shard := s.shard()
	word := clean(string(reason), maxReason)
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
		var pages, places, tally, give sqldb.Table
		var placed int64
		tx.Query(s.set.Get("frontier_some"), func(r *sqldb.Row) error {
			places.Add(int64(run), r.Int(0), r.Int(1), r.Int(2))
			pages.Add(int64(run), r.Int(2), r.Int(3))
			if r.Int(1) >= again {
				placed++
			}
			return nil
		}, int64(run), int64(limit))
		if err := tx.Flush(); err != nil {
			return err
		}
		n, more = pages.Len(), pages.Len() == limit
		if n == 0 {
			return nil
		}
		tx.ExecExactly(n, s.set.Get("frontier_delete"), &places)
		tx.ExecRows(s.set.Get("page_close"), &pages, int64(storage.Excluded), word)
		tally.Add(int64(run), tallyExcluded, int64(n))
		tally.Add(int64(run), tallyReason+word, int64(n))
		tx.ExecRows(s.set.Get("tally_add"), &tally, shard)
		if placed > 0 {
			give.Add(int64(run), placed)
		}
		tx.ExecRows(s.set.Get("budget_give"), &give)
		return nil
	})
	return n, more, doing(err, "close the frontier of run %d", run)
}
