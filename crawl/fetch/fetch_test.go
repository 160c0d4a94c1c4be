package fetch_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deepcrawl/crawl/fetch"
)

// newClient returns a client that may use loopback, closed with the test.
func newClient(t testing.TB, change func(*fetch.Config)) *fetch.Client {
	t.Helper()
	cfg := fetch.Config{UserAgent: "TestCrawler/1.0", AllowPrivate: true}
	if change != nil {
		change(&cfg)
	}
	c, err := fetch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func do(t testing.TB, c *fetch.Client, r fetch.Request) *fetch.Result {
	t.Helper()
	res := c.Do(context.Background(), r)
	t.Cleanup(res.Release)
	return res
}

func TestDo(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/moved":
			w.Header().Set("Location", "../elsewhere?x#y")
			w.WriteHeader(301)
		case "/missing":
			w.WriteHeader(404)
			w.Write([]byte("no such page"))
		case "/uri":
			w.Write([]byte(r.RequestURI))
		default:
			w.Write([]byte(strings.Repeat("<p>hello</p>", 100)))
		}
	})
	plain := httptest.NewServer(handler)
	defer plain.Close()
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	for _, s := range []struct{ name, url, proto string }{{"HTTP/1", plain.URL, "HTTP/1.1"}, {"HTTP/2", secure.URL, "HTTP/2.0"}} {
		t.Run(s.name, func(t *testing.T) {
			c := newClient(t, func(cfg *fetch.Config) { cfg.TLS = secure.Client().Transport.(*http.Transport).TLSClientConfig })
			for i := range 3 {
				res := do(t, c, fetch.Request{URL: s.url + "/"})
				if res.Reason != "" || res.Status != 200 || res.Proto != s.proto || res.Bytes != 1200 || res.WireBytes != 1200 || !res.Wrote {
					t.Fatalf("got %+v", res)
				}
				if res.Reused != (i > 0) {
					t.Errorf("exchange %d: reused %v", i, res.Reused)
				}
				if got, want := res.RemoteAddr.String(), strings.TrimPrefix(strings.TrimPrefix(s.url, "https://"), "http://"); got != want {
					t.Errorf("remote address: got %v, want %v", got, want)
				}
			}
			if res := do(t, c, fetch.Request{URL: s.url + "/moved"}); res.Status != 301 || res.Location != "../elsewhere?x#y" || res.Reason != "" {
				t.Errorf("a redirect is a result of its own: got %+v", res)
			}
			if res := do(t, c, fetch.Request{URL: s.url + "/missing"}); res.Status != 404 || string(res.Body) != "no such page" || res.Reason != "" {
				t.Errorf("an error status has a body and no reason: got %+v", res)
			}
		})
	}
}
