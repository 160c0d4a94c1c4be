package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deepcrawl/internal/config"
	"deepcrawl/internal/testenv"
	"deepcrawl/soak/web"
)

func TestNodePausesWhileTheDiskIsNearlyFull(t *testing.T) {
	const disk = 256 << 20
	site, urls, _ := webSite(t, web.Config{Seed: 41, Pages: 3000, PageBytes: 1500, Latency: 5 * time.Millisecond})
	dir := testenv.SmallDisk(t, disk)
	deepcrawl(t, dir, exitOK, "migrate")
	deepcrawl(t, dir, exitOK, "run", "add", urls[0])
	p := start(t, dir, "node", "--forever", "--node-id", "d1")
	await(t, "requests", func() bool { return site.Requests() > 100 })

	ballast := fill(t, dir)
	if took := quiet(t, site.Requests); took > soon {
		t.Errorf("requests for %v after the disk was nearly full", took)
	}
	before := site.Requests()
	if before >= 3000 {
		t.Fatal("the crawl was over before the disk was full")
	}
	db := "sqlite:" + filepath.Join(dir, "deepcrawl.db")
	await(t, "word of it", func() bool {
		for _, w := range clusterOf(t, db).Warnings {
			if w.Code == warnPaused && strings.Contains(w.Text, "node d1 begins no work: disk: ") && strings.Contains(w.Text, "free of 268.4 MB where deepcrawl.db is; work goes on at 5.4 MB") {
				return true
			}
		}
		return false
	})
	if out := deepcrawl(t, dir, exitOK, "run", "list").out.String(); !strings.Contains(out, "disk: ") {
		t.Errorf("the run does not say why: %s", out)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	await(t, "the run's end", func() bool {
		return strings.Contains(deepcrawl(t, dir, exitOK, "run", "list", "--json").out.String(), `"done"`)
	})
	wholeLedger(t, filepath.Join(dir, "deepcrawl.db"), true)
	send(t, p, syscall.SIGTERM)
	if code := p.end(t); code != exitOK {
		t.Errorf("the node ended with %d: %s", code, p.err.String())
	}
}

func TestCrawlPausesWhileTheDiskIsNearlyFull(t *testing.T) {
	site, urls, _ := webSite(t, web.Config{Seed: 42, Pages: 2000, PageBytes: 1500, Latency: 5 * time.Millisecond})
	dir := testenv.SmallDisk(t, 256<<20)
	p := start(t, dir, "crawl", urls[0])
	await(t, "requests", func() bool { return site.Requests() > 100 })
	ballast := fill(t, dir)
	await(t, "word of it", func() bool { return strings.Contains(p.err.String(), "; waiting: disk: ") })
	if took := quiet(t, site.Requests); took > soon {
		t.Errorf("requests for %v after the disk was nearly full", took)
	}
	if site.Requests() >= 2000 {
		t.Fatal("the crawl was over before the disk was full")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if code := p.end(t); code != exitOK {
		t.Errorf("got exit code %d: %s", code, p.err.String())
	}
	wholeLedger(t, filepath.Join(dir, "deepcrawl.db"), true)
}

// fill leaves 4 MB of a disk, which is less than 2 % of it, and returns the file that takes the rest.
func fill(t *testing.T, dir string) string {
	t.Helper()
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for { // the crawl writes meanwhile
		var st syscall.Statfs_t
		if err := syscall.Statfs(dir, &st); err != nil {
			t.Fatal(err)
		}
		n := min(int64(st.Bavail)*st.Bsize-4_000_000, 1<<20)
		if n <= 0 {
			break
		}
		if _, err := f.Write(bytes.Repeat([]byte{1}, int(n))); err != nil {
			t.Fatal(err)
		}
	}
	return ballast
}

func TestMayStore(t *testing.T) {
	t.Run("the disk of a database server is not looked at", func(t *testing.T) {
		if mayStore(&config.Config{DB: "postgres://h/d"}) != nil {
			t.Error("it is")
		}
	})
	t.Run("a disk that is gone says nothing: the database will", func(t *testing.T) {
		if err := mayStore(&config.Config{DB: "sqlite:" + filepath.Join(t.TempDir(), "none", "x.db")})(); err != nil {
			t.Error(err)
		}
	})
}
