package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
	"deepcrawl/soak"
)

// soakFor makes one soak by the command and fails the test on any violation.
func soakFor(t *testing.T, args ...string) *soak.Result {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // so that the soak's own folder is seen to be gone
	limit := 80 * time.Second
	if i := slices.Index(args, "--timeout"); i >= 0 {
		limit, _ = time.ParseDuration(args[i+1]) // the command says what is wrong with it
	}
	p := start(t, dir, append([]string{"cluster", "soak", "--port", "0", "--json", "--timeout", limit.String(), "-o", filepath.Join(dir, "report.html")}, args...)...)
	code := p.endWithin(t, limit+time.Minute)
	var res soak.Result
	if err := json.Unmarshal([]byte(p.out.String()), &res); err != nil {
		t.Fatalf("exit code %d, output is no JSON (%v): %q; stderr: %s", code, err, p.out.String(), p.err.String())
	}
	for i, v := range res.Violations {
		if i < 10 {
			t.Errorf("%s: %s%s (%s): %s", v.Rule, v.Host, v.Path, v.Agent, v.Detail)
		}
	}
	if want := map[bool]int{true: exitOK, false: exitFailed}[res.OK]; code != want {
		t.Errorf("got exit code %d, want %d; stderr: %s", code, want, p.err.String())
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(page), "<svg") || strings.Contains(string(page), "src=") {
		t.Errorf("the report is no page of its own with a picture (%v)", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "deepcrawl-soak-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	f := res.Figures
	t.Logf("%d pages, %.1f s, peak %v of %d, %d repeats (%d explained), faults %v, slowest recovery %.1f s", f.Pages, f.Seconds, f.PeakInFlight, f.Cap, f.Repeats, f.Explained, f.FaultsByKind, f.Slowest)
	return &res
}

func TestSoak(t *testing.T) {
	t.Run("three nodes on SQLite are polite and lose nothing", func(t *testing.T) {
		res := soakFor(t, "--pages", "160")
		if res.Figures.Pages < 3*160 {
			t.Errorf("got %d pages, want at least 480", res.Figures.Pages)
		}
	})
	t.Run("nodes on PostgreSQL are killed and started again, and Redis is lost", func(t *testing.T) {
		res := soakFor(t, "--db", testenv.Postgres(t), "--coord", "redis", "--kill", "3", "--chaos", "redis-kill", "--latency", "40", "--pages", "120", "--seed", "2")
		if f := res.Figures; f.FaultsByKind["kill"] == 0 || f.FaultsByKind["redis-kill"] == 0 {
			t.Errorf("got %v, want nodes and Redis killed", f.FaultsByKind)
		}
		for _, mode := range []string{"redis", "db"} {
			if !slices.Contains(res.Figures.Modes, mode) {
				t.Errorf("coordination was never on %s: %v", mode, res.Figures.Modes)
			}
		}
	})
	t.Run("nodes on MariaDB are killed and started again", func(t *testing.T) {
		res := soakFor(t, "--db", testenv.MySQL(t), "--kill", "5", "--latency", "40", "--pages", "100", "--seed", "3")
		if res.Figures.FaultsByKind["kill"] == 0 {
			t.Error("no node was killed")
		}
	})
	t.Run("a node is frozen past every lease and wakes again", func(t *testing.T) {
		res := soakFor(t, "--chaos", "stop", "--runs", "2", "--latency", "100", "--pages", "140", "--seed", "4")
		if res.Figures.FaultsByKind["stop"] == 0 {
			t.Error("no node was frozen")
		}
	})
}

// What a soak finds when a setting of the nodes is wrong, and nothing else.
func TestSoakFindsAWrongSetting(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	p := start(t, dir, "cluster", "soak", "--port", "0", "--json", "--runs", "2", "--pages", "60", "--latency", "150", "--host-cap", "2", "--node-env", "DEEPCRAWL_HOST_INFLIGHT=5")
	code := p.endWithin(t, 2*time.Minute)
	var res soak.Result
	if err := json.Unmarshal([]byte(p.out.String()), &res); err != nil {
		t.Fatalf("exit code %d, output is no JSON (%v): %q; stderr: %s", code, err, p.out.String(), p.err.String())
	}
	if code != exitFailed || res.OK || len(res.Violations) == 0 {
		t.Errorf("got exit code %d, %d violations", code, len(res.Violations))
	}
	for _, v := range res.Violations {
		if v.Rule != "cap" {
			t.Errorf("got %s: %s, want violations of the cap only", v.Rule, v.Detail)
		}
	}
}

// Ctrl-C in the middle leaves nothing of the soak behind: no folder, no process, no schema, no key.
func TestSoakInterrupted(t *testing.T) {
	pg, cache := testenv.PrivatePostgres(t), testenv.PrivateRedis(t) // of the test's own, so that all that is there is the soak's
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	p := start(t, dir, "cluster", "soak", "--port", "0", "--db", pg.DSN(), "--coord", "redis", "--redis", cache.DSN(), "--pages", "2000", "--chaos", "db-partition")
	await(t, "the crawl to begin", func() bool { return strings.Contains(p.err.String(), "crawling:") })
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.endWithin(t, time.Minute); code != exitInterrupted {
		t.Errorf("got exit code %d, want %d; stderr: %s", code, exitInterrupted, p.err.String())
	}
	if left, err := filepath.Glob(filepath.Join(dir, "deepcrawl-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	db, err := sqldb.Open(t.Context(), pg.DSN(), sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(t.Context(), func(tx *sqldb.Tx) error {
		tx.Query(sqldb.Postgres.Statement("SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'dct%'"), func(r *sqldb.Row) error {
			t.Errorf("left behind: schema %s", r.Text(0))
			return nil
		})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	opt, err := redis.ParseURL(cache.DSN())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(opt)
	defer client.Close()
	if keys, err := client.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("left behind: keys %v (%v)", keys, err)
	}
}

func TestSoakRefuses(t *testing.T) {
	t.Run("a port in use", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		p := deepcrawl(t, t.TempDir(), exitFailed, "cluster", "soak", "--port", port)
		oneLine(t, p.err.String(), "--port: "+port+" is in use", "allowed")
	})
	for name, args := range map[string][]string{
		"a fault nobody knows":                {"--chaos", "kill,flood"},
		"a database nobody knows":             {"--db", "oracle"},
		"a coordinator nobody knows":          {"--coord", "paxos"},
		"harming a database of the operator":  {"--chaos", "db-restart", "--db", "postgres://someone@db.example/x"},
		"harming a Redis of the operator":     {"--chaos", "redis-kill", "--coord", "redis", "--redis", "redis://cache.example/1"},
		"a fault of Redis without Redis":      {"--chaos", "redis-flush"},
		"a fault of a server on SQLite":       {"--chaos", "kill,db-partition"},
		"a proxy on a way that is verified":   {"--chaos", "db-partition", "--db", "postgres://someone@db.example/x?sslmode=verify-full"},
		"no nodes":                            {"--nodes", "0"},
		"a latency near the deadline":         {"--latency", "4000"},
		"killing the only node for good":      {"--no-restart", "--nodes", "1", "--kill", "3"},
		"a pause of no length between deaths": {"--kill", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := deepcrawl(t, t.TempDir(), exitUsage, append([]string{"cluster", "soak"}, args...)...)
			oneLine(t, p.err.String(), args[0], "allowed")
		})
	}
}
