package sqlstore

import (
	"context"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// maxUnfinished bounds what Unfinished returns where its caller does not.
const maxUnfinished = 10_000

// Unfinished implements [storage.Queue].
func (s *Store) Unfinished(ctx context.Context, limit int) (list []storage.Waiting, err error) {
	if limit <= 0 || limit > maxUnfinished {
		limit = maxUnfinished
	}
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		tx.Query(s.set.Get("unfinished"), func(r *sqldb.Row) error {
			w := storage.Waiting{
				Run: scanRun(r), Served: when(r.Int(15)), Occupied: int(r.Int(17)), Active: int(r.Int(18)), Suspended: r.Int(19) != 0, Tariff: scanTariff(r, r.Text(20), 21),
			}
			w.Allowed = allowed(int64(w.Tariff.Workers), int64(w.Run.Concurrency))
			list = append(list, w)
			return nil
		}, int64(limit))
		return nil
	})
	// All older runs are in the list, so those ahead are too.
	before := queueLine{}
	for i := range list {
		if r := &list[i].Run; r.State == storage.RunQueued {
			list[i].Ahead = int(before.pass(r.Tenant, r.Home))
		}
	}
	return list, doing(err, "list unfinished runs")
}

// queueLine counts the queued runs of each tenant in the order they start. A run that is reserved for a node holds up no others
// than that node's: the node may be gone.
type queueLine map[[2]string]int64

// pass adds the next run and returns how many are ahead of it.
func (q queueLine) pass(tenant, home string) int64 {
	ahead := q[[2]string{tenant, ""}]
	if home != "" {
		ahead += q[[2]string{tenant, home}]
	}
	q[[2]string{tenant, home}]++
	return ahead
}

// Claims implements [storage.Queue].
func (s *Store) Claims(ctx context.Context) (list []storage.OwnerLoad, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		at := map[string]int{}
		tx.Query(s.set.Get("owner_loads"), func(r *sqldb.Row) error {
			owner := r.Text(0)
			i, ok := at[owner]
			if !ok {
				i = len(list)
				at[owner] = i
				list = append(list, storage.OwnerLoad{Owner: storage.Owner(owner)})
			}
			list[i].Claims += int(r.Int(1))
			list[i].Seats += int(r.Int(2))
			return nil
		})
		return nil
	})
	return list, doing(err, "count claims and seats")
}

// FindURL implements [storage.Queue].
func (s *Store) FindURL(ctx context.Context, run storage.RunID, key storage.Key) (storage.URLWait, error) {
	var w storage.URLWait
	err := s.db.View(ctx, func(tx *sqldb.Tx) error {
		w = storage.URLWait{Ahead: -1}
		row, err := s.pageByKey(tx, run, key)
		if err != nil {
			return err
		}
		w.PageRow = row
		id := int64(row.ID)
		switch row.State {
		case storage.Claimed:
			tx.Query(s.set.Get("url_owner"), func(r *sqldb.Row) error { w.Owner = storage.Owner(r.Text(0)); return nil }, int64(run), id)
		case storage.Delayed:
			tx.Query(s.set.Get("url_due"), func(r *sqldb.Row) error { w.Due = when(r.Int(0)); return nil }, int64(run), id, int64(delayed))
		case storage.Queued:
			ahead, first, err := s.aheadOf(tx, run, row.Host, id)
			if w.Ahead = ahead; err != nil || first {
				return err
			}
			tx.Query(s.set.Get("url_ahead"), func(r *sqldb.Row) error { w.Ahead = r.Int(0); return nil }, int64(run), id, int64(again))
		}
		return nil
	})
	return w, doing(err, "URL %x of run %d", key, run)
}
