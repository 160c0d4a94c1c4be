package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"deepcrawl/coord"
)

type tokenState uint8

const (
	tokenIdle     tokenState = iota // in the pool
	tokenOut                        // with a permit
	tokenReserved                   // of a permit whose other tokens are being asked for
	tokenCooling                    // its request was cut off a moment ago
)

// token is a slot this session has.
type token struct {
	id    coord.Token
	key   coord.Key
	n     int
	cap   int // applied at the grant
	state tokenState
	void  bool          // the authority does not know it
	since time.Duration // idle since; cooling until
}

// keyState is what the session knows of a key.
type keyState struct {
	idle    []*token // the longest idle first
	have    int      // tokens in any state
	declare int      // the engine's last declaration
	cap     int      // today's, 0 unknown
	retryAt time.Duration
	backoff time.Duration
	share   int
	pressed time.Duration // share holds until then
	yielded bool          // the engine has no work for it
}

// limit is today's cap as far as this session knows.
func (k *keyState) limit() int {
	if k.cap > 0 && k.cap < k.declare {
		return k.cap
	}
	return k.declare
}

// Permit is the right to have one request in flight.
type Permit struct {
	tokens []*token
	two    [2]*token // backs tokens, mostly
	ended  bool
	rated  bool
	rateAt time.Duration
}

// Tokens are the permit's, for checkers.
func (p *Permit) Tokens() []coord.Token {
	out := make([]coord.Token, len(p.tokens))
	for i, t := range p.tokens {
		out[i] = t.id
	}
	return out
}

// ask is a Grant that is out.
type ask struct {
	view   coord.View
	keys   []coord.CappedKey
	groups []askGroup
	got    []*Permit
	done   bool
}

type askGroup struct {
	kept  []*token // reserved
	asked []coord.AskKey
}

const (
	minRetry = 100 * time.Millisecond
	// MaxRetry is the longest time between two asks for a key that was full.
	MaxRetry = 2 * time.Second
	// askEvery is the mean time between two asks of all sessions for a full key: each of n that wait asks every n x askEvery.
	askEvery = 250 * time.Millisecond
)

// Acquire gives up to need.N permits from the pool. Where that is too little and the authority may be asked, ask is the ID of
// the call that does; Asked has its permits once it was answered. The need must have been checked.
func (s *Session) Acquire(now Now, need coord.Need, got []*Permit) (permits []*Permit, ask uint64) {
	if s.mayWork(now) != nil {
		return got, 0
	}
	var keys [4]*keyState
	ks := keys[:0]
	mayAsk := s.mayAsk(now)
	for _, ck := range need.Keys {
		if _, _, closed := s.Gate(now, ck.Key); closed {
			return got, 0
		}
		k := s.keys[ck.Key]
		if k == nil {
			k = &keyState{}
			s.keys[ck.Key] = k
		}
		if ck.Cap != k.declare {
			s.declare(now, k, ck.Cap)
		}
		k.yielded = false
		ks = append(ks, k)
	}
	for range need.N {
		if !ready(ks) {
			break
		}
		p := &Permit{}
		p.tokens = p.two[:0]
		for _, k := range ks {
			t := k.pop()
			t.state = tokenOut
			p.tokens = append(p.tokens, t)
		}
		s.permits++
		got = append(got, p)
	}
	missing := need.N - len(got)
	if missing > 0 && mayAsk {
		return got, s.sendAsk(now, need, ks, missing)
	}
	if missing > 0 && s.view.Mode == coord.ModeRedis && !s.cfg.Redis && !s.unserved {
		s.unserved = true
		s.beatSoon(now)
	}
	return got, 0
}

// ready reports that each key has an idle token. Keys are distinct.
func ready(ks []*keyState) bool {
	for _, k := range ks {
		if len(k.idle) == 0 {
			return false
		}
	}
	return true
}

func (k *keyState) pop() *token {
	t := k.idle[len(k.idle)-1]
	k.idle = k.idle[:len(k.idle)-1]
	return t
}

// declare notes a new cap: tokens granted under a higher one go back (rule 16).
func (s *Session) declare(now Now, k *keyState, limit int) {
	k.declare = limit
	s.trim(now, k)
}

// trim gives back idle tokens that were granted under a higher cap than today's, and surplus others wait for.
func (s *Session) trim(now Now, k *keyState) {
	for i := 0; i < len(k.idle); {
		t := k.idle[i]
		if !s.surplus(now, k, t) {
			i++
			continue
		}
		k.idle = slices.Delete(k.idle, i, i+1)
		s.drop(t)
	}
}

// surplus reports that a token whose request has ended must go back.
func (s *Session) surplus(now Now, k *keyState, t *token) bool {
	switch {
	case t.void:
		return true
	case t.cap > k.limit() && s.cfg.Off.on(R16Cap):
		return true
	case now.Mono < k.pressed && k.have > k.share && s.cfg.Off.on(R16Share):
		return true
	}
	return false
}

// drop returns a token to the authority.
func (s *Session) drop(t *token) {
	delete(s.held, t.id)
	s.keys[t.key].have--
	s.returning = append(s.returning, t.id)
}

// mayAsk reports whether the authority may be asked for slots now.
func (s *Session) mayAsk(now Now) bool {
	off := s.cfg.Off
	if off.on(R7Silence) && (s.acked != s.view.Epoch || s.view.Epoch != s.seen) {
		return false
	}
	switch s.view.Mode {
	case coord.ModeDB:
		return true
	case coord.ModeRedis:
		return s.view.RedisUntil > 0
	}
	return !off.on(R8NoGrant)
}

func (s *Session) sendAsk(now Now, need coord.Need, ks []*keyState, missing int) uint64 {
	for _, k := range ks {
		if len(k.idle) > 0 {
			continue
		}
		if now.Mono < k.retryAt {
			return 0
		}
		if now.Mono < k.pressed && s.cfg.Off.on(R16Share) {
			missing = min(missing, k.share-k.have)
		}
	}
	// No more than the keys can have, so that a wish for a hundred is not a hundred rows.
	for _, k := range ks {
		missing = min(missing, k.limit()-k.have+len(k.idle))
	}
	if missing <= 0 {
		s.retry(now, ks)
		return 0
	}
	q := &ask{view: s.view, keys: need.Keys}
	req := coord.Ask{Member: s.id, View: s.view}
	for range missing {
		var g askGroup
		for i, k := range ks {
			if len(k.idle) > 0 {
				t := k.pop()
				t.state = tokenReserved
				g.kept = append(g.kept, t)
				continue
			}
			s.counter++
			g.asked = append(g.asked, coord.AskKey{Key: need.Keys[i].Key, Cap: need.Keys[i].Cap, Token: s.counter})
		}
		q.groups = append(q.groups, g)
		req.Groups = append(req.Groups, g.asked)
	}
	id := s.call(req)
	s.asked[id] = q
	return id
}

// retry puts off the next ask for keys that gave nothing.
func (s *Session) retry(now Now, ks []*keyState) {
	for _, k := range ks {
		if len(k.idle) == 0 {
			s.backoff(now, k)
		}
	}
}

func (s *Session) backoff(now Now, k *keyState) {
	s.backoffFor(now, k, max(2*k.backoff, minRetry))
}

func (s *Session) backoffFor(now Now, k *keyState, d time.Duration) {
	k.backoff = min(d, s.cfg.Retry)
	k.retryAt = now.Mono + max(s.jitter(k.backoff), minRetry)
	s.arm(k.retryAt)
}

// askAnswer takes the answer of a Grant. Its permits wait for Asked.
func (s *Session) askAnswer(now Now, q *ask, a Answer) {
	q.done = true
	reply, ok := a.Reply.(coord.Granted)
	accepted := a.Err == nil && ok
	if accepted && s.cfg.Off.on(R6Drop) {
		accepted = reply.Epoch == q.view.Epoch && q.view.Epoch == s.view.Epoch && q.view.Mode == s.view.Mode
	}
	if accepted && s.cfg.Off.on(R7Silence) {
		accepted = q.view.Epoch == s.seen || !s.cfg.Off.on(R6Drop)
	}
	if !accepted {
		s.refuse(now, q, a)
		return
	}
	for key, limit := range reply.Caps {
		if k := s.keys[key]; k != nil && k.cap != limit {
			k.cap = limit
			s.trim(now, k)
		}
	}
	for i, g := range q.groups {
		var r coord.GroupGrant
		if i < len(reply.Groups) {
			r = reply.Groups[i]
		}
		if len(r.N) != len(g.asked) {
			s.unreserve(now, g)
			if k := s.keys[r.Full]; k != nil {
				s.backoffFor(now, k, time.Duration(r.Waiting)*askEvery)
			}
			continue
		}
		p := &Permit{}
		p.tokens = p.two[:0]
		for _, t := range g.kept {
			t.state = tokenOut
			p.tokens = append(p.tokens, t)
		}
		for j, ak := range g.asked {
			k := s.keys[ak.Key]
			t := &token{id: ak.Token, key: ak.Key, n: r.N[j], cap: ak.Cap, state: tokenOut}
			if limit := reply.Caps[ak.Key]; limit > 0 {
				t.cap = limit
			}
			s.held[t.id] = t
			k.have++
			k.backoff, k.retryAt = 0, 0
			p.tokens = append(p.tokens, t)
		}
		s.permits++
		q.got = append(q.got, p)
	}
}

// refuse ends an ask that gave nothing. What was asked for and may have been granted is never accepted later: reconcile frees
// it.
func (s *Session) refuse(now Now, q *ask, a Answer) {
	for _, g := range q.groups {
		s.unreserve(now, g)
		for _, ak := range g.asked {
			if k := s.keys[ak.Key]; k != nil && k.retryAt <= now.Mono {
				s.backoff(now, k)
			}
		}
	}
	if !errors.Is(a.Err, coord.ErrUnavailable) {
		s.setDirty(now)
	}
	if errors.Is(a.Err, coord.ErrStale) {
		if q.view.Mode == coord.ModeRedis && q.view.Epoch == s.view.Epoch && s.view.Mode == coord.ModeRedis && now.Mono < s.viewUntil {
			s.redis.doubt = q.view.Epoch
		}
		s.beatSoon(now)
	}
	if q.view.Mode == coord.ModeRedis && (errors.Is(a.Err, coord.ErrUnavailable) || errors.Is(a.Err, coord.ErrUnknown)) && s.redis.usable {
		s.beatSoon(now) // and probe
	}
	if errors.Is(a.Err, coord.ErrFenced) {
		s.fence(a.Err)
	}
}

func (s *Session) setDirty(now Now) {
	s.dirty = true
	s.dirtyTill = now.Mono + s.cfg.Timing.View
}

func (s *Session) unreserve(now Now, g askGroup) {
	for _, t := range g.kept {
		s.idle(now, t)
	}
}

// Asked gives the permits of an answered ask, once. done is false while it is out.
func (s *Session) Asked(id uint64, got []*Permit) (permits []*Permit, done bool) {
	q := s.asked[id]
	if q == nil {
		return got, true
	}
	if !q.done && s.over == nil {
		return got, false
	}
	delete(s.asked, id)
	return append(got, q.got...), true
}

// idle puts a token whose request has ended into the pool, or gives it back.
func (s *Session) idle(now Now, t *token) {
	if s.held[t.id] != t {
		return
	}
	k := s.keys[t.key]
	if s.surplus(now, k, t) {
		s.drop(t)
		s.woken = true
		return
	}
	t.state, t.since = tokenIdle, now.Mono
	k.idle = append(k.idle, t)
	s.arm(t.since + s.keep(k))
	s.woken = true
}

// keep is how long an idle token of the key is kept.
func (s *Session) keep(k *keyState) time.Duration {
	if k.yielded && len(s.others) > 0 {
		return min(coord.KeepYielded, s.cfg.Timing.KeepIdle)
	}
	return s.cfg.Timing.KeepIdle
}

// Yield notes that there is no work for a key until it is wished for again.
func (s *Session) Yield(key coord.Key) {
	if k := s.keys[key]; k != nil && !k.yielded {
		k.yielded = true
		if len(k.idle) > 0 {
			s.arm(k.idle[0].since + s.keep(k))
		}
	}
}

// MayStart is the start guard.
func (s *Session) MayStart(now Now, p *Permit) error {
	if err := s.mayWork(now); err != nil {
		if s.over != nil || s.cfg.Off.on(R3View) {
			return err
		}
	}
	if p.ended {
		return fmt.Errorf("permit was released: %w", coord.ErrVoid)
	}
	if p.rated && now.Mono-p.rateAt >= s.cfg.Timing.RateVoid && s.cfg.Off.on(RRateVoid) {
		return fmt.Errorf("rate grant is %v old: %w", now.Mono-p.rateAt, coord.ErrVoid)
	}
	for _, t := range p.tokens {
		if t.void {
			return fmt.Errorf("%s is not recorded any more: %w", t.key, coord.ErrVoid)
		}
		if len(s.gates) > 0 && s.cfg.Off.on(R3Gate) {
			if g := s.gates[t.key]; g != nil && now.Mono < g.until {
				return &Gated{Key: t.key, Left: g.until - now.Mono, Reason: g.reason}
			}
		}
	}
	return nil
}

// Gated is a closed gate; whoever knows the wall clock makes a coord.GateError of it.
type Gated struct {
	Key    coord.Key
	Left   time.Duration
	Reason string
}

// Error names key and reason.
func (g *Gated) Error() string {
	return fmt.Sprintf("%s is paused for %v: %s", g.Key, g.Left, g.Reason)
}

// Is makes it an ErrGated.
func (g *Gated) Is(target error) bool { return target == coord.ErrGated }

// Rated notes a rate grant whose call began at began.
func (s *Session) Rated(p *Permit, began time.Duration) { p.rated, p.rateAt = true, began }

// Release ends a permit whose request has ended.
func (s *Session) Release(now Now, p *Permit) {
	if p.ended {
		return
	}
	p.ended = true
	s.permits--
	for _, t := range p.tokens {
		s.idle(now, t)
	}
	s.flushReturns()
}

// Abort ends a permit whose request was cut off: its tokens are free a moment later.
func (s *Session) Abort(now Now, p *Permit) {
	if p.ended {
		return
	}
	if !s.cfg.Off.on(RAbortGrace) {
		s.Release(now, p)
		return
	}
	p.ended = true
	s.permits--
	for _, t := range p.tokens {
		t.state, t.since = tokenCooling, now.Mono+s.cfg.Timing.AbortGrace
		s.cooling = append(s.cooling, t)
		s.arm(t.since)
	}
}

// AcceptTaken decides whether a rate grant counts: one of another epoch is dropped.
func (s *Session) AcceptTaken(v coord.View, t coord.Taken) bool {
	return s.over == nil && (t.Epoch == s.view.Epoch && v.Epoch == s.view.Epoch || !s.cfg.Off.on(R6Drop))
}
