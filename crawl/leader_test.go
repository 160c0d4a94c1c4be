package crawl_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/memcoord"
	"deepcrawl/crawl"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// leading runs a node that leads over an embedded database. pass lets time pass on the node's clock.
func leading(t *testing.T, cfg crawl.Config) (st storage.Store, pass func(time.Duration)) {
	t.Helper()
	return leadingOver(t, cfg, func(st *sqlstore.Store, _ func(time.Duration)) storage.Store { return st })
}

// leadingOver is leading with something of the test between the node and its database.
func leadingOver(t *testing.T, cfg crawl.Config, over func(*sqlstore.Store, func(time.Duration)) storage.Store) (st *sqlstore.Store, pass func(time.Duration)) {
	t.Helper()
	st, err := sqlstore.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), sqlstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	auth := memcoord.New(nil)
	var ahead atomic.Int64
	pass = func(d time.Duration) { ahead.Add(int64(d)) }
	cfg.Store, cfg.Lead, cfg.UserAgent, cfg.AllowPrivate = over(st, pass), true, "DeepcrawlTest/1.0", true
	cfg.Name, cfg.Turn = "test", 100*time.Millisecond
	cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	cfg.Join = func(ctx context.Context) (coord.Session, error) {
		return auth.Join(ctx, coord.Options{Node: "test", Role: coord.RoleNode})
	}
	r := &rig{cfg: cfg}
	_, stop := r.begin(t)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	// Cleanups run after the test's context has ended, so the node stops by itself; stop waits for it.
	t.Cleanup(stop)
	return st, pass
}

func newRunOf(url, home string) storage.NewRun {
	spec := crawl.Spec{Seeds: []string{url}, NoSitemaps: true}
	return storage.NewRun{Tenant: storage.DefaultTenant, Site: spec.Site(), Spec: spec.Encode(), Home: home, Concurrency: 8}
}

func stateOf(t *testing.T, st storage.Store, id storage.RunID) storage.Run {
	t.Helper()
	r, err := st.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheLeaderStartsSchedules(t *testing.T) {
	hold := make(chan struct{})
	url := handle(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/" {
			select {
			case <-hold:
			case <-req.Context().Done():
			}
		}
	}))
	st, pass := leading(t, crawl.Config{})
	n := newRunOf(url+"/", "")
	_, err := st.AddSchedule(t.Context(), storage.Schedule{
		Tenant: n.Tenant, Site: n.Site, Spec: n.Spec, Every: time.Hour, Next: time.Now().Add(-30 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	now := func() storage.Schedule {
		all, err := st.Schedules(t.Context(), "")
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0]
	}
	waitFor(t, "scheduled run", 20*time.Second, func() bool { return now().LastRun != 0 })
	first := now()
	if d := time.Until(first.Next); d <= 0 || d > time.Hour {
		t.Errorf("next in %v: 30 missed times run once, and it goes on from now", d)
	}
	waitFor(t, "crawling", 20*time.Second, func() bool { return stateOf(t, st, first.LastRun).State == storage.RunCrawling })
	close(hold)
	waitFor(t, "end of the run", 20*time.Second, func() bool { return stateOf(t, st, first.LastRun).State == storage.RunDone })
	pass(time.Minute)
	runs, err := st.ListRuns(t.Context(), storage.RunFilter{})
	if err != nil || len(runs) != 1 {
		t.Errorf("got %d runs, want 1 (%v)", len(runs), err)
	}
}

func TestTheLeaderClosesHungRuns(t *testing.T) {
	release := make(chan struct{})
	stuck := handle(t, http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/robots.txt" {
			select { // no answer while the test lasts
			case <-release:
			case <-req.Context().Done():
			}
		}
	}))
	st, pass := leading(t, crawl.Config{HungAfter: 10 * time.Minute})
	create := func(home string) storage.RunID {
		run, err := st.CreateRun(t.Context(), newRunOf(stuck+"/", home))
		if err != nil {
			t.Fatal(err)
		}
		return run.ID
	}
	reserved := create("crawl")
	if _, err := st.SetRunState(t.Context(), reserved, []storage.RunState{storage.RunQueued}, storage.RunCrawling, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	hung := create("")
	waitFor(t, "crawling", 20*time.Second, func() bool { return stateOf(t, st, hung).State == storage.RunCrawling })
	waitFor(t, "end of the run", 30*time.Second, func() bool {
		pass(6 * time.Minute)
		timer := time.NewTimer(2500 * time.Millisecond) // one look of the leader
		<-timer.C
		return stateOf(t, st, hung).State == storage.RunFailed
	})
	if r := stateOf(t, st, hung); !strings.HasPrefix(r.Reason, "closed by the leader: nothing finished for ") {
		t.Errorf("got %q", r.Reason)
	}
	if r := stateOf(t, st, reserved); r.State != storage.RunCrawling {
		t.Errorf("a run that is reserved for crawl is %s: %s", r.State, r.Reason)
	}
	close(release)
}

// slowDeletes is a database in which a run is deleted in three steps, of which each takes longer than a turn of pruning.
type slowDeletes struct {
	*sqlstore.Store
	pass  func(time.Duration)
	steps *atomic.Int64
}

func (s slowDeletes) DeleteRun(ctx context.Context, run storage.RunID, limit int) (bool, error) {
	s.pass(1500 * time.Millisecond)
	if s.steps.Add(1) < 3 {
		return false, nil
	}
	return s.Store.DeleteRun(ctx, run, limit)
}

// What did not fit into one turn of pruning is not left for the next period: retention of a large run would never come to its end.
func TestTheLeaderGoesOnPruning(t *testing.T) {
	t.Parallel() // it waits for looks of the leader
	var steps atomic.Int64
	st, pass := leadingOver(t, crawl.Config{Retention: time.Millisecond}, func(st *sqlstore.Store, pass func(time.Duration)) storage.Store {
		return slowDeletes{st, pass, &steps}
	})
	url := handle(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	run, err := st.CreateRun(t.Context(), newRunOf(url+"/", ""))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "end of the run", 20*time.Second, func() bool { return stateOf(t, st, run.ID).State == storage.RunDone })
	pass(time.Minute) // the next turn is due
	waitFor(t, "deletion in several steps", 25*time.Second, func() bool {
		_, err := st.Run(t.Context(), run.ID)
		return errors.Is(err, storage.ErrNotFound)
	})
}
