package storagetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"deepcrawl/storage"
)

func testQueue(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	addTenant(t, s, "acme", storage.Tariff{Parallel: 2, Workers: 3})
	var runs []storage.RunID
	for _, home := range []string{"", "", "", "n1", ""} {
		runs = append(runs, must(s.CreateRun(ctx, storage.NewRun{Tenant: "acme", Site: host, Home: home, Concurrency: 8}))(t).ID)
	}
	over := crawling(t, s)
	setState(t, s, over, storage.RunDone)
	local := crawling(t, s)
	take(t, s, "a", runs[0])
	setState(t, s, runs[0], storage.RunCrawling)
	take(t, s, "b", runs[0])
	take(t, s, "b", runs[1])
	setState(t, s, runs[1], storage.RunPaused)
	setState(t, s, runs[2], storage.RunCrawling)
	t.Run("unfinished runs are told oldest first, with what decides", func(t *testing.T) {
		list := must(s.Unfinished(ctx, 100))(t)
		var ids []storage.RunID
		for _, w := range list {
			ids = append(ids, w.Run.ID)
		}
		if !slices.Equal(ids, append(slices.Clone(runs), local)) {
			t.Fatalf("got runs %v", ids)
		}
		for i, want := range []storage.Waiting{
			{Occupied: 2, Allowed: 3, Active: 2}, {Occupied: 1, Allowed: 3, Active: 2}, {Allowed: 3, Active: 2},
			{Allowed: 3, Active: 2, Ahead: 0}, {Allowed: 3, Active: 2, Ahead: 0}, {Allowed: 0, Active: 1},
		} {
			w := list[i]
			if w.Occupied != want.Occupied || w.Allowed != want.Allowed || w.Active != want.Active || w.Ahead != want.Ahead || w.Suspended || w.Served.IsZero() {
				t.Errorf("run %d: got %+v, want %+v", i, w, want)
			}
		}
		if got := list[0].Tariff; got != (storage.Tariff{Name: "of-acme", Parallel: 2, Workers: 3}) {
			t.Errorf("got %+v", got)
		}
		if got := list[0].Run; got.State != storage.RunCrawling || got.Tenant != "acme" || got.Concurrency != 8 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("those ahead are counted as they will start", func(t *testing.T) {
		more := queued(t, s, "acme")
		check(t, s.PutTenant(ctx, storage.Tenant{Name: "acme", Tariff: "of-acme", Suspended: true}))
		for _, w := range must(s.Unfinished(ctx, 100))(t) {
			if want := map[storage.RunID]int{more: 1}[w.Run.ID]; w.Ahead != want || w.Suspended != (w.Run.Tenant == "acme") {
				t.Errorf("got %+v, want %d ahead", w, want)
			}
		}
	})
	t.Run("a limit cuts the newest off", func(t *testing.T) {
		if list := must(s.Unfinished(ctx, 2))(t); len(list) != 2 || list[1].Run.ID != runs[1] {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("claims and seats of each owner are counted", func(t *testing.T) {
		discover(t, s, local, finds(0, 20)...)
		claim(t, s, "b", local, 7)
		claim(t, s, "B", local, 2)
		list := must(s.Claims(ctx))(t)
		slices.SortFunc(list, func(a, b storage.OwnerLoad) int { return strings.Compare(string(a.Owner), string(b.Owner)) })
		if !slices.Equal(list, []storage.OwnerLoad{{Owner: "B", Claims: 2}, {Owner: "a", Seats: 1}, {Owner: "b", Claims: 7, Seats: 2}}) {
			t.Errorf("got %+v", list)
		}
	})
}

func testFindURL(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run := crawling(t, s)
	discover(t, s, run, finds(0, 10)...)
	other := find("https://other.example/", 1, 0)
	other.Host = "other.example"
	discover(t, s, run, other, find("https://example.com/late", 900, 1), find("https://example.com/first", 1, 0))
	got := claim(t, s, "o", run, 4) // first, p/0, p/1, p/2
	wantOutcomes(t, finish(t, s, "o", fetched(got[1]), storage.Result{Run: run, ID: got[2].ID, Token: got[2].Token, Delay: &storage.Delay{
		For: time.Hour, Reason: "timeout", Attempts: 1,
	}}), storage.OutcomeDone, storage.OutcomeDone)
	where := func(t *testing.T, url string) storage.URLWait {
		t.Helper()
		return must(s.FindURL(ctx, run, key(url)))(t)
	}
	t.Run("a finished URL waits for nothing", func(t *testing.T) {
		w := where(t, pageURL(0))
		if w.State != storage.Fetched || w.URL != pageURL(0) || w.Ahead != -1 || w.Owner != "" || !w.Due.IsZero() || w.Status != 200 {
			t.Errorf("got %+v", w)
		}
	})
	t.Run("a claimed URL has an owner", func(t *testing.T) {
		if w := where(t, "https://example.com/first"); w.State != storage.Claimed || w.Owner != "o" || w.Ahead != -1 {
			t.Errorf("got %+v", w)
		}
	})
	t.Run("a delayed URL is due at a time", func(t *testing.T) {
		w := where(t, pageURL(1))
		if left := time.Until(w.Due); w.State != storage.Delayed || w.Reason != "timeout" || left < 50*time.Minute || left > 70*time.Minute || w.Ahead != -1 {
			t.Errorf("got %+v, due in %v", w, left)
		}
	})
	t.Run("a queued URL has others of its host before it", func(t *testing.T) {
		for url, want := range map[string]int64{pageURL(3): 0, pageURL(5): 2, pageURL(9): 6, "https://example.com/late": 7, "https://other.example/": 0} {
			if w := where(t, url); w.State != storage.Queued || w.Ahead != want {
				t.Errorf("%s: got %+v, want %d ahead", url, w, want)
			}
		}
	})
	t.Run("one that was claimed before stands where it stood", func(t *testing.T) {
		if n, _, err := s.Reclaim(ctx, "o", 10); err != nil || n != 2 { // first and p/2
			t.Fatalf("got %d %v", n, err)
		}
		for url, want := range map[string]int64{"https://example.com/first": 0, pageURL(2): 1, pageURL(3): 2, pageURL(9): 8, "https://example.com/late": 9} {
			if w := where(t, url); w.State != storage.Queued || w.Ahead != want {
				t.Errorf("%s: got %+v, want %d ahead", url, w, want)
			}
		}
	})
	t.Run("an unknown URL is not found", func(t *testing.T) {
		_, err := s.FindURL(ctx, run, key("https://example.com/none"))
		wantErr(t, err, storage.ErrNotFound)
		_, err = s.FindURL(ctx, run+100, key(pageURL(0)))
		wantErr(t, err, storage.ErrNotFound)
	})
}

func testFinishedFor(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	a, b, running := crawling(t, s), crawling(t, s), crawling(t, s)
	setState(t, s, a, storage.RunDone)
	setState(t, s, b, storage.RunFailed)
	ended := func(d time.Duration) (ids []storage.RunID) {
		for _, r := range must(s.ListRuns(ctx, storage.RunFilter{FinishedFor: d}))(t) {
			ids = append(ids, r.ID)
		}
		return ids
	}
	t.Run("runs are found by the time since they ended", func(t *testing.T) {
		until(t, "the clock moves", func() bool { return slices.Equal(ended(time.Millisecond), []storage.RunID{b, a}) })
		if got := ended(time.Hour); len(got) != 0 {
			t.Errorf("got %v", got)
		}
		if got := ended(0); !slices.Equal(got, []storage.RunID{running, b, a}) {
			t.Errorf("got %v", got)
		}
	})
}
