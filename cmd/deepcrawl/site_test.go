package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// testSite is a small site that counts what is asked of it.
type testSite struct {
	*httptest.Server
	mu   sync.Mutex
	hits map[string]int
	hold chan struct{} // /hold answers when it is closed
}

func newTestSite() *testSite {
	s := &testSite{hits: map[string]int{}, hold: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

func (s *testSite) close() {
	s.release()
	s.CloseClientConnections()
	s.Close()
}

func (s *testSite) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.hold:
	default:
		close(s.hold)
	}
}

func (s *testSite) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits[path]
}

func (s *testSite) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.hits[r.URL.Path]++
	s.mu.Unlock()
	page := func(head string, links ...string) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, "<!doctype html><html><head>%s</head><body>", head)
		for _, l := range links {
			_, _ = fmt.Fprintf(w, "<p><a href=%q>to %s</a></p>", l, l)
		}
		_, _ = fmt.Fprint(w, "</body></html>")
	}
	switch path := r.URL.Path; path {
	case "/robots.txt":
		_, _ = fmt.Fprint(w, "User-agent: *\nDisallow: /private/\n")
	case "/":
		page("<title>Home &amp; more</title>", "/a", "/b", "/missing", "/moved", "/private/x", "/deep/1", "http://other.example/")
	case "/a":
		page("<title>=1+1</title><link rel=canonical href='/a'>", "/", "/missing")
	case "/b":
		page("<title>B</title><link rel=canonical href='a'><meta name=robots content=noindex>")
	case "/moved":
		http.Redirect(w, r, "/a", http.StatusMovedPermanently)
	case "/away":
		http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
	case "/list":
		var links []string
		for i := range 30 {
			links = append(links, "/list/"+strconv.Itoa(i))
		}
		page("<title>List</title>", append(links, "/hold")...)
	case "/hold":
		select {
		case <-s.hold:
			page("<title>Held</title>")
		case <-r.Context().Done():
		}
	case "/fill":
		var links []string
		for i := range 20_000 {
			links = append(links, "/list/"+strings.Repeat("long-", 20)+strconv.Itoa(i))
		}
		page("<title>Many</title>", links...)
	case "/error":
		http.Error(w, "no", http.StatusNotImplemented)
	default:
		if n, ok := strings.CutPrefix(path, "/deep/"); ok {
			i, _ := strconv.Atoi(n)
			if i < 4 {
				page("<title>Deep</title>", "/deep/"+strconv.Itoa(i+1))
				return
			}
			page("<title>Deepest</title>")
			return
		}
		if strings.HasPrefix(path, "/list/") {
			page("<title>Item</title>", "/list")
			return
		}
		http.NotFound(w, r)
	}
}

// await waits for a condition that another goroutine or process brings about.
func await(t interface {
	Helper()
	Fatalf(string, ...any)
}, what string, done func() bool) {
	t.Helper()
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("waited a minute for %s", what)
		case <-tick.C:
		}
	}
}
