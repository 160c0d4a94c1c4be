package sqldb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
)

// engines runs a test on a database of each dialect.
func engines(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, "sqlite:"+filepath.Join(t.TempDir(), "t.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, testenv.Postgres(t)) })
	t.Run("mysql", func(t *testing.T) { test(t, testenv.MySQL(t)) })
}

func open(t *testing.T, dsn string, opt sqldb.Options) *sqldb.DB {
	t.Helper()
	opt.Create = true
	db, err := sqldb.Open(t.Context(), dsn, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

var schema = sqldb.Schema{
	Name:   "thing",
	Oldest: 1,
	Tables: []string{"thing"},
	Migrations: fstest.MapFS{
		"sqlite/00001_first.sql":   file("-- +goose Up\nCREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT NOT NULL, k BLOB);\nCREATE UNIQUE INDEX thing_name ON thing (name);"),
		"postgres/00001_first.sql": file("-- +goose Up\nCREATE TABLE thing (id bigint PRIMARY KEY, name text NOT NULL COLLATE \"C\", k bytea);\nCREATE UNIQUE INDEX thing_name ON thing (name);"),
		"mysql/00001_first.sql":    file("-- +goose Up\nCREATE TABLE thing (id BIGINT PRIMARY KEY, name VARCHAR(200) NOT NULL, k BLOB) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;\nCREATE UNIQUE INDEX thing_name ON thing (name);"),
	},
}

var queries = fstest.MapFS{
	"thing.sql": file(`-- name: add
-- in: id int, name text, k bytes
-- Adds one thing.
INSERT INTO thing (id, name, k) VALUES (:id, :name, :k) -- with a 'quote

-- name: add_all
-- rows: id int, name text, k bytes
INSERT INTO thing (id, name, k) :values;

-- name: rename
-- rows: id int, name text
UPDATE thing SET name = :name WHERE id = :id

-- name: drop_some
-- in: least int
-- rows: id int
DELETE FROM thing WHERE id = :id AND id >= :least

-- name: matching
-- rows: id int
SELECT t.id, t.name, t.k FROM :rows r JOIN thing t ON t.id = r.id

-- name: all
SELECT id, name, k FROM thing WHERE name <> ':literal' ORDER BY id

-- name: now
SELECT :now
`),
	"mysql/thing.sql":    file("-- name: drop_some\nDELETE t FROM :rows r JOIN thing t ON t.id = r.id AND t.id >= :least"),
	"postgres/thing.sql": file("-- name: drop_some\nDELETE FROM thing t USING :rows r WHERE t.id = r.id AND t.id >= :least"),
}

func prepare(t *testing.T, dsn string, opt sqldb.Options) (*sqldb.DB, *sqldb.Set) {
	t.Helper()
	db := open(t, dsn, opt)
	if _, err := db.Migrate(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	set, err := sqldb.Load(queries, db.Dialect())
	if err != nil {
		t.Fatal(err)
	}
	return db, set
}

func list(t *testing.T, db *sqldb.DB, set *sqldb.Set) (out []string) {
	t.Helper()
	err := db.View(t.Context(), func(tx *sqldb.Tx) error {
		out = nil
		tx.Query(set.Get("all"), func(r *sqldb.Row) error {
			out = append(out, fmt.Sprintf("%d=%s/%x", r.Int(0), r.Text(1), r.Bytes(2)))
			return nil
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTransactions(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		db, set := prepare(t, dsn, sqldb.Options{})
		ctx := t.Context()
		awkward := "a'b\\c\"\n\r\x1a%_ \u00e9\U0001F600 "
		raw := []byte{0, 1, '\'', '\\', '"', 0x1a, 0xff, 0x80, '\n'}

		t.Run("what is queued is committed together, byte for byte", func(t *testing.T) {
			var n *sqldb.Count
			err := db.Do(ctx, func(tx *sqldb.Tx) error {
				tx.Exec(set.Get("add"), int64(1), awkward, raw)
				var tab sqldb.Table
				tab.Add(int64(2), "two", []byte(nil))
				tab.Add(int64(3), "Two", []byte{})
				n = tx.ExecRows(set.Get("add_all"), &tab)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if n.N != 2 {
				t.Errorf("got %d rows added, want 2", n.N)
			}
			want := []string{fmt.Sprintf("1=%s/%x", awkward, raw), "2=two/", "3=Two/"}
			if got := list(t, db, set); strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("got %q, want %q", got, want)
			}
		})
		t.Run("results are there after a flush and counts are of matched rows", func(t *testing.T) {
			err := db.Do(ctx, func(tx *sqldb.Tx) error {
				var tab, ids sqldb.Table
				tab.Add(int64(2), "two") // unchanged, matched
				tab.Add(int64(3), "three")
				tab.Add(int64(99), "none")
				n := tx.ExecRows(set.Get("rename"), &tab)
				ids.Add(int64(3))
				ids.Add(int64(1))
				ids.Add(int64(77))
				found := map[int64]string{}
				tx.QueryRows(set.Get("matching"), func(r *sqldb.Row) error { found[r.Int(0)] = r.Text(1); return nil }, &ids)
				if err := tx.Flush(); err != nil {
					return err
				}
				if n.N != 2 || len(found) != 2 || found[3] != "three" || found[1] != awkward {
					t.Errorf("got %d matched and %v found", n.N, found)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		t.Run("an error of the function rolls back what was flushed", func(t *testing.T) {
			boom := errors.New("boom")
			err := db.Do(ctx, func(tx *sqldb.Tx) error {
				tx.Exec(set.Get("add"), int64(50), "fifty", []byte(nil))
				if err := tx.Flush(); err != nil {
					return err
				}
				return boom
			})
			if !errors.Is(err, boom) {
				t.Errorf("got %v, want %v", err, boom)
			}
			if got := list(t, db, set); len(got) != 3 {
				t.Errorf("got %q, want three things", got)
			}
		})
		t.Run("a count that does not hold stops what is queued behind it", func(t *testing.T) {
			for _, flush := range []bool{false, true} {
				err := db.Do(ctx, func(tx *sqldb.Tx) error {
					var tab sqldb.Table
					tab.Add(int64(2))
					tab.Add(int64(77))
					tx.ExecExactly(2, set.Get("drop_some"), &tab, int64(0))
					tx.Exec(set.Get("add"), int64(60), "sixty", []byte(nil))
					if flush {
						return tx.Flush()
					}
					return nil
				})
				if !errors.Is(err, sqldb.ErrMismatch) {
					t.Errorf("got %v, want %v", err, sqldb.ErrMismatch)
				}
				if got := list(t, db, set); len(got) != 3 {
					t.Errorf("got %q, want three things", got)
				}
			}
			err := db.Do(ctx, func(tx *sqldb.Tx) error {
				var tab sqldb.Table
				tab.Add(int64(2))
				tx.ExecExactly(1, set.Get("drop_some"), &tab, int64(0))
				return nil
			})
			if err != nil || len(list(t, db, set)) != 2 {
				t.Errorf("got %v and %q, want two things left", err, list(t, db, set))
			}
		})
		t.Run("a duplicate is ErrUnique and the connection goes on", func(t *testing.T) {
			for range 6 {
				err := db.Do(ctx, func(tx *sqldb.Tx) error {
					tx.Exec(set.Get("add"), int64(61), "other", []byte(nil))
					tx.Exec(set.Get("add"), int64(1), "one", []byte(nil))
					return nil
				})
				if !errors.Is(err, sqldb.ErrUnique) {
					t.Fatalf("got %v, want %v", err, sqldb.ErrUnique)
				}
			}
		})
		t.Run("the clock is in microseconds", func(t *testing.T) {
			var now int64
			err := db.View(ctx, func(tx *sqldb.Tx) error {
				tx.Query(set.Get("now"), func(r *sqldb.Row) error { now = r.Int(0); return nil })
				return nil
			})
			if err != nil || now < 1.7e15 || now > 1e16 {
				t.Errorf("got %d, %v", now, err)
			}
		})
		t.Run("a large batch is sent whole", func(t *testing.T) {
			var tab sqldb.Table
			blob := bytes.Repeat([]byte{0}, 60000)
			for i := range 100 {
				tab.Add(int64(1000+i), fmt.Sprint("big", i), blob)
			}
			err := db.Do(ctx, func(tx *sqldb.Tx) error {
				for i := range 3 {
					tx.Exec(set.Get("add"), int64(2000+i), fmt.Sprint("x", i), blob[:10])
				}
				if db.Dialect() != sqldb.MySQL {
					tx.ExecRows(set.Get("add_all"), &tab)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	})
}

func TestRoundTrips(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		var mu sync.Mutex
		trips := 0
		db, set := prepare(t, dsn, sqldb.Options{Writers: 1, RoundTrip: func() { mu.Lock(); trips++; mu.Unlock() }})
		if db.Dialect() == sqldb.SQLite {
			return // nothing to wait for
		}
		work := func(base int64, flush bool) {
			err := db.Do(t.Context(), func(tx *sqldb.Tx) error {
				for i := range int64(10) {
					tx.Exec(set.Get("add"), base+i, fmt.Sprint("n", base+i), []byte(nil))
				}
				if flush {
					if err := tx.Flush(); err != nil {
						return err
					}
				}
				var tab sqldb.Table
				tab.Add(base)
				tx.ExecExactly(1, set.Get("drop_some"), &tab, int64(0))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		work(0, false)
		work(100, true) // statements are prepared now
		for _, c := range []struct {
			flush bool
			want  int
		}{{false, 1}, {true, 2}} {
			mu.Lock()
			trips = 0
			mu.Unlock()
			work(map[bool]int64{false: 200, true: 300}[c.flush], c.flush)
			mu.Lock()
			if trips != c.want {
				t.Errorf("flush %v: got %d round trips, want %d", c.flush, trips, c.want)
			}
			mu.Unlock()
		}
	})
}

func TestMigrate(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		db := open(t, dsn, sqldb.Options{})
		if err := db.Check(t.Context(), schema); !errors.Is(err, sqldb.ErrSchema) {
			t.Fatalf("before: got %v, want %v", err, sqldb.ErrSchema)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				d, err := sqldb.Open(context.Background(), dsn, sqldb.Options{Create: true})
				if err != nil {
					t.Error(err)
					return
				}
				defer d.Close()
				if _, err := d.Migrate(context.Background(), schema); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := db.Check(t.Context(), schema); err != nil {
			t.Fatal(err)
		}
		newer := schema
		newer.Migrations = fstest.MapFS{}
		for name, f := range schema.Migrations.(fstest.MapFS) {
			newer.Migrations.(fstest.MapFS)[name] = f
		}
		newer.Migrations.(fstest.MapFS)[db.Dialect().String()+"/00002_second.sql"] = file("-- +goose Up\nCREATE TABLE thing2 (id BIGINT PRIMARY KEY);")
		if err := db.Check(t.Context(), newer); !errors.Is(err, sqldb.ErrSchema) || !strings.Contains(err.Error(), "migrate") {
			t.Errorf("older schema: got %v", err)
		}
		rep, err := db.Migrate(t.Context(), newer)
		if err != nil || rep.From != 1 || rep.To != 2 || len(rep.Applied) != 1 {
			t.Errorf("got %+v, %v", rep, err)
		}
		if err := db.Check(t.Context(), schema); err != nil {
			t.Errorf("a newer schema that still serves this binary: got %v", err)
		}
		newer.Oldest = 2
		if _, err := db.Migrate(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		if err := db.Check(t.Context(), schema); !errors.Is(err, sqldb.ErrSchema) || !strings.Contains(err.Error(), "newer deepcrawl") {
			t.Errorf("newer schema: got %v", err)
		}
		other := schema
		other.Name = "other"
		if _, err := db.Migrate(t.Context(), other); !errors.Is(err, sqldb.ErrForeign) {
			t.Errorf("tables of others: got %v, want %v", err, sqldb.ErrForeign)
		}
	})
}

func TestABusyProcessStarvesNobody(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "t.db")
	busy, set := prepare(t, dsn, sqldb.Options{})
	other := open(t, dsn, sqldb.Options{})
	stop := make(chan struct{})
	var rounds atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := int64(0); ; n++ {
			rounds.Store(n)
			select {
			case <-stop:
				return
			default:
			}
			err := busy.Do(t.Context(), func(tx *sqldb.Tx) error {
				for i := range int64(200) { // a few milliseconds
					tx.Exec(set.Get("add"), n*200+i, fmt.Sprint("busy", n, ".", i), []byte(nil))
				}
				return nil
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	var longest time.Duration
	for i := int64(0); rounds.Load() < 100; i++ {
		at := time.Now()
		err := other.Do(t.Context(), func(tx *sqldb.Tx) error {
			tx.Exec(set.Get("add"), -1-i, fmt.Sprint("other", i), []byte(nil))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(at))
	}
	close(stop)
	wg.Wait()
	t.Logf("the longest wait was %v", longest)
	if longest > 2*time.Second {
		t.Errorf("a transaction waited %v", longest)
	}
}
