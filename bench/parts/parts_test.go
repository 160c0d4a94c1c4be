// Package parts measures what a page costs in each leaf of the crawler, beside
// what the null crawler pays for the same, on pages of the benchmark's site:
//
//	go test -bench . ./parts
//
// The figure to read is cpu-us/page: user and system time of this process
// over pages, garbage collection included. The site is another process.
package parts_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"

	"deepcrawl/crawl/extract"
	"deepcrawl/crawl/fetch"
	"deepcrawl/crawl/urlkey"
	"deepcrawl/soak/web"
)

var config = web.Config{Seed: 1, Pages: 10_000}

const origin = "http://127.0.0.1:8080"

// cpuTime is what this process has used so far.
func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs the loop of a benchmark and reports CPU time a page.
func measure(b *testing.B, loop func()) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime(b)
	loop()
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/1e3/float64(b.N), "cpu-us/page")
}

type page struct {
	url  string
	body []byte
}

// pages are the first pages of the site.
func pages(tb testing.TB) []page {
	tb.Helper()
	site, err := web.New(config)
	if err != nil {
		tb.Fatal(err)
	}
	var ps []page
	for e := range site.Expected() {
		w := httptest.NewRecorder()
		site.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, origin+e.Path, nil))
		if ps = append(ps, page{origin + e.Path, w.Body.Bytes()}); len(ps) == 500 {
			break
		}
	}
	return ps
}

func BenchmarkExtract(b *testing.B) {
	ps := pages(b)
	b.Run("deepcrawl", func(b *testing.B) {
		x := extract.New(extract.Config{Product: "bench"})
		measure(b, func() {
			for i := range b.N {
				p := x.HTML(extract.Input{Body: ps[i%len(ps)].body, ContentType: "text/html; charset=utf-8"})
				if len(p.Links) < 22 || p.Facts.Title == "" {
					b.Fatalf("got %d links and the title %q", len(p.Links), p.Facts.Title)
				}
				p.Release()
			}
		})
	})
	b.Run("null", func(b *testing.B) {
		measure(b, func() {
			for i := range b.N {
				doc, err := goquery.NewDocumentFromReader(bytes.NewReader(ps[i%len(ps)].body))
				if err != nil {
					b.Fatal(err)
				}
				if n := doc.Find("a[href]").Length(); n != 22 {
					b.Fatalf("got %d links", n)
				}
			}
		})
	})
}

// BenchmarkResolve resolves the links of a page to canonical URLs and keys.
func BenchmarkResolve(b *testing.B) {
	ps := pages(b)
	x := extract.New(extract.Config{Product: "bench"})
	hrefs := make([][][]byte, len(ps))
	for i, p := range ps {
		got := x.HTML(extract.Input{Body: p.body, ContentType: "text/html"})
		for _, l := range got.Links {
			hrefs[i] = append(hrefs[i], bytes.Clone(l.Href))
		}
		got.Release()
	}
	b.Run("deepcrawl", func(b *testing.B) {
		c, err := urlkey.New(urlkey.Options{})
		if err != nil {
			b.Fatal(err)
		}
		base, err := c.NewBase(origin)
		if err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 0, 4096)
		measure(b, func() {
			for i := range b.N {
				if err := base.Reset(ps[i%len(ps)].url); err != nil {
					b.Fatal(err)
				}
				for _, h := range hrefs[i%len(ps)] {
					u, _, err := base.Resolve(buf[:0], h)
					if err != nil {
						continue // mailto
					}
					if u.Key == (urlkey.Key{}) {
						b.Fatal("no key")
					}
				}
			}
		})
	})
	b.Run("null", func(b *testing.B) {
		measure(b, func() {
			for i := range b.N {
				base, err := url.Parse(ps[i%len(ps)].url)
				if err != nil {
					b.Fatal(err)
				}
				for _, h := range hrefs[i%len(ps)] {
					u, err := base.Parse(string(h))
					if err != nil {
						b.Fatal(err)
					}
					u.Fragment = ""
					_ = u.String()
				}
			}
		})
	})
}

// startSite serves the site in another process and returns its home page.
func startSite(b *testing.B) string {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "site")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/site").CombinedOutput(); err != nil {
		b.Fatalf("build the site server: %v\n%s", err, out)
	}
	c, err := json.Marshal(config)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(binary, "-config", string(c))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		b.Fatal(err)
	}
	var homes []string
	if err := json.Unmarshal(line, &homes); err != nil {
		b.Fatal(err)
	}
	return homes[0]
}

// BenchmarkFetch fetches pages, 24 at a time.
func BenchmarkFetch(b *testing.B) {
	home := startSite(b)
	var paths []string
	for _, p := range pages(b) {
		paths = append(paths, home+p.url[len(origin)+1:])
	}
	parallel := func(b *testing.B, get func(u string)) {
		var next atomic.Int64
		b.SetParallelism(12)
		measure(b, func() {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					get(paths[int(next.Add(1))%len(paths)])
				}
			})
		})
	}
	b.Run("deepcrawl", func(b *testing.B) {
		c, err := fetch.New(fetch.Config{UserAgent: "Bench/1", AllowPrivate: true, IdlePerHost: 48})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		parallel(b, func(u string) {
			res := c.Do(b.Context(), fetch.Request{URL: u})
			if res.Status != http.StatusOK || len(res.Body) < 9000 {
				b.Errorf("got %d %s %v", res.Status, res.Reason, res.Err)
			}
			res.Release()
		})
	})
	b.Run("null", func(b *testing.B) {
		c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 48, DisableCompression: true}}
		defer c.CloseIdleConnections()
		parallel(b, func(u string) {
			resp, err := c.Get(u)
			if err != nil {
				b.Error(err)
				return
			}
			if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < 9000 {
				b.Errorf("got %d bytes, %v", n, err)
			}
			_ = resp.Body.Close()
		})
	})
}
