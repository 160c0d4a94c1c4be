package sqlstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// TestMain lets the test binary be a process that crawls a file until it is killed.
func TestMain(m *testing.M) {
	if dsn := os.Getenv("SQLSTORE_TEST_CRAWL"); dsn != "" {
		if err := crawlUntilKilled(dsn, os.Getenv("SQLSTORE_TEST_OWNER")); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
	}
	os.Exit(m.Run())
}

func wantOpenError(t *testing.T, dsn string, opt sqlstore.Options, want error, says string) {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), dsn, opt)
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, want) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want one line with %v that says %q", err, want, says)
	}
}

func TestOpenSQLite(t *testing.T) {
	t.Run("a missing file is named and not made", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "none.db")
		wantOpenError(t, "sqlite:"+path, sqlstore.Options{}, storage.ErrNotFound, path)
		if _, err := os.Stat(path); err == nil {
			t.Error("it was made")
		}
	})
	t.Run("create makes it and opens what is there", func(t *testing.T) {
		dsn := sqliteDSN(t)
		run := newRun(t, openStore(t, dsn, sqlstore.Options{Create: true}))
		if _, err := openStore(t, dsn, sqlstore.Options{Create: true}).Run(t.Context(), run); err != nil {
			t.Error(err)
		}
	})
	t.Run("an empty file needs migrate", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "empty.db")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		wantOpenError(t, "sqlite:"+path, sqlstore.Options{}, storage.ErrSchema, "migrate")
		openStore(t, "sqlite:"+path, sqlstore.Options{Create: true})
	})
	t.Run("another's file is left as it is", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "notes.txt")
		text := bytes.Repeat([]byte("do not touch\n"), 1000)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		wantOpenError(t, "sqlite:"+path, sqlstore.Options{Create: true}, storage.ErrForeign, path)
		if after, _ := os.ReadFile(path); !bytes.Equal(after, text) {
			t.Error("it was changed")
		}
	})
}

func TestSchemaVersions(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		wantSchema := func(t *testing.T, says string) {
			t.Helper()
			wantOpenError(t, dsn, sqlstore.Options{}, storage.ErrSchema, says)
		}
		if !strings.HasPrefix(dsn, "sqlite:") {
			wantSchema(t, "deepcrawl migrate")
		}
		opener(t, dsn)
		s := openStore(t, dsn, sqlstore.Options{})
		if err := s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		bulk(t, s.DB(), "INSERT INTO store_version (version_id, is_applied) VALUES (99, "+map[sqldb.Dialect]string{sqldb.Postgres: "true"}[s.DB().Dialect()]+
			map[sqldb.Dialect]string{sqldb.SQLite: "1", sqldb.MySQL: "1"}[s.DB().Dialect()]+")")
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("a newer schema that still serves this binary: got %v", err)
		}
		bulk(t, s.DB(), "INSERT INTO store_serves (oldest) VALUES (99)")
		wantSchema(t, "newer deepcrawl")
		if err := s.Ping(t.Context()); !errors.Is(err, storage.ErrSchema) {
			t.Errorf("got %v", err)
		}
		bulk(t, s.DB(), "DELETE FROM store_version WHERE version_id > 1")
		wantSchema(t, "deepcrawl migrate")
	})
}

func TestFullDisk(t *testing.T) {
	dir := testenv.SmallDisk(t, 3<<20)
	dsn := "sqlite:" + filepath.Join(dir, "crawl.db")
	s := openStore(t, dsn, sqlstore.Options{Create: true})
	run := newRun(t, s)
	var err error
	stored := 0
	for i := 0; err == nil && i < 200; i++ {
		list := make([]storage.Discovery, 500)
		for k := range list {
			list[k] = benchDiscovery(i*500 + k)
		}
		var n int
		n, err = s.Discover(t.Context(), run, list, nil)
		stored += n
	}
	if !errors.Is(err, storage.ErrFull) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v, want one line with %v", err, storage.ErrFull)
	}
	l, err := s.Ledger(t.Context(), run)
	if err != nil || l.Discovered != int64(stored) || l.Queued != int64(stored) {
		t.Errorf("got %+v, %v, want %d discovered", l, err, stored)
	}
	if err := s.Close(); err != nil && !errors.Is(err, storage.ErrFull) {
		t.Error(err)
	}
	wantWhole(t, dsn)
}

func TestReadOnlyFolder(t *testing.T) {
	dir := testenv.SmallDisk(t, 3<<20)
	dsn := "sqlite:" + filepath.Join(dir, "crawl.db")
	s, err := sqlstore.Open(t.Context(), dsn, sqlstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	testenv.ReadOnly(t, dir)
	wantOpenError(t, dsn, sqlstore.Options{Create: true}, storage.ErrReadOnly, dir)
	wantOpenError(t, "sqlite:"+filepath.Join(dir, "new.db"), sqlstore.Options{Create: true}, storage.ErrReadOnly, dir)
}

func TestLockedFile(t *testing.T) {
	dsn := sqliteDSN(t)
	s := openStore(t, dsn, sqlstore.Options{Create: true})
	other := openStore(t, dsn, sqlstore.Options{})
	run := newRun(t, s)
	held, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- other.DB().Do(context.Background(), func(tx *sqldb.Tx) error {
			tx.Exec(sqldb.SQLite.Statement("UPDATE sequence SET last = last"))
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	_, err := s.CreateRun(t.Context(), storage.NewRun{Tenant: storage.DefaultTenant, Site: host})
	if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "locked") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Run(t.Context(), run); err != nil {
		t.Errorf("reading: got %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	newRun(t, s)
}

// wantWhole checks a file with SQLite's own eyes.
func wantWhole(t *testing.T, dsn string) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), dsn, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), func(tx *sqldb.Tx) error {
		tx.Query(sqldb.SQLite.Statement("PRAGMA integrity_check"), func(r *sqldb.Row) error {
			if r.Text(0) != "ok" {
				t.Errorf("integrity check: %s", r.Text(0))
			}
			return nil
		})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

const killLimit = 2000

// crawlUntilKilled crawls run 1 as several workers would: pages link to others, some are delayed, returned or excluded.
func crawlUntilKilled(dsn, owner string) error {
	ctx := context.Background()
	s, err := sqlstore.Open(ctx, dsn, sqlstore.Options{})
	if err != nil {
		return err
	}
	o := storage.Owner(owner)
	for {
		claims, err := s.Claim(ctx, o, []storage.ClaimRequest{{Run: 1, Host: host, N: 20, MaxPages: killLimit}})
		if err != nil {
			return err
		}
		var results []storage.Result
		for _, c := range claims {
			r := storage.Result{Run: c.Run, ID: c.ID, Token: c.Token}
			for range 5 {
				r.Discovered = append(r.Discovered, benchDiscovery(rand.IntN(6000)))
			}
			switch rand.IntN(10) {
			case 0:
				r.Delay = &storage.Delay{For: 0, Attempts: c.Attempts + 1, Reason: "timeout"}
			case 1:
				r.Page = &storage.PageResult{State: storage.Excluded, Reason: "robots"}
			default:
				r.Page = &storage.PageResult{State: storage.Fetched, Status: 200, Attempts: c.Attempts + 1}
			}
			results = append(results, r)
		}
		if len(claims) > 3 {
			if err := s.Return(ctx, o, claims[:2]); err != nil {
				return err
			}
			results = results[2:]
		}
		if _, err := s.Finish(ctx, o, results); err != nil {
			return err
		}
	}
}

func TestKilledInMidCrawl(t *testing.T) {
	dsn := sqliteDSN(t)
	s := openStore(t, dsn, sqlstore.Options{Create: true})
	run := newRun(t, s)
	if run != 1 {
		t.Fatalf("the first run is %d", run)
	}
	if _, err := s.Discover(t.Context(), run, []storage.Discovery{benchDiscovery(0), benchDiscovery(1), benchDiscovery(2)}, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		owner := "victim." + strconv.Itoa(i)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "SQLSTORE_TEST_CRAWL="+dsn, "SQLSTORE_TEST_OWNER="+owner)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// It is killed at a moment of its own choosing, some way into its work.
		before, err := s.Ledger(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); ; {
			l, err := s.Ledger(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			if l.Fetched > before.Fetched+int64(rand.IntN(100)) || l.Fetched >= killLimit-20 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no progress: %+v %s", l, &out)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if out.Len() > 0 {
			t.Fatalf("the victim ended by itself: %s", &out)
		}
		l, err := s.Ledger(t.Context(), run)
		if err != nil || l.Queued < 0 || l.Claimed > 20 {
			t.Fatalf("got %+v, %v", l, err)
		}
		n, more, err := s.Reclaim(t.Context(), storage.Owner(owner), 100)
		if err != nil || more || int64(n) != l.Claimed {
			t.Errorf("got %d reclaimed of %d, %v", n, l.Claimed, err)
		}
	}
	// What the page limit has given out is exact: claiming the rest gives what is left of it, and all that holds a place.
	l, err := s.Ledger(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	requested := l.Fetched + l.Failed
	var all []storage.Claim
	for {
		claims, err := s.Claim(t.Context(), "last", []storage.ClaimRequest{{Run: run, Host: host, N: 1000, MaxPages: killLimit}})
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, claims...); len(claims) == 0 {
			break
		}
	}
	want := min(killLimit, l.Discovered-l.Excluded)
	if requested+int64(len(all)) != want {
		t.Errorf("%d pages requested and %d claimable, want %d together", requested, len(all), want)
	}
	s.Close()
	wantWhole(t, dsn)
}

func TestCompact(t *testing.T) {
	dsn := sqliteDSN(t)
	s := openStore(t, dsn, sqlstore.Options{Create: true})
	other := openStore(t, dsn, sqlstore.Options{})
	keep, drop := newRun(t, s), newRun(t, s)
	list := make([]storage.Discovery, 100)
	for i := range list {
		list[i] = benchDiscovery(i)
	}
	if _, err := s.Discover(t.Context(), keep, list, nil); err != nil {
		t.Fatal(err)
	}
	fillRun(t, s, drop, 5000, 5000)
	if err := s.Compact(t.Context()); err != nil { // nothing to give back
		t.Fatal(err)
	}
	var before, after int64
	pages := func() (n int64) {
		err := s.DB().View(t.Context(), func(tx *sqldb.Tx) error {
			tx.Query(sqldb.SQLite.Statement("PRAGMA page_count"), func(r *sqldb.Row) error { n = r.Int(0); return nil })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before = pages()
	if _, err := s.SetRunState(t.Context(), drop, []storage.RunState{storage.RunCrawling}, storage.RunCancelled, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	for done := false; !done; {
		var err error
		if done, err = s.DeleteRun(t.Context(), drop, 2000); err != nil {
			t.Fatal(err)
		}
	}
	if got := pages(); got < before {
		t.Errorf("%d pages are left of %d before it was compacted: nothing is tested", got, before)
	}
	compacted := make(chan error, 1)
	go func() { compacted <- s.Compact(t.Context()) }()
	claims := 0
	for running := true; running; {
		select {
		case err := <-compacted:
			if err != nil {
				t.Fatal(err)
			}
			running = false
		default:
		}
		got, err := other.Claim(t.Context(), "node", []storage.ClaimRequest{{Run: keep, Host: host, N: 10}}) // another connection to the file
		if err == nil {
			err = other.Return(t.Context(), "node", got)
		}
		if err != nil {
			t.Fatal(err)
		}
		claims++
	}
	if after = pages(); after > before/5 {
		t.Errorf("got %d pages after deleting nearly everything, %d before", after, before)
	}
	t.Logf("%d pages, then %d; %d claims of another process meanwhile", before, after, claims)
	if claims < 3 {
		t.Errorf("only %d claims went through meanwhile", claims)
	}
	s.Close()
	other.Close()
	if fi, err := os.Stat(strings.TrimPrefix(dsn, "sqlite:")); err != nil || fi.Size() != 4096*after {
		t.Errorf("the file has %v bytes, want %d, %v", fi.Size(), 4096*after, err)
	}
	wantWhole(t, dsn)
}

func TestCompactLeavesFilesThatCannotBe(t *testing.T) {
	dsn := sqliteDSN(t)
	const id = 0x44435257 // as earlier releases made their files
	testenv.SQLiteExec(t, strings.TrimPrefix(dsn, "sqlite:"), fmt.Sprintf("PRAGMA application_id = %d", id), "PRAGMA journal_mode = wal", "CREATE TABLE earlier (a)")
	s := openStore(t, dsn, sqlstore.Options{Create: true})
	mode := int64(-1)
	err := s.DB().View(t.Context(), func(tx *sqldb.Tx) error {
		tx.Query(sqldb.SQLite.Statement("PRAGMA auto_vacuum"), func(r *sqldb.Row) error { mode = r.Int(0); return nil })
		return nil
	})
	if err != nil || mode != 0 {
		t.Fatal(mode, err)
	}
	run := newRun(t, s)
	if err := s.Compact(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Run(t.Context(), run); err != nil {
		t.Error(err)
	}
}

func TestFileIdentity(t *testing.T) {
	dsn := sqliteDSN(t)
	s := openStore(t, dsn, sqlstore.Options{Create: true})
	a, _, err := s.DB().Identity(t.Context())
	if err != nil || a == "" {
		t.Fatal(a, err)
	}
	other := openStore(t, sqliteDSN(t), sqlstore.Options{Create: true})
	b, _, err := other.DB().Identity(t.Context())
	if err != nil || a == b {
		t.Errorf("two files have one identity %q (%v)", a, err)
	}
}
