package sqlstore

import (
	"context"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// maxLinkBytes bounds what one call of Links returns.
const maxLinkBytes = 4 << 20

// Links implements [storage.Graph].
func (s *Store) Links(ctx context.Context, run storage.RunID, after storage.URLID, limit int) (rows []storage.PageLinks, err error) {
	start := max(int64(after), firstURL(run))
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		rows = nil
		size := 0
		tx.Query(s.set.Get("link_list"), func(r *sqldb.Row) error {
			if size >= maxLinkBytes {
				return nil
			}
			rows = append(rows, storage.PageLinks{ID: storage.URLID(r.Int(0)), Links: r.Bytes(1)})
			size += len(rows[len(rows)-1].Links)
			return nil
		}, int64(run), start, endURL(run), int64(limit))
		return nil
	})
	return rows, doing(err, "links of run %d", run)
}

// SaveInlinks implements [storage.Graph].
func (s *Store) SaveInlinks(ctx context.Context, run storage.RunID, counts []storage.Inlinks, fence storage.Fence) error {
	var ranges, found sqldb.Table
	at := make(map[[8]byte]*storage.Inlinks, len(counts))
	for i := range counts {
		low, high := prefixRange(counts[i].Prefix)
		ranges.Add(low, high)
		at[counts[i].Prefix] = &counts[i]
	}
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		if err := s.passFence(tx, fence); err != nil {
			return err
		}
		found.Reset()
		tx.QueryRows(s.set.Get("inlink_find"), func(r *sqldb.Row) error {
			c := at[[8]byte(r.Bytes(0)[:8])]
			found.Add(int64(run), r.Int(1), c.Count, int64(c.Source))
			return nil
		}, &ranges, int64(run))
		if err := tx.Flush(); err != nil {
			return err
		}
		tx.ExecRows(s.set.Get("inlink_save"), &found)
		tx.Exec(s.set.Get("inlink_mark"), int64(run))
		return nil
	})
	return doing(fenced(err, &fence), "save inlinks of run %d", run)
}

// BrokenLinks implements [storage.Graph].
func (s *Store) BrokenLinks(ctx context.Context, run storage.RunID, n int) (list []storage.BrokenLink, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		tx.Query(s.set.Get("broken_links"), func(r *sqldb.Row) error {
			list = append(list, storage.BrokenLink{
				ID: storage.URLID(r.Int(0)), URL: r.Text(1), Status: int(r.Int(2)), Reason: storage.Reason(r.Text(3)), Inlinks: r.Int(4), Source: r.Text(5),
			})
			return nil
		}, int64(run), firstURL(run), endURL(run), int64(n), int64(storage.Failed))
		return nil
	})
	return list, doing(err, "broken links of run %d", run)
}
