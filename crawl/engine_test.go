package crawl_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/memcoord"
	"deepcrawl/crawl"
	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
	"deepcrawl/storage"
)

// bench is an engine over a store in memory with a site to crawl.
type rig struct {
	store *memStore
	auth  *memcoord.Coord
	cfg   crawl.Config
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{store: newMemStore(), auth: memcoord.New(nil)}
	r.cfg = crawl.Config{
		Store: r.store, UserAgent: "DeepcrawlTest/1.0", AllowPrivate: true, Turn: 100 * time.Millisecond,
		Join: func(ctx context.Context) (coord.Session, error) {
			return r.auth.Join(ctx, coord.Options{Node: "test", Role: coord.RoleCrawl})
		},
	}
	if testing.Verbose() && os.Getenv("DEEPCRAWL_TEST_LOG") != "" {
		r.cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return r
}

// create stores a run.
func (r *rig) create(t *testing.T, spec crawl.Spec) storage.RunID {
	t.Helper()
	if err := spec.Check(); err != nil {
		t.Fatal(err)
	}
	run, err := r.store.CreateRun(t.Context(), storage.NewRun{Tenant: storage.DefaultTenant, Site: spec.Site(), Spec: spec.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	return run.ID
}

// work runs a node restricted to the run until the run is over.
func (r *rig) work(t *testing.T, ctx context.Context, run storage.RunID) *crawl.Node {
	t.Helper()
	cfg := r.cfg
	cfg.Only = run
	n, err := crawl.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := n.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if ctx.Err() == context.DeadlineExceeded {
		s, _ := n.Progress(run)
		t.Fatalf("not over after a minute: %+v", s)
	}
	return n
}

// ledger checks that it balances and that the run is in the state.
func (r *rig) ledger(t *testing.T, run storage.RunID, state storage.RunState) storage.Ledger {
	t.Helper()
	got, err := r.store.Run(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.store.Ledger(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != state {
		t.Errorf("run is %s (%s), want %s; ledger %+v", got.State, got.Reason, state, l)
	}
	if sum := l.Fetched + l.Failed + l.Excluded + l.Queued + l.Claimed + l.Delayed; l.Discovered != sum {
		t.Errorf("ledger does not balance: %+v", l)
	}
	return l
}

// serve starts a synthetic site.
func serve(t *testing.T, c web.Config) (*web.Site, string) {
	t.Helper()
	s, err := web.New(c)
	if err != nil {
		t.Fatal(err)
	}
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
	return s, l.URLs()[0]
}

func noViolations(t *testing.T, s *web.Site, rules judge.Rules) {
	t.Helper()
	for i, v := range judge.Check(s.Hits(), s.Expected(), rules) {
		if i == 20 {
			t.Error("and more")
			break
		}
		t.Error(v)
	}
}

func TestAWholeSiteIsCrawledOnceAndPolitely(t *testing.T) {
	site, url := serve(t, web.Config{
		Seed: 1, Pages: 400, PageBytes: 3000, Sitemap: true, Orphans: 10, Variants: true, GzipShare: 0.3, Latency: 2 * time.Millisecond,
		Robots: web.Robots{Private: 20},
		Errors: web.ErrorMix{NotFound: 0.2, Gone: 0.05, Forbidden: 0.05, Redirect: 0.2, Fails: 0.02, Reset: 0.02},
	})
	r := newRig(t)
	run := r.create(t, crawl.Spec{Seeds: []string{url}, Profile: "fast"})
	r.work(t, t.Context(), run)
	l := r.ledger(t, run, storage.RunDone)
	noViolations(t, site, judge.Rules{Cap: 24})
	if l.ByReason[crawl.ReasonRobots] != 10 {
		t.Errorf("%d URLs excluded by robots.txt, want 10", l.ByReason[crawl.ReasonRobots])
	}
	if n := l.Queued + l.Claimed + l.Delayed; n != 0 {
		t.Errorf("%d URLs unfinished in a run that is done", n)
	}
	if got := site.MaxInFlight("127.0.0.1"); got < 12 {
		t.Errorf("at most %d requests in flight: places were idle", got)
	}
}

func TestAStoppedRunGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	site, url := serve(t, web.Config{Seed: 2, Pages: 500, PageBytes: 2000, Sitemap: true, Latency: 5 * time.Millisecond})
	r := newRig(t)
	run := r.create(t, crawl.Spec{Seeds: []string{url}})
	for stops := 0; ; stops++ {
		ctx, cancel := context.WithCancel(t.Context())
		stopAt := site.Requests() + 100
		go func() {
			for site.Requests() < stopAt && ctx.Err() == nil {
				runtimeYield()
			}
			cancel()
		}()
		r.work(t, ctx, run)
		over := ctx.Err() == nil
		cancel()
		if over {
			break
		}
		l := r.ledger(t, run, mustRun(t, r, run).State)
		if l.Claimed != 0 {
			t.Fatalf("after stop %d: %d claims kept", stops, l.Claimed)
		}
		if mustRun(t, r, run).State == storage.RunDone {
			break
		}
		if stops > 20 {
			t.Fatal("never done")
		}
	}
	r.ledger(t, run, storage.RunDone)
	noViolations(t, site, judge.Rules{Cap: 8})
}

func mustRun(t *testing.T, r *rig, id storage.RunID) storage.Run {
	t.Helper()
	run, err := r.store.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func runtimeYield() { time.Sleep(time.Millisecond) }

func TestLimitsEndARun(t *testing.T) {
	site, url := serve(t, web.Config{Seed: 3, Pages: 300, PageBytes: 2000, Latency: time.Millisecond, Errors: web.ErrorMix{NotFound: 0.3, Fails: 0.05}})
	t.Run("pages: exactly as many requested", func(t *testing.T) {
		r := newRig(t)
		run := r.create(t, crawl.Spec{Seeds: []string{url}, MaxPages: 70, UserAgent: "Pages/1"})
		r.work(t, t.Context(), run)
		l := r.ledger(t, run, storage.RunDone)
		if l.Fetched+l.Failed != 70 {
			t.Errorf("%d pages, want 70", l.Fetched+l.Failed)
		}
		if l.Excluded == 0 || l.ByReason[crawl.ReasonLimit] != l.Excluded {
			t.Errorf("%d excluded, %d of them for the limit", l.Excluded, l.ByReason[crawl.ReasonLimit])
		}
		paths := map[string]bool{}
		for _, h := range site.Hits() {
			if h.Agent == "Pages/1" && h.Kind != web.KindRobots && h.Kind != web.KindSitemap && h.Kind != web.KindUnknown {
				paths[h.Path] = true
			}
		}
		if len(paths) != 70 {
			t.Errorf("the site saw %d pages requested, want 70", len(paths))
		}
		if got := mustRun(t, r, run).Reason; got != "page limit reached" {
			t.Errorf("reason %q", got)
		}
	})
	t.Run("depth", func(t *testing.T) {
		r := newRig(t)
		run := r.create(t, crawl.Spec{Seeds: []string{url}, MaxDepth: 1, UserAgent: "Depth/1", NoSitemaps: true})
		r.work(t, t.Context(), run)
		l := r.ledger(t, run, storage.RunDone)
		if l.ByReason[crawl.ReasonDepth] == 0 {
			t.Error("nothing excluded for its depth")
		}
		for _, row := range r.store.pages(run) {
			if (row.Depth > 1) != (row.Reason == crawl.ReasonDepth) {
				t.Errorf("%s at depth %d: %s %s", row.URL, row.Depth, row.State, row.Reason)
			}
		}
	})
	t.Run("time", func(t *testing.T) {
		r := newRig(t)
		run := r.create(t, crawl.Spec{Seeds: []string{url}, MaxTime: crawl.Duration(200 * time.Millisecond), Profile: "gentle", UserAgent: "Time/1"})
		r.work(t, t.Context(), run)
		l := r.ledger(t, run, storage.RunDone)
		if l.ByReason[crawl.ReasonLimit] == 0 {
			t.Error("nothing was left for the limit")
		}
		if got := mustRun(t, r, run).Reason; got != "time limit reached" {
			t.Errorf("reason %q", got)
		}
	})
}

func TestAHostThatAsksToWaitIsLeftAlone(t *testing.T) {
	t.Parallel()
	site, url := serve(t, web.Config{
		Seed: 4, Pages: 120, Sitemap: true, PageBytes: 2000, Latency: time.Millisecond,
		Errors: web.ErrorMix{TooMany: 0.01, TooManyDate: 0.01, Unavailable: 0.01},
	})
	r := newRig(t)
	run := r.create(t, crawl.Spec{Seeds: []string{url}})
	r.work(t, t.Context(), run)
	r.ledger(t, run, storage.RunDone)
	noViolations(t, site, judge.Rules{Cap: 8, Gate: &judge.Gate{Same: 50 * time.Millisecond}})
}

func TestARateHoldsForTheRun(t *testing.T) {
	site, url := serve(t, web.Config{Seed: 5, Pages: 15, PageBytes: 1000, Sitemap: true, Robots: web.Robots{CrawlDelay: 200 * time.Millisecond}})
	r := newRig(t)
	run := r.create(t, crawl.Spec{Seeds: []string{url}})
	r.work(t, t.Context(), run)
	r.ledger(t, run, storage.RunDone)
	noViolations(t, site, judge.Rules{Rate: &judge.Rate{PerSecond: 5, Burst: 1, Slack: time.Second}})
}

func TestTroubleWithASeedIsOneLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, url, want string }{
		{"unknown host", "http://nothing.invalid/", "unknown host"},
		{"refused port", "http://127.0.0.1:1/", "connection refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			run := r.create(t, crawl.Spec{Seeds: []string{c.url}})
			r.work(t, t.Context(), run)
			r.ledger(t, run, storage.RunFailed)
			if got := mustRun(t, r, run).Reason; !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("reason %q, want a line with %q", got, c.want)
			}
		})
	}
	t.Run("private address", func(t *testing.T) {
		r := newRig(t)
		r.cfg.AllowPrivate = false
		run := r.create(t, crawl.Spec{Seeds: []string{"http://127.0.0.1:1/"}})
		r.work(t, t.Context(), run)
		if got := mustRun(t, r, run).Reason; !strings.Contains(got, "--allow-private") {
			t.Errorf("reason %q does not say what allows it", got)
		}
	})
}

func TestALongRedirectChainEnds(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/r/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.PathValue("n"), &n)
		http.Redirect(w, r, fmt.Sprintf("/r/%d", n+1), http.StatusFound)
	})
	url := handle(t, mux)
	r := newRig(t)
	run := r.create(t, crawl.Spec{Seeds: []string{url + "/r/1"}})
	r.work(t, t.Context(), run)
	l := r.ledger(t, run, storage.RunDone)
	if l.ByReason[crawl.ReasonChain] != 1 || l.Discovered != 11 {
		t.Errorf("chain ended %d times after %d URLs, want once after 11", l.ByReason[crawl.ReasonChain], l.Discovered)
	}
}

func handle(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := newServer(t, h)
	return srv
}

func TestKnownURLsWaitForNewOnes(t *testing.T) {
	t.Parallel()
	links := []string{"/a", "/b"}
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for _, l := range links {
			fmt.Fprintf(w, "<a href=%q>x</a>", l)
		}
	})
	mux.HandleFunc("/{page}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("page") == "robots.txt" || r.PathValue("page") == "sitemap.xml" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "page")
	})
	url := handle(t, mux)
	r := newRig(t)
	r.work(t, t.Context(), r.create(t, crawl.Spec{Seeds: []string{url}}))
	links = append(links, "/new")
	again := r.create(t, crawl.Spec{Seeds: []string{url}})
	r.work(t, t.Context(), again)
	r.ledger(t, again, storage.RunDone)
	for _, row := range r.store.pages(again) {
		want := 430
		if strings.HasSuffix(row.URL, "/new") || row.Depth == 0 {
			want = 350
		}
		if row.Priority != want {
			t.Errorf("%s has priority %d, want %d", row.URL, row.Priority, want)
		}
	}
}
