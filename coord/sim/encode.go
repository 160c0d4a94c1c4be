package sim

import (
	"errors"
	"maps"
	"slices"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// write writes all that decides the future of a small world.
func (w *small) write(c *core.Canon) {
	now := w.micros()
	l := &w.left
	for _, n := range []int{l.Switches, l.Losses, l.Delays, l.Late, l.Crashes, l.Flushes} {
		c.Num(uint64(n))
	}
	c.Since(max(w.cfg.Length-w.now, 0))
	for i := range w.s {
		p := &w.s[i]
		c.Bool(p.m == nil)
		if p.m == nil {
			continue
		}
		p.m.Write(c, w.clock(), now)
		c.Bool(p.permit != nil)
		if p.permit != nil {
			for _, t := range p.permit.Tokens() {
				c.Rank(core.SpaceToken, p.m.ID(), uint64(t))
			}
		}
		c.Bool(p.ends > 0)
		c.Since(max(p.ends-w.now, 0))
		c.Rank(core.SpaceCall, p.m.ID(), p.ask)
	}
	w.writeDB(c, now)
	c.Redis(w.redis.Server)
	c.Num(uint64(w.redis.Guard))
	if x := w.redis.Epochs[w.redis.Guard]; x != nil {
		writeSlots(c, x.Slots)
	}
	for _, e := range slices.Sorted(maps.Keys(w.grants)) {
		c.Num(uint64(e))
		c.Text(w.grants[e][:2])
	}
	for _, m := range w.msgs {
		c.Num(uint64(m.p))
		c.Bool(m.done)
		c.Bool(m.orphan)
		if !m.orphan {
			c.Since(w.now - m.sent)
			c.Rank(core.SpaceCall, memberOf(w, m.p), m.call.ID)
		}
		writeCall(c, m.call.Req, now)
		if m.done {
			c.Bool(m.err != nil)
			writeReply(c, m.reply, m.err, now)
		}
	}
}

// memberOf is the session of a process, the zero member when it is dead.
func memberOf(w *small, i int) coord.Member {
	if w.s[i].m == nil {
		return coord.Member{}
	}
	return w.s[i].m.ID()
}

func (w *small) writeDB(c *core.Canon, now coord.Micros) {
	c.Authority(w.db.Auth, now)
	for _, m := range slices.SortedFunc(maps.Keys(w.db.Sessions), func(a, b coord.Member) int {
		if a.Less(b) {
			return -1
		}
		return 1
	}) {
		r := w.db.Sessions[m]
		c.Member(m)
		c.Rank(core.SpaceSeq, m, r.Seq)
		c.Num(uint64(r.Acked))
		c.Text(string(r.State))
		writeHealth(c, r.Redis)
	}
	writeSlots(c, w.db.Occupied(""))
}

func writeHealth(c *core.Canon, h coord.Health) {
	c.Bool(h.Usable)
	c.Redis(h.Ident)
	if h.Configured {
		c.Since(min(h.For, 6*tick))
	}
}

func writeSlots(c *core.Canon, slots []coord.Slot) {
	c.Num(uint64(len(slots)))
	for _, s := range slots {
		c.Num(uint64(s.N))
		c.Member(s.Member)
		c.Rank(core.SpaceToken, s.Member, uint64(s.Token))
	}
}

func writeTokens(c *core.Canon, m coord.Member, tokens []coord.Token) {
	c.Num(uint64(len(tokens)))
	for _, t := range tokens {
		c.Rank(core.SpaceToken, m, uint64(t))
	}
}

func writeCall(c *core.Canon, req any, now coord.Micros) {
	switch q := req.(type) {
	case coord.Beat:
		c.Text("beat")
		c.Rank(core.SpaceSeq, q.Member, q.Seq)
		writeHealth(c, q.Redis)
		c.Bool(q.Ack != nil)
		if q.Ack != nil {
			c.Num(uint64(q.Ack.Epoch))
			writeSlots(c, q.Ack.Slots)
		}
	case coord.Ask:
		c.Text("ask")
		c.View(q.View, now)
		for _, g := range q.Groups {
			for _, k := range g {
				c.Rank(core.SpaceToken, q.Member, uint64(k.Token))
			}
		}
	case coord.Return:
		c.Text("return")
		c.Text(string(q.View.Mode))
		c.Num(uint64(q.View.Epoch))
		writeTokens(c, q.Member, q.Tokens)
	case coord.Reconcile:
		c.Text("reconcile")
		c.View(q.View, now)
		c.Rank(core.SpaceToken, q.Member, uint64(q.Upto))
		writeTokens(c, q.Member, q.Tokens)
	case coord.Burial:
		c.Text("bury")
		c.Member(q.Member)
		c.Rank(core.SpaceSeq, q.Member, q.Seq)
	case coord.Drain:
		c.Text("drain " + string(q.Target))
		c.Num(uint64(q.From))
		c.Num(uint64(q.Seen))
		c.Bool(q.Fall)
	case core.Carried:
		c.Text("carried")
		c.Num(uint64(q.Epoch))
	case core.Seed:
		c.Text("seed")
		c.Num(uint64(q.Epoch))
		writeSlots(c, q.Slots)
	case coord.Open:
		c.Text("open " + string(q.Mode))
		c.Num(uint64(q.Epoch))
		c.Redis(q.Redis)
	case core.Reap:
		c.Text("reap")
		c.View(q.View, now)
		c.Num(uint64(len(q.Live)))
	}
}

func writeReply(c *core.Canon, reply any, err error, now coord.Micros) {
	for _, s := range []error{coord.ErrStale, coord.ErrFenced, coord.ErrNoView, coord.ErrWaiting} {
		c.Bool(errors.Is(err, s))
	}
	switch r := reply.(type) {
	case coord.BeatReply:
		c.Authority(r.Authority, now)
		c.Micros(r.Now, now)
		c.Num(uint64(r.Acked))
		for _, s := range r.Sessions {
			c.Member(s.Member)
			c.Text(string(s.State))
			c.Rank(core.SpaceSeq, s.Member, s.Seq)
			c.Num(uint64(s.Acked))
			writeHealth(c, s.Redis)
		}
	case coord.Granted:
		c.Num(uint64(r.Epoch))
		for _, g := range r.Groups {
			c.Num(uint64(len(g.N)))
		}
	case coord.Reconciled:
		c.Num(uint64(r.Epoch))
		c.Num(uint64(len(r.Missing)))
	case coord.Seeded:
		c.Redis(r.Ident)
		c.Num(uint64(r.Guard))
	case []coord.Slot:
		writeSlots(c, r)
	}
}
