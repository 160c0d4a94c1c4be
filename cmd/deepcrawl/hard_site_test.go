package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// row is a line of export --what pages --format jsonl.
type row struct {
	URL        string `json:"url"`
	State      string `json:"state"`
	Reason     string `json:"reason"`
	Status     int    `json:"status"`
	Depth      int    `json:"depth"`
	Via        string `json:"via"`
	RedirectTo string `json:"redirect_to"`
	Inlinks    int    `json:"inlinks"`
}

func exported(t *testing.T, dir string) (rows []row) {
	t.Helper()
	p := deepcrawl(t, dir, exitOK, "export", "last", "--format", "jsonl")
	for line := range strings.Lines(p.out.String()) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		rows = append(rows, r)
	}
	return rows
}

// crawlTo crawls to the end and returns the closing object.
func crawlTo(t *testing.T, dir string, code int, args ...string) closing {
	t.Helper()
	p := start(t, dir, append([]string{"crawl", "--quiet", "--json"}, args...)...)
	if got := p.endWithin(t, time.Minute); got != code {
		t.Fatalf("exit code %d, want %d; stderr: %s", got, code, p.err.String())
	}
	c := p.closing(t)
	wholeLedger(t, dbOf(dir), c.State == "done")
	return c
}

func TestHardRobots(t *testing.T) {
	pages := func(robots http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/robots"):
				robots(w, r)
			case r.URL.Path == "/":
				html(w, `<a href=/open>o</a><a href=/shut/1>s</a>`)
			case r.URL.Path == "/sitemap.xml":
				http.NotFound(w, r)
			default:
				html(w, "")
			}
		}
	}
	t.Run("5xx: nothing is requested, it says so, and Ctrl-C ends it", func(t *testing.T) {
		t.Parallel()
		s := newHandSite(t, pages(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) }))
		dir := t.TempDir()
		p := start(t, dir, "crawl", s.URL)
		await(t, "word of what it waits for", func() bool { return strings.Contains(p.err.String(), "robots.txt cannot be had") })
		send(t, p, os.Interrupt)
		if code := p.endWithin(t, 20*time.Second); code != exitInterrupted {
			t.Errorf("got exit code %d, want %d", code, exitInterrupted)
		}
		if !strings.Contains(p.out.String(), "crawl --resume 1") {
			t.Errorf("no resume command in %q", p.out.String())
		}
		if n := s.count("/"); n != 0 {
			t.Errorf("/ was requested %d times, want 0", n)
		}
		wholeLedger(t, dbOf(dir), false)
	})
	t.Run("429 with Retry-After: waited for, then the rules hold", func(t *testing.T) {
		t.Parallel()
		var asked atomic.Int64
		s := newHandSite(t, pages(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) == 1 {
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			_, _ = fmt.Fprint(w, "User-agent: *\nDisallow: /shut/\n")
		}))
		began := time.Now()
		c := crawlTo(t, t.TempDir(), exitOK, s.URL)
		if c.Fetched != 2 || c.Excluded != 1 || s.count("/shut/1") != 0 {
			t.Errorf("got %+v, /shut/1 requested %d times", c, s.count("/shut/1"))
		}
		if took := time.Since(began); took < 1900*time.Millisecond {
			t.Errorf("over after %v: it did not wait", took)
		}
	})
	for hops, shut := range map[int]int{5: 0, 6: 1} {
		t.Run(fmt.Sprintf("%d redirects: /shut/ is requested %d times", hops, shut), func(t *testing.T) {
			t.Parallel()
			s := newHandSite(t, pages(func(w http.ResponseWriter, r *http.Request) {
				n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/robots"))
				if n < hops {
					http.Redirect(w, r, "/robots"+strconv.Itoa(n+1), http.StatusFound)
					return
				}
				_, _ = fmt.Fprint(w, "User-agent: *\nDisallow: /shut/\n")
			}))
			crawlTo(t, t.TempDir(), exitOK, s.URL)
			if n := s.count("/shut/1"); n != shut {
				t.Errorf("/shut/1 was requested %d times, want %d", n, shut)
			}
		})
	}
	t.Run("endless: rules within 500 KiB hold, those behind do not", func(t *testing.T) {
		t.Parallel()
		s := newHandSite(t, pages(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprint(w, "User-agent: *\nDisallow: /shut/\n")
			filler := []byte(strings.Repeat("# nothing here\n", 4096))
			for range 1 << 10 {
				if _, err := w.Write(filler); err != nil || r.Context().Err() != nil {
					return
				}
			}
			_, _ = fmt.Fprint(w, "Disallow: /open\n")
		}))
		c := crawlTo(t, t.TempDir(), exitOK, s.URL)
		if c.Fetched != 2 || s.count("/shut/1") != 0 || s.count("/open") != 1 {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("404 allows all, an HTML page instead allows all", func(t *testing.T) {
		t.Parallel()
		for _, h := range []http.HandlerFunc{http.NotFound, func(w http.ResponseWriter, _ *http.Request) { html(w, "hello") }} {
			s := newHandSite(t, pages(h))
			if c := crawlTo(t, t.TempDir(), exitOK, s.URL); c.Fetched != 3 {
				t.Errorf("got %+v", c)
			}
		}
	})
}

func TestHardAnswers(t *testing.T) {
	t.Run("403 to everything is an answer, not a crash", func(t *testing.T) {
		t.Parallel()
		s := newHandSite(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
		c := crawlTo(t, t.TempDir(), exitOK, s.URL)
		if c.ByStatus["403"] != 1 || c.Discovered != 1 || s.count("/") != 1 {
			t.Errorf("got %+v, / requested %d times", c, s.count("/"))
		}
	})
	t.Run("429 to everything but robots.txt: it slows down, says so, and Ctrl-C ends it", func(t *testing.T) {
		t.Parallel()
		s := newHandSite(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" || r.URL.Path == "/sitemap.xml" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		})
		dir := t.TempDir()
		p := start(t, dir, "crawl", s.URL)
		await(t, "word of what it waits for", func() bool { return strings.Contains(p.err.String(), "are tried again, until ") })
		send(t, p, os.Interrupt)
		if code := p.endWithin(t, 20*time.Second); code != exitInterrupted {
			t.Errorf("got exit code %d; stderr: %s", code, p.err.String())
		}
		if n := s.count("/"); n > 4 {
			t.Errorf("/ was requested %d times within seconds", n)
		}
		wholeLedger(t, dbOf(dir), false)
	})
	t.Run("a site that dies in mid-crawl is left alone, and nothing of it is given up", func(t *testing.T) {
		t.Parallel()
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/robots.txt" || r.URL.Path == "/sitemap.xml":
				http.NotFound(w, r)
			case r.URL.Path == "/":
				var b strings.Builder
				for i := range 300 {
					fmt.Fprintf(&b, "<a href=/p/%d>p</a>", i)
				}
				html(w, b.String())
			default:
				time.Sleep(5 * time.Millisecond) // the page takes this long
				html(w, "")
			}
		})
		first := httptest.NewServer(handler)
		addr := first.Listener.Addr().String()
		var served atomic.Int64
		first.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { served.Add(1); handler(w, r) })
		dir := t.TempDir()
		p := start(t, dir, "crawl", first.URL)
		await(t, "some pages", func() bool { return served.Load() > 60 })
		first.CloseClientConnections()
		first.Close()
		await(t, "word that the host is left alone", func() bool { return strings.Contains(p.err.String(), "waiting: ") })
		send(t, p, os.Interrupt)
		if code := p.endWithin(t, 30*time.Second); code != exitInterrupted {
			t.Errorf("got exit code %d; stderr: %s", code, p.err.String())
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		second := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
		second.Start()
		t.Cleanup(second.Close)
		// The host is left alone for three minutes, over a restart too.
		again := start(t, dir, "crawl", "--resume", "last", "--json")
		if !long() {
			await(t, "word of what it waits for", func() bool { return strings.Contains(again.err.String(), "waiting: 127.0.0.1") })
			send(t, again, os.Interrupt)
			if code := again.endWithin(t, 30*time.Second); code != exitInterrupted {
				t.Errorf("got exit code %d; stderr: %s", code, again.err.String())
			}
			if c := again.closing(t); c.Failed != 0 {
				t.Errorf("got %+v, want nothing given up", c)
			}
			wholeLedger(t, dbOf(dir), false)
			return
		}
		if code := again.endWithin(t, 5*time.Minute); code != exitOK {
			t.Fatalf("got exit code %d; stderr: %s", code, again.err.String())
		}
		if c := again.closing(t); c.Fetched != 301 || c.Failed != 0 {
			t.Errorf("got %+v, want 301 fetched", c)
		}
	})
	t.Run("a page that takes the connection away each time fails by itself", func(t *testing.T) {
		t.Parallel()
		s := newHandSite(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/":
				html(w, "<a href=/cut>c</a><a href=/fine>f</a><a href=/garbage>g</a><a href=/bomb>b</a><a href=/short>b</a>")
			case "/cut":
				panic(http.ErrAbortHandler)
			case "/garbage":
				c, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					_, _ = c.Write([]byte("\x00\x01\x02 this is no HTTP\r\n\r\n"))
					_ = c.Close()
				}
			case "/bomb":
				w.Header().Set("Content-Type", "text/html")
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				zero := make([]byte, 1<<20)
				for range 256 {
					if _, err := z.Write(zero); err != nil {
						return
					}
				}
				_ = z.Close()
			case "/short":
				w.Header().Set("Content-Type", "text/html")
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write([]byte("this is not gzip at all"))
			case "/fine":
				html(w, "")
			default:
				http.NotFound(w, r)
			}
		})
		dir := t.TempDir()
		c := crawlTo(t, dir, exitOK, s.URL)
		if c.Fetched+c.Failed != 6 || c.Fetched < 2 {
			t.Errorf("got %+v", c)
		}
		for _, r := range exported(t, dir) {
			want, ok := map[string]string{"/cut": "reset", "/garbage": "malformed", "/bomb": "too-large"}[strings.TrimPrefix(r.URL, s.URL)]
			if ok && (r.State != "failed" || r.Reason != want) {
				t.Errorf("%s is %s for reason %q, want failed for %q", r.URL, r.State, r.Reason, want)
			}
		}
		if n := s.count("/fine"); n != 1 {
			t.Errorf("/fine was requested %d times, want 1", n)
		}
	})
}

func TestHardURLs(t *testing.T) {
	t.Run("one request for all spellings, none for a fragment, and no broken link of our own making", func(t *testing.T) {
		t.Parallel()
		host := ""
		s := newHandSite(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/":
				html(w, fmt.Sprintf(`<a href=/a>1</a><a href="/a#x">2</a><a href="/./a">3</a><a href="/b/../a">4</a><a href="%%2e/a">5</a>
<a href="http://%[1]s/%%61">6</a><a href="HTTP://%[1]s/a">7</a><a href="/a?utm_source=x">8</a><a href=" /a
">9</a><a href="//%[1]s/a">10</a><a href="http://user:pw@%[1]s/a">11</a><a href="\a">12</a>
<a href="javascript:void(0)">j</a><a href="mailto:a@b">m</a><a href="">e</a><a href="#top">t</a><a href="http://[::bad">x</a>
<a href="/q?b=2&amp;a=1">q</a><a href="/q?a=1&b=2">q2</a>`, host)+"<a href=\"/\xff\xfe%zz\">u</a><a href='/\xc3\xa9'>e</a><a href=/%C3%A9>e</a><a href=/%c3%a9>e</a>")
			default:
				html(w, "")
			}
		})
		host = strings.TrimPrefix(s.URL, "http://")
		dir := t.TempDir()
		crawlTo(t, dir, exitOK, s.URL, "--no-sitemaps")
		for uri, n := range s.hits {
			if n != 1 {
				t.Errorf("%q was requested %d times, want 1", uri, n)
			}
		}
		if rows := exported(t, dir); len(rows) != 6 {
			t.Errorf("%d URLs are known, want 6: %+v", len(rows), rows)
		}
		for _, uri := range []string{"/", "/a", "/%C3%A9", "/q?b=2&a=1", "/q?a=1&b=2"} {
			if s.hits[uri] != 1 {
				t.Errorf("%s was requested %d times, want 1", uri, s.hits[uri])
			}
		}
	})
	t.Run("20,000 bytes, 300 redirects, loops, redirects to nowhere: each ends with a reason", func(t *testing.T) {
		t.Parallel()
		long := "/long/" + strings.Repeat("x", 20_000)
		s := newHandSite(t, func(w http.ResponseWriter, r *http.Request) {
			path := r.URL.Path
			switch {
			case path == "/":
				html(w, "<a href="+long+">l</a><a href=/r/0>r</a><a href=/self>s</a><a href=/loop/1>l</a><a href=/nowhere>n</a><a href=/empty>n</a><a href=/away>n</a><a href=/tolong>n</a>")
			case strings.HasPrefix(path, "/r/"):
				n, _ := strconv.Atoi(path[3:])
				if n == 300 {
					html(w, "the end")
					return
				}
				http.Redirect(w, r, "/r/"+strconv.Itoa(n+1), http.StatusFound)
			case path == "/self":
				http.Redirect(w, r, "/self", http.StatusFound)
			case path == "/loop/1":
				http.Redirect(w, r, "/loop/2", http.StatusMovedPermanently)
			case path == "/loop/2":
				http.Redirect(w, r, "/loop/1", http.StatusMovedPermanently)
			case path == "/nowhere":
				w.Header().Set("Location", "http://[::bad/\x7f")
				w.WriteHeader(http.StatusFound)
			case path == "/empty":
				w.WriteHeader(http.StatusFound)
			case path == "/away":
				w.Header().Set("Location", "ftp://x.example/")
				w.WriteHeader(http.StatusFound)
			case path == "/tolong":
				w.Header().Set("Location", long)
				w.WriteHeader(http.StatusFound)
			default:
				http.NotFound(w, r)
			}
		})
		dir := t.TempDir()
		c := crawlTo(t, dir, exitOK, s.URL)
		rows := exported(t, dir)
		by := map[string]row{}
		for _, r := range rows {
			by[strings.TrimPrefix(r.URL, s.URL)] = r
		}
		if c.ByReason["too-long"] != 1 {
			t.Errorf("got %v, want one URL too long", c.ByReason)
		}
		if n := s.asked(); n > 60 {
			t.Errorf("%d requests: the chain of redirects was followed on and on", n)
		}
		if c.ByReason["redirect-chain"] != 1 {
			t.Errorf("got %v, want one chain", c.ByReason)
		}
		for _, p := range []string{"/self", "/loop/1", "/loop/2", "/nowhere", "/empty", "/away", "/tolong"} {
			if by[p].Status/100 != 3 || s.count(p) != 1 {
				t.Errorf("%s: %+v, requested %d times", p, by[p], s.count(p))
			}
		}
	})
}

func TestHardTraps(t *testing.T) {
	t.Parallel()
	mapEntries, links, body := 200_000, 100_000, int64(64<<20)
	if long() {
		mapEntries, body = 1_000_000, 1<<30
	}
	var sent atomic.Int64
	hostURL := ""
	s := newHandSite(t, func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		switch {
		case path == "/robots.txt":
			_, _ = fmt.Fprintf(w, "Sitemap: %s/map.xml\n", hostURL)
		case path == "/map.xml":
			var b bytes.Buffer
			b.WriteString(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
			for i := range mapEntries {
				fmt.Fprintf(&b, "<url><loc>%s/m/%d</loc></url>", hostURL, i)
			}
			b.WriteString("</urlset>")
			_, _ = w.Write(b.Bytes())
		case path == "/":
			html(w, "<a href=/huge>h</a><a href=/links>l</a><a href=/nested>n</a><a href=/fine>f</a>")
		case path == "/huge":
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Length", strconv.FormatInt(body, 10))
			block := bytes.Repeat([]byte("<p>words and words</p>\n"), 2849)
			for n := int64(0); n < body; n += int64(len(block)) {
				k, err := w.Write(block[:min(int64(len(block)), body-n)])
				sent.Add(int64(k))
				if err != nil {
					return
				}
			}
		case path == "/links":
			var b strings.Builder
			for i := range links {
				fmt.Fprintf(&b, "<a href=/l/%d>l</a>", i)
			}
			html(w, b.String())
		case path == "/nested":
			html(w, strings.Repeat("<div><b>", 50_000)+"<a href=/inner>i</a>")
		default:
			html(w, "")
		}
	})
	hostURL = s.URL
	t.Run("a page limit holds whatever the sitemap lists", func(t *testing.T) {
		dir := t.TempDir()
		c := trapped(t, dir, s.URL, "--max-pages", "2000")
		if c.Fetched+c.Failed != 2000 || s.asked()-s.count("/map.xml") != 2000 {
			t.Errorf("%d pages, and the site counts %d; want 2000", c.Fetched+c.Failed, s.asked()-s.count("/map.xml"))
		}
	})
	t.Run("links beside the traps are not starved", func(t *testing.T) {
		dir := t.TempDir()
		c := trapped(t, dir, s.URL, "--max-pages", "3000", "--no-sitemaps")
		if c.Fetched+c.Failed != 3000 || c.ByReason["too-large"] != 1 {
			t.Errorf("got %+v", c)
		}
		if n := sent.Load(); n > 16<<20 {
			t.Errorf("%d MB of the huge page were taken", n>>20)
		}
		for _, path := range []string{"/huge", "/links", "/nested", "/fine"} {
			if s.count(path) != 1 {
				t.Errorf("%s was requested %d times, want 1", path, s.count(path))
			}
		}
		if !slices.ContainsFunc(exported(t, dir), func(r row) bool { return r.URL == s.URL+"/inner" }) {
			t.Error("the link of the nested page was lost")
		}
	})
	if long() {
		t.Run("without a limit it ends, too", func(t *testing.T) {
			if c := trapped(t, t.TempDir(), s.URL); c.State != "done" || c.Discovered < 60_000 {
				t.Errorf("got %+v", c)
			}
		})
	}
}

func trapped(t *testing.T, dir string, args ...string) closing {
	t.Helper()
	p := start(t, dir, append([]string{"crawl", "--quiet", "--json", "--profile", "fast"}, args...)...)
	peak := p.watchMemory()
	if code := p.endWithin(t, 2*time.Minute); code != exitOK {
		t.Fatalf("got exit code %d: %s", code, p.err.String())
	}
	wholeLedger(t, dbOf(dir), true)
	if m := peak(); m == 0 || m > 250<<20 {
		t.Errorf("peak memory %d MB, want 1 to 250", m>>20)
	}
	return p.closing(t)
}
