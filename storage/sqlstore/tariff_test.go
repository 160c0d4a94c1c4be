package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// plainSQL asks a database without the store.
type plainSQL struct{ db *sqldb.DB }

func openSQL(t testing.TB, dsn string) plainSQL {
	t.Helper()
	db, err := sqldb.Open(t.Context(), dsn, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return plainSQL{db}
}

func (p plainSQL) each(ctx context.Context, text string, each func(r *sqldb.Row) error) error {
	return p.db.View(ctx, func(tx *sqldb.Tx) error { tx.Query(p.db.Dialect().Statement(text), each); return nil })
}

func (p plainSQL) exec(t testing.TB, text string) {
	t.Helper()
	bulk(t, p.db, text)
}

const (
	sqlActive = "SELECT q.tenant, COUNT(*) FROM run q WHERE q.state IN ('preparing', 'crawling', 'finishing') GROUP BY q.tenant"
	sqlSeats  = "SELECT q.tenant, COUNT(*), s.run_id FROM seat s JOIN run q ON q.id = s.run_id GROUP BY q.tenant, s.run_id"
	// sqlAstray finds active runs without a place, and places without an active run.
	sqlAstray = `SELECT q.id, q.state, p.n FROM run q LEFT JOIN run_place p ON p.run_id = q.id
WHERE CASE WHEN q.state IN ('preparing', 'crawling', 'finishing') THEN 1 ELSE 0 END <> CASE WHEN p.n IS NULL THEN 0 ELSE 1 END`
	sqlAge     = "UPDATE run SET finished = finished - 660000000 WHERE finished > 0"
	sqlSettled = "SELECT COUNT(*) FROM run WHERE stored IS NOT NULL"
	sqlFalsify = "INSERT INTO tally (run_id, shard, name, n) SELECT id, 99, 'fetched', 1000 FROM run"
)

// contested are the tenants of the contention test.
var contested = map[string]storage.Tariff{
	"one": {Parallel: 1, Workers: 1}, "few": {Parallel: 3, Workers: 2}, "many": {Parallel: 4, Workers: 3}, "free": {Workers: 3},
}

const (
	envHelper    = "DEEPCRAWL_TARIFF_HELPER" // the DSN, for the processes TestTariffsHold starts; they work until their stdin ends
	contendFor   = 2 * time.Second           // at least
	contendMost  = 60 * time.Second          // until every limit has been reached
	contenders   = 6                         // goroutines a process
	contendProcs = 2                         // beside the test's own
)

// TestTariffsHold has many workers of several processes pick, serve, pause, resume and end runs while plain SQL looks on.
func TestTariffsHold(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		if _, err := sqlstore.Migrate(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, dsn, sqlstore.Options{Workers: 8})
		for name, tariff := range contested {
			tariff.Name = name
			if err := errors.Join(s.PutTariff(t.Context(), tariff), s.PutTenant(t.Context(), storage.Tenant{Name: name, Tariff: name})); err != nil {
				t.Fatal(err)
			}
			for range 8 {
				addRun(t, s, name)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), contendMost)
		defer cancel()
		var wg sync.WaitGroup
		for range contendProcs {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTariffHelper$")
			cmd.Env = append(os.Environ(), envHelper+"="+dsn)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			context.AfterFunc(ctx, func() { stdin.Close() })
			wg.Go(func() {
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("helper: %v\n%s", err, out)
				}
			})
		}
		wg.Go(func() {
			n, err := contend(ctx, s)
			t.Logf("%d picks in this process", n)
			if err != nil {
				t.Error(err)
			}
		})
		watchTariffs(t, openSQL(t, dsn), ctx.Done(), time.Now().Add(contendFor))
		cancel()
		wg.Wait()
	})
}

func addRun(t testing.TB, s storage.Store, tenant string) storage.RunID {
	t.Helper()
	r, err := s.CreateRun(t.Context(), storage.NewRun{Tenant: tenant, Site: host})
	if err != nil {
		t.Fatal(err)
	}
	return r.ID
}

// watchTariffs reads what is active and seated, until the earliest time or, where that is later, all limits have been reached: else
// nothing was tested. It fails the test where more is than may be, or stop comes first.
func watchTariffs(t *testing.T, db plainSQL, stop <-chan struct{}, earliest time.Time) {
	t.Helper()
	most := map[string]int{}
	note := func(what string, limit func(storage.Tariff) int) func(r *sqldb.Row) error {
		return func(r *sqldb.Row) error {
			tenant, n := r.Text(0), int(r.Int(1))
			most[tenant+" "+what] = max(most[tenant+" "+what], n)
			if most := limit(contested[tenant]); most > 0 && n > most {
				return fmt.Errorf("tenant %s has %d %s, %d are allowed", tenant, n, what, most)
			}
			return nil
		}
	}
	for looks := 1; ; looks++ {
		err := errors.Join(
			db.each(t.Context(), sqlActive, note("active", func(f storage.Tariff) int { return f.Parallel })),
			db.each(t.Context(), sqlSeats, note("seats", func(f storage.Tariff) int { return f.Workers })),
			db.each(t.Context(), sqlAstray, func(r *sqldb.Row) error {
				return fmt.Errorf("run %d is %s and has place %d", r.Int(0), r.Text(1), r.Int(2))
			}),
		)
		if err != nil {
			t.Error(err)
			return
		}
		reached := true
		for name, f := range contested {
			reached = reached && most[name+" active"] >= f.Parallel && most[name+" seats"] >= f.Workers
		}
		if reached && time.Now().After(earliest) {
			t.Logf("looked %d times, most seen: %v", looks, most)
			return
		}
		select {
		case <-stop:
			t.Errorf("looked %d times, and not every limit was reached: %v", looks, most)
			return
		default:
		}
	}
}

// TestTariffHelper is a process of TestTariffsHold.
func TestTariffHelper(t *testing.T) {
	dsn := os.Getenv(envHelper)
	if dsn == "" {
		t.Skip("only for TestTariffsHold, which sets " + envHelper)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the process that started this one
		cancel()
	}()
	if _, err := contend(ctx, openStore(t, dsn, sqlstore.Options{Workers: 8})); err != nil {
		t.Error(err)
	}
}

// contend works until ctx ends and returns how many seats were taken.
func contend(ctx context.Context, s storage.Store) (picks int, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range contenders {
		owner := storage.Owner(fmt.Sprintf("p%d.%d", os.Getpid(), i))
		wg.Go(func() {
			var held *storage.Seat
			for ctx.Err() == nil {
				seat, run, ok, e := s.Pick(context.WithoutCancel(ctx), owner, 0, held, anyTenants)
				if e == nil && ok {
					e = serveRun(context.WithoutCancel(ctx), s, owner, held, seat, run)
					held = nil
					if rand.IntN(3) == 0 {
						held = &seat
					} else if e == nil {
						e = s.Leave(context.WithoutCancel(ctx), owner, seat)
					}
				}
				mu.Lock()
				if ok {
					picks++
				}
				err = errors.Join(err, e)
				mu.Unlock()
				if e != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return picks, err
}

// anyTenants chooses a run of any tenant, each alike.
func anyTenants(list []storage.Candidate) int {
	first := map[string]int{}
	for _, i := range rand.Perm(len(list)) {
		first[list[i].Tenant] = i
	}
	n := rand.IntN(len(first))
	for _, i := range first {
		if n--; n < 0 {
			return i
		}
	}
	return -1
}

// serveRun does one of the things that happen to runs; that another was faster is no error.
func serveRun(ctx context.Context, s storage.Store, owner storage.Owner, held *storage.Seat, seat storage.Seat, run storage.Run) error {
	var err error
	if held != nil && *held != seat {
		err = s.Leave(ctx, owner, *held)
	}
	set := func(to storage.RunState, from ...storage.RunState) (moved bool) {
		if err == nil {
			_, err = s.SetRunState(ctx, run.ID, from, to, "", time.Time{})
			moved = err == nil
		}
		if errors.Is(err, storage.ErrState) {
			err = nil
		}
		return moved
	}
	switch n := rand.IntN(20); {
	case n < 12:
		set(storage.RunCrawling, storage.RunPreparing)
	case n < 15:
		if set(storage.RunPaused, storage.RunCrawling, storage.RunPreparing) {
			set([]storage.RunState{storage.RunCrawling, storage.RunPreparing, storage.RunQueued}[rand.IntN(3)], storage.RunPaused)
		}
	case n < 17:
		set(storage.RunFinishing, storage.RunCrawling)
	default:
		if set(storage.RunDone, storage.RunPreparing, storage.RunCrawling, storage.RunFinishing) && err == nil {
			_, err = s.CreateRun(ctx, storage.NewRun{Tenant: run.Tenant, Site: host})
		}
	}
	return err
}

// TestStoredPagesSettle: runs that are over for a while are added up once.
func TestStoredPagesSettle(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		ctx := t.Context()
		if _, err := sqlstore.Migrate(ctx, dsn); err != nil {
			t.Fatal(err)
		}
		s, db := openStore(t, dsn, sqlstore.Options{}), openSQL(t, dsn)
		id := addRun(t, s, storage.DefaultTenant)
		move := func(from, to storage.RunState) {
			t.Helper()
			if _, err := s.SetRunState(ctx, id, []storage.RunState{from}, to, "", time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		move(storage.RunQueued, storage.RunCrawling)
		if _, err := s.Discover(ctx, id, []storage.Discovery{benchDiscovery(1), benchDiscovery(2), benchDiscovery(3)}, nil); err != nil {
			t.Fatal(err)
		}
		claims, err := s.Claim(ctx, "o", []storage.ClaimRequest{{Run: id, Host: host, N: 2}})
		if err != nil || len(claims) != 2 {
			t.Fatalf("got %d claims, %v", len(claims), err)
		}
		end := func(c storage.Claim) {
			t.Helper()
			_, err := s.Finish(ctx, "o", []storage.Result{{Run: c.Run, ID: c.ID, Token: c.Token, Page: &storage.PageResult{State: storage.Fetched, Attempts: 1}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		want := func(pages, settled int64) {
			t.Helper()
			n, err := s.StoredPages(ctx, storage.DefaultTenant)
			if err != nil || n != pages {
				t.Errorf("got %d pages, %v; want %d", n, err, pages)
			}
			if err := db.each(ctx, sqlSettled, func(r *sqldb.Row) error {
				if r.Int(0) != settled {
					t.Errorf("got %d runs settled, want %d", r.Int(0), settled)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		end(claims[0])
		move(storage.RunCrawling, storage.RunCancelled)
		want(1, 0) // over for too short a time
		db.exec(t, sqlAge)
		want(1, 0) // a claim may still be finished
		end(claims[1])
		want(2, 1)
		db.exec(t, sqlFalsify)
		want(2, 1) // the sum is not read from the tally any more
		move(storage.RunCancelled, storage.RunCrawling)
		want(1002, 0) // until the run goes on
	})
}
