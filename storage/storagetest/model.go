package storagetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deepcrawl/storage"
)

// modelURL is one URL as the model knows it.
type modelURL struct {
	id       storage.URLID // as the store gave it: stores take ids from blocks of their own
	priority int
	depth    int
	attempts int
	placed   bool // it counts against the page limit
	boosted  bool
	state    storage.State
	claim    storage.Claim
	owner    storage.Owner
}

// model is a run in memory, with the contract's rules spelled out one by one.
type model struct {
	run    storage.RunID
	stores []storage.Store
	urls   map[string]*modelURL
	limit  int
	old    []storage.Claim // claims that are no longer
	late   int64
}

func (m *model) in(states ...storage.State) (out []*modelURL) {
	for _, u := range m.urls {
		if slices.Contains(states, u.state) {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b *modelURL) int { return cmp.Compare(a.id, b.id) })
	return out
}

// next says which URLs a claim of n must return.
func (m *model) next(n int) (out []string) {
	queued := m.in(storage.Queued)
	// rank puts boosted URLs first, of them those that hold a place.
	rank := func(u *modelURL) int {
		switch {
		case u.boosted && u.placed:
			return 0
		case u.boosted:
			return 1
		}
		return 2
	}
	slices.SortFunc(queued, func(a, b *modelURL) int {
		if rank(a) == 0 && rank(b) == 0 {
			return cmp.Compare(a.id, b.id)
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.priority, b.priority), cmp.Compare(a.depth, b.depth), cmp.Compare(a.id, b.id))
	})
	places := 0
	for _, u := range m.urls {
		if u.placed {
			places++
		}
	}
	for _, u := range queued {
		if len(out) == n {
			break
		}
		if !u.placed && m.limit > 0 {
			if places >= m.limit {
				continue
			}
			places++
		}
		out = append(out, m.name(u))
	}
	return out
}

func (m *model) name(want *modelURL) string {
	for name, u := range m.urls {
		if u == want {
			return name
		}
	}
	return ""
}

func (m *model) discover(list []storage.Discovery) (added int) {
	for _, d := range list {
		if _, known := m.urls[d.URL]; known {
			continue
		}
		added++
		m.urls[d.URL] = &modelURL{priority: d.Priority, depth: d.Depth, state: storage.Queued}
	}
	return added
}

// testModel does random things to a run, one after another, over two stores, and compares every answer with the model's.
func testModel(t *testing.T, open Open) {
	stores := []storage.Store{open(t), open(t)}
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{run: crawling(t, stores[0]), stores: stores, urls: map[string]*modelURL{}, limit: rapid.SampledFrom([]int{0, 0, 3, 6}).Draw(rt, "limit")}
		for range rapid.IntRange(3, 14).Draw(rt, "steps") {
			m.step(t, rt)
		}
		m.compare(t, rt)
	})
}

func drawDiscoveries(rt *rapid.T) []storage.Discovery {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) storage.Discovery {
		n := rapid.IntRange(0, 11).Draw(rt, "page")
		return find(fmt.Sprint("u", n), rapid.IntRange(1, 3).Draw(rt, "priority"), rapid.IntRange(0, 2).Draw(rt, "depth"))
	}), 0, 5).Draw(rt, "found")
}

func (m *model) step(t *testing.T, rt *rapid.T) {
	s := m.stores[rapid.IntRange(0, 1).Draw(rt, "store")]
	owner := storage.Owner(fmt.Sprint(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "owner"), ".", m.run))
	claimed := m.in(storage.Claimed)
	switch op := rapid.SampledFrom([]string{"discover", "claim", "claim", "finish", "finish", "return", "reclaim", "boost", "close"}).Draw(rt, "op"); op {
	case "discover":
		list := drawDiscoveries(rt)
		got, err := s.Discover(t.Context(), m.run, list, nil)
		if want := m.discover(list); err != nil || got != want {
			rt.Fatalf("discover: got %d, %v, want %d", got, err, want)
		}
	case "claim":
		n := rapid.IntRange(1, 4).Draw(rt, "n")
		m.learn(t, rt)
		want := m.next(n)
		got, err := s.Claim(t.Context(), owner, []storage.ClaimRequest{{Run: m.run, Host: host, N: n, MaxPages: m.limit}})
		if err != nil || !slices.Equal(urls(got), want) {
			rt.Fatalf("claim: got %q, %v, want %q", urls(got), err, want)
		}
		for _, c := range got {
			u := m.urls[c.URL]
			if c.Attempts != u.attempts || c.Priority != u.priority || c.Depth != u.depth || u.id != c.ID {
				rt.Fatalf("claim: got %+v, want %+v", c, u)
			}
			if c.Boosted != u.boosted {
				rt.Fatalf("claim: got %+v, want %+v", c, u)
			}
			u.state, u.claim, u.owner, u.placed = storage.Claimed, c, owner, true
		}
	case "finish":
		m.finish(t, rt, s, owner, claimed)
	case "return":
		var back []storage.Claim
		for _, u := range claimed {
			if rapid.Bool().Draw(rt, "this one") {
				back = append(back, u.claim)
				m.release(u)
				u.placed = u.attempts > 0
			}
		}
		if len(m.old) > 0 {
			back = append(back, rapid.SampledFrom(m.old).Draw(rt, "late"))
		}
		check(t, s.Return(t.Context(), owner, back))
	case "reclaim":
		n, more, err := s.Reclaim(t.Context(), owner, 100)
		want := 0
		for _, u := range claimed {
			if u.owner == owner {
				want++
				m.release(u)
				u.attempts = max(u.attempts, 1)
			}
		}
		if err != nil || n != want || more {
			rt.Fatalf("reclaim: got %d, %v, %v, want %d", n, more, err, want)
		}
	case "boost":
		var keys []storage.Key
		want := 0
		for name, u := range m.urls {
			if !rapid.Bool().Draw(rt, "look at this one") {
				continue
			}
			if keys = append(keys, key(name)); u.state == storage.Queued {
				u.boosted = true
				want++
			}
		}
		if n, err := s.Boost(t.Context(), m.run, keys, time.Hour); err != nil || n != want {
			rt.Fatalf("boost: got %d, %v, want %d", n, err, want)
		}
	case "close":
		if rapid.IntRange(0, 3).Draw(rt, "close?") != 0 {
			return
		}
		open := m.in(storage.Queued, storage.Delayed)
		n, _, err := s.CloseFrontier(t.Context(), m.run, "limit", 100)
		if err != nil || n != len(open) {
			rt.Fatalf("close: got %d, %v, want %d", n, err, len(open))
		}
		for _, u := range open {
			u.state, u.placed, u.boosted = storage.Excluded, false, false
		}
	}
}

// release takes a claim away; its token is late from then on.
func (m *model) release(u *modelURL) {
	m.old = append(m.old, u.claim)
	u.state = storage.Queued
}

func (m *model) finish(t *testing.T, rt *rapid.T, s storage.Store, owner storage.Owner, claimed []*modelURL) {
	var results []storage.Result
	var want []storage.Outcome
	var after []func()
	for _, u := range claimed {
		var r storage.Result
		switch rapid.SampledFrom([]string{"", "fetched", "failed", "excluded", "delayed"}).Draw(rt, "result") {
		case "":
			continue
		case "fetched":
			r = fetched(u.claim, drawDiscoveries(rt)...)
			after = append(after, func() { u.state = storage.Fetched })
		case "failed":
			r = ended(u.claim, storage.Failed, "dns", 0)
			after = append(after, func() { u.state = storage.Failed })
		case "excluded":
			r = ended(u.claim, storage.Excluded, "robots", 0)
			after = append(after, func() { u.state, u.placed = storage.Excluded, false })
		case "delayed":
			r = delay(u.claim, time.Hour, u.attempts+1)
			after = append(after, func() { u.state = storage.Delayed; u.attempts++ })
		}
		results, want = append(results, r), append(want, storage.OutcomeDone)
	}
	if len(m.old) > 0 && rapid.Bool().Draw(rt, "a late one too") {
		results = append(results, fetched(rapid.SampledFrom(m.old).Draw(rt, "late"), find("never", 1, 0)))
		want = append(want, storage.OutcomeStale)
		m.late++
	}
	got, err := s.Finish(t.Context(), owner, results)
	if err != nil || !slices.Equal(got, want) {
		rt.Fatalf("finish: got %v, %v, want %v", got, err, want)
	}
	for i, r := range results {
		if want[i] == storage.OutcomeDone {
			after[i]()
			m.discover(r.Discovered)
		}
	}
}

// learn looks up the ids of URLs, which break ties of the order.
func (m *model) learn(t *testing.T, rt *rapid.T) {
	rows, err := m.stores[0].ListPages(t.Context(), m.run, storage.PageQuery{Unfinished: true})
	if err != nil {
		rt.Fatal(err)
	}
	for _, r := range rows {
		m.urls[r.URL].id = r.ID
	}
}

// compare looks at the whole run.
func (m *model) compare(t *testing.T, rt *rapid.T) {
	l, err := m.stores[0].Ledger(t.Context(), m.run)
	if err != nil {
		rt.Fatal(err)
	}
	got := []int64{l.Discovered, l.Fetched, l.Failed, l.Excluded, l.Queued, l.Claimed, l.Delayed, l.LateRefused}
	want := []int64{int64(len(m.urls)), 0, 0, 0, 0, 0, 0, m.late}
	for _, u := range m.urls {
		want[map[storage.State]int{storage.Fetched: 1, storage.Failed: 2, storage.Excluded: 3, storage.Queued: 4, storage.Claimed: 5, storage.Delayed: 6}[u.state]]++
	}
	if !slices.Equal(got, want) {
		rt.Fatalf("ledger: got %v, want %v", got, want)
	}
	rows, err := m.stores[1].ListPages(t.Context(), m.run, storage.PageQuery{Unfinished: true})
	if err != nil || len(rows) != len(m.urls) {
		rt.Fatalf("pages: got %d, %v, want %d", len(rows), err, len(m.urls))
	}
	for _, r := range rows {
		if u := m.urls[r.URL]; u == nil || u.state != r.State {
			rt.Fatalf("got %+v, want %+v", r, u)
		}
	}
}
