package core

import (
	"fmt"
	"slices"
	"time"

	"deepcrawl/coord"
)

// Now is a moment in the life of one process: both readings since any fixed origin.
type Now struct {
	Mono time.Duration // monotonic: runs while the process is stopped, perhaps not while the machine is suspended
	Wall time.Duration // the wall clock
}

// Config is what a session runs under.
type Config struct {
	Timing coord.Timing
	Off    Off
	Redis  bool // one is configured
	// Jitter spreads a retry; nil leaves it as it is.
	Jitter func(time.Duration) time.Duration
	// Rare is how many beats lie between what is rarely needed: reconciling without cause, reaping; 0 is 5. Retry is the longest
	// time between two asks for a full key; 0 is MaxRetry. Checkers set them low, so that there are fewer states.
	Rare  uint64
	Retry time.Duration
	// Eager makes every session act on the authority at once, instead of the first live one before the others.
	Eager bool
}

// Call is work for whoever runs the machine: a request to the authority. Each is answered exactly once by Handle, with
// ErrUnknown when no answer came in its time.
type Call struct {
	ID  uint64
	Req any // one of the coord requests, or Probe, Carried, Seed, Reap
}

// Answer is what came of a call.
type Answer struct {
	ID    uint64
	Reply any
	Err   error
}

// Calls that are not requests of coord.Coord.
type (
	// Probe reads the clock and identity of Redis, and whether it may be used. Answered by coord.Probed. A beat waits for it unless
	// it is Beside one, which it is while Redis is not reached: such a probe may take its time.
	Probe struct{ Beside bool }
	// Carried reads the slots to seed. Answered by []coord.Slot.
	Carried struct{ Epoch coord.Epoch }
	// Seed seeds Redis. Answered by coord.Seeded.
	Seed struct {
		Epoch coord.Epoch
		Slots []coord.Slot
	}
	// Reap frees what ended sessions had in Redis.
	Reap struct {
		View   coord.View
		Live   []coord.Member
		Before coord.Incarnation
	}
)

// Session is the client machine. It is not safe for concurrent use; every method takes the time it happens at, which must
// not fall.
type Session struct {
	cfg  Config
	id   coord.Member
	over error // ErrFenced or ErrLeft: the session has ended

	calls  []Call
	lastID uint64
	out    map[uint64]any // what is kept of a call until its answer, for those that need more than the answer
	woken  bool
	due    time.Duration

	// beats
	seq        uint64
	goodSeq    uint64 // of the last beat known to have taken effect
	beatID     uint64 // 0: none is out
	probeID    uint64
	nextBeat   time.Duration
	lastGood   time.Duration // start of the last good beat
	lastWall   time.Duration // then
	lastNow    coord.Micros  // the database's clock in it
	lastDB     coord.Ident
	facts      func() map[string]string
	goodBeats  uint64
	gatesSince coord.Micros

	// view
	view      coord.View
	viewFrom  Now           // start of its beat
	viewUntil time.Duration // 0: none
	seen      coord.Epoch   // highest read
	acked     coord.Epoch
	auth      coord.Authority
	lostRows  bool        // the authority has forgotten what it had confirmed
	lostIn    coord.Epoch // when that was noticed
	lostTold  bool        // this session's drain for it was executed

	// redis
	redis redisState

	// slots
	counter   coord.Token
	held      map[coord.Token]*token
	asked     map[uint64]*ask
	keys      map[coord.Key]*keyState
	returning []coord.Token
	cooling   []*token
	permits   int  // out
	unserved  bool // slots were wished for in an epoch of Redis, and none is configured here
	reconID   uint64
	reconFor  map[coord.Token]struct{}
	dirtyTill time.Duration // calls without an answer may still take effect until then
	dirty     bool

	gates   map[coord.Key]*gate
	pending map[coord.Key]*pause

	others map[coord.Member]*observed
	obsEnd time.Duration
	ctl    controller
}

// NewSession starts the machine of a session that was just registered. facts may be nil.
func NewSession(cfg Config, r coord.Registered, facts func() map[string]string, now Now) *Session {
	if cfg.Rare == 0 {
		cfg.Rare = 5
	}
	if cfg.Retry == 0 {
		cfg.Retry = MaxRetry
	}
	s := &Session{
		cfg: cfg, id: r.Member, out: map[uint64]any{}, nextBeat: now.Mono, lastGood: now.Mono, lastWall: now.Wall, facts: facts,
		seen: r.Authority.Epoch, acked: r.Authority.Epoch, auth: r.Authority,
		held: map[coord.Token]*token{}, asked: map[uint64]*ask{}, keys: map[coord.Key]*keyState{},
		gates: map[coord.Key]*gate{}, pending: map[coord.Key]*pause{}, others: map[coord.Member]*observed{}, obsEnd: now.Mono,
	}
	s.redis.since = now.Mono
	return s
}

// ID is the session's name.
func (s *Session) ID() coord.Member { return s.id }

// Over is nil while the session lives, then ErrFenced or ErrLeft with the reason.
func (s *Session) Over() error { return s.over }

// Calls returns what is to be done and forgets it.
func (s *Session) Calls() []Call {
	c := s.calls
	s.calls = nil
	return c
}

// Woken reports, once, that an Acquire that gave too little might give more.
func (s *Session) Woken() bool {
	w := s.woken
	s.woken = false
	return w
}

// View is the view, for requests that the machine does not make itself, or why there is none.
func (s *Session) View(now Now) (coord.View, error) {
	if err := s.mayWork(now); err != nil {
		return coord.View{}, err
	}
	return s.view, nil
}

// Authority is what was read last, for people.
func (s *Session) Authority() coord.Authority { return s.auth }

// Permits is how many are out.
func (s *Session) Permits() int { return s.permits + len(s.cooling) }

// Slots is how many are held, idle ones included.
func (s *Session) Slots() int { return len(s.held) }

// Due is a time before which Tick has nothing to do. Unlike Next it costs nothing; it is exact after Next.
func (s *Session) Due() time.Duration { return s.due }

// arm notes a deadline.
func (s *Session) arm(t time.Duration) { s.due = min(s.due, t) }

func (s *Session) call(req any) uint64 {
	s.lastID++
	s.calls = append(s.calls, Call{ID: s.lastID, Req: req})
	return s.lastID
}

// mayWork is the part of the guard that does not depend on a permit.
func (s *Session) mayWork(now Now) error {
	if s.over != nil {
		return s.over
	}
	off := s.cfg.Off
	if s.viewUntil == 0 {
		return fmt.Errorf("no beat has succeeded: %w", coord.ErrNoView)
	}
	if now.Mono >= s.viewUntil && off.on(R2ViewEnds) && off.on(R3View) {
		return fmt.Errorf("last good beat %v ago: %w", now.Mono-s.lastGood, coord.ErrNoView)
	}
	if off.on(R3Wall) {
		if ahead := (now.Wall - s.viewFrom.Wall) - (now.Mono - s.viewFrom.Mono); ahead > MaxWallAhead {
			s.beatSoon(now)
			return fmt.Errorf("the wall clock ran %v ahead, the machine may have slept: %w", ahead, coord.ErrNoView)
		}
	}
	return nil
}

// MaxWallAhead is how far the wall clock may run ahead of the monotonic one within a view.
const MaxWallAhead = time.Second

// MayWork is the guard without a permit.
func (s *Session) MayWork(now Now) error { return s.mayWork(now) }

// Fence ends the session: it starts and asks nothing any more (rule 14).
func (s *Session) fence(reason error) {
	if s.over != nil {
		return
	}
	if !s.cfg.Off.on(R14Fence) {
		return
	}
	s.over = fmt.Errorf("%w: %w", coord.ErrFenced, reason)
	s.end()
}

// Leave ends the session on request. The caller tells the authority, after the last request has ended.
func (s *Session) Leave() {
	if s.over == nil {
		s.over = coord.ErrLeft
		s.end()
	}
}

func (s *Session) end() {
	s.viewUntil, s.calls, s.woken = 0, nil, true
	s.returning = nil
}

// Next is when Tick is due at the latest.
func (s *Session) Next(now Now) time.Duration {
	if s.over != nil {
		return now.Mono + s.cfg.Timing.Death
	}
	next := s.lastGood + s.fenceAfter()
	at := func(t time.Duration) {
		if t < next {
			next = t
		}
	}
	if s.beatID == 0 && (s.probeID == 0 || s.redis.beside) {
		at(s.nextBeat)
	}
	for _, t := range s.cooling {
		at(t.since)
	}
	for _, k := range s.keys {
		if len(k.idle) > 0 {
			at(k.idle[0].since + s.keep(k))
		}
		if k.retryAt > 0 {
			at(k.retryAt)
		}
	}
	for _, g := range s.gates {
		at(g.until)
	}
	s.due = next
	return max(next, now.Mono)
}

func (s *Session) fenceAfter() time.Duration { return s.cfg.Timing.Death * 10 / 11 }

// Tick does what is due.
func (s *Session) Tick(now Now) {
	if s.over != nil {
		return
	}
	if now.Mono-s.lastGood >= s.fenceAfter() {
		s.fence(fmt.Errorf("no good beat for %v", now.Mono-s.lastGood))
		if s.over != nil {
			return
		}
	}
	for key, g := range s.gates {
		if now.Mono >= g.until {
			delete(s.gates, key)
			s.woken = true
		}
	}
	for key, p := range s.pending {
		if now.Mono >= p.until {
			delete(s.pending, key)
		}
	}
	s.tickSlots(now)
	if s.beatID == 0 && (s.probeID == 0 || s.redis.beside) && now.Mono >= s.nextBeat {
		s.startBeat(now)
	}
}

// Handle takes the answer of a call.
func (s *Session) Handle(now Now, a Answer) {
	if s.over != nil {
		return
	}
	switch {
	case a.ID == s.beatID && a.ID != 0:
		s.beatID = 0
		s.beatAnswer(now, a)
		return
	case a.ID == s.probeID && a.ID != 0:
		s.probeID = 0
		s.probeAnswer(now, a)
		return
	case a.ID == s.reconID && a.ID != 0:
		s.reconID = 0
		s.reconcileAnswer(now, a)
		return
	}
	if q := s.asked[a.ID]; q != nil {
		s.askAnswer(now, q, a)
		return
	}
	if kept, ok := s.out[a.ID]; ok {
		delete(s.out, a.ID)
		s.controlAnswer(now, kept, a)
	}
}

// heldTokens are all tokens, by number.
func (s *Session) heldTokens() []*token {
	all := make([]*token, 0, len(s.held))
	for _, t := range s.held {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *token) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
	return all
}

type gate struct {
	gen    uint64
	at     coord.Micros // as the authority has it
	until  time.Duration
	reason string
}

// pause is one the authority has not confirmed.
type pause struct {
	until  time.Duration
	reason string
	sent   uint64       // seq of the beat that carries it
	set    coord.Micros // the latest that the database's clock can have shown; 0 not known
	db     coord.Ident  // whose clock
	calls  int          // telling it directly
	told   time.Duration
}

// Gate reports for how long key is paused, from memory.
func (s *Session) Gate(now Now, key coord.Key) (left time.Duration, reason string, closed bool) {
	g := s.gates[key]
	if g == nil || now.Mono >= g.until {
		return 0, "", false
	}
	return g.until - now.Mono, g.reason, true
}

// Pause closes a gate here at once. The caller tells the authority what is returned, and says with Paused or Untold what came of
// it; beats tell it what it has not heard.
func (s *Session) Pause(now Now, key coord.Key, d time.Duration, reason string) coord.GateWrite {
	d = min(d, coord.MaxPause)
	until := now.Mono + d
	p := s.pending[key]
	if p == nil {
		p = &pause{}
		s.pending[key] = p
	}
	if p.until < until {
		p.until, p.reason, p.sent = until, reason, 0
	}
	p.set, p.db = 0, s.lastDB
	if s.goodBeats > 0 {
		since := max(now.Mono-s.lastGood, now.Wall-s.lastWall) // a suspended machine's monotonic clock stood still
		p.set = s.lastNow + micros(since+since/8)              // both clocks may be wrong by a twentieth
	}
	p.calls++
	p.told = now.Mono
	if s.cfg.Off.on(RGateLocal) {
		s.localGate(key, until, reason)
	}
	return coord.GateWrite{Key: key, For: d, Reason: reason, Set: p.set}
}

func (s *Session) localGate(key coord.Key, until time.Duration, reason string) {
	g := s.gates[key]
	if g == nil {
		g = &gate{}
		s.gates[key] = g
	}
	if until > g.until {
		g.until, g.reason = until, reason
	}
	s.arm(until)
}

// Paused takes the authority's answer to a pause that was told it directly.
func (s *Session) Paused(now Now, g coord.Gate) {
	if p := s.pending[g.Key]; p != nil {
		if p.calls--; p.until <= now.Mono+g.For {
			delete(s.pending, g.Key)
		}
	}
	s.heard(now, g)
}

// heard takes the gate that a pause of this session led to: where it is open, the pause was void.
func (s *Session) heard(now Now, g coord.Gate) {
	if g.For <= 0 && g.Gen > 1 {
		delete(s.pending, g.Key)
		delete(s.gates, g.Key)
		s.woken = true
	}
	s.adopt(now, g)
}

// Untold says that telling the authority of a pause failed, or may have.
func (s *Session) Untold(key coord.Key) {
	if p := s.pending[key]; p != nil {
		p.calls--
	}
}

// Cleared takes the authority's answer to a Clear.
func (s *Session) Cleared(now Now, g coord.Gate) {
	delete(s.pending, g.Key)
	s.adopt(now, g)
}

// adopt merges a gate as the authority has it. One that was written there before is known by At and does not creep.
func (s *Session) adopt(now Now, g coord.Gate) {
	until := now.Mono + g.For
	s.arm(until)
	have := s.gates[g.Key]
	switch {
	case have == nil:
		if g.For <= 0 {
			return
		}
		s.gates[g.Key] = &gate{gen: g.Gen, at: g.At, until: until, reason: g.Reason}
	case g.Gen > have.gen && have.gen > 0:
		*have = gate{gen: g.Gen, at: g.At, until: until, reason: g.Reason}
		s.woken = true
	case g.Gen >= have.gen && (g.At != have.at || have.gen == 0):
		have.gen, have.at = g.Gen, g.At
		if until > have.until {
			have.until, have.reason = until, g.Reason
		}
	}
	if p := s.pending[g.Key]; p != nil {
		s.localGate(g.Key, p.until, p.reason)
	}
}

// tellWithin is how long a pause that is being told directly is left out of beats: a beat that told it too could close the gate
// again after a Clear.
const tellWithin = 500 * time.Millisecond

// gateWrites are the pauses a beat tells, sorted; with all, every known gate.
func (s *Session) gateWrites(now Now, all bool) []coord.GateWrite {
	var out []coord.GateWrite
	for _, key := range sortedKeys(s.pending) {
		p := s.pending[key]
		if left := p.until - now.Mono; left > 0 && (p.calls <= 0 || now.Mono-p.told >= tellWithin) {
			p.sent = s.seq
			if p.db != s.lastDB {
				p.set = 0 // on another clock
			}
			out = append(out, coord.GateWrite{Key: key, For: left, Reason: p.reason, Set: p.set})
		}
	}
	if !all || !s.cfg.Off.on(RGateAck) {
		return out
	}
	for _, key := range sortedKeys(s.gates) {
		g := s.gates[key]
		if left := g.until - now.Mono; left > 0 && g.gen > 0 {
			out = append(out, coord.GateWrite{Key: key, For: left, Reason: g.reason, Gen: g.gen})
		}
	}
	return out
}
