package judge_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
)

const (
	agent = "Tester/1"
	host  = "127.0.0.1"
)

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// site has every kind of page the judge treats differently.
func site(t *testing.T) *web.Site {
	t.Helper()
	s, err := web.New(web.Config{Seed: 7, Pages: 300, Robots: web.Robots{Private: 10}, Sitemap: true, Orphans: 5, Errors: web.ErrorMix{
		NotFound: .05, Redirect: .05, Broken: .05, Drip: .03, Fails: .05, TooMany: .05,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cleanLog is the log of a crawl without fault: one request after another,
// each 10 ms long and 20 ms after the last; a pause asked for is kept.
func cleanLog(expected iter.Seq[web.Expectation]) []web.Hit {
	var hits []web.Hit
	now := epoch
	add := func(path string, kind web.Kind, status int) {
		h := web.Hit{
			Seq: uint64(len(hits) + 1), Arrival: now, End: now.Add(10 * time.Millisecond), Host: host, Method: "GET", Path: path,
			Status: status, Kind: kind, Agent: agent, Source: "127.0.0.9",
		}
		now = now.Add(20 * time.Millisecond)
		if kind == web.KindTooMany {
			h.Gate = h.End.Add(time.Second)
			now = h.Gate
		}
		hits = append(hits, h)
	}
	add("/robots.txt", web.KindRobots, 200)
	for e := range expected {
		if !e.Allowed {
			continue
		}
		for range e.Requests - 1 {
			add(e.Path, e.Before, 429)
		}
		add(e.Path, e.Kind, e.Status)
	}
	return hits
}

var rules = judge.Rules{
	Agents: []string{agent}, Cap: 1, Gate: &judge.Gate{Other: 5 * time.Second}, Rate: &judge.Rate{PerSecond: 50, Burst: 2},
}

// find is the index of the first hit that fits.
func find(t *testing.T, hits []web.Hit, fits func(web.Hit) bool) int {
	t.Helper()
	i := slices.IndexFunc(hits, fits)
	if i < 0 {
		t.Fatal("the log has no such hit")
	}
	return i
}

func kind(k web.Kind) func(web.Hit) bool { return func(h web.Hit) bool { return h.Kind == k } }

func TestCleanLogHasNoViolations(t *testing.T) {
	s := site(t)
	if vs := judge.Check(cleanLog(s.Expected()), s.Expected(), rules); len(vs) != 0 {
		t.Errorf("got %d violations, the first: %v", len(vs), vs[0])
	}
}

func TestDoctoredLogHasExactlyItsViolation(t *testing.T) {
	s := site(t)
	forbidden := ""
	for e := range s.Expected() {
		if !e.Allowed {
			forbidden = e.Path
		}
	}
	// again adds a copy of a hit when nothing else is happening.
	again := func(hits []web.Hit, i int) []web.Hit {
		h := hits[i]
		last := hits[len(hits)-1]
		h.Seq, h.Arrival, h.End = last.Seq+1, last.Arrival.Add(time.Second), last.End.Add(time.Second)
		if !h.Gate.IsZero() {
			h.Gate = h.End.Add(time.Second)
		}
		return append(hits, h)
	}
	for name, c := range map[string]struct {
		rule   judge.Rule
		doctor func(hits []web.Hit) []web.Hit
		detail string
	}{
		"a page was never requested": {judge.RuleMissed, func(hits []web.Hit) []web.Hit {
			i := find(t, hits, kind(web.KindPage))
			return slices.Delete(hits, i, i+1)
		}, "never requested"},
		"a missing page was never requested": {judge.RuleMissed, func(hits []web.Hit) []web.Hit {
			i := find(t, hits, kind(web.KindNotFound))
			return slices.Delete(hits, i, i+1)
		}, "never requested"},
		"a page that failed was not tried again": {judge.RuleMissed, func(hits []web.Hit) []web.Hit {
			i := find(t, hits, kind(web.KindFails))
			return slices.Delete(hits, i+1, i+2)
		}, `last answer was "fails"`},
		"the only answer was cut off": {judge.RuleMissed, func(hits []web.Hit) []web.Hit {
			hits[find(t, hits, kind(web.KindPage))].Aborted = true
			return hits
		}, "in full"},
		"the only answer never ended": {judge.RuleMissed, func(hits []web.Hit) []web.Hit {
			hits[find(t, hits, func(h web.Hit) bool { return int(h.Seq) == len(hits) })].End = time.Time{}
			return hits
		}, "in full"},
		"a page was requested twice": {judge.RuleRepeated, func(hits []web.Hit) []web.Hit {
			return again(hits, find(t, hits, kind(web.KindPage)))
		}, "requested 2 times, explained are 1"},
		"a page that failed once was requested three times": {judge.RuleRepeated, func(hits []web.Hit) []web.Hit {
			return again(hits, find(t, hits, kind(web.KindFails))+1)
		}, "requested 3 times, explained are 2"},
		"a broken page was requested twice": {judge.RuleRepeated, func(hits []web.Hit) []web.Hit {
			return again(hits, find(t, hits, kind(web.KindBroken)))
		}, "requested 2 times"},
		"a path was made up": {judge.RuleUnexpected, func(hits []web.Hit) []web.Hit {
			hits = again(hits, 1)
			h := &hits[len(hits)-1]
			h.Path, h.Kind, h.Status = "/made/up", web.KindUnknown, 404
			return hits
		}, "nothing on the site names"},
		"a forbidden page was requested": {judge.RuleDisallowed, func(hits []web.Hit) []web.Hit {
			hits = again(hits, find(t, hits, kind(web.KindPage)))
			hits[len(hits)-1].Path = forbidden
			return hits
		}, "forbids"},
		"two requests were in flight": {judge.RuleCap, func(hits []web.Hit) []web.Hit {
			i := find(t, hits, kind(web.KindPage))
			hits[i].End = hits[i+1].Arrival.Add(time.Microsecond)
			return hits
		}, "up to 2 in flight, the cap is 1, for 1µs"},
		"a request never ended": {judge.RuleCap, func(hits []web.Hit) []web.Hit {
			last := hits[len(hits)-1]
			h := hits[0] // robots.txt, which cannot be missed
			h.Seq, h.Arrival, h.End = last.Seq+1, last.Arrival.Add(time.Millisecond), time.Time{}
			hits[len(hits)-1].Arrival = last.Arrival.Add(2 * time.Millisecond)
			return append(hits, h)
		}, "up to 2 in flight, the cap is 1, for 8ms"},
		"a request came within a pause": {judge.RuleGate, func(hits []web.Hit) []web.Hit {
			i := find(t, hits, kind(web.KindTooMany))
			for j := range hits[i+1:] { // the rest comes 900 ms sooner
				h := &hits[i+1+j]
				h.Arrival, h.End = h.Arrival.Add(-900*time.Millisecond), h.End.Add(-900*time.Millisecond)
				if !h.Gate.IsZero() {
					h.Gate = h.Gate.Add(-900 * time.Millisecond)
				}
			}
			// Only the first request after the pause was asked for is inside it.
			for j := range hits[i+2:] {
				h := &hits[i+2+j]
				h.Arrival, h.End = h.Arrival.Add(5*time.Second), h.End.Add(5*time.Second)
				if !h.Gate.IsZero() {
					h.Gate = h.Gate.Add(5 * time.Second)
				}
			}
			return hits
		}, "started from 127.0.0.9 100ms after the host told 127.0.0.9 to stay away for another 900ms"},
		"requests came too fast": {judge.RuleRate, func(hits []web.Hit) []web.Hit {
			n := len(hits)
			for i := n - 3; i < n; i++ { // three within 2 ms
				hits[i].Arrival = hits[n-1].Arrival.Add(time.Duration(i-n+1) * time.Millisecond)
				hits[i].End = hits[i].Arrival
			}
			return hits
		}, "starts within"},
	} {
		t.Run(name, func(t *testing.T) {
			hits := c.doctor(cleanLog(s.Expected()))
			vs := judge.Check(hits, s.Expected(), rules)
			if len(vs) != 1 || vs[0].Rule != c.rule || !strings.Contains(vs[0].Detail, c.detail) {
				t.Fatalf("got %d violations, the first of them %v, want one of %q saying %q", len(vs), vs[:min(3, len(vs))], c.rule, c.detail)
			}
			v := vs[0]
			if v.Host != host || (v.At.IsZero() != (v.Rule == judge.RuleMissed)) {
				t.Errorf("got %+v, want its host and time", v)
			}
			if len(v.Hits) == 0 && v.Detail != "never requested" {
				t.Errorf("%v has no evidence", v)
			}
		})
	}
}

func TestRepeatsAreExplained(t *testing.T) {
	s := site(t)
	hits := cleanLog(s.Expected())
	page, broken := hits[find(t, hits, kind(web.KindPage))], hits[find(t, hits, kind(web.KindBroken))]
	hits = append(hits, page, page, broken, broken)
	r := judge.Repeats{Explained: map[judge.Request]int{{Agent: agent, Host: host, Path: page.Path}: 2}, Retries: 2}
	if vs := judge.Repeated(hits, s.Expected(), r); len(vs) != 0 {
		t.Errorf("got %v, want none", vs)
	}
	hits = append(hits, page, broken)
	if vs := judge.Repeated(hits, s.Expected(), r); len(vs) != 2 {
		t.Errorf("got %v, want one for each page", vs)
	}
}

func TestConventionalPathsAreNotMadeUp(t *testing.T) {
	for path, want := range map[string]int{"/favicon.ico": 0, "/sitemap.xml": 0, "/sitemap2.xml": 1} {
		h := web.Hit{Host: host, Path: path, Kind: web.KindUnknown, Status: 404, Arrival: epoch, End: epoch}
		if vs := judge.Unexpected([]web.Hit{h}); len(vs) != want {
			t.Errorf("%s: got %v, want %d violations", path, vs, want)
		}
	}
}

func TestInFlight(t *testing.T) {
	killed := epoch.Add(time.Minute)
	hit := func(path string, from, to time.Duration) web.Hit {
		h := web.Hit{Agent: agent, Host: host, Path: path, Arrival: killed.Add(from)}
		if to != 0 {
			h.End = killed.Add(to)
		}
		return h
	}
	got := judge.InFlight([]web.Hit{
		hit("/long-done", -2*time.Second, -time.Second),
		hit("/just-done", -2*time.Second, -50*time.Millisecond),
		hit("/open", -time.Second, time.Millisecond),
		hit("/for-ever", -time.Second, 0),
		hit("/after", time.Millisecond, time.Second),
	}, killed, 100*time.Millisecond)
	want := []string{"/for-ever", "/just-done", "/open"}
	var paths []string
	for q, n := range got {
		if n != 1 || q.Agent != agent || q.Host != host {
			t.Errorf("got %+v %d times, want once", q, n)
		}
		paths = append(paths, q.Path)
	}
	slices.Sort(paths)
	if !slices.Equal(paths, want) {
		t.Errorf("got %q, want %q", paths, want)
	}
}

func TestEachAgentIsARun(t *testing.T) {
	s := site(t)
	hits := cleanLog(s.Expected())
	for _, h := range slices.Clone(hits) {
		h.Agent = "Tester/2"
		hits = append(hits, h)
	}
	if vs := judge.Missed(hits, s.Expected(), nil); len(vs) != 0 {
		t.Errorf("got %v, want none", vs[0])
	}
	if vs := judge.Repeated(hits, s.Expected(), judge.Repeats{}); len(vs) != 0 {
		t.Errorf("got %v, want none", vs[0])
	}
	pages := 0
	for e := range s.Expected() {
		if e.Allowed {
			pages++
		}
	}
	if vs := judge.Missed(hits, s.Expected(), []string{agent, "Tester/3"}); len(vs) != pages || vs[0].Agent != "Tester/3" {
		t.Errorf("got %d violations, want all %d pages missed by the third agent", len(vs), pages)
	}
	if vs := judge.Missed(nil, s.Expected(), nil); len(vs) != pages {
		t.Errorf("an empty log: got %d violations, want all %d pages missed", len(vs), pages)
	}
}

func TestGateGrace(t *testing.T) {
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	asks := web.Hit{Seq: 1, Host: host, Source: "a", Arrival: at(0), End: at(10), Status: 429, Gate: at(5000)}
	req := func(source string, ms int) web.Hit {
		return web.Hit{Seq: 2, Host: host, Source: source, Arrival: at(ms), End: at(ms + 1)}
	}
	g := judge.Gate{Same: 5 * time.Millisecond, Other: 3 * time.Second}
	for _, c := range []struct {
		name string
		hit  web.Hit
		want int
	}{
		{"before the answer", req("a", 5), 0},
		{"while the answer is on its way", req("a", 14), 0},
		{"just after the answer came", req("a", 16), 1},
		{"from another node within its time to learn of it", req("b", 3000), 0},
		{"from another node too late", req("b", 3011), 1},
		{"just before the pause is over", req("b", 4999), 1},
		{"when the pause is over", req("a", 5000), 0},
	} {
		if vs := judge.InGate([]web.Hit{asks, c.hit}, g); len(vs) != c.want {
			t.Errorf("%s: got %v, want %d violations", c.name, vs, c.want)
		}
	}
	g.Lost = func(h web.Hit) bool { return h.Seq == 1 }
	if vs := judge.InGate([]web.Hit{asks, req("a", 100)}, g); len(vs) != 0 {
		t.Errorf("an answer nobody read: got %v, want none", vs)
	}
	other := req("a", 100)
	other.Host = "127.0.0.2"
	if vs := judge.InGate([]web.Hit{asks, other}, judge.Gate{}); len(vs) != 0 {
		t.Errorf("another host: got %v, want none", vs)
	}
}

// TestAgainstBruteForce compares the sweeps with their definitions on random logs.
func TestAgainstBruteForce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	over, under := 0, 0
	for round := range 3000 {
		var hits []web.Hit
		for i := range 2 + rnd.IntN(25) {
			start := epoch.Add(time.Duration(rnd.IntN(2000)) * time.Millisecond)
			h := web.Hit{Seq: uint64(i + 1), Host: host, Arrival: start, End: start.Add(time.Duration(rnd.IntN(300)) * time.Millisecond)}
			if rnd.IntN(20) == 0 {
				h.End = time.Time{}
			}
			hits = append(hits, h)
		}
		limit := 1 + rnd.IntN(8)
		peak := 0
		for _, at := range hits {
			n := 0
			for _, h := range hits {
				if !h.Arrival.After(at.Arrival) && (h.End.IsZero() || h.End.After(at.Arrival)) {
					n++
				}
			}
			peak = max(peak, n)
		}
		vs := judge.OverCap(hits, limit)
		if (peak > limit) != (len(vs) > 0) {
			t.Fatalf("round %d: peak %d, cap %d: got %v", round, peak, limit, vs)
		}
		if peak > limit && !slices.ContainsFunc(vs, func(v judge.Violation) bool {
			return strings.HasPrefix(v.Detail, fmt.Sprintf("up to %d in flight", peak)) && len(v.Hits) == peak
		}) {
			t.Fatalf("round %d: no violation tells the peak of %d: %v", round, peak, vs)
		}

		r := judge.Rate{PerSecond: 2 + 12*rnd.Float64(), Burst: 1 + 4*rnd.Float64(), Slack: time.Duration(rnd.IntN(200)) * time.Millisecond}
		slices.SortFunc(hits, func(a, b web.Hit) int { return a.Arrival.Compare(b.Arrival) })
		fast := false
		for i := range hits {
			for j := i; j < len(hits); j++ {
				w := hits[j].Arrival.Sub(hits[i].Arrival) + r.Slack
				fast = fast || float64(j-i+1) > r.Burst+r.PerSecond*w.Seconds()+1e-9
			}
		}
		if vs := judge.OverRate(hits, r); fast != (len(vs) > 0) {
			t.Fatalf("round %d: rate %+v: exceeded is %v, got %v", round, r, fast, vs)
		}
		if fast {
			over++
		} else {
			under++
		}
	}
	if over < 200 || under < 200 {
		t.Errorf("%d logs over the rate and %d under it do not test much", over, under)
	}
}

func TestOverCapReportsEachTime(t *testing.T) {
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	var hits []web.Hit
	for i, span := range [][2]int{{0, 10}, {5, 10}, {10, 20}, {30, 50}, {35, 40}, {36, 45}} {
		hits = append(hits, web.Hit{Seq: uint64(i + 1), Host: host, Arrival: at(span[0]), End: at(span[1])})
	}
	vs := judge.OverCap(hits, 1)
	if len(vs) != 2 || !vs[0].At.Equal(at(5)) || !vs[1].At.Equal(at(35)) {
		t.Fatalf("got %v, want two, from 5 ms and from 35 ms", vs)
	}
	if want := "up to 3 in flight, the cap is 1, for 10ms"; vs[1].Detail != want {
		t.Errorf("got %q, want %q", vs[1].Detail, want)
	}
	if !strings.Contains(vs[0].String(), "cap: 127.0.0.1 at 00:00:00.005000 UTC: up to 2 in flight") {
		t.Errorf("got %q", vs[0])
	}
}
