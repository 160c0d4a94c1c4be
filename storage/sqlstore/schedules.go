package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// Limits of a schedule's texts, in bytes.
const (
	maxScheduleName = 100
	maxZone         = 64
	maxCron         = 1000
)

func scanSchedule(r *sqldb.Row) storage.Schedule {
	return storage.Schedule{
		ID: r.Int(0), Tenant: r.Text(1), Name: r.Text(2), Site: r.Text(3), Spec: r.Bytes(4), Every: micros(r.Int(5)), Cron: r.Text(6), Zone: r.Text(7),
		Next: when(r.Int(8)), LastRun: storage.RunID(r.Int(9)), Created: when(r.Int(10)),
	}
}

func checkSchedule(h storage.Schedule) error {
	switch {
	case h.Every < 0 || (h.Every > 0) == (h.Cron != ""):
		return errors.New("either an interval or a cron expression is needed")
	case len(h.Name) > maxScheduleName:
		return fmt.Errorf("the name has %d bytes, %d are allowed", len(h.Name), maxScheduleName)
	case len(h.Zone) > maxZone || len(h.Cron) > maxCron:
		return errors.New("the cron expression or its zone is too long")
	}
	return nil
}

// AddSchedule implements [storage.Schedules].
func (s *Store) AddSchedule(ctx context.Context, h storage.Schedule) (out storage.Schedule, err error) {
	if err := checkSchedule(h); err != nil {
		return out, fmt.Errorf("add a schedule: %w", err)
	}
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
		if err := s.holdTenant(tx, h.Tenant); err != nil {
			return err
		}
		var id int64
		tx.ExecExactly(1, s.set.Get("schedule_number"), nil)
		tx.Query(s.set.Get("schedule_numbered"), func(r *sqldb.Row) error { id = r.Int(0); return nil })
		if err := tx.Flush(); err != nil {
			return err
		}
		tx.Exec(s.set.Get("schedule_insert"), id, h.Tenant, clean(h.Name, maxScheduleName), h.Site, h.Spec, h.Every.Microseconds(), clean(h.Cron, maxCron),
			clean(h.Zone, maxZone), unixMicros(h.Next))
		tx.Query(s.set.Get("schedule_get"), func(r *sqldb.Row) error { out = scanSchedule(r); return nil }, id)
		return nil
	})
	return out, doing(err, "add a schedule")
}

// Schedules implements [storage.Schedules].
func (s *Store) Schedules(ctx context.Context, tenant string) ([]storage.Schedule, error) {
	list, err := s.schedules(ctx, "schedule_list", tenant)
	return list, doing(err, "list schedules")
}

// DueSchedules implements [storage.Schedules].
func (s *Store) DueSchedules(ctx context.Context, limit int) ([]storage.Schedule, error) {
	list, err := s.schedules(ctx, "schedule_due_list", int64(max(limit, 0)))
	return list, doing(err, "list due schedules")
}

func (s *Store) schedules(ctx context.Context, statement string, args ...any) (list []storage.Schedule, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		tx.Query(s.set.Get(statement), func(r *sqldb.Row) error { list = append(list, scanSchedule(r)); return nil }, args...)
		return nil
	})
	return list, err
}

// RemoveSchedule implements [storage.Schedules].
func (s *Store) RemoveSchedule(ctx context.Context, id int64) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.ExecExactly(1, s.set.Get("schedule_drop"), nil, id)
		return nil
	})
	if errors.Is(err, sqldb.ErrMismatch) {
		err = storage.ErrNotFound
	}
	return doing(err, "remove schedule %d", id)
}

// StartScheduled implements [storage.Schedules].
func (s *Store) StartScheduled(ctx context.Context, id int64, next time.Time, n storage.NewRun, fence storage.Fence) (run storage.Run, merged bool, err error) {
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
		run, merged = storage.Run{}, false
		if err := s.passFence(tx, fence); err != nil {
			return err
		}
		if err := tx.Flush(); err != nil {
			return fenced(err, &fence)
		}
		if err := s.holdTenant(tx, n.Tenant); err != nil {
			return err
		}
		last, err := s.moveSchedule(tx, id, next)
		if err != nil {
			return err
		}
		if last != 0 {
			tx.Query(s.set.Get("run_get"), func(r *sqldb.Row) error { run = scanRun(r); return nil }, int64(last))
			if err := tx.Flush(); err != nil {
				return err
			}
			if merged = run.ID != 0 && !run.State.Terminal(); merged {
				return nil
			}
		}
		if err := s.insertRun(tx, n, &run); err != nil {
			return err
		}
		if err := tx.Flush(); err != nil {
			return err
		}
		tx.ExecExactly(1, s.set.Get("schedule_started"), nil, id, int64(run.ID))
		return nil
	})
	if err != nil {
		return storage.Run{}, false, doing(err, "start schedule %d", id)
	}
	return run, merged, nil
}

// moveSchedule locks a due schedule and sets its next time; it returns its last run.
func (s *Store) moveSchedule(tx *sqldb.Tx, id int64, next time.Time) (last storage.RunID, err error) {
	var due time.Time
	found := false
	moved := tx.Exec(s.set.Get("schedule_move"), id, unixMicros(next))
	tx.Query(s.set.Get("schedule_get"), func(r *sqldb.Row) error {
		h := scanSchedule(r)
		found, last, due = true, h.LastRun, h.Next
		return nil
	}, id)
	if err := tx.Flush(); err != nil {
		return 0, err
	}
	switch {
	case !found:
		return 0, storage.ErrNotFound
	case moved.N == 0:
		return 0, fmt.Errorf("it is due at %s: %w", due.UTC().Format(time.RFC3339), storage.ErrState)
	}
	return last, nil
}
