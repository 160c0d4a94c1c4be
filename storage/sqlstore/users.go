package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// Limits of what is kept of users and tokens, in bytes.
const (
	maxUserName = 64
	maxPassHash = 255
	maxTokenID  = 32
	maxLabel    = 100
)

var (
	_ storage.Users     = (*Store)(nil)
	_ storage.Timelines = (*Store)(nil)
)

func scanUser(r *sqldb.Row) storage.User {
	return storage.User{Name: r.Text(0), Role: storage.Role(r.Text(1)), Tenant: r.Text(2), Hash: r.Text(3), Created: when(r.Int(4))}
}

func checkUser(u storage.User) error {
	if err := checkName("user", u.Name, maxUserName, "-_.@"); err != nil {
		return err
	}
	for _, c := range u.Name {
		if c >= 'A' && c <= 'Z' {
			return fmt.Errorf("user name %q: allowed are lower-case letters", u.Name)
		}
	}
	switch {
	case !slices.Contains(storage.UserRoles(), u.Role):
		return fmt.Errorf("user %s: role %q: allowed are operator, member and viewer", u.Name, u.Role)
	case (u.Role == storage.RoleOperator) != (u.Tenant == ""):
		return fmt.Errorf("user %s: members and viewers have a tenant, operators have none", u.Name)
	case len(u.Hash) > maxPassHash:
		return fmt.Errorf("user %s: the hash of the password has more than %d bytes", u.Name, maxPassHash)
	}
	return nil
}

// getUser reads a user within a transaction; ErrNotFound.
func (s *Store) getUser(tx *sqldb.Tx, name string) (u storage.User, err error) {
	tx.Query(s.set.Get("user_get"), func(r *sqldb.Row) error { u = scanUser(r); return nil }, name)
	if err := tx.Flush(); err != nil {
		return u, err
	}
	if u.Name == "" {
		return u, storage.ErrNotFound
	}
	return u, nil
}

// countUsers counts those of a role, all where it is empty.
func (s *Store) countUsers(tx *sqldb.Tx, role storage.Role) (n int64, err error) {
	tx.Query(s.set.Get("user_count"), func(r *sqldb.Row) error { n = r.Int(0); return nil }, string(role))
	return n, tx.Flush()
}

// PutUser implements [storage.Accounts].
func (s *Store) PutUser(ctx context.Context, u storage.User) error {
	if err := checkUser(u); err != nil {
		return err
	}
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.Exec(s.set.Get("users_hold"))
		if u.Tenant != "" {
			if err := s.holdTenant(tx, u.Tenant); err != nil {
				return err
			}
		}
		old, err := s.getUser(tx, u.Name)
		if errors.Is(err, storage.ErrNotFound) {
			if u.Hash == "" {
				return fmt.Errorf("a new user needs a password: %w", storage.ErrNotFound)
			}
			tx.Exec(s.set.Get("user_insert"), u.Name, string(u.Role), u.Tenant, u.Hash)
			return nil
		}
		if err != nil {
			return err
		}
		if old.Role == storage.RoleOperator && u.Role != storage.RoleOperator {
			if err := s.notLast(tx); err != nil {
				return err
			}
		}
		tx.Exec(s.set.Get("user_update"), u.Name, string(u.Role), u.Tenant, u.Hash)
		if u.Hash != "" || u.Role != old.Role || u.Tenant != old.Tenant {
			tx.Exec(s.set.Get("sign_in_drop_user"), u.Name)
		}
		return nil
	})
	return doing(err, "store user %s", u.Name)
}

func (s *Store) notLast(tx *sqldb.Tx) error {
	n, err := s.countUsers(tx, storage.RoleOperator)
	if err == nil && n < 2 {
		err = fmt.Errorf("it is the last operator: %w", storage.ErrState)
	}
	return err
}

// User implements [storage.Accounts].
func (s *Store) User(ctx context.Context, name string) (u storage.User, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error { u, err = s.getUser(tx, name); return err })
	return u, doing(err, "user %q", name)
}

// Users implements [storage.Accounts].
func (s *Store) Users(ctx context.Context) (list []storage.User, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		tx.Query(s.set.Get("user_list"), func(r *sqldb.Row) error { list = append(list, scanUser(r)); return nil })
		return nil
	})
	return list, doing(err, "list users")
}

// DropUser implements [storage.Accounts].
func (s *Store) DropUser(ctx context.Context, name string) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.Exec(s.set.Get("users_hold"))
		u, err := s.getUser(tx, name)
		if err != nil {
			return err
		}
		if u.Role == storage.RoleOperator {
			if err := s.notLast(tx); err != nil {
				return err
			}
		}
		tx.Exec(s.set.Get("sign_in_drop_user"), name)
		tx.Exec(s.set.Get("token_drop_user"), name)
		tx.Exec(s.set.Get("user_drop"), name)
		return nil
	})
	return doing(err, "remove user %q", name)
}

// noUser returns ErrState where there is a user.
func (s *Store) noUser(tx *sqldb.Tx) error {
	n, err := s.countUsers(tx, "")
	if err == nil && n > 0 {
		err = fmt.Errorf("there is a user already: %w", storage.ErrState)
	}
	return err
}

// OfferSetUp implements [storage.Accounts].
func (s *Store) OfferSetUp(ctx context.Context, secret storage.SecretHash, valid time.Duration) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.Exec(s.set.Get("users_hold"))
		if err := s.noUser(tx); err != nil {
			return err
		}
		tx.Exec(s.set.Get("set_up_drop"))
		tx.Exec(s.set.Get("set_up_put"), secret[:], valid.Microseconds())
		return nil
	})
	return doing(err, "offer set-up")
}

func (s *Store) setUpOpen(tx *sqldb.Tx, secret storage.SecretHash) (open bool, err error) {
	tx.Query(s.set.Get("set_up_get"), func(r *sqldb.Row) error { open = r.Int(0) > 0; return nil }, secret[:])
	return open, tx.Flush()
}

// SetUpOpen implements [storage.Accounts].
func (s *Store) SetUpOpen(ctx context.Context, secret storage.SecretHash) (open bool, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		if err := s.noUser(tx); err != nil {
			open = false
			if errors.Is(err, storage.ErrState) {
				return nil
			}
			return err
		}
		open, err = s.setUpOpen(tx, secret)
		return err
	})
	return open, doing(err, "look for set-up")
}

// SetUp implements [storage.Accounts].
func (s *Store) SetUp(ctx context.Context, secret storage.SecretHash, u storage.User) error {
	if err := checkUser(u); err != nil {
		return err
	}
	if u.Role != storage.RoleOperator || u.Hash == "" {
		return errors.New("set up: the first user is an operator with a password")
	}
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.Exec(s.set.Get("users_hold"))
		if err := s.noUser(tx); err != nil {
			return err
		}
		open, err := s.setUpOpen(tx, secret)
		if err != nil {
			return err
		}
		if !open {
			return fmt.Errorf("the secret is not the one offered, or too old: %w", storage.ErrState)
		}
		tx.Exec(s.set.Get("set_up_drop"))
		tx.Exec(s.set.Get("user_insert"), u.Name, string(u.Role), u.Tenant, u.Hash)
		return nil
	})
	return doing(err, "set up")
}

// AddSession implements [storage.Sessions].
func (s *Store) AddSession(ctx context.Context, secret storage.SecretHash, user string, valid time.Duration) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		if _, err := s.getUser(tx, user); err != nil {
			return err
		}
		tx.Exec(s.set.Get("sign_in_put"), secret[:], user, valid.Microseconds())
		return nil
	})
	return doing(err, "sign in %q", user)
}

// Session implements [storage.Sessions].
func (s *Store) Session(ctx context.Context, secret storage.SecretHash) (u storage.User, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		u = storage.User{}
		tx.Query(s.set.Get("sign_in_user"), func(r *sqldb.Row) error { u = scanUser(r); return nil }, secret[:])
		return nil
	})
	if err == nil && u.Name == "" {
		err = storage.ErrNotFound
	}
	return u, doing(err, "look for a session")
}

// DropSession implements [storage.Sessions].
func (s *Store) DropSession(ctx context.Context, secret storage.SecretHash) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error { tx.Exec(s.set.Get("sign_in_drop"), secret[:]); return nil })
	return doing(err, "sign out")
}

// PruneSessions implements [storage.Sessions].
func (s *Store) PruneSessions(ctx context.Context) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error { tx.Exec(s.set.Get("sign_in_prune")); return nil })
	return doing(err, "prune sessions")
}

// AddToken implements [storage.Tokens].
func (s *Store) AddToken(ctx context.Context, secret storage.SecretHash, t storage.Token) error {
	if err := checkName("token", t.ID, maxTokenID, "-"); err != nil {
		return err
	}
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		if _, err := s.getUser(tx, t.User); err != nil {
			return err
		}
		tx.Exec(s.set.Get("token_put"), t.ID, secret[:], t.User, clean(t.Label, maxLabel))
		return nil
	})
	return doing(err, "add a token of %q", t.User)
}

// TokenUser implements [storage.Tokens].
func (s *Store) TokenUser(ctx context.Context, secret storage.SecretHash) (u storage.User, err error) {
	stale := false
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		u = storage.User{}
		tx.Query(s.set.Get("token_user"), func(r *sqldb.Row) error { u, stale = scanUser(r), r.Int(5) != 0; return nil }, secret[:])
		return nil
	})
	if err == nil && u.Name == "" {
		err = storage.ErrNotFound
	}
	if err == nil && stale {
		err = s.db.Do(ctx, func(tx *sqldb.Tx) error { tx.Exec(s.set.Get("token_used"), secret[:]); return nil })
	}
	return u, doing(err, "look for a token")
}

// Tokens implements [storage.Tokens].
func (s *Store) Tokens(ctx context.Context, user string) (list []storage.Token, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		tx.Query(s.set.Get("token_list"), func(r *sqldb.Row) error {
			list = append(list, storage.Token{ID: r.Text(0), User: r.Text(1), Label: r.Text(2), Created: when(r.Int(3)), Used: when(r.Int(4))})
			return nil
		}, user)
		return nil
	})
	return list, doing(err, "list tokens")
}

// RevokeToken implements [storage.Tokens].
func (s *Store) RevokeToken(ctx context.Context, user, id string) error {
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.ExecExactly(1, s.set.Get("token_drop"), nil, user, id)
		return nil
	})
	if errors.Is(err, sqldb.ErrMismatch) {
		err = storage.ErrNotFound
	}
	return doing(err, "revoke token %q", id)
}

// dropUsersOf removes a tenant's users with all they have: one of the same name made later must not let them in.
func (s *Store) dropUsersOf(tx *sqldb.Tx, tenant string) {
	tx.Exec(s.set.Get("tenant_sign_ins"), tenant)
	tx.Exec(s.set.Get("tenant_tokens"), tenant)
	tx.Exec(s.set.Get("tenant_accounts"), tenant)
}

// Timeline implements [storage.Timelines].
func (s *Store) Timeline(ctx context.Context, run storage.RunID, width time.Duration) (list []storage.Bucket, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		tx.Query(s.set.Get("timeline"), func(r *sqldb.Row) error {
			list = append(list, storage.Bucket{From: when(r.Int(0)), Fetched: r.Int(1), Failed: r.Int(2), Excluded: r.Int(3)})
			return nil
		}, int64(run), firstURL(run), endURL(run), max(width.Microseconds(), 1), int64(storage.Fetched), int64(storage.Failed), int64(storage.Excluded))
		return nil
	})
	return list, doing(err, "timeline of run %d", run)
}
