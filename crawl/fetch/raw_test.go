package fetch_test

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// rawServer accepts connections on loopback and hands each to serve with its
// ordinal, from 0; the connection is closed when serve returns.
type rawServer struct {
	url      string
	addr     string
	accepted atomic.Int64
}

func newRawServer(t testing.TB, serve func(n int, c *net.TCPConn)) *rawServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{url: "http://" + l.Addr().String(), addr: l.Addr().String()}
	var wg sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := int(s.accepted.Add(1)) - 1
			mu.Lock()
			open[c] = true
			mu.Unlock()
			wg.Go(func() {
				serve(n, c.(*net.TCPConn))
				c.Close()
				mu.Lock()
				delete(open, c)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return s
}

// reset closes c so that its peer gets a reset, not an orderly end.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// hits counts requests by path.
type hits struct {
	mu sync.Mutex
	n  map[string]int
}

func (h *hits) add(path string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.n == nil {
		h.n = map[string]int{}
	}
	h.n[path]++
}

func (h *hits) of(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.n[path]
}

// next reads one request head and counts it.
func (h *hits) next(br *bufio.Reader) (*http.Request, error) {
	r, err := http.ReadRequest(br)
	if err == nil {
		h.add(r.URL.Path)
	}
	return r, err
}
