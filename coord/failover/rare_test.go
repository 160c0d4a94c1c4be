package failover_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"deepcrawl/coord"
	"deepcrawl/internal/testenv"
	"deepcrawl/soak/chaos"
)

func (w *world) admin(s *testenv.Server) *redis.Client {
	w.t.Helper()
	opt, err := redis.ParseURL(s.DSN())
	if err != nil {
		w.t.Fatal(err)
	}
	c := redis.NewClient(opt)
	w.t.Cleanup(func() { _ = c.Close() }) // its server may be gone
	return c
}

func (w *world) info(c *redis.Client, section string) string {
	w.t.Helper()
	v, err := c.Info(w.t.Context(), section).Result()
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// follow makes one server the replica of another and waits until it has its data.
func (w *world) follow(replica *redis.Client, of *testenv.Server) {
	w.t.Helper()
	if err := replica.ReplicaOf(w.t.Context(), "127.0.0.1", fmt.Sprint(of.Port())).Err(); err != nil {
		w.t.Fatal(err)
	}
	w.until("a replica in step", 30*time.Second, func() bool {
		return strings.Contains(w.info(replica, "replication"), "master_link_status:up")
	})
}

// promote makes a replica the primary and leads all nodes to it.
func (w *world) promote(replica *redis.Client, s *testenv.Server) {
	w.t.Helper()
	if err := replica.ReplicaOf(w.t.Context(), "NO", "ONE").Err(); err != nil {
		w.t.Fatal(err)
	}
	for _, n := range w.nodes {
		lead(n.proxy, fmt.Sprintf("127.0.0.1:%d", s.Port()))
	}
}

func line(info, name string) string {
	for l := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(l, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// TestRareFaults is what happens to few clusters, and takes a while.
func TestRareFaults(t *testing.T) {
	testenv.Soak(t)
	t.Run("a replica is promoted, and the old primary again, with its run_id", func(t *testing.T) {
		w := newWorld(t, sqlite)
		first, second := w.redis, testenv.PrivateRedis(t)
		a, b := w.admin(first), w.admin(second)
		w.follow(b, first)
		was := w.inMode(coord.ModeRedis, 0)
		w.working(w.nodes...)
		run := line(w.info(a, "server"), "run_id")
		for round := range 3 {
			w.promote(b, second)
			w.follow(a, second)
			now := w.inMode(coord.ModeRedis, was.Epoch)
			w.working(w.nodes...)
			if now.Redis.RunID == was.Redis.RunID {
				t.Errorf("round %d: still with %+v", round, now.Redis)
			}
			w.promote(a, first)
			w.follow(b, first)
			if again := line(w.info(a, "server"), "run_id"); again != run {
				t.Fatalf("round %d: the old primary has run_id %s, had %s", round, again, run)
			}
			was = w.inMode(coord.ModeRedis, now.Epoch)
			w.working(w.nodes...)
		}
	})
	t.Run("a primary is demoted where nobody leads clients away", func(t *testing.T) {
		w := newWorld(t, sqlite)
		other := testenv.PrivateRedis(t)
		a := w.admin(w.redis)
		first := w.inMode(coord.ModeRedis, 0)
		w.working(w.nodes...)
		w.follow(a, other)
		fallen := w.inMode(coord.ModeDB, first.Epoch)
		w.working(w.nodes...)
		if err := a.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
			t.Fatal(err)
		}
		w.inMode(coord.ModeRedis, fallen.Epoch)
		w.working(w.nodes...)
	})
	t.Run("requests reach redis and answers do not come back", func(t *testing.T) {
		w := newWorld(t, sqlite)
		deafen := func(yes bool, nodes ...*node) {
			for _, n := range nodes {
				n.proxy.Cut(false, yes)
			}
		}
		first := w.inMode(coord.ModeRedis, 0)
		w.working(w.nodes...)
		deafen(true, w.nodes[0])
		w.working(w.nodes[1:]...)
		deafen(true, w.nodes...)
		fallen := w.inMode(coord.ModeDB, first.Epoch)
		w.working(w.nodes...)
		deafen(false, w.nodes...)
		w.inMode(coord.ModeRedis, fallen.Epoch)
		w.working(w.nodes...)
	})
	for name, database := range map[string]func(t testing.TB) string{"PostgreSQL": testenv.Postgres, "MariaDB": testenv.MySQL} {
		t.Run("answers of "+name+" do not come back to one node, then to any", func(t *testing.T) {
			var ways []*chaos.Proxy
			w := newWorldOver(t, database, func(dsn string) string {
				u, err := url.Parse(dsn)
				if err != nil || u.Host == "" {
					t.Fatalf("database url: %v", err)
				}
				p := newProxy(t, u.Host)
				ways = append(ways, p)
				u.Host = p.Addr()
				return u.String()
			})
			w.inMode(coord.ModeRedis, 0)
			w.working(w.nodes...)
			ways[0].Cut(false, true)
			time.Sleep(timing().Death / 2) // longer than its view
			stopped := w.nodes[0].done.Load()
			w.working(w.nodes[1:]...)
			if now := w.nodes[0].done.Load(); now != stopped {
				t.Errorf("it fetched %d pages without a view", now-stopped)
			}
			ways[0].Cut(false, false)
			w.working(w.nodes...)
			for _, p := range ways {
				p.Cut(false, true)
			}
			time.Sleep(timing().View * 3 / 2) // all views have ended
			for _, p := range ways {
				p.Cut(false, false)
			}
			w.working(w.nodes...)
		})
	}
}
