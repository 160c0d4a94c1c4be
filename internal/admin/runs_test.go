package admin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"deepcrawl/internal/admin"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// countingStore counts what a list of runs asks for.
type countingStore struct {
	*sqlstore.Store
	lists, tallies, ledgers atomic.Int64
}

func (s *countingStore) ListRuns(ctx context.Context, f storage.RunFilter) ([]storage.Run, error) {
	s.lists.Add(1)
	return s.Store.ListRuns(ctx, f)
}

func (s *countingStore) Tallies(ctx context.Context, runs []storage.RunID) (map[storage.RunID]storage.Ledger, error) {
	s.tallies.Add(1)
	return s.Store.Tallies(ctx, runs)
}

func (s *countingStore) Ledger(ctx context.Context, run storage.RunID) (storage.Ledger, error) {
	s.ledgers.Add(1)
	return s.Store.Ledger(ctx, run)
}

// TestListOfRunsAsksOnce: what a page of the list costs does not grow with the runs on it, nor with those that are not.
func TestListOfRunsAsksOnce(t *testing.T) {
	f := setUp(t)
	st := &countingStore{Store: f.st}
	server, err := admin.New(admin.Config{Store: st, Operations: f.ops, Version: "v1"})
	f.must(err)
	defer server.Close()
	counted := *f
	counted.server, counted.http = server, httptest.NewServer(server)
	defer counted.http.Close()
	for range 120 {
		_, err := f.st.CreateRun(t.Context(), storage.NewRun{Tenant: "acme", Site: "shop.example"})
		f.must(err)
	}
	p := counted.user("op", storage.RoleOperator, "")
	for _, path := range []string{"/runs", "/runs?before=100", "/api/v1/runs"} {
		st.lists.Store(0)
		st.tallies.Store(0)
		st.ledgers.Store(0)
		got := p.get(path)
		if got.status != http.StatusOK || strings.Count(got.body, "shop.example") < 20 {
			t.Fatalf("%s: %d with %d runs", path, got.status, strings.Count(got.body, "shop.example"))
		}
		if l, n, each := st.lists.Load(), st.tallies.Load(), st.ledgers.Load(); l != 1 || n != 1 || each != 0 {
			t.Errorf("%s: %d lists, %d counts of many runs and %d of one, want 1, 1 and none", path, l, n, each)
		}
	}
}
