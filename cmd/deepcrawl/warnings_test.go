package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/storage"
)

func liveNode(id string, facts map[string]string) coord.SessionInfo {
	return coord.SessionInfo{
		SessionState: coord.SessionState{Member: coord.Member{Node: coord.NodeID(id), Incarnation: 1}, State: coord.Live}, Role: coord.RoleNode, Facts: facts,
	}
}

func nodeFactsOf(workers, runWorkers, hostCap, version string) map[string]string {
	return map[string]string{factWorkers: workers, factRunWorkers: runWorkers, factCap: hostCap, factVersion: version}
}

func TestWarnings(t *testing.T) {
	crawling := storage.Waiting{Run: storage.Run{ID: 1, State: storage.RunCrawling, Tenant: "t", Site: "example.com"}, Occupied: 1}
	well := func() *seen {
		a := liveNode("n1", nodeFactsOf("4", "12", "24", "1.0"))
		return &seen{
			at: time.Now(), auth: coord.Authority{Mode: coord.ModeDB, Epoch: 1}, leader: coord.Held{Member: a.Member}, runs: []storage.Waiting{crawling},
			sessions: []coord.SessionInfo{a, liveNode("n2", nodeFactsOf("4", "12", "24", "1.0")), liveNode("n3", nodeFactsOf("4", "12", "24", "1.0"))},
		}
	}
	for _, c := range []struct {
		name string
		set  func(*seen)
		code string
		text string
	}{
		{"all is well", func(*seen) {}, "", ""},
		{"nobody there", func(s *seen) { s.sessions = nil }, warnNoNode, "no node is running, and 1 run waits"},
		{"no leader", func(s *seen) { s.leader = coord.Held{} }, warnNoLeader, "no node leads"},
		{"a silent node", func(s *seen) { s.sessions[1].Age = 40 * time.Second }, warnSilent, "node n2/1 has not been heard of for 40s"},
		{"caps differ", func(s *seen) { s.sessions[2].Facts[factCap] = "10" }, warnCaps, "DEEPCRAWL_HOST_INFLIGHT differs (10 on n3, 24 on n1 and n2)"},
		{"versions differ", func(s *seen) { s.sessions[0].Facts[factVersion] = "1.1" }, warnVersions, "(1.0 on n2 and n3, 1.1 on n1)"},
		{"run workers leave nodes idle", func(s *seen) {
			for i := range s.sessions {
				s.sessions[i].Facts[factRunWorkers] = "4"
			}
		}, warnRunWorkers, "DEEPCRAWL_RUN_WORKERS is 4 while the nodes have 12 workers: with 1 active run 8 of them are idle; 12 on every node"},
		{"late writes", func(s *seen) { s.sessions[0].Facts[factLate] = "7" }, warnLate, "7 late results refused"},
		{"a full disk", func(s *seen) { s.sessions[0].Facts[factPaused] = "disk: 3 MB free" }, warnPaused, "node n1 begins no work: disk: 3 MB free"},
		{"a drain", func(s *seen) { s.auth.Mode, s.auth.ChangedAt = coord.ModeDrain, 1 }, warnDrain, "coordination changes hands"},
		{"a node without Redis", func(s *seen) {
			for i := range s.sessions {
				s.sessions[i].Redis = coord.Health{Configured: true, Usable: i != 1, For: time.Minute}
			}
			s.auth.Mode = coord.ModeRedis
		}, warnRedis, "Redis is not reached by 1 of 3 nodes (n2): coordination moves to the database when most nodes do not"},
		{"no node with Redis", func(s *seen) {
			for i := range s.sessions[:2] {
				s.sessions[i].Redis = coord.Health{Configured: true, For: time.Minute}
			}
		}, warnRedis, "Redis is not reached by 2 of 2 nodes (n1, n2): the database coordinates meanwhile"},
		{"a node that still looks for Redis", func(s *seen) { s.sessions[0].Redis = coord.Health{Configured: true, For: time.Second} }, "", ""},
		{"starved runs", func(s *seen) { s.sessions[0].Facts[factFair] = "0.512 3 4,9" }, warnStarved, "last minute: 4,9"},
		{"more runs than are shown", func(s *seen) { s.runs = slices.Repeat(s.runs, unfinishedShown) }, warnMany, "only the oldest 1000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := well()
			c.set(s)
			got := s.status(false).Warnings
			if c.code == "" {
				if len(got) != 0 {
					t.Errorf("got %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Code != c.code || !strings.Contains(got[0].Text, c.text) {
				t.Errorf("got %+v, want %s: %s", got, c.code, c.text)
			}
		})
	}
}

func TestStatusFigures(t *testing.T) {
	a := liveNode("n1", map[string]string{factDwell: "3 100 900 2000", factFair: "0.987 12 "})
	b := liveNode("n2", map[string]string{factDwell: "2 300 400 500", factFair: "0.1 1 5"}) // a past leader's
	s := &seen{
		at: time.Now(), sessions: []coord.SessionInfo{a, b}, leader: coord.Held{Member: a.Member},
		slots: []coord.Slot{{Key: "host:example.com", N: 1, Cap: 24}, {Key: "host:example.com", N: 2, Cap: 10}, {Key: "run:3", N: 1, Cap: 8}},
		runs: []storage.Waiting{
			{Run: storage.Run{ID: 3, State: storage.RunCrawling, Site: "example.com"}, Occupied: 1},
			{Run: storage.Run{ID: 4, State: storage.RunCrawling, Site: "other.example"}, Served: time.Now().Add(-9 * time.Second)},
		},
	}
	st := s.status(true)
	if f := st.Fairness; f.Jain != 0.987 || f.Runs != 12 || f.Starved != "" || f.GapRun != 4 || f.LongestGap < 8.9 || f.LongestGap > 60 {
		t.Errorf("got %+v", f)
	}
	if d := st.Fairness.Dwell; d.N != 5 || d.P50 != 0.3 || d.P95 != 0.9 || d.Max != 2 {
		t.Errorf("got %+v, want the worst of the nodes", d)
	}
	if len(st.Hosts) != 1 || st.Hosts[0] != (hostSlots{Host: "example.com", Slots: 2, Cap: 10}) {
		t.Errorf("got %+v, want 2 slots of the smallest cap", st.Hosts)
	}
	if len(st.Active) != 2 || st.Active[0].Slots != 1 || len(st.Sessions) != 2 {
		t.Errorf("got %+v", st)
	}
}

func TestOperationsPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "## Warnings\n")
	if !ok {
		t.Fatal("the page has no warnings")
	}
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		told = append(told, m[1])
	}
	if !slices.Equal(slices.Sorted(slices.Values(told)), slices.Sorted(slices.Values(warningCodes()))) {
		t.Errorf("the page tells %v, there are %v", told, warningCodes())
	}
}
