package crawl_test

import (
	"strings"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/storage"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// quietScene is a cluster of two nodes with two workers each and nothing to do.
func quietScene() *crawl.Scene {
	return &crawl.Scene{
		Now: noon, Gates: map[string]crawl.Wait{}, Bans: map[string]string{}, Slots: map[coord.Key]crawl.Usage{},
		Live: map[string]crawl.Session{
			"n1/1": {Node: "n1", Role: coord.RoleNode, Workers: 2}, "n2/1": {Node: "n2", Role: coord.RoleNode, Workers: 2},
		},
		Owners: map[string]crawl.OwnerLoad{},
	}
}

func waitingRun(state storage.RunState) storage.Waiting {
	return storage.Waiting{
		Run: storage.Run{
			ID: 7, Tenant: "acme", Site: "example.com", State: state, Spec: crawl.Spec{Seeds: []string{"https://example.com/"}, Profile: "gentle"}.Encode(),
		},
		Tariff: storage.Tariff{Name: "medium", Parallel: 3},
	}
}

func TestWhyARunWaits(t *testing.T) {
	until := noon.Add(4*time.Minute + 10*time.Second)
	for _, c := range []struct {
		name  string
		state storage.RunState
		set   func(*storage.Waiting, *crawl.Scene)
		want  string
		until time.Time
	}{
		{"an active run that is served goes on", storage.RunCrawling, func(w *storage.Waiting, _ *crawl.Scene) { w.Occupied = 1 }, "", time.Time{}},
		{"its tenant is suspended", storage.RunCrawling, func(w *storage.Waiting, _ *crawl.Scene) { w.Suspended = true }, "tenant acme is suspended", time.Time{}},
		{"the tariff is used up", storage.RunQueued, func(w *storage.Waiting, _ *crawl.Scene) { w.Active = 3 }, "tariff: 3 of 3 runs active", time.Time{}},
		{
			"older runs go first", storage.RunQueued, func(w *storage.Waiting, _ *crawl.Scene) { w.Active, w.Ahead = 1, 2 },
			"tariff: 2 runs of the tenant before it, 1 of 3 active", time.Time{},
		},
		{"a tariff without limits", storage.RunQueued, func(w *storage.Waiting, _ *crawl.Scene) {
			w.Tariff.Parallel, w.Active, w.Ahead = 0, 50, 9
		}, "next: a free worker takes it within seconds", time.Time{}},
		{"a host that asked to wait", storage.RunCrawling, func(w *storage.Waiting, s *crawl.Scene) {
			w.Occupied = 1
			s.Gates["example.com"] = crawl.Wait{Reason: "answered 429 and asked to wait", Until: until}
		}, "gate: example.com asked to wait (answered 429)", until},
		{"a host left alone", storage.RunCrawling, func(w *storage.Waiting, s *crawl.Scene) {
			s.Gates["example.com"] = crawl.Wait{Reason: "left alone for a while: timeouts", Until: until}
		}, "cooldown: example.com is left alone, timeouts", until},
		{"another host's gate does not matter", storage.RunCrawling, func(w *storage.Waiting, s *crawl.Scene) {
			w.Occupied = 1
			s.Gates["other.example"] = crawl.Wait{Reason: "answered 429 and asked to wait", Until: until}
		}, "", time.Time{}},
		{"a gate does not keep a run from finishing", storage.RunFinishing, func(w *storage.Waiting, s *crawl.Scene) {
			w.Occupied = 1
			s.Gates["example.com"] = crawl.Wait{Reason: "answered 429 and asked to wait", Until: until}
		}, "", time.Time{}},
		{"a banned host", storage.RunCrawling, func(_ *storage.Waiting, s *crawl.Scene) { s.Bans["example.com"] = "asked us" }, "example.com is banned: asked us", time.Time{}},
		{"no node", storage.RunCrawling, func(_ *storage.Waiting, s *crawl.Scene) { clear(s.Live) }, "no free worker: no node is running", time.Time{}},
		{"all workers busy", storage.RunQueued, func(_ *storage.Waiting, s *crawl.Scene) {
			s.Owners["n1/1"], s.Owners["n2/1"] = crawl.OwnerLoad{Seats: 3}, crawl.OwnerLoad{Seats: 2}
		}, "no free worker: 4 of 4 are busy", time.Time{}},
		{"a worker is free though another node's are not", storage.RunCrawling, func(_ *storage.Waiting, s *crawl.Scene) {
			s.Owners["n1/1"] = crawl.OwnerLoad{Seats: 9}
		}, "", time.Time{}},
		{"disks are full everywhere", storage.RunCrawling, func(w *storage.Waiting, s *crawl.Scene) {
			s.Live = map[string]crawl.Session{"n1/1": {Node: "n1", Role: coord.RoleNode, Workers: 1, Paused: "disk: 3 MB free"}}
		}, "no free worker: n1: disk: 3 MB free", time.Time{}},
		{"and where its worker waits for room", storage.RunCrawling, func(w *storage.Waiting, s *crawl.Scene) {
			w.Occupied = 1
			s.Live = map[string]crawl.Session{"n1/1": {Node: "n1", Role: coord.RoleNode, Workers: 1, Paused: "disk: 3 MB free"}}
		}, "disk: 3 MB free", time.Time{}},
		{"coordination changes hands", storage.RunCrawling, func(w *storage.Waiting, s *crawl.Scene) {
			w.Occupied, s.Halted = 1, "it changes hands (redis is gone)"
		}, "coordination: it changes hands (redis is gone)", time.Time{}},
		{"reserved for a node that is down", storage.RunQueued, func(w *storage.Waiting, _ *crawl.Scene) { w.Run.Home = "n9" }, "reserved for node n9, which is not running", time.Time{}},
		{"reserved for crawl", storage.RunCrawling, func(w *storage.Waiting, _ *crawl.Scene) { w.Run.Home = "crawl" }, "reserved: goes on with deepcrawl crawl --resume 7", time.Time{}},
		{"paused by hand", storage.RunPaused, func(w *storage.Waiting, _ *crawl.Scene) { w.Run.Reason = "paused by hand" }, "paused by hand", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, s := waitingRun(c.state), quietScene()
			c.set(&w, s)
			if got := s.WaitOf(w); got.Reason != c.want || !got.Until.Equal(c.until) {
				t.Errorf("got %q until %v, want %q until %v", got.Reason, got.Until, c.want, c.until)
			}
		})
	}
}

func clueText(clues []crawl.Clue) string {
	var b strings.Builder
	for _, c := range clues {
		if c.Holds {
			b.WriteString("> ")
		}
		b.WriteString(c.Topic + ": " + c.Text + "\n")
	}
	return b.String()
}

func TestWhyTracesARun(t *testing.T) {
	w, s := waitingRun(storage.RunCrawling), quietScene()
	w.Occupied, w.Allowed, w.Active = 1, 2, 1
	w.Tariff.RunPages, w.Tariff.StoredPages = 1000, 5000
	s.Slots[coord.HostKey("example.com")] = crawl.Usage{Taken: 24, Cap: 24}
	s.Slots[coord.RunKey(7)] = crawl.Usage{Taken: 2, Cap: 2}
	s.Gates["shop.example.com"] = crawl.Wait{Reason: "left alone for a while: errors"}
	got := clueText(s.WhyRun(crawl.RunFacts{
		Waiting: w, Ledger: storage.Ledger{Discovered: 60, Fetched: 40, Queued: 18, Claimed: 2},
		Ready: storage.RunReady{Hosts: []string{"shop.example.com"}}, Stored: 4000,
	}))
	for _, want := range []string{
		"run: run 7 of example.com is crawling\n", "waits: for nothing: it goes on\n", "tenant: acme is served\n",
		"tariff: medium: 1 of 3 runs active, 40 of 1000 pages of the run, 4000 of 5000 pages stored\n", "seats: 1 of 2 taken by workers\n",
		"> gate: cooldown: shop.example.com is left alone, errors; deepcrawl host clear shop.example.com lifts it\n",
		"> slots: example.com has 24 of 24, over all runs and nodes\n", "rate: profile gentle: 1 a second and 2 at a time, over all nodes\n",
		"slots: the run has 2 of 2\n", "frontier: 18 queued, 2 claimed, 0 delayed of 60 discovered\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestWhyAURLWaits(t *testing.T) {
	row := func(state storage.State, reason storage.Reason) storage.URLWait {
		return storage.URLWait{Ahead: -1, PageRow: storage.PageRow{
			Host: "example.com", Priority: 200, FetchedAt: noon, PageResult: storage.PageResult{State: state, Reason: reason, Attempts: 2, Status: 404},
		}}
	}
	for _, c := range []struct {
		name string
		url  func() storage.URLWait
		set  func(*crawl.Scene)
		want string
	}{
		{"queued behind others", func() storage.URLWait { u := row(storage.Queued, ""); u.Ahead = 3; return u }, nil, "url: queued: 3 URLs of example.com before it, priority 200\n"},
		{"queued at a banned host", func() storage.URLWait { u := row(storage.Queued, ""); u.Ahead = 0; return u }, func(s *crawl.Scene) { s.Bans["example.com"] = "" }, "> ban: example.com is banned\n"},
		{"claimed by a live session", func() storage.URLWait { u := row(storage.Claimed, ""); u.Owner = "n1/1"; return u }, nil, "url: claimed by session n1/1 (last heard of 0s ago): requested, or about to be\n"},
		{"claimed by a dead one", func() storage.URLWait { u := row(storage.Claimed, ""); u.Owner = "n1/0"; return u }, nil, "> url: claimed by session n1/0, which is over"},
		{"delayed", func() storage.URLWait { return row(storage.Delayed, crawl.ReasonRateLimited) }, nil, "> url: delayed after 2 attempts (its host asked to wait): tried again soon\n"},
		{"fetched", func() storage.URLWait { return row(storage.Fetched, "") }, nil, "status 404\n"},
		{"failed", func() storage.URLWait { return row(storage.Failed, "timeout") }, nil, "url: failed after 2 attempts: timeout\n"},
		{"excluded", func() storage.URLWait { return row(storage.Excluded, crawl.ReasonRobots) }, nil, "url: excluded: robots.txt disallows it\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := quietScene()
			if c.set != nil {
				c.set(s)
			}
			w := waitingRun(storage.RunCrawling)
			w.Occupied = 1
			if got := clueText(s.WhyURL(c.url(), w)); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestFindAURLOfARun(t *testing.T) {
	spec := crawl.Spec{Seeds: []string{"https://example.com/"}, Exclude: []string{"/private"}}
	a, err := spec.Find("HTTPS://www.Example.com:443/a?utm_source=x")
	if err != nil {
		t.Fatal(err)
	}
	b, err := spec.Find("https://www.example.com/a")
	if err != nil || a != b || a.Host != "example.com" || a.Outside != "" {
		t.Errorf("got %+v and %+v, %v", a, b, err)
	}
	if p, err := spec.Find("https://example.com/private/x"); err != nil || p.Outside == "" {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := spec.Find("mailto:x@example.com"); err == nil {
		t.Error("no error")
	}
}
