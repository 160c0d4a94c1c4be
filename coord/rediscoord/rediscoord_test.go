package rediscoord_test

import (
	"testing"

	"deepcrawl/coord"
	"deepcrawl/coord/coordtest"
	"deepcrawl/coord/rediscoord"
	"deepcrawl/internal/testenv"
)

func authority(t testing.TB) coordtest.Open {
	url, prefix := testenv.Redis(t)
	return func(t testing.TB) coord.Coord {
		t.Helper()
		c, err := rediscoord.Open(t.Context(), url, rediscoord.Options{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return c
	}
}

func TestAlone(t *testing.T) {
	coordtest.Safety(t, authority)
	coordtest.Liveness(t, authority)
}
