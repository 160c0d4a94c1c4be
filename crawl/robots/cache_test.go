package robots_test

import (
	"context"
	"testing"

	"deepcrawl/crawl/robots"
)

func TestGetReadsTheRulesOnce(t *testing.T) {
	calls := 0
	c := robots.NewCache(robots.Config{Product: "Bot/1.0", Fetch: func(_ context.Context, url string) robots.Response {
		calls++
		if url != "https://a.example/robots.txt" {
			t.Errorf("fetched %q", url)
		}
		return robots.Response{Status: 200, Body: []byte("User-agent: bot\nDisallow: /x\nSitemap: /s.xml")}
	}})
	for range 2 {
		p, err := c.Get(t.Context(), "https://a.example")
		if err != nil {
			t.Fatal(err)
		}
		if ok, line := p.Allowed("/x/y"); ok || line != "Disallow: /x" {
			t.Errorf("got %v %q", ok, line)
		}
		if len(p.Sitemaps) != 1 || p.Sitemaps[0] != "https://a.example/s.xml" {
			t.Errorf("sitemaps %q", p.Sitemaps)
		}
	}
	if calls != 1 {
		t.Errorf("%d fetches, want 1", calls)
	}
}
