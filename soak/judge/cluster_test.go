package judge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
)

var terms = judge.Terms{
	Cap: 1, Death: 15 * time.Second, Beat: time.Second, Deadline: 5 * time.Second, Commit: 3 * time.Second, Late: 300 * time.Millisecond, LeastShare: 0.4,
	Bounds: judge.Bounds{Memory: 100 << 20, Sockets: 50, Goroutines: 40},
}

// cleanEvidence is that of a run without fault by one node.
func cleanEvidence(t *testing.T) judge.Evidence {
	t.Helper()
	s := site(t)
	hits := cleanLog(s.Expected())
	urls := map[string]judge.StoredURL{}
	for e := range s.Expected() {
		u := judge.StoredURL{Pages: 1, State: 4, Status: e.Status}
		if !e.Allowed {
			u = judge.StoredURL{Pages: 1, State: 6, Reason: "robots"}
		}
		urls["http://"+e.Host+":8080"+e.Path] = u
	}
	var samples []judge.Sample
	for at := epoch; at.Before(hits[len(hits)-1].End); at = at.Add(time.Second / 2) {
		samples = append(samples, judge.Sample{
			At: at, States: map[int64]string{1: "crawling"}, Tenant: map[int64]string{1: "acme"}, Seats: map[int64]int{1: 2}, Ready: 100, Mode: "db",
		})
	}
	line := `{"time":"2030-01-01T00:00:01Z","level":"INFO","msg":"leading","node":"a/1","fence":"1.7"}` + "\n" +
		`{"time":"2030-01-01T00:00:09Z","level":"INFO","msg":"left over","goroutines":12}` + "\n"
	log, err := judge.ReadNodeLog("a", strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	return judge.Evidence{
		Hits: hits, Expected: s.Expected, Samples: samples, Log: log, Acts: judge.Leadings(log),
		Stored:  map[int64]*judge.StoredRun{1: {ID: 1, Tenant: "acme", State: "done", URLs: urls}},
		Ordered: []judge.Ordered{{ID: 1, Tenant: "acme", Agent: agent, Seats: 4}},
		Tariffs: map[string]judge.Tariff{"acme": {Parallel: 1, Workers: 3}},
		Lives: []judge.Life{{
			Node: "a", Source: "127.0.0.9", From: epoch.Add(-time.Second), To: hits[len(hits)-1].End.Add(time.Second), End: judge.EndAsked, PeakMemory: 50 << 20, Sockets: 20,
		}},
	}
}

func logged(t *testing.T, e *judge.Evidence, line string) {
	t.Helper()
	more, err := judge.ReadNodeLog("a", strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	e.Log = append(e.Log, more...)
}

func TestCleanEvidenceHasNoViolations(t *testing.T) {
	v := judge.Judge(cleanEvidence(t), terms)
	if len(v.Violations) != 0 {
		t.Fatalf("got %d violations, the first: %v", len(v.Violations), v.Violations[0])
	}
	if f := v.Figures; f.Peak[host] != 1 || f.Pages == 0 || f.Leaders != 1 || f.PeakSeats != 2 || f.Repeats != 0 {
		t.Errorf("got %+v", f)
	}
}

func TestDoctoredEvidenceHasExactlyItsViolation(t *testing.T) {
	page := func(e *judge.Evidence) string {
		for x := range e.Expected() {
			if x.Allowed && x.Kind == web.KindPage && x.Path != "/" && x.Before == "" {
				return "http://" + x.Host + ":8080" + x.Path
			}
		}
		t.Fatal("no page")
		return ""
	}
	change := func(e *judge.Evidence, fn func(*judge.StoredURL)) {
		u := e.Stored[1].URLs[page(e)]
		fn(&u)
		e.Stored[1].URLs[page(e)] = u
	}
	// add adds a request of the site's log, at a time after its last end.
	add := func(e *judge.Evidence, after time.Duration, change func(*web.Hit)) {
		last := e.Hits[len(e.Hits)-1]
		h := last
		h.Seq, h.Path, h.Kind, h.Status, h.Gate = last.Seq+1, "/robots.txt", web.KindRobots, 200, time.Time{}
		h.Arrival = last.End.Add(after)
		h.End = h.Arrival.Add(10 * time.Millisecond)
		change(&h)
		e.Hits = append(e.Hits, h)
		e.Lives[0].To = h.End.Add(time.Second)
	}
	cases := map[string]struct {
		rule   judge.Rule
		doctor func(t *testing.T, e *judge.Evidence)
		detail string
	}{
		"a page was not given in full": {judge.RuleMissed, func(_ *testing.T, e *judge.Evidence) {
			i := slices.IndexFunc(e.Hits, kind(web.KindPage))
			e.Hits[i].Aborted = true
		}, "requested 1 times"},
		"a page is requested twice": {judge.RuleRepeated, func(_ *testing.T, e *judge.Evidence) {
			i := slices.IndexFunc(e.Hits, kind(web.KindPage))
			add(e, time.Second, func(h *web.Hit) { h.Path, h.Kind = e.Hits[i].Path, web.KindPage })
		}, "requested 2 times, explained are 1"},
		"a path is made up": {judge.RuleUnexpected, func(_ *testing.T, e *judge.Evidence) {
			add(e, time.Second, func(h *web.Hit) { h.Path, h.Kind, h.Status = "/made/up", web.KindUnknown, 404 })
		}, "nothing on the site names"},
		"more are in flight than the cap": {judge.RuleCap, func(_ *testing.T, e *judge.Evidence) {
			add(e, -time.Millisecond, func(*web.Hit) {})
		}, "up to 2 in flight, the cap is 1"},
		"a page is asked for that robots.txt forbids": {judge.RuleDisallowed, func(_ *testing.T, e *judge.Evidence) {
			for x := range e.Expected() {
				if !x.Allowed {
					add(e, time.Second, func(h *web.Hit) { h.Path, h.Kind = x.Path, web.KindPage })
					return
				}
			}
		}, "robots.txt forbids"},
		"a host is not left alone": {judge.RuleGate, func(_ *testing.T, e *judge.Evidence) {
			add(e, time.Second, func(h *web.Hit) { h.Gate = h.End.Add(2 * time.Second) })
			add(e, time.Second, func(*web.Hit) {})
		}, "started from 127.0.0.9 1s after the host told"},
		"the site sees nothing": {judge.RuleStall, func(_ *testing.T, e *judge.Evidence) {
			from := e.Hits[len(e.Hits)-1].End
			add(e, 30*time.Second, func(*web.Hit) {})
			for ms := 1000; ms < 29_000; ms += 2000 { // too seldom to tell a share
				s := e.Samples[0]
				s.At = from.Add(time.Duration(ms) * time.Millisecond)
				e.Samples = append(e.Samples, s)
			}
		}, "no start within 30.01s"},
		"the site sees too little": {judge.RuleStall, func(_ *testing.T, e *judge.Evidence) {
			from := e.Hits[len(e.Hits)-1].End.Add(5 * time.Second)
			for ms := 0; ms < 60_000; ms += 100 {
				if ms < 20_000 || ms > 30_000 {
					add(e, 0, func(h *web.Hit) {
						h.Arrival = from.Add(time.Duration(ms) * time.Millisecond)
						h.End = h.Arrival.Add(10 * time.Millisecond)
					})
				}
			}
			for ms := 0; ms < 60_000; ms += 500 {
				s := e.Samples[0]
				s.At = from.Add(time.Duration(ms) * time.Millisecond)
				e.Samples = append(e.Samples, s)
			}
		}, "are usual"},
		"a run is not done": {judge.RuleRun, func(_ *testing.T, e *judge.Evidence) { e.Stored[1].State = "crawling" }, "it is crawling"},
		"a run is gone":     {judge.RuleRun, func(_ *testing.T, e *judge.Evidence) { delete(e.Stored, 1) }, "not in the database"},
		"a run is done with work left": {judge.RuleRun, func(_ *testing.T, e *judge.Evidence) {
			change(e, func(u *judge.StoredURL) { *u = judge.StoredURL{Queued: 1} })
		}, "done with 1 URLs left"},
		"a URL is queued and finished": {judge.RuleLedger, func(_ *testing.T, e *judge.Evidence) {
			e.Stored[1].State = "done"
			change(e, func(u *judge.StoredURL) { u.Pages = 2 })
		}, "in 2 states at once"},
		"a URL was never discovered": {judge.RuleLedger, func(_ *testing.T, e *judge.Evidence) { delete(e.Stored[1].URLs, page(e)) }, "never discovered"},
		"a page failed that the site gives": {judge.RuleLedger, func(_ *testing.T, e *judge.Evidence) {
			change(e, func(u *judge.StoredURL) { u.State, u.Reason = 5, "timeout" })
		}, "it failed (timeout)"},
		"a page is excluded for nothing": {judge.RuleLedger, func(_ *testing.T, e *judge.Evidence) {
			change(e, func(u *judge.StoredURL) { u.State, u.Reason = 6, "trap" })
		}, "it is excluded (trap)"},
		"a page has another status": {judge.RuleLedger, func(_ *testing.T, e *judge.Evidence) {
			change(e, func(u *judge.StoredURL) { u.Status = 404 })
		}, "stored with status 404"},
		"a page was invented": {judge.RuleLedger, func(_ *testing.T, e *judge.Evidence) {
			e.Stored[1].URLs["http://127.0.0.1:8080/invented"] = judge.StoredURL{Pages: 1, State: 4, Status: 200}
		}, "never saw a request"},
		"a URL is stored twice": {judge.RuleLedger, func(_ *testing.T, e *judge.Evidence) { e.Stored[1].Repeated = []string{"http://x/"} }, "two URLs"},
		"a tenant has too many active runs": {judge.RuleTariff, func(_ *testing.T, e *judge.Evidence) {
			s := e.Samples[3]
			s.States = map[int64]string{1: "crawling", 2: "preparing"}
			s.Tenant = map[int64]string{1: "acme", 2: "acme"}
			e.Samples[3] = s
		}, "2 active runs, its tariff allows 1"},
		"a run has too many seats": {judge.RuleTariff, func(_ *testing.T, e *judge.Evidence) { e.Samples[3].Seats[1] = 4 }, "4 seats, allowed are 3"},
		"a node needs too much memory": {judge.RuleMemory, func(_ *testing.T, e *judge.Evidence) {
			e.Lives[0].PeakMemory = 200 << 20
		}, "200 MB resident"},
		"a node keeps connections open": {judge.RuleLeak, func(_ *testing.T, e *judge.Evidence) { e.Lives[0].Sockets = 51 }, "51 sockets"},
		"a node leaves goroutines": {judge.RuleLeak, func(t *testing.T, e *judge.Evidence) {
			logged(t, e, `{"time":"2030-01-01T00:00:09Z","level":"INFO","msg":"left over","goroutines":41}`)
		}, "41 goroutines"},
		"a node ends by itself":    {judge.RuleExit, func(_ *testing.T, e *judge.Evidence) { e.Lives[0].End = judge.EndItself }, "by itself"},
		"a node does not end well": {judge.RuleExit, func(_ *testing.T, e *judge.Evidence) { e.Lives[0].Exit = 1 }, "exit code 1"},
		"a node panics":            {judge.RuleLog, func(t *testing.T, e *judge.Evidence) { logged(t, e, "panic: oh\ngoroutine 1 [running]:\n") }, "panic: oh"},
		"a node logs an error":     {judge.RuleLog, func(t *testing.T, e *judge.Evidence) { logged(t, e, `{"level":"ERROR","msg":"run failed"}`) }, "run failed"},
		"the database refuses": {judge.RuleLog, func(t *testing.T, e *judge.Evidence) {
			logged(t, e, `{"level":"WARN","msg":"pick","err":"ERROR: dup (SQLSTATE 23505)"}`)
		}, "SQLSTATE 23505"},
		"the database is lost": {judge.RuleLog, func(t *testing.T, e *judge.Evidence) {
			logged(t, e, `{"level":"WARN","msg":"pick","err":"connection refused"}`)
		}, "connection refused"},
		"an older leader acts": {judge.RuleLeaders, func(_ *testing.T, e *judge.Evidence) {
			e.Acts = append(e.Acts, judge.Act{Node: "b", Epoch: 1, N: 6, What: "reap"})
		}, "under fence 1.6"},
		"two nodes act under one fence": {judge.RuleLeaders, func(_ *testing.T, e *judge.Evidence) {
			e.Acts = append(e.Acts, judge.Act{Node: "b", Epoch: 1, N: 7, What: "reap"})
		}, "under fence 1.7"},
		"the shared rate is not kept": {judge.RuleRate, func(_ *testing.T, e *judge.Evidence) { e.Ordered[0].PerSecond = 10 }, "starts within"},
		"a dead node's work comes back too late": {judge.RuleRecovery, func(_ *testing.T, e *judge.Evidence) {
			// The node is killed while the last page is in flight; another asks for it 30 s later.
			last := len(e.Hits) - 1
			e.Lives[0].To, e.Lives[0].End = e.Hits[last].Arrival.Add(time.Millisecond), judge.EndKilled
			again := e.Hits[last]
			again.Seq, again.Source = again.Seq+1, "127.0.0.10"
			again.Arrival, again.End = again.Arrival.Add(30*time.Second), again.End.Add(30*time.Second)
			e.Hits = append(e.Hits, again)
		}, "again after 29.999s, allowed are 20.3s"},
	}
	for _, rule := range judge.AllRules() {
		found := false
		for _, c := range cases {
			found = found || c.rule == rule
		}
		if !found {
			t.Errorf("nothing is doctored so that %q is violated", rule)
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := cleanEvidence(t)
			c.doctor(t, &e)
			vs := judge.Judge(e, terms).Violations
			if other := slices.IndexFunc(vs, func(v judge.Violation) bool { return v.Rule != c.rule }); len(vs) == 0 || other >= 0 ||
				len(vs) > 1 && c.rule != judge.RuleRate || !strings.Contains(vs[0].Detail, c.detail) {
				t.Fatalf("got %d violations, the first of them %v, want one of %q saying %q", len(vs), vs[:min(3, len(vs))], c.rule, c.detail)
			}
		})
	}
}

func TestFaultsExplain(t *testing.T) {
	kill := func(e *judge.Evidence, after time.Duration) {
		last := len(e.Hits) - 1
		e.Lives[0].To, e.Lives[0].End = e.Hits[last].Arrival.Add(time.Millisecond), judge.EndKilled
		again := e.Hits[last]
		again.Seq, again.Source = again.Seq+1, "127.0.0.10"
		again.Arrival, again.End = again.Arrival.Add(after), again.End.Add(after)
		e.Hits = append(e.Hits, again)
	}
	t.Run("what was in flight at a killed node is requested again", func(t *testing.T) {
		e := cleanEvidence(t)
		kill(&e, 10*time.Second)
		v := judge.Judge(e, terms)
		if len(v.Violations) != 0 || v.Figures.Repeats != 1 || v.Figures.Explained != 1 || v.Figures.Slowest != 10*time.Second-time.Millisecond {
			t.Errorf("got %v, %+v", v.Violations, v.Figures)
		}
	})
	t.Run("what had long been stored is not", func(t *testing.T) {
		e := cleanEvidence(t)
		i := slices.IndexFunc(e.Hits, kind(web.KindPage))
		again := e.Hits[i]
		kill(&e, 10*time.Second)
		last := e.Hits[len(e.Hits)-1]
		again.Seq, again.Arrival, again.End = last.Seq+1, last.End.Add(time.Second), last.End.Add(2*time.Second)
		e.Hits = append(e.Hits, again)
		if vs := judge.Judge(e, terms).Violations; len(vs) != 1 || vs[0].Rule != judge.RuleRepeated {
			t.Errorf("got %v, want one repeated", vs)
		}
	})
	t.Run("results that could not be stored are asked for again", func(t *testing.T) {
		for name, c := range map[string]struct {
			outage judge.Outage
			want   int
		}{
			"of this node":  {judge.Outage{Node: "a"}, 0},
			"of all nodes":  {judge.Outage{}, 0},
			"of other ones": {judge.Outage{Node: "b"}, 1},
		} {
			e := cleanEvidence(t)
			// A page in the middle, stored late: the node was off the database from then to shortly before it was killed.
			i := 0
			for j, h := range e.Hits[:len(e.Hits)-1] {
				if h.Kind == web.KindPage && h.End.Before(e.Hits[len(e.Hits)-1].Arrival.Add(-5*time.Second)) {
					i = j
				}
			}
			again := e.Hits[i]
			kill(&e, 10*time.Second)
			c.outage.From, c.outage.To = again.End.Add(-time.Millisecond), e.Lives[0].To.Add(-2*time.Second)
			last := e.Hits[len(e.Hits)-1]
			again.Seq, again.Source, again.Arrival, again.End = last.Seq+1, "127.0.0.10", last.End.Add(time.Second), last.End.Add(2*time.Second)
			e.Hits, e.Outages = append(e.Hits, again), []judge.Outage{c.outage}
			if vs := judge.Judge(e, terms).Violations; len(vs) != c.want || len(vs) > 0 && vs[0].Rule != judge.RuleRepeated {
				t.Errorf("an outage %s: got %v, want %d", name, vs, c.want)
			}
		}
	})
	t.Run("a pause ends early where a clock is fast, by as much", func(t *testing.T) {
		for drift, want := range map[float64]int{0: 1, 0.01: 1, 0.04: 0} {
			e := cleanEvidence(t)
			e.Lives[0].Drift = drift
			last := e.Hits[len(e.Hits)-1]
			asked := last
			asked.Seq, asked.Path, asked.Kind = last.Seq+1, "/robots.txt", web.KindRobots
			asked.Arrival, asked.End = last.End.Add(time.Second), last.End.Add(2*time.Second)
			asked.Gate = asked.End.Add(10 * time.Second)
			h := asked
			h.Seq, h.Gate, h.Arrival = asked.Seq+1, time.Time{}, asked.Gate.Add(-200*time.Millisecond)
			h.End = h.Arrival.Add(time.Millisecond)
			e.Hits, e.Lives[0].To = append(e.Hits, asked, h), h.End.Add(time.Second)
			if vs := judge.Judge(e, terms).Violations; len(vs) != want || want > 0 && vs[0].Rule != judge.RuleGate {
				t.Errorf("drift %v: got %v, want %d", drift, vs, want)
			}
		}
	})
	t.Run("who was off the database learns of no pause", func(t *testing.T) {
		for name, want := range map[string]int{"": 0, "a": 0, "b": 0, "c": 1} {
			e := cleanEvidence(t)
			other := e.Lives[0]
			other.Node, other.Source = "b", "127.0.0.10"
			last := e.Hits[len(e.Hits)-1]
			asked := last
			asked.Seq, asked.Path, asked.Kind = last.Seq+1, "/robots.txt", web.KindRobots
			asked.Arrival, asked.End = last.End.Add(time.Second), last.End.Add(2*time.Second)
			asked.Gate = asked.End.Add(10 * time.Second)
			h := asked
			h.Seq, h.Gate, h.Source = asked.Seq+1, time.Time{}, other.Source
			h.Arrival, h.End = asked.End.Add(4*time.Second), asked.End.Add(5*time.Second)
			e.Hits = append(e.Hits, asked, h)
			e.Lives[0].To, other.To = h.End.Add(time.Second), h.End.Add(time.Second)
			e.Lives = append(e.Lives, other)
			e.Outages = []judge.Outage{{Span: judge.Span{From: asked.End, To: h.Arrival}, Node: name}}
			if vs := judge.Judge(e, terms).Violations; len(vs) != want || want > 0 && vs[0].Rule != judge.RuleGate {
				t.Errorf("node %q off: got %v, want %d", name, vs, want)
			}
		}
	})
	t.Run("a harmed Redis explains what is said of it", func(t *testing.T) {
		e := cleanEvidence(t)
		e.Switches = []judge.Span{{From: epoch, To: epoch.Add(5 * time.Second)}}
		for _, err := range []string{"redis: connection refused", "connection refused"} {
			logged(t, &e, fmt.Sprintf(`{"time":"2030-01-01T00:00:02Z","level":"WARN","msg":"grant","err":%q}`, err))
		}
		if vs := judge.Judge(e, terms).Violations; len(vs) != 1 || vs[0].Rule != judge.RuleLog {
			t.Errorf("got %v, want the one that does not speak of Redis", vs)
		}
	})
	t.Run("a lost database explains lost connections, not a refused statement", func(t *testing.T) {
		e := cleanEvidence(t)
		e.Outages = []judge.Outage{{Span: judge.Span{From: epoch, To: epoch.Add(5 * time.Second)}}}
		for _, err := range []string{"connection refused", "ERROR: dup (SQLSTATE 23505)"} {
			logged(t, &e, fmt.Sprintf(`{"time":"2030-01-01T00:00:02Z","level":"WARN","msg":"pick","err":%q}`, err))
		}
		vs := judge.Judge(e, terms).Violations
		if len(vs) != 1 || !strings.Contains(vs[0].Detail, "23505") {
			t.Errorf("got %v, want the refused statement only", vs)
		}
	})
}

func TestStarved(t *testing.T) {
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	// A request each 100 ms for a minute, none within the span given.
	log := func(from, to int) (hits []web.Hit) {
		for ms := 0; ms < 60_000; ms += 100 {
			if ms < from || ms >= to {
				hits = append(hits, web.Hit{Seq: uint64(len(hits) + 1), Host: host, Path: "/", Arrival: at(ms), End: at(ms + 50)})
			}
		}
		return hits
	}
	var busy, idle []judge.Sample
	for ms := 0; ms < 60_000; ms += 500 {
		busy = append(busy, judge.Sample{At: at(ms), Ready: 100})
		idle = append(idle, judge.Sample{At: at(ms)})
	}
	two := func(death int) []judge.Life {
		lives := []judge.Life{{Node: "a", From: at(-1000)}, {Node: "b", From: at(-1000)}}
		if death > 0 {
			lives[1].To, lives[1].End = at(death), judge.EndKilled
		}
		return lives
	}
	for name, c := range map[string]struct {
		hits    []web.Hit
		lives   []judge.Life
		samples []judge.Sample
		stalls  []judge.Span
		want    int
	}{
		"steady work is well":                      {log(0, 0), two(0), busy, nil, 0},
		"ten silent seconds with work are not":     {log(20_000, 30_000), two(0), busy, nil, 1},
		"without work they are":                    {log(20_000, 30_000), two(0), idle, nil, 0},
		"and while nobody could work":              {log(20_000, 30_000), two(0), busy, []judge.Span{{From: at(20_000), To: at(30_000)}}, 0},
		"and while a dead node's work is not back": {log(20_000, 30_000), two(19_000), busy, nil, 0},
		"but not once it is":                       {log(45_000, 55_000), two(19_000), busy, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, vs := judge.Starved(c.hits, c.lives, c.samples, c.stalls, terms); len(vs) != c.want {
				t.Errorf("got %v, want %d", vs, c.want)
			}
		})
	}
}
