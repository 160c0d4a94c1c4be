package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// Limits of names, in bytes.
const (
	maxTariffName = 32
	maxTenantName = 64
)

// checkName refuses a name that is empty, too long, or has other characters than letters, digits and those of also.
func checkName(what, name string, most int, also string) error {
	ok := name != "" && len(name) <= most
	for _, r := range name {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(also, r))
	}
	if !ok {
		return fmt.Errorf("%s name %q: allowed are letters, digits and %s, up to %d", what, name, strings.Join(strings.Split(also, ""), " "), most)
	}
	return nil
}

// PutTariff implements [storage.Tenants].
func (s *Store) PutTariff(ctx context.Context, t storage.Tariff) error {
	if err := checkName("tariff", t.Name, maxTariffName, "-_"); err != nil {
		return err
	}
	if t.Parallel < 0 || t.Workers < 0 || t.RunPages < 0 || t.StoredPages < 0 {
		return fmt.Errorf("tariff %s: limits are 0 (none) or more", t.Name)
	}
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.Exec(s.set.Get("tariff_put"), t.Name, int64(t.Parallel), int64(t.Workers), int64(t.RunPages), t.StoredPages)
		return nil
	})
	return doing(err, "store tariff %s", t.Name)
}

// scanTariff reads the limits of a tariff from column i on.
func scanTariff(r *sqldb.Row, name string, i int) storage.Tariff {
	return storage.Tariff{Name: name, Parallel: int(r.Int(i)), Workers: int(r.Int(i + 1)), RunPages: int(r.Int(i + 2)), StoredPages: r.Int(i + 3)}
}

// Tariffs implements [storage.Tenants].
func (s *Store) Tariffs(ctx context.Context) (list []storage.Tariff, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		tx.Query(s.set.Get("tariff_list"), func(r *sqldb.Row) error { list = append(list, scanTariff(r, r.Text(0), 1)); return nil })
		return nil
	})
	return list, doing(err, "list tariffs")
}

// PutTenant implements [storage.Tenants].
func (s *Store) PutTenant(ctx context.Context, t storage.Tenant) error {
	if err := checkName("tenant", t.Name, maxTenantName, "-_."); err != nil {
		return err
	}
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		known, deleting := false, false
		tx.Exec(s.set.Get("tenant_hold"), t.Name)
		tx.Query(s.set.Get("tariff_get"), func(*sqldb.Row) error { known = true; return nil }, t.Tariff)
		tx.Query(s.set.Get("tenant_get"), func(r *sqldb.Row) error { deleting = r.Int(3) != 0; return nil }, t.Name)
		if err := tx.Flush(); err != nil {
			return err
		}
		switch {
		case !known:
			return fmt.Errorf("tariff %q: %w", t.Tariff, storage.ErrNotFound)
		case deleting:
			return fmt.Errorf("it is being deleted: %w", storage.ErrState)
		}
		tx.Exec(s.set.Get("tenant_put"), t.Name, t.Tariff, flag(t.Suspended))
		return nil
	})
	return doing(err, "store tenant %s", t.Name)
}

func scanTenant(r *sqldb.Row) storage.Tenant {
	return storage.Tenant{Name: r.Text(0), Tariff: r.Text(1), Suspended: r.Int(2) != 0, Deleting: r.Int(3) != 0, Created: when(r.Int(4))}
}

// Tenant implements [storage.Tenants].
func (s *Store) Tenant(ctx context.Context, name string) (t storage.Tenant, f storage.Tariff, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		t = storage.Tenant{}
		tx.Query(s.set.Get("tenant_get"), func(r *sqldb.Row) error { t, f = scanTenant(r), scanTariff(r, r.Text(1), 5); return nil }, name)
		return nil
	})
	if err == nil && t.Name == "" {
		err = storage.ErrNotFound
	}
	return t, f, doing(err, "tenant %q", name)
}

// Tenants implements [storage.Tenants].
func (s *Store) Tenants(ctx context.Context) (list []storage.Tenant, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		tx.Query(s.set.Get("tenant_list"), func(r *sqldb.Row) error { list = append(list, scanTenant(r)); return nil })
		return nil
	})
	return list, doing(err, "list tenants")
}

// DeleteTenant implements [storage.Tenants].
//
// From the first call on the tenant takes no new runs or schedules. Each call cancels what is unfinished and removes a piece of one run.
func (s *Store) DeleteTenant(ctx context.Context, name string, limit int) (done bool, err error) {
	done, err = s.deleteTenant(ctx, name, max(limit, 1))
	return done, doing(err, "delete tenant %q", name)
}

func (s *Store) deleteTenant(ctx context.Context, name string, limit int) (done bool, err error) {
	if name == storage.DefaultTenant {
		return false, fmt.Errorf("one-shot crawls belong to it: %w", storage.ErrState)
	}
	var marked *sqldb.Count
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
		marked = tx.Exec(s.set.Get("tenant_mark"), name)
		tx.Exec(s.set.Get("tenant_unschedule"), name)
		s.dropUsersOf(tx, name)
		return nil
	})
	if err == nil && marked.N == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return false, err
	}
	open, err := s.runsOf(ctx, "tenant_unfinished", name, int64(limit))
	if err != nil {
		return false, err
	}
	unfinished := []storage.RunState{storage.RunQueued, storage.RunPreparing, storage.RunCrawling, storage.RunFinishing, storage.RunPaused}
	for _, id := range open {
		// Another may have ended or removed it since.
		_, err := s.SetRunState(ctx, id, unfinished, storage.RunCancelled, "the tenant is deleted", time.Time{})
		if err != nil && !errors.Is(err, storage.ErrState) && !errors.Is(err, storage.ErrNotFound) {
			return false, err
		}
	}
	left, err := s.runsOf(ctx, "tenant_run", name)
	if err != nil {
		return false, err
	}
	if len(left) > 0 {
		_, err := s.DeleteRun(ctx, left[0], limit)
		if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrState) {
			err = nil // removed by another; or begun just before the tenant was marked, and cancelled at the next call
		}
		return false, err
	}
	var dropped *sqldb.Count
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error { dropped = tx.Exec(s.set.Get("tenant_drop"), name); return nil })
	return err == nil && dropped.N > 0, err
}

func (s *Store) runsOf(ctx context.Context, statement, tenant string, args ...any) (ids []storage.RunID, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		ids = nil
		tx.Query(s.set.Get(statement), func(r *sqldb.Row) error { ids = append(ids, storage.RunID(r.Int(0))); return nil }, append([]any{tenant}, args...)...)
		return nil
	})
	return ids, err
}

// settleAfter is how long a run must have been over until its pages are added up for good: no claim made before its end can be
// finished then, since requests and statements end within a minute or two.
const settleAfter = 10 * time.Minute

// StoredPages implements [storage.Tenants].
//
// Each run's tally counts its pages already, so results cost nothing more. Runs that are over are added up once and keep their sum
// in their row: what is read is one number a finished run and the counters of those under way.
func (s *Store) StoredPages(ctx context.Context, name string) (int64, error) {
	n, due, err := s.storedPages(ctx, name)
	if err == nil && due.Len() > 0 {
		err = s.db.Do(ctx, func(tx *sqldb.Tx) error { tx.ExecRows(s.set.Get("stored_settle"), due); return nil })
	}
	return n, doing(err, "count pages of tenant %q", name)
}

func (s *Store) storedPages(ctx context.Context, name string) (n int64, due *sqldb.Table, err error) {
	found := false
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		n, due = 0, new(sqldb.Table)
		add := func(r *sqldb.Row) error { n += r.Int(0); return nil }
		tx.Query(s.set.Get("tenant_get"), func(*sqldb.Row) error { found = true; return nil }, name)
		tx.Query(s.set.Get("stored_settled"), add, name)
		tx.Query(s.set.Get("stored_unsettled"), add, name)
		tx.Query(s.set.Get("stored_due"), func(r *sqldb.Row) error { due.Add(r.Int(0)); return nil }, name, settleAfter.Microseconds())
		return nil
	})
	if err == nil && !found {
		err = storage.ErrNotFound
	}
	return n, due, err
}
