package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// pickAttempts bounds how often a pick is made anew because others took the same seat or place first. All but the first
// attempt lock what they choose, so that one is lost only to what ends another's.
const pickAttempts = 20

// errTaken ends an attempt whose seat or place was taken by others while it chose.
var errTaken = errors.New("taken by others meanwhile")

// retryTaken runs fn as [sqldb.DB.Do] does, and again where others took the same seat or place first, or the run has moved on:
// that is seen when looked at again. sure says that it is not the first attempt.
func (s *Store) retryTaken(ctx context.Context, fn func(tx *sqldb.Tx, sure bool) error) (err error) {
	for i := range pickAttempts {
		err = s.db.Do(ctx, func(tx *sqldb.Tx) error { return fn(tx, i > 0) })
		if !errors.Is(err, sqldb.ErrUnique) && !errors.Is(err, sqldb.ErrMismatch) && !errors.Is(err, errTaken) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", errTaken, err)
}

// Pick implements [storage.Seats].
//
// The first attempt reads, chooses and writes in two round trips, three where runs wait that may begin, and lets the primary keys of seats and places refuse what
// others have taken meanwhile. Later ones lock the run, and the tenant where a place is needed, and look again before they write.
func (s *Store) Pick(ctx context.Context, owner storage.Owner, maxSeats int, held *storage.Seat, choose func([]storage.Candidate) int) (storage.Seat, storage.Run, bool, error) {
	var p picking
	err := s.retryTaken(ctx, func(tx *sqldb.Tx, sure bool) error {
		p = picking{owner: owner, maxSeats: maxSeats, held: held}
		return s.pick(tx, choose, sure, &p)
	})
	if errors.Is(err, errTaken) {
		return storage.Seat{}, storage.Run{}, false, nil
	}
	if err != nil {
		return storage.Seat{}, storage.Run{}, false, doing(err, "pick a run")
	}
	return p.seat, p.run, p.ok, nil
}

// picking is one attempt to pick a run; seat, run and ok are valid after its transaction.
type picking struct {
	owner    storage.Owner
	maxSeats int
	held     *storage.Seat

	holds    bool                      // held is the owner's still
	taken    map[storage.RunID][]int64 // seats, but for the one held
	places   map[string][]int64        // of active runs, by tenant
	parallel map[string]int64          // limits of tenants with queued runs that are shown
	list     []storage.Candidate

	seat storage.Seat
	run  storage.Run
	ok   bool
}

func (s *Store) pick(tx *sqldb.Tx, choose func([]storage.Candidate) int, sure bool, p *picking) error {
	if err := s.candidates(tx, p); err != nil || len(p.list) == 0 {
		return err
	}
	i := choose(p.list)
	if i < 0 || i >= len(p.list) {
		return nil
	}
	c := p.list[i]
	tx.ExecExactly(1, s.set.Get("run_serve"), nil, int64(c.Run), string(c.State))
	if sure {
		if err := s.lookAgain(tx, c, p); err != nil {
			return err
		}
	}
	if c.State == storage.RunQueued {
		tx.Exec(s.set.Get("place_take"), c.Tenant, freePlace(c.Run, p.places[c.Tenant], p.parallel[c.Tenant]), int64(c.Run))
	}
	p.seat, p.ok = storage.Seat{Run: c.Run, N: int(firstFree(p.taken[c.Run]))}, true
	if p.holds && p.held.Run == c.Run {
		p.seat = *p.held
	} else {
		tx.Exec(s.set.Get("seat_take"), int64(c.Run), int64(p.seat.N), string(p.owner))
	}
	tx.Query(s.set.Get("run_get"), func(r *sqldb.Row) error { p.run = scanRun(r); return nil }, int64(c.Run))
	return nil
}

// candidates fills in the runs that may be chosen, by id, with the seats and places that are taken.
func (s *Store) candidates(tx *sqldb.Tx, p *picking) error {
	p.taken, p.places, p.parallel = map[storage.RunID][]int64{}, map[string][]int64{}, map[string]int64{}
	tx.Query(s.set.Get("seat_list"), p.addSeat)
	tx.Query(s.set.Get("place_list"), func(r *sqldb.Row) error {
		p.places[r.Text(0)] = append(p.places[r.Text(0)], r.Int(1))
		if r.Int(8) != 0 {
			p.add(storage.Candidate{
				Run: storage.RunID(r.Int(2)), Tenant: r.Text(0), State: storage.RunState(r.Text(3)), Home: r.Text(4),
				Allowed: allowed(r.Int(7), r.Int(5), int64(p.maxSeats)), Served: when(r.Int(6)),
			})
		}
		return nil
	})
	var queue []storage.Candidate
	var heads sqldb.Table
	queued := func(r *sqldb.Row) error {
		queue = append(queue, storage.Candidate{
			Run: storage.RunID(r.Int(0)), Tenant: r.Text(1), State: storage.RunQueued, Home: r.Text(2), Served: when(r.Int(3)),
		})
		return nil
	}
	tx.Query(s.set.Get("queue_tenants"), func(r *sqldb.Row) error {
		tenant, limit := r.Text(0), r.Int(1)
		p.parallel[tenant] = limit
		if limit > 0 {
			heads.Add(tenant, limit-r.Int(2))
		} else {
			heads.Add(tenant, int64(manyHeads))
		}
		return nil
	})
	tx.Query(s.set.Get("queue_reserved"), func(r *sqldb.Row) error {
		p.parallel[r.Text(1)] = r.Int(4)
		return queued(r)
	})
	if err := tx.Flush(); err != nil {
		return err
	}
	if heads.Len() > 0 {
		tx.QueryRows(s.set.Get("queue_heads"), queued, &heads)
		if err := tx.Flush(); err != nil {
			return err
		}
	}
	p.addQueue(queue)
	slices.SortFunc(p.list, func(a, b storage.Candidate) int { return cmp.Compare(a.Run, b.Run) })
	return nil
}

// manyHeads is how many queued runs are looked at of a tenant that has no limit of active ones.
const manyHeads = 1000

// addQueue shows the oldest queued runs of each tenant, as many as may start.
func (p *picking) addQueue(queue []storage.Candidate) {
	slices.SortFunc(queue, func(a, b storage.Candidate) int { return cmp.Compare(a.Run, b.Run) })
	before := queueLine{}
	for _, c := range queue {
		ahead := before.pass(c.Tenant, c.Home)
		if limit := p.parallel[c.Tenant]; limit <= 0 || int64(len(p.places[c.Tenant]))+ahead < limit {
			p.add(c)
		}
	}
}

// add shows a run where a seat on it is free. A run that is not crawling has one seat.
func (p *picking) add(c storage.Candidate) {
	if c.State != storage.RunCrawling {
		c.Allowed = 1
	}
	c.Occupied = len(p.taken[c.Run])
	if c.Allowed == 0 || c.Occupied < c.Allowed {
		p.list = append(p.list, c)
	}
}

func (p *picking) addSeat(r *sqldb.Row) error {
	seat := storage.Seat{Run: storage.RunID(r.Int(0)), N: int(r.Int(1))}
	if p.held != nil && seat == *p.held && r.Text(2) == string(p.owner) {
		p.holds = true
		return nil
	}
	p.taken[seat.Run] = append(p.taken[seat.Run], r.Int(1))
	return nil
}

// lookAgain waits for the run's lock, and for its tenant's where it needs a place, and reads what is taken now.
func (s *Store) lookAgain(tx *sqldb.Tx, c storage.Candidate, p *picking) error {
	if err := tx.Flush(); err != nil { // run_serve: the lock
		return err
	}
	if c.State == storage.RunQueued {
		tx.Exec(s.set.Get("tenant_hold"), c.Tenant)
		delete(p.places, c.Tenant)
		tx.Query(s.set.Get("places_of"), func(r *sqldb.Row) error {
			p.parallel[c.Tenant] = r.Int(3)
			if !r.Null(1) {
				p.places[c.Tenant] = append(p.places[c.Tenant], r.Int(1))
			}
			return nil
		}, int64(c.Run))
	}
	p.holds = false
	delete(p.taken, c.Run)
	tx.Query(s.set.Get("seats_of_run"), p.addSeat, int64(c.Run))
	if err := tx.Flush(); err != nil {
		return err
	}
	if limit := p.parallel[c.Tenant]; c.State == storage.RunQueued && limit > 0 && int64(len(p.places[c.Tenant])) >= limit ||
		c.Allowed > 0 && len(p.taken[c.Run]) >= c.Allowed {
		return errTaken
	}
	return nil
}

// allowed is the smallest of the limits; 0 is none.
func allowed(limits ...int64) int {
	least := int64(0)
	for _, n := range limits {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return int(least)
}

// firstFree returns the smallest number from 1 that is not taken. While fewer are taken than allowed it is one of the allowed,
// so that two who see the same take the same number, which is a primary key.
func firstFree(taken []int64) int64 {
	slices.Sort(taken)
	n := int64(1)
	for _, t := range taken {
		if t == n {
			n++
		}
	}
	return n
}

// farPlace is added to the run's id where a tenant has no limit: each run has a number of its own there, beyond those under a limit.
const farPlace = 1 << 32

func freePlace(run storage.RunID, taken []int64, limit int64) int64 {
	if limit <= 0 {
		return farPlace + int64(run)
	}
	return firstFree(taken)
}

// findPlace locks a run that is about to become active. Where it has a place already, take is nil; else take queues the statement
// that takes one for it if it has become active, or full says that its tenant's tariff has none.
func (s *Store) findPlace(tx *sqldb.Tx, run storage.RunID) (take func(), full bool, err error) {
	var tenant string
	var limit int64
	var taken []int64
	has := false
	tx.Exec(s.set.Get("run_hold"), int64(run))
	tx.Query(s.set.Get("places_of"), func(r *sqldb.Row) error {
		tenant, limit = r.Text(0), r.Int(3)
		if !r.Null(1) {
			taken = append(taken, r.Int(1))
			has = has || storage.RunID(r.Int(2)) == run
		}
		return nil
	}, int64(run))
	if err := tx.Flush(); err != nil || tenant == "" || has {
		return nil, false, err
	}
	if limit > 0 && int64(len(taken)) >= limit {
		return nil, true, nil
	}
	return func() { tx.Exec(s.set.Get("place_take"), tenant, freePlace(run, taken, limit), int64(run)) }, false, nil
}

// Leave implements [storage.Seats].
func (s *Store) Leave(ctx context.Context, owner storage.Owner, seat storage.Seat) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.Exec(s.set.Get("seat_leave"), int64(seat.Run), int64(seat.N), string(owner))
		return nil
	})
	return doing(err, "leave a seat of run %d", seat.Run)
}
