package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

var update = flag.Bool("update", false, "write the golden files")

// lockedBuffer is a writer for code that prints from several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// summaryStore knows the lists of a summary; nothing else may be asked.
type summaryStore struct {
	storage.Store
	top    map[string][]storage.PageRow
	broken []storage.BrokenLink
}

func (s summaryStore) TopPages(_ context.Context, _ storage.RunID, by string, _ int) ([]storage.PageRow, error) {
	return s.top[by], nil
}

func (s summaryStore) BrokenLinks(_ context.Context, _ storage.RunID, n int) ([]storage.BrokenLink, error) {
	return s.broken[:min(n, len(s.broken))], nil
}

func TestSummary(t *testing.T) {
	t.Run("reads as the golden file does", func(t *testing.T) {
		var out strings.Builder
		p := &program{stdout: &out}
		page := func(url string, total time.Duration, bytes int64) storage.PageRow {
			return storage.PageRow{URL: url, PageResult: storage.PageResult{Total: total, Bytes: bytes}}
		}
		st := summaryStore{
			top: map[string][]storage.PageRow{
				"total": {page("https://a.example/slow", 4200*time.Millisecond, 1), page("https://a.example/\x1b[2J", 900*time.Millisecond, 1)},
				"bytes": {page("https://a.example/big", 1, 4_200_000), page("https://a.example/", 1, 12_000)},
			},
			broken: []storage.BrokenLink{
				{URL: "https://a.example/gone", Status: 404, Inlinks: 12, Source: "https://a.example/"},
				{URL: "https://a.example/err", Status: 500, Reason: crawl.ReasonHTTP, Inlinks: 1, Source: "https://a.example/b"},
				{URL: "https://a.example/t", Reason: "timeout", Inlinks: 1, Source: "https://a.example/b"},
				{URL: "https://a.example/4", Status: 404}, {URL: "https://a.example/5", Status: 404}, {URL: "https://a.example/6", Status: 404},
			},
		}
		run := storage.Run{
			ID: 7, State: storage.RunDone, Reason: "page limit reached", WorkedFor: 124 * time.Second, Site: "a.example",
			Spec: crawl.Spec{Seeds: []string{"https://a.example/"}}.Encode(), Created: time.Unix(1, 0), Finished: time.Unix(130, 0),
		}
		ledger := storage.Ledger{
			Discovered: 1249, Fetched: 1234, Failed: 3, Excluded: 12, Bytes: 13_400_000, WireBytes: 3_100_000,
			ByStatus: map[int]int64{200: 1180, 301: 40, 302: 2, 404: 12, 500: 1, 0: 2},
			ByReason: map[storage.Reason]int64{crawl.ReasonRobots: 10, crawl.ReasonLimit: 2, "timeout": 2, crawl.ReasonHTTP: 1},
		}
		err := p.summarize(context.Background(), st, run, ledger, summaryOf{
			resume: "deepcrawl crawl --resume 7", db: "sqlite:x.db", traps: map[string]string{"repeated segments": "https://a.example/a/a/a/"},
		})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/summary.golden", out.String())
	})
	t.Run("a stopped run offers to go on", func(t *testing.T) {
		var out strings.Builder
		p := &program{stdout: &out}
		run := storage.Run{ID: 7, State: storage.RunCrawling, Site: "a.example"}
		err := p.summarize(context.Background(), summaryStore{}, run, storage.Ledger{Discovered: 3, Fetched: 1, Queued: 2}, summaryOf{resume: "deepcrawl crawl --resume 7"})
		if err != nil || !strings.Contains(out.String(), "2 left") || !strings.Contains(out.String(), "Next\n  deepcrawl crawl --resume 7\n") {
			t.Errorf("got %v\n%s", err, out.String())
		}
	})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it); got\n%s", name, got)
	}
}
