package frontier_test

import (
	"crypto/sha256"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deepcrawl/crawl/frontier"
)

func TestPriority(t *testing.T) {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	const day = 24 * time.Hour
	for _, c := range []struct {
		name string
		s    frontier.Signals
		want int
	}{
		{"new, no lastmod, no priority", frontier.Signals{}, 350},
		{"new, priority 1.0, fresh", frontier.Signals{Sitemap: 1, HasSitemap: true, LastMod: ago(time.Hour)}, 1},
		{"a date in the future is fresh", frontier.Signals{LastMod: now.Add(day)}, 200},
		{"24 h is fresh", frontier.Signals{LastMod: ago(day)}, 200},
		{"seven days", frontier.Signals{LastMod: ago(7 * day)}, 240},
		{"30 days", frontier.Signals{LastMod: ago(30 * day)}, 300},
		{"90 days", frontier.Signals{LastMod: ago(90 * day)}, 380},
		{"older", frontier.Signals{LastMod: ago(91 * day)}, 480},
		{"known and unchanged", frontier.Signals{Known: true, LastMod: ago(91 * day), KnownMod: ago(91 * day)}, 560},
		{"known and updated", frontier.Signals{Known: true, LastMod: ago(time.Hour), KnownMod: ago(91 * day)}, 220},
		{"known, lastmod appeared", frontier.Signals{Known: true, LastMod: ago(time.Hour)}, 250},
		{"known, lastmod vanished", frontier.Signals{Known: true, KnownMod: ago(time.Hour)}, 430},
		{"priority 0", frontier.Signals{HasSitemap: true}, 550},
		{"priority out of range is clamped", frontier.Signals{HasSitemap: true, Sitemap: 7}, 150},
		{"priority NaN counts as none", frontier.Signals{HasSitemap: true, Sitemap: math.NaN()}, 350},
		{"priority rounds", frontier.Signals{HasSitemap: true, Sitemap: 0.33}, 418},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := frontier.Priority(c.s, now); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func keyOf(i int) [16]byte {
	sum := sha256.Sum256([]byte(strconv.Itoa(i)))
	return [16]byte(sum[:16])
}

func TestSeenAgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seen, model := frontier.NewSeen(frontier.NewMemory(1<<20)), map[[16]byte]bool{}
		for range rapid.IntRange(0, 2000).Draw(t, "n") {
			k := keyOf(rapid.IntRange(0, 3000).Draw(t, "key"))
			if rapid.IntRange(0, 200).Draw(t, "zero") == 0 {
				k = [16]byte{}
			}
			if seen.Has(k) != model[k] {
				t.Fatalf("Has(%x) = %v, want %v", k, seen.Has(k), model[k])
			}
			if !seen.Add(k) {
				t.Fatalf("Add refused within the memory")
			}
			model[k] = true
		}
		if seen.Len() != len(model) {
			t.Fatalf("Len %d, want %d", seen.Len(), len(model))
		}
	})
}

func TestSeenStopsAtItsMemoryAndNeverInventsAKey(t *testing.T) {
	memory := frontier.NewMemory(64 << 10)
	seen := frontier.NewSeen(memory)
	var held []int
	for i := range 20_000 {
		if seen.Add(keyOf(i)) {
			held = append(held, i)
		}
	}
	if n := len(held); n < 1_500 || n > 4_096 {
		t.Fatalf("%d keys in 64 KiB", n)
	}
	next := 0
	for i := range 20_000 {
		want := next < len(held) && held[next] == i
		if want {
			next++
		}
		if seen.Has(keyOf(i)) != want {
			t.Fatalf("Has(key %d) = %v, want %v", i, !want, want)
		}
	}
	seen.Free()
	if seen.Len() != 0 || seen.Has(keyOf(0)) {
		t.Fatal("not empty after Free")
	}
	if other := frontier.NewSeen(memory); !other.Add(keyOf(1)) {
		t.Fatal("Free did not give the memory back")
	}
}

func TestSeenIsSafeForConcurrentUse(t *testing.T) {
	seen := frontier.NewSeen(frontier.NewMemory(1 << 20))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 2_000 {
				seen.Add(keyOf(i))
				if !seen.Has(keyOf(i)) {
					t.Errorf("goroutine %d lost key %d", g, i)
					return
				}
			}
		})
	}
	wg.Wait()
	if seen.Len() != 2_000 {
		t.Errorf("got %d keys, want 2000", seen.Len())
	}
}

func BenchmarkSeenHas(b *testing.B) {
	seen := frontier.NewSeen(frontier.NewMemory(64 << 20))
	keys := make([][16]byte, 100_000)
	for i := range keys {
		keys[i] = keyOf(i)
		seen.Add(keys[i])
	}
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if !seen.Has(keys[i%len(keys)]) {
			b.Fatal("lost")
		}
	}
}
