package failover_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"deepcrawl/coord"
	"deepcrawl/coord/coordtest"
	"deepcrawl/coord/session"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/internal/testenv"
	"deepcrawl/soak/chaos"
)

// timing is the suite's, with ways between Redis and the database that take a second.
func timing() coord.Timing {
	t := coordtest.Timing()
	t.View, t.Death = 2*time.Second, 6*time.Second
	t.Fall, t.Stable, t.ReturnEvery, t.ReturnPause = 500*time.Millisecond, 500*time.Millisecond, 300*time.Millisecond, time.Second
	return t
}

// site counts, as a web server does, what is in flight on each host.
type site struct {
	t    *testing.T
	mu   sync.Mutex
	in   map[string]int
	most map[string]int
}

const hostCap = 4

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host := strings.Trim(r.URL.Path, "/")
	s.mu.Lock()
	s.in[host]++
	s.most[host] = max(s.most[host], s.in[host])
	if s.in[host] > hostCap {
		s.t.Errorf("%d requests in flight on %s, cap %d", s.in[host], host, hostCap)
	}
	s.mu.Unlock()
	time.Sleep(time.Duration(4+rand.IntN(12)) * time.Millisecond) // a page takes its time
	s.mu.Lock()
	if s.in[host]--; s.in[host] == 0 {
		delete(s.in, host)
	}
	s.mu.Unlock()
	if _, err := io.WriteString(w, "page"); err != nil {
		s.t.Logf("answer: %v", err)
	}
}

func (s *site) peak(host string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most[host]
}

// node is a session that fetches all it may, joining again when it was fenced.
type node struct {
	w     *world
	name  coord.NodeID
	c     coord.Coord
	proxy *chaos.Proxy
	done  atomic.Int64 // pages
	hosts atomic.Int64 // names used up
	fresh atomic.Int64 // pages of hosts that had no slot before
}

// world is a Redis, a database, a site and the nodes.
type world struct {
	t     *testing.T
	redis *testenv.Server
	url   string
	dsn   string
	op    coord.Coord
	nodes []*node
	site  *site
}

func newWorld(t *testing.T, database func(t testing.TB) string) *world {
	return newWorldOver(t, database, func(dsn string) string { return dsn })
}

// newWorldOver lets each node reach the database on a way of its own.
func newWorldOver(t *testing.T, database func(t testing.TB) string, way func(dsn string) string) *world {
	w := &world{t: t, redis: testenv.PrivateRedis(t), site: &site{t: t, in: map[string]int{}, most: map[string]int{}}}
	dsn := migrated(t, database(t))
	w.dsn = dsn
	server := httptest.NewServer(w.site)
	t.Cleanup(server.Close)
	w.url = server.URL
	w.op = open(t, dsn, w.redis.DSN(), "p:")
	for i := range 3 {
		p := newProxy(t, fmt.Sprintf("127.0.0.1:%d", w.redis.Port()))
		n := &node{w: w, name: coord.NodeID(fmt.Sprintf("n%d", i)), c: open(t, way(dsn), "redis://"+p.Addr()+"/0", "p:"), proxy: p}
		w.nodes = append(w.nodes, n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { // before what they use is closed
		w.cut(false, w.nodes...)
		cancel()
		wg.Wait()
	})
	for _, n := range w.nodes {
		wg.Go(func() { n.run(ctx) })
	}
	return w
}

func (n *node) run(ctx context.Context) {
	client := &http.Client{Timeout: timing().Abort(), Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	for ctx.Err() == nil {
		s, err := session.Join(ctx, n.c, coord.Options{Node: n.name, Role: coord.RoleNode, Timing: timing()})
		if err != nil {
			if !errors.Is(err, coord.ErrNoView) && !errors.Is(err, coord.ErrNodeBusy) && ctx.Err() == nil {
				n.w.t.Errorf("join as %s: %v", n.name, err)
				return
			}
			continue
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { n.work(ctx, s, client) })
		}
		wg.Wait()
		leave, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if err := s.Leave(leave); err != nil && !errors.Is(err, coord.ErrFenced) {
			n.w.t.Errorf("leave as %s: %v", n.name, err)
		}
		cancel()
	}
}

// work changes hosts often, so that slots are asked for and given back all the time.
func (n *node) work(ctx context.Context, s coord.Session, client *http.Client) {
	for ctx.Err() == nil && s.Err() == nil {
		host, fresh := fmt.Sprintf("h%d", rand.IntN(4)), rand.IntN(4) == 0
		if fresh {
			host = fmt.Sprintf("%s-%d", n.name, n.hosts.Add(1))
		}
		changed := s.Changed()
		got, err := s.Acquire(ctx, coord.Need{Keys: []coord.CappedKey{{Key: coord.HostKey(host), Cap: hostCap}}, N: 1})
		if err != nil {
			return
		}
		if len(got) == 0 {
			select {
			case <-changed:
			case <-ctx.Done():
			case <-s.Done():
			}
			continue
		}
		if n.fetch(client, got[0], host) && fresh {
			n.fresh.Add(1)
		}
	}
}

// fetch reports whether the page arrived.
func (n *node) fetch(client *http.Client, p coord.Permit, host string) bool {
	if p.MayStart() != nil {
		p.Release()
		return false
	}
	resp, err := client.Get(n.w.url + "/" + host)
	if err != nil {
		p.Abort()
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close() // it was read
	if err != nil {
		p.Abort()
		return false
	}
	p.Release()
	n.done.Add(1)
	return true
}

// until waits for a condition.
func (w *world) until(what string, within time.Duration, is func() bool) time.Duration {
	w.t.Helper()
	begin := time.Now()
	for !is() {
		if time.Since(begin) > within {
			a, _, err := w.op.Authority(context.Background())
			w.t.Fatalf("not %s after %v: authority %+v, %v", what, within, a, err)
		}
		time.Sleep(20 * time.Millisecond) // poll the condition
	}
	return time.Since(begin)
}

func (w *world) authority() coord.Authority {
	w.t.Helper()
	a, _, err := w.op.Authority(context.Background())
	if err != nil {
		w.t.Fatalf("authority: %v", err)
	}
	return a
}

// working waits until each of these nodes was granted something new and fetched ten pages.
func (w *world) working(nodes ...*node) {
	w.t.Helper()
	for _, n := range nodes {
		pages, fresh := n.done.Load()+10, n.fresh.Load()+1
		w.until(fmt.Sprintf("working: %s", n.name), 20*time.Second, func() bool { return n.done.Load() >= pages && n.fresh.Load() >= fresh })
	}
}

// inMode waits for a mode of an epoch above another.
func (w *world) inMode(m coord.Mode, above coord.Epoch) coord.Authority {
	w.t.Helper()
	var a coord.Authority
	took := w.until("in mode "+string(m), 30*time.Second, func() bool { a = w.authority(); return a.Mode == m && a.Epoch > above })
	w.t.Logf("%s, epoch %d after %v: %s", m, a.Epoch, took.Round(10*time.Millisecond), a.Reason)
	return a
}

func (w *world) flush() {
	w.t.Helper()
	opt, err := redis.ParseURL(w.redis.DSN())
	if err != nil {
		w.t.Fatal(err)
	}
	c := redis.NewClient(opt)
	defer c.Close()
	if err := c.FlushAll(context.Background()).Err(); err != nil {
		w.t.Fatal(err)
	}
}

// fault is what is done to a Redis or to the ways to it.
type fault struct {
	name string
	harm func(w *world)
	mend func(w *world) // nil: it mends by itself
}

var faults = []fault{
	{"redis is killed, and comes back", func(w *world) { w.redis.Kill() }, func(w *world) { w.redis.Start() }},
	{"redis is frozen, and wakes", func(w *world) { w.redis.Signal(syscall.SIGSTOP) }, func(w *world) { w.redis.Signal(syscall.SIGCONT) }},
	{"redis is restarted empty", func(w *world) { w.redis.Kill(); w.redis.Start() }, nil},
	{"redis is emptied", func(w *world) { w.flush() }, nil},
	{"all nodes are cut off from redis", func(w *world) { w.cut(true, w.nodes...) }, func(w *world) { w.cut(false, w.nodes...) }},
}

// suffer does it and requires that all nodes go on meanwhile and afterwards.
func (w *world) suffer(f fault) {
	w.t.Helper()
	first := w.inMode(coord.ModeRedis, 0)
	w.working(w.nodes...)
	f.harm(w)
	if f.mend != nil {
		fallen := w.inMode(coord.ModeDB, first.Epoch)
		if fallen.Falls == 0 || fallen.Reason == "" {
			w.t.Errorf("fell back as %+v", fallen)
		}
		w.working(w.nodes...)
		f.mend(w)
	}
	w.inMode(coord.ModeRedis, first.Epoch)
	w.working(w.nodes...)
	w.t.Logf("%s: at most %d, %d, %d, %d in flight", f.name, w.site.peak("h0"), w.site.peak("h1"), w.site.peak("h2"), w.site.peak("h3"))
}

func TestRealFaults(t *testing.T) {
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			newWorld(t, sqlite).suffer(f)
		})
	}
	for name, database := range map[string]func(t testing.TB) string{"PostgreSQL": testenv.Postgres, "MariaDB": testenv.MySQL} {
		t.Run("all of it, one after the other, beside "+name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			w := newWorld(t, database)
			for _, f := range faults {
				w.suffer(f)
			}
		})
	}
	t.Run("a node without Redis is served by the database, and the cluster returns when it has left", func(t *testing.T) {
		t.Parallel() // they mostly wait
		w := newWorld(t, sqlite)
		first := w.inMode(coord.ModeRedis, 0)
		db, err := sqlcoord.Open(t.Context(), w.dsn, sqlcoord.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Errorf("close database: %v", err)
			}
		})
		s, err := session.Join(t.Context(), db, coord.Options{Node: "plain", Role: coord.RoleNode, Timing: timing()})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * timing().Beat) // that it moves nobody while it needs nothing shows only with time
		if a := w.authority(); a.Mode != coord.ModeRedis || a.Epoch != first.Epoch {
			t.Errorf("the cluster moved for a session that needs no slots: %+v", a)
		}
		var got []coord.Permit
		w.until("served", 20*time.Second, func() bool {
			got, err = s.Acquire(t.Context(), coord.Need{Keys: []coord.CappedKey{{Key: "host:plain", Cap: 1}}, N: 1})
			if err != nil {
				t.Fatal(err)
			}
			return len(got) == 1
		})
		if a := w.authority(); a.Mode != coord.ModeDB || !strings.Contains(a.Reason, "plain has no redis configured") {
			t.Errorf("served by %+v", a)
		}
		w.working(w.nodes...)
		got[0].Release()
		time.Sleep(2 * timing().ReturnPause) // nor does the cluster leave it alone
		if a := w.authority(); a.Mode != coord.ModeDB {
			t.Errorf("it was left without slots: %+v", a)
		}
		if err := s.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.inMode(coord.ModeRedis, first.Epoch)
		w.working(w.nodes...)
	})
	t.Run("a node that is cut off alone idles, the others go on, and it comes back", func(t *testing.T) {
		t.Parallel() // they mostly wait
		w := newWorld(t, sqlite)
		first := w.inMode(coord.ModeRedis, 0)
		w.working(w.nodes...)
		alone, others := w.nodes[0], w.nodes[1:]
		w.cut(true, alone)
		w.until("noticed", 10*time.Second, func() bool {
			all, err := w.op.Sessions(context.Background())
			return err == nil && len(all) > 0 && all[0].Member.Node == alone.name && !all[0].Redis.Usable && all[0].Redis.For > 2*timing().Fall
		})
		w.working(others...)
		if a := w.authority(); a.Mode != coord.ModeRedis || a.Epoch != first.Epoch {
			t.Errorf("the cluster moved for one: %+v", a)
		}
		w.cut(false, alone)
		w.working(w.nodes...)
	})
	t.Run("an operator moves the cluster, and it stays", func(t *testing.T) {
		t.Parallel() // they mostly wait
		w := newWorld(t, sqlite)
		a := w.inMode(coord.ModeRedis, 0)
		if _, err := w.op.Drain(t.Context(), coord.Drain{From: a.Epoch, Target: coord.ModeDB, Pin: coord.ModeDB, Reason: "operator"}); err != nil {
			t.Fatal(err)
		}
		a = w.inMode(coord.ModeDB, a.Epoch)
		w.working(w.nodes...)
		if _, err := w.op.Drain(t.Context(), coord.Drain{From: a.Epoch, Target: coord.ModeRedis, Pin: coord.ModeRedis, Reason: "operator"}); err != nil {
			t.Fatal(err)
		}
		w.inMode(coord.ModeRedis, a.Epoch)
		w.working(w.nodes...)
	})
}

func (w *world) cut(yes bool, nodes ...*node) {
	for _, n := range nodes {
		n.proxy.Cut(yes, yes)
	}
}
