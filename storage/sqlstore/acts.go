package sqlstore

import (
	"context"
	"slices"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// keptActs bounds the acts that are kept: more than a day of one leader's.
const keptActs = 50_000

// RecordAct implements [storage.Acts].
func (s *Store) RecordAct(ctx context.Context, fence storage.Fence, owner storage.Owner, duty string) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		if err := s.passFence(tx, fence); err != nil {
			return err
		}
		tx.ExecExactly(1, s.set.Get("act_number"), nil)
		tx.Exec(s.set.Get("act_insert"), fence.Name, int64(fence.Epoch), int64(fence.Number), string(owner), duty)
		tx.Exec(s.set.Get("act_prune"), int64(keptActs))
		return nil
	})
	return doing(fenced(err, &fence), "record %s", duty)
}

// Acts implements [storage.Acts].
func (s *Store) Acts(ctx context.Context, lease string, limit int) (acts []storage.Act, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		acts = nil
		tx.Query(s.set.Get("act_list"), func(r *sqldb.Row) error {
			acts = append(acts, storage.Act{
				Fence: storage.Fence{Name: r.Text(0), Epoch: uint64(r.Int(1)), Number: uint64(r.Int(2))},
				Owner: storage.Owner(r.Text(3)), Duty: r.Text(4), At: when(r.Int(5)),
			})
			return nil
		}, lease, int64(max(limit, 0)))
		return nil
	})
	slices.Reverse(acts)
	return acts, doing(err, "list acts of %s", lease)
}
