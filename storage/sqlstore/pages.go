package sqlstore

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// scanPage reads the columns page_list and url_list have in common.
func scanPage(r *sqldb.Row, inlinked bool) storage.PageRow {
	p := storage.PageRow{
		ID: storage.URLID(r.Int(0)), URL: r.Text(1), Host: r.Text(3), Depth: int(r.Int(4)), Via: storage.URLID(r.Int(5)),
		Priority: int(r.Int(6)), Discovered: when(r.Int(7)), FetchedAt: when(r.Int(21)), Inlinks: r.Int(8),
		PageResult: storage.PageResult{
			State: storage.State(r.Int(9)), Reason: storage.Reason(r.Text(10)), Status: int(r.Int(11)), ContentType: r.Text(12),
			Bytes: r.Int(13), WireBytes: r.Int(14), TTFB: micros(r.Int(15)), Total: micros(r.Int(16)), Attempts: int(r.Int(17)),
			Title: r.Text(18), RedirectTo: r.Text(19), Outlinks: int(r.Int(20)), Facts: r.Bytes(22), Links: r.Bytes(23),
		},
	}
	copy(p.Key[:], r.Bytes(2))
	if !inlinked && r.Null(8) {
		p.Inlinks = -1
	}
	return p
}

// ListPages implements [storage.Pages].
func (s *Store) ListPages(ctx context.Context, run storage.RunID, q storage.PageQuery) (rows []storage.PageRow, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		rows, err = s.listPages(tx, run, q)
		return err
	})
	return rows, doing(err, "list pages of run %d", run)
}

func (s *Store) listPages(tx *sqldb.Tx, run storage.RunID, q storage.PageQuery) (rows []storage.PageRow, err error) {
	limit := min(q.Limit, 10_000)
	if limit <= 0 {
		limit = 1000
	}
	inlinked, err := s.inlinked(tx, run)
	if err != nil {
		return nil, err
	}
	after := max(int64(q.After), firstURL(run))
	if !q.Unfinished {
		each := func(r *sqldb.Row) error { rows = append(rows, scanPage(r, inlinked)); return nil }
		low, high := statusRange(q.Status)
		states := terminalStates(q.States)
		tx.Query(s.set.Get("page_list"), each, int64(run), after, endURL(run), int64(limit), states[0], states[1], states[2],
			flag(q.Reason == ""), string(q.Reason), low, high, flag(q.WithFacts), flag(q.WithLinks))
		return rows, tx.Flush()
	}
	// Unfinished rows are told apart on this side, so pages are read until there are enough.
	for len(rows) < limit {
		var got []storage.PageRow
		each := func(r *sqldb.Row) error { got = append(got, scanPage(r, inlinked)); return nil }
		tx.Query(s.set.Get("url_list"), each, int64(run), after, endURL(run), int64(limit), flag(q.WithFacts), flag(q.WithLinks), int64(again))
		if err := tx.Flush(); err != nil {
			return nil, err
		}
		if err := s.addDelays(tx, run, got); err != nil {
			return nil, err
		}
		for i := range got {
			if len(rows) < limit && matches(&q, &got[i]) {
				rows = append(rows, got[i])
			}
		}
		if len(got) < limit {
			break
		}
		after = int64(got[len(got)-1].ID)
	}
	return rows, nil
}

func (s *Store) inlinked(tx *sqldb.Tx, run storage.RunID) (done bool, err error) {
	tx.Query(s.set.Get("run_get"), func(r *sqldb.Row) error { done = r.Int(16) != 0; return nil }, int64(run))
	return done, tx.Flush()
}

// addDelays fills in what only the frontier knows of delayed URLs, and tells boosted ones from them.
func (s *Store) addDelays(tx *sqldb.Tx, run storage.RunID, rows []storage.PageRow) error {
	at := map[int64]int{}
	var hosts sqldb.Table
	asked := map[string]bool{}
	for i := range rows {
		if rows[i].State != storage.Delayed {
			continue
		}
		at[int64(rows[i].ID)] = i
		if h := rows[i].Host; !asked[h] {
			asked[h] = true
			hosts.Add(h)
		}
	}
	tx.QueryRows(s.set.Get("url_delayed"), func(r *sqldb.Row) error {
		if i, ok := at[r.Int(0)]; ok {
			rows[i].Attempts, rows[i].Reason = int(r.Int(1)), storage.Reason(r.Text(2))
		}
		return nil
	}, &hosts, int64(run), int64(delayed))
	s.askBoosted(tx, run, &hosts, func(r *sqldb.Row) error {
		if i, ok := at[r.Int(0)]; ok {
			rows[i].State, rows[i].Attempts = storage.Queued, int(r.Int(1))
		}
		return nil
	})
	return tx.Flush()
}

// statusRange turns a filter's status into bounds: 0 any, 1 to 5 a class, else exact.
func statusRange(status int) (low, high int64) {
	switch {
	case status == 0:
		return 0, math.MaxInt32
	case status <= 5:
		return int64(status) * 100, int64(status)*100 + 99
	}
	return int64(status), int64(status)
}

// terminalStates returns the terminal ones of a filter's states, all where there is no filter.
func terminalStates(states []storage.State) [3]any {
	out := [3]any{int64(0), int64(0), int64(0)}
	n := 0
	for _, st := range []storage.State{storage.Fetched, storage.Failed, storage.Excluded} {
		if len(states) == 0 || has(states, st) {
			out[n] = int64(st)
			n++
		}
	}
	return out
}

func has(states []storage.State, st storage.State) bool {
	for _, x := range states {
		if x == st {
			return true
		}
	}
	return false
}

func matches(q *storage.PageQuery, p *storage.PageRow) bool {
	low, high := statusRange(q.Status)
	return (len(q.States) == 0 || has(q.States, p.State)) && (q.Reason == "" || q.Reason == p.Reason) && int64(p.Status) >= low && int64(p.Status) <= high
}

// PageByKey implements [storage.Pages].
func (s *Store) PageByKey(ctx context.Context, run storage.RunID, key storage.Key) (row storage.PageRow, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		row, err = s.pageByKey(tx, run, key)
		return err
	})
	return row, doing(err, "URL %x of run %d", key, run)
}

func (s *Store) pageByKey(tx *sqldb.Tx, run storage.RunID, key storage.Key) (storage.PageRow, error) {
	var id int64
	tx.Query(s.set.Get("url_by_key"), func(r *sqldb.Row) error { id = r.Int(0); return nil }, int64(run), key[:])
	if err := tx.Flush(); err != nil {
		return storage.PageRow{}, err
	}
	if id == 0 {
		return storage.PageRow{}, storage.ErrNotFound
	}
	rows, err := s.listPages(tx, run, storage.PageQuery{After: storage.URLID(id - 1), Limit: 1, Unfinished: true, WithFacts: true, WithLinks: true})
	if err != nil {
		return storage.PageRow{}, err
	}
	if len(rows) == 0 {
		return storage.PageRow{}, storage.ErrNotFound
	}
	return rows[0], nil
}

// URLs implements [storage.Pages].
func (s *Store) URLs(ctx context.Context, run storage.RunID, ids []storage.URLID) (map[storage.URLID]string, error) {
	var ask sqldb.Table
	for _, id := range ids {
		ask.Add(int64(id))
	}
	out := make(map[storage.URLID]string, len(ids))
	err := s.db.View(ctx, func(tx *sqldb.Tx) error {
		tx.QueryRows(s.set.Get("url_text"), func(r *sqldb.Row) error { out[storage.URLID(r.Int(0))] = r.Text(1); return nil }, &ask, int64(run))
		return nil
	})
	return out, doing(err, "URLs of run %d", run)
}

// prefixRange bounds the keys that begin with a prefix.
func prefixRange(p [8]byte) (low, high []byte) {
	low = append(append(make([]byte, 0, 16), p[:]...), 0, 0, 0, 0, 0, 0, 0, 0)
	return low, append(append(make([]byte, 0, 16), p[:]...), bytes.Repeat([]byte{0xff}, 8)...)
}

// URLsByPrefix implements [storage.Pages].
func (s *Store) URLsByPrefix(ctx context.Context, run storage.RunID, prefixes [][8]byte) (map[[8]byte]storage.URLRef, error) {
	var ask sqldb.Table
	for _, p := range prefixes {
		low, high := prefixRange(p)
		ask.Add(low, high)
	}
	out := make(map[[8]byte]storage.URLRef, len(prefixes))
	err := s.db.View(ctx, func(tx *sqldb.Tx) error {
		tx.QueryRows(s.set.Get("url_by_prefix"), func(r *sqldb.Row) error {
			out[[8]byte(r.Bytes(0)[:8])] = storage.URLRef{
				ID: storage.URLID(r.Int(1)), URL: r.Text(2), State: storage.State(r.Int(3)), Status: int(r.Int(4)), Reason: storage.Reason(r.Text(5)),
			}
			return nil
		}, &ask, int64(run))
		return nil
	})
	return out, doing(err, "URLs of run %d by prefix", run)
}

// Known implements [storage.Pages].
func (s *Store) Known(ctx context.Context, run storage.RunID, keys []storage.Key) (map[storage.Key]int64, error) {
	var ask sqldb.Table
	for i := range keys {
		ask.Add(keys[i][:])
	}
	out := make(map[storage.Key]int64, len(keys))
	err := s.db.View(ctx, func(tx *sqldb.Tx) error {
		tx.QueryRows(s.set.Get("url_known"), func(r *sqldb.Row) error { out[storage.Key(r.Bytes(0))] = r.Int(1); return nil }, &ask, int64(run))
		return nil
	})
	return out, doing(err, "known URLs of run %d", run)
}

// TopPages implements [storage.Pages].
func (s *Store) TopPages(ctx context.Context, run storage.RunID, by string, n int) (rows []storage.PageRow, err error) {
	if by != "bytes" && by != "total" {
		return nil, fmt.Errorf("top pages by %q: allowed are bytes and total", by)
	}
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		rows = nil
		var ids []storage.URLID
		tx.Query(s.set.Get("page_top_"+by), func(r *sqldb.Row) error { ids = append(ids, storage.URLID(r.Int(0))); return nil },
			int64(run), firstURL(run), endURL(run), int64(n))
		if err := tx.Flush(); err != nil {
			return err
		}
		for _, id := range ids {
			got, err := s.listPages(tx, run, storage.PageQuery{After: id - 1, Limit: 1})
			if err != nil {
				return err
			}
			rows = append(rows, got...)
		}
		return nil
	})
	return rows, doing(err, "top pages of run %d", run)
}
