package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/internal/config"
	"deepcrawl/internal/testenv"
	"deepcrawl/soak/web"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// databases are the kinds a cluster runs on.
func databases() map[string]func(testing.TB) string {
	return map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "deepcrawl.db") },
		"PostgreSQL": testenv.Postgres,
		"MariaDB":    testenv.MySQL,
	}
}

// clusterOf reads cluster status --json.
func clusterOf(t *testing.T, db string, args ...string) (s status) {
	t.Helper()
	p := deepcrawl(t, t.TempDir(), exitOK, append([]string{"cluster", "status", "--json", "--db", db}, args...)...)
	if err := json.Unmarshal([]byte(p.out.String()), &s); err != nil {
		t.Fatalf("%v in %s", err, p.out.String())
	}
	return s
}

func TestClusterCheck(t *testing.T) {
	for name, make := range databases() {
		t.Run(name+": everything is tried, nothing is left", func(t *testing.T) {
			t.Parallel()
			db := make(t)
			dir := t.TempDir()
			deepcrawl(t, dir, exitOK, "migrate", "--db", db)
			p := deepcrawl(t, dir, exitOK, "cluster", "check", "--json", "--db", db)
			var lines []checkLine
			if err := json.Unmarshal([]byte(p.out.String()), &lines); err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, l := range lines {
				seen[l.Check] = true
				if l.State != checkOK {
					t.Errorf("%s: %s: %s", l.Check, l.State, l.Detail)
				}
			}
			for _, want := range []string{
				"schema", "clock", "sessions", "beat", "lease: taken", "lease: refused to a second", "lease: expires", "lease: past holder is fenced",
				"slots: to the cap", "slots: not beyond", "gate", "rate", "run: written", "claim: each URL once", "claim: late write refused",
				"claim: written and read", "fence: past leader refused", "nodes", "clean-up",
			} {
				if !seen[want] {
					t.Errorf("%s was not tried", want)
				}
			}
			s := clusterOf(t, db, "--sessions")
			if len(s.Active)+len(s.Waiting)+len(s.Hosts)+len(s.Gates) != 0 {
				t.Errorf("left over: %+v", s)
			}
			for _, i := range s.Sessions {
				if i.State != coord.Left {
					t.Errorf("session %s is %s", i.Session, i.State)
				}
			}
			if out := deepcrawl(t, dir, exitOK, "tenant", "list", "--json", "--db", db).out.String(); strings.Contains(out, "check-") {
				t.Errorf("tenants left: %s", out)
			}
		})
	}
}

func TestClusterCheckWithoutADatabase(t *testing.T) {
	p := deepcrawl(t, t.TempDir(), exitFailed, "cluster", "check", "--db", "postgres://nobody@127.0.0.1:1/none")
	if out := p.out.String(); !strings.HasPrefix(out, "failed   database ") || !strings.Contains(out, "connection refused") || !strings.Contains(out, "see that the address is right") {
		t.Errorf("got %s", out)
	}
	oneLine(t, p.err.String(), "1 check failed")
}

// faultyStore hands out a URL twice, as a database whose locks do not work would.
type faultyStore struct {
	storage.Store
	first []storage.Claim
}

func (s *faultyStore) Claim(ctx context.Context, owner storage.Owner, reqs []storage.ClaimRequest) ([]storage.Claim, error) {
	if s.first != nil {
		return s.first, nil
	}
	got, err := s.Store.Claim(ctx, owner, reqs)
	s.first = got
	return got, err
}

// faultyCoord gives every lease, and no view of gates.
type faultyCoord struct {
	coord.Coord
}

func (c faultyCoord) Pause(context.Context, coord.GateWrite) (coord.Gate, error) {
	return coord.Gate{}, coord.ErrUnavailable
}

func TestClusterCheckFinds(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "deepcrawl.db")
	st, err := sqlstore.Open(t.Context(), db, sqlstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	co, err := sqlcoord.Open(t.Context(), db, sqlcoord.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer co.Close()
	run := func(st storage.Store, co coord.Coord) (*checker, string) {
		var out bytes.Buffer
		k := &checker{
			opened: opened{cfg: &config.Config{DB: db, Reclaim: 120 * time.Second}, store: st, coord: co}, ctx: t.Context(),
			p: &program{stdout: &out, now: time.Now, version: "test"}, name: string(randomName("check")), timing: coord.DefaultTiming(),
		}
		k.key = coord.HostKey(k.name + ".invalid")
		k.all()
		return k, out.String()
	}
	t.Run("a URL claimed twice is found, told with what to do, and cleaned up", func(t *testing.T) {
		k, out := run(&faultyStore{Store: st}, co)
		if k.failed != 1 || !strings.Contains(out, "failed   claim: each URL once") || !strings.Contains(out, "stop the nodes and report it") {
			t.Errorf("%d failed:\n%s", k.failed, out)
		}
		if !strings.Contains(out, "skipped  claim: written and read") {
			t.Errorf("what builds on it was not skipped:\n%s", out)
		}
		if _, _, err := st.Tenant(t.Context(), k.name); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("the tenant is left: %v", err)
		}
	})
	t.Run("a gate that is not stored is found", func(t *testing.T) {
		k, out := run(st, faultyCoord{co})
		if k.failed != 1 || !strings.Contains(out, "failed   gate") {
			t.Errorf("%d failed:\n%s", k.failed, out)
		}
	})
}

// quiet waits until a count has not grown for two seconds, and returns how long that took, those two not counted.
func quiet(t *testing.T, count func() int) time.Duration {
	t.Helper()
	const still = 2 * time.Second
	began := time.Now()
	last, since := count(), began
	await(t, "an end of requests", func() bool {
		if n := count(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) >= still
	})
	return since.Sub(began)
}

// soon is what operators are promised, with room for a busy machine.
const soon = 8 * time.Second

func TestOperatorsSteerRunningNodes(t *testing.T) {
	slow := func(t *testing.T, seed uint64) (*web.Site, string) {
		s, urls, _ := webSite(t, web.Config{Seed: seed, Pages: 5000, PageBytes: 1000, Latency: 20 * time.Millisecond})
		return s, urls[0]
	}
	cluster := func(t *testing.T, db string, nodes ...string) (do func(args ...string) string, stop func()) {
		dir := t.TempDir()
		do = func(args ...string) string {
			t.Helper()
			return deepcrawl(t, dir, exitOK, append(args, "--db", db)...).out.String()
		}
		do("migrate")
		var running []*proc
		for _, id := range nodes {
			running = append(running, start(t, dir, "node", "--db", db, "--node-id", id, "--workers", "2", "--run-workers", "4", "--forever"))
		}
		return do, func() {
			for _, p := range running {
				send(t, p, syscall.SIGTERM)
			}
			for _, p := range running {
				if code := p.end(t); code != exitOK {
					t.Errorf("a node ended with %d: %s", code, p.err.String())
				}
			}
		}
	}
	t.Run("a suspended tenant's run stops within seconds, and goes on when it is served again", func(t *testing.T) {
		t.Parallel()
		site, url := slow(t, 21)
		db := "sqlite:" + filepath.Join(t.TempDir(), "deepcrawl.db")
		do, stop := cluster(t, db, "a", "b")
		defer stop()
		do("tenant", "add", "acme", "--tariff", "large")
		do("run", "add", url, "--tenant", "acme")
		await(t, "requests", func() bool { return site.Requests() > 50 })
		do("tenant", "suspend", "acme")
		if took := quiet(t, site.Requests); took > soon {
			t.Errorf("requests for %v after it was suspended", took)
		}
		if n := site.Requests(); n >= 5000 {
			t.Fatalf("all %d requests were made: nothing to see", n)
		}
		if out := do("run", "why", "1"); !strings.Contains(out, "> waits     tenant acme is suspended") {
			t.Errorf("got %s", out)
		}
		before := site.Requests()
		do("tenant", "resume", "acme")
		await(t, "requests again", func() bool { return site.Requests() > before+20 })
		s := clusterOf(t, db)
		if len(s.Nodes) != 2 || s.Leader == "" || len(s.Active) != 1 || s.Active[0].Reason != "" || s.Nodes[0].Version == "" {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("a ban ends requests within seconds; the URLs are excluded for it", func(t *testing.T) {
		t.Parallel()
		site, url := slow(t, 22)
		db := "sqlite:" + filepath.Join(t.TempDir(), "deepcrawl.db")
		do, stop := cluster(t, db, "a", "b")
		defer stop()
		do("run", "add", url)
		await(t, "requests", func() bool { return site.Requests() > 50 })
		do("host", "ban", url, "--reason", "they asked us")
		if took := quiet(t, site.Requests); took > soon {
			t.Errorf("requests for %v after the ban", took)
		}
		var run []runRow
		await(t, "the end of the run", func() bool {
			run = nil
			if err := json.Unmarshal([]byte(do("run", "list", "--json")), &run); err != nil {
				t.Fatal(err)
			}
			return run[0].State == storage.RunDone
		})
		out := do("run", "show", "1", "--json")
		var d runDetail
		if err := json.Unmarshal([]byte(out), &d); err != nil || d.ByReason["banned"] == 0 || d.Discovered != d.Fetched+d.Failed+d.Excluded {
			t.Errorf("%v: got %s", err, out)
		}
	})
	t.Run("the URLs of a banned host are excluded many at a time", func(t *testing.T) {
		t.Parallel()
		const pages = 20_000
		site, urls, _ := webSite(t, web.Config{Seed: 25, Pages: pages, PageBytes: 500, Sitemap: true, SitemapEntries: 5000})
		db := "sqlite:" + filepath.Join(t.TempDir(), "deepcrawl.db")
		do, stop := cluster(t, db, "a")
		defer stop()
		do("run", "add", urls[0], "--profile", "gentle")
		await(t, "a request for a page", func() bool { return site.Requests() > 8 })
		do("host", "ban", urls[0])
		began := time.Now()
		await(t, "the end of the run", func() bool { return strings.Contains(do("run", "list", "--json"), `"state": "done"`) })
		took := time.Since(began)
		t.Logf("%d URLs were excluded in %v", pages, took)
		if took > 30*time.Second {
			t.Errorf("it took %v", took)
		}
		if n := site.Requests(); n > pages/2 {
			t.Errorf("%d requests", n)
		}
	})
	t.Run("a changed tariff takes effect on running crawls", func(t *testing.T) {
		t.Parallel()
		_, first := slow(t, 23)
		_, second := slow(t, 24)
		db := testenv.Postgres(t)
		do, stop := cluster(t, db, "a", "b")
		defer stop()
		do("tariff", "set", "gold", "--deep-parallel", "1", "--deep-workers", "1")
		do("tenant", "add", "acme", "--tariff", "gold")
		do("run", "add", first, "--tenant", "acme")
		do("run", "add", second, "--tenant", "acme")
		await(t, "the first run with one seat", func() bool {
			s := clusterOf(t, db)
			return len(s.Active) == 1 && s.Active[0].Seats == 1 && len(s.Waiting) == 1 && s.Waiting[0].Reason == "tariff: 1 of 1 runs active"
		})
		began := time.Now()
		do("tariff", "set", "gold", "--deep-workers", "3")
		await(t, "three seats", func() bool { s := clusterOf(t, db); return s.Active[0].Seats == 3 })
		do("tariff", "set", "gold", "--deep-parallel", "2")
		await(t, "the second run", func() bool {
			s := clusterOf(t, db)
			return len(s.Active) == 2 && s.Active[0].Seats > 0 && s.Active[1].Seats > 0
		})
		if took := time.Since(began); took > 2*soon {
			t.Errorf("took %v", took)
		}
		do("tariff", "set", "gold", "--run-pages", "1")
		await(t, "the end of both at the new limit", func() bool { return strings.Count(do("run", "list", "--json"), `"state": "done"`) == 2 })
		if out := do("run", "list"); strings.Count(out, "tariff gold: 1 pages a run") != 2 {
			t.Errorf("got %s", out)
		}
	})
}

func TestNodeMetrics(t *testing.T) {
	t.Parallel()
	site, urls, _ := webSite(t, web.Config{Seed: 31, Pages: 200, PageBytes: 1000, Latency: 5 * time.Millisecond, Errors: web.ErrorMix{NotFound: 0.1}})
	dir := t.TempDir()
	deepcrawl(t, dir, exitOK, "migrate")
	deepcrawl(t, dir, exitOK, "run", "add", urls[0])
	p := start(t, dir, "node", "--metrics-addr", "127.0.0.1:0", "--forever", "--node-id", "m1", "--log", "info")
	await(t, "the run's end", func() bool {
		return strings.Contains(deepcrawl(t, dir, exitOK, "run", "list", "--json").out.String(), `"done"`)
	})
	_, rest, ok := strings.Cut(p.err.String(), "msg=metrics addr=")
	if !ok {
		t.Fatalf("the log names no address: %s", p.err.String())
	}
	base := "http://" + strings.Fields(rest)[0]
	get := func(path string) string {
		t.Helper()
		resp, err := http.Get(base + path) //nolint:noctx // a test's request to its own process
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d, %v", path, resp.StatusCode, err)
		}
		return string(b)
	}
	t.Run("figures of the crawl, of coordination and of the node", func(t *testing.T) {
		text := get("/metrics")
		for _, want := range []string{
			`deepcrawl_pages_total{state="fetched"} 200`, `deepcrawl_coordination_mode{mode="db"} 1`, "deepcrawl_coordination_epoch 1", "deepcrawl_leader 1",
			"deepcrawl_joined 1", "deepcrawl_late_writes_refused_total 0", `deepcrawl_store_call_seconds_count{op="claim"}`,
			`deepcrawl_store_call_seconds_count{op="finish"}`, "deepcrawl_dwell_seconds_count", "deepcrawl_slots_held", `deepcrawl_queue_size{queue="claimed"} 0`,
			"deepcrawl_bytes_total", "go_goroutines",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s", want)
			}
		}
		if strings.Contains(text, "127.0.0.1") {
			t.Error("a host is in a label")
		}
	})
	t.Run("profiles on the same address", func(t *testing.T) {
		if text := get("/debug/pprof/goroutine?debug=1"); !strings.Contains(text, "deepcrawl/crawl") {
			t.Error("no goroutine of the engine")
		}
	})
	t.Run("an address that is taken is one line", func(t *testing.T) {
		other := deepcrawl(t, t.TempDir(), exitOK, "migrate")
		q := deepcrawl(t, other.Dir, exitUsage, "node", "--metrics-addr", strings.TrimPrefix(base, "http://"))
		oneLine(t, q.err.String(), "--metrics-addr", "address already in use", "allowed: a free HOST:PORT")
	})
	if site.Requests() < 200 {
		t.Errorf("only %d requests", site.Requests())
	}
}
