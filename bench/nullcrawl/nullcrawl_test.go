package nullcrawl_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"deepcrawl/bench/nullcrawl"
	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
)

func TestCrawlVisitsEveryPageOnce(t *testing.T) {
	for name, how := range map[string]nullcrawl.How{"parsing apart": nullcrawl.Apart, "parsing in the workers": nullcrawl.Workers} {
		t.Run(name, func(t *testing.T) {
			site, err := web.New(web.Config{Seed: 3, Pages: 700, Latency: 2 * time.Millisecond, Errors: web.ErrorMix{NotFound: .05}})
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(site.Handler())
			defer srv.Close()
			stats, err := nullcrawl.Crawl(t.Context(), srv.URL+"/", 12, how)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range judge.Check(site.Hits(), site.Expected(), judge.Rules{Agents: []string{nullcrawl.UserAgent}, Cap: 12}) {
				t.Error(v)
			}
			if stats.Pages+stats.Other != 700 || stats.Other == 0 {
				t.Errorf("got %+v, want 700 pages in all, some of them missing", stats)
			}
			if n := site.MaxInFlight(""); n < 6 {
				t.Errorf("at most %d requests were in flight, want about 12", n)
			}
		})
	}
}

func TestCrawlStops(t *testing.T) {
	site, err := web.New(web.Config{Latency: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(site.Handler())
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := nullcrawl.Crawl(ctx, srv.URL+"/", 3, nullcrawl.Apart); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled crawl: got %v, want %v", err, context.Canceled)
	}
	srv.Close()
	if _, err := nullcrawl.Crawl(t.Context(), srv.URL+"/", 3, nullcrawl.Apart); err == nil {
		t.Error("a site that is down: got no error")
	}
}
