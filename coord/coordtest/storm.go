package coordtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/session"
)

// site is a web server that counts.
type site struct {
	t      testing.TB
	mu     sync.Mutex
	in     map[coord.Key]int
	most   map[coord.Key]int
	caps   map[coord.Key]int
	paused map[coord.Key]time.Time // from when on, until
	until  map[coord.Key]time.Time
	starts []time.Time // on the limited key
	total  int
	limit  coord.RateLimit // of host:b
	pauses atomic.Int32    // 0: the next request is answered 429
}

func (s *site) enter(keys []coord.CappedKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.total++
	for _, k := range keys {
		s.in[k.Key]++
		s.most[k.Key] = max(s.most[k.Key], s.in[k.Key])
		if s.in[k.Key] > s.caps[k.Key] {
			s.t.Errorf("%d requests in flight on %s, cap %d", s.in[k.Key], k.Key, s.caps[k.Key])
		}
		if now.After(s.paused[k.Key]) && now.Before(s.until[k.Key]) {
			s.t.Errorf("a request starts on %s, paused for another %v", k.Key, s.until[k.Key].Sub(now))
		}
	}
}

func (s *site) leave(keys []coord.CappedKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		s.in[k.Key]--
	}
}

// testStorm lets four sessions crawl two hosts and two runs, with pauses, a shared rate and drains, and counts what arrives.
func testStorm(t *testing.T, authority Authority, wrap func(c coord.Coord, node int) coord.Coord) {
	open := authority(t)
	operator := open(t)
	total := Disturbed(t, func(t testing.TB, node int) coord.Coord {
		c := open(t)
		if wrap != nil {
			c = wrap(c, node)
		}
		return c
	}, 4*time.Second, wrap != nil, func(ctx context.Context) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(1200 * time.Millisecond):
			}
			a, _, err := operator.Authority(ctx)
			if err == nil && a.Mode == coord.ModeDB {
				_, err = operator.Drain(ctx, coord.Drain{From: a.Epoch, Target: coord.ModeDB, Reason: "operator"})
			}
			if err != nil && ctx.Err() == nil && !errors.Is(err, coord.ErrStale) {
				t.Errorf("drain: %v", err)
			}
		}
	})
	if total < 20 {
		t.Errorf("only %d requests", total)
	}
}

// Disturbed lets four sessions crawl two hosts and two runs for this long, with a pause now and then and a shared rate, while
// disturb does what it likes to their authority. It fails when more requests are in flight than a cap, one starts in a pause,
// or the rate is exceeded, and returns how many requests there were. Where faulty is set, trouble of joining and leaving is
// expected.
func Disturbed(t *testing.T, open func(t testing.TB, node int) coord.Coord, length time.Duration, faulty bool, disturb func(ctx context.Context)) int {
	hosts := []coord.CappedKey{{Key: "host:a", Cap: 4}, {Key: "host:b", Cap: 3}}
	runs := []coord.CappedKey{{Key: "run:1", Cap: 3}, {Key: "run:2", Cap: 5}}
	s := &site{
		t: t, in: map[coord.Key]int{}, most: map[coord.Key]int{}, caps: map[coord.Key]int{}, paused: map[coord.Key]time.Time{},
		until: map[coord.Key]time.Time{}, limit: coord.RateLimit{PerSecond: 30, Burst: 2},
	}
	for _, k := range append(hosts, runs...) {
		s.caps[k.Key] = k.Cap
	}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	var wg sync.WaitGroup
	for i, node := range []coord.NodeID{"n1", "n2", "n3", "n4"} {
		c := open(t, i)
		wg.Go(func() { s.node(ctx, c, node, hosts, runs, faulty) })
	}
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(2500 * time.Millisecond):
				s.pauses.Store(0)
			}
		}
	})
	if disturb != nil {
		wg.Go(func() { disturb(ctx) })
	}
	wg.Wait()
	for i := range s.starts {
		for j := i; j < len(s.starts); j++ {
			window := s.starts[j].Sub(s.starts[i]) + Timing().RateVoid
			if allowed := float64(s.limit.Burst) + s.limit.PerSecond*window.Seconds(); float64(j-i+1) > allowed {
				t.Fatalf("%d starts within %v", j-i+1, s.starts[j].Sub(s.starts[i]))
			}
		}
	}
	t.Logf("%d requests, at most %v in flight", s.total, s.most)
	return s.total
}

// node joins, works until ctx ends, and joins again when it was fenced.
func (s *site) node(ctx context.Context, c coord.Coord, node coord.NodeID, hosts, runs []coord.CappedKey, faulty bool) {
	for ctx.Err() == nil {
		sess, err := session.Join(ctx, c, coord.Options{Node: node, Role: coord.RoleNode, Timing: Timing()})
		if err != nil {
			if ctx.Err() == nil && !faulty {
				s.t.Errorf("join as %s: %v", node, err)
			}
			if !faulty {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { s.worker(ctx, sess, hosts, runs) })
		}
		wg.Wait()
		leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		if err := sess.Leave(leave); err != nil && !errors.Is(err, coord.ErrFenced) && !faulty {
			s.t.Errorf("leave as %s: %v", node, err)
		}
		cancel()
	}
}

func (s *site) worker(ctx context.Context, sess coord.Session, hosts, runs []coord.CappedKey) {
	for ctx.Err() == nil && sess.Err() == nil {
		host := rand.IntN(len(hosts))
		need := coord.Need{Keys: []coord.CappedKey{hosts[host], runs[rand.IntN(len(runs))]}, N: 1 + rand.IntN(2)}
		changed := sess.Changed()
		got, err := sess.Acquire(ctx, need)
		if err != nil {
			return
		}
		for _, p := range got {
			s.request(ctx, sess, p, need.Keys)
		}
		if len(got) == 0 {
			select {
			case <-changed:
			case <-ctx.Done():
			case <-sess.Done():
			}
		}
	}
}

// request makes one request: the guard, a dial, the guard again, the exchange.
func (s *site) request(ctx context.Context, sess coord.Session, p coord.Permit, keys []coord.CappedKey) {
	defer p.Release()
	limited := keys[0].Key == "host:b"
	if limited {
		if wait, err := p.Take(ctx, keys[0].Key, s.limit); err != nil || wait > 0 {
			return
		}
	}
	if p.MayStart() != nil {
		return
	}
	time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond) // the dial
	if p.MayStart() != nil {
		return
	}
	if limited {
		s.mu.Lock()
		s.starts = append(s.starts, time.Now())
		s.mu.Unlock()
	}
	s.enter(keys)
	time.Sleep(time.Duration(1+rand.IntN(12)) * time.Millisecond) // the exchange
	s.leave(keys)
	if s.pauses.CompareAndSwap(0, 1) {
		s.pause(ctx, sess, keys[0].Key)
	}
}

// pause is what a 429 does. It holds everywhere once every session has had a beat and a second for it.
func (s *site) pause(ctx context.Context, sess coord.Session, key coord.Key) {
	const d = 1800 * time.Millisecond
	begin := time.Now()
	if sess.Pause(ctx, key, d, "429") != nil {
		return
	}
	// A session that hears nothing has no view a moment later, so then it starts nothing either.
	known := time.Now().Add(Timing().View + 200*time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	if begin.Add(d).After(s.until[key]) && time.Now().After(s.until[key]) {
		s.paused[key], s.until[key] = known, begin.Add(d)
	}
}
