package main

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/crawl"
	"deepcrawl/internal/testenv"
	"deepcrawl/storage/sqlstore"
)

// idleWindow is how long the queries of nodes without work are counted, after idleSettled: a new node looks for work more often.
const (
	idleSettled = 12 * time.Second
	idleWindow  = 40 * time.Second
	idleMost    = 2.0 // queries a second and node
)

// counter stands between a node and its database and counts queries: each time the client sends after it was answered. A
// batch that waits once is one query.
type counter struct {
	dsn string
	n   atomic.Int64
}

func newCounter(t *testing.T, dsn string) *counter {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	to := u.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	u.Host = l.Addr().String()
	c := &counter{dsn: u.String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go c.carry(client, to)
		}
	}()
	return c
}

// carry copies both ways until one side ends.
func (c *counter) carry(client net.Conn, to string) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	var asked atomic.Bool // since the last answer
	var both sync.WaitGroup
	both.Go(func() {
		defer server.Close()
		_, _ = io.Copy(writeFunc(func(b []byte) (int, error) {
			if !asked.Swap(true) {
				c.n.Add(1)
			}
			return server.Write(b)
		}), client)
	})
	both.Go(func() {
		defer client.Close()
		_, _ = io.Copy(writeFunc(func(b []byte) (int, error) { asked.Store(false); return client.Write(b) }), server)
	})
	both.Wait()
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(b []byte) (int, error) { return f(b) }

// TestIdleNode counts what nodes without work ask of the database: at the socket, not in the program.
func TestIdleNode(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name  string
		db    func(testing.TB) string
		redis bool
	}{
		{"PostgreSQL", testenv.Postgres, false},
		{"PostgreSQL and Redis", testenv.Postgres, true},
		{"MariaDB", testenv.MySQL, false},
		{"MariaDB and Redis", testenv.MySQL, true},
	} {
		t.Run(kind.name+": under two queries a second, of the leader and of another node", func(t *testing.T) {
			t.Parallel()
			db, dir := kind.db(t), t.TempDir()
			deepcrawl(t, dir, exitOK, "migrate", "--db", db)
			args := []string{"--workers", "4", "--forever"}
			if kind.redis {
				address, prefix := testenv.Redis(t)
				args = append(args, "--coord", "redis", "--redis-url", address, "--redis-prefix", prefix)
			}
			var counters []*counter
			var nodes []*proc
			for _, id := range []string{"leads", "follows"} {
				c := newCounter(t, db)
				counters = append(counters, c)
				nodes = append(nodes, start(t, dir, append([]string{"node", "--node-id", id, "--db", c.dsn}, args...)...))
				await(t, "node "+id, func() bool { return len(clusterOf(t, db).Nodes) == len(nodes) })
			}
			if leader := clusterOf(t, db).Leader; !strings.HasPrefix(leader, "leads/") {
				t.Fatalf("%q leads", leader)
			}
			time.Sleep(idleSettled) // the nodes' own clock, as below
			var before []int64
			for _, c := range counters {
				before = append(before, c.n.Load())
			}
			began := time.Now()
			time.Sleep(idleWindow)
			for i, c := range counters {
				rate := float64(c.n.Load()-before[i]) / time.Since(began).Seconds()
				t.Logf("%.2f queries a second of the node that %s", rate, []string{"leads", "follows"}[i])
				if rate >= idleMost || rate < 0.5 {
					t.Errorf("got %.2f queries a second, want under %v (and some)", rate, idleMost)
				}
			}
			for _, p := range nodes {
				send(t, p, syscall.SIGTERM)
			}
			for _, p := range nodes {
				if code := p.end(t); code != exitOK {
					t.Errorf("a node ended with %d: %s", code, p.err.String())
				}
			}
		})
	}
	t.Run("SQLite: under two transactions a second", func(t *testing.T) {
		t.Parallel()
		db := "sqlite:" + filepath.Join(t.TempDir(), "deepcrawl.db")
		var n atomic.Int64
		trip := func() { n.Add(1) }
		st, err := sqlstore.Open(t.Context(), db, sqlstore.Options{Create: true, RoundTrip: trip})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		co, err := sqlcoord.Open(t.Context(), db, sqlcoord.Options{Create: true, RoundTrip: trip})
		if err != nil {
			t.Fatal(err)
		}
		defer co.Close()
		p := &program{now: time.Now}
		cl := &cluster{coord: co, node: "leads", role: coord.RoleNode, timing: coord.DefaultTiming()}
		node, err := crawl.New(crawl.Config{
			Store: st, Join: p.join(cl, coord.Options{}), Gone: cl.gone, Name: "leads", Workers: 4, Lead: true, Retention: time.Hour,
			UserAgent: "test", IdleExit: idleSettled + idleWindow,
		})
		if err != nil {
			t.Fatal(err)
		}
		var before atomic.Int64
		settled := time.AfterFunc(idleSettled, func() { before.Store(n.Load()) })
		defer settled.Stop()
		if err := node.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		rate := float64(n.Load()-before.Load()) / idleWindow.Seconds()
		t.Logf("%.2f transactions a second", rate)
		if rate >= idleMost || rate < 0.5 {
			t.Errorf("got %.2f transactions a second, want under %v (and some)", rate, idleMost)
		}
	})
}
