package sqlstore

import (
	"context"
	"fmt"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// DeleteRun implements [storage.Runs].
func (s *Store) DeleteRun(ctx context.Context, id storage.RunID, limit int) (done bool, err error) {
	limit = max(limit, 1)
	done, err = s.deleteSome(ctx, id, int64(limit))
	if done {
		s.ids.drop(id)
	}
	return done, doing(err, "delete run %d", id)
}

func (s *Store) deleteSome(ctx context.Context, id storage.RunID, left int64) (done bool, err error) {
	if err := s.markDeleting(ctx, id); err != nil {
		return false, err
	}
	n, err := s.deleteFrontier(ctx, id, left)
	if err != nil {
		return false, err
	}
	left -= n
	for _, table := range []string{"page_link", "page", "inlink", "url"} {
		if left <= 0 {
			return false, nil
		}
		n, err := s.deleteFrom(ctx, table, id, left)
		if err != nil {
			return false, err
		}
		left -= n
	}
	if left <= 0 {
		return false, nil
	}
	return true, s.db.Do(ctx, func(tx *sqldb.Tx) error {
		for _, name := range []string{"delete_claims", "delete_rest_steps", "delete_rest_tally", "delete_rest_seats", "delete_rest_places", "delete_rest_boosts", "delete_run"} {
			tx.Exec(s.set.Get(name), int64(id))
		}
		return nil
	})
}

// markDeleting makes the run one that is neither listed nor served, and takes its claims away: their results come too late.
func (s *Store) markDeleting(ctx context.Context, id storage.RunID) error {
	return s.db.Do(ctx, func(tx *sqldb.Tx) error {
		var state string
		marked := tx.Exec(s.set.Get("delete_mark"), int64(id))
		tx.Query(s.set.Get("delete_state"), func(r *sqldb.Row) error { state = r.Text(0); return nil }, int64(id))
		if err := tx.Flush(); err != nil {
			return err
		}
		switch {
		case state == "":
			return storage.ErrNotFound
		case marked.N == 0:
			return fmt.Errorf("it is %s: %w", state, storage.ErrState)
		}
		tx.Exec(s.set.Get("delete_claims"), int64(id))
		return nil
	})
}

func (s *Store) deleteFrontier(ctx context.Context, id storage.RunID, limit int64) (n int64, err error) {
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
		var places sqldb.Table
		tx.Query(s.set.Get("frontier_some"), func(r *sqldb.Row) error {
			places.Add(int64(id), r.Int(0), r.Int(1), r.Int(2))
			return nil
		}, int64(id), limit)
		if err := tx.Flush(); err != nil {
			return err
		}
		n = int64(places.Len())
		tx.ExecRows(s.set.Get("frontier_delete"), &places)
		return nil
	})
	return n, err
}

// deleteFrom deletes the first rows of a run in a table that is ordered by id.
func (s *Store) deleteFrom(ctx context.Context, table string, id storage.RunID, limit int64) (n int64, err error) {
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
		var last int64
		n = 0
		tx.Query(s.set.Get("cut_"+table), func(r *sqldb.Row) error { last, n = r.Int(0), r.Int(1); return nil }, int64(id), firstURL(id), limit)
		if err := tx.Flush(); err != nil {
			return err
		}
		if n > 0 {
			tx.Exec(s.set.Get("delete_"+table), int64(id), firstURL(id), last)
		}
		return nil
	})
	return n, err
}

// Compact gives the room of deleted runs back to the system on SQLite, where nothing else does, in steps so small that claims hardly wait.
func (s *Store) Compact(ctx context.Context) error { return doing(s.db.Compact(ctx), "compact") }
