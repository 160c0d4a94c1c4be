package core

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"deepcrawl/coord"
)

const (
	// FallAfter is how long most sessions must report Redis unusable before the cluster leaves it.
	FallAfter = 5 * time.Second
	// SeedWithin is how long a drain to Redis may wait for its seed after the barrier.
	SeedWithin = 5 * time.Second
	// StableFor is how long every session must have seen one Redis before the cluster returns to it after a fallback.
	StableFor = 60 * time.Second
	// ReturnEvery is the time between attempts to return.
	ReturnEvery = 30 * time.Second
	// ReturnPause is the shortest time from a fallback to the return, doubling up to six times that while fallbacks repeat.
	ReturnPause = 5 * time.Minute
)

// controller is a session's part in changing the authority. Any session may take any step; the row decides who was first.
type controller struct {
	wish    string        // what should be done
	since   time.Duration // it has been so
	busy    bool          // a call is out
	tried   time.Duration // last attempt to return
	hasTry  bool
	barrier coord.Epoch   // the drain whose barrier was seen passed
	passed  time.Duration // when
	reap    uint64
}

type drainOut struct{ lost bool }
type carriedOut struct{ epoch coord.Epoch }
type seedOut struct{ epoch coord.Epoch }
type openOut struct{ mode coord.Mode }

// control looks at the authority after a good beat. bad is why the database is not to be trusted, if so.
func (s *Session) control(now Now, r coord.BeatReply, bad string) {
	a, c := r.Authority, &s.ctl
	s.reap(now, r)
	if c.busy {
		return
	}
	if bad != "" {
		if s.myTurn(now, r, "rule 13") {
			s.drain(coord.Drain{Target: coord.ModeDB, Reason: bad, NewIdent: r.DB != a.DB, Lost: a.Epoch < s.seen || s.lostRows})
		}
		return
	}
	switch a.Mode {
	case coord.ModeDrain:
		s.endDrain(now, r)
	case coord.ModeRedis:
		if s.unserved {
			// Whoever needs slots and cannot ask Redis is served by the database (rule 11); a tool that needs none moves nobody.
			s.unserved = false
			s.drain(coord.Drain{Target: coord.ModeDB, Reason: fmt.Sprintf("%s has no redis configured", s.id.Node), Fall: true})
			return
		}
		if s.redis.changed && s.cfg.Redis && s.myTurn(now, r, "changed") {
			s.drain(coord.Drain{Target: coord.ModeDB, Reason: "redis is not the one that was seeded", Fall: true})
			return
		}
		if mostWithoutRedis(r.Sessions, cmp.Or(s.cfg.Timing.Fall, FallAfter)) && s.myTurn(now, r, "without") {
			s.drain(coord.Drain{Target: coord.ModeDB, Reason: "most sessions do not reach redis", Fall: true})
		}
	case coord.ModeDB:
		s.unserved = false
		if reason := s.mayReturn(now, r); reason != "" && s.myTurn(now, r, "return") {
			c.tried, c.hasTry = now.Mono, true
			s.drain(coord.Drain{Target: coord.ModeRedis, Reason: reason})
		}
	}
}

// myTurn spreads what everybody sees over the sessions: the first of the roster acts at once, the second if it is still to do
// a beat later, and so on.
func (s *Session) myTurn(now Now, r coord.BeatReply, wish string) bool {
	c := &s.ctl
	if c.wish != wish {
		c.wish, c.since = wish, now.Mono
	}
	if s.cfg.Eager {
		return true
	}
	rank := 0
	for _, o := range r.Sessions {
		if o.State == coord.Live && o.Member.Less(s.id) {
			rank++
		}
	}
	return now.Mono-c.since >= time.Duration(min(rank, 3))*s.cfg.Timing.Beat
}

func (s *Session) drain(d coord.Drain) {
	d.By, d.From, d.Seen, d.Hold = s.id, s.auth.Epoch, max(d.Seen, s.seen), s.cfg.Timing.Death
	s.ctl.busy = true
	s.out[s.call(d)] = drainOut{lost: d.Lost}
}

// mostWithoutRedis reports that more than half of the live sessions with a Redis have not reached it for that long.
func mostWithoutRedis(sessions []coord.SessionState, fall time.Duration) bool {
	with, without := 0, 0
	for _, o := range sessions {
		if o.State != coord.Live || !o.Redis.Configured {
			continue
		}
		with++
		if !o.Redis.Usable && o.Redis.For >= fall {
			without++
		}
	}
	return with == 0 || 2*without > with
}

// mayReturn says why the cluster may go to Redis, or nothing (rules 11, 12).
func (s *Session) mayReturn(now Now, r coord.BeatReply) string {
	a, c := r.Authority, &s.ctl
	t := s.cfg.Timing
	if !s.cfg.Redis || a.Pin == coord.ModeDB || c.hasTry && now.Mono-c.tried < cmp.Or(t.ReturnEvery, ReturnEvery) {
		return ""
	}
	first := a.Falls == 0 && a.FellAt == 0
	if !first {
		least := cmp.Or(t.ReturnPause, ReturnPause)
		pause := least << min(max(a.Falls-1, 0), 8)
		if r.Now-a.FellAt < micros(min(pause, 6*least)) {
			return ""
		}
	}
	var one coord.RedisIdent
	for _, o := range r.Sessions {
		if o.State != coord.Live {
			continue
		}
		h := o.Redis
		if !h.Configured || !h.Usable || !first && h.For < cmp.Or(t.Stable, StableFor) || !one.IsZero() && !one.Same(h.Ident) {
			return ""
		}
		one = h.Ident
	}
	if one.IsZero() || !one.Same(s.redis.ident) {
		return ""
	}
	if first {
		return "first start with redis"
	}
	return "redis is stable again"
}

// endDrain takes the next step of a drain, if the barrier seems passed: the transaction checks it again.
func (s *Session) endDrain(now Now, r coord.BeatReply) {
	a, c := r.Authority, &s.ctl
	if s.cfg.Off.on(R9Barrier) {
		for _, o := range r.Sessions {
			if o.State == coord.Live && o.Acked < a.Epoch {
				return
			}
		}
	}
	if r.Now < a.HoldUntil && s.cfg.Off.on(R13Hold) {
		return
	}
	if c.barrier != a.Epoch {
		c.barrier, c.passed = a.Epoch, now.Mono
	}
	if a.Target == coord.ModeRedis && now.Mono-c.passed < SeedWithin {
		if s.cfg.Redis && s.redis.usable && s.myTurn(now, r, "seed") {
			c.busy = true
			s.out[s.call(Carried{Epoch: a.Epoch})] = carriedOut{epoch: a.Epoch}
		}
		return
	}
	if s.myTurn(now, r, "open") {
		s.open(coord.Open{Epoch: a.Epoch, Mode: coord.ModeDB})
	}
}

func (s *Session) open(o coord.Open) {
	s.ctl.busy = true
	s.out[s.call(o)] = openOut{mode: o.Mode}
}

// controlAnswer goes on with what the answer of a step allows.
func (s *Session) controlAnswer(now Now, kept any, a Answer) {
	if errors.Is(a.Err, coord.ErrUnknown) {
		if _, ok := kept.(returnOut); ok {
			s.setDirty(now)
		}
	}
	switch k := kept.(type) {
	case drainOut:
		s.ctl.busy = false
		s.lostTold = s.lostTold || k.lost && a.Err == nil
		s.beatSoon(now)
	case openOut:
		s.ctl.busy = false
		if a.Err == nil {
			s.ctl.wish = ""
		}
		s.beatSoon(now)
	case carriedOut:
		s.ctl.busy = false
		slots, ok := a.Reply.([]coord.Slot)
		if a.Err != nil || !ok && a.Reply != nil || s.auth.Epoch != k.epoch || s.auth.Mode != coord.ModeDrain {
			return
		}
		s.ctl.busy = true
		s.out[s.call(Seed{Epoch: k.epoch, Slots: slots})] = seedOut(k)
	case seedOut:
		s.ctl.busy = false
		r, _ := a.Reply.(coord.Seeded)
		switch {
		case a.Err == nil && !r.Ident.IsZero():
			s.open(coord.Open{Epoch: k.epoch, Mode: coord.ModeRedis, Redis: r.Ident})
		case errors.Is(a.Err, coord.ErrStale) && r.Guard >= k.epoch && s.auth.Epoch == k.epoch && s.auth.Mode == coord.ModeDrain:
			// Somebody has seeded this epoch, or a later one that the database forgot: the next one is above it.
			s.drain(coord.Drain{Target: coord.ModeRedis, Seen: r.Guard, Reason: "redis was seeded for this epoch before"})
		}
	}
}

// reap frees, every few beats, what ended sessions had in Redis.
func (s *Session) reap(now Now, r coord.BeatReply) {
	if s.view.Mode != coord.ModeRedis || r.Authority.Mode != coord.ModeRedis || !s.mayAsk(now) || !s.cfg.Off.on(R5Reap) {
		return
	}
	s.ctl.reap++
	if s.ctl.reap%s.cfg.Rare != 0 {
		return
	}
	var live []coord.Member
	rank := 0
	for _, o := range r.Sessions {
		if o.State != coord.Live {
			continue
		}
		live = append(live, o.Member)
		if o.Member.Less(s.id) {
			rank++
		}
	}
	if rank > 2 {
		return
	}
	before := coord.Incarnation(max(r.Now-micros(ReapAfter), 0))
	s.out[s.call(Reap{View: s.view, Live: live, Before: before})] = nil
}

// ReapAfter is how old a session must be that is not among the live ones, to be sure that its registration was not under way
// when they were read.
const ReapAfter = time.Minute
