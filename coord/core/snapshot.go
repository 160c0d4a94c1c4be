package core

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"deepcrawl/coord"
)

// Clone copies the machine, and the permits of it that the caller holds, for checkers that try every next event.
func (s *Session) Clone(permits ...*Permit) (*Session, []*Permit) {
	c := *s
	tokens := make(map[*token]*token, len(s.held))
	tok := func(t *token) *token {
		if t == nil {
			return nil
		}
		if have, ok := tokens[t]; ok {
			return have
		}
		n := *t
		tokens[t] = &n
		return &n
	}
	list := func(in []*token) []*token {
		if in == nil {
			return nil
		}
		out := make([]*token, len(in))
		for i, t := range in {
			out[i] = tok(t)
		}
		return out
	}
	copies := map[*Permit]*Permit{}
	permit := func(p *Permit) *Permit {
		if p == nil {
			return nil
		}
		if have, ok := copies[p]; ok {
			return have
		}
		n := *p
		n.tokens = list(p.tokens)
		n.two = [2]*token{}
		copies[p] = &n
		return &n
	}
	c.calls, c.returning, c.cooling = slices.Clone(s.calls), slices.Clone(s.returning), list(s.cooling)
	c.out, c.reconFor = maps.Clone(s.out), maps.Clone(s.reconFor)
	c.held = make(map[coord.Token]*token, len(s.held))
	for k, t := range s.held {
		c.held[k] = tok(t)
	}
	c.asked = make(map[uint64]*ask, len(s.asked))
	for id, q := range s.asked {
		n := *q
		n.groups = make([]askGroup, len(q.groups))
		for i, g := range q.groups {
			n.groups[i] = askGroup{kept: list(g.kept), asked: g.asked}
		}
		n.got = make([]*Permit, len(q.got))
		for i, p := range q.got {
			n.got[i] = permit(p)
		}
		c.asked[id] = &n
	}
	c.keys = make(map[coord.Key]*keyState, len(s.keys))
	for k, v := range s.keys {
		n := *v
		n.idle = list(v.idle)
		c.keys[k] = &n
	}
	c.gates, c.pending, c.others = clonePtr(s.gates), clonePtr(s.pending), clonePtr(s.others)
	out := make([]*Permit, len(permits))
	for i, p := range permits {
		out[i] = permit(p)
	}
	return &c, out
}

func clonePtr[K comparable, V any](m map[K]*V) map[K]*V {
	out := make(map[K]*V, len(m))
	for k, v := range m {
		n := *v
		out[k] = &n
	}
	return out
}

// Canon writes states so that two that differ only in when they are, and in the size of numbers that only have an order, are
// equal: times are relative and end at a horizon, tokens, beats, calls and stamps are ranks. A state is written twice with one
// Canon: the first time to learn the numbers.
type Canon struct {
	Buf     []byte
	Horizon time.Duration
	learned map[canonKey][]uint64
	ranks   map[canonKey]map[uint64]uint64
}

type canonKey struct {
	space byte
	m     coord.Member
}

// Reset begins a state.
func (c *Canon) Reset() {
	c.Buf, c.learned, c.ranks = c.Buf[:0], map[canonKey][]uint64{}, nil
}

// Ranked ends the learning: what is written now counts.
func (c *Canon) Ranked() {
	c.Buf, c.ranks = c.Buf[:0], make(map[canonKey]map[uint64]uint64, len(c.learned))
	for k, vs := range c.learned {
		slices.Sort(vs)
		ranks := make(map[uint64]uint64, len(vs))
		for i, v := range slices.Compact(vs) {
			ranks[v] = uint64(i)
		}
		c.ranks[k] = ranks
	}
}

// Rank writes the rank of a number among those of its space and member. Zero is zero.
func (c *Canon) Rank(space byte, m coord.Member, v uint64) {
	k := canonKey{space, m}
	if c.ranks == nil {
		c.learned[k] = append(c.learned[k], v, 0)
		return
	}
	c.Num(c.ranks[k][v])
}

// Num writes a number as it is.
func (c *Canon) Num(v uint64) { c.Buf = binary.AppendUvarint(c.Buf, v) }

// Bool writes a truth.
func (c *Canon) Bool(b bool) {
	if b {
		c.Buf = append(c.Buf, 1)
	} else {
		c.Buf = append(c.Buf, 0)
	}
}

// Text writes a text.
func (c *Canon) Text(s string) {
	c.Num(uint64(len(s)))
	c.Buf = append(c.Buf, s...)
}

// Member writes a member.
func (c *Canon) Member(m coord.Member) { c.Text(string(m.Node)) }

// Since writes a duration within the horizon.
func (c *Canon) Since(d time.Duration) {
	d = min(max(d, -c.Horizon), c.Horizon)
	c.Buf = binary.AppendVarint(c.Buf, int64(d/time.Millisecond))
}

// Micros writes a time of an authority's clock that shows now; 0 is never.
func (c *Canon) Micros(at, now coord.Micros) {
	c.Bool(at == 0)
	if at != 0 {
		c.Since(time.Duration(at-now) * time.Microsecond)
	}
}

// Spaces of ranks.
const (
	SpaceToken = 't'
	SpaceSeq   = 's'
	SpaceCall  = 'c'
	SpaceStamp = 'p'
)

// View writes a view.
func (c *Canon) View(v coord.View, now coord.Micros) {
	c.Num(uint64(v.Epoch))
	c.Text(string(v.Mode))
	c.Text(v.DB.System)
	c.Redis(v.Redis)
	c.Micros(v.Until, now)
	c.Micros(v.RedisUntil, now)
}

// Redis writes an identity.
func (c *Canon) Redis(r coord.RedisIdent) {
	c.Text(r.RunID)
	c.Text(r.ReplID)
	c.Rank(SpaceStamp, coord.Member{}, r.Stamp)
}

// Authority writes the row.
func (c *Canon) Authority(a coord.Authority, now coord.Micros) {
	c.Num(uint64(a.Epoch))
	c.Text(string(a.Mode) + string(a.Target))
	c.Text(a.DB.System)
	c.Redis(a.Redis)
	c.Micros(a.HoldUntil, now)
	c.Num(uint64(a.Falls))
	c.Micros(a.FellAt, now)
}

// Write writes what decides the machine's future in a world without gates whose clocks never step and run alike: the
// authority's shows clock now. Sessions must be Eager and without R16Share, with Rare 1.
func (s *Session) Write(c *Canon, now Now, clock coord.Micros) {
	c.Bool(s.over != nil)
	if s.over != nil {
		return
	}
	at := func(t time.Duration) { c.Since(t - now.Mono) }
	rank := func(space byte, v uint64) { c.Rank(space, s.id, v) }
	rank(SpaceCall, s.lastID)
	rank(SpaceCall, s.beatID)
	rank(SpaceCall, s.probeID)
	rank(SpaceCall, s.reconID)
	rank(SpaceSeq, s.seq)
	rank(SpaceSeq, s.goodSeq)
	at(s.nextBeat)
	at(s.lastGood)
	c.Text(s.lastDB.System)
	for _, id := range sortedKeys(s.out) {
		rank(SpaceCall, id)
		switch k := s.out[id].(type) {
		case beatOut:
			at(k.start.Mono)
			c.Num(uint64(k.ack))
		case coord.View:
			c.Num(uint64(k.Epoch))
		case carriedOut:
			c.Num(uint64(k.epoch))
		case seedOut:
			c.Num(uint64(k.epoch))
		case openOut:
			c.Text(string(k.mode))
		case drainOut:
			c.Bool(k.lost)
		}
	}
	c.Bool(s.goodBeats > 0)
	c.View(s.view, clock)
	at(s.viewFrom.Mono)
	c.Bool(s.viewUntil == 0)
	at(s.viewUntil)
	c.Num(uint64(s.seen))
	c.Num(uint64(s.acked))
	c.Authority(s.auth, clock)
	c.Bool(s.lostRows)
	if s.lostRows {
		c.Num(uint64(s.lostIn))
		c.Bool(s.lostTold)
	}
	if r := &s.redis; s.cfg.Redis {
		c.Redis(r.ident)
		c.Bool(r.usable)
		at(r.since)
		c.Micros(r.now, clock)
		at(r.from)
		c.Bool(r.fresh)
		c.Bool(r.beside)
		c.Bool(r.changed)
		c.Num(uint64(r.doubt))
	}
	s.writeSlots(c, now)
	c.Bool(s.dirty)
	if s.dirty {
		at(s.dirtyTill)
	}
	for _, m := range slices.SortedFunc(maps.Keys(s.others), memberOrder) {
		o := s.others[m]
		c.Member(m)
		c.Rank(SpaceSeq, m, o.seq)
		c.Since(o.silence)
	}
	at(s.obsEnd)
	t := &s.ctl
	c.Bool(t.busy)
	c.Bool(t.hasTry)
	if t.hasTry {
		at(t.tried)
	}
	if s.auth.Mode == coord.ModeDrain {
		c.Bool(t.barrier == s.auth.Epoch)
		if t.barrier == s.auth.Epoch {
			at(t.passed)
		}
	}
}

func memberOrder(a, b coord.Member) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Incarnation, b.Incarnation))
}

func (s *Session) writeSlots(c *Canon, now Now) {
	c.Rank(SpaceToken, s.id, uint64(s.counter))
	c.Num(uint64(len(s.held)))
	for _, t := range s.heldTokens() {
		c.Rank(SpaceToken, s.id, uint64(t.id))
		c.Text(string(t.key))
		c.Num(uint64(t.n)<<8 | uint64(t.cap))
		c.Num(uint64(t.state))
		c.Bool(t.void)
		if t.state == tokenIdle || t.state == tokenCooling {
			c.Since(t.since - now.Mono)
		}
	}
	for _, id := range sortedKeys(s.asked) {
		q := s.asked[id]
		c.Rank(SpaceCall, s.id, id)
		c.Bool(q.done)
		c.Num(uint64(q.view.Epoch))
		c.Text(string(q.view.Mode))
		c.Num(uint64(len(q.got)))
	}
	for _, key := range sortedKeys(s.keys) {
		k := s.keys[key]
		c.Text(string(key))
		c.Num(uint64(k.have)<<16 | uint64(k.declare)<<8 | uint64(k.cap))
		c.Since(max(k.retryAt-now.Mono, 0))
		c.Since(k.backoff)
		c.Bool(k.yielded)
	}
	if s.reconID != 0 {
		for _, id := range sortedKeys(s.reconFor) {
			c.Rank(SpaceToken, s.id, uint64(id))
		}
	}
}
