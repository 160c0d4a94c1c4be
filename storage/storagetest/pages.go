package storagetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deepcrawl/storage"
)

func pageURLs(rows []storage.PageRow) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.URL
	}
	return out
}

func testPages(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run, other := crawling(t, s), crawling(t, s)
	discover(t, s, run, finds(0, 12)...)
	discover(t, s, other, finds(0, 4)...)
	finish(t, s, "o", fetched(claim(t, s, "o", other, 1)[0]))
	c := claim(t, s, "o", run, 9)
	big := fetched(c[3])
	big.Page.Bytes, big.Page.Total = 99_000, time.Minute
	notFound := fetched(c[4])
	notFound.Page.Status = 404
	finish(t, s, "o", fetched(c[0]), fetched(c[1]), fetched(c[2]), big, notFound, ended(c[5], storage.Failed, "dns", 0), ended(c[6], storage.Excluded, "robots", 0), delay(c[7], time.Hour, 4))

	list := func(t *testing.T, q storage.PageQuery) []storage.PageRow {
		t.Helper()
		return must(s.ListPages(ctx, run, q))(t)
	}
	t.Run("finished pages come in order, of one run", func(t *testing.T) {
		rows := list(t, storage.PageQuery{})
		if len(rows) != 7 || !slices.IsSortedFunc(rows, func(a, b storage.PageRow) int { return int(a.ID - b.ID) }) {
			t.Errorf("got %q", pageURLs(rows))
		}
		if rows[0].Facts != nil || rows[0].Links != nil || rows[0].FetchedAt.IsZero() || rows[0].Discovered.IsZero() {
			t.Errorf("got %+v", rows[0])
		}
	})
	t.Run("facts and links come when asked for", func(t *testing.T) {
		rows := list(t, storage.PageQuery{Limit: 1, WithFacts: true, WithLinks: true})
		if !bytes.Equal(rows[0].Facts, []byte("facts of "+c[0].URL)) || !bytes.Equal(rows[0].Links, []byte("links of "+c[0].URL)) {
			t.Errorf("got %q and %q", rows[0].Facts, rows[0].Links)
		}
	})
	t.Run("filters", func(t *testing.T) {
		for name, f := range map[string]struct {
			q    storage.PageQuery
			want []int
		}{
			"by state":     {storage.PageQuery{States: []storage.State{storage.Failed, storage.Excluded}}, []int{5, 6}},
			"by reason":    {storage.PageQuery{Reason: "robots"}, []int{6}},
			"by class":     {storage.PageQuery{Status: 4}, []int{4}},
			"by status":    {storage.PageQuery{Status: 200}, []int{0, 1, 2, 3}},
			"delayed":      {storage.PageQuery{Unfinished: true, States: []storage.State{storage.Delayed}}, []int{7}},
			"claimed":      {storage.PageQuery{Unfinished: true, States: []storage.State{storage.Claimed}, Limit: 2}, []int{8}},
			"queued":       {storage.PageQuery{Unfinished: true, States: []storage.State{storage.Queued}}, []int{9, 10, 11}},
			"queued, some": {storage.PageQuery{Unfinished: true, States: []storage.State{storage.Queued}, Limit: 2}, []int{9, 10}},
			"everything":   {storage.PageQuery{Unfinished: true}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		} {
			t.Run(name, func(t *testing.T) {
				var want []string
				for _, i := range f.want {
					want = append(want, pageURL(i))
				}
				if got := pageURLs(list(t, f.q)); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	})
	t.Run("unfinished rows say what they wait for", func(t *testing.T) {
		row := must(s.PageByKey(ctx, run, key(pageURL(7))))(t)
		if row.State != storage.Delayed || row.Attempts != 4 || row.Reason != "timeout" || !row.FetchedAt.IsZero() {
			t.Errorf("got %+v", row)
		}
		if row := must(s.PageByKey(ctx, run, key(pageURL(8))))(t); row.State != storage.Claimed {
			t.Errorf("got %+v", row)
		}
		_, err := s.PageByKey(ctx, run, key("none"))
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("paging is stable while URLs are added", func(t *testing.T) {
		var got []string
		var after storage.URLID
		for i := 0; ; i++ {
			rows := list(t, storage.PageQuery{After: after, Limit: 5, Unfinished: true})
			if len(rows) == 0 {
				break
			}
			got = append(got, pageURLs(rows)...)
			after = rows[len(rows)-1].ID
			if i == 0 {
				discover(t, s, run, find("https://example.com/added", 1, 0))
			}
		}
		if len(got) != 13 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 13 {
			t.Errorf("got %q", got)
		}
	})
	t.Run("the largest and slowest pages", func(t *testing.T) {
		for _, by := range []string{"bytes", "total"} {
			if rows := must(s.TopPages(ctx, run, by, 2))(t); len(rows) != 2 || rows[0].URL != pageURL(3) {
				t.Errorf("by %s: got %q", by, pageURLs(rows))
			}
		}
	})
	t.Run("ids and prefixes are resolved", func(t *testing.T) {
		ids := must(s.URLs(ctx, run, []storage.URLID{c[0].ID, c[8].ID, 1}))(t)
		if len(ids) != 2 || ids[c[0].ID] != pageURL(0) || ids[c[8].ID] != pageURL(8) {
			t.Errorf("got %v", ids)
		}
		prefix := func(url string) [8]byte { k := key(url); return [8]byte(k[:8]) }
		refs := must(s.URLsByPrefix(ctx, run, [][8]byte{prefix(pageURL(4)), prefix(pageURL(9)), prefix("none")}))(t)
		if got := refs[prefix(pageURL(4))]; len(refs) != 2 || got.ID != c[4].ID || got.Status != 404 || got.State != storage.Fetched || got.URL != pageURL(4) {
			t.Errorf("got %+v", refs)
		}
		if got := refs[prefix(pageURL(9))]; got.State != 0 || got.URL != pageURL(9) {
			t.Errorf("got %+v", got)
		}
	})
}

func testGraph(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run := crawling(t, s)
	discover(t, s, run, finds(0, 10)...)
	c := claim(t, s, "o", run, 8)
	notFound, plain := fetched(c[4]), fetched(c[5])
	notFound.Page.Status, notFound.Page.Links, plain.Page.Links = 404, nil, nil
	finish(t, s, "o", fetched(c[0]), fetched(c[1]), fetched(c[2]), notFound, plain, ended(c[6], storage.Failed, "dns", 0))
	fence := storage.Fence{Name: "finishing", Epoch: 1, Number: 1}
	prefix := func(i int) [8]byte { k := key(pageURL(i)); return [8]byte(k[:8]) }

	t.Run("link rows come page by page", func(t *testing.T) {
		var got []string
		var after storage.URLID
		for {
			rows := must(s.Links(ctx, run, after, 2))(t)
			if len(rows) == 0 {
				break
			}
			for _, r := range rows {
				got = append(got, string(r.Links))
				after = r.ID
			}
		}
		want := []string{"links of " + pageURL(0), "links of " + pageURL(1), "links of " + pageURL(2)}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("inlinks are unknown until computed, then replaced", func(t *testing.T) {
		if row := must(s.PageByKey(ctx, run, key(pageURL(4))))(t); row.Inlinks != -1 {
			t.Errorf("got %d", row.Inlinks)
		}
		check(t, s.SaveInlinks(ctx, run, []storage.Inlinks{{Prefix: prefix(4), Count: 9, Source: c[0].ID}, {Prefix: prefix(6), Count: 1, Source: c[1].ID}}, fence))
		check(t, s.SaveInlinks(ctx, run, []storage.Inlinks{{Prefix: prefix(4), Count: 2, Source: c[2].ID}, {Prefix: prefix(5), Count: 3, Source: c[0].ID}, {Prefix: [8]byte{1}, Count: 5}}, fence))
		for i, want := range map[int]int64{4: 2, 5: 3, 6: 1, 0: 0, 9: 0} {
			if row := must(s.PageByKey(ctx, run, key(pageURL(i))))(t); row.Inlinks != want {
				t.Errorf("page %d: got %d inlinks, want %d", i, row.Inlinks, want)
			}
		}
	})
	t.Run("broken links, most linked first, with a source", func(t *testing.T) {
		got := must(s.BrokenLinks(ctx, run, 10))(t)
		if len(got) != 2 || got[0].URL != pageURL(4) || got[0].Status != 404 || got[0].Inlinks != 2 || got[0].Source != pageURL(2) ||
			got[1].URL != pageURL(6) || got[1].Reason != "dns" || got[1].Source != pageURL(1) {
			t.Errorf("got %+v", got)
		}
		if got := must(s.BrokenLinks(ctx, run, 1))(t); len(got) != 1 {
			t.Errorf("got %+v", got)
		}
	})
}

func testDelete(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run, keep := crawling(t, s), crawling(t, s)
	for _, r := range []storage.RunID{run, keep} {
		discover(t, s, r, finds(0, 100)...)
		c := claim(t, s, "o", r, 60)
		var results []storage.Result
		for _, c := range c[:50] {
			results = append(results, fetched(c))
		}
		finish(t, s, "o", results...)
		check(t, s.SaveInlinks(ctx, r, []storage.Inlinks{{Prefix: [8]byte([]byte(c[0].URL)[:8]), Count: 1}}, storage.Fence{Name: "f", Epoch: 1, Number: 1}))
		check(t, s.SaveStep(ctx, r, storage.Step{Name: "x"}, storage.Fence{Name: "f", Epoch: 1, Number: 1}))
	}
	t.Run("an active run is not deleted", func(t *testing.T) {
		_, err := s.DeleteRun(ctx, run, 10)
		wantErr(t, err, storage.ErrState)
		_, err = s.DeleteRun(ctx, keep+100, 10)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a run goes in pieces, and is neither listed nor served meanwhile", func(t *testing.T) {
		must(s.SetRunState(ctx, run, []storage.RunState{storage.RunCrawling}, storage.RunPaused, "", time.Time{}))(t)
		done, calls := false, 0
		for !done {
			var err error
			done, err = s.DeleteRun(ctx, run, 40)
			check(t, err)
			if calls++; calls == 1 {
				if _, err := s.Run(ctx, run); err == nil || len(must(s.ListRuns(ctx, storage.RunFilter{}))(t)) != 1 {
					t.Errorf("a run being deleted is shown (%v)", err)
				}
				if _, err := s.SetRunState(ctx, run, storage.RunStates(), storage.RunCrawling, "", time.Time{}); err == nil {
					t.Error("a run being deleted was set crawling")
				}
			}
			if calls > 100 {
				t.Fatal("it does not end")
			}
		}
		if calls < 4 {
			t.Errorf("got %d calls for some 250 rows, 40 at a time", calls)
		}
		_, err := s.DeleteRun(ctx, run, 10)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("others are left whole", func(t *testing.T) {
		wantLedger(t, s, keep, 100, 50, 0, 0, 40, 10, 0)
		if rows := must(s.ListPages(ctx, keep, storage.PageQuery{Unfinished: true}))(t); len(rows) != 100 {
			t.Errorf("got %d rows", len(rows))
		}
		if rows := must(s.Links(ctx, keep, 0, 1000))(t); len(rows) != 50 {
			t.Errorf("got %d link rows", len(rows))
		}
	})
}

func testKeys(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run := crawling(t, s)
	texts := []string{
		"https://example.com/A", "https://example.com/a", "https://example.com/a ", "https://example.com/a%20", "https://example.com/\u00e9", "https://example.com/e\u0301",
		"https://example.com/\u00df", "https://example.com/ss", "https://example.com/\U0001F600", "https://example.com/'\"\\%00;--", strings.Repeat("x", storage.MaxURL),
		strings.Repeat("x", storage.MaxURL-1) + "y",
	}
	var list []storage.Discovery
	for i, u := range texts {
		list = append(list, find(u, i+1, 0))
	}
	// Keys that differ in one byte or bit only, with bytes that text would not survive.
	for i := range 16 {
		for _, b := range []byte{0, 1, 0x20, 0x41, 0x61, 0x80, 0xff} {
			d := find(fmt.Sprintf("k%d-%d", i, b), 500, 0)
			d.Key = storage.Key{15: 0x5a}
			d.Key[(i+15)%16] = b
			if i != 0 || b != 0x5a {
				list = append(list, d)
			}
		}
	}
	distinct := map[storage.Key]bool{}
	for _, d := range list {
		distinct[d.Key] = true
	}
	t.Run("each distinct key is a URL of its own", func(t *testing.T) {
		if n := must(s.Discover(ctx, run, list, nil))(t); n != len(distinct) {
			t.Errorf("got %d added, want %d", n, len(distinct))
		}
		if n := must(open(t).Discover(ctx, run, list, nil))(t); n != 0 {
			t.Errorf("again: got %d added", n)
		}
	})
	t.Run("URLs come back byte for byte", func(t *testing.T) {
		wantURLs(t, claim(t, s, "o", run, len(texts)), texts...)
		for _, u := range texts {
			if row := must(s.PageByKey(ctx, run, key(u)))(t); row.URL != u {
				t.Errorf("got %q, want %q", row.URL, u)
			}
		}
	})
	t.Run("hosts and owners are compared byte for byte", func(t *testing.T) {
		run := crawling(t, s)
		var reqs []storage.ClaimRequest
		for i, h := range []string{"host.example", "HOST.example", "host.example ", strings.Repeat("h", 255)} {
			d := find(fmt.Sprint("h", i), 1, 0)
			d.Host = h
			discover(t, s, run, d)
			reqs = append(reqs, storage.ClaimRequest{Run: run, Host: h, N: 10})
		}
		for i, r := range reqs {
			wantURLs(t, must(s.Claim(ctx, storage.Owner([]string{"o", "O", "o ", "p"}[i]), []storage.ClaimRequest{r}))(t), fmt.Sprint("h", i))
		}
		if n, _, err := s.Reclaim(ctx, "o", 100); err != nil || n != 1+len(texts) {
			t.Errorf("got %d reclaimed, %v", n, err)
		}
	})
}
