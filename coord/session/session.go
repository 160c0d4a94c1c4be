// Package session runs the client machine of coord/core against a backend: it keeps the time, makes the calls, and gives the
// engine a coord.Session. What it decides itself is only when to call; everything else is the machine's.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// probeTime is how long a beat waits for a Redis that was reached before. One that takes longer is not reached; a connection that
// is made anew, which may take several round trips, is waited for beside beats.
const probeTime = 500 * time.Millisecond

// joinWait is how long Join waits for the first view.
const joinWait = 10 * time.Second

// Session is a coord.Session over any coord.Coord.
type Session struct {
	c      coord.Coord
	second coord.Second // nil: no Redis
	o      coord.Options
	id     coord.Member
	origin time.Time

	ctx    context.Context // of the calls made in the background
	cancel context.CancelFunc
	calls  sync.WaitGroup
	loop   sync.WaitGroup

	mu      sync.Mutex
	m       *core.Session
	changed chan struct{}
	done    chan struct{}
	over    bool
	kick    chan struct{}
	wakeAt  time.Duration // the loop sleeps until then
	waiters map[uint64]chan struct{}
	trips   uint64
	leases  map[string]*lease
	leasing map[string]struct{} // a call that takes it is out
	tokens  coord.Token         // of leases
	rates   map[coord.Key]time.Duration
	left    chan struct{} // closed when Leave has finished; nil before it began
	leftErr error
}

var _ coord.Session = (*Session)(nil)

// Join starts a session on c and returns once it has a view. A process that holds the lock of o.LockFile first buries the
// sessions that held it before. ErrNodeID, ErrTiming, ErrArgument, ErrNodeBusy, ErrUnavailable, ErrUnknown, ErrNoView when none
// came within ten seconds.
func Join(ctx context.Context, c coord.Coord, o coord.Options) (*Session, error) {
	if err := o.Node.Check(); err != nil {
		return nil, err
	}
	if o.Timing == (coord.Timing{}) {
		o.Timing = coord.DefaultTiming()
	}
	if err := o.Timing.Check(); err != nil {
		return nil, err
	}
	if o.Role == "" {
		o.Role = coord.RoleTool
	}
	if o.Clock == nil {
		o.Clock = coord.SystemClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := bury(ctx, c, o); err != nil {
		return nil, fmt.Errorf("join as %s: %w", o.Node, err)
	}
	r, err := c.Register(ctx, coord.Registration{
		Node: o.Node, Role: o.Role, Machine: o.Machine, LockFile: o.LockFile, Facts: facts(o),
	})
	if err != nil {
		return nil, fmt.Errorf("join as %s: %w", o.Node, unknown(ctx, err))
	}
	s := start(ctx, c, o, r)
	wait := o.Clock.NewTimer(joinWait)
	defer wait.Stop()
	for {
		changed := s.Changed()
		if err = s.MayWork(); err == nil {
			return s, nil
		}
		select {
		case <-changed:
			if s.Err() == nil {
				continue
			}
		case <-wait.C:
		case <-ctx.Done():
		}
		leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.Leave(leave) // what it says matters less than why there was no view
		return nil, fmt.Errorf("join as %s: %w", o.Node, err)
	}
}

// bury marks the sessions dead whose lock this process has obtained, after a second in which what they had sent ends.
func bury(ctx context.Context, c coord.Coord, o coord.Options) error {
	if o.LockFile == "" {
		return nil
	}
	all, err := c.Sessions(ctx)
	if err != nil {
		return err
	}
	var past []coord.Member
	for _, i := range all {
		if i.State == coord.Live && i.LockFile == o.LockFile && i.Machine == o.Machine {
			past = append(past, i.Member)
		}
	}
	if len(past) == 0 {
		return nil
	}
	t := o.Clock.NewTimer(o.Timing.AbortGrace)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, m := range past {
		o.Log.Info("session is dead: its lock was free", "node", m.Node, "incarnation", uint64(m.Incarnation))
		if _, err := c.Bury(ctx, coord.Burial{Member: m, Proof: true, Reason: "the lock of its file was free"}); err != nil {
			return err
		}
	}
	return nil
}

func facts(o coord.Options) map[string]string {
	if o.Facts == nil {
		return nil
	}
	return o.Facts()
}

func start(ctx context.Context, c coord.Coord, o coord.Options, r coord.Registered) *Session {
	s := &Session{
		c: c, o: o, id: r.Member, origin: o.Clock.Now(), changed: make(chan struct{}), done: make(chan struct{}),
		kick: make(chan struct{}, 1), waiters: map[uint64]chan struct{}{}, leases: map[string]*lease{}, leasing: map[string]struct{}{},
		rates: map[coord.Key]time.Duration{},
	}
	s.second, _ = c.(coord.Second)
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	cfg := core.Config{Timing: o.Timing, Redis: s.second != nil, Jitter: jitter}
	s.m = core.NewSession(cfg, r, o.Facts, s.now())
	s.loop.Go(s.run)
	return s
}

// jitter shortens a wait by up to a fifth, so that sessions do not march in step.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/5+1) }

// now reads both clocks.
func (s *Session) now() core.Now {
	t := s.o.Clock.Now()
	return core.Now{Mono: t.Sub(s.origin), Wall: t.Round(0).Sub(s.origin.Round(0))}
}

// run ticks the machine until the session is over.
func (s *Session) run() {
	for {
		s.mu.Lock()
		now := s.now()
		s.m.Tick(now)
		s.wakeAt = s.m.Next(now)
		s.pump()
		wait := max(s.wakeAt-now.Mono, minTick)
		over := s.over
		s.mu.Unlock()
		if over {
			return
		}
		t := s.o.Clock.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.kick:
		case <-s.done:
		}
		t.Stop()
	}
}

// minTick bounds how often the machine ticks, so that a thousand kept slots are looked at together.
const minTick = 10 * time.Millisecond

// pump sends what the machine wants sent, wakes who waits and the loop. The caller holds mu.
func (s *Session) pump() {
	for _, call := range s.m.Calls() {
		s.trips++
		s.calls.Go(func() { s.exec(call) })
	}
	if s.m.Woken() {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	if err := s.m.Over(); err != nil && !s.over {
		s.finish(err)
		return
	}
	if s.m.Due() < s.wakeAt {
		s.wakeAt = s.m.Due()
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
}

// finish ends what depends on the session. The caller holds mu.
func (s *Session) finish(err error) {
	s.over = true
	if errors.Is(err, coord.ErrFenced) {
		s.o.Log.Error("session is over", "node", s.id.Node, "incarnation", uint64(s.id.Incarnation), "err", err)
		s.cancel()
	}
	close(s.done)
	close(s.changed)
	s.changed = make(chan struct{})
	for _, w := range s.waiters {
		close(w)
	}
	clear(s.waiters)
	for _, l := range s.leases {
		l.lose()
	}
	clear(s.leases)
}

// exec makes one call and hands its answer to the machine.
func (s *Session) exec(call core.Call) {
	ctx, cancel := context.WithTimeout(s.ctx, s.timeout(call.Req))
	defer cancel()
	reply, err := s.do(ctx, call.Req)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m.Handle(s.now(), core.Answer{ID: call.ID, Reply: reply, Err: unknown(ctx, err)})
	if w := s.waiters[call.ID]; w != nil {
		close(w)
		delete(s.waiters, call.ID)
	}
	s.pump()
}

// unknown makes an error of a context that ended the unknown outcome that it is.
func unknown(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, coord.ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", coord.ErrUnknown, err)
}

func (s *Session) timeout(req any) time.Duration {
	t := min(5*time.Second, s.o.Timing.View/2)
	if p, ok := req.(core.Probe); ok && !p.Beside {
		return min(t, probeTime)
	}
	return t
}

func (s *Session) do(ctx context.Context, req any) (any, error) {
	switch q := req.(type) {
	case coord.Beat:
		return reply(s.c.Beat(ctx, q))
	case coord.Ask:
		return reply(s.c.Grant(ctx, q))
	case coord.Return:
		return nil, s.c.Return(ctx, q)
	case coord.Reconcile:
		return reply(s.c.Reconcile(ctx, q))
	case coord.Burial:
		s.o.Log.Warn("session is silent", "node", q.Member.Node, "incarnation", uint64(q.Member.Incarnation), "reason", q.Reason)
		return reply(s.c.Bury(ctx, q))
	case coord.Drain:
		s.o.Log.Warn("coordination drains", "epoch", uint64(q.From), "target", string(q.Target), "reason", q.Reason)
		return reply(s.c.Drain(ctx, q))
	case coord.Open:
		s.o.Log.Info("coordination opens", "epoch", uint64(q.Epoch), "mode", string(q.Mode))
		return reply(s.c.Open(ctx, q))
	case core.Carried:
		return reply(s.c.Carried(ctx, q.Epoch))
	case core.Probe:
		return reply(s.second.Probe(ctx))
	case core.Seed:
		return reply(s.second.Seed(ctx, q.Epoch, q.Slots))
	case core.Reap:
		return reply(s.second.Reap(ctx, q.View, q.Live, q.Before))
	}
	return nil, fmt.Errorf("call %T: %w", req, coord.ErrArgument)
}

func reply[T any](v T, err error) (any, error) { return v, err }

// ID is the session's name.
func (s *Session) ID() coord.Member { return s.id }

// Timing is what the session runs under.
func (s *Session) Timing() coord.Timing { return s.o.Timing }

// Done is closed when the session is over.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err says why it is over.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Over()
}

// Watching reports that another session is silent.
func (s *Session) Watching() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m.Watching()
}

// Status is a snapshot.
func (s *Session) Status() coord.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return coord.Status{Authority: s.m.Authority(), Permits: s.m.Permits(), Slots: s.m.Slots(), RoundTrips: s.trips}
}

// Leave ends the session and gives everything back.
func (s *Session) Leave(ctx context.Context) error {
	s.mu.Lock()
	if s.left != nil {
		left := s.left
		s.mu.Unlock()
		select {
		case <-left:
			return s.leftErr
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.left = make(chan struct{})
	fenced := s.m.Over()
	view, noView := s.m.View(s.now())
	var held []*lease
	for _, l := range s.leases {
		held = append(held, l)
	}
	s.m.Leave()
	s.pump()
	s.mu.Unlock()
	for _, l := range held {
		l.stop()
	}
	s.leftErr = s.giveBack(ctx, fenced, view, noView == nil)
	s.cancel()
	s.calls.Wait()
	s.loop.Wait()
	close(s.left)
	return s.leftErr
}

func (s *Session) giveBack(ctx context.Context, fenced error, v coord.View, viewed bool) error {
	if fenced != nil {
		return fenced // there is nothing left to give, and others have taken it
	}
	if viewed && v.Mode == coord.ModeRedis && s.second != nil {
		if _, err := s.c.Reconcile(ctx, coord.Reconcile{Member: s.id, View: v, Upto: math.MaxInt64}); err != nil {
			s.o.Log.Warn("slots stay until others reap them", "err", err)
		}
	}
	if err := s.c.Leave(ctx, s.id); err != nil {
		return fmt.Errorf("leave as %s: %w", s.id, unknown(ctx, err))
	}
	return nil
}
