package storagetest

import (
	"slices"
	"testing"
	"time"

	"deepcrawl/storage"
)

func boost(t testing.TB, s storage.Store, run storage.RunID, d time.Duration, urls ...string) int {
	t.Helper()
	keys := make([]storage.Key, len(urls))
	for i, u := range urls {
		keys[i] = key(u)
	}
	return must(s.Boost(t.Context(), run, keys, d))(t)
}

func testBoosts(t *testing.T, open Open) {
	s, other := open(t), open(t)
	wantBoosted := func(t *testing.T, n, want int) {
		t.Helper()
		if n != want {
			t.Errorf("got %d boosted, want %d", n, want)
		}
	}
	t.Run("URLs that are looked at leave first, from any store", func(t *testing.T) {
		run, second := crawling(t, s), crawling(t, s)
		for _, r := range []storage.RunID{run, second} {
			discover(t, s, r, find("a", 1, 0), find("b", 1, 1), find("c", 500, 1), find("d", 999, 9), find("e", 700, 1))
		}
		wantBoosted(t, boost(t, s, run, time.Hour, "d", "c", "c", "unknown"), 2)
		wantBoosted(t, boost(t, other, run, time.Hour, "d"), 1)
		wantLedger(t, s, run, 5, 0, 0, 0, 5, 0, 0)
		rows := must(s.ListPages(t.Context(), run, storage.PageQuery{Unfinished: true}))(t)
		for _, r := range rows {
			if r.State != storage.Queued {
				t.Errorf("%s is shown as %s", r.URL, r.State)
			}
		}
		for url, want := range map[string]int64{"c": 0, "d": 1, "a": 2, "b": 3, "e": 4} {
			if w := must(s.FindURL(t.Context(), run, key(url)))(t); w.Ahead != want || w.State != storage.Queued {
				t.Errorf("%s: got %d ahead, %s, want %d", url, w.Ahead, w.State, want)
			}
		}
		got := claim(t, other, "o", run, 3)
		wantURLs(t, got, "c", "d", "a")
		if !got[0].Boosted || !got[1].Boosted || got[2].Boosted || got[1].Priority != 999 || got[1].Depth != 9 {
			t.Errorf("got %+v", got)
		}
		wantURLs(t, claim(t, s, "o", second, 2), "a", "b")
		wantBoosted(t, boost(t, s, run, time.Hour, "c", "d"), 0) // claimed
		check(t, s.Return(t.Context(), "o", got[:1]))
		wantURLs(t, claim(t, s, "o", run, 9), "c", "b", "e") // returned, and looked at still
	})
	t.Run("a boost ends", func(t *testing.T) {
		run, busy := crawling(t, s), crawling(t, s)
		discover(t, s, run, finds(0, 200)...)
		discover(t, s, run, find("z", 900, 1), find("y", 900, 1))
		wantBoosted(t, boost(t, s, run, time.Hour, "z", "y"), 2)
		wantBoosted(t, boost(t, s, run, time.Millisecond, "z"), 1) // begins anew
		ahead := func(url string) int64 { return must(s.FindURL(t.Context(), run, key(url)))(t).Ahead }
		until(t, "the end of a boost", func() bool {
			claim(t, other, "o", busy, 1) // of whatever run: claims end boosts
			return ahead("z") == 201
		})
		if n := ahead("y"); n != 0 {
			t.Errorf("got %d ahead of the one that is looked at still, want none", n)
		}
		wantURLs(t, claim(t, s, "o", run, 2), "y", pageURL(0))
		wantBoosted(t, boost(t, s, run, time.Hour, "z"), 1)
		wantURLs(t, claim(t, s, "o", run, 1), "z")
	})
	t.Run("one that was requested before is looked at too", func(t *testing.T) {
		run := crawling(t, s)
		discover(t, s, run, find("a", 1, 1), find("b", 2, 1), find("c", 3, 1))
		got := claim(t, s, "dead", run, 3)
		wantOutcomes(t, finish(t, s, "dead", delay(got[0], time.Hour, 1)), storage.OutcomeDone)
		must(noMore(s.Reclaim(t.Context(), "dead", 10)))(t)
		discover(t, s, run, find("d", 1, 0), find("e", 9, 0))
		wantBoosted(t, boost(t, s, run, time.Hour, "a", "c", "e"), 2) // a waits for its time
		rows := must(s.ListPages(t.Context(), run, storage.PageQuery{Unfinished: true, States: []storage.State{storage.Delayed}}))(t)
		if len(rows) != 1 || rows[0].URL != "a" || rows[0].Reason != "timeout" {
			t.Errorf("got %+v", rows)
		}
		reqs := []storage.ClaimRequest{{Run: run, Host: host, N: 2, MaxPages: 3}} // no place is left for a new one
		wantURLs(t, must(s.Claim(t.Context(), "o", reqs))(t), "c", "b")
		reqs[0].MaxPages = 0
		wantURLs(t, must(s.Claim(t.Context(), "o", reqs))(t), "e", "d")
	})
	t.Run("what is boosted is claimable, closes and is deleted like the rest", func(t *testing.T) {
		run := crawling(t, s)
		discover(t, s, run, finds(0, 3)...)
		wantBoosted(t, boost(t, s, run, time.Hour, pageURL(0), pageURL(1), pageURL(2)), 3)
		ready := must(s.Ready(t.Context(), []storage.RunID{run}, 5))(t)
		if len(ready) != 1 || !slices.Equal(ready[0].Hosts, []string{host}) || ready[0].Empty || ready[0].NextDue != 0 {
			t.Errorf("got %+v", ready)
		}
		if n, _, err := s.CloseFrontier(t.Context(), run, "limit", 2); n != 2 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		wantLedger(t, s, run, 3, 0, 0, 2, 1, 0, 0)
		must(s.SetRunState(t.Context(), run, []storage.RunState{storage.RunCrawling}, storage.RunCancelled, "", time.Time{}))(t)
		for done := false; !done; {
			done = must(s.DeleteRun(t.Context(), run, 100))(t)
		}
	})
}

// noMore drops what says that there is more.
func noMore(n int, _ bool, err error) (int, error) { return n, err }
