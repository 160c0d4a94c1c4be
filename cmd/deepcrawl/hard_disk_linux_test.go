package main

import (
	"syscall"
	"testing"
	"time"

	"deepcrawl/internal/testenv"
	"deepcrawl/soak/web"
)

func TestHardDisk(t *testing.T) {
	t.Run("a disk that fills in mid-crawl: one line, all that was stored is whole, and with room it goes on", func(t *testing.T) {
		site, urls, _ := webSite(t, web.Config{Seed: 8, Pages: 3000, PageBytes: 1500, LinksPerPage: 60})
		dir := testenv.SmallDisk(t, 3<<20)
		p := start(t, dir, "crawl", urls[0], "--quiet", "--profile", "fast")
		if code := p.endWithin(t, time.Minute); code != exitFailed {
			t.Fatalf("exit code %d, want %d: %s", code, exitFailed, p.err.String())
		}
		oneLine(t, p.err.String(), "no space left", "--resume 1")
		if n := site.Requests(); n < 50 || n >= 3000 {
			t.Fatalf("full after %d requests: not in mid-crawl", n)
		}
		again := start(t, dir, "crawl", "--resume", "1", "--quiet")
		if code := again.endWithin(t, time.Minute); code != exitFailed {
			t.Errorf("exit code %d without room, want %d", code, exitFailed)
		}
		oneLine(t, again.err.String(), "no space left")
		if err := syscall.Mount("deepcrawl-test", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
			t.Fatal(err)
		}
		wholeLedger(t, dbOf(dir), false)
		began := time.Now()
		if c := crawlTo(t, dir, exitOK, "--resume", "1"); c.Fetched != 3000 {
			t.Errorf("got %+v", c)
		}
		t.Logf("full after %d requests; resumed and done in %v", site.Requests(), time.Since(began).Round(time.Millisecond))
	})
}
