// Package sim runs the decision code of coordination (package core, the very code the memory and SQL coordinators run) in a
// simulated world: one thread, virtual time, one random seed. Processes freeze, sleep, die and come back; messages are lost,
// late and executed after their sender has given up; databases restart and fail over losing commits; Redis is flushed,
// restarted, demoted, promoted again and has its clock stepped. At every event the invariants of the protocol are checked
// against what a web server would have seen, and at the end, with faults over, that grants resume.
//
// A seed replays exactly. Each safety rule can be turned off, to see which invariant it keeps.
package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// Config is one run.
type Config struct {
	Seed   uint64
	Off    core.Off
	Steps  int           // events before faults stop; 0 is DefaultSteps
	Faults []Fault       // nil: a random choice by the seed
	Trace  func(string)  // nil: none
	Redis  *bool         // nil: by the seed
	Length time.Duration // longest virtual time before faults stop; 0: no bound
}

// DefaultSteps is how long a run is.
const DefaultSteps = 12000

// Violation is a broken invariant.
type Violation struct {
	Invariant string // "I1" to "I8", "L1", "L2", "lease", "cap", "clear", "leak"
	Detail    string
	At        time.Duration
	Seed      uint64
}

// Error names the invariant, the time and the seed that replays it.
func (v *Violation) Error() string {
	return fmt.Sprintf("seed %d at %v: %s: %s", v.Seed, v.At, v.Invariant, v.Detail)
}

// Stats is what a run saw, so that a test can tell that something was tested.
type Stats struct {
	Events, Requests, Grants, Switches, Deaths, Fenced, Faults, Waits int
	Excused                                                           int // requests of processes frozen beyond the tolerated pause
	Virtual                                                           time.Duration
}

func (s *Stats) add(o Stats) {
	s.Events += o.Events
	s.Requests += o.Requests
	s.Grants += o.Grants
	s.Switches += o.Switches
	s.Deaths += o.Deaths
	s.Fenced += o.Fenced
	s.Faults += o.Faults
	s.Waits += o.Waits
	s.Excused += o.Excused
	s.Virtual += o.Virtual
}

// Add sums two.
func (s Stats) Add(o Stats) Stats {
	s.add(o)
	return s
}

// World is the simulated world.
type World struct {
	cfg    Config
	rng    *rand.Rand
	timing coord.Timing
	now    time.Duration
	queue  events
	order  uint64
	v      *Violation
	stats  Stats

	db     *dbServer
	redis  []*redisServer
	active int // the Redis that clients are told of
	procs  []*proc
	nodes  int

	keys      []keyInfo
	rates     []coord.Key
	limit     coord.RateLimit
	faultable bool          // faults go on
	calm      time.Duration // mean time between faults
	think     time.Duration // of a worker between two wishes
	stay      float64       // chance that it wishes the same
	pauses    float64       // chance that it pauses a key instead
	slow      time.Duration
	oracle    oracle
	withRedis bool
}

// keyInfo is a limited thing of this world.
type keyInfo struct {
	key coord.Key
	cap int
}

type event struct {
	at    time.Duration
	order uint64
	p     *proc // whose it is, nil for the world's
	life  int   // of p, so that a dead process's events are void
	fn    func()
}

type events []*event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].order < q[j].order
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(*event)) }
func (q *events) Pop() any {
	old := *q
	e := old[len(old)-1]
	*q = old[:len(old)-1]
	return e
}

func (w *World) after(d time.Duration, fn func()) { w.push(&event{at: w.now + d, fn: fn}) }

func (w *World) push(e *event) {
	w.order++
	e.order = w.order
	heap.Push(&w.queue, e)
}

// after runs fn in the process after d of true time; while it is frozen, when it wakes; never once it is dead.
func (p *proc) after(d time.Duration, fn func()) {
	p.w.push(&event{at: p.w.now + d, p: p, life: p.life, fn: fn})
}

// Run runs one seed to its end.
func Run(cfg Config) (Stats, *Violation) {
	w := newWorld(cfg)
	steps := cfg.Steps
	if steps == 0 {
		steps = DefaultSteps
	}
	w.faultable = true
	w.after(w.exp(10*time.Second), w.fault)
	for w.v == nil && w.stats.Events < steps && (cfg.Length == 0 || w.now < cfg.Length) {
		w.step()
	}
	if w.v == nil {
		w.settle()
	}
	w.stats.Virtual = w.now
	return w.stats, w.v
}

// step runs the next event and checks.
func (w *World) step() {
	if len(w.queue) == 0 {
		w.violate("L1", "nothing is left to happen")
		return
	}
	e := heap.Pop(&w.queue).(*event)
	w.now = max(w.now, e.at)
	w.stats.Events++
	if e.p != nil {
		if e.life != e.p.life {
			return
		}
		if e.p.frozenUntil > w.now {
			e.p.deferred = append(e.p.deferred, e)
			w.stats.Events--
			return
		}
	}
	e.fn()
	w.check()
}

func (w *World) violate(inv, format string, args ...any) {
	if w.v == nil {
		w.v = &Violation{Invariant: inv, Detail: fmt.Sprintf(format, args...), At: w.now, Seed: w.cfg.Seed}
		w.trace("VIOLATION %s %s", inv, w.v.Detail)
	}
}

func (w *World) trace(format string, args ...any) {
	if w.cfg.Trace != nil {
		w.cfg.Trace(fmt.Sprintf("%12.6f ", w.now.Seconds()) + fmt.Sprintf(format, args...))
	}
}

// exp is an exponential time with this mean, at most ten times it.
func (w *World) exp(mean time.Duration) time.Duration {
	return time.Duration(min(w.rng.ExpFloat64(), 10) * float64(mean))
}

// between is uniform in [a, b).
func (w *World) between(a, b time.Duration) time.Duration {
	if b <= a {
		return a
	}
	return a + time.Duration(w.rng.Int64N(int64(b-a)))
}

func (w *World) chance(p float64) bool { return w.rng.Float64() < p }

func newWorld(cfg Config) *World {
	w := &World{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x6465657063726177))}
	w.timing = coord.DefaultTiming()
	if w.chance(0.5) {
		w.timing = coord.SoakTiming()
		w.timing.Beat = 500 * time.Millisecond
	}
	w.calm = time.Duration(float64(w.timing.Death) * []float64{0.1, 0.3, 1}[w.rng.IntN(3)])
	w.think = []time.Duration{700 * time.Millisecond, 80 * time.Millisecond}[w.rng.IntN(2)]
	w.stay = []float64{0, 0.95}[w.rng.IntN(2)]
	w.pauses = []float64{0, 0.01, 0.03}[w.rng.IntN(3)] * w.think.Seconds()
	w.withRedis = w.chance(0.6)
	if cfg.Redis != nil {
		w.withRedis = *cfg.Redis
	}
	w.limit = coord.RateLimit{PerSecond: []float64{0.5, 2, 5}[w.rng.IntN(3)], Burst: 1 + w.rng.IntN(3)}
	for i := range 1 + w.rng.IntN(3) {
		w.keys = append(w.keys, keyInfo{key: coord.HostKey(fmt.Sprintf("h%d", i)), cap: 1 + w.rng.IntN(3)})
	}
	for i := range 1 + w.rng.IntN(2) {
		w.keys = append(w.keys, keyInfo{key: coord.RunKey(int64(i)), cap: 1 + w.rng.IntN(3)})
	}
	w.rates = []coord.Key{"host:h0"}
	w.oracle = newOracle(w)
	w.db = newDBServer(w)
	if w.withRedis {
		for i := range 2 {
			w.redis = append(w.redis, newRedisServer(w, i))
		}
	}
	w.pickFaults()
	for range 2 + w.rng.IntN(3) {
		w.spawn(false)
	}
	return w
}

// settle stops faults and requires that life goes on (L1), that nothing leaks, and that nobody starts without a view.
func (w *World) settle() {
	w.trace("faults stop")
	w.faultable = false
	w.heal()
	t := w.timing
	// The longest that any promise allows: a death nobody can prove, then a switch and its beats; fallbacks to and from Redis may
	// still run their course.
	deadline := w.now + t.Death*13/10 + 3*coord.MaxPause/coord.MaxPause*t.View + 30*time.Second
	for w.v == nil && w.now < deadline {
		w.step()
	}
	if w.v != nil {
		return
	}
	// From here grants must come within 12 s to every live session, on a key that is free.
	for _, p := range w.procs {
		if p.alive() {
			p.probeKey()
		}
	}
	deadline = w.now + 12*time.Second
	for w.v == nil && w.now < deadline {
		w.step()
	}
	for _, p := range w.procs {
		if w.v == nil && p.alive() && !p.probed {
			w.violate("L1", "%s got no slot of a free key within 12 s of calm: %v, view %+v", p.name(), p.m.MayWork(p.clock()), p.m.Authority())
		}
	}
	// Nobody asks any more: all slots come back.
	w.oracle.quiet = true
	deadline = w.now + t.Request + t.View + 20*t.Beat + t.KeepIdle
	for w.v == nil && w.now < deadline {
		w.step()
	}
	if w.v != nil {
		return
	}
	if left := w.recorded(); len(left) > 0 {
		held := ""
		for _, p := range w.procs {
			if p.alive() {
				held += p.name() + " has " + p.m.Describe()
			}
		}
		w.violate("leak", "slots are left although nobody wants one: %v; %s", left, held)
	}
}

// recorded are the slots of today's authority.
func (w *World) recorded() []coord.Slot {
	a := w.db.db.Auth
	if a.Mode != coord.ModeRedis {
		return w.db.db.Occupied("")
	}
	for _, r := range w.redis {
		if r.r.Server == a.Redis && r.r.Epochs[a.Epoch] != nil {
			return r.r.Epochs[a.Epoch].Slots
		}
	}
	return nil
}
