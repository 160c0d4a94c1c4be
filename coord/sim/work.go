package sim

import (
	"errors"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// request is one exchange with a web server.
type request struct {
	p       *proc
	member  coord.Member
	keys    []coord.Key
	permit  *core.Permit
	tokens  []coord.Token
	caps    []int
	open    bool // the web server counts it
	guarded time.Duration
	excused bool // its process was stopped for longer than is tolerated
	orphan  bool
}

// work is a worker's turn: wish for something, run what is given, come again.
func (p *proc) work(i int) {
	w := p.w
	if p.m == nil || p.m.Over() != nil || p.leaving {
		return
	}
	p.after(w.exp(w.think)+10*time.Millisecond, func() { p.work(i) })
	if w.oracle.quiet {
		return
	}
	switch {
	case w.chance(w.pauses):
		p.pauseSomething()
	case w.chance(0.002):
		p.clearSomething()
	case w.chance(0.05):
		p.m.Yield(w.keys[w.rng.IntN(len(w.keys))].key)
		p.pump()
	}
	// A crawl of one host at full speed wants the same again and again.
	if need, ok := p.wish[i]; ok && w.chance(w.stay) {
		for j, k := range need.Keys {
			need.Keys[j].Cap = w.capOf(k.Key)
		}
		p.acquire(need, p.run)
		return
	}
	p.wish[i] = p.need()
	p.acquire(p.wish[i], p.run)
}

// need is a wish: a host and mostly a run.
func (p *proc) need() coord.Need {
	w := p.w
	var hosts, runs []keyInfo
	for _, k := range w.keys {
		if k.key.Kind() == "host" {
			hosts = append(hosts, k)
		} else {
			runs = append(runs, k)
		}
	}
	need := coord.Need{N: 1 + w.rng.IntN(3)}
	h := hosts[w.rng.IntN(len(hosts))]
	need.Keys = append(need.Keys, coord.CappedKey{Key: h.key, Cap: h.cap})
	if w.chance(0.7) {
		r := runs[w.rng.IntN(len(runs))]
		need.Keys = append(need.Keys, coord.CappedKey{Key: r.key, Cap: r.cap})
	}
	return need
}

func (w *World) capOf(key coord.Key) int {
	for _, k := range w.keys {
		if k.key == key {
			return k.cap
		}
	}
	return 1
}

func (p *proc) acquire(need coord.Need, run func(coord.Need, *core.Permit)) {
	permits, ask := p.m.Acquire(p.clock(), need, nil)
	if ask != 0 {
		m := p.m
		p.waiting[ask] = func() {
			late, _ := m.Asked(ask, nil)
			for _, x := range late {
				run(need, x)
			}
		}
	}
	p.pump()
	for _, x := range permits {
		run(need, x)
	}
}

// run makes one request with a permit.
func (p *proc) run(need coord.Need, x *core.Permit) {
	w := p.w
	r := &request{p: p, member: p.member, permit: x, tokens: x.Tokens()}
	for _, k := range need.Keys {
		r.keys = append(r.keys, k.Key)
		r.caps = append(r.caps, k.Cap)
	}
	p.inFlight[r] = struct{}{}
	if r.keys[0] == w.rates[0] {
		p.take(r)
		return
	}
	p.guard(r)
}

// drop ends a request that never started.
func (p *proc) drop(r *request) {
	delete(p.inFlight, r)
	if p.m != nil && p.m.Over() == nil {
		p.m.Release(p.clock(), r.permit)
		p.pump()
	}
}

func (p *proc) take(r *request) {
	w := p.w
	v, err := p.m.View(p.clock())
	if err != nil {
		p.drop(r)
		return
	}
	began := p.clock().Mono
	m := p.m
	p.send(coord.Take{Member: p.member, View: v, Key: w.rates[0], Limit: w.limit, ClockBound: p.m.ClockBound(p.clock())}, func(a reply) {
		t, ok := a.val.(coord.Taken)
		if a.err != nil || !ok || t.Wait > 0 || !m.AcceptTaken(v, t) {
			w.stats.Waits++
			p.drop(r)
			return
		}
		m.Rated(r.permit, began)
		p.guard(r)
	})
}

// guard asks the start guard, dials, asks again and writes.
func (p *proc) guard(r *request) {
	w := p.w
	if p.m == nil || p.m.MayStart(p.clock(), r.permit) != nil {
		p.drop(r)
		return
	}
	r.guarded = w.now
	deadline := w.now + p.real(w.timing.Abort())
	dial := w.between(0, 20*time.Millisecond)
	if w.chance(0.1) {
		dial = min(w.exp(3*time.Second), deadline-w.now)
	}
	p.after(dial, func() {
		if w.now >= deadline {
			p.drop(r)
			return
		}
		if !w.cfg.Off.Lacks(core.R3Again) && (p.m == nil || p.m.MayStart(p.clock(), r.permit) != nil) {
			p.drop(r)
			return
		}
		r.guarded = w.now
		p.after(w.between(0, time.Millisecond), func() { p.write(r, deadline) })
	})
}

func (p *proc) write(r *request, deadline time.Duration) {
	w := p.w
	w.stats.Requests++
	r.open = true
	w.oracle.started(r)
	last := w.between(5*time.Millisecond, 400*time.Millisecond)
	if w.chance(0.15) {
		last = w.exp(w.timing.Request / 3)
	}
	end := w.now + last
	if end < deadline {
		w.after(last, func() { w.oracle.ended(r) })
		p.after(last, func() { p.drop(r) })
		return
	}
	// The client cuts it off; the site notices within a second.
	p.after(deadline-w.now, func() {
		w.after(w.between(0, 900*time.Millisecond), func() { w.oracle.ended(r) })
		delete(p.inFlight, r)
		if p.m != nil && p.m.Over() == nil {
			p.m.Abort(p.clock(), r.permit)
			p.pump()
		}
	})
}

func (p *proc) pauseSomething() {
	w := p.w
	key := w.keys[w.rng.IntN(len(w.keys))].key
	d := w.between(time.Second, 40*time.Second)
	if w.chance(0.3) {
		d = w.between(w.timing.Death, 3*w.timing.Death) // longer than what a failover holds
	}
	w.oracle.paused(p, key, d)
	w.trace("%s pauses %s for %v", p.name(), key, d)
	write := p.m.Pause(p.clock(), key, d, "sim")
	m := p.m
	p.send(write, func(a reply) {
		if p.m != m || m.Over() != nil {
			return
		}
		if g, ok := a.val.(coord.Gate); ok && a.err == nil {
			m.Paused(p.clock(), g)
			p.pump()
		} else {
			m.Untold(key)
		}
	})
	p.pump()
}

func (p *proc) clearSomething() {
	key := p.w.keys[p.w.rng.IntN(len(p.w.keys))].key
	m := p.m
	p.send(clearGate{key: key}, func(a reply) {
		if g, ok := a.val.(coord.Gate); ok && a.err == nil && p.m == m && m.Over() == nil {
			m.Cleared(p.clock(), g)
			p.pump()
		}
	})
}

// probeKey asks for a key nobody uses, again and again.
func (p *proc) probeKey() {
	if !p.alive() || p.probed {
		return
	}
	key := coord.HostKey("probe-" + string(p.node))
	p.acquire(coord.Need{Keys: []coord.CappedKey{{Key: key, Cap: 1}}, N: 1}, func(_ coord.Need, x *core.Permit) {
		if p.m.MayStart(p.clock(), x) == nil {
			p.probed = true
		}
		p.m.Release(p.clock(), x)
		p.pump()
	})
	p.after(300*time.Millisecond, p.probeKey)
}

// lease is the leader's, as its holder sees it.
type lease struct {
	token coord.Token
	fence coord.Fence
	trust core.Trusted
}

// leader takes, renews and gives up the lease.
func (p *proc) leader() {
	w := p.w
	if p.m == nil || p.m.Over() != nil || p.leaving {
		return
	}
	ttl := w.timing.LeaseTTL
	p.after(p.real(core.RenewEvery(ttl)), p.leader)
	v, err := p.m.View(p.clock())
	if err != nil || p.holding {
		return
	}
	if p.lease != nil && !p.lease.trust.Holds(w.cfg.Off, p.clock()) {
		p.lease = nil
	}
	l := p.lease
	if l != nil && w.chance(0.05) {
		p.lease = nil
		p.send(dropLease{coord.Hold{Member: p.member, Name: "leader", Token: l.token}}, func(reply) {})
		return
	}
	h := coord.Hold{Member: p.member, View: v, Name: "leader", TTL: ttl}
	if l != nil {
		h.Token = l.token
	} else {
		w.oracle.leaseTokens++
		h.Token = coord.Token(w.oracle.leaseTokens)
	}
	began := p.clock()
	m := p.m
	p.holding = true
	p.send(holdLease{h}, func(a reply) {
		p.holding = false
		if p.m != m || p.lease != l {
			return
		}
		held, ok := a.val.(coord.Held)
		if a.err != nil || !ok {
			if l != nil && errors.Is(a.err, coord.ErrLost) {
				p.lease = nil
			}
			return
		}
		p.lease = &lease{token: h.Token, fence: held.Fence, trust: core.Trusted{From: began, TTL: ttl}}
	})
}
