//go:build unix

package fetch_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"deepcrawl/crawl/fetch"
)

// cpu is the user and system time of this process so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPage fetches an 11 KB page over loopback; cpu-us/op includes the
// server's share, the same in every row.
func BenchmarkPage(b *testing.B) {
	page := []byte(strings.Repeat("<p>Eleven kilobytes of page.</p>\n", 340))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		w.Write(page)
	})
	plain := httptest.NewServer(handler)
	defer plain.Close()
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	tlsConf := secure.Client().Transport.(*http.Transport).TLSClientConfig
	for _, s := range []struct{ name, url string }{{"h1", plain.URL}, {"h2", secure.URL}} {
		run := func(name string, one func() (int, error)) {
			b.Run(s.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(12)
				start := cpu()
				var failed atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if n, err := one(); err != nil || n != len(page) {
							failed.Add(1)
						}
					}
				})
				b.ReportMetric(float64((cpu()-start).Microseconds())/float64(b.N), "cpu-us/op")
				if failed.Load() > 0 {
					b.Fatalf("%d exchanges failed", failed.Load())
				}
			})
		}
		c := newClient(b, func(cfg *fetch.Config) { cfg.TLS = tlsConf })
		run("fetch", func() (int, error) {
			r := c.Do(context.Background(), fetch.Request{URL: s.url + "/page"})
			defer r.Release()
			return len(r.Body), r.Err
		})
		tr := &http.Transport{MaxIdleConnsPerHost: 48, TLSClientConfig: tlsConf, ForceAttemptHTTP2: true}
		defer tr.CloseIdleConnections()
		hc := &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		run("net-http", func() (int, error) {
			req, err := http.NewRequestWithContext(context.Background(), "GET", s.url+"/page", nil)
			if err != nil {
				return 0, err
			}
			resp, err := hc.Do(req)
			if err != nil {
				return 0, err
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return len(body), err
		})
	}
}
