package sqlstore_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"deepcrawl/internal/testenv"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// BenchmarkCrawl measures claim and finish at a steady number of queued URLs, as the engine calls them: one goroutine, batches,
// each page with one new link, 450 bytes of facts and 200 of links. An iteration is one page.
func BenchmarkCrawl(b *testing.B) {
	for _, engine := range []struct {
		name string
		dsn  func(testing.TB) string
	}{{"sqlite", sqliteDSN}, {"postgres", testenv.Postgres}, {"mysql", testenv.MySQL}} {
		for _, queued := range []int{10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/queued=%d", engine.name, queued), func(b *testing.B) {
				dsn := engine.dsn(b)
				if d := os.Getenv("DEEPCRAWL_BENCH_DIR"); d != "" && engine.name == "sqlite" {
					dsn = "sqlite:" + d + fmt.Sprintf("/%d.db", time.Now().UnixNano())
				}
				benchCrawl(b, dsn, queued)
			})
		}
	}
}

const benchBatch = 64

func benchDiscovery(i int) storage.Discovery {
	var raw [8]byte
	binary.LittleEndian.PutUint64(raw[:], uint64(i))
	sum := sha256.Sum256(raw[:])
	return storage.Discovery{
		Key: storage.Key(sum[:16]), URL: fmt.Sprintf("https://www.example.com/section-%d/some-product-page-%d.html", i%37, i), Host: host,
		Priority: 350, Depth: 1 + i%7,
	}
}

const host = "example.com"

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchCrawl(b *testing.B, dsn string, queued int) {
	if _, err := sqlstore.Migrate(b.Context(), dsn); err != nil {
		b.Fatal(err)
	}
	s := openStore(b, dsn, sqlstore.Options{})
	ctx := b.Context()
	run, err := s.CreateRun(ctx, storage.NewRun{Tenant: storage.DefaultTenant, Site: host})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.SetRunState(ctx, run.ID, []storage.RunState{storage.RunQueued}, storage.RunCrawling, "", time.Time{}); err != nil {
		b.Fatal(err)
	}
	next := 0
	for next < queued {
		list := make([]storage.Discovery, 1000)
		for i := range list {
			list[i] = benchDiscovery(next + i)
		}
		next += len(list)
		if _, err := s.Discover(ctx, run.ID, list, nil); err != nil {
			b.Fatal(err)
		}
	}
	facts, links := make([]byte, 450), make([]byte, 200)
	for i := range facts {
		facts[i] = byte(rand.Uint32())
	}
	results := make([]storage.Result, 0, benchBatch)
	b.ResetTimer()
	b.ReportAllocs()
	start, wall := cpuTime(), time.Now()
	var longest time.Duration
	for done := 0; done < b.N; {
		claims, err := s.Claim(ctx, "node.1", []storage.ClaimRequest{{Run: run.ID, Host: host, N: benchBatch}})
		if err != nil || len(claims) == 0 {
			b.Fatal(len(claims), err)
		}
		results = results[:0]
		for _, c := range claims {
			found := []storage.Discovery{benchDiscovery(next)}
			next++
			results = append(results, storage.Result{Run: c.Run, ID: c.ID, Token: c.Token, Discovered: found, Page: &storage.PageResult{
				State: storage.Fetched, Status: 200, ContentType: "text/html; charset=utf-8", Bytes: 11000, WireBytes: 3000, TTFB: 5 * time.Millisecond,
				Total: 9 * time.Millisecond, Attempts: 1, Title: "A product page with a title of usual length | Example", Outlinks: 20, Facts: facts, Links: links,
			}})
		}
		at := time.Now()
		if _, err := s.Finish(ctx, "node.1", results); err != nil {
			b.Fatal(err)
		}
		longest = max(longest, time.Since(at))
		done += len(claims)
	}
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-start)/float64(b.N)/1e3, "us-cpu/page")
	b.ReportMetric(float64(b.N)/time.Since(wall).Seconds(), "pages/s")
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest")
}
