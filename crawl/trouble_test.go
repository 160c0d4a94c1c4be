package crawl_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
	"deepcrawl/storage"
)

// An outage of the database is waited for; nothing is lost and nothing requested twice.
func TestAnOutageOfTheDatabaseIsWaitedFor(t *testing.T) {
	t.Parallel()
	site, url := serve(t, web.Config{Seed: 11, Pages: 200, PageBytes: 1500, Sitemap: true, Latency: 2 * time.Millisecond})
	r := newRig(t)
	var calls atomic.Int64
	r.store.fail = func(op string) error {
		if n := calls.Add(1); n > 20 && n%7 < 3 {
			return fmt.Errorf("%s: %w", op, storage.ErrUnavailable)
		}
		return nil
	}
	run := r.create(t, crawl.Spec{Seeds: []string{url}})
	r.work(t, t.Context(), run)
	r.ledger(t, run, storage.RunDone)
	noViolations(t, site, judge.Rules{Cap: 8})
}

// An error that waiting does not mend ends the node with that error.
func TestAFullDiskEndsTheNodeWithItsError(t *testing.T) {
	_, url := serve(t, web.Config{Seed: 12, Pages: 200, PageBytes: 1500, Sitemap: true})
	r := newRig(t)
	r.store.fail = func(op string) error {
		if op == "finish" {
			return fmt.Errorf("finish: %w", storage.ErrFull)
		}
		return nil
	}
	run := r.create(t, crawl.Spec{Seeds: []string{url}})
	cfg := r.cfg
	cfg.Only = run
	n, err := crawl.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := n.Run(ctx); !errors.Is(err, storage.ErrFull) {
		t.Fatalf("got %v, want %v", err, storage.ErrFull)
	}
}

// A session that is fenced in the middle drops everything; the next one takes its claims back and ends the run.
func TestAFencedSessionIsReplaced(t *testing.T) {
	t.Parallel()
	site, url := serve(t, web.Config{Seed: 13, Pages: 300, PageBytes: 1500, Sitemap: true, Latency: 5 * time.Millisecond})
	r := newRig(t)
	var joins atomic.Int64
	join := r.cfg.Join
	r.cfg.Join = func(ctx context.Context) (coord.Session, error) {
		sess, err := join(ctx)
		if err == nil && joins.Add(1) == 1 {
			sess = newFragile(sess, func() bool { return site.Requests() > 100 })
		}
		return sess, err
	}
	run := r.create(t, crawl.Spec{Seeds: []string{url}})
	r.work(t, t.Context(), run)
	if joins.Load() != 2 {
		t.Errorf("%d sessions, want 2", joins.Load())
	}
	r.ledger(t, run, storage.RunDone)
	// What was in flight at the fenced session is requested again.
	repeated := judge.Repeated(site.Hits(), site.Expected(), judge.Repeats{})
	if len(repeated) > 8 {
		t.Errorf("%d pages requested twice, at most 8 were in flight", len(repeated))
	}
	for _, v := range judge.Missed(site.Hits(), site.Expected(), nil) {
		t.Error(v)
		for _, row := range r.store.pages(run) {
			if strings.HasSuffix(row.URL, v.Path) {
				t.Logf("%+v", row.PageRow.PageResult)
			}
		}
	}
}

// fragile is a session that is fenced when a condition comes true.
type fragile struct {
	coord.Session
	done chan struct{}
}

func newFragile(s coord.Session, when func() bool) *fragile {
	f := &fragile{Session: s, done: make(chan struct{})}
	go func() {
		for !when() {
			runtimeYield()
		}
		close(f.done)
	}()
	return f
}

func (f *fragile) Done() <-chan struct{} { return f.done }

func (f *fragile) Err() error {
	select {
	case <-f.done:
		return coord.ErrFenced
	default:
		return f.Session.Err()
	}
}

// Two hosts whose robots.txt redirect to each other must not wait for each other (PROTOCOL rule 15).
func TestHostsWhoseRobotsRedirectToEachOtherDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	var a, b string
	page := func(other *string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/robots.txt":
				time.Sleep(5 * time.Millisecond)
				http.Redirect(w, r, *other+"/robots.txt", http.StatusFound)
			case "/":
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprintf(w, `<a href="%s/x">x</a>`, *other)
			default:
				http.NotFound(w, r)
			}
		})
	}
	a, b = handle(t, page(&b)), handle(t, page(&a))
	r := newRig(t)
	r.cfg.HostCap, r.cfg.Workers = 1, 2
	run := r.create(t, crawl.Spec{Seeds: []string{a, b}, NoSitemaps: true})
	r.work(t, t.Context(), run)
	l := r.ledger(t, run, storage.RunDone)
	if l.Fetched != 4 {
		t.Errorf("fetched %d, want 4: %+v", l.Fetched, l)
	}
}

// Each trap ends with a reason, within limits, and the rest of the site is crawled.
func TestTrapsEndWithAReason(t *testing.T) {
	site, url := serve(t, web.Config{
		Seed: 14, Pages: 50, PageBytes: 1500, Sitemap: true,
		Traps:     []web.Trap{web.TrapCalendar, web.TrapRepeat, web.TrapSession, web.TrapLoop, web.TrapSelf, web.TrapHuge, web.TrapLinks},
		TrapSizes: web.TrapSizes{HugeBytes: 1 << 30, Links: 100_000},
	})
	r := newRig(t)
	run := r.create(t, crawl.Spec{Seeds: []string{url}, Profile: "fast"})
	n := r.work(t, t.Context(), run)
	l := r.ledger(t, run, storage.RunDone)
	for _, v := range judge.Missed(site.Hits(), site.Expected(), nil) {
		t.Error(v)
	}
	requests := map[string]int{}
	for _, h := range site.Hits() {
		if rest, ok := strings.CutPrefix(h.Path, "/trap/"); ok {
			name, _, _ := strings.Cut(rest, "/")
			name, _, _ = strings.Cut(name, "?")
			requests[name]++
		}
	}
	t.Logf("requests to traps: %v; reasons: %v; ledger %d", requests, l.ByReason, l.Discovered)
	for trap, most := range map[web.Trap]int{
		web.TrapCalendar: 2500, web.TrapRepeat: 300, web.TrapSession: 1000, web.TrapLoop: 2, web.TrapSelf: 1, web.TrapHuge: 1,
	} {
		if got := requests[string(trap)]; got == 0 || got > most {
			t.Errorf("trap %s: %d requests, want 1 to %d", trap, got, most)
		}
	}
	if l.ByReason["too-large"] != 1 {
		t.Errorf("%d bodies too large, want 1", l.ByReason["too-large"])
	}
	if l.ByReason[crawl.ReasonTrap] == 0 {
		t.Error("no URL excluded as a trap")
	}
	s, _ := n.Progress(run)
	if len(s.Traps) < 3 {
		t.Errorf("traps told: %v", s.Traps)
	}
}

// The last pages of a crawl are often those that fail: a folder nobody may see, pages that always answer an error. The host is well,
// and the run ends.
func TestARunWhoseLastPagesAllFailEndsSoon(t *testing.T) {
	t.Parallel() // it waits most of its time
	mux := http.NewServeMux()
	var robots atomic.Int64
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			robots.Add(1)
			fmt.Fprintln(w, "User-agent: *\nDisallow:")
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html")
			for i := range 11 {
				fmt.Fprintf(w, "<a href=/secret/%d>s</a>", i)
			}
			for i := range 3 {
				fmt.Fprintf(w, "<a href=/broken/%d>s</a>", i)
			}
		case strings.HasPrefix(r.URL.Path, "/secret/"):
			time.Sleep(time.Second) // each in a round of its own
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	url := handle(t, mux)
	r := newRig(t)
	r.cfg.HostCap = 1
	run := r.create(t, crawl.Spec{Seeds: []string{url}, NoSitemaps: true})
	began := time.Now()
	r.work(t, t.Context(), run)
	l := r.ledger(t, run, storage.RunDone)
	if l.ByStatus[403] != 11 || l.ByStatus[500] != 3 {
		t.Errorf("answers %v, want 11 of 403 and 3 of 500", l.ByStatus)
	}
	if robots.Load() < 2 {
		t.Error("the host was not asked whether it is well: this test proves nothing")
	}
	t.Logf("took %v, robots.txt asked %d times", time.Since(began), robots.Load())
}

// gated is a session that holds every host's gate closed once a condition is true.
type gated struct {
	coord.Session
	closed, asked *atomic.Bool
}

func (g gated) Gate(key coord.Key) (time.Time, string, bool) {
	if g.closed.Load() {
		g.asked.Store(true)
		return time.Now().Add(5 * time.Minute), "asked to wait", true
	}
	return g.Session.Gate(key)
}

// A host comes under suspicion while its gate is closed: nobody waits for the gate to find out, least of all who stops the crawl.
func TestAStopWaitsForNoGate(t *testing.T) {
	t.Parallel() // it waits most of its time
	var closed, asked atomic.Bool
	var failures atomic.Int64
	url := handle(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprintln(w, "User-agent: *\nDisallow:")
		case "/":
			w.Header().Set("Content-Type", "text/html")
			for i := range 20 {
				fmt.Fprintf(w, "<a href=/%d>s</a>", i)
			}
		default:
			if failures.Add(1) == 5 {
				closed.Store(true)
			}
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	r := newRig(t)
	r.cfg.HostCap = 1
	join := r.cfg.Join
	r.cfg.Join = func(ctx context.Context) (coord.Session, error) {
		sess, err := join(ctx)
		return gated{sess, &closed, &asked}, err
	}
	r.cfg.Only = r.create(t, crawl.Spec{Seeds: []string{url}, NoSitemaps: true})
	n, err := crawl.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	for deadline := time.Now().Add(time.Minute); !asked.Load(); runtimeYield() { // by the only lane, which judges the fifth answer
		if time.Now().After(deadline) {
			t.Fatalf("%d failures in a minute", failures.Load())
		}
	}
	stop()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("stopping waits for the gate of a host")
	}
}

// A crawl of a private site that goes on without the permission for it says so, and loses nothing.
func TestResumingWithoutPrivateAddressesSaysSo(t *testing.T) {
	t.Parallel()
	site, url := serve(t, web.Config{Seed: 16, Pages: 300, PageBytes: 1500, Latency: 10 * time.Millisecond})
	r := newRig(t)
	r.cfg.Only = r.create(t, crawl.Spec{Seeds: []string{url}})
	run := func(ctx context.Context) error {
		n, err := crawl.New(r.cfg)
		if err != nil {
			t.Fatal(err)
		}
		return n.Run(ctx)
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for site.Requests() < 50 {
			runtimeYield()
		}
		stop()
	}()
	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r.cfg.AllowPrivate = false
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := run(ctx); err == nil || !strings.Contains(err.Error(), "--allow-private") {
		t.Errorf("got %v, want an error that says what allows it", err)
	}
	r.ledger(t, r.cfg.Only, storage.RunCrawling)
	r.cfg.AllowPrivate = true
	r.work(t, t.Context(), r.cfg.Only)
	if l := r.ledger(t, r.cfg.Only, storage.RunDone); l.Excluded > 0 && l.ByReason[crawl.ReasonUnreachable] > 0 {
		t.Errorf("given up meanwhile: %v", l.ByReason)
	}
}

// A broken sitemap sinks nothing and is told; one that nobody named is not missed.
func TestBrokenSitemapsAreTold(t *testing.T) {
	t.Parallel()
	crawled := func(named string) (storage.Ledger, map[string]string) {
		url := handle(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			at := "http://" + r.Host
			switch r.URL.Path {
			case "/robots.txt":
				if named != "" {
					fmt.Fprintf(w, "Sitemap: %s%s\n", at, named)
				}
			case "/index.xml":
				fmt.Fprint(w, "<sitemapindex>")
				for _, name := range []string{"half", "gone", "whole"} {
					fmt.Fprintf(w, "<sitemap><loc>%s/%s.xml</loc></sitemap>", at, name)
				}
				fmt.Fprint(w, "</sitemapindex>")
			case "/half.xml":
				fmt.Fprintf(w, "<urlset><url><loc>%s/1</loc></url><url><lo", at)
			case "/whole.xml":
				fmt.Fprintf(w, "<urlset><url><loc>%s/2</loc></url></urlset>", at)
			case "/", "/1", "/2":
			default:
				http.NotFound(w, r)
			}
		}))
		r := newRig(t)
		run := r.create(t, crawl.Spec{Seeds: []string{url}})
		n := r.work(t, t.Context(), run)
		s, _ := n.Progress(run)
		return r.ledger(t, run, storage.RunDone), s.Cuts
	}
	l, told := crawled("/index.xml")
	if l.Fetched != 3 {
		t.Errorf("fetched %d, want the seed and one of each sitemap that can be read", l.Fetched)
	}
	if got := told["sitemaps that could not be read, the first"]; !strings.HasSuffix(got, "/gone.xml (status 404)") {
		t.Errorf("told of the sitemap that is gone: %q", got)
	}
	if got := told["sitemaps read in part, the first"]; !strings.Contains(got, "/half.xml (") {
		t.Errorf("told of the broken sitemap: %q", got)
	}
	if _, told := crawled(""); len(told) > 0 {
		t.Errorf("told of a sitemap that nobody named: %v", told)
	}
}
