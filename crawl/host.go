package crawl

import (
	"sync"
	"time"
)

// CooldownReason begins the reason of the gate of a host that is left alone after trouble.
const CooldownReason = "left alone for a while: "

// hosts is what this node knows of how hosts are doing, shared by all runs.
type hosts struct {
	mu  sync.Mutex
	all map[string]*host
	cap int
}

func newHosts(hostCap int) *hosts { return &hosts{all: make(map[string]*host), cap: hostCap} }

// maxIdleHosts bounds the memory of hosts nobody works on.
const maxIdleHosts = 10_000

func (h *hosts) get(name string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	st, ok := h.all[name]
	if !ok {
		if len(h.all) > maxIdleHosts {
			h.forgetIdle()
		}
		st = &host{name: name, limit: float64(h.cap), cap: float64(h.cap)}
		h.all[name] = st
	}
	return st
}

func (h *hosts) forgetIdle() {
	for name, st := range h.all {
		st.mu.Lock()
		idle := st.inflight == 0 && st.failures == 0 && st.cooldowns == 0
		st.mu.Unlock()
		if idle {
			delete(h.all, name)
		}
	}
}

// host slows before it stops: trouble halves how many requests may be in flight, success adds one back for each round;
// only failures in a row without one success leave it alone for a while (DESIGN section 3).
type host struct {
	name string

	mu       sync.Mutex
	inflight int
	limit    float64 // requests in flight allowed now, 1..cap
	cap      float64
	counted  time.Time // last trouble that counted: that of one round counts once

	failures  int  // in a row, without a success
	suspected bool // somebody finds out whether it is well
	class     trouble
	cooldowns int // in a row, without a success
	until     time.Time
}

// Left alone after this many failures in a row; a page that may not be seen says less about the host than an error.
const (
	failuresToCool  = 5
	forbiddenToCool = 10
	maxCooldowns    = 5 // doublings; after them the host is given up
	failureRound    = time.Second
)

// cooling returns the first and the longest pause for a class of trouble.
func cooling(t trouble) (first, most time.Duration) {
	switch t {
	case rateLimited, forbidden:
		return 900 * time.Second, 21_600 * time.Second
	case timedOut:
		return 300 * time.Second, 7_200 * time.Second
	}
	return 180 * time.Second, 3_600 * time.Second
}

func (t trouble) String() string {
	switch t {
	case fine:
		return "fine"
	case rateLimited:
		return "asked to slow down"
	case forbidden:
		return "access refused"
	case timedOut:
		return "timeouts"
	}
	return "errors"
}

// resting says whether a cooldown that began here is not over by the clock.
func (h *host) resting(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return now.Before(h.until)
}

// enter takes a place for a request, if there is one. gone says that the host has been given up. Cooldowns are gates of the
// coordinator, which the caller has asked: who gets here during one has been let in by an operator, so it is over.
func (h *host) enter(now time.Time) (ok, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Before(h.until) {
		h.failures, h.cooldowns, h.until, h.limit = 0, 0, time.Time{}, h.cap
	}
	if h.cooldowns > maxCooldowns {
		return false, true
	}
	if h.failures > 0 && h.class != forbidden && now.Sub(h.counted) < failureRound {
		// What would start now belongs to the round that failed. A host that refuses at once would fail every URL of the run
		// before five rounds have been counted.
		return false, false
	}
	limit := h.limit
	if h.cooldowns > 0 {
		limit = 1 // after a cooldown one request finds out
	}
	if h.inflight >= max(int(limit), 1) {
		return false, false
	}
	h.inflight++
	return true, false
}

// declared is the cap this node declares for the host. The smallest that any node declares holds for all, so a host that one
// node sees in trouble is slowed everywhere.
func (h *host) declared() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cooldowns > 0 {
		return 1
	}
	return max(int(h.limit), 1)
}

// leave gives the place back without a verdict.
func (h *host) leave() {
	h.mu.Lock()
	h.inflight--
	h.mu.Unlock()
}

// report gives the place back with what the request said of the host. suspect says that the host should be left alone, unless it
// proves to be well: acquit or coolDown MUST follow.
func (h *host) report(t trouble, now time.Time) (suspect bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inflight--
	switch {
	case t == fine:
		h.failures, h.cooldowns, h.class = 0, 0, fine
		h.until = time.Time{}
		if h.limit < h.cap {
			h.limit = min(h.cap, h.limit+1/max(h.limit, 1))
		}
		return false
	case t == ownFault:
		return false
	}
	// What was in flight together fails together: one event, not a row of them. Else a site that restarts within a second, or a
	// folder of pages nobody may see, would be left alone for minutes.
	if now.Sub(h.counted) < failureRound && h.cooldowns == 0 {
		return false
	}
	h.counted = now
	if t != forbidden {
		h.limit = max(1, h.limit/2)
	}
	h.class = t
	h.failures++
	need := failuresToCool
	if t == forbidden {
		need = forbiddenToCool
	}
	if h.cooldowns > 0 {
		need = 1
	}
	if h.failures < need || now.Before(h.until) || h.suspected {
		return false
	}
	h.suspected = true
	return true
}

// acquit ends a suspicion: the host is well, it was its pages that were not.
func (h *host) acquit() {
	h.mu.Lock()
	h.failures, h.cooldowns, h.suspected = 0, 0, false
	h.mu.Unlock()
}

// coolDown ends a suspicion with a pause, which it returns: by class, doubling, at least what the host asked for.
func (h *host) coolDown(t trouble, asked time.Duration, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, most := cooling(t)
	pause := max(min(first<<min(h.cooldowns, 5), most), asked)
	h.cooldowns++
	h.failures, h.suspected = 0, false
	h.until = now.Add(pause)
	return pause
}
