package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"time"

	"github.com/pressly/goose/v3"
)

// Schema describes the tables of one consumer and how they came about.
type Schema struct {
	// Name is a short word; the table NAME_version keeps which migrations were made.
	Name string
	// Migrations holds DIALECT/NNNNN_name.sql for each dialect, in goose's form.
	Migrations fs.FS
	// Oldest is the oldest version whose binaries still work on the newest schema: migrating says so to the database.
	Oldest int64
	// Tables are some the first migration makes: where they are there without NAME_version the database is foreign.
	Tables []string
}

// Report says what a migration did.
type Report struct {
	From, To int64
	Applied  []string // names of the files, in order
}

var nameWord = regexp.MustCompile(`^[a-z]+$`)

// Version returns the newest version the migrations of a dialect lead to.
func (s Schema) Version(d Dialect) (int64, error) {
	files, err := fs.Glob(s.Migrations, path.Join(d.String(), "*.sql"))
	if err != nil {
		return 0, err
	}
	var newest int64
	for _, f := range files {
		v, err := goose.NumericComponent(f)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", f, err)
		}
		newest = max(newest, v)
	}
	return newest, nil
}

// Check compares the database's schema with what this binary serves. It returns an error that wraps ErrSchema and says which of
// the two is older. A newer schema that still serves this binary is well.
func (db *DB) Check(ctx context.Context, s Schema) error {
	want, err := s.Version(db.dialect)
	if err != nil {
		return err
	}
	have, oldest, err := db.version(ctx, s)
	switch {
	case errors.Is(err, ErrSchema):
		return &fault{kind: ErrSchema, cause: fmt.Errorf("%s has no deepcrawl schema yet: run deepcrawl migrate", db)}
	case err != nil:
		return err
	case have < want:
		return &fault{kind: ErrSchema, cause: fmt.Errorf("the %s schema of %s is version %d, this binary needs %d: run deepcrawl migrate", s.Name, db, have, want)}
	case oldest > want:
		return &fault{kind: ErrSchema, cause: fmt.Errorf("the %s schema of %s is version %d, this binary serves up to %d: a newer deepcrawl is needed", s.Name, db, have, want)}
	}
	return nil
}

func (db *DB) version(ctx context.Context, s Schema) (have, oldest int64, err error) {
	st := db.dialect.Statement("SELECT MAX(v.version_id), (SELECT MAX(o.oldest) FROM " + s.Name + "_serves o) FROM " + s.Name + "_version v")
	err = db.View(ctx, func(tx *Tx) error {
		tx.Query(st, func(r *Row) error { have, oldest = r.Int(0), r.Int(1); return nil })
		return nil
	})
	return have, oldest, err
}

// migrateAttempts bounds how often a migration is tried while other processes migrate too. On SQLite losing that race is an error
// like any other, so the schema is looked at again.
const migrateAttempts = 5

// Migrate brings the schema up to what this binary serves. It is safe when several processes do it at once, and does nothing
// where the schema is there already. ErrForeign: tables of these names that are not deepcrawl's.
func (db *DB) Migrate(ctx context.Context, s Schema) (rep Report, err error) {
	if !nameWord.MatchString(s.Name) {
		return rep, fmt.Errorf("sqldb: schema name %q is no short word", s.Name)
	}
	h, done, err := db.b.migrator(ctx)
	if err != nil {
		return rep, translate(err)
	}
	defer done()
	for attempt := 1; ; attempt++ {
		rep, err = db.migrate(ctx, h, s)
		if err == nil || errors.Is(err, ErrForeign) || errors.Is(err, ErrFull) || errors.Is(err, ErrReadOnly) ||
			errors.Is(err, ErrAuth) || attempt == migrateAttempts || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(attempt) * 100 * time.Millisecond):
		}
	}
	if err != nil {
		return rep, fmt.Errorf("migrate %s: %w", db, err)
	}
	return rep, nil
}

func (db *DB) migrate(ctx context.Context, h *sql.DB, s Schema) (rep Report, err error) {
	if err := db.refuseForeign(ctx, s); err != nil {
		return rep, err
	}
	unlock, err := db.lockMigrations(ctx, h, s)
	if err != nil {
		return rep, translate(err)
	}
	defer unlock()
	files, err := fs.Sub(s.Migrations, db.dialect.String())
	if err != nil {
		return rep, err
	}
	dialect := map[Dialect]goose.Dialect{SQLite: goose.DialectSQLite3, Postgres: goose.DialectPostgres, MySQL: goose.DialectMySQL}[db.dialect]
	p, err := goose.NewProvider(dialect, h, files, goose.WithTableName(s.Name+"_version"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return rep, err
	}
	if rep.From, err = p.GetDBVersion(ctx); err != nil {
		return rep, translate(err)
	}
	results, err := p.Up(ctx)
	if err != nil {
		return rep, translate(err)
	}
	rep.To = rep.From
	for _, r := range results {
		rep.To = r.Source.Version
		rep.Applied = append(rep.Applied, path.Base(r.Source.Path))
	}
	// A second row would do too: the largest counts. An older binary that migrates later says nothing new.
	_, err = h.ExecContext(ctx, "INSERT INTO "+s.Name+"_serves (oldest) SELECT x.o FROM (SELECT "+strconv.FormatInt(s.Oldest, 10)+
		" AS o) x WHERE NOT EXISTS (SELECT 1 FROM "+s.Name+"_serves y WHERE y.oldest >= x.o)")
	return rep, translate(err)
}

func (db *DB) refuseForeign(ctx context.Context, s Schema) error {
	_, _, err := db.version(ctx, s)
	if !errors.Is(err, ErrSchema) {
		return err
	}
	for _, t := range s.Tables {
		err := db.View(ctx, func(tx *Tx) error {
			tx.Query(db.dialect.Statement("SELECT COUNT(*) FROM "+t+" WHERE 1 = 0"), func(*Row) error { return nil })
			return nil
		})
		if err == nil {
			_, _, again := db.version(ctx, s) // another process may have been migrating
			if errors.Is(again, ErrSchema) {
				return &fault{kind: ErrForeign, cause: fmt.Errorf("a table named %s is there that deepcrawl did not make; use a database or schema of its own", t)}
			}
			return again
		}
		if !errors.Is(err, ErrSchema) {
			return err
		}
	}
	return nil
}

// lockMigrations makes migrating processes wait for each other: a row lock in a table of its own, which dies with its connection
// and also works behind PgBouncer. SQLite has none: see migrateAttempts.
func (db *DB) lockMigrations(ctx context.Context, h *sql.DB, s Schema) (unlock func(), err error) {
	serves := s.Name + "_serves"
	if _, err := h.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+serves+" (oldest BIGINT NOT NULL PRIMARY KEY)"); err != nil {
		return nil, err
	}
	if db.dialect == SQLite {
		return func() {}, nil
	}
	if _, err := h.ExecContext(ctx, "INSERT INTO "+serves+" (oldest) SELECT x.o FROM (SELECT 0 AS o) x WHERE NOT EXISTS (SELECT 1 FROM "+
		serves+" y WHERE y.oldest = 0)"); err != nil && !errors.Is(translate(err), ErrUnique) {
		return nil, err
	}
	tx, err := h.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ExecContext(ctx, "SELECT oldest FROM "+serves+" WHERE oldest = 0 FOR UPDATE"); err != nil {
		_ = tx.Rollback() // the first error says more
		return nil, err
	}
	return func() { _ = tx.Rollback() }, nil // it only holds a lock
}
