package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// stateInputs spreads states over the eight inputs statements have for them.
func stateInputs(states []storage.RunState) []any {
	out := make([]any, 8)
	for i := range out {
		out[i] = ""
		if i < len(states) {
			out[i] = string(states[i])
		}
	}
	return out
}

func scanRun(r *sqldb.Row) storage.Run {
	return storage.Run{
		ID: storage.RunID(r.Int(0)), Tenant: r.Text(1), Site: r.Text(2), Spec: r.Bytes(3), Home: r.Text(4), State: storage.RunState(r.Text(5)),
		Resume: storage.RunState(r.Text(6)), Reason: r.Text(7), Until: when(r.Int(8)), Previous: storage.RunID(r.Int(9)), Created: when(r.Int(10)),
		Started: when(r.Int(11)), Finished: when(r.Int(12)), WorkedFor: micros(r.Int(13)), Concurrency: int(r.Int(14)),
	}
}

// CreateRun implements [storage.Runs].
func (s *Store) CreateRun(ctx context.Context, n storage.NewRun) (run storage.Run, err error) {
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
		if err := s.holdTenant(tx, n.Tenant); err != nil {
			return err
		}
		return s.insertRun(tx, n, &run)
	})
	return run, doing(err, "create a run")
}

// holdTenant keeps a tenant from being deleted while the transaction lasts.
func (s *Store) holdTenant(tx *sqldb.Tx, name string) error {
	held := tx.Exec(s.set.Get("tenant_hold"), name)
	if err := tx.Flush(); err != nil {
		return err
	}
	if held.N == 0 {
		return fmt.Errorf("tenant %q: %w", name, storage.ErrNotFound)
	}
	return nil
}

// insertRun queues the statements that store a run of a tenant that is held; run is set when they are sent.
func (s *Store) insertRun(tx *sqldb.Tx, n storage.NewRun, run *storage.Run) error {
	var id int64
	tx.ExecExactly(1, s.set.Get("run_number"), nil)
	tx.Query(s.set.Get("run_numbered"), func(r *sqldb.Row) error { id = r.Int(0); return nil })
	if err := tx.Flush(); err != nil {
		return err
	}
	tx.Exec(s.set.Get("run_insert"), id, n.Tenant, n.Site, n.Spec, n.Home, int64(n.Concurrency))
	tx.Query(s.set.Get("run_get"), func(r *sqldb.Row) error { *run = scanRun(r); return nil }, id)
	return nil
}

// Run implements [storage.Runs].
func (s *Store) Run(ctx context.Context, id storage.RunID) (run storage.Run, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		run = storage.Run{}
		tx.Query(s.set.Get("run_get"), func(r *sqldb.Row) error { run = scanRun(r); return nil }, int64(id))
		return nil
	})
	if err == nil && run.ID == 0 {
		err = storage.ErrNotFound
	}
	return run, doing(err, "run %d", id)
}

// ListRuns implements [storage.Runs].
func (s *Store) ListRuns(ctx context.Context, f storage.RunFilter) (runs []storage.Run, err error) {
	states := f.States
	if len(states) == 0 {
		states = storage.RunStates()
	}
	before, limit := int64(f.Before), int64(min(f.Limit, 1000))
	if before == 0 {
		before = math.MaxInt64
	}
	if limit <= 0 {
		limit = 100
	}
	args := append([]any{f.Tenant, f.Site, before, limit, max(f.FinishedFor.Microseconds(), 0)}, stateInputs(states)...)
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		runs = nil
		tx.Query(s.set.Get("run_list"), func(r *sqldb.Row) error { runs = append(runs, scanRun(r)); return nil }, args...)
		return nil
	})
	return runs, doing(err, "list runs")
}

// SetRunState implements [storage.Runs].
func (s *Store) SetRunState(ctx context.Context, id storage.RunID, from []storage.RunState, to storage.RunState, reason string, until time.Time) (storage.Run, error) {
	args := append([]any{int64(id), string(to), flag(to.Active()), flag(to.Terminal()), clean(reason, math.MaxInt), unixMicros(until)}, stateInputs(from)...)
	var run storage.Run
	var moved *sqldb.Count
	err := s.retryTaken(ctx, func(tx *sqldb.Tx, _ bool) error {
		run = storage.Run{}
		var take func()
		if to.Active() {
			queued := false
			var err error
			if take, queued, err = s.findPlace(tx, id); err != nil {
				return err
			}
			if queued {
				args[1], args[2] = string(storage.RunQueued), flag(false)
			} else {
				args[1], args[2] = string(to), flag(true)
			}
		}
		moved = tx.Exec(s.set.Get("run_move"), args...)
		switch {
		case args[1] != string(to):
			if err := tx.Flush(); err != nil {
				return err
			}
			if moved.N > 0 {
				tx.Exec(s.set.Get("run_wait"), int64(id), string(to))
			}
		case take != nil:
			take()
		case !to.Active():
			tx.Exec(s.set.Get("place_free"), int64(id))
		}
		if to.Terminal() {
			tx.Exec(s.set.Get("seats_clear"), int64(id))
		}
		tx.Query(s.set.Get("run_get"), func(r *sqldb.Row) error { run = scanRun(r); return nil }, int64(id))
		return nil
	})
	switch {
	case err != nil:
	case run.ID == 0:
		err = storage.ErrNotFound
	case moved.N == 0:
		err = fmt.Errorf("it is %s and cannot become %s: %w", run.State, to, storage.ErrState)
	}
	return run, doing(err, "run %d", id)
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// UpdateRun implements [storage.Runs].
func (s *Store) UpdateRun(ctx context.Context, id storage.RunID, u storage.RunUpdate) error {
	var home, reason string
	var until int64
	if u.Home != nil {
		home = *u.Home
	}
	if u.Reason != nil {
		reason = clean(*u.Reason, math.MaxInt)
	}
	if u.Until != nil {
		until = unixMicros(*u.Until)
	}
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.ExecExactly(1, s.set.Get("run_update"), nil, int64(id), flag(u.Home != nil), home, flag(u.Spec != nil), u.Spec,
			flag(u.Reason != nil), reason, flag(u.Until != nil), until, u.Worked.Microseconds())
		return nil
	})
	if errors.Is(err, sqldb.ErrMismatch) {
		err = storage.ErrNotFound
	}
	return doing(err, "run %d", id)
}

// Ledger implements [storage.Runs].
func (s *Store) Ledger(ctx context.Context, id storage.RunID) (storage.Ledger, error) {
	var l storage.Ledger
	found := false
	err := s.db.View(ctx, func(tx *sqldb.Tx) error {
		l = storage.Ledger{ByStatus: map[int]int64{}, ByReason: map[storage.Reason]int64{}}
		tx.Query(s.set.Get("run_get"), func(*sqldb.Row) error { found = true; return nil }, int64(id))
		tx.Query(s.set.Get("tally_all"), func(r *sqldb.Row) error { addTally(&l, r.Text(0), r.Int(1)); return nil }, int64(id))
		tx.Query(s.set.Get("count_claimed"), func(r *sqldb.Row) error { l.Claimed = r.Int(0); return nil }, int64(id))
		if err := tx.Flush(); err != nil {
			return err
		}
		var err error
		l.Delayed, err = s.countFrom(tx, id, delayed)
		return err
	})
	if err == nil && !found {
		err = storage.ErrNotFound
	}
	l.Queued = l.Discovered - l.Fetched - l.Failed - l.Excluded - l.Claimed - l.Delayed
	return l, doing(err, "ledger of run %d", id)
}

// Tallies implements [storage.Tallies].
func (s *Store) Tallies(ctx context.Context, runs []storage.RunID) (map[storage.RunID]storage.Ledger, error) {
	var ask sqldb.Table
	for _, id := range runs {
		ask.Add(int64(id))
	}
	out := make(map[storage.RunID]storage.Ledger, len(runs))
	err := s.db.View(ctx, func(tx *sqldb.Tx) error {
		clear(out)
		tx.QueryRows(s.set.Get("tally_list"), func(r *sqldb.Row) error {
			l := out[storage.RunID(r.Int(0))]
			addTally(&l, r.Text(1), r.Int(2))
			out[storage.RunID(r.Int(0))] = l
			return nil
		}, &ask)
		return nil
	})
	return out, doing(err, "count URLs of %d runs", len(runs))
}

func addTally(l *storage.Ledger, name string, n int64) {
	switch name {
	case tallyDiscovered:
		l.Discovered += n
	case tallyFetched:
		l.Fetched += n
	case tallyFailed:
		l.Failed += n
	case tallyExcluded:
		l.Excluded += n
	case tallyBytes:
		l.Bytes += n
	case tallyWire:
		l.WireBytes += n
	case tallyLate:
		l.LateRefused += n
	default:
		if code, ok := strings.CutPrefix(name, tallyStatus); ok {
			if status, err := strconv.Atoi(code); err == nil {
				l.ByStatus[status] += n
			}
		} else if word, ok := strings.CutPrefix(name, tallyReason); ok {
			l.ByReason[storage.Reason(word)] += n
		}
	}
}
