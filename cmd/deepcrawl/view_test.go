package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

func TestLineView(t *testing.T) {
	t.Run("a line tells stage, counts, speed and what it waits for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			p := &program{stderr: &out, now: time.Now}
			v := p.newView(false, storage.Run{ID: 3}, crawl.Spec{Seeds: []string{"https://a.example"}})
			v.show(crawl.Snapshot{State: storage.RunCrawling, Discovered: 100})
			time.Sleep(10 * time.Second)
			until := time.Now().Add(time.Minute)
			v.show(crawl.Snapshot{
				State: storage.RunCrawling, Discovered: 1500, Fetched: 99, Failed: 1, InFlight: 8, Waiting: "a.example: answered 429", Until: until,
			})
			want := "run 3  https://a.example\n" +
				"crawling: 0 fetched, 100 queued, 0.0 pages/s, 0 errors, 0 in flight\n" +
				"crawling: 99 fetched, 1,400 queued, 10.0 pages/s, 1 error, 8 in flight; waiting: a.example: answered 429, until " +
				until.Local().Format("15:04:05 MST") + "\n"
			if out.String() != want {
				t.Errorf("got\n%swant\n%s", out.String(), want)
			}
		})
	})
	t.Run("the pace of a rate limit is no waiting", func(t *testing.T) {
		now := time.Unix(1000, 0)
		for until, want := range map[time.Time]string{
			now.Add(time.Second):     "",
			{}:                       "waiting: x",
			now.Add(3 * time.Second): "waiting: x, until " + now.Add(3*time.Second).Local().Format("15:04:05 MST"),
		} {
			if got := waitingFor(crawl.Snapshot{Waiting: "x", Until: until}, now); got != want {
				t.Errorf("until %v: got %q, want %q", until, got, want)
			}
		}
	})
	t.Run("preparing says what is being done", func(t *testing.T) {
		if got := stage(crawl.Snapshot{State: storage.RunPreparing, Step: "sitemap 3"}); got != "preparing (sitemap 3)" {
			t.Errorf("got %s", got)
		}
	})
}

func TestSpeed(t *testing.T) {
	t.Run("counts over the last seconds only", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			v := speed{now: time.Now}
			v.add(0)
			time.Sleep(time.Minute)
			v.add(6000)
			time.Sleep(10 * time.Second)
			if got := v.add(6010); got != 1 {
				t.Errorf("got %v pages/s, want 1", got)
			}
		})
	})
}

func TestBarView(t *testing.T) {
	t.Run("shows the figures, keeps log lines whole and goes away", func(t *testing.T) {
		out := &lockedBuffer{}
		p := &program{stderr: out, now: time.Now, terminal: true, width: func() int { return 100 }}
		v := p.newView(false, storage.Run{ID: 3}, crawl.Spec{Seeds: []string{"https://a.example"}})
		v.show(crawl.Snapshot{State: storage.RunCrawling, Discovered: 200, Fetched: 50, InFlight: 8, Waiting: "a gate"})
		await(t, "the figures", func() bool {
			return strings.Contains(out.String(), "50 fetched, 150 queued") && strings.Contains(out.String(), "waiting: a gate")
		})
		v.say("a log line")
		v.close()
		v.say("after")
		if got := out.String(); !strings.Contains(got, "a log line\n") || !strings.HasSuffix(got, "after\n") {
			t.Errorf("got %q", got)
		}
		v.close() // twice is no error
	})
}
