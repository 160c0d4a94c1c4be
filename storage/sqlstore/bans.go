package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// Limits of a ban, in bytes.
const (
	maxHost      = 255
	maxBanReason = 200
)

// Ban implements [storage.Bans].
func (s *Store) Ban(ctx context.Context, host, reason string) error {
	if host == "" || len(host) > maxHost || clean(host, maxHost) != host {
		return fmt.Errorf("ban %.300q: a host has 1 to %d bytes of text", host, maxHost)
	}
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.Exec(s.set.Get("ban_put"), host, clean(reason, maxBanReason))
		return nil
	})
	return doing(err, "ban %s", host)
}

// Unban implements [storage.Bans].
func (s *Store) Unban(ctx context.Context, host string) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.ExecExactly(1, s.set.Get("ban_drop"), nil, host)
		return nil
	})
	if errors.Is(err, sqldb.ErrMismatch) {
		err = storage.ErrNotFound
	}
	return doing(err, "unban %q", host)
}

// Bans implements [storage.Bans].
func (s *Store) Bans(ctx context.Context) (list []storage.Ban, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		tx.Query(s.set.Get("ban_list"), func(r *sqldb.Row) error {
			list = append(list, storage.Ban{Host: r.Text(0), Reason: r.Text(1), Since: when(r.Int(2))})
			return nil
		})
		return nil
	})
	return list, doing(err, "list bans")
}
