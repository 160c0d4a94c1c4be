package fetch_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deepcrawl/crawl/fetch"

	"golang.org/x/net/http2"
)

// keepAliveServer answers every request on a pipe with reply.
func keepAliveServer(reply string) func(c net.Conn) {
	return func(c net.Conn) {
		br := bufio.NewReader(c)
		for {
			if _, err := http.ReadRequest(br); err != nil {
				return
			}
			if _, err := io.WriteString(c, reply); err != nil {
				return
			}
		}
	}
}

func TestKeptConnections(t *testing.T) {
	t.Run("they are closed when they have been idle long enough", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, func(cfg *fetch.Config) { cfg.Dial = pipes(t, keepAliveServer(okReply)) })
			for i := range 3 {
				do(t, c, fetch.Request{URL: fmt.Sprintf("http://192.0.2.%d/", i)})
			}
			if n := fetch.KeptConns(c); n != 3 {
				t.Fatalf("kept: got %d, want 3", n)
			}
			time.Sleep(fetch.DefaultIdleConnTimeout - time.Second)
			if res := do(t, c, fetch.Request{URL: "http://192.0.2.1/"}); !res.Reused {
				t.Error("a connection idle for less than the limit was not used again")
			}
			time.Sleep(fetch.DefaultIdleConnTimeout * 3 / 2)
			synctest.Wait()
			if n := fetch.KeptConns(c); n != 0 {
				t.Errorf("kept: got %d, want 0", n)
			}
			c.Close()
		})
	})
	t.Run("a site's Keep-Alive limit is kept to, less a second", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			reply := strings.Replace(okReply, "\r\n\r\n", "\r\nKeep-Alive: timeout=5, max=100\r\n\r\n", 1)
			c := newClient(t, func(cfg *fetch.Config) { cfg.Dial = pipes(t, keepAliveServer(reply)) })
			for _, tc := range []struct {
				wait   time.Duration
				reused bool
			}{{0, false}, {3900 * time.Millisecond, true}, {4 * time.Second, false}, {time.Second, true}} {
				time.Sleep(tc.wait)
				if res := do(t, c, fetch.Request{URL: "http://192.0.2.1/"}); res.Reason != "" || res.Reused != tc.reused {
					t.Errorf("after %v: got %q (%v), reused %v", tc.wait, res.Reason, res.Err, res.Reused)
				}
			}
			c.Close()
		})
	})
	t.Run("there are only so many a host and in all", func(t *testing.T) {
		var open atomic.Int64
		var gather sync.WaitGroup // releases replies once all requests are in
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			gather.Done()
			gather.Wait()
		}))
		s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
			switch st {
			case http.StateNew:
				open.Add(1)
			case http.StateClosed:
				open.Add(-1)
			}
		}
		s.Start()
		defer s.Close()
		for _, tc := range []struct{ perHost, all, want int }{{4, 100, 4}, {100, 3, 3}} {
			c := newClient(t, func(cfg *fetch.Config) { cfg.IdlePerHost, cfg.MaxIdle = tc.perHost, tc.all })
			const n = 12
			gather.Add(n)
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					if res := c.Do(context.Background(), fetch.Request{URL: s.URL}); res.Reason != "" {
						t.Errorf("got %q (%v)", res.Reason, res.Err)
					}
				})
			}
			wg.Wait()
			if got := fetch.KeptConns(c); got != tc.want {
				t.Errorf("%d a host, %d in all: kept %d, want %d", tc.perHost, tc.all, got, tc.want)
			}
			c.Close()
			waitFor(t, "the site to see all connections closed", func() bool { return open.Load() == 0 })
		}
	})
	t.Run("HTTP/2 ones count among all", func(t *testing.T) {
		answer := func(_ int, f *http2.Framer, id uint32, _ string) bool { return reply(f, id, "hi") }
		_, conf := testTLS(t)
		c := newClient(t, func(cfg *fetch.Config) { cfg.MaxIdle, cfg.TLS = 2, conf })
		for range 5 {
			s := newFrameServer(t, answer)
			for range 2 {
				res := do(t, c, fetch.Request{URL: s.url})
				if res.Reason != "" {
					t.Fatalf("got %q (%v)", res.Reason, res.Err)
				}
			}
			do(t, c, fetch.Request{URL: replies(t, okReply).url})
			if n := fetch.KeptConns(c); n > 2 {
				t.Fatalf("kept: got %d, want at most 2", n)
			}
		}
	})
	t.Run("CloseIdle closes them", func(t *testing.T) {
		s := replies(t, okReply)
		c := newClient(t, nil)
		do(t, c, fetch.Request{URL: s.url})
		c.CloseIdle()
		if n := fetch.KeptConns(c); n != 0 {
			t.Errorf("kept: got %d, want 0", n)
		}
		if res := do(t, c, fetch.Request{URL: s.url}); res.Reason != "" || res.Reused {
			t.Errorf("afterwards: got %q (%v), reused %v", res.Reason, res.Err, res.Reused)
		}
	})
}

// waitFor waits for ok, which something else makes true.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// ownGoroutines lists the goroutines that fetch or net/http's client started.
func ownGoroutines() []string {
	buf := make([]byte, 4<<20)
	var out []string
	for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "crawl/fetch.(") || strings.Contains(g, "http.(*persistConn)") || strings.Contains(g, "http2ClientConn") || strings.Contains(g, "http2clientConnReadLoop") {
			out = append(out, g)
		}
	}
	return out
}

func TestCloseLeavesNothingRunning(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			<-r.Context().Done()
		case "/stall":
			w.Write([]byte("begun"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			w.Write([]byte("hi"))
		}
	})
	plain := httptest.NewServer(handler)
	defer plain.Close()
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	c := newClient(t, func(cfg *fetch.Config) {
		cfg.TLS = secure.Client().Transport.(*http.Transport).TLSClientConfig
		cfg.HardDeadline = 300 * time.Millisecond
		cfg.Resolver = resolverFunc(func(ctx context.Context, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
	})
	var wg sync.WaitGroup
	for _, base := range []string{plain.URL, secure.URL, closedPort(t), "http://nowhere.invalid"} {
		for _, path := range []string{"/", "/hang", "/stall", "/again"} {
			for range 3 {
				wg.Go(func() { c.Do(context.Background(), fetch.Request{URL: base + path}).Release() })
			}
		}
	}
	wg.Wait()
	c.Close()
	waitFor(t, "goroutines to end: "+strings.Join(ownGoroutines(), "\n\n"), func() bool { return len(ownGoroutines()) == 0 })
}
