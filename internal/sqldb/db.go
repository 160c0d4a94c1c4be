package sqldb

import (
	"context"
	"database/sql"
	"log/slog"
	"time"
)

// Options of a database. The zero value is ready.
type Options struct {
	// Create makes a missing SQLite file; without it that is ErrMissing. It does nothing elsewhere.
	Create bool
	// Writers and Readers bound the connections (SQLite always has one writer). 0: 4 and 4.
	Writers, Readers int
	// Name is shown by the server beside the connection. Empty: deepcrawl.
	Name string
	// StatementTimeout is how long the server lets one statement run. 0: 30 s. SQLite has none.
	StatementTimeout time.Duration
	// IdleTimeout is how long the server lets a transaction stay open without a statement. 0: 30 s. SQLite has none.
	IdleTimeout time.Duration
	// RoundTrip, when set, is called each time a connection waits for the server after it has sent something; for SQLite, which
	// has none, at the end of each transaction.
	RoundTrip func()
	// Retry, when set, is called with the cause each time a transaction is run again.
	Retry func(error)
	Log   *slog.Logger
}

func (o *Options) defaults() {
	if o.Writers <= 0 {
		o.Writers = 4
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if o.Name == "" {
		o.Name = "deepcrawl"
	}
	if o.StatementTimeout <= 0 {
		o.StatementTimeout = 30 * time.Second
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
}

func (o *Options) onRetry(err error) {
	o.Log.Debug("transaction run again", "err", err)
	if o.Retry != nil {
		o.Retry(err)
	}
}

// backend is what differs between databases.
type backend interface {
	write(context.Context) (session, error)
	read(context.Context) (session, error)
	// migrator returns a handle for goose, which wants database/sql; done gives it back.
	migrator(context.Context) (db *sql.DB, done func(), err error)
	// identity names this database and its life, see DB.Identity.
	identity(context.Context) (durable, life string, err error)
	// compact gives free room back to the system, where that is the client's work.
	compact(context.Context) error
	close() error
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	b       backend
	opt     Options
	dialect Dialect
	address address
}

// address is what a DSN names.
type address struct {
	dialect Dialect
	path    string // SQLite
	dsn     string // servers: as the driver takes it
	shown   string // without secrets
}

// Open opens the database a DSN names and checks that it answers, that it is recent enough and set up in a way that
// works. It returns ErrDSN, ErrMissing, ErrAuth, ErrForeign, ErrReadOnly, ErrTooOld, ErrUnsupported or ErrUnavailable.
//
//	sqlite:PATH                                     a file on this machine
//	postgres://user:pass@host:port/db?sslmode=...   also pg:// and postgresql://; parameters as libpq's, host=/run/postgresql for a
//	                                                Unix socket, pgbouncer=true behind PgBouncer in transaction mode
//	mysql://user:pass@host:port/db?tls=...          MySQL or MariaDB; socket=/run/mysqld/mysqld.sock for a Unix socket; tls=true,
//	                                                skip-verify or preferred, tls-ca=FILE, tls-cert=FILE, tls-key=FILE
func Open(ctx context.Context, dsn string, opt Options) (*DB, error) {
	opt.defaults()
	src, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	db := &DB{opt: opt, dialect: src.dialect, address: src}
	switch src.dialect {
	case SQLite:
		db.b, err = openSQLite(ctx, src, &db.opt)
	case Postgres:
		db.b, err = openPostgres(ctx, src, &db.opt)
	case MySQL:
		db.b, err = openMySQL(ctx, src, &db.opt)
	}
	if err != nil {
		return nil, describe(src, err)
	}
	return db, nil
}

// Dialect returns the dialect of the database.
func (db *DB) Dialect() Dialect { return db.dialect }

// String names the database without secrets.
func (db *DB) String() string { return db.address.shown }

// Path returns the path of a SQLite file, "" elsewhere.
func (db *DB) Path() string { return db.address.path }

// Identity returns two strings: durable changes when another database answers under the same address (PostgreSQL: system
// identifier and timeline; MySQL: server uuid; SQLite: the file's own id and inode), life when the server was restarted.
func (db *DB) Identity(ctx context.Context) (durable, life string, err error) {
	durable, life, err = db.b.identity(ctx)
	return durable, life, translate(err)
}

// Compact gives the room that deleted rows left in a SQLite file back to the system, in steps of some milliseconds between which others
// work on. A file made before release 0.1 keeps its room for new rows. Servers do this by themselves: there it does nothing.
func (db *DB) Compact(ctx context.Context) error { return translate(db.b.compact(ctx)) }

// Close waits for transactions under way and closes all connections. It is idempotent.
func (db *DB) Close() error { return db.b.close() }
