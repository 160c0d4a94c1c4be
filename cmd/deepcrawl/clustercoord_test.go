package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/internal/testenv"
)

func TestClusterCoord(t *testing.T) {
	t.Parallel()
	server := testenv.PrivateRedis(t)
	dir := t.TempDir()
	db := "sqlite:" + filepath.Join(dir, "deepcrawl.db")
	with := func(args ...string) []string {
		return append(args, "--db", db, "--coord", "redis", "--redis-url", fmt.Sprintf("redis://127.0.0.1:%d/0", server.Port()))
	}
	deepcrawl(t, dir, exitOK, "migrate", "--db", db)
	mode := func(want coord.Mode) status {
		t.Helper()
		var s status
		for end := time.Now().Add(30 * time.Second); ; {
			if s = clusterOf(t, db); s.Coordination.Mode == want {
				return s
			}
			if time.Now().After(end) {
				t.Fatalf("not in mode %s: %+v", want, s.Coordination)
			}
			time.Sleep(100 * time.Millisecond) // poll the condition
		}
	}
	if p := deepcrawl(t, dir, exitFailed, with("cluster", "coord", "redis")...); !strings.Contains(p.err.String(), "no session has been") {
		t.Errorf("got %s", p.err.String())
	}
	start(t, dir, with("node", "--idle-exit", "10m", "--node-id", "a")...)
	mode(coord.ModeRedis)
	if p := deepcrawl(t, dir, exitOK, with("cluster", "coord", "db")...); !strings.Contains(p.out.String(), "coordination is with db") {
		t.Errorf("got %s", p.out.String())
	}
	mode(coord.ModeDB)
	if p := deepcrawl(t, dir, exitOK, with("cluster", "coord", "redis")...); !strings.Contains(p.out.String(), "coordination is with redis") {
		t.Errorf("got %s", p.out.String())
	}
	mode(coord.ModeRedis)
	t.Run("the status can be read while Redis is gone", func(t *testing.T) {
		server.Kill()
		settings := filepath.Join(dir, "settings")
		text := fmt.Sprintf("DEEPCRAWL_COORD=redis\nDEEPCRAWL_REDIS_URL=redis://127.0.0.1:%d/0\n", server.Port())
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := deepcrawl(t, dir, exitOK, "cluster", "status", "--json", "--db", db, "--config", settings)
		if !strings.Contains(p.out.String(), `"epoch"`) || strings.Count(p.err.String(), "\n") != 1 || !strings.Contains(p.err.String(), "through the database") {
			t.Errorf("got %s, %s", p.out.String(), p.err.String())
		}
	})
	t.Run("what cannot be is refused", func(t *testing.T) {
		for _, args := range [][]string{
			{"cluster", "coord", "both", "--db", db}, {"cluster", "coord", "--db", db}, {"cluster", "coord", "redis", "--db", db},
			{"cluster", "coord", "redis", "--db", db, "--coord", "redis", "--redis-url", "redis://h:99999/0"},
			{"crawl", "http://127.0.0.1/", "--db", db, "--coord", "redis", "--redis-url", "redis://h?bogus=1"},
		} {
			if p := deepcrawl(t, dir, exitUsage, args...); strings.Count(p.err.String(), "\n") != 1 {
				t.Errorf("%v: %s", args, p.err.String())
			}
		}
	})
}
