package sqlstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"sync"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

//go:embed query migration
var files embed.FS

// Options of a store. The zero value is ready.
type Options struct {
	// Create makes a missing SQLite file, and migrates a SQLite file that is empty or older.
	Create bool
	// Workers is how many workers the process runs; pool sizes follow it.
	Workers int
	// RoundTrip, when set, is called for each wait for the database server: for tests.
	RoundTrip func()
	Log       *slog.Logger
}

// Store implements [storage.Store].
type Store struct {
	db     *sqldb.DB
	set    *sqldb.Set
	log    *slog.Logger
	hosts  hostCache
	ids    idBlocks
	heads  heads
	lost   lostCalls
	sweeps sweeps
}

var _ storage.Store = (*Store)(nil)

// schema describes the store's tables to sqldb.
func schema() sqldb.Schema {
	m, err := fs.Sub(files, "migration")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sqldb.Schema{Name: "store", Migrations: m, Oldest: 2, Tables: []string{"url", "frontier", "run"}}
}

// Open opens the database a DSN names (see [sqldb.Open]). It returns ErrSchema where deepcrawl migrate is needed or a newer binary,
// ErrForeign, ErrReadOnly, ErrUnavailable, or ErrNotFound for a missing file or database.
func Open(ctx context.Context, dsn string, opt Options) (*Store, error) {
	db, err := openDB(ctx, dsn, opt)
	if err != nil {
		return nil, err
	}
	err = db.Check(ctx, schema())
	if errors.Is(err, sqldb.ErrSchema) && opt.Create && db.Dialect() == sqldb.SQLite {
		if _, err = db.Migrate(ctx, schema()); err == nil {
			err = db.Check(ctx, schema())
		}
	}
	var s *Store
	if err == nil {
		s, err = newStore(db, opt, sqldb.Load)
	}
	if err != nil {
		db.Close()
		return nil, translate(err)
	}
	return s, nil
}

func openDB(ctx context.Context, dsn string, opt Options) (*sqldb.DB, error) {
	conns := min(2+opt.Workers/4, 16)
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{
		Create: opt.Create, Writers: conns, Readers: min(conns, 4), RoundTrip: opt.RoundTrip, Log: opt.Log,
	})
	return db, translate(err)
}

func newStore(db *sqldb.DB, opt Options, load func(fs.FS, sqldb.Dialect) (*sqldb.Set, error)) (*Store, error) {
	q, err := fs.Sub(files, "query")
	if err != nil {
		return nil, err
	}
	set, err := load(q, db.Dialect())
	if err != nil {
		return nil, err
	}
	s := &Store{db: db, set: set, log: opt.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

// Report says what a migration did.
type Report = sqldb.Report

// Migrate brings the schema of the database up to what this binary serves, making a missing SQLite file. It is safe while several
// nodes do it at once.
func Migrate(ctx context.Context, dsn string) (Report, error) {
	db, err := openDB(ctx, dsn, Options{Create: true})
	if err != nil {
		return Report{}, err
	}
	defer db.Close()
	rep, err := db.Migrate(ctx, schema())
	return rep, translate(err)
}

// Ping implements [storage.Store].
func (s *Store) Ping(ctx context.Context) error { return translate(s.db.Check(ctx, schema())) }

// Close implements [storage.Store].
func (s *Store) Close() error { return translate(s.db.Close()) }

// translations of sqldb's sentinels, in the order they are looked for.
var translations = [...]struct{ from, to error }{
	{sqldb.ErrUnknown, storage.ErrUnknown},
	{sqldb.ErrFull, storage.ErrFull},
	{sqldb.ErrReadOnly, storage.ErrReadOnly},
	{sqldb.ErrForeign, storage.ErrForeign},
	{sqldb.ErrSchema, storage.ErrSchema},
	{sqldb.ErrMissing, storage.ErrNotFound},
	{sqldb.ErrContention, storage.ErrUnavailable},
	{sqldb.ErrTimeout, storage.ErrUnavailable},
	{sqldb.ErrUnavailable, storage.ErrUnavailable},
}

// translate puts the contract's sentinel beside what sqldb says.
func translate(err error) error {
	if err == nil {
		return nil
	}
	for _, t := range translations {
		if errors.Is(err, t.from) {
			return &storeError{kind: t.to, cause: err}
		}
	}
	return err
}

// storeError adds a sentinel without adding its words, which sqldb's message has already.
type storeError struct{ kind, cause error }

func (e *storeError) Error() string   { return e.cause.Error() }
func (e *storeError) Unwrap() []error { return []error{e.kind, e.cause} }

// doing says what was being done when an error came.
func doing(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, translate(err))...)
}

// shards is how many rows a counter is spread over on servers; SQLite has one writer.
const shards = 16

func (s *Store) shard() int64 {
	if s.db.Dialect() == sqldb.SQLite {
		return 0
	}
	return rand.Int64N(shards)
}

// hostCache keeps the ids of hosts, which never change.
type hostCache struct {
	mu  sync.RWMutex
	ids map[string]int64
}

// maxHosts bounds the cache; beyond it is begun anew.
const maxHosts = 200_000

func (c *hostCache) get(name string) (int64, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	id, ok := c.ids[name]
	return id, ok
}

func (c *hostCache) put(name string, id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil || len(c.ids) >= maxHosts {
		c.ids = map[string]int64{}
	}
	c.ids[name] = id
}

// findHosts looks up those names that are not cached yet, adding those the database does not have where add is set.
func (s *Store) findHosts(ctx context.Context, names []string, add bool) (map[string]int64, error) {
	found := make(map[string]int64, len(names))
	var ask sqldb.Table
	for _, n := range names {
		if _, ok := found[n]; ok {
			continue
		}
		id, ok := s.hosts.get(n)
		if !ok {
			ask.Add(n)
		}
		found[n] = id
	}
	if ask.Len() == 0 {
		return found, nil
	}
	find := s.set.Get("host_find")
	run := s.db.View
	if add {
		run = s.db.Do
	}
	err := run(ctx, func(tx *sqldb.Tx) error {
		if add {
			tx.ExecRows(s.set.Get("host_add"), &ask)
		}
		tx.QueryRows(find, func(r *sqldb.Row) error {
			found[r.Text(1)] = r.Int(0)
			return nil
		}, &ask)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for n, id := range found {
		if id != 0 {
			s.hosts.put(n, id)
		}
	}
	return found, nil
}
