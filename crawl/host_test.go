package crawl

import (
	"testing"
	"time"
)

// visits makes n requests that end with a verdict, one second apart, and returns the last cooldown.
func visits(t *testing.T, h *host, now *time.Time, n int, verdict trouble, asked time.Duration) (cooled time.Duration) {
	t.Helper()
	for range n {
		*now = now.Add(time.Second)
		if ok, gone := h.enter(*now); !ok {
			t.Fatalf("not let in: given up %v", gone)
		}
		if h.report(verdict, *now) {
			cooled = h.coolDown(verdict, asked, *now)
		}
	}
	return cooled
}

func TestTroubleHalvesBeforeItStops(t *testing.T) {
	h, now := newHosts(24).get("a.example"), time.Unix(1e9, 0)
	visits(t, h, &now, 1, troubled, 0)
	if h.limit != 12 {
		t.Errorf("after one error: limit %v, want 12", h.limit)
	}
	visits(t, h, &now, 1, rateLimited, 0)
	if h.limit != 6 {
		t.Errorf("after two: limit %v, want 6", h.limit)
	}
	visits(t, h, &now, 300, fine, 0)
	if h.limit != 24 {
		t.Errorf("after many successes: limit %v, want 24 again", h.limit)
	}
}

func TestTroubleOfOneRoundCountsOnce(t *testing.T) {
	h, now := newHosts(24).get("a.example"), time.Unix(1e9, 0)
	for range 24 {
		h.enter(now)
	}
	for range 24 {
		if h.report(timedOut, now) {
			t.Fatal("suspected after requests that were in flight together")
		}
	}
	if h.limit != 12 || h.failures != 1 {
		t.Errorf("limit %v after %d failures, want 12 after 1", h.limit, h.failures)
	}
}

func TestNothingStartsInARoundThatFailedUntilASuccess(t *testing.T) {
	h, now := newHosts(24).get("a.example"), time.Unix(1e9, 0)
	h.enter(now)
	h.enter(now)
	h.report(troubled, now)
	if ok, _ := h.enter(now.Add(failureRound - 1)); ok {
		t.Error("let in while the round that failed lasts: a host that is down fails URLs as fast as they come")
	}
	h.report(fine, now) // another request of the round went well
	if ok, _ := h.enter(now); !ok {
		t.Error("kept out after a success")
	}
	h.report(troubled, now.Add(2*failureRound))
	if ok, _ := h.enter(now.Add(3 * failureRound)); !ok {
		t.Error("kept out after the round")
	}
	h.report(forbidden, now.Add(5*failureRound))
	if ok, _ := h.enter(now.Add(5 * failureRound)); !ok {
		t.Error("kept out by a page that may not be seen")
	}
}

func TestCooldownByClassDoublesAndASuccessClearsIt(t *testing.T) {
	for _, c := range []struct {
		class       trouble
		need        int
		first, most time.Duration
	}{
		{rateLimited, 5, 900 * time.Second, 21_600 * time.Second},
		{forbidden, 10, 900 * time.Second, 21_600 * time.Second},
		{timedOut, 5, 300 * time.Second, 7_200 * time.Second},
		{troubled, 5, 180 * time.Second, 3_600 * time.Second},
	} {
		t.Run(c.class.String(), func(t *testing.T) {
			h, now := newHosts(24).get("a.example"), time.Unix(1e9, 0)
			if d := visits(t, h, &now, c.need-1, c.class, 0); d > 0 {
				t.Fatalf("left alone after %d failures", c.need-1)
			}
			visits(t, h, &now, 1, fine, 0)
			if d := visits(t, h, &now, c.need-1, c.class, 0); d > 0 {
				t.Fatal("a success did not clear the failures")
			}
			got := visits(t, h, &now, 1, c.class, 0)
			want := c.first
			for round := 0; ; round++ {
				if got != want {
					t.Fatalf("cooldown %d is %v, want %v", round, got, want)
				}
				now = now.Add(got)
				if round == maxCooldowns {
					break
				}
				if h.declared() != 1 {
					t.Fatalf("cap %d declared after a cooldown, want 1", h.declared())
				}
				got = visits(t, h, &now, 1, c.class, 0) // one request finds out
				want = min(2*want, c.most)
			}
			if ok, gone := h.enter(now); ok || !gone {
				t.Fatalf("after %d cooldowns: let in %v, given up %v", maxCooldowns+1, ok, gone)
			}
		})
	}
}

func TestAnOperatorWhoOpensTheGateEndsTheCooldown(t *testing.T) {
	h, now := newHosts(24).get("a.example"), time.Unix(1e9, 0)
	visits(t, h, &now, 5, troubled, 0)
	for i := range 3 {
		if ok, _ := h.enter(now); !ok {
			t.Fatalf("request %d not let in", i)
		}
	}
}

func TestALongerRetryAfterWins(t *testing.T) {
	h, now := newHosts(24).get("a.example"), time.Unix(1e9, 0)
	if got := visits(t, h, &now, 5, rateLimited, 2*time.Hour); got != 2*time.Hour {
		t.Errorf("cooldown %v, want 2h", got)
	}
}

func TestAfterACooldownOneRequestFindsOut(t *testing.T) {
	h, now := newHosts(24).get("a.example"), time.Unix(1e9, 0)
	now = now.Add(visits(t, h, &now, 5, troubled, 0))
	if ok, _ := h.enter(now); !ok {
		t.Fatal("not let in after the cooldown")
	}
	if ok, _ := h.enter(now); ok {
		t.Fatal("a second one was let in")
	}
	h.report(fine, now)
	for i := range 2 {
		if ok, _ := h.enter(now); !ok {
			t.Fatalf("request %d not let in after a success", i)
		}
	}
}

func TestPagesThatAnswer500SayNothingOfTheHost(t *testing.T) {
	h, now := newHosts(24).get("a.example"), time.Unix(1e9, 0)
	for range 40 {
		now = now.Add(2 * time.Second)
		if ok, _ := h.enter(now); !ok {
			t.Fatal("not let in")
		}
		if h.report(ownFault, now) {
			t.Fatal("suspected for pages that answer 500")
		}
	}
	if h.limit != 24 {
		t.Errorf("limit %v, want 24", h.limit)
	}
}

func TestAnAcquittedHostStartsANewRow(t *testing.T) {
	h, now := newHosts(24).get("a.example"), time.Unix(1e9, 0)
	for round := range 3 {
		for i := range forbiddenToCool {
			now = now.Add(time.Second)
			h.enter(now)
			if got, want := h.report(forbidden, now), i == forbiddenToCool-1; got != want {
				t.Fatalf("round %d, failure %d: suspected %v", round, i, got)
			}
		}
		h.acquit()
	}
	if h.cooldowns != 0 {
		t.Errorf("%d cooldowns", h.cooldowns)
	}
}
