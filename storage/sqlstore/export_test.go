package sqlstore

import (
	"context"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
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

// Seen is the cache of stored keys by itself.
type Seen struct{ keys seenKeys }

// NewSeen returns a cache bounded to limit bytes.
func NewSeen(limit int64) *Seen { return &Seen{seenKeys{limit: limit}} }

// Add and Has are what the store does with it.
func (s *Seen) Add(run storage.RunID, k storage.Key)      { s.keys.add(s.keys.run(run), &k) }
func (s *Seen) Has(run storage.RunID, k storage.Key) bool { return s.keys.run(run).has(&k) }

// Used is how many bytes the tables take.
func (s *Seen) Used() int64 { return s.keys.used.Load() }
