package crawl_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/soak/web"
	"deepcrawl/storage"
)

// heldBack is a session that gets no lease for a while, as after a change of the database.
type heldBack struct {
	coord.Session
	refuse *atomic.Int64
}

func (s heldBack) Lease(ctx context.Context, name string, ttl time.Duration) (coord.Lease, error) {
	if s.refuse.Add(-1) >= 0 {
		return nil, fmt.Errorf("lease %s: %w", name, coord.ErrWaiting)
	}
	return s.Session.Lease(ctx, name, ttl)
}

func TestALeaseThatMustBeWaitedForIsWaitedFor(t *testing.T) {
	_, url := serve(t, web.Config{Seed: 1, Pages: 5})
	r := newRig(t)
	var refuse atomic.Int64
	refuse.Store(1)
	join := r.cfg.Join
	r.cfg.Join = func(ctx context.Context) (coord.Session, error) {
		s, err := join(ctx)
		return heldBack{s, &refuse}, err
	}
	run := r.create(t, crawl.Spec{Seeds: []string{url}})
	r.work(t, t.Context(), run)
	if l := r.ledger(t, run, storage.RunDone); l.Fetched != 5 {
		t.Errorf("got %+v", l)
	}
	if refuse.Load() >= 0 {
		t.Error("the lease was not refused")
	}
}
