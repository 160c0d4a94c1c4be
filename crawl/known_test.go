package crawl_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"deepcrawl/crawl"
	"deepcrawl/soak/web"
	"deepcrawl/storage"
)

// knownStore notes URLs that are handed in although an earlier result has stored them.
type knownStore struct {
	*memStore
	mu     sync.Mutex
	stored map[storage.Key]bool
	sent   int
	again  []string
}

func (s *knownStore) Discover(ctx context.Context, run storage.RunID, found []storage.Discovery, fence *storage.Fence) (int, error) {
	n, err := s.memStore.Discover(ctx, run, found, fence)
	if err == nil {
		s.note(found)
	}
	return n, err
}

func (s *knownStore) Finish(ctx context.Context, owner storage.Owner, results []storage.Result) ([]storage.Outcome, error) {
	s.mu.Lock()
	for _, r := range results {
		for _, d := range r.Discovered {
			s.sent++
			if s.stored[d.Key] {
				s.again = append(s.again, d.URL)
			}
		}
	}
	s.mu.Unlock()
	// The engine empties the results when it goes on.
	found := make([][]storage.Discovery, len(results))
	for i := range results {
		found[i] = slices.Clone(results[i].Discovered)
	}
	out, err := s.memStore.Finish(ctx, owner, results)
	for i := range out {
		if out[i] == storage.OutcomeDone {
			s.note(found[i])
		}
	}
	return out, err
}

func (s *knownStore) note(found []storage.Discovery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range found {
		s.stored[d.Key] = true
	}
}

// TestRepeatedLinksNeverReachTheStore: what was stored once, by this node, is never handed in again, however many pages link to it.
func TestRepeatedLinksNeverReachTheStore(t *testing.T) {
	_, home := serve(t, web.Config{Seed: 5, Pages: 400, LinksPerPage: 20})
	r := newRig(t)
	store := &knownStore{memStore: r.store, stored: map[storage.Key]bool{}}
	r.cfg.Store = store
	run := r.create(t, crawl.Spec{Seeds: []string{home}, Profile: "fast"})
	r.work(t, t.Context(), run)
	if l := r.ledger(t, run, storage.RunDone); l.Fetched != 400 || store.sent < 399 {
		t.Errorf("got %+v, %d URLs handed in", l, store.sent)
	}
	if len(store.again) > 0 {
		t.Errorf("%d of %d URLs were handed in again: %q", len(store.again), store.sent, store.again[:min(5, len(store.again))])
	}
	t.Logf("%d URLs handed in of 8000 links", store.sent)
}
