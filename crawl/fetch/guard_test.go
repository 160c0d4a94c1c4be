package fetch_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"deepcrawl/crawl/fetch"

	"golang.org/x/net/http2"
)

var errNotNow = errors.New("the view has expired")

func TestGuard(t *testing.T) {
	refuse := func() error { return errNotNow }
	check := func(t *testing.T, res *fetch.Result, reused bool) {
		t.Helper()
		if res.Reason != fetch.ReasonGuard || !errors.Is(res.Err, errNotNow) || res.Wrote || res.Reused != reused {
			t.Errorf("got reason %q (%v), wrote %v, reused %v", res.Reason, res.Err, res.Wrote, res.Reused)
		}
	}
	t.Run("HTTP/1: not a byte reaches the site", func(t *testing.T) {
		var bytes, requests atomic.Int64
		var accepted atomic.Bool
		s := newRawServer(t, func(_ int, c *net.TCPConn) {
			accepted.Store(true)
			var h hits
			br := bufio.NewReader(countReader{c, &bytes})
			for {
				if _, err := h.next(br); err != nil {
					return
				}
				requests.Add(1)
				io.WriteString(c, okReply)
			}
		})
		c := newClient(t, nil)
		check(t, do(t, c, fetch.Request{URL: s.url + "/a", Guard: refuse}), false)
		check(t, do(t, c, fetch.Request{URL: s.url + "/b", Guard: refuse}), true)
		if n := bytes.Load(); n != 0 {
			t.Errorf("the site got %d bytes, want 0", n)
		}
		guarded := false
		res := do(t, c, fetch.Request{URL: s.url + "/c", Guard: func() error {
			guarded = true
			if n := bytes.Load(); n != 0 {
				t.Errorf("before the guard the site got %d bytes", n)
			}
			return nil
		}})
		if res.Reason != "" || !res.Reused || !guarded {
			t.Errorf("a refused connection is good for the next: got %q (%v), reused %v, guarded %v", res.Reason, res.Err, res.Reused, guarded)
		}
		before := bytes.Load()
		check(t, do(t, c, fetch.Request{URL: s.url + "/d", Guard: refuse}), true)
		c.Close()
		if bytes.Load() != before || requests.Load() != 1 || s.accepted.Load() != 1 {
			t.Errorf("got %d more bytes, %d requests, %d connections; want 0, 1, 1", bytes.Load()-before, requests.Load(), s.accepted.Load())
		}
	})
	t.Run("HTTP/2: no request frame reaches the site", func(t *testing.T) {
		s := newFrameServer(t, func(_ int, f *http2.Framer, id uint32, _ string) bool { return reply(f, id, "hi") })
		c := newClient(t, func(cfg *fetch.Config) { cfg.TLS = s.client })
		check(t, do(t, c, fetch.Request{URL: s.url + "/a", Guard: refuse}), false)
		check(t, do(t, c, fetch.Request{URL: s.url + "/b", Guard: refuse}), true)
		// The answer to a later request on the same connection proves that
		// nothing before it is still on the way.
		if res := do(t, c, fetch.Request{URL: s.url + "/c", Guard: func() error { return nil }}); res.Reason != "" || !res.Reused {
			t.Errorf("got %q (%v), reused %v", res.Reason, res.Err, res.Reused)
		}
		if a, b, cc := s.hits.of("/a"), s.hits.of("/b"), s.hits.of("/c"); a != 0 || b != 0 || cc != 1 {
			t.Errorf("requests seen: got %d, %d, %d, want 0, 0, 1", a, b, cc)
		}
	})
	t.Run("the guard comes after a failed connection never", func(t *testing.T) {
		c := newClient(t, nil)
		called := false
		res := do(t, c, fetch.Request{URL: closedPort(t), Guard: func() error { called = true; return nil }})
		if res.Reason != fetch.ReasonRefused || called {
			t.Errorf("got %q, guard called %v", res.Reason, called)
		}
	})
	t.Run("a panic in it is the exchange's failure", func(t *testing.T) {
		s := newRawServer(t, func(_ int, c *net.TCPConn) { io.Copy(io.Discard, c) })
		c := newClient(t, nil)
		res := do(t, c, fetch.Request{URL: s.url, Guard: func() error { panic("broken guard") }})
		if res.Reason != fetch.ReasonInternal || res.Wrote || !strings.Contains(res.Err.Error(), "broken guard") {
			t.Errorf("got %q (%v), wrote %v", res.Reason, res.Err, res.Wrote)
		}
	})
}

// closedPort is the URL of a loopback port nobody listens on.
func closedPort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/"
}

type countReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c countReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
