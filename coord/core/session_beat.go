package core

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"deepcrawl/coord"
)

// redisState is what this session knows of Redis.
type redisState struct {
	ident   coord.RedisIdent
	usable  bool
	since   time.Duration // it has been so
	now     coord.Micros  // its clock at the last probe
	from    time.Duration // start of that probe
	started time.Duration // of the probe that is out
	fresh   bool          // the last probe succeeded, and belongs to the beat that follows
	beside  bool          // the probe that is out, or was last, belongs to none
	changed bool          // proof that it is not the one that was seeded
	doubt   coord.Epoch   // it refused a grant of this epoch; proof if that epoch is still today's
}

type beatOut struct {
	start Now
	ack   coord.Epoch // 0: none
}

// ClockError is the assumed error of clock rates.
const clockError = 20 // 1/20 = 5 %

// MaxStep is the difference between two clocks over a beat, beyond the rate error, that counts as a step.
const MaxStep = 500 * time.Millisecond

func (s *Session) startBeat(now Now) {
	r := &s.redis
	if s.cfg.Redis && s.probeID == 0 {
		r.started, r.fresh = now.Mono, false
		r.beside = !r.usable && s.goodBeats > 0
		s.probeID = s.call(Probe{Beside: r.beside})
		if !r.beside {
			return
		}
	}
	s.sendBeat(now)
}

func (s *Session) probeAnswer(now Now, a Answer) {
	p, ok := a.Reply.(coord.Probed)
	usable := a.Err == nil && ok && p.Eligible
	r := &s.redis
	switch {
	case usable && (!r.usable || !p.Ident.Same(r.ident)):
		r.since = now.Mono
	case !usable && r.usable:
		r.since = r.started // it did not answer then
	}
	if usable {
		if r.usable && p.Ident.Same(r.ident) && stepped(r.now, p.Now, r.started-r.from, now.Mono-r.from) {
			r.since, r.changed = now.Mono, true
		}
		r.ident, r.now, r.from, r.fresh = p.Ident, p.Now, r.started, !r.beside
	}
	r.usable = usable
	if !r.beside {
		s.sendBeat(now)
	}
}

// stepped reports that a clock advanced by less or more than what passed between its two readings, which is between least
// and most.
func stepped(before, after coord.Micros, least, most time.Duration) bool {
	passed := time.Duration(after-before) * time.Microsecond
	return passed > most+most/clockError+MaxStep || passed < least-least/clockError-MaxStep
}

func (s *Session) sendBeat(now Now) {
	s.seq++
	b := coord.Beat{
		Member: s.id, Seq: s.seq, Seen: s.seen, Since: s.gatesSince,
		Redis: coord.Health{Configured: s.cfg.Redis, Ident: s.redis.ident, Usable: s.redis.usable, For: now.Mono - s.redis.since},
	}
	if s.facts != nil {
		b.Facts = s.facts()
	}
	kept := beatOut{start: now}
	if s.acked < s.seen && s.auth.Epoch == s.seen {
		b.Ack = s.makeAck()
		kept.ack = b.Ack.Epoch
	}
	b.Gates = s.gateWrites(now, b.Ack != nil)
	for _, w := range b.Gates {
		if w.Set > 0 {
			b.Since = min(b.Since, w.Set) // a clear that voids it is read with it
		}
	}
	s.beatID = s.call(b)
	s.out[s.beatID] = kept
}

func (s *Session) makeAck() *coord.Ack {
	ack := &coord.Ack{Epoch: s.seen}
	for _, t := range s.heldTokens() {
		if t.state == tokenIdle && !s.cfg.Off.on(R7Tokens) {
			continue
		}
		ack.Slots = append(ack.Slots, coord.Slot{Key: t.key, N: t.n, Member: s.id, Token: t.id, Epoch: s.seen, Cap: t.cap})
	}
	return ack
}

// beatSoon brings the next beat forward, not into a busy loop.
func (s *Session) beatSoon(now Now) {
	s.nextBeat = min(s.nextBeat, max(now.Mono, s.lastGood+s.cfg.Timing.Beat/8))
	s.arm(s.nextBeat)
}

func (s *Session) jitter(d time.Duration) time.Duration {
	if s.cfg.Jitter == nil {
		return d
	}
	return s.cfg.Jitter(d)
}

func (s *Session) beatAnswer(now Now, a Answer) {
	kept := s.out[a.ID].(beatOut)
	delete(s.out, a.ID)
	if a.Err != nil {
		if errors.Is(a.Err, coord.ErrFenced) {
			s.fence(a.Err)
			return
		}
		s.nextBeat = now.Mono + s.jitter(s.cfg.Timing.Beat/2)
		s.arm(s.nextBeat)
		return
	}
	r := a.Reply.(coord.BeatReply)
	t, off := s.cfg.Timing, s.cfg.Off
	start, from := kept.start, kept.start
	if !off.on(R2FromStart) {
		from = now
	}
	s.nextBeat = start.Mono + s.jitter(t.Beat)
	told := map[coord.Key]bool{}
	for key, p := range s.pending {
		if p.sent == s.seq {
			delete(s.pending, key)
			told[key] = true
		}
	}
	if s.lostRows && r.Authority.Epoch > s.lostIn && (r.Authority.HoldUntil > 0 || s.lostTold) {
		s.lostRows = false // an epoch began since that waits for what was lost
	}
	if r.Prev < s.goodSeq || r.Acked < s.acked {
		s.lose(r.Authority.Epoch)
		s.acked = min(s.acked, r.Acked)
	}
	step := s.goodBeats > 0 && r.DB == s.lastDB &&
		stepped(s.lastNow, r.Now, start.Mono-s.obsEnd, max(now.Mono-s.lastGood, now.Wall-s.lastWall))
	s.goodSeq, s.lastGood, s.lastWall, s.lastNow = s.seq, start.Mono, start.Wall, r.Now
	s.goodBeats++
	s.gatesSince = r.Now
	if r.DB != s.lastDB {
		s.gatesSince = 0 // what it changed while the other one answered is not known
	}
	s.lastDB = r.DB
	s.observe(now, start, r)
	for _, g := range r.Gates {
		if told[g.Key] {
			s.heard(now, g)
		} else {
			s.adopt(now, g)
		}
	}
	s.auth = r.Authority
	if bad := s.distrust(r, step); bad != "" {
		// This database may have forgotten grants: no view, and a new epoch.
		s.viewUntil, s.woken = 0, true
		s.seen = max(s.seen, r.Authority.Epoch)
		s.arm(s.nextBeat)
		s.control(now, r, bad)
		return
	}
	s.takeView(from, r)
	if r.Acked < r.Authority.Epoch {
		s.nextBeat = now.Mono // to ack
	} else {
		s.acked = r.Acked
		if r.Authority.Mode == coord.ModeDrain {
			s.nextBeat = min(s.nextBeat, now.Mono+s.jitter(t.Beat/4))
		}
		s.afterBeat(now)
		s.control(now, r, "")
	}
	s.hurryFall(now)
	s.arm(s.nextBeat)
	s.woken = true
}

// hurryFall lets a session that does not reach Redis say so when it matters: when it has been so for long enough to leave Redis
// (rule 11), and soon again, because others say so at the same time.
func (s *Session) hurryFall(now Now) {
	if !s.cfg.Redis || s.redis.usable || s.view.Mode != coord.ModeRedis {
		return
	}
	t := s.cfg.Timing
	fall := s.redis.since + cmp.Or(t.Fall, FallAfter)
	switch {
	case now.Mono < fall:
		s.nextBeat = min(s.nextBeat, fall)
	case now.Mono < fall+2*t.Beat:
		s.nextBeat = min(s.nextBeat, now.Mono+s.jitter(t.Beat/4))
	}
}

// lose notes that the authority forgot, in epoch e, what it had confirmed.
func (s *Session) lose(e coord.Epoch) {
	s.lostRows, s.lostIn, s.lostTold = true, e, false
}

// takeView makes what a beat read the view.
func (s *Session) takeView(start Now, r coord.BeatReply) {
	e, was := s.cfg.Timing.View, s.view
	s.seen = max(s.seen, r.Authority.Epoch)
	s.view = coord.View{
		Epoch: r.Authority.Epoch, Mode: r.Authority.Mode, DB: r.Authority.DB, Redis: r.Authority.Redis, Until: r.Now + micros(e),
	}
	s.viewFrom, s.viewUntil = start, start.Mono+e
	if r.Authority.Mode != coord.ModeRedis {
		s.redis.changed = false
		return
	}
	if s.redis.doubt == s.view.Epoch && was.Epoch == s.view.Epoch && was.Mode == coord.ModeRedis {
		s.redis.changed = true
	}
	s.redis.doubt = 0
	switch {
	case !s.redis.fresh:
	case s.redis.ident == r.Authority.Redis:
		if !s.redis.changed {
			s.view.RedisUntil = s.redis.now + micros(e)
		}
	case was.Epoch == s.view.Epoch && was.Mode == coord.ModeRedis:
		// The probe was sent when the seed was known: what it met is another Redis.
		s.redis.changed = true
	}
}

// distrust says why what the database answered cannot be built on (rule 13), or nothing.
func (s *Session) distrust(r coord.BeatReply, step bool) string {
	if !s.cfg.Off.on(R13Ident) {
		return ""
	}
	switch {
	case r.DB != r.Authority.DB && r.DB.System == r.Authority.DB.System:
		return "the database was restarted"
	case r.DB != r.Authority.DB:
		return fmt.Sprintf("the database is another: %s, was %s", r.DB.System, r.Authority.DB.System)
	case r.Authority.Epoch < s.seen:
		return fmt.Sprintf("the database is at epoch %d, this session has seen %d", r.Authority.Epoch, s.seen)
	case s.lostRows:
		return "the database lost rows it had confirmed"
	case step:
		return "the database's clock stepped"
	}
	return ""
}

// observed is another session, as this one sees it.
type observed struct {
	seq     uint64
	silence time.Duration // on this session's clock, across its own good beats
}

// observe counts the silence of others (rule 9).
func (s *Session) observe(now, start Now, r coord.BeatReply) {
	t, off := s.cfg.Timing, s.cfg.Off
	gap := max(start.Mono-s.obsEnd, 0)
	if off.on(R9Gap) {
		gap = min(gap, 2*t.Beat)
	} else {
		gap = now.Mono - s.obsEnd
	}
	s.obsEnd = now.Mono
	death := t.Death
	if !off.on(R9Death) {
		death = t.View
	}
	live := make(map[coord.Member]struct{}, len(r.Sessions))
	for _, o := range r.Sessions {
		if o.State != coord.Live || o.Member == s.id {
			continue
		}
		live[o.Member] = struct{}{}
		seen := s.others[o.Member]
		if seen == nil {
			seen = &observed{seq: o.Seq}
			s.others[o.Member] = seen
			continue
		}
		if seen.seq != o.Seq {
			seen.seq, seen.silence = o.Seq, 0
			continue
		}
		seen.silence += gap
		if seen.silence >= death {
			s.out[s.call(coord.Burial{By: s.id, Member: o.Member, Seq: o.Seq, Reason: fmt.Sprintf("silent for %v", seen.silence)})] = nil
		}
	}
	for m := range s.others {
		if _, ok := live[m]; !ok {
			delete(s.others, m)
		}
	}
}

// Watching reports that another session is silent: this one must stay to see whether it is dead.
func (s *Session) Watching() bool {
	for _, o := range s.others {
		if o.silence > 3*s.cfg.Timing.Beat {
			return true
		}
	}
	return false
}

// ClockBound is the latest time the granting authority's clock can show now.
func (s *Session) ClockBound(now Now) coord.Micros {
	since, at := now.Mono-s.viewFrom.Mono, s.view.Until-micros(s.cfg.Timing.View)
	if s.view.Mode == coord.ModeRedis {
		since, at = now.Mono-s.redis.from, s.redis.now
	}
	return at + micros(since+since/clockError)
}

// Beats is the number of the last beat known to have taken effect.
func (s *Session) Beats() uint64 { return s.goodSeq }
