package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// proxy stands between a store and its server. Armed, it lets the answer to a request vanish and the connection break.
type proxy struct {
	t      testing.TB
	ln     net.Listener
	target string
	armed  atomic.Int64 // requests until an answer is lost, 0 none
	closed atomic.Bool  // new connections are refused
	mu     sync.Mutex
	conns  []net.Conn
}

// through returns the DSN with the proxy's address in it.
func through(t testing.TB, dsn string) (*proxy, string) {
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, ln: ln, target: u.Host}
	go p.serve()
	t.Cleanup(func() { ln.Close(); p.cut() })
	u.Host = ln.Addr().String()
	return p, u.String()
}

func (p *proxy) serve() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		if p.closed.Load() {
			c.Close()
			continue
		}
		up, err := net.Dial("tcp", p.target)
		if err != nil {
			c.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, c, up)
		p.mu.Unlock()
		go p.link(c, up)
	}
}

// link copies both ways. A request is what the client sends after an answer.
func (p *proxy) link(c, up net.Conn) {
	var lose, answered atomic.Bool
	answered.Store(true)
	go func() {
		defer up.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			if n > 0 {
				if answered.Swap(false) && p.armed.Load() > 0 && p.armed.Add(-1) == 0 {
					lose.Store(true)
				}
				if _, err := up.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	defer c.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := up.Read(buf)
		if n > 0 {
			if lose.Load() {
				// The server may answer in pieces: it is given the time to finish what it was asked.
				_ = up.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
				_, _ = io.Copy(io.Discard, up)
				return
			}
			answered.Store(true)
			if _, err := c.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func TestAnswersLost(t *testing.T) {
	for name, c := range map[string]struct {
		dsn   func(testing.TB) string
		claim int64 // requests of a claim
	}{"postgres": {testenv.Postgres, 1}, "mysql": {testenv.MySQL, 2}} {
		t.Run(name, func(t *testing.T) {
			address := c.dsn(t)
			opener(t, address)
			p, dsn := through(t, address)
			s := openStore(t, dsn, sqlstore.Options{})
			run := newRun(t, s)
			list := make([]storage.Discovery, 200)
			for i := range list {
				list[i] = benchDiscovery(i)
			}
			if _, err := s.Discover(t.Context(), run, list, nil); err != nil {
				t.Fatal(err)
			}
			claim := func(n int) ([]storage.Claim, error) {
				return s.Claim(t.Context(), "node", []storage.ClaimRequest{{Run: run, Host: host, N: n}})
			}
			page := func(c storage.Claim) storage.Result {
				return storage.Result{Run: c.Run, ID: c.ID, Token: c.Token, Page: &storage.PageResult{State: storage.Fetched, Status: 200, Attempts: 1}}
			}
			warm, err := claim(3)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Finish(t.Context(), "node", []storage.Result{page(warm[0])}); err != nil {
				t.Fatal(err)
			}

			t.Run("finish says that its outcome is unknown, and tells it when asked again", func(t *testing.T) {
				p.armed.Store(1)
				_, err := s.Finish(t.Context(), "node", []storage.Result{page(warm[1])})
				if !errors.Is(err, storage.ErrUnknown) {
					t.Fatalf("got %v, want %v", err, storage.ErrUnknown)
				}
				out, err := s.Finish(t.Context(), "node", []storage.Result{page(warm[1]), page(warm[2])})
				if err != nil || out[0] != storage.OutcomeDone || out[1] != storage.OutcomeDone {
					t.Errorf("got %v, %v", out, err)
				}
				if l, err := s.Ledger(t.Context(), run); err != nil || l.Fetched != 3 || l.LateRefused != 0 {
					t.Errorf("got %+v, %v", l, err)
				}
			})
			t.Run("claim finds out what it has claimed", func(t *testing.T) {
				if _, err := claim(1); err != nil { // prepared on the new connection
					t.Fatal(err)
				}
				p.armed.Store(c.claim)
				got, err := claim(7)
				if err != nil || len(got) != 7 || got[0].URL == "" || got[0].Host != host || got[0].Priority != 350 {
					t.Fatalf("got %+v, %v", got, err)
				}
				var results []storage.Result
				for _, c := range got {
					results = append(results, page(c))
				}
				out, err := s.Finish(t.Context(), "node", results)
				if err != nil || out[0] != storage.OutcomeDone {
					t.Errorf("got %v, %v", out, err)
				}
			})
			t.Run("what a claim cannot find out is returned later", func(t *testing.T) {
				if _, err := claim(1); err != nil {
					t.Fatal(err)
				}
				before, err := s.Ledger(t.Context(), run)
				if err != nil {
					t.Fatal(err)
				}
				p.armed.Store(c.claim)
				p.closed.Store(true)
				stop := make(chan struct{})
				go func() { // the other connections break as soon as the answer is lost
					for p.armed.Load() > 0 {
						time.Sleep(time.Millisecond)
					}
					time.Sleep(50 * time.Millisecond)
					p.cut()
					close(stop)
				}()
				got, err := claim(5)
				<-stop
				if err == nil {
					t.Skipf("the answer was found out before the connections broke: %d claims", len(got))
				}
				if !errors.Is(err, storage.ErrUnknown) {
					t.Errorf("got %v", err)
				}
				p.closed.Store(false)
				again, err := claim(5)
				if err != nil || len(again) != 5 {
					t.Fatalf("got %d, %v", len(again), err)
				}
				after, err := s.Ledger(t.Context(), run)
				if err != nil || after.Claimed != before.Claimed+5 {
					t.Errorf("got %d claimed, %v, want %d", after.Claimed, err, before.Claimed+5)
				}
			})
			t.Run("a server that is gone is unavailable", func(t *testing.T) {
				p.closed.Store(true)
				p.cut()
				for what, call := range map[string]func() error{
					"ping":  func() error { return s.Ping(t.Context()) },
					"claim": func() error { _, err := claim(1); return err },
					"run":   func() error { _, err := s.Run(t.Context(), run); return err },
				} {
					// A connection that broke while idle cannot tell whether a commit got through.
					if err := call(); !errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, storage.ErrUnknown) || strings.Contains(err.Error(), "\n") {
						t.Errorf("%s: got %v", what, err)
					}
				}
				p.closed.Store(false)
				if err := s.Ping(t.Context()); err != nil {
					t.Errorf("it is back: got %v", err)
				}
			})
		})
	}
}

// TestServerRestartedInMidCrawl kills the server twice under several workers, who wait and go on.
func TestServerRestartedInMidCrawl(t *testing.T) {
	for name, private := range map[string]func(testing.TB, ...string) *testenv.Server{"postgres": testenv.PrivatePostgres, "mysql": testenv.PrivateMariaDB} {
		t.Run(name, func(t *testing.T) {
			server := private(t)
			opener(t, server.DSN())
			s := openStore(t, server.DSN(), sqlstore.Options{Workers: 8})
			run := newRun(t, s)
			const total = 3000
			discovery := func(i int) storage.Discovery { d := benchDiscovery(i); d.URL = fmt.Sprint("u", i); return d }
			if _, err := s.Discover(t.Context(), run, []storage.Discovery{discovery(1)}, nil); err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			requested := map[string]int{}
			var done, waits atomic.Int64
			// again does what a worker does when the database does not answer.
			again := func(call func() error) {
				for {
					err := call()
					if err == nil {
						return
					}
					if !errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, storage.ErrUnknown) {
						t.Errorf("got %v", err)
						return
					}
					waits.Add(1)
					select {
					case <-t.Context().Done():
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
			}
			var wg sync.WaitGroup
			for w := range 4 {
				owner := storage.Owner(fmt.Sprint("worker", w))
				wg.Go(func() {
					for deadline := time.Now().Add(90 * time.Second); done.Load() < total && time.Now().Before(deadline); {
						var claims []storage.Claim
						again(func() (err error) {
							claims, err = s.Claim(t.Context(), owner, []storage.ClaimRequest{{Run: run, Host: host, N: 8}})
							return err
						})
						var results []storage.Result
						for _, c := range claims {
							mu.Lock()
							requested[c.URL]++
							mu.Unlock()
							var n int
							if _, err := fmt.Sscanf(c.URL, "u%d", &n); err != nil {
								t.Error(err)
							}
							r := storage.Result{Run: run, ID: c.ID, Token: c.Token, Page: &storage.PageResult{State: storage.Fetched, Status: 200}}
							for _, to := range []int{2 * n, 2*n + 1, n/2 + 1} {
								if to <= total && to > 0 {
									r.Discovered = append(r.Discovered, discovery(to))
								}
							}
							results = append(results, r)
						}
						again(func() error { _, err := s.Finish(t.Context(), owner, results); return err })
						done.Add(int64(len(results)))
					}
				})
			}
			for _, at := range []int64{total / 5, total / 2} {
				for deadline := time.Now().Add(60 * time.Second); done.Load() < at && time.Now().Before(deadline); {
					time.Sleep(time.Millisecond)
				}
				server.Kill()
				server.Start()
			}
			wg.Wait()
			l, err := s.Ledger(t.Context(), run)
			if err != nil || l.Discovered != total || l.Fetched != total || l.Claimed != 0 || l.Queued != 0 {
				t.Errorf("got %+v, %v", l, err)
			}
			if waits.Load() == 0 {
				t.Error("nobody noticed the restarts")
			}
			for u, n := range requested {
				if n != 1 {
					t.Errorf("%s was requested %d times", u, n)
				}
			}
		})
	}
}

// TestDeletingARunBlocksNobody deletes a large run while another one is crawled.
func TestDeletingARunBlocksNobody(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		opener(t, dsn)
		s := openStore(t, dsn, sqlstore.Options{Workers: 8})
		large, live := newRun(t, s), newRun(t, s)
		list := make([]storage.Discovery, 3000)
		for i := range list {
			list[i] = benchDiscovery(i)
		}
		if _, err := s.Discover(t.Context(), live, list, nil); err != nil {
			t.Fatal(err)
		}
		fillRun(t, s, large, many(30_000, 500_000), many(30_000, 500_000))
		if _, err := s.SetRunState(t.Context(), large, []storage.RunState{storage.RunCrawling}, storage.RunCancelled, "", time.Time{}); err != nil {
			t.Fatal(err)
		}
		deleted := make(chan error, 1)
		go func() {
			for {
				done, err := s.DeleteRun(t.Context(), large, 1000)
				if done || err != nil {
					deleted <- err
					return
				}
			}
		}()
		var longest time.Duration
		pages := 0
		for running := true; running || pages == 0; {
			select {
			case err := <-deleted:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
			}
			at := time.Now()
			claims, err := s.Claim(t.Context(), "node", []storage.ClaimRequest{{Run: live, Host: host, N: 10}})
			longest = max(longest, time.Since(at))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Return(t.Context(), "node", claims); err != nil {
				t.Fatal(err)
			}
			pages += len(claims)
		}
		t.Logf("%d claims meanwhile, the longest took %v", pages, longest)
		if longest > 2*time.Second {
			t.Errorf("a claim took %v", longest)
		}
		if _, err := s.Run(t.Context(), large); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// TestASnapshotHeldOpen claims and finishes for a minute while a snapshot, as a dump holds one, keeps every deleted row.
func TestASnapshotHeldOpen(t *testing.T) {
	testenv.Large(t)
	dsn := testenv.Postgres(t)
	opener(t, dsn)
	s := openStore(t, dsn, sqlstore.Options{})
	if _, err := s.Discover(t.Context(), newRun(t, s), []storage.Discovery{benchDiscovery(1)}, nil); err != nil { // makes the host
		t.Fatal(err)
	}
	run := newRun(t, s)
	fillRun(t, s, run, 2_000_000, 0)
	other := openStore(t, dsn, sqlstore.Options{})
	held, release := make(chan struct{}), make(chan struct{})
	go func() {
		_ = other.DB().View(context.Background(), func(tx *sqldb.Tx) error {
			look := func() error {
				tx.Query(sqldb.Postgres.Statement("SELECT COUNT(*) FROM claim"), func(*sqldb.Row) error { return nil })
				return tx.Flush()
			}
			err := look()
			close(held)
			for err == nil {
				select {
				case <-release:
					return nil
				case <-time.After(5 * time.Second): // the server ends idle transactions
					err = look()
				}
			}
			return err
		})
	}()
	<-held
	defer close(release)
	const parts, length = 4, 15 * time.Second
	var pages [parts]int
	for part := range parts {
		for until := time.Now().Add(length); time.Now().Before(until); {
			claims, err := s.Claim(t.Context(), "node", []storage.ClaimRequest{{Run: run, Host: host, N: 64}})
			if err != nil {
				t.Fatal(err)
			}
			var results []storage.Result
			for _, c := range claims {
				results = append(results, storage.Result{Run: run, ID: c.ID, Token: c.Token, Page: &storage.PageResult{State: storage.Fetched, Status: 200}})
			}
			if _, err := s.Finish(t.Context(), "node", results); err != nil {
				t.Fatal(err)
			}
			pages[part] += len(claims)
		}
	}
	t.Logf("pages in each quarter: %v", pages)
	if 2*pages[parts-1] < pages[0] {
		t.Errorf("the last quarter had %d pages, the first %d", pages[parts-1], pages[0])
	}
}
