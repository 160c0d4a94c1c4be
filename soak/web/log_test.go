package web_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deepcrawl/soak/web"
)

// until waits for a condition another goroutine brings about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited 10 s for %s", what)
		}
		runtime.Gosched()
	}
}

func TestLog(t *testing.T) {
	t.Run("counts what is in flight at one instant", func(t *testing.T) {
		s := newSite(t, web.Config{Pages: 10, Hosts: 2, Traps: []web.Trap{web.TrapSlow}, TrapSizes: web.TrapSizes{SlowLatency: time.Hour}})
		homes := start(t, s)
		ctx, cancel := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		for i := range 7 {
			wg.Go(func() {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, homes[i%2]+"trap/slow", nil)
				if err != nil {
					t.Error(err)
					return
				}
				if resp, err := client.Do(r); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, %v, want the request cancelled", resp, err)
				}
			})
		}
		until(t, "7 requests in flight", func() bool { return s.InFlight() == 7 })
		for _, h := range s.Hits() {
			if !h.End.IsZero() {
				t.Errorf("hit %d has an end while it is in flight", h.Seq)
			}
		}
		cancel()
		wg.Wait()
		until(t, "the site to notice", func() bool { return s.InFlight() == 0 })
		mustGet(t, homes[0])
		for host, want := range map[string]int{"127.0.0.1": 4, "127.0.0.2": 3, "": 7, "127.0.0.3": 0} {
			if got := s.MaxInFlight(host); got != want {
				t.Errorf("most in flight to %q: got %d, want %d", host, got, want)
			}
		}
		for _, h := range s.Hits()[:7] {
			if !h.Aborted || h.End.Before(h.Arrival) || h.Kind != web.KindTrap || h.Status != 0 {
				t.Errorf("got %+v, want an aborted trap without status", h)
			}
		}
	})

	t.Run("never shows more than a client had open", func(t *testing.T) {
		s := newSite(t, web.Config{Pages: 3000})
		home := start(t, s)[0]
		paths := make(chan string)
		go func() {
			defer close(paths)
			for e := range s.Expected() {
				paths <- e.Path
			}
		}()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for p := range paths {
					if _, err := get(t, home+p[1:]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		hits := s.Hits()
		if got := s.MaxInFlight("127.0.0.1"); got > 8 || got < 2 {
			t.Errorf("most in flight: got %d, want at most the 8 of the client", got)
		}
		if len(hits) != 3000 || s.Requests() != 3000 {
			t.Fatalf("got %d hits of %d requests, want 3,000", len(hits), s.Requests())
		}
		for i, h := range hits {
			if h.Seq != uint64(i+1) || h.End.Before(h.Arrival) || h.Status != 200 || h.Source != "127.0.0.1" || h.Bytes < 10_000 {
				t.Fatalf("hit %d is %+v", i, h)
			}
		}
	})

	t.Run("is the same after being written and read", func(t *testing.T) {
		s := newSite(t, web.Config{Pages: 40, Errors: everyError})
		crawl(t, start(t, s)[0], 2)
		for deadline := time.Now().Add(10 * time.Second); s.InFlight() > 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond) // a client that was cut off is done before the site is
		}
		var b bytes.Buffer
		if err := s.WriteLog(&b); err != nil {
			t.Fatal(err)
		}
		got, err := web.ReadLog(&b)
		if err != nil {
			t.Fatal(err)
		}
		want := s.Hits()
		if len(got) != len(want) {
			t.Fatalf("got %d hits, want %d", len(got), len(want))
		}
		for i := range want {
			w, g := want[i], got[i]
			if !g.Arrival.Equal(w.Arrival) || !g.End.Equal(w.End) || !g.Gate.Equal(w.Gate) {
				t.Errorf("hit %d: times differ: %+v, want %+v", i, g, w)
			}
			g.Arrival, g.End, g.Gate = w.Arrival, w.End, w.Gate
			if !reflect.DeepEqual(g, w) {
				t.Errorf("hit %d: got %+v, want %+v", i, g, w)
			}
		}
	})

	t.Run("read from a damaged file says how far it came", func(t *testing.T) {
		if _, err := web.ReadLog(strings.NewReader("{\"seq\":1}\n{\"seq\":")); err == nil || !strings.Contains(err.Error(), "after 1 hits") {
			t.Errorf("got %v, want an error that names one hit", err)
		}
	})

	t.Run("knows until when a client was asked to stay away", func(t *testing.T) {
		for name, mix := range map[string]web.ErrorMix{
			"seconds": {TooMany: 1, RetryAfter: 3 * time.Second},
			"date":    {TooManyDate: 1, RetryAfter: 3 * time.Second},
			"503":     {Unavailable: 1, RetryAfter: 2500 * time.Millisecond},
		} {
			s := newSite(t, web.Config{Pages: 2, Errors: mix})
			home := start(t, s)[0]
			page := ""
			for e := range s.Expected() {
				page = e.Path
			}
			a := mustGet(t, home+page[1:])
			h := s.Hits()[0]
			var said time.Time
			if sec, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
				said = h.Arrival.Add(time.Duration(sec) * time.Second)
			} else if said, err = http.ParseTime(a.header.Get("Retry-After")); err != nil {
				t.Fatal(err)
			}
			if d := h.Gate.Sub(said); d < 0 || d > time.Second/2 {
				t.Errorf("%s: gate is %v after the time the header names, want just after it", name, d)
			}
			if d := h.Gate.Sub(h.Arrival); d < mix.RetryAfter || d > mix.RetryAfter+1100*time.Millisecond {
				t.Errorf("%s: gate is %v after arrival, want about 3 s", name, d)
			}
		}
	})
}

func TestRobots(t *testing.T) {
	for name, c := range map[string]struct {
		robots web.Robots
		want   string
	}{
		"allow all":   {web.Robots{}, "User-agent: *\nDisallow:\n"},
		"private":     {web.Robots{Private: 3, CrawlDelay: 1500 * time.Millisecond}, "Disallow: /private/\nAllow: /private/open-\nCrawl-delay: 1.5\n"},
		"a text":      {web.Robots{Text: "User-agent: x\nDisallow: /\n"}, "User-agent: x\nDisallow: /\n"},
		"status once": {web.Robots{Status: 503, Times: 1}, "come back later"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, web.Config{Robots: c.robots})
			home := start(t, s)[0]
			if a := mustGet(t, home+"robots.txt"); !strings.Contains(string(a.body), c.want) {
				t.Errorf("got %q, want it to contain %q", a.body, c.want)
			}
			if a := mustGet(t, home+"robots.txt"); a.status != 200 {
				t.Errorf("the second request got %d, want 200", a.status)
			}
		})
	}
}

func TestSitemaps(t *testing.T) {
	s := newSite(t, web.Config{Pages: 95, Orphans: 10, Sitemap: true, SitemapEntries: 20})
	home := start(t, s)[0]
	if a := mustGet(t, home+"robots.txt"); !strings.Contains(string(a.body), "Sitemap: "+home+"sitemap.xml\n") {
		t.Errorf("robots.txt does not name the sitemap: %s", a.body)
	}
	listed := map[string]bool{}
	index := locs(mustGet(t, home+"sitemap.xml").body)
	if len(index) != 6 {
		t.Fatalf("got %d child sitemaps, want 6", len(index))
	}
	for _, child := range index {
		b := mustGet(t, child).body
		if strings.HasSuffix(child, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if b, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		for _, u := range locs(b) {
			listed["/"+strings.TrimPrefix(u, home)] = true
		}
	}
	orphans := 0
	for e := range s.Expected() {
		if !listed[e.Path] {
			t.Errorf("%s is not in the sitemaps", e.Path)
		}
		if e.SitemapOnly {
			orphans++
			if a := mustGet(t, home+e.Path[1:]); a.status != 200 {
				t.Errorf("orphan %s: got %d, want 200", e.Path, a.status)
			}
		}
	}
	if orphans != 10 || len(listed) != 105 {
		t.Errorf("got %d orphans and %d entries, want 10 and 105", orphans, len(listed))
	}
	if a := mustGet(t, home+"sitemap-7.xml"); a.status != 404 {
		t.Errorf("a child beyond the last: got %d, want 404", a.status)
	}
}

func locs(b []byte) []string {
	var out []string
	for part := range strings.SplitSeq(string(b), "<loc>") {
		if u, _, ok := strings.Cut(part, "</loc>"); ok {
			out = append(out, u)
		}
	}
	return out
}

func TestTraps(t *testing.T) {
	s := newSite(t, web.Config{Pages: 5, Traps: web.AllTraps(), TrapSizes: web.TrapSizes{
		HugeBytes: 3 << 20, Links: 5000, SitemapEntries: 7000, DripInterval: time.Hour, SlowLatency: time.Millisecond,
	}})
	home := start(t, s)[0]
	entries := map[string]string{}
	for _, l := range links(t, home, mustGet(t, home).body) {
		if rest, ok := strings.CutPrefix(l, home+"trap/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			entries[name] = l
		}
	}
	if len(entries) != len(web.AllTraps()) {
		t.Fatalf("the home page links to %d traps, want %d", len(entries), len(web.AllTraps()))
	}

	t.Run("calendar, repeat and session lead ever on", func(t *testing.T) {
		for _, name := range []string{"calendar", "repeat", "session"} {
			seen := map[string]bool{}
			for u := entries[name]; len(seen) < 50; {
				a := mustGet(t, u)
				if a.status != 200 {
					t.Fatalf("%s: got %d for %s", name, a.status, u)
				}
				seen[u] = true
				next := ""
				for _, l := range links(t, u, a.body) {
					if strings.Contains(l, "/trap/") && !seen[l] {
						next = l
					}
				}
				if next == "" {
					t.Fatalf("%s: no new link on %s", name, u)
				}
				u = next
			}
		}
	})
	t.Run("loop and self redirect without end", func(t *testing.T) {
		for _, name := range []string{"loop", "self"} {
			u := entries[name]
			for range 30 {
				a := mustGet(t, u)
				if a.status/100 != 3 {
					t.Fatalf("%s: got %d", name, a.status)
				}
				u = home + a.header.Get("Location")[1:]
			}
		}
	})
	t.Run("sizes are as configured", func(t *testing.T) {
		if a := mustGet(t, entries["huge"]); len(a.body) != 3<<20 {
			t.Errorf("huge: got %d bytes, want 3 MiB", len(a.body))
		}
		if n := len(anchor.FindAll(mustGet(t, entries["links"]).body, -1)); n != 5000 {
			t.Errorf("links: got %d, want 5,000", n)
		}
		if n := len(locs(mustGet(t, entries["sitemap"]).body)); n != 7000 {
			t.Errorf("sitemap: got %d entries, want 7,000", n)
		}
		if n := bytes.Count(mustGet(t, entries["nested"]).body, []byte("<div>")); n != 1500 {
			t.Errorf("nested: got %d, want 1,500", n)
		}
		if a := mustGet(t, home+"trap/sitemap/6999"); a.status != 200 {
			t.Errorf("an entry of the sitemap: got %d", a.status)
		}
	})
	t.Run("drip sends a byte and waits", func(t *testing.T) {
		resp, err := client.Get(entries["drip"])
		if err != nil {
			t.Fatal(err)
		}
		if n, err := resp.Body.Read(make([]byte, 10)); n != 1 || err != nil {
			t.Errorf("got %d bytes, %v, want 1", n, err)
		}
		_ = resp.Body.Close()
		until(t, "the drip to be given up", func() bool { return s.InFlight() == 0 })
	})
	t.Run("a trap that is not set is not there", func(t *testing.T) {
		s := newSite(t, web.Config{Pages: 5})
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/trap/self", nil))
		if w.Code != 404 {
			t.Errorf("got %d, want 404", w.Code)
		}
	})
}

func TestRunEndsOpenRequests(t *testing.T) {
	s := newSite(t, web.Config{Latency: time.Hour})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	failed := make(chan error, 1)
	go func() {
		_, err := get(t, l.URLs()[0])
		failed <- err
	}()
	until(t, "the request to arrive", func() bool { return s.InFlight() == 1 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := s.InFlight(); n != 0 {
		t.Errorf("%d requests are in flight after Run", n)
	}
	if err := <-failed; err == nil {
		t.Error("the client got an answer, want a closed connection")
	}
	if err := s.Serve(ctx, "nonsense"); err == nil {
		t.Error("an address without port: got no error")
	}
	if err := s.Serve(context.Background(), "127.0.0.5:80"); err == nil {
		t.Error("an address that is not the first host: got no error")
	}
}

func TestMemoryDoesNotGrowWithPages(t *testing.T) {
	if os.Getenv("GOGC") == "off" {
		t.Fatal("this test measures the heap and needs the garbage collector")
	}
	heap := func(pages int) uint64 {
		s := newSite(t, web.Config{Pages: pages})
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(s)
		return m.HeapAlloc
	}
	heap(10)
	small, large := heap(10), heap(10_000_000)
	if large > small+64<<10 {
		t.Errorf("a site of 10,000,000 pages takes %d bytes more than one of 10", large-small)
	}
}
