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

	"deepcrawl/crawl"
	"deepcrawl/soak/web"
	"deepcrawl/storage"
)

func TestATariffLimitsPages(t *testing.T) {
	_, url := serve(t, web.Config{Seed: 9, Pages: 150, PageBytes: 1000, Latency: time.Millisecond})
	for _, c := range []struct {
		name   string
		tariff storage.Tariff
		spec   int
		stored int64
		pages  int64
		reason string
	}{
		{"pages of a run", storage.Tariff{Name: "small", RunPages: 40}, 0, 0, 40, "tariff small: 40 pages a run"},
		{"the run's own limit where it is smaller", storage.Tariff{Name: "small", RunPages: 40}, 30, 0, 30, "page limit reached"},
		{"pages stored of the tenant", storage.Tariff{Name: "small", StoredPages: 1000}, 0, 940, 60, "tariff small: 1000 pages stored"},
		{"no page at all where as many are stored already", storage.Tariff{Name: "small", StoredPages: 1000}, 0, 1000, 0, "tariff small: 1000 pages stored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.store.tariff, r.store.stored = c.tariff, c.stored
			run := r.create(t, crawl.Spec{Seeds: []string{url}, MaxPages: c.spec, NoSitemaps: true})
			r.work(t, t.Context(), run)
			l := r.ledger(t, run, storage.RunDone)
			if l.Fetched+l.Failed != c.pages {
				t.Errorf("got %d pages, want %d", l.Fetched+l.Failed, c.pages)
			}
			if l.ByReason[crawl.ReasonLimit] == 0 {
				t.Error("nothing was left for the limit")
			}
			if got := mustRun(t, r, run).Reason; got != c.reason {
				t.Errorf("got reason %q, want %q", got, c.reason)
			}
		})
	}
}

// begin runs a node and returns what stops it.
func (r *rig) begin(t *testing.T) (n *crawl.Node, stop func()) {
	t.Helper()
	n, err := crawl.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return n, stop
}

func waitFor(t *testing.T, what string, most time.Duration, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(most)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("no %s after %v", what, most)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestASuspendedTenantsStepsStop(t *testing.T) {
	t.Run("reading sitemaps ends within seconds", func(t *testing.T) {
		var asked atomic.Int64
		url := handle(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			switch {
			case req.URL.Path == "/robots.txt":
				_, _ = fmt.Fprintf(w, "Sitemap: http://%s/map/0.xml\n", req.Host)
			case strings.HasPrefix(req.URL.Path, "/map/"):
				n := asked.Add(1)
				_, _ = fmt.Fprintf(w, `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
				for i := range 3 {
					_, _ = fmt.Fprintf(w, "<sitemap><loc>http://%s/map/%d-%d.xml</loc></sitemap>", req.Host, n, i)
				}
				_, _ = fmt.Fprint(w, "</sitemapindex>")
				time.Sleep(20 * time.Millisecond) // a slow site: its sitemaps take minutes
			}
		}))
		r := newRig(t)
		run := r.create(t, crawl.Spec{Seeds: []string{url + "/"}})
		_, stop := r.begin(t)
		defer stop()
		waitFor(t, "sitemap", 10*time.Second, func() bool { return asked.Load() > 3 })
		r.store.mu.Lock()
		r.store.suspended = true
		r.store.mu.Unlock()
		waitFor(t, "free seat", 5*time.Second, func() bool {
			r.store.mu.Lock()
			defer r.store.mu.Unlock()
			for seat := range r.store.seats {
				if seat.Run == run {
					return false
				}
			}
			return true
		})
	})
}

func TestWorkPausesWithoutRoomAndGoesOnByItself(t *testing.T) {
	site, url := serve(t, web.Config{Seed: 10, Pages: 400, PageBytes: 1000, Latency: 5 * time.Millisecond})
	r := newRig(t)
	var full atomic.Bool
	r.cfg.MayStore = func() error {
		if full.Load() {
			return errors.New("disk: 3 MB free")
		}
		return nil
	}
	run := r.create(t, crawl.Spec{Seeds: []string{url}, NoSitemaps: true})
	node, stop := r.begin(t)
	defer stop()
	waitFor(t, "pages", 10*time.Second, func() bool { return site.Requests() > 50 })
	full.Store(true)
	waitFor(t, "word of the pause", 5*time.Second, func() bool {
		s, _ := node.Progress(run)
		return s.Waiting == "disk: 3 MB free" && s.InFlight == 0 && node.Stats().Paused != ""
	})
	before := site.Requests()
	if before >= 400 {
		t.Fatalf("not in mid-crawl: %d requests", before)
	}
	timer := time.NewTimer(700 * time.Millisecond) // three looks
	<-timer.C
	if n := site.Requests(); n != before {
		t.Errorf("%d requests while there was no room", n-before)
	}
	full.Store(false)
	waitFor(t, "end of the run", 30*time.Second, func() bool {
		got, err := r.store.Run(t.Context(), run)
		return err == nil && got.State == storage.RunDone
	})
	if l := r.ledger(t, run, storage.RunDone); l.Fetched+l.Failed != 400 {
		t.Errorf("%d pages, want 400", l.Fetched+l.Failed)
	}
}
