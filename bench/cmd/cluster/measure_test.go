package main

import (
	"math"
	"testing"
	"time"

	"deepcrawl/soak/web"
)

func TestFigures(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	hit := func(host string, from, to int) web.Hit {
		return web.Hit{Arrival: at(from), End: at(to), Host: host, Kind: web.KindPage, Status: 200, Source: "127.0.1.1"}
	}
	var hits []web.Hit
	for i := range 200 { // one page each 10 ms, on two hosts; the second is through at half time
		host := "a"
		if i < 100 && i%2 == 1 {
			host = "b"
		}
		hits = append(hits, hit(host, 10*i, 10*i+10))
	}
	robots := web.Hit{Arrival: at(-500), End: at(-490), Host: "a", Kind: web.KindRobots, Status: 200}
	hits = append(hits, robots)
	p := pages(hits)
	if len(p) != 200 {
		t.Fatalf("got %d pages, want 200", len(p))
	}
	if got := speed(hits); math.Abs(got-200/2.5) > 0.01 {
		t.Errorf("got %v pages/s from the first request on, want 80", got)
	}
	if got := middle(p); math.Abs(got-100) > 0.01 {
		t.Errorf("got %v pages/s in the middle, want 100", got)
	}
	if got := tail(p); math.Abs(got) > 0.02 {
		t.Errorf("got a tail of %v s, want none", got)
	}
	if got := within(p, at(500), at(1000)); math.Abs(got-100) > 0.01 {
		t.Errorf("got %v pages/s within, want 100", got)
	}
	from, to := backlogged(p, []string{"a", "b"})
	if !from.Equal(at(20)) || !to.Equal(at(1000)) {
		t.Errorf("got %v to %v", from, to)
	}
	if got := jain(perHost(p, []string{"a", "b"}, from, to)); got < 0.999 {
		t.Errorf("got Jain %v while both had pages", got)
	}
	if got := jain([]float64{1, 0, 0, 0}); got != 0.25 {
		t.Errorf("got Jain %v of one that has all, want 1/4", got)
	}
	if got := inFlight(hits, "127.0.1.1", at(55)); got != 1 {
		t.Errorf("got %d in flight, want 1", got)
	}
}
