package sqlcoord

import (
	"context"
	"fmt"
	"slices"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
	"deepcrawl/internal/sqldb"
)

// dayMicros is how long buckets and gates stay that say nothing any more.
const dayMicros = 24 * 3600 * 1e6

// Register implements coord.Roster.
func (c *Coord) Register(ctx context.Context, r coord.Registration) (out coord.Registered, err error) {
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		h.authority(tx, "authority_lock")
		last, busy := coord.Incarnation(0), false
		tx.Query(c.set.Get("session_of_node"), func(row *sqldb.Row) error {
			last = max(last, coord.Incarnation(row.Int(0)))
			busy = busy || coord.Role(row.Text(1)) == coord.RoleNode && coord.State(row.Text(2)) == coord.Live
			return nil
		}, string(r.Node))
		if err := tx.Flush(); err != nil {
			return err
		}
		copied := c.db.Dialect() == sqldb.SQLite && h.auth.Epoch > 0 && h.auth.DB.System != h.server.System
		switch {
		case r.Role == coord.RoleNode && busy && !copied:
			return fmt.Errorf("register %s: %w", r.Node, coord.ErrNodeBusy)
		case h.auth.Epoch == 0:
			h.auth = core.FirstAuthority(h.server, h.now)
			c.setAuthority(tx, h.auth)
		case copied:
			if err := c.adopt(tx, &h); err != nil {
				return err
			}
		}
		m := coord.Member{Node: r.Node, Incarnation: core.NextIncarnation(last, h.now)}
		tx.ExecExactly(1, c.set.Get("session_add"), nil, string(m.Node), int64(m.Incarnation), string(r.Role), r.Machine, r.LockFile, int64(h.auth.Epoch),
			encodeHealth(coord.Health{}), encodeFacts(r.Facts))
		tx.Exec(c.set.Get("session_prune"), int64(h.now)-core.KeepEnded.Microseconds())
		tx.Exec(c.set.Get("wants_prune"), int64(h.now)-core.KeepEnded.Microseconds())
		tx.Exec(c.set.Get("rates_prune"), int64(h.now)-dayMicros)
		tx.Exec(c.set.Get("gates_prune"), int64(h.now)-dayMicros)
		out = coord.Registered{Member: m, Authority: h.auth, Now: h.now}
		return nil
	})
	return out, err
}

// adopt begins a new epoch on a file that was copied or restored: another inode. Whoever is live in it works on the other file,
// or is dead, and can never beat here; nobody here holds anything. So there is nothing to drain and nothing to wait for.
func (c *Coord) adopt(tx *sqldb.Tx, h *head) error {
	var live []coord.Member
	highest := h.auth.Epoch
	tx.Query(c.set.Get("session_states"), func(r *sqldb.Row) error {
		s := readState(r)
		highest = max(highest, s.Acked)
		if s.State == coord.Live {
			live = append(live, s.Member)
		}
		return nil
	})
	if err := tx.Flush(); err != nil {
		return err
	}
	for _, m := range live {
		c.end(tx, m, coord.Dead)
	}
	h.auth = core.FirstAuthority(h.server, h.now)
	h.auth.Epoch = highest + 1 + core.LostEpochs
	h.auth.Reason = "the database file was copied or restored"
	c.setAuthority(tx, h.auth)
	return nil
}

// Beat implements coord.Roster.
func (c *Coord) Beat(ctx context.Context, b coord.Beat) (out coord.BeatReply, err error) {
	var h head
	var beaten *sqldb.Count
	err = c.try(ctx, func(tx *sqldb.Tx, inode string) error {
		h = head{c: c, inode: inode}
		out = coord.BeatReply{}
		h.session(tx, "session_lock", b.Member)
		// One that is not live, or has beaten further, is met by no row: what follows then is only read.
		beaten = tx.Exec(c.set.Get("session_beat"), string(b.Member.Node), int64(b.Member.Incarnation), int64(b.Seq), encodeHealth(b.Redis), encodeFacts(b.Facts))
		if b.Ack != nil || len(b.Gates) > 0 {
			h.authority(tx, "authority")
			if err := tx.Flush(); err != nil {
				return err
			}
			if beaten.N == 0 {
				return fmt.Errorf("beat of %s: %w", b.Member, core.CheckBeat(0, h.row, h.known, b.Seq))
			}
			if err := c.beatMore(tx, &h, b); err != nil {
				return err
			}
		}
		h.authority(tx, "authority")
		tx.Query(c.set.Get("session_states"), func(r *sqldb.Row) error {
			out.Sessions = append(out.Sessions, readState(r))
			return nil
		})
		tx.Query(c.set.Get("gates_changed"), func(r *sqldb.Row) error {
			key, g := readGate(r)
			out.Gates = append(out.Gates, g.Read(key, 0))
			return nil
		}, int64(b.Since)-core.GateOverlap.Microseconds())
		return nil // with the COMMIT it is one round trip
	}, false) // a beat that is executed twice fences its session
	if err != nil {
		return out, err
	}
	if beaten.N == 0 {
		return out, fmt.Errorf("beat of %s: %w", b.Member, core.CheckBeat(0, h.row, h.known, b.Seq))
	}
	out.Authority, out.DB, out.Now, out.Acked, out.Prev = h.auth, h.server, h.now, h.row.Acked, h.row.Seq
	for i := range out.Gates {
		g := &out.Gates[i]
		g.For = time.Duration(max(g.At-h.now, 0)) * time.Microsecond
	}
	return out, nil
}

// beatMore writes the ack and the gates of a beat.
func (c *Coord) beatMore(tx *sqldb.Tx, h *head, b coord.Beat) error {
	if b.Ack != nil && core.CheckAck(0, h.auth, h.row, b.Ack.Epoch) {
		node, inc := string(b.Member.Node), int64(b.Member.Incarnation)
		tx.Exec(c.set.Get("slots_delete_of"), node, inc)
		var keys sqldb.Table
		seen := map[coord.Key]struct{}{}
		for _, s := range b.Ack.Slots {
			if _, dup := seen[s.Key]; !dup {
				seen[s.Key] = struct{}{}
				keys.Add(string(s.Key))
			}
		}
		var others []coord.Slot
		tx.QueryRows(c.set.Get("slots_of_key"), func(r *sqldb.Row) error { others = append(others, readSlot(r)); return nil }, &keys)
		if err := tx.Flush(); err != nil {
			return err
		}
		carried := core.CarrySlots(b.Member, b.Ack.Epoch, b.Ack.Slots, others)
		slices.SortFunc(carried, core.SlotOrder)
		c.addSlots(tx, carried)
		tx.ExecExactly(1, c.set.Get("session_ack"), nil, node, inc, int64(b.Ack.Epoch))
		h.row.Acked = b.Ack.Epoch
	}
	if len(b.Gates) == 0 {
		return nil
	}
	_, err := c.pause(tx, h, b.Gates)
	return err
}

// addSlots queues the insertion of slots, which must be in SlotOrder.
func (c *Coord) addSlots(tx *sqldb.Tx, slots []coord.Slot) {
	if len(slots) == 0 {
		return
	}
	rows := new(sqldb.Table)
	for _, s := range slots {
		rows.Add(string(s.Key), int64(s.N), string(s.Member.Node), int64(s.Member.Incarnation), int64(s.Token), int64(s.Epoch), int64(s.Cap))
	}
	tx.ExecRows(c.set.Get("slot_add"), rows)
}

func readState(r *sqldb.Row) coord.SessionState {
	return coord.SessionState{
		Member: coord.Member{Node: coord.NodeID(r.Text(0)), Incarnation: coord.Incarnation(r.Int(1))}, State: coord.State(r.Text(2)),
		Seq: uint64(r.Int(3)), Acked: coord.Epoch(r.Int(4)), Redis: decodeHealth(r.Text(5)),
	}
}

// Bury implements coord.Roster.
func (c *Coord) Bury(ctx context.Context, b coord.Burial) (dead bool, err error) {
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		h.session(tx, "session_lock", b.Member)
		if err := tx.Flush(); err != nil {
			return err
		}
		switch {
		case !h.known || h.row.State != coord.Live:
			dead = h.known && h.row.State == coord.Dead
		case !b.Proof && h.row.Seq != b.Seq:
			dead = false
		default:
			dead = true
			c.end(tx, b.Member, coord.Dead)
		}
		return nil
	})
	return dead, err
}

// Leave implements coord.Roster.
func (c *Coord) Leave(ctx context.Context, m coord.Member) error {
	return c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		h.session(tx, "session_lock", m)
		if err := tx.Flush(); err != nil {
			return err
		}
		if h.known && h.row.State == coord.Live {
			c.end(tx, m, coord.Left)
		}
		return nil
	})
}

// end queues the end of a live session whose row is locked.
func (c *Coord) end(tx *sqldb.Tx, m coord.Member, state coord.State) {
	node, inc := string(m.Node), int64(m.Incarnation)
	tx.Exec(c.set.Get("session_end"), node, inc, string(state))
	tx.Exec(c.set.Get("slots_delete_of"), node, inc)
	tx.Exec(c.set.Get("wants_delete_of"), node, inc)
	tx.Exec(c.set.Get("leases_free_of"), node, inc)
}

// Sessions implements coord.Roster.
func (c *Coord) Sessions(ctx context.Context) (out []coord.SessionInfo, err error) {
	err = c.view(ctx, func(tx *sqldb.Tx) error {
		out = nil
		var now int64
		tx.Query(c.set.Get("now"), func(r *sqldb.Row) error { now = r.Int(0); return nil })
		tx.Query(c.set.Get("session_list"), func(r *sqldb.Row) error {
			i := coord.SessionInfo{
				SessionState: readState(r), Role: coord.Role(r.Text(6)), Machine: r.Text(7), LockFile: r.Text(8),
				Age: time.Duration(r.Int(9)), Facts: decodeFacts(r.Bytes(10)), Slots: int(r.Int(11)),
			}
			out = append(out, i)
			return nil
		})
		if err := tx.Flush(); err != nil {
			return err
		}
		for i := range out {
			out[i].Age = time.Duration(now-int64(out[i].Age)) * time.Microsecond
		}
		return nil
	})
	return out, err
}

// view runs a read-only transaction.
func (c *Coord) view(ctx context.Context, fn func(tx *sqldb.Tx) error) error {
	return translate(ctx, c.db.View(ctx, fn))
}
