package core

import (
	"fmt"
	"time"

	"deepcrawl/coord"
)

// LeaseRow is a lease as stored. It is never deleted, so its fence never repeats.
type LeaseRow struct {
	Member coord.Member // of the last acquisition
	Token  coord.Token
	Fence  coord.Fence
	Until  coord.Micros
	Free   bool // it was dropped, or its session ended
}

// DecideHold takes or renews. holderLive tells whether row.Member is a live session. While the authority waits out lost
// commits (rule 13) nothing new is granted: a holder whose row was lost still trusts its lease.
func DecideHold(off Off, row LeaseRow, holderLive bool, h coord.Hold, a coord.Authority, now coord.Micros) (LeaseRow, error) {
	held := row.Member != (coord.Member{}) && !row.Free && holderLive && now < row.Until
	mine := row.Member == h.Member
	switch {
	case mine && h.Token < row.Token, mine && h.Token == row.Token && !held:
		// A delayed call of an acquisition that was given up must not revive it; one that ran out may have been followed by
		// another, so only a new acquisition, with a new fence, comes after it.
		return row, fmt.Errorf("hold %s: %w", h.Name, coord.ErrLost)
	case mine && h.Token == row.Token:
		row.Until = now + micros(h.TTL)
		return row, nil
	case held && !mine:
		return row, fmt.Errorf("%s is held by %s: %w", h.Name, row.Member, coord.ErrHeld)
	case now < a.HoldUntil && off.on(R13Hold):
		return row, fmt.Errorf("hold %s: commits were lost: %w", h.Name, coord.ErrWaiting)
	}
	row.Member, row.Token, row.Until, row.Free = h.Member, h.Token, now+micros(h.TTL), false
	if off.on(RFence) {
		// The time as well, so that a number whose commit was lost does not come again.
		row.Fence.Number = max(row.Fence.Number+1, uint64(max(now, 0)))
	}
	if off.on(RFenceEpoch) {
		row.Fence.Epoch = max(row.Fence.Epoch, uint64(a.Epoch))
	}
	return row, nil
}

// Read is the lease as its holder gets it.
func (row LeaseRow) Read(name string, now coord.Micros) coord.Held {
	if row.Member == (coord.Member{}) || row.Free || row.Until <= now {
		return coord.Held{}
	}
	return coord.Held{Name: name, Member: row.Member, Token: row.Token, Fence: row.Fence, For: time.Duration(row.Until-now) * time.Microsecond}
}

// Trust is how long a holder trusts a lease from the start of the renewing call: 75 of 90 seconds. RenewEvery is how often
// it renews.
func Trust(ttl time.Duration) time.Duration { return ttl * 5 / 6 }

// RenewEvery is the time between renewals: 15 of 90 seconds.
func RenewEvery(ttl time.Duration) time.Duration { return ttl / 6 }

// Trusted is a holder's trust in its lease since the start of the call that took or renewed it.
type Trusted struct {
	From Now
	TTL  time.Duration
}

// Holds reports whether the lease may be relied on: neither clock has run for Trust since. The wall clock counts because the
// monotonic one may stand still while a machine is suspended.
func (t Trusted) Holds(off Off, now Now) bool {
	trust := Trust(t.TTL)
	if !off.on(RTrust) {
		trust = t.TTL * 5 / 4
	}
	return now.Mono-t.From.Mono < trust && (now.Wall-t.From.Wall < trust || !off.on(R3Wall))
}
