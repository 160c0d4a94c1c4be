package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// gatedSite is a site whose pages answer only as the test lets them, so that a crawl goes as far as it is meant to.
type gatedSite struct {
	*httptest.Server
	pages int
	flat  bool // the first page links to all others

	mu      sync.Mutex
	changed *sync.Cond
	left    int // pages that may answer still
	closed  bool
	hits    map[string]int
}

func newGatedSite(t *testing.T, pages int) *gatedSite {
	t.Helper()
	s := &gatedSite{pages: pages, hits: map[string]int{}}
	s.changed = sync.NewCond(&s.mu)
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.mu.Lock()
		s.closed = true
		s.mu.Unlock()
		s.changed.Broadcast()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// let lets n more pages answer.
func (s *gatedSite) let(n int) {
	s.mu.Lock()
	s.left += n
	s.mu.Unlock()
	s.changed.Broadcast()
}

// hit says how often a page was asked for, served how many pages were in all.
func (s *gatedSite) hit(path string) (n, served int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.hits {
		served += n
	}
	return s.hits[path], served
}

// ServeHTTP implements http.Handler: page N links to the ten that follow; every tenth is not there.
func (s *gatedSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" || r.URL.Path == "/sitemap.xml" {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	for s.left == 0 && !s.closed {
		s.changed.Wait()
	}
	s.left--
	s.hits[r.URL.Path]++
	s.mu.Unlock()
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/item-"))
	if r.URL.Path == "/" {
		n, err = 0, nil
	}
	if err != nil || n >= s.pages || n%10 == 9 {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprintf(w, "<!doctype html><html lang=en><title>Item %d of the shop</title><h1>Item %d</h1><p>Words about it.", n, n)
	for i := n + 1; (i <= n+10 || s.flat && n == 0) && i < s.pages; i++ {
		_, _ = fmt.Fprintf(w, `<a href="/item-%d">Item %d</a> `, i, i)
	}
}
