package web_test

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"deepcrawl/soak/web"
)

func newSite(t testing.TB, c web.Config) *web.Site {
	t.Helper()
	s, err := web.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start serves a site on its loopback hosts and returns the home pages.
func start(t testing.TB, s *web.Site) []string {
	t.Helper()
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.URLs()
}

var client = &http.Client{
	Transport:     &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func get(t testing.TB, u string) (answer, error) {
	t.Helper()
	resp, err := client.Get(u)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, b}, err
}

func mustGet(t testing.TB, u string) answer {
	t.Helper()
	a, err := get(t, u)
	if err != nil {
		t.Fatalf("get %s: %v", u, err)
	}
	return a
}

var anchor = regexp.MustCompile(`<a href="([^"]*)"`)

// links returns the anchors of a page resolved against its URL, without
// fragments and tracking parameters.
func links(t testing.TB, base string, body []byte) []string {
	t.Helper()
	b, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range anchor.FindAllSubmatch(body, -1) {
		u, err := b.Parse(strings.TrimSpace(html.UnescapeString(string(m[1]))))
		if err != nil {
			t.Fatalf("link %q on %s: %v", m[1], base, err)
		}
		u.Fragment = ""
		if strings.HasPrefix(u.RawQuery, "utm_") {
			u.RawQuery = ""
		}
		u.RawPath = ""
		out = append(out, u.String())
	}
	return out
}

// crawl visits every page of a host by its links, retrying each URL up to
// tries times until it has a whole answer below 429, and returns the last
// status of each path, 0 where no whole answer came.
func crawl(t testing.TB, home string, tries int) map[string]int {
	t.Helper()
	seen := map[string]int{}
	queue := []string{home}
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		path := "/" + strings.TrimPrefix(u, home)
		if _, ok := seen[path]; ok || !strings.HasPrefix(u, home) {
			continue
		}
		var a answer
		for range tries {
			var err error
			if a, err = get(t, u); err != nil {
				a.status = 0
				continue
			}
			if a.status < 429 {
				break
			}
		}
		seen[path] = a.status
		switch {
		case a.status >= 300 && a.status < 400:
			next, err := url.Parse(u)
			if err == nil {
				next, err = next.Parse(a.header.Get("Location"))
			}
			if err != nil {
				t.Fatal(err)
			}
			queue = append(queue, next.String())
		case a.status == 200:
			queue = append(queue, links(t, u, a.body)...)
		}
	}
	return seen
}

var everyError = web.ErrorMix{
	NotFound: .05, Gone: .04, Forbidden: .04, Broken: .04, Redirect: .06, Big: .02, WrongLength: .04,
	Fails: .04, Unavailable: .04, TooMany: .04, TooManyDate: .04, Reset: .04, Hang: .03,
	HangFor: time.Millisecond, BigBytes: 300_000,
}

func TestCrawlFindsWhatIsExpected(t *testing.T) {
	configs := map[string]web.Config{
		"a plain site":                      {Seed: 1, Pages: 500},
		"a single page":                     {Seed: 2, Pages: 1},
		"a chain of pages with two links":   {Seed: 3, Pages: 60, LinksPerPage: 2},
		"every kind of error":               {Seed: 4, Pages: 400, Errors: everyError},
		"private pages and other spellings": {Seed: 5, Pages: 200, Robots: web.Robots{Private: 20}, Variants: true},
		"several hosts with cross links":    {Seed: 6, Pages: 50, Hosts: 3, CrossHost: true},
	}
	for name, c := range configs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, c)
			homes := start(t, s)
			want := map[string]int{}
			for e := range s.Expected() {
				if _, twice := want[e.Host+e.Path]; twice {
					t.Errorf("%s%s is expected twice", e.Host, e.Path)
				}
				want[e.Host+e.Path] = e.Status
				if e.Kind == web.KindWrongLength {
					want[e.Host+e.Path] = 0
				}
			}
			got := map[string]int{}
			for _, home := range homes {
				u, err := url.Parse(home)
				if err != nil {
					t.Fatal(err)
				}
				for path, status := range crawl(t, home, 2) {
					got[u.Hostname()+path] = status
				}
			}
			for path, status := range want {
				if g, ok := got[path]; !ok || g != status {
					t.Errorf("%s: got status %d (found: %v), want %d", path, g, ok, status)
				}
				delete(got, path)
			}
			for path, status := range got {
				t.Errorf("%s: got status %d, is not expected", path, status)
			}
			requests := map[string]int{}
			for _, h := range s.Hits() {
				requests[h.Host+h.Path]++
				if h.Kind == web.KindUnknown {
					t.Errorf("the site links to %s, which it does not know", h.Path)
				}
			}
			for e := range s.Expected() {
				n := requests[e.Host+e.Path]
				if e.Kind == web.KindBroken || e.Kind == web.KindWrongLength {
					n-- // the test's crawl retries these once in vain
				}
				if n != e.Requests && !c.Variants {
					t.Errorf("%s%s (%s, before that %q): got %d requests, want %d", e.Host, e.Path, e.Kind, e.Before, n, e.Requests)
				}
			}
		})
	}
}

func TestEveryErrorKindOccurs(t *testing.T) {
	s := newSite(t, web.Config{Seed: 4, Pages: 400, Errors: everyError})
	seen := map[web.Kind]int{}
	for e := range s.Expected() {
		seen[e.Kind]++
		seen[e.Before]++
	}
	for _, k := range []web.Kind{
		web.KindPage, web.KindBig, web.KindNotFound, web.KindGone, web.KindForbidden, web.KindBroken, web.KindRedirect, web.KindWrongLength,
		web.KindFails, web.KindUnavailable, web.KindTooMany, web.KindTooManyDate, web.KindReset, web.KindHang,
	} {
		if seen[k] == 0 {
			t.Errorf("no page is of kind %s", k)
		}
	}
}

func TestPages(t *testing.T) {
	const pages = 3000
	s := newSite(t, web.Config{Seed: 9, Pages: pages})
	bodies := map[string]string{}
	n := 0
	for e := range s.Expected() {
		if n++; n > 300 {
			break
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9999"+e.Path, nil))
		body := w.Body.String()
		if d := len(body) - 11_000; d < -700 || d > 700 {
			t.Errorf("%s has %d bytes, want about 11,000", e.Path, len(body))
		}
		if got := len(anchor.FindAllString(body, -1)); got != 22 {
			t.Errorf("%s has %d anchors, want 20 to the site and two others", e.Path, got)
		}
		for _, part := range []string{
			"<title>", `<meta name="description" content="`, `<link rel="canonical" href="http://127.0.0.1:9999` + e.Path + `">`,
			`property="og:title"`, "application/ld+json", "<h1>", "<h2>", "<img ", " alt=",
		} {
			if !strings.Contains(body, part) {
				t.Errorf("%s does not contain %s", e.Path, part)
			}
		}
		bodies[body] = e.Path
	}
	if len(bodies) != 300 {
		t.Errorf("got %d different pages, want 300", len(bodies))
	}

	t.Run("are the same in another process's site", func(t *testing.T) {
		other := newSite(t, web.Config{Seed: 9, Pages: pages})
		for body, path := range bodies {
			w := httptest.NewRecorder()
			other.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9999"+path, nil))
			if w.Body.String() != body {
				t.Fatalf("%s differs", path)
			}
		}
	})
	t.Run("exist under their one path only", func(t *testing.T) {
		for body, path := range bodies {
			if path == "/" {
				continue
			}
			for _, wrong := range []string{path + "/", path + "0000000", path[:len(path)-1] + "x", "/x" + path} {
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9999"+wrong, nil))
				if w.Code != http.StatusNotFound || w.Body.String() == body {
					t.Fatalf("%s: got %d, want 404", wrong, w.Code)
				}
			}
		}
	})
}

func TestConfigErrorsNameTheField(t *testing.T) {
	for want, c := range map[string]web.Config{
		"Pages":            {Pages: -1},
		"Hosts":            {Hosts: 251},
		"LinksPerPage":     {LinksPerPage: 1},
		"SlowShare":        {SlowShare: 1.5},
		"Errors.NotFound":  {Errors: web.ErrorMix{NotFound: -1}},
		"shares of Errors": {Errors: web.ErrorMix{NotFound: .6, Gone: .6}},
		"Orphans":          {Orphans: 5},
		"unknown trap":     {Traps: []web.Trap{"pit"}},
	} {
		if _, err := web.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that names %s", err, want)
		}
	}
}

func TestSlowPages(t *testing.T) {
	s := newSite(t, web.Config{Seed: 1, Pages: 400, SlowShare: 0.05, SlowLatency: 30 * time.Millisecond})
	home := start(t, s)[0]
	crawl(t, home, 1)
	slow := 0
	for _, h := range s.Hits() {
		if h.End.Sub(h.Arrival) >= 30*time.Millisecond {
			slow++
		}
	}
	if slow < 8 || slow > 40 {
		t.Errorf("%d of 400 pages were slow, want about 20", slow)
	}
}

func TestTransientErrorsAreCountedByAgent(t *testing.T) {
	s := newSite(t, web.Config{Seed: 1, Pages: 30, Errors: web.ErrorMix{Fails: 1, Times: 2}})
	path := ""
	for e := range s.Expected() {
		path = e.Path
	}
	for _, agent := range []string{"a", "b"} {
		var got []int
		for range 3 {
			r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
			r.Header.Set("User-Agent", agent)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			got = append(got, w.Code)
		}
		if want := []int{500, 500, 200}; !slices.Equal(got, want) {
			t.Errorf("agent %s got %v, want %v", agent, got, want)
		}
	}
}

func TestGzipPages(t *testing.T) {
	s := newSite(t, web.Config{Seed: 1, Pages: 5, GzipShare: 1})
	home := start(t, s)[0]
	plain := mustGet(t, home)
	unzip := &http.Client{Transport: &http.Transport{}}
	resp, err := unzip.Get(home)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !resp.Uncompressed || !bytes.Equal(b, plain.body) {
		t.Errorf("the gzipped page (gzipped: %v) differs from the plain one", resp.Uncompressed)
	}
}

func BenchmarkHandler(b *testing.B) {
	s := newSite(b, web.Config{Seed: 1, Pages: 10_000})
	var reqs []*http.Request
	for e := range s.Expected() {
		reqs = append(reqs, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080"+e.Path, nil))
	}
	h := s.Handler()
	w := &discard{h: http.Header{}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		clear(w.h)
		h.ServeHTTP(w, reqs[i%len(reqs)])
	}
}

type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}

func Example() {
	s, err := web.New(web.Config{Seed: 1, Pages: 3})
	if err != nil {
		panic(err)
	}
	for e := range s.Expected() {
		fmt.Println(e.Host, e.Status, e.Path)
	}
	// Output:
	// 127.0.0.1 200 /
	// 127.0.0.1 200 /cars/clever-drawer-1
	// 127.0.0.1 200 /games/hidden-ribbon-2
}
