package sqlcoord

import (
	"context"
	"fmt"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
	"deepcrawl/internal/sqldb"
)

func readLease(r *sqldb.Row) core.LeaseRow {
	return core.LeaseRow{
		Member: coord.Member{Node: coord.NodeID(r.Text(0)), Incarnation: coord.Incarnation(r.Int(1))}, Token: coord.Token(r.Int(2)),
		Fence: coord.Fence{Epoch: uint64(r.Int(3)), Number: uint64(r.Int(4))}, Until: coord.Micros(r.Int(5)), Free: r.Int(6) != 0,
	}
}

// Hold implements coord.Leaser.
func (c *Coord) Hold(ctx context.Context, q coord.Hold) (out coord.Held, err error) {
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		h.session(tx, "session_share", q.Member)
		tx.Exec(c.set.Get("lease_make"), q.Name)
		var row core.LeaseRow
		live := false
		tx.Query(c.set.Get("lease_lock"), func(r *sqldb.Row) error { row = readLease(r); return nil }, q.Name)
		tx.Query(c.set.Get("lease_holder"), func(r *sqldb.Row) error { live = coord.State(r.Text(0)) == coord.Live; return nil }, q.Name)
		h.authority(tx, "authority")
		if err := tx.Flush(); err != nil {
			return err
		}
		if err := core.CheckHold(0, h.auth, h.server, h.row, h.known, q, h.now); err != nil {
			return fmt.Errorf("hold %s: %w", q.Name, err)
		}
		next, err := core.DecideHold(0, row, live, q, h.auth, h.now)
		if err != nil {
			return err
		}
		tx.ExecExactly(1, c.set.Get("lease_set"), nil, q.Name, string(next.Member.Node), int64(next.Member.Incarnation), int64(next.Token),
			int64(next.Fence.Epoch), int64(next.Fence.Number), int64(next.Until), int64(0))
		out = next.Read(q.Name, h.now)
		return nil
	})
	return out, err
}

// Drop implements coord.Leaser.
func (c *Coord) Drop(ctx context.Context, q coord.Hold) error {
	return c.do(ctx, func(tx *sqldb.Tx, _ string) error {
		tx.Exec(c.set.Get("lease_drop"), q.Name, string(q.Member.Node), int64(q.Member.Incarnation), int64(q.Token))
		return nil
	})
}

// Holder implements coord.Leaser.
func (c *Coord) Holder(ctx context.Context, name string) (out coord.Held, err error) {
	err = c.view(ctx, func(tx *sqldb.Tx) error {
		var row core.LeaseRow
		var now coord.Micros
		live := false
		tx.Query(c.set.Get("lease_read"), func(r *sqldb.Row) error { row = readLease(r); return nil }, name)
		tx.Query(c.set.Get("lease_holder"), func(r *sqldb.Row) error { live = coord.State(r.Text(0)) == coord.Live; return nil }, name)
		tx.Query(c.set.Get("now"), func(r *sqldb.Row) error { now = coord.Micros(r.Int(0)); return nil })
		if err := tx.Flush(); err != nil {
			return err
		}
		out = coord.Held{}
		if live {
			out = row.Read(name, now)
		}
		return nil
	})
	return out, err
}

// Authority implements coord.Switch.
func (c *Coord) Authority(ctx context.Context) (coord.Authority, coord.Ident, error) {
	var h head
	err := c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h = head{c: c, inode: inode}
		h.authority(tx, "authority")
		return tx.Flush()
	})
	return h.auth, h.server, err
}

// acks is the state of the barrier.
type acks struct {
	live            int64
	lowest, highest coord.Epoch
}

func (c *Coord) readAcks(tx *sqldb.Tx) *acks {
	a := new(acks)
	tx.Query(c.set.Get("session_acks"), func(r *sqldb.Row) error {
		*a = acks{live: r.Int(0), lowest: coord.Epoch(r.Int(1)), highest: coord.Epoch(r.Int(2))}
		return nil
	})
	return a
}

// Drain implements coord.Switch.
func (c *Coord) Drain(ctx context.Context, q coord.Drain) (out coord.Authority, err error) {
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		h.authority(tx, "authority_lock")
		a := c.readAcks(tx)
		if err := tx.Flush(); err != nil {
			return err
		}
		next, err := core.DecideDrain(0, h.auth, h.server, a.highest, q, h.now)
		if err != nil {
			return err
		}
		c.setAuthority(tx, next)
		out = next
		return nil
	})
	return out, err
}

// Carried implements coord.Switch.
func (c *Coord) Carried(ctx context.Context, e coord.Epoch) (out []coord.Slot, err error) {
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		out = nil
		h.authority(tx, "authority_lock")
		a := c.readAcks(tx)
		tx.Query(c.set.Get("slots_all"), func(r *sqldb.Row) error { out = append(out, readSlot(r)); return nil })
		if err := tx.Flush(); err != nil {
			return err
		}
		if err := core.CheckBarrier(0, h.auth, h.server, e, a.lowest, a.live > 0, h.now); err != nil {
			return fmt.Errorf("read what epoch %d carries: %w", e, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Open implements coord.Switch.
func (c *Coord) Open(ctx context.Context, o coord.Open) (out coord.Authority, err error) {
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		h.authority(tx, "authority_lock")
		a := c.readAcks(tx)
		if err := tx.Flush(); err != nil {
			return err
		}
		if err := core.CheckBarrier(0, h.auth, h.server, o.Epoch, a.lowest, a.live > 0, h.now); err != nil {
			return fmt.Errorf("open %s in epoch %d: %w", o.Mode, o.Epoch, err)
		}
		out = core.DecideOpen(h.auth, o, h.now)
		c.setAuthority(tx, out)
		if o.Mode == coord.ModeRedis {
			tx.Exec(c.set.Get("slots_delete_all"))
		}
		return nil
	})
	return out, err
}
