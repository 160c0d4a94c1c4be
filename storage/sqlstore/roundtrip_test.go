package sqlstore_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"deepcrawl/internal/testenv"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// crawlSteadily claims and finishes rounds of pages with one new link each, the only one the engine lets through, and returns the round
// trips a page.
func crawlSteadily(t *testing.T, s *sqlstore.Store, trips *atomic.Int64, reqs []storage.ClaimRequest, rounds int) float64 {
	t.Helper()
	next := 1_000_000
	pages := 0
	for round := range rounds {
		if round == rounds/4 { // statements are prepared and blocks of ids have grown
			trips.Store(0)
			pages = 0
		}
		claims, err := s.Claim(t.Context(), "node", reqs)
		if err != nil || len(claims) == 0 {
			t.Fatal(len(claims), err)
		}
		var results []storage.Result
		for _, c := range claims {
			found := []storage.Discovery{benchDiscovery(next)}
			next++
			results = append(results, storage.Result{Run: c.Run, ID: c.ID, Token: c.Token, Discovered: found,
				Page: &storage.PageResult{State: storage.Fetched, Status: 200, Attempts: 1, Facts: []byte("facts"), Links: []byte("links")}})
		}
		out, err := s.Finish(t.Context(), "node", results)
		if err != nil || slices.Contains(out, storage.OutcomeStale) {
			t.Fatal(out, err)
		}
		pages += len(results)
	}
	return float64(trips.Load()) / float64(pages)
}

func TestRoundTripsAPage(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"postgres": testenv.Postgres, "mysql": testenv.MySQL} {
		t.Run(name, func(t *testing.T) {
			address := dsn(t)
			opener(t, address)
			var trips atomic.Int64
			s := openStore(t, address, sqlstore.Options{RoundTrip: func() { trips.Add(1) }})
			seed := func(run storage.RunID) {
				list := make([]storage.Discovery, 100)
				for i := range list {
					list[i] = benchDiscovery(i)
				}
				if _, err := s.Discover(t.Context(), run, list, nil); err != nil {
					t.Fatal(err)
				}
			}
			t.Run("one run with 24 in flight", func(t *testing.T) {
				run := newRun(t, s)
				seed(run)
				got := crawlSteadily(t, s, &trips, []storage.ClaimRequest{{Run: run, Host: host, N: 24}}, 200)
				t.Logf("%.3f round trips a page", got)
				if got > 0.3 {
					t.Errorf("got %.3f round trips a page, want at most 0.3", got)
				}
			})
			t.Run("a page limit adds none", func(t *testing.T) {
				run := newRun(t, s)
				seed(run)
				got := crawlSteadily(t, s, &trips, []storage.ClaimRequest{{Run: run, Host: host, N: 24, MaxPages: 1_000_000}}, 100)
				t.Logf("%.3f round trips a page", got)
				if got > 0.3 {
					t.Errorf("got %.3f round trips a page, want at most 0.3", got)
				}
			})
			t.Run("200 runs that take one page at a time", func(t *testing.T) {
				var reqs []storage.ClaimRequest
				for range 200 {
					run := newRun(t, s)
					seed(run)
					reqs = append(reqs, storage.ClaimRequest{Run: run, Host: host, N: 1})
				}
				got := crawlSteadily(t, s, &trips, reqs, 8)
				t.Logf("%.3f round trips a page", got)
				if got > 1 {
					t.Errorf("got %.3f round trips a page, want at most 1", got)
				}
			})
		})
	}
}
