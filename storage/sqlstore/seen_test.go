package sqlstore_test

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"deepcrawl/internal/testenv"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
	"deepcrawl/storage/storagetest"
)

func randomKey(rnd *rand.Rand) (k storage.Key) {
	binary.LittleEndian.PutUint64(k[:8], rnd.Uint64())
	binary.LittleEndian.PutUint64(k[8:], rnd.Uint64())
	return k
}

func TestSeenKeys(t *testing.T) {
	t.Run("a key that was not added is never told as seen, however little memory there is", func(t *testing.T) {
		for _, limit := range []int64{0, 100, 9000, 20_000, 1 << 20} {
			seen := sqlstore.NewSeen(limit)
			rnd := rand.New(rand.NewPCG(1, uint64(limit)))
			added := map[storage.Key]bool{{}: false}
			kept := 0
			for range 20_000 {
				k := randomKey(rnd)
				k[15] %= 8 // few segments, so that they fill up
				if rnd.IntN(2) == 0 {
					seen.Add(7, k)
					added[k] = true
				} else if seen.Has(7, k) {
					t.Fatalf("limit %d: %x was never added", limit, k)
				}
			}
			for k := range added {
				if seen.Has(7, k) {
					kept++
					if !added[k] {
						t.Fatalf("limit %d: %x was never added", limit, k)
					}
				}
				if seen.Has(8, k) {
					t.Fatalf("limit %d: %x is another run's", limit, k)
				}
			}
			if used := seen.Used(); used > limit {
				t.Errorf("limit %d: %d bytes are used", limit, used)
			}
			if limit >= 1<<20 && kept != len(added)-1 {
				t.Errorf("limit %d: %d of %d kept", limit, kept, len(added)-1)
			}
			if limit >= 9000 && kept < min(int(limit)/64, len(added)-1) {
				t.Errorf("limit %d: only %d kept", limit, kept)
			}
		}
	})
	t.Run("the zero key is a key like others", func(t *testing.T) {
		seen := sqlstore.NewSeen(1 << 20)
		if seen.Has(1, storage.Key{}) {
			t.Error("it was never added")
		}
		seen.Add(1, storage.Key{})
		seen.Add(1, storage.Key{1})
		if !seen.Has(1, storage.Key{1}) {
			t.Error("another was lost")
		}
	})
	t.Run("a key takes less than 48 bytes", func(t *testing.T) {
		heap := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		seen := sqlstore.NewSeen(64 << 20)
		rnd := rand.New(rand.NewPCG(3, 4))
		before := heap()
		n := 0
		for _, upTo := range []int{100_000, 200_000, 300_000, 400_000} {
			for ; n < upTo; n++ {
				seen.Add(1, randomKey(rnd))
			}
			if per := float64(heap()-before) / float64(n); per > 48 {
				t.Errorf("%d keys take %.1f bytes each", n, per)
			}
		}
		runtime.KeepAlive(seen)
	})
	t.Run("runs that are not served make room", func(t *testing.T) {
		seen := sqlstore.NewSeen(100_000)
		rnd := rand.New(rand.NewPCG(5, 6))
		for range 6000 {
			seen.Add(1, randomKey(rnd))
		}
		var mine []storage.Key
		for range 4000 {
			k := randomKey(rnd)
			mine = append(mine, k)
			seen.Add(2, k)
		}
		kept := 0
		for _, k := range mine[2000:] {
			if seen.Has(2, k) {
				kept++
			}
		}
		if kept < 1000 {
			t.Errorf("got %d of 2000 kept", kept)
		}
	})
}

func TestRepeatedLinksNeverReachTheDatabase(t *testing.T) {
	dsn := testenv.Postgres(t)
	opener(t, dsn)
	var trips atomic.Int64
	s := openStore(t, dsn, sqlstore.Options{RoundTrip: func() { trips.Add(1) }})
	run := newRun(t, s)
	list := make([]storage.Discovery, 1000)
	for i := range list {
		list[i] = benchDiscovery(i)
	}
	for round := range 3 {
		trips.Store(0)
		n, err := s.Discover(t.Context(), run, list, nil)
		if err != nil || n != map[bool]int{true: 1000, false: 0}[round == 0] {
			t.Fatal(n, err)
		}
		if round > 0 && trips.Load() != 0 {
			t.Errorf("got %d round trips for URLs that are stored", trips.Load())
		}
	}
}

// TestTheSuiteWithAlmostNoCache crawls with a cache that forgets nearly everything: the database decides.
func TestTheSuiteWithAlmostNoCache(t *testing.T) {
	storagetest.Run(t, func(t testing.TB) storagetest.Open {
		dsn := sqliteDSN(t)
		opener(t, dsn)
		return func(t testing.TB) storage.Store { return openStore(t, dsn, sqlstore.Options{SeenMemory: 300}) }
	})
}
