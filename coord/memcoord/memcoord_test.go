package memcoord_test

import (
	"testing"

	"deepcrawl/coord"
	"deepcrawl/coord/coordtest"
	"deepcrawl/coord/memcoord"
)

// BenchmarkPage is what a page costs a single-node crawl: a kept slot, both guards and the release.
func BenchmarkPage(b *testing.B) {
	c := memcoord.New(nil)
	s, err := c.Join(b.Context(), coord.Options{Node: "a"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Leave(b.Context())
	need := coord.Need{Keys: []coord.CappedKey{{Key: coord.HostKey("example.com"), Cap: 24}, {Key: coord.RunKey(1), Cap: 8}}, N: 1}
	b.ReportAllocs()
	for b.Loop() {
		got, err := s.Acquire(b.Context(), need)
		if err != nil || len(got) != 1 {
			b.Fatalf("got %d permits, %v", len(got), err)
		}
		for range 2 {
			if err := got[0].MayStart(); err != nil {
				b.Fatal(err)
			}
		}
		got[0].Release()
	}
	b.ReportMetric(float64(s.Status().RoundTrips)/float64(b.N), "trips/page")
}

func authority(testing.TB) coordtest.Open {
	c := memcoord.New(nil)
	return func(testing.TB) coord.Coord { return c }
}

func TestContract(t *testing.T) {
	coordtest.Safety(t, authority)
	coordtest.Liveness(t, authority)
}
