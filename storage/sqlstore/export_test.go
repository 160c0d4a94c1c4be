package sqlstore

import (
	"context"

	"deepcrawl/internal/sqldb"
)

// OpenPortable opens a store that uses the portable statements only.
func OpenPortable(ctx context.Context, dsn string) (*Store, error) {
	db, err := openDB(ctx, dsn, Options{})
	if err != nil {
		return nil, err
	}
	return newStore(db, Options{}, sqldb.LoadPortable)
}

// DB and Set are what the store works with.
func (s *Store) DB() *sqldb.DB   { return s.db }
func (s *Store) Set() *sqldb.Set { return s.set }

// Schema describes the store's tables.
func Schema() sqldb.Schema { return schema() }

// FirstURL and EndURL bound the ids of a run.
var (
	FirstURL = firstURL
	EndURL   = endURL
)

// Places in the frontier.
const (
	Again   = again
	Delayed = delayed
	First   = -boost
)
