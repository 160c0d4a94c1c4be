package main

import (
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
)

// TestHardKill kills a crawl over and over at moments a seed chooses. What the site logged and what plain SQL finds in the file
// must agree with what is promised: nothing lost, nothing stored twice, only what was in flight requested again.
func TestHardKill(t *testing.T) {
	const (
		kills  = 10
		inCap  = 24
		commit = 3 * time.Second // a result may wait for its commit; a busy machine makes it long
	)
	site, urls, _ := webSite(t, web.Config{
		Seed: 11, Pages: 1200, PageBytes: 3000, Sitemap: true, Orphans: 40, SitemapEntries: 100, Latency: 4 * time.Millisecond, GzipShare: 0.2, Variants: true,
		Robots: web.Robots{Private: 10},
		Errors: web.ErrorMix{NotFound: 0.1, Redirect: 0.1, Forbidden: 0.02},
	})
	random := rand.New(rand.NewPCG(1, 20))
	dir := t.TempDir()
	args := []string{"crawl", urls[0], "--profile", "fast", "--quiet", "--json"}
	explained := map[judge.Request]int{}
	killed, before := 0, 0
	var lives []life
	for killed < kills {
		p := start(t, dir, args...)
		began := time.Now()
		// A moment somewhere within the next tenth of the work; the first ones fall into preparation.
		stopAt := before + 1 + random.IntN(150)
		if killed == 0 {
			stopAt = 1 // robots.txt has been asked for: the run exists
		}
		await(t, "requests to be made", func() bool { return site.Requests() >= stopAt || p.err.String() != "" })
		if killed > 0 {
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("after kill %d the crawl went on after %v only: it waited for the dead process", killed, took)
			}
		}
		sent := time.Now()
		send(t, p, syscall.SIGKILL)
		p.end(t)
		if p.ProcessState.Exited() {
			t.Fatalf("after %d kills the crawl ended by itself: exit code %d, %s", killed, p.ProcessState.ExitCode(), p.err.String())
		}
		killed++
		await(t, "the site to see the connections end", func() bool { return site.InFlight() == 0 })
		hits := site.Hits()
		gone := time.Now()
		for q, n := range judge.InFlight(hits[before:], gone, gone.Sub(sent)+commit) {
			explained[q] += n
		}
		lives = append(lives, life{hits[before:], sent})
		before = len(hits)
		wholeLedger(t, dbOf(dir), false)
		args = []string{"crawl", "--resume", "last", "--quiet", "--json"}
	}
	p := start(t, dir, args...)
	if code := p.endWithin(t, 2*time.Minute); code != exitOK {
		t.Fatalf("got exit code %d: %s", code, p.err.String())
	}
	c := p.closing(t)
	pagesAsked := 0
	again := map[judge.Request]int{}
	for _, h := range site.Hits() {
		switch h.Kind {
		case web.KindRobots, web.KindSitemap:
			continue
		}
		pagesAsked++
		again[judge.Request{Agent: h.Agent, Host: h.Host, Path: h.Path}]++
	}
	// In flight is what was requested and is not stored: a result waits a moment for its commit. The engine holds both together to
	// three times the concurrency (maxUnstored in package crawl).
	for i, l := range lives {
		lost, waited := l.lost(site.Hits())
		t.Logf("kill %d: %d requests in vain, the oldest answered %v before the kill", i+1, lost, waited.Round(time.Millisecond))
		if waited > commit {
			t.Errorf("kill %d: an answer was not stored %v after it came", i+1, waited)
		}
		if lost > 3*inCap {
			t.Errorf("kill %d: %d requests in vain, allowed are %d: in flight, or answered and on their way to the file", i+1, lost, 3*inCap)
		}
	}
	for i, v := range judge.Check(site.Hits(), site.Expected(), judge.Rules{Cap: inCap, Repeats: judge.Repeats{Explained: explained}}) {
		if i == 10 {
			t.Error("and more")
			break
		}
		t.Error(v)
	}
	n, pages := wholeLedger(t, dbOf(dir), true)
	if c.State != "done" || c.Discovered != n || c.Fetched+c.Failed+c.Excluded != pages || c.Discovered != c.Fetched+c.Failed+c.Excluded {
		t.Errorf("the closing object says %+v, the file holds %d URLs and %d pages", c, n, pages)
	}
	t.Logf("%d URLs, %d requested again after %d kills", n, pagesAsked-len(again), kills)
}

// life is what one process asked for, until it was killed.
type life struct {
	hits []web.Hit
	sent time.Time // of the kill
}

// lost counts the requests that were made again by a later process, and how long before the kill the oldest of them was answered.
func (l life) lost(all []web.Hit) (n int, waited time.Duration) {
	later := map[string]bool{}
	for _, h := range all[l.hits[len(l.hits)-1].Seq:] {
		later[h.Path] = true
	}
	for _, h := range l.hits {
		if !later[h.Path] || h.Kind == web.KindRobots || h.Kind == web.KindSitemap || h.Kind == web.KindUnknown {
			continue
		}
		n++
		if !h.End.IsZero() {
			waited = max(waited, l.sent.Sub(h.End))
		}
	}
	return n, waited
}

func TestHardKillKeepsLimits(t *testing.T) {
	t.Run("--max-pages is exact across kill -9", func(t *testing.T) {
		site, urls, _ := webSite(t, web.Config{Seed: 5, Pages: 800, PageBytes: 2000, Latency: 3 * time.Millisecond, Errors: web.ErrorMix{NotFound: 0.2}})
		dir := t.TempDir()
		args := []string{"crawl", urls[0], "--max-pages", "300", "--profile", "fast", "--quiet", "--json"}
		for _, stopAt := range []int{60, 150, 240} {
			p := start(t, dir, args...)
			await(t, "requests", func() bool { return site.Requests() >= stopAt || p.err.String() != "" })
			send(t, p, syscall.SIGKILL)
			p.end(t)
			args = []string{"crawl", "--resume", "1", "--quiet", "--json"}
		}
		p := start(t, dir, args...)
		if code := p.endWithin(t, time.Minute); code != exitOK {
			t.Fatalf("got exit code %d: %s", code, p.err.String())
		}
		c := p.closing(t)
		if c.State != "done" || c.Fetched+c.Failed != 300 {
			t.Errorf("got %+v, want 300 pages", c)
		}
		wholeLedger(t, dbOf(dir), true)
		paths := map[string]bool{}
		for _, h := range site.Hits() {
			if h.Kind != web.KindRobots && h.Kind != web.KindSitemap && h.Path != "/sitemap.xml" {
				paths[h.Path] = true
			}
		}
		if len(paths) != 300 {
			t.Errorf("%d URLs were requested, want 300", len(paths))
		}
	})
	t.Run("a kill while finishing loses nothing of the finishing", func(t *testing.T) {
		_, urls, _ := webSite(t, web.Config{Seed: 6, Pages: 1000, PageBytes: 1500, LinksPerPage: 30})
		dir := t.TempDir()
		random := rand.New(rand.NewPCG(3, 3))
		args := []string{"crawl", urls[0], "--profile", "fast", "--quiet", "--json"}
		for range 4 {
			p := start(t, dir, args...)
			await(t, "the end to be near", func() bool {
				if _, err := os.Stat(dbOf(dir)); err != nil {
					return false
				}
				l := start(t, dir, "run", "list", "--json")
				_ = l.end(t) // in the first moments the file has no schema yet
				list := l.out.String()
				return strings.Contains(list, `"finishing"`) || strings.Contains(list, `"done"`) || strings.Contains(list, `"fetched": 9`)
			})
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // the moment of the kill, not a wait for something
			_ = p.Process.Signal(syscall.SIGKILL)
			p.end(t)
			if strings.Contains(deepcrawl(t, dir, exitOK, "run", "list", "--json").out.String(), `"done"`) {
				break
			}
			args = []string{"crawl", "--resume", "last", "--quiet", "--json"}
		}
		if !strings.Contains(deepcrawl(t, dir, exitOK, "run", "list", "--json").out.String(), `"done"`) {
			deepcrawl(t, dir, exitOK, "crawl", "--resume", "last", "--quiet")
		}
		wholeLedger(t, dbOf(dir), true)
		if n := askOne(t, dbOf(dir), "SELECT count(*) FROM inlink"); n != 1000 {
			t.Errorf("inlinks of %d URLs are counted, want 1000", n)
		}
	})
}
