package sqlstore

import (
	"context"
	"errors"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// pickAttempts bounds how often a pick is made anew because others took the same seat first.
const pickAttempts = 20

// Pick implements [storage.Seats].
func (s *Store) Pick(ctx context.Context, owner storage.Owner, maxSeats int, held *storage.Seat, choose func([]storage.Candidate) int) (seat storage.Seat, run storage.Run, ok bool, err error) {
	for range pickAttempts {
		var p picking
		err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
			p = picking{}
			return s.pick(tx, owner, maxSeats, held, choose, &p)
		})
		seat, run, ok = p.seat, p.run, p.ok
		// A seat taken by another, or a run that has moved on, is seen when looked at again.
		if !errors.Is(err, sqldb.ErrUnique) && !errors.Is(err, sqldb.ErrMismatch) {
			break
		}
	}
	if err != nil {
		return storage.Seat{}, storage.Run{}, false, doing(err, "pick a run")
	}
	return seat, run, ok, nil
}

// picking is what a pick has come to, valid after its transaction.
type picking struct {
	seat storage.Seat
	run  storage.Run
	ok   bool
}

func (s *Store) pick(tx *sqldb.Tx, owner storage.Owner, maxSeats int, held *storage.Seat, choose func([]storage.Candidate) int, p *picking) error {
	taken := map[storage.RunID][]int64{} // seats, in order
	var list []storage.Candidate
	holds := false // held is the owner's still
	tx.Query(s.set.Get("seat_list"), func(r *sqldb.Row) error {
		seat := storage.Seat{Run: storage.RunID(r.Int(0)), N: int(r.Int(1))}
		if held != nil && seat == *held && r.Text(2) == string(owner) {
			holds = true
			return nil
		}
		taken[seat.Run] = append(taken[seat.Run], r.Int(1))
		return nil
	})
	tx.Query(s.set.Get("seat_candidates"), func(r *sqldb.Row) error {
		c := storage.Candidate{
			Run: storage.RunID(r.Int(0)), Tenant: r.Text(1), State: storage.RunState(r.Text(2)), Home: r.Text(3), Allowed: int(r.Int(4)), Served: when(r.Int(5)),
		}
		if c.State != storage.RunCrawling {
			c.Allowed = 1
		}
		if maxSeats > 0 && (c.Allowed == 0 || c.Allowed > maxSeats) {
			c.Allowed = maxSeats
		}
		c.Occupied = len(taken[c.Run])
		if c.Allowed == 0 || c.Occupied < c.Allowed {
			list = append(list, c)
		}
		return nil
	})
	if err := tx.Flush(); err != nil {
		return err
	}
	if len(list) == 0 {
		return nil
	}
	i := choose(list)
	if i < 0 || i >= len(list) {
		return nil
	}
	c := list[i]
	n := int64(1)
	for _, t := range taken[c.Run] { // the smallest that is free
		if t == n {
			n++
		}
	}
	tx.ExecExactly(1, s.set.Get("run_serve"), nil, int64(c.Run), string(c.State))
	p.seat, p.ok = storage.Seat{Run: c.Run, N: int(n)}, true
	if holds && held.Run == c.Run {
		p.seat = *held
	} else {
		tx.Exec(s.set.Get("seat_take"), int64(c.Run), n, string(owner))
	}
	tx.Query(s.set.Get("run_get"), func(r *sqldb.Row) error { p.run = scanRun(r); return nil }, int64(c.Run))
	return nil
}

// Leave implements [storage.Seats].
func (s *Store) Leave(ctx context.Context, owner storage.Owner, seat storage.Seat) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.Exec(s.set.Get("seat_leave"), int64(seat.Run), int64(seat.N), string(owner))
		return nil
	})
	return doing(err, "leave a seat of run %d", seat.Run)
}
