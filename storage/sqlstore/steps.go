package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// passFence queues the check that no newer holder of a lease has written: what follows in the transaction happens only then.
func (s *Store) passFence(tx *sqldb.Tx, f storage.Fence) error {
	if f.Epoch > math.MaxInt64 || f.Number > math.MaxInt64 {
		return fmt.Errorf("fence %s is out of range", f)
	}
	tx.Exec(s.set.Get("fence_add"), f.Name, int64(f.Epoch), int64(f.Number))
	tx.ExecExactly(1, s.set.Get("fence_pass"), nil, f.Name, int64(f.Epoch), int64(f.Number))
	return nil
}

// fenced turns the mismatch of passFence into the contract's word.
func fenced(err error, f *storage.Fence) error {
	if f != nil && errors.Is(err, sqldb.ErrMismatch) {
		return fmt.Errorf("%s: %w", f, storage.ErrFenced)
	}
	return err
}

// Step implements [storage.Steps].
func (s *Store) Step(ctx context.Context, run storage.RunID, name string) (st storage.Step, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		st = storage.Step{Name: name}
		tx.Query(s.set.Get("step_get"), func(r *sqldb.Row) error {
			st.Cursor, st.Done, st.Updated = r.Bytes(0), r.Int(1) != 0, when(r.Int(2))
			return nil
		}, int64(run), name)
		return nil
	})
	return st, doing(err, "step %s of run %d", name, run)
}

// SaveStep implements [storage.Steps].
func (s *Store) SaveStep(ctx context.Context, run storage.RunID, st storage.Step, fence storage.Fence) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		if err := s.passFence(tx, fence); err != nil {
			return err
		}
		tx.Exec(s.set.Get("step_save"), int64(run), st.Name, st.Cursor, flag(st.Done))
		return nil
	})
	return doing(fenced(err, &fence), "save step %s of run %d", st.Name, run)
}

// ResetSteps implements [storage.Steps].
func (s *Store) ResetSteps(ctx context.Context, run storage.RunID, prefix string) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		var drop sqldb.Table
		tx.Query(s.set.Get("step_names"), func(r *sqldb.Row) error {
			if name := r.Text(0); strings.HasPrefix(name, prefix) {
				drop.Add(name)
			}
			return nil
		}, int64(run))
		if err := tx.Flush(); err != nil {
			return err
		}
		tx.ExecRows(s.set.Get("step_drop"), &drop, int64(run))
		return nil
	})
	return doing(err, "reset steps %s* of run %d", prefix, run)
}
