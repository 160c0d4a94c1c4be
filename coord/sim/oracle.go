package sim

import (
	"fmt"
	"slices"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// oracle is what a web server, and somebody who sees everything, know.
type oracle struct {
	w       *World
	quiet   bool
	mayLose bool // a failover may lose commits: keep history

	open      map[coord.Key][]*request
	capsAt    map[coord.Key][]capChange
	epochBy   map[coord.Epoch]string
	lastAuth  coord.Authority
	gates     []*oracleGate
	rateAt    []time.Duration // grants
	rateStart []time.Duration
	fence     coord.Fence
	fenceOf   map[leaseID]coord.Fence

	lastPause map[coord.Key]time.Duration // when somebody was asked to wait last
	clearedAt map[coord.Key]time.Duration

	leaseTokens int
	lossAt      time.Duration
	acked       map[coord.Member]coord.Epoch // however much the database forgot
	dead        map[coord.Member]struct{}    // so too
}

type leaseID struct {
	m coord.Member
	t coord.Token
}

type capChange struct {
	at  time.Duration
	cap int
}

// oracleGate is a pause somebody was asked for.
type oracleGate struct {
	key     coord.Key
	until   time.Duration // true time
	known   map[coord.Member]struct{}
	stored  bool // the database has it
	written time.Duration
	since   time.Duration
}

func newOracle(w *World) oracle {
	o := oracle{
		w: w, open: map[coord.Key][]*request{}, capsAt: map[coord.Key][]capChange{}, epochBy: map[coord.Epoch]string{},
		fenceOf: map[leaseID]coord.Fence{}, acked: map[coord.Member]coord.Epoch{}, dead: map[coord.Member]struct{}{},
		lastPause: map[coord.Key]time.Duration{}, clearedAt: map[coord.Key]time.Duration{},
	}
	for _, k := range w.keys {
		o.capsAt[k.key] = []capChange{{cap: k.cap}}
	}
	return o
}

// capNow is the greatest cap that any session may still go by.
func (o *oracle) capNow(key coord.Key) int {
	c := o.capsAt[key]
	most := c[len(c)-1].cap
	t := o.w.timing
	for i := len(c) - 1; i > 0; i-- {
		// Before this change the cap was the one before; its tokens end with their requests, after somebody has asked under the new.
		if o.w.now-c[i].at > 2*t.Request+2*t.View {
			break
		}
		most = max(most, c[i-1].cap)
	}
	return most
}

func (o *oracle) started(r *request) {
	w := o.w
	if r.p.m != nil && r.p.m.ID() == r.member {
		if d := r.p.frozenFor(r.guarded); d > w.timing.Pause {
			r.excused = true
		}
	}
	if r.excused {
		w.stats.Excused++
	}
	for i, k := range r.keys {
		o.open[k] = append(o.open[k], r)
		live := 0
		for _, x := range o.open[k] {
			if !x.excused {
				live++
			}
		}
		if most := o.capNow(k); live > most {
			w.violate("cap", "%d requests in flight on %s, cap %d (this one by %s, token %d): %s", live, k, most, r.member, r.tokens[i], o.describe(k))
		}
	}
	if !r.excused {
		o.checkStart(r)
	}
}

func (o *oracle) describe(k coord.Key) string {
	s := ""
	for _, x := range o.open[k] {
		s += fmt.Sprintf(" %s%v", x.member, x.tokens)
		if x.excused {
			s += "(excused)"
		}
	}
	return s
}

// checkStart checks a start against gates (I7), the rate (I8) and its token (I5).
func (o *oracle) checkStart(r *request) {
	w := o.w
	for _, g := range o.gates {
		if !slices.Contains(r.keys, g.key) {
			continue
		}
		// A clock that is 5 % fast ends a pause that much early; what passed the guard a moment before is on its way.
		left := g.until - w.now
		if _, known := g.known[r.member]; known && left > 0 && w.now-g.written > 2*time.Millisecond && left > (g.until-g.since)/10 {
			w.violate("I7", "%s starts on %s, paused for another %v", r.member, g.key, left)
		}
	}
	if row, ok := w.db.db.Sessions[r.member]; ok && row.State == coord.Dead {
		w.violate("I6", "%s starts something although it is dead", r.member)
	}
	if r.keys[0] == w.rates[0] {
		o.rateStart = o.rate("starts", o.rateStart, w.timing.RateVoid*106/100)
	}
	o.covered(r, "at its start")
}

// rate checks a point process against the bound, with a slack in time.
func (o *oracle) rate(what string, at []time.Duration, slack time.Duration) []time.Duration {
	w := o.w
	at = append(at, w.now)
	if len(at) > 200 {
		at = at[1:]
	}
	for i := range at {
		n := len(at) - i
		window := (w.now-at[i])*112/100 + slack
		if allowed := float64(w.limit.Burst) + w.limit.PerSecond*window.Seconds() + 1e-6; float64(n) > allowed {
			w.violate("I8", "%d %s in %v, burst %d, %v a second", n, what, w.now-at[i], w.limit.Burst, w.limit.PerSecond)
		}
	}
	return at
}

// covered checks I5: the tokens of a request in flight are recorded where a grant would count them.
func (o *oracle) covered(r *request, when string) {
	w := o.w
	if r.orphan || r.excused || r.p.m == nil || r.p.m.ID() != r.member || r.p.m.Over() != nil {
		return
	}
	a := w.db.db.Auth
	row, ok := w.db.db.Sessions[r.member]
	if !ok || row.State != coord.Live || row.Acked != a.Epoch || a.DB != w.db.db.Server || w.now-o.lossAt < w.timing.Death*2 {
		return
	}
	recorded := w.recorded()
	if recorded == nil && a.Mode == coord.ModeRedis {
		found := false
		for _, s := range w.redis {
			found = found || s.r.Server == a.Redis && s.r.Epochs[a.Epoch] != nil
		}
		if !found {
			return // that Redis is gone, nobody grants
		}
	}
	for _, t := range r.tokens {
		if !slices.ContainsFunc(recorded, func(s coord.Slot) bool { return s.Member == r.member && s.Token == t }) {
			w.violate("I5", "%s: a request of %s is in flight, its token %d is not recorded in %s %d", when, r.member, t, a.Mode, a.Epoch)
		}
	}
}

func (o *oracle) ended(r *request) {
	r.open = false
	for _, k := range r.keys {
		o.open[k] = slices.DeleteFunc(o.open[k], func(x *request) bool { return x == r })
	}
}

// orphan is a request whose session is over while it is in flight.
func (o *oracle) orphan(r *request) { r.orphan = true }

// check is what is looked at after every event.
func (w *World) check() {
	o := &w.oracle
	if w.v != nil {
		return
	}
	for key, rows := range w.db.db.Slots {
		if w.db.db.Auth.Mode == coord.ModeDrain || w.db.db.Auth.DB != w.db.db.Server {
			break // what was released while the acks come in may still be recorded; nobody grants
		}
		if c := o.capsAt[key]; c != nil {
			if most := mostCap(c); len(rows) > most {
				w.violate("I4", "%d slots recorded for %s, cap %d", len(rows), key, most)
			}
		}
	}
	for _, p := range w.procs {
		if !p.running || p.m == nil || p.m.Over() != nil || p.frozenUntil > w.now {
			continue
		}
		if v, err := p.m.View(p.clock()); err == nil {
			if v.Epoch < p.lastView {
				w.violate("I1", "%s had a view of epoch %d and has one of %d", p.name(), p.lastView, v.Epoch)
			}
			p.lastView = v.Epoch
		}
	}
	if w.stats.Events%16 == 0 {
		for _, rs := range o.open {
			for _, r := range rs {
				o.covered(r, "in flight")
			}
		}
	}
	holders := 0
	for _, p := range w.procs {
		if p.alive() && p.frozenUntil <= w.now && p.lease != nil && p.lease.trust.Holds(w.cfg.Off, p.clock()) {
			holders++
		}
	}
	if holders > 1 {
		w.violate("lease", "%d sessions trust the lease", holders)
	}
}

func mostCap(c []capChange) int {
	most := 0
	for _, x := range c {
		most = max(most, x.cap)
	}
	return most
}

// granted checks I1 to I4 at a grant. before are the slots of the authority that granted it.
func (o *oracle) granted(a coord.Ask, v coord.Granted, by string, before, after []coord.Slot) {
	w := o.w
	count := func(slots []coord.Slot, k coord.Key) (n int) {
		for _, s := range slots {
			if s.Key == k {
				n++
			}
		}
		return n
	}
	for k, limit := range v.Caps {
		if n := count(after, k); n > count(before, k) && n > limit {
			w.violate("I4", "%d slots recorded for %s after a grant, cap %d", n, k, limit)
		}
	}
	for i, g := range v.Groups {
		for _, k := range a.Groups[i] {
			if len(g.N) == 0 && slices.ContainsFunc(after, func(s coord.Slot) bool { return s.Member == a.Member && s.Token == k.Token }) &&
				!slices.ContainsFunc(before, func(s coord.Slot) bool { return s.Member == a.Member && s.Token == k.Token }) {
				w.violate("I4", "a refused request of %s has a slot of %s", a.Member, k.Key)
			}
		}
	}
	any := false
	for _, g := range v.Groups {
		if len(g.N) > 0 {
			w.stats.Grants++
			any = true
		}
	}
	if !any {
		return
	}
	if was, ok := o.epochBy[v.Epoch]; ok && was != by {
		w.violate("I1", "epoch %d was granted by %s and is by %s", v.Epoch, was, by)
		return
	} else if ok {
		return
	}
	o.epochBy[v.Epoch] = by
	for _, p := range w.procs {
		if !p.running || p.m == nil || p.m.Over() != nil {
			continue
		}
		row, ok := w.db.db.Sessions[p.m.ID()]
		if _, dead := o.dead[p.m.ID()]; dead {
			continue
		}
		if acked := max(row.Acked, o.acked[p.m.ID()]); ok && row.State == coord.Live && acked < v.Epoch && w.db.db.Auth.Epoch == v.Epoch {
			w.violate("I3", "first grant of epoch %d, %s has acked %d", v.Epoch, p.name(), acked)
		}
	}
}

// beat notes what a session has learnt, and what its ack wrote.
func (o *oracle) beat(b coord.Beat, v coord.BeatReply, acked bool, before map[coord.Key]core.GateRow) {
	for _, w := range b.Gates {
		o.wrote(w, before[w.Key])
	}
	if acked {
		for _, g := range o.gates {
			if _, known := g.known[b.Member]; known && o.toldBy(b, g) {
				g.stored = true
			}
		}
	}
	w := o.w
	o.acked[b.Member] = max(o.acked[b.Member], v.Acked)
	for _, g := range o.gates {
		if !g.stored {
			continue
		}
		// It knows when the answer arrives and was taken, at most a beat and a second later.
		m := b.Member
		w.after(w.timing.Beat+time.Second, func() {
			for _, p := range w.procs {
				if p.alive() && p.m.ID() == m && p.m.Beats() >= b.Seq {
					g.known[m] = struct{}{}
				}
			}
		})
	}
	o.gates = slices.DeleteFunc(o.gates, func(g *oracleGate) bool { return w.now > g.until })
	o.lastAuth = v.Authority
}

// toldBy reports that an ack must have the gate: its session knew it a while before it wrote the ack.
func (o *oracle) toldBy(b coord.Beat, g *oracleGate) bool {
	for _, p := range o.w.procs {
		if p.running && p.m != nil && p.m.ID() == b.Member && p.beatSeq == b.Seq {
			return p.beatSent-g.written > time.Second
		}
	}
	return false
}

func (o *oracle) paused(p *proc, key coord.Key, d time.Duration) {
	g := &oracleGate{key: key, until: o.w.now + d, written: o.w.now, known: map[coord.Member]struct{}{p.m.ID(): {}}}
	// An earlier pause may stand for this one, as long in its clock; its error is that of its own length.
	g.since = g.written
	for _, have := range o.gates {
		if have.key == key {
			g.since = min(g.since, have.since)
		}
	}
	o.gates = append(o.gates, g)
	o.lastPause[key] = o.w.now
}

// wrote notes that the database executed a pause of key, whose gate was before.
func (o *oracle) wrote(p coord.GateWrite, before core.GateRow) {
	w, key := o.w, p.Key
	row := w.db.db.Gates[key]
	// Set is a bound on the database's clock; it errs by a twentieth of the time since a beat, and both clocks do.
	margin := w.timing.Death/8 + time.Second
	if before.At == 0 && row.At > 0 && p.Gen == 0 && p.Set > 0 && before.Gen > 1 && o.lastPause[key]+margin < o.clearedAt[key] {
		w.violate("clear", "%s was cleared at %v and is closed by a pause set at %v", key, o.clearedAt[key], o.lastPause[key])
	}
	for _, g := range o.gates {
		if g.key == key {
			if time.Duration(row.At-o.w.db.now())*time.Microsecond >= (g.until-o.w.now)*9/10 {
				g.stored = true
			}
		}
	}
}

// cleared voids what was known before.
func (o *oracle) cleared(key coord.Key) {
	o.clearedAt[key] = o.w.now
	o.gates = slices.DeleteFunc(o.gates, func(g *oracleGate) bool { return g.key == key })
}

// buried checks that the requests of a session that was found dead have ended.
func (o *oracle) buried(b coord.Burial) {
	o.dead[b.Member] = struct{}{}
	if b.Proof {
		return
	}
	for _, p := range o.w.procs {
		// What reached the database all along is not dead: an outage kills nobody.
		if p.alive() && p.m.ID() == b.Member && o.w.now-p.troubled > o.w.timing.Death && o.w.slow == 0 && o.w.now-o.lossAt > o.w.timing.Death {
			o.w.violate("death", "%s is buried, and was never kept from beating", b.Member)
		}
	}
	for _, rs := range o.open {
		for _, r := range rs {
			if r.member == b.Member && !r.excused {
				o.w.violate("I5", "%s is buried while a request of it is in flight", b.Member)
			}
		}
	}
}

func (o *oracle) rated(key coord.Key) {
	if key == o.w.rates[0] {
		o.rateAt = o.rate("rate grants", o.rateAt, core.TakeLate+o.w.timing.View/10+core.MaxStep)
	}
}

// held checks that fences grow.
func (o *oracle) held(h coord.Hold, v coord.Held) {
	id := leaseID{h.Member, h.Token}
	if f, ok := o.fenceOf[id]; ok && f == v.Fence {
		return // renewed
	}
	if !o.fence.Less(v.Fence) {
		o.w.violate("lease", "fence %v follows %v", v.Fence, o.fence)
	}
	o.fence, o.fenceOf[id] = v.Fence, v.Fence
}

// dbLost notes that commits were lost: what only they held is not stored any more.
func (o *oracle) dbLost() {
	o.lossAt = o.w.now
	for _, g := range o.gates {
		g.stored = false
	}
}

func (o *oracle) authority(was, is coord.Authority) {
	w := o.w
	if is.Mode != was.Mode {
		w.stats.Switches++
	}
	w.trace("authority %s %d -> %s %d (%s)", was.Mode, was.Epoch, is.Mode, is.Epoch, is.Reason)
}

// frozenFor is how long the process was stopped since then.
func (p *proc) frozenFor(since time.Duration) time.Duration {
	if p.w.now-since > p.w.timing.Pause && p.frozenUntil >= since {
		return p.w.now - since
	}
	return 0
}
