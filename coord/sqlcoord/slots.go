package sqlcoord

import (
	"context"
	"fmt"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
	"deepcrawl/internal/sqldb"
)

// Grant implements coord.Slots.
func (c *Coord) Grant(ctx context.Context, a coord.Ask) (out coord.Granted, err error) {
	keys := core.AskKeys(a)
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		h.session(tx, "session_share", a.Member)
		h.authority(tx, "authority")
		var table sqldb.Table
		for _, k := range keys {
			table.Add(string(k))
		}
		var slots []coord.Slot
		var wants []core.Want
		tx.QueryRows(c.set.Get("slots_of_key"), func(r *sqldb.Row) error { slots = append(slots, readSlot(r)); return nil }, &table)
		tx.QueryRows(c.set.Get("wants_of_key"), func(r *sqldb.Row) error { wants = append(wants, readWant(r)); return nil }, &table)
		if err := tx.Flush(); err != nil {
			return err
		}
		if err := h.check(a.View); err != nil {
			return fmt.Errorf("grant to %s: %w", a.Member, err)
		}
		g := core.DecideGrant(0, h.auth.Epoch, h.now, a, slots, wants)
		c.addSlots(tx, g.Insert)
		c.writeWants(tx, a.Member, g, wants)
		out = g.Reply
		return nil
	})
	return out, err
}

// writeWants queues what a grant changes of the session's own wants.
func (c *Coord) writeWants(tx *sqldb.Tx, m coord.Member, g core.Granting, wants []core.Want) {
	mine := map[coord.Key]core.Want{}
	for _, w := range wants {
		if w.Member == m {
			mine[w.Key] = w
		}
	}
	settled := map[coord.Key]struct{}{}
	var del, add sqldb.Table
	for _, k := range g.Settled {
		if _, had := mine[k]; had {
			del.Add(string(k))
		}
		settled[k] = struct{}{}
	}
	for _, w := range g.Wanted {
		if _, anew := settled[w.Key]; !anew {
			if old, had := mine[w.Key]; had {
				del.Add(string(w.Key))
				w = core.PutWant([]core.Want{old}, w)[0]
			}
		}
		add.Add(string(w.Key), int64(w.Cap), int64(w.Since), int64(w.Seen))
	}
	node, inc := string(m.Node), int64(m.Incarnation)
	tx.ExecRows(c.set.Get("want_delete"), &del, node, inc)
	tx.ExecRows(c.set.Get("want_add"), &add, node, inc)
}

// Return implements coord.Slots.
func (c *Coord) Return(ctx context.Context, r coord.Return) error {
	return c.do(ctx, func(tx *sqldb.Tx, _ string) error {
		c.deleteSlots(tx, r.Member, r.Tokens)
		return nil
	})
}

func (c *Coord) deleteSlots(tx *sqldb.Tx, m coord.Member, tokens []coord.Token) {
	rows := new(sqldb.Table)
	for _, t := range tokens {
		rows.Add(int64(t))
	}
	tx.ExecRows(c.set.Get("slot_delete"), rows, string(m.Node), int64(m.Incarnation))
}

// Reconcile implements coord.Slots.
func (c *Coord) Reconcile(ctx context.Context, q coord.Reconcile) (out coord.Reconciled, err error) {
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		node, inc := string(q.Member.Node), int64(q.Member.Incarnation)
		h.session(tx, "session_share", q.Member)
		h.authority(tx, "authority")
		var own, slots []coord.Slot
		var wants []core.Want
		tx.Query(c.set.Get("slots_beside"), func(r *sqldb.Row) error {
			s := readSlot(r)
			slots = append(slots, s)
			if s.Member == q.Member {
				own = append(own, s)
			}
			return nil
		}, node, inc)
		tx.Query(c.set.Get("wants_beside"), func(r *sqldb.Row) error { wants = append(wants, readWant(r)); return nil }, node, inc)
		if err := tx.Flush(); err != nil {
			return err
		}
		if err := h.check(q.View); err != nil {
			return fmt.Errorf("reconcile %s: %w", q.Member, err)
		}
		r := core.DecideReconcile(0, h.auth.Epoch, h.now, q, own, slots, wants)
		free := make([]coord.Token, len(r.Delete))
		for i, s := range r.Delete {
			free[i] = s.Token
		}
		c.deleteSlots(tx, q.Member, free)
		out = r.Reply
		return nil
	})
	return out, err
}

// Occupied implements coord.Slots.
func (c *Coord) Occupied(ctx context.Context, key coord.Key) (out []coord.Slot, err error) {
	err = c.view(ctx, func(tx *sqldb.Tx) error {
		out = nil
		each := func(r *sqldb.Row) error { out = append(out, readSlot(r)); return nil }
		if key == "" {
			tx.Query(c.set.Get("slots_all"), each)
		} else {
			var table sqldb.Table
			table.Add(string(key))
			tx.QueryRows(c.set.Get("slots_of_key"), each, &table)
		}
		return tx.Flush()
	})
	return out, err
}

// Take implements coord.Rate.
func (c *Coord) Take(ctx context.Context, t coord.Take) (out coord.Taken, err error) {
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		h.session(tx, "session_share", t.Member)
		var row core.RateRow
		known := false
		tx.Query(c.set.Get("rate_lock"), func(r *sqldb.Row) error {
			row, known = core.RateRow{Epoch: coord.Epoch(r.Int(0)), TAT: coord.Micros(r.Int(1))}, true
			return nil
		}, string(t.Key))
		h.authority(tx, "authority")
		if err := tx.Flush(); err != nil {
			return err
		}
		if err := h.check(t.View); err != nil {
			return fmt.Errorf("take from %s: %w", t.Key, err)
		}
		next, wait, err := core.DecideTake(0, row, known, h.auth.Epoch, h.now, t.ClockBound, t.Limit)
		if err != nil {
			return fmt.Errorf("take from %s: %w", t.Key, err)
		}
		switch {
		case !known:
			tx.Exec(c.set.Get("rate_add"), string(t.Key), int64(next.Epoch), int64(next.TAT))
		case next != row:
			tx.Exec(c.set.Get("rate_set"), string(t.Key), int64(next.Epoch), int64(next.TAT))
		}
		out = coord.Taken{Epoch: h.auth.Epoch, Wait: wait}
		return nil
	})
	return out, err
}
