// Package storagetest is the contract of package storage made executable. An implementation passes it from a test of about 15 lines:
//
//	func TestSQLite(t *testing.T) {
//		storagetest.Run(t, func(t *testing.T) storagetest.Open {
//			dsn := "sqlite:" + filepath.Join(t.TempDir(), "t.db")
//			return func(t *testing.T) storage.Store { ... }
//		})
//	}
package storagetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"deepcrawl/storage"
)

// Open returns a store of its own on the database of the test: calling it twice gives two, as two processes have them. The store
// is closed at the end of the test.
type Open func(t testing.TB) storage.Store

// Run runs the whole suite. fresh makes an empty database.
func Run(t *testing.T, fresh func(t testing.TB) Open) {
	for _, g := range []struct {
		name string
		test func(t *testing.T, open Open)
	}{
		{"runs", testRuns},
		{"discover", testDiscover},
		{"claim order", testOrder},
		{"boosts", testBoosts},
		{"claims across stores", testClaimsAcross},
		{"finish", testFinish},
		{"stale results", testStale},
		{"delays", testDelays},
		{"returns and reclaims", testReturns},
		{"page limit", testPageLimit},
		{"ready", testReady},
		{"closing the frontier", testClose},
		{"steps and fences", testSteps},
		{"pages", testPages},
		{"graph", testGraph},
		{"seats", testSeats},
		{"tenants", testTenants},
		{"tariffs: active runs", testParallel},
		{"tariffs: seats", testWorkers},
		{"stored pages", testStoredPages},
		{"deleting tenants", testDeleteTenant},
		{"queue", testQueue},
		{"finding URLs", testFindURL},
		{"runs that ended", testFinishedFor},
		{"bans", testBans},
		{"schedules", testSchedules},
		{"acts of leaders", testActs},
		{"deleting runs", testDelete},
		{"keys byte for byte", testKeys},
		{"contention", testContention},
		{"claim histories", testHistories},
		{"model", testModel},
	} {
		t.Run(g.name, func(t *testing.T) { g.test(t, fresh(t)) })
	}
}

const host = "example.com"

// key is the key of a URL in these tests; implementations must not care how keys are made.
func key(url string) storage.Key {
	sum := sha256.Sum256([]byte(url))
	return storage.Key(sum[:16])
}

// find describes a discovered URL of host.
func find(url string, priority, depth int) storage.Discovery {
	return storage.Discovery{Key: key(url), URL: url, Host: host, Priority: priority, Depth: depth}
}

func pageURL(i int) string { return fmt.Sprintf("https://%s/p/%d", host, i) }

// finds describes n URLs numbered from first, all of one priority.
func finds(first, n int) []storage.Discovery {
	out := make([]storage.Discovery, n)
	for i := range out {
		out[i] = find(pageURL(first+i), 350, 1)
	}
	return out
}

// crawling makes a run that may be claimed from.
func crawling(t testing.TB, s storage.Store) storage.RunID {
	t.Helper()
	run := must(s.CreateRun(t.Context(), storage.NewRun{Tenant: storage.DefaultTenant, Site: host, Spec: []byte(`{}`)}))(t)
	must(s.SetRunState(t.Context(), run.ID, []storage.RunState{storage.RunQueued}, storage.RunCrawling, "", time.Time{}))(t)
	return run.ID
}

// must fails the test on an error: must(f())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func discover(t testing.TB, s storage.Store, run storage.RunID, list ...storage.Discovery) {
	t.Helper()
	must(s.Discover(t.Context(), run, list, nil))(t)
}

func claim(t testing.TB, s storage.Store, owner storage.Owner, run storage.RunID, n int) []storage.Claim {
	t.Helper()
	return must(s.Claim(t.Context(), owner, []storage.ClaimRequest{{Run: run, Host: host, N: n}}))(t)
}

// fetched is a plain result of a claim.
func fetched(c storage.Claim, found ...storage.Discovery) storage.Result {
	return storage.Result{Run: c.Run, ID: c.ID, Token: c.Token, Discovered: found, Page: &storage.PageResult{
		State: storage.Fetched, Status: 200, ContentType: "text/html", Bytes: 11000, WireBytes: 3000, TTFB: 5 * time.Millisecond, Total: 9 * time.Millisecond,
		Attempts: c.Attempts + 1, Title: "Page", Outlinks: 20, Facts: []byte("facts of " + c.URL), Links: []byte("links of " + c.URL),
	}}
}

func ended(c storage.Claim, state storage.State, reason storage.Reason, status int) storage.Result {
	r := fetched(c)
	r.Page = &storage.PageResult{State: state, Reason: reason, Status: status, Attempts: c.Attempts + 1}
	return r
}

func finish(t testing.TB, s storage.Store, owner storage.Owner, results ...storage.Result) []storage.Outcome {
	t.Helper()
	return must(s.Finish(t.Context(), owner, results))(t)
}

func wantOutcomes(t testing.TB, got []storage.Outcome, want ...storage.Outcome) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got outcomes %v, want %v", got, want)
	}
}

// urls returns the last path segments of claimed URLs, short to compare.
func urls(claims []storage.Claim) []string {
	out := make([]string, len(claims))
	for i, c := range claims {
		out[i] = c.URL
	}
	return out
}

func wantURLs(t testing.TB, claims []storage.Claim, want ...string) {
	t.Helper()
	if got := urls(claims); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// ledger returns a run's ledger and checks that it balances.
func ledger(t testing.TB, s storage.Store, run storage.RunID) storage.Ledger {
	t.Helper()
	l := must(s.Ledger(t.Context(), run))(t)
	if sum := l.Fetched + l.Failed + l.Excluded + l.Queued + l.Claimed + l.Delayed; sum != l.Discovered || l.Queued < 0 {
		t.Errorf("the ledger does not balance: %+v", l)
	}
	return l
}

// wantLedger compares discovered, fetched, failed, excluded, queued, claimed and delayed.
func wantLedger(t testing.TB, s storage.Store, run storage.RunID, want ...int64) {
	t.Helper()
	l := ledger(t, s, run)
	if got := []int64{l.Discovered, l.Fetched, l.Failed, l.Excluded, l.Queued, l.Claimed, l.Delayed}; !slices.Equal(got, want) {
		t.Errorf("got ledger %v, want %v (discovered fetched failed excluded queued claimed delayed)", got, want)
	}
}

// until waits for a condition that the database's clock brings about.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited 20 s in vain: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
