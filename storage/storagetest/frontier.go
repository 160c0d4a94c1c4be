package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"deepcrawl/storage"
)

func testDiscover(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run, other := crawling(t, s), crawling(t, s)
	t.Run("the first discovery of a key is stored, later ones change nothing", func(t *testing.T) {
		first := find("https://example.com/a", 10, 1)
		first.LastMod = 77
		second := find("https://example.com/a", 1, 0)
		if n := must(s.Discover(ctx, run, []storage.Discovery{first, second, find("https://example.com/b", 20, 1)}, nil))(t); n != 2 {
			t.Errorf("got %d added, want 2", n)
		}
		for _, again := range []storage.Store{s, open(t)} { // the second has no cache of what is stored
			if n := must(again.Discover(ctx, run, []storage.Discovery{second, find("https://example.com/c", 30, 1), first}, nil))(t); n > 1 {
				t.Errorf("got %d added, want at most 1", n)
			}
		}
		got := claim(t, s, "o", run, 10)
		wantURLs(t, got, "https://example.com/a", "https://example.com/b", "https://example.com/c")
		if got[0].Priority != 10 || got[0].Depth != 1 || got[0].Attempts != 0 || got[0].Host != host || got[0].Run != run || got[0].Token == 0 {
			t.Errorf("got %+v", got[0])
		}
	})
	t.Run("runs do not share URLs", func(t *testing.T) {
		discover(t, s, other, find("https://example.com/a", 10, 1))
		wantLedger(t, s, other, 1, 0, 0, 0, 1, 0, 0)
		wantURLs(t, claim(t, s, "o", other, 10), "https://example.com/a")
	})
	t.Run("known keys are told with their lastmod", func(t *testing.T) {
		got := must(s.Known(ctx, run, []storage.Key{key("https://example.com/a"), key("https://example.com/none")}))(t)
		if len(got) != 1 || got[key("https://example.com/a")] != 77 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a discovery can be excluded at once", func(t *testing.T) {
		d := find("https://example.com/long", 10, 1)
		d.Exclude = "too-long"
		if n := must(s.Discover(ctx, run, []storage.Discovery{d, find("https://example.com/d", 1, 1), d}, nil))(t); n != 2 {
			t.Errorf("got %d added, want 2", n)
		}
		must(open(t).Discover(ctx, run, []storage.Discovery{d}, nil))(t)
		wantLedger(t, s, run, 5, 0, 0, 1, 1, 3, 0)
		if got := ledger(t, s, run).ByReason; got["too-long"] != 1 {
			t.Errorf("got %v", got)
		}
		row := must(s.PageByKey(ctx, run, d.Key))(t)
		if row.State != storage.Excluded || row.Reason != "too-long" || row.URL != d.URL || row.FetchedAt.IsZero() {
			t.Errorf("got %+v", row)
		}
		wantURLs(t, claim(t, s, "o", run, 10), "https://example.com/d")
	})
	t.Run("many at once", func(t *testing.T) {
		run := crawling(t, s)
		if n := must(s.Discover(ctx, run, finds(0, 5000), nil))(t); n != 5000 {
			t.Errorf("got %d added, want 5000", n)
		}
		if n := must(open(t).Discover(ctx, run, finds(2500, 5000), nil))(t); n != 2500 {
			t.Errorf("got %d added, want 2500", n)
		}
		wantLedger(t, s, run, 7500, 0, 0, 0, 7500, 0, 0)
	})
	t.Run("nothing is nothing", func(t *testing.T) {
		if n := must(s.Discover(ctx, run, nil, nil))(t); n != 0 {
			t.Errorf("got %d", n)
		}
	})
}

func testOrder(t *testing.T, open Open) {
	s := open(t)
	run := crawling(t, s)
	type place struct{ priority, depth int }
	var list []storage.Discovery
	for i, p := range []place{{500, 1}, {1, 9}, {999, 0}, {1, 2}, {500, 0}, {1, 2}, {2, 0}, {998, 65535}, {999, 65535}} {
		list = append(list, find(fmt.Sprint("u", i), p.priority, p.depth))
	}
	discover(t, s, run, list...)
	t.Run("claims leave by priority, depth and age", func(t *testing.T) {
		wantURLs(t, claim(t, s, "o", run, 3), "u3", "u5", "u1")
		discover(t, s, run, find("late", 1, 0))
		wantURLs(t, claim(t, open(t), "o", run, 2), "late", "u6")
		wantURLs(t, claim(t, s, "o", run, 100), "u4", "u0", "u7", "u2", "u8")
		wantURLs(t, claim(t, s, "o", run, 100))
	})
	t.Run("a host gives its own URLs only", func(t *testing.T) {
		d := find("https://other.example/", 1, 0)
		d.Host = "other.example"
		discover(t, s, run, d, find("mine", 1, 0))
		got := must(s.Claim(t.Context(), "o", []storage.ClaimRequest{{Run: run, Host: "nowhere.example", N: 5}, {Run: run, Host: "other.example", N: 5}}))(t)
		wantURLs(t, got, "https://other.example/")
		wantURLs(t, claim(t, s, "o", run, 5), "mine")
	})
	t.Run("one call serves many runs and hosts", func(t *testing.T) {
		runs := []storage.RunID{crawling(t, s), crawling(t, s), crawling(t, s)}
		var reqs []storage.ClaimRequest
		for _, r := range runs {
			discover(t, s, r, finds(0, 10)...)
			reqs = append(reqs, storage.ClaimRequest{Run: r, Host: host, N: 2}, storage.ClaimRequest{Run: r, Host: host, N: 1})
		}
		got := must(s.Claim(t.Context(), "o", reqs))(t)
		per := map[storage.RunID][]string{}
		for _, c := range got {
			per[c.Run] = append(per[c.Run], c.URL)
		}
		for _, r := range runs {
			if !slices.Equal(per[r], []string{pageURL(0), pageURL(1), pageURL(2)}) {
				t.Errorf("run %d: got %q", r, per[r])
			}
		}
	})
	t.Run("runs that are not crawling give none", func(t *testing.T) {
		r := crawling(t, s)
		discover(t, s, r, finds(0, 3)...)
		must(s.SetRunState(t.Context(), r, []storage.RunState{storage.RunCrawling}, storage.RunPaused, "", time.Time{}))(t)
		wantURLs(t, claim(t, s, "o", r, 5))
		must(s.SetRunState(t.Context(), r, []storage.RunState{storage.RunPaused}, storage.RunCrawling, "", time.Time{}))(t)
		if got := claim(t, s, "o", r, 5); len(got) != 3 {
			t.Errorf("got %q", urls(got))
		}
	})
}

func testClaimsAcross(t *testing.T, open Open) {
	a, b := open(t), open(t)
	run := crawling(t, a)
	discover(t, a, run, finds(0, 40)...)
	t.Run("two stores never claim the same URL, and tokens are new", func(t *testing.T) {
		tokens, ids := map[storage.ClaimToken]bool{}, map[storage.URLID]bool{}
		for range 4 {
			for owner, s := range map[storage.Owner]storage.Store{"a": a, "b": b} {
				for _, c := range claim(t, s, owner, run, 5) {
					if tokens[c.Token] || ids[c.ID] {
						t.Errorf("claimed twice: %+v", c)
					}
					tokens[c.Token], ids[c.ID] = true, true
				}
			}
		}
		if len(ids) != 40 {
			t.Errorf("got %d URLs, want 40", len(ids))
		}
		wantLedger(t, b, run, 40, 0, 0, 0, 0, 40, 0)
	})
	t.Run("another store finishes what one has claimed", func(t *testing.T) {
		discover(t, a, run, finds(100, 2)...)
		got := claim(t, a, "a", run, 5)
		wantOutcomes(t, finish(t, b, "a", fetched(got[0]), fetched(got[1])), storage.OutcomeDone, storage.OutcomeDone)
		wantLedger(t, a, run, 42, 2, 0, 0, 0, 40, 0)
	})
}

func testFinish(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run := crawling(t, s)
	discover(t, s, run, finds(0, 6)...)
	got := claim(t, s, "o", run, 6)
	t.Run("results, discoveries and counters are written together", func(t *testing.T) {
		child := finds(100, 2)
		child[1].Exclude = "trap"
		repeated := find(pageURL(0), 1, 0)
		out := finish(t, s, "o",
			fetched(got[0], child[0], repeated, child[0], child[1]),
			fetched(got[1], child[0], child[1]),
			ended(got[2], storage.Failed, "dns", 0),
			ended(got[3], storage.Excluded, "robots", 0),
			ended(got[4], storage.Failed, "http", 503),
		)
		wantOutcomes(t, out, storage.OutcomeDone, storage.OutcomeDone, storage.OutcomeDone, storage.OutcomeDone, storage.OutcomeDone)
		wantLedger(t, s, run, 8, 2, 2, 2, 1, 1, 0)
		l := ledger(t, s, run)
		if l.Bytes != 22000 || l.WireBytes != 6000 || l.ByStatus[200] != 2 || l.ByStatus[503] != 1 || len(l.ByStatus) != 2 ||
			l.ByReason["dns"] != 1 || l.ByReason["robots"] != 1 || l.ByReason["trap"] != 1 || l.ByReason["http"] != 1 || l.LateRefused != 0 {
			t.Errorf("got %+v", l)
		}
	})
	t.Run("many runs are counted at once", func(t *testing.T) {
		other := crawling(t, s)
		discover(t, s, other, finds(0, 3)...)
		got := must(open(t).Tallies(ctx, []storage.RunID{other, run, run + 1000}))(t)
		l := got[run]
		if l.Discovered != 8 || l.Fetched != 2 || l.Failed != 2 || l.Excluded != 2 || l.Bytes != 22000 || l.WireBytes != 6000 {
			t.Errorf("got %+v", l)
		}
		if l := got[other]; l.Discovered != 3 || l.Fetched != 0 || got[run+1000].Discovered != 0 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a page keeps everything it was given", func(t *testing.T) {
		r := fetched(got[5])
		r.Page.Facts = []byte{0, 1, 2, 0xff, '\'', '\\', '\n'}
		r.Page.Links = []byte{0xfe, 0, '"'}
		r.Page.Title = "T\u00eftle '\\\" \u4f60\U0001F600 " + strings.Repeat("\u00e9", 300)
		r.Page.RedirectTo = "https://example.com/n?a=b%20c"
		r.Page.Reason = "soft"
		r.Page.Status = 206
		wantOutcomes(t, finish(t, s, "o", r), storage.OutcomeDone)
		row := must(open(t).PageByKey(ctx, run, key(got[5].URL)))(t)
		p := *r.Page
		p.Title = p.Title[:511] // the rune that begins there is of two bytes
		if !utf8.ValidString(p.Title) {
			p.Title = r.Page.Title[:512]
		}
		if row.ID != got[5].ID || row.URL != got[5].URL || row.Key != key(got[5].URL) || row.Host != host || row.Depth != 1 || row.Priority != 350 || row.Inlinks != -1 {
			t.Errorf("got %+v", row)
		}
		if fmt.Sprintf("%+v", row.PageResult) != fmt.Sprintf("%+v", p) {
			t.Errorf("got  %+v\nwant %+v", row.PageResult, p)
		}
	})
	t.Run("text the web sends is stored whatever it is", func(t *testing.T) {
		discover(t, s, run, finds(200, 1)...)
		c := claim(t, s, "o", run, 1)[0]
		r := fetched(c)
		r.Page.Title, r.Page.ContentType, r.Page.RedirectTo = "a\x00b\xff\xfec", strings.Repeat("text/\x80", 100), strings.Repeat("x", 5000)
		wantOutcomes(t, finish(t, s, "o", r), storage.OutcomeDone)
		if row := must(s.PageByKey(ctx, run, key(c.URL)))(t); row.Title != "ab\ufffdc" || row.State != storage.Fetched {
			t.Errorf("got %+v", row)
		}
	})
	t.Run("an unknown outcome is asked again with the same tokens", func(t *testing.T) {
		discover(t, s, run, finds(300, 3)...)
		c := claim(t, s, "o", run, 3)
		wantOutcomes(t, finish(t, s, "o", fetched(c[0], finds(310, 1)...)), storage.OutcomeDone)
		before := ledger(t, s, run)
		wantOutcomes(t, finish(t, s, "o", fetched(c[0], finds(310, 1)...)), storage.OutcomeDone)
		after := ledger(t, s, run)
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("a repeated result changed the ledger: %+v, then %+v", before, after)
		}
		out := finish(t, s, "o", fetched(c[0]), fetched(c[1]), fetched(c[1]), fetched(c[2]))
		wantOutcomes(t, out, storage.OutcomeDone, storage.OutcomeDone, storage.OutcomeDone, storage.OutcomeDone)
		if l := ledger(t, s, run); l.Fetched != before.Fetched+2 || l.LateRefused != 0 {
			t.Errorf("got %+v", l)
		}
	})
	t.Run("a result needs a page or a delay", func(t *testing.T) {
		if _, err := s.Finish(ctx, "o", []storage.Result{{Run: run, ID: got[0].ID, Token: got[0].Token}}); err == nil {
			t.Error("got no error")
		}
	})
}

func testStale(t *testing.T, open Open) {
	s := open(t)
	run := crawling(t, s)
	discover(t, s, run, finds(0, 4)...)
	old := claim(t, s, "dead", run, 4)
	must2(s.Reclaim(t.Context(), "dead", 2))(t)
	fresh := claim(t, s, "live", run, 1)

	t.Run("a late result writes nothing, its discoveries neither, and is counted", func(t *testing.T) {
		out := finish(t, s, "dead", fetched(old[0], finds(50, 2)...), fetched(old[1], finds(60, 1)...), fetched(old[2], finds(50, 1)...), ended(old[3], storage.Failed, "dns", 0))
		wantOutcomes(t, out, storage.OutcomeStale, storage.OutcomeStale, storage.OutcomeDone, storage.OutcomeDone)
		wantLedger(t, s, run, 5, 1, 1, 0, 2, 1, 0)
		if l := ledger(t, s, run); l.LateRefused != 2 {
			t.Errorf("got %d refused, want 2", l.LateRefused)
		}
	})
	t.Run("delays and returns of a late owner are refused too", func(t *testing.T) {
		late := old[slices.IndexFunc(old, func(c storage.Claim) bool { return c.ID == fresh[0].ID })]
		out := finish(t, s, "dead", storage.Result{Run: run, ID: late.ID, Token: late.Token, Delay: &storage.Delay{For: time.Hour, Attempts: 9}})
		wantOutcomes(t, out, storage.OutcomeStale)
		check(t, s.Return(t.Context(), "dead", []storage.Claim{late}))
		wantLedger(t, s, run, 5, 1, 1, 0, 2, 1, 0)
	})
	t.Run("the new owner's result is the one that counts", func(t *testing.T) {
		wantOutcomes(t, finish(t, s, "live", fetched(fresh[0])), storage.OutcomeDone)
		wantOutcomes(t, finish(t, s, "dead", fetched(old[0]), fetched(old[1])), storage.OutcomeStale, storage.OutcomeStale)
		wantLedger(t, s, run, 5, 2, 1, 0, 2, 0, 0)
	})
}

// must2 is must for calls with two results.
func must2[A, B any](a A, b B, err error) func(testing.TB) (A, B) {
	return func(t testing.TB) (A, B) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a, b
	}
}

func delay(c storage.Claim, d time.Duration, attempts int) storage.Result {
	return storage.Result{Run: c.Run, ID: c.ID, Token: c.Token, Delay: &storage.Delay{For: d, Reason: "timeout", Attempts: attempts}}
}

func testDelays(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run := crawling(t, s)
	discover(t, s, run, find("a", 1, 0), find("b", 2, 0), find("c", 3, 0), find("d", 4, 0))
	got := claim(t, s, "o", run, 3)
	t.Run("a delayed URL waits", func(t *testing.T) {
		r := delay(got[0], time.Hour, 2)
		r.Discovered = []storage.Discovery{find("e", 5, 0)}
		wantOutcomes(t, finish(t, s, "o", r), storage.OutcomeDone)
		wantOutcomes(t, finish(t, s, "o", r), storage.OutcomeDone) // asked again
		wantLedger(t, s, run, 5, 0, 0, 0, 2, 2, 1)
		row := must(s.PageByKey(ctx, run, key("a")))(t)
		if row.State != storage.Delayed || row.Reason != "timeout" || row.Attempts != 2 {
			t.Errorf("got %+v", row)
		}
	})
	t.Run("due, it takes its place in the order again, with its attempts", func(t *testing.T) {
		finish(t, s, "o", delay(got[1], 30*time.Millisecond, 1), delay(got[2], time.Millisecond, 3))
		var all []storage.Claim
		until(t, "both are due", func() bool {
			ready := must(s.Ready(ctx, []storage.RunID{run}, 10))(t)[0]
			return ready.NextDue > time.Minute
		})
		all = claim(t, s, "o", run, 3)
		wantURLs(t, all, "b", "c", "d")
		if all[0].Attempts != 1 || all[1].Attempts != 3 || all[2].Attempts != 0 || all[0].Token == got[1].Token {
			t.Errorf("got %+v", all)
		}
		wantOutcomes(t, finish(t, s, "o", delay(got[1], time.Hour, 7)), storage.OutcomeStale)
		wantOutcomes(t, finish(t, s, "o", fetched(all[0]), fetched(all[1]), fetched(all[2])), storage.OutcomeDone, storage.OutcomeDone, storage.OutcomeDone)
		wantLedger(t, s, run, 5, 3, 0, 0, 1, 0, 1)
	})
	t.Run("a delay of nothing is claimable at once", func(t *testing.T) {
		c := claim(t, s, "o", run, 1)[0]
		finish(t, s, "o", delay(c, 0, 1))
		until(t, "it is due", func() bool { return len(claim(t, s, "o", run, 1)) == 1 })
	})
}

func testReturns(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run := crawling(t, s)
	discover(t, s, run, finds(0, 6)...)
	t.Run("returned URLs are queued as they were", func(t *testing.T) {
		got := claim(t, s, "o", run, 4)
		check(t, s.Return(ctx, "o", got[:3]))
		check(t, s.Return(ctx, "o", got[:3])) // once more changes nothing
		wantLedger(t, s, run, 6, 0, 0, 0, 5, 1, 0)
		back := claim(t, s, "p", run, 2)
		wantURLs(t, back, pageURL(0), pageURL(1))
		if back[0].Attempts != 0 || back[0].Token == got[0].Token {
			t.Errorf("got %+v", back[0])
		}
		wantOutcomes(t, finish(t, s, "o", fetched(got[0])), storage.OutcomeStale)
		check(t, s.Return(ctx, "p", back))
		check(t, s.Return(ctx, "o", got[3:]))
	})
	t.Run("a dead owner's claims return in pieces, each an attempt older, others' stay", func(t *testing.T) {
		dead := claim(t, s, "dead", run, 5)
		live := claim(t, s, "live", run, 1)
		owners := must(s.Owners(ctx))(t)
		slices.Sort(owners)
		if !slices.Equal(owners, []storage.Owner{"dead", "live"}) {
			t.Errorf("got owners %q", owners)
		}
		total := 0
		for more := true; more; {
			var n int
			var err error
			n, more, err = s.Reclaim(ctx, "dead", 2)
			check(t, err)
			if total += n; n > 2 || total > 5 {
				t.Fatalf("got %d, %d in all", n, total)
			}
		}
		wantLedger(t, s, run, 6, 0, 0, 0, 5, 1, 0)
		wantOutcomes(t, finish(t, s, "dead", fetched(dead[0])), storage.OutcomeStale)
		back := claim(t, s, "live", run, 10)
		if len(back) != 5 || back[0].URL != pageURL(0) || back[0].Attempts != 1 {
			t.Errorf("got %+v", back)
		}
		wantOutcomes(t, finish(t, s, "live", fetched(live[0])), storage.OutcomeDone)
		for range 3 { // a page is not to blame for the nodes that die with its claim
			_, _, err := s.Reclaim(ctx, "live", 100)
			check(t, err)
			if back = claim(t, s, "live", run, 10); len(back) != 5 || back[0].Attempts != 1 {
				t.Fatalf("after another death: got %+v", back)
			}
		}
	})
	t.Run("reclaiming finds nothing to do for an unknown owner", func(t *testing.T) {
		if n, more, err := s.Reclaim(ctx, "nobody", 10); n != 0 || more || err != nil {
			t.Errorf("got %d %v %v", n, more, err)
		}
	})
}

func testPageLimit(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	limited := func(t *testing.T, s storage.Store, owner storage.Owner, run storage.RunID, n, limit int) []storage.Claim {
		t.Helper()
		return must(s.Claim(ctx, owner, []storage.ClaimRequest{{Run: run, Host: host, N: n, MaxPages: limit}}))(t)
	}
	run := crawling(t, s)
	discover(t, s, run, finds(0, 50)...)
	t.Run("no more are claimed than the limit, over all stores", func(t *testing.T) {
		a := limited(t, s, "o", run, 6, 10)
		b := limited(t, open(t), "p", run, 6, 10)
		if len(a) != 6 || len(b) != 4 || len(limited(t, s, "o", run, 6, 10)) != 0 {
			t.Errorf("got %d and %d", len(a), len(b))
		}
		finish(t, s, "o", fetched(a[0]), ended(a[1], storage.Failed, "dns", 0))
		if got := limited(t, s, "o", run, 6, 10); len(got) != 0 {
			t.Errorf("finished pages gave places back: got %q", urls(got))
		}
		check(t, s.Return(ctx, "o", a[2:4]))
		finish(t, s, "o", ended(a[4], storage.Excluded, "robots", 0))
		got := limited(t, s, "o", run, 6, 10)
		wantURLs(t, got, pageURL(2), pageURL(3), pageURL(10))
	})
	t.Run("what was claimed before may always be tried again", func(t *testing.T) {
		must2(s.Reclaim(ctx, "p", 10))(t)
		back := limited(t, s, "q", run, 20, 10)
		wantURLs(t, back, pageURL(6), pageURL(7), pageURL(8), pageURL(9))
		finish(t, s, "q", delay(back[0], 0, 1), delay(back[1], 0, 0))
		until(t, "both are due", func() bool {
			back = append(back, limited(t, s, "q", run, 20, 10)...)
			return len(back) == 6
		})
		check(t, s.Return(ctx, "q", back[4:5])) // it has an attempt: its place is kept
		if got := limited(t, s, "q", run, 20, 10); len(got) != 1 || got[0].ID != back[4].ID {
			t.Errorf("got %q", urls(got))
		}
	})
	t.Run("the limit of a run can be raised", func(t *testing.T) {
		check(t, s.UpdateRun(ctx, run, storage.RunUpdate{Spec: []byte("15 pages")}))
		if got := limited(t, s, "o", run, 50, 15); len(got) != 5 {
			t.Errorf("got %d, want 5", len(got))
		}
	})
	t.Run("a limit that comes later counts what was done before", func(t *testing.T) {
		run := crawling(t, s)
		discover(t, s, run, finds(0, 20)...)
		c := claim(t, s, "o", run, 6)
		finish(t, s, "o", fetched(c[0]), ended(c[1], storage.Excluded, "robots", 0), delay(c[2], time.Hour, 1))
		if got := limited(t, s, "o", run, 50, 8); len(got) != 3 {
			t.Errorf("got %d, want 3: one fetched, three claimed, one delayed of eight", len(got))
		}
	})
	t.Run("two requests for one run share its limit", func(t *testing.T) {
		run := crawling(t, s)
		list := finds(0, 20)
		for i := range list[:10] {
			list[i].Host = "www2.example.com"
		}
		discover(t, s, run, list...)
		got := must(s.Claim(ctx, "o", []storage.ClaimRequest{
			{Run: run, Host: host, N: 5, MaxPages: 7}, {Run: run, Host: "www2.example.com", N: 5, MaxPages: 7},
		}))(t)
		if len(got) != 7 {
			t.Errorf("got %d, want 7", len(got))
		}
	})
	t.Run("closing the frontier gives the places of retries back", func(t *testing.T) {
		run := crawling(t, s)
		discover(t, s, run, finds(0, 3)...)
		c := limited(t, s, "o", run, 2, 2)
		finish(t, s, "o", delay(c[0], time.Hour, 1))
		must2(s.CloseFrontier(ctx, run, "limit", 10))(t)
		discover(t, s, run, finds(10, 3)...)
		if got := limited(t, s, "o", run, 5, 2); len(got) != 1 {
			t.Errorf("got %d, want 1", len(got))
		}
	})
}

func testReady(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run, empty := crawling(t, s), crawling(t, s)
	ready := func(t *testing.T, limit int) (a, b storage.RunReady) {
		t.Helper()
		got := must(s.Ready(ctx, []storage.RunID{run, empty}, limit))(t)
		if len(got) != 2 || got[0].Run != run || got[1].Run != empty {
			t.Fatalf("got %+v", got)
		}
		return got[0], got[1]
	}
	t.Run("a run without anything is empty", func(t *testing.T) {
		if a, b := ready(t, 10); !a.Empty || !b.Empty || a.Claimed || len(a.Hosts) != 0 || a.NextDue != 0 {
			t.Errorf("got %+v and %+v", a, b)
		}
	})
	t.Run("hosts with claimable URLs are named, as many as asked for", func(t *testing.T) {
		for i := range 5 {
			d := find(fmt.Sprint("u", i), 350, 1)
			d.Host = fmt.Sprint("h", i, ".example")
			discover(t, s, run, d)
		}
		a, b := ready(t, 10)
		if !slices.Equal(a.Hosts, []string{"h0.example", "h1.example", "h2.example", "h3.example", "h4.example"}) || a.Empty || a.Claimed || !b.Empty {
			t.Errorf("got %+v and %+v", a, b)
		}
		if a, _ := ready(t, 3); len(a.Hosts) != 3 {
			t.Errorf("got %q", a.Hosts)
		}
	})
	t.Run("claimed and delayed URLs are told", func(t *testing.T) {
		var claims []storage.Claim
		for i := range 5 {
			claims = append(claims, must(s.Claim(ctx, "o", []storage.ClaimRequest{{Run: run, Host: fmt.Sprint("h", i, ".example"), N: 1}}))(t)...)
		}
		if a, _ := ready(t, 10); a.Empty || !a.Claimed || len(a.Hosts) != 0 || a.NextDue != 0 {
			t.Errorf("all claimed: got %+v", a)
		}
		finish(t, s, "o", delay(claims[0], time.Hour, 1), delay(claims[1], 20*time.Minute, 1), fetched(claims[2]), fetched(claims[3]), fetched(claims[4]))
		if a, _ := ready(t, 10); a.Empty || a.Claimed || len(a.Hosts) != 0 || a.NextDue > 20*time.Minute || a.NextDue < 19*time.Minute {
			t.Errorf("two delayed: got %+v", a)
		}
	})
	t.Run("thousands of hosts are all seen", func(t *testing.T) {
		const hosts = 2500 // servers bound recursion to 1,000 unless told otherwise
		wide := crawling(t, s)
		list := make([]storage.Discovery, hosts)
		for i := range list {
			list[i] = find(fmt.Sprint("w", i), 350, 1)
			list[i].Host = fmt.Sprintf("w%d.example", i)
		}
		discover(t, s, wide, list...)
		var reqs []storage.ClaimRequest
		for _, d := range list[hosts-3:] {
			reqs = append(reqs, storage.ClaimRequest{Run: wide, Host: d.Host, N: 1})
		}
		c := must(s.Claim(ctx, "o", reqs))(t)
		finish(t, s, "o", delay(c[0], time.Hour, 1), delay(c[1], time.Hour, 1), delay(c[2], time.Hour, 1))
		wantLedger(t, s, wide, hosts, 0, 0, 0, hosts-3, 0, 3)
		if got := must(s.Ready(ctx, []storage.RunID{wide}, 10_000))(t)[0]; len(got.Hosts) != hosts-3 || got.NextDue == 0 {
			t.Errorf("got %d hosts, next due in %v", len(got.Hosts), got.NextDue)
		}
	})
	t.Run("a due host is ready", func(t *testing.T) {
		discover(t, s, empty, finds(0, 1)...)
		finish(t, s, "o", delay(claim(t, s, "o", empty, 1)[0], time.Millisecond, 1))
		until(t, "it is due", func() bool { _, b := ready(t, 10); return slices.Equal(b.Hosts, []string{host}) })
	})
}

func testClose(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run := crawling(t, s)
	discover(t, s, run, finds(0, 10)...)
	c := claim(t, s, "o", run, 3)
	finish(t, s, "o", delay(c[0], time.Hour, 1))
	total, calls := 0, 0
	for more := true; more && calls < 20; calls++ {
		var n int
		var err error
		n, more, err = s.CloseFrontier(ctx, run, "limit", 3)
		check(t, err)
		total += n
	}
	if total != 8 {
		t.Errorf("got %d closed, want 8", total)
	}
	wantLedger(t, s, run, 10, 0, 0, 8, 0, 2, 0)
	if l := ledger(t, s, run); l.ByReason["limit"] != 8 {
		t.Errorf("got %v", l.ByReason)
	}
	wantOutcomes(t, finish(t, s, "o", fetched(c[1]), fetched(c[2])), storage.OutcomeDone, storage.OutcomeDone)
	row := must(s.PageByKey(ctx, run, key(c[0].URL)))(t)
	if row.State != storage.Excluded || row.Reason != "limit" || row.Attempts != 1 {
		t.Errorf("got %+v", row)
	}
}
