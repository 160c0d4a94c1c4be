package sqlcoord

import (
	"context"
	"slices"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
	"deepcrawl/internal/sqldb"
)

func readGate(r *sqldb.Row) (coord.Key, core.GateRow) {
	return coord.Key(r.Text(0)), core.GateRow{Gen: uint64(r.Int(1)), At: coord.Micros(r.Int(2)), Reason: r.Text(3), Changed: coord.Micros(r.Int(4))}
}

// lockGates makes, locks and reads the rows of keys, in their order so that writers do not wait for each other in a circle.
func (c *Coord) lockGates(tx *sqldb.Tx, h *head, keys []coord.Key) (map[coord.Key]core.GateRow, error) {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	var table sqldb.Table
	for _, k := range slices.Compact(keys) {
		table.Add(string(k))
	}
	rows := make(map[coord.Key]core.GateRow, len(keys))
	tx.ExecRows(c.set.Get("gate_make"), &table)
	tx.QueryRows(c.set.Get("gate_lock"), func(r *sqldb.Row) error {
		k, g := readGate(r)
		rows[k] = g
		return nil
	}, &table)
	tx.Query(c.set.Get("now"), func(r *sqldb.Row) error { h.now = coord.Micros(r.Int(0)); return nil })
	return rows, tx.Flush()
}

// pause merges writes into the gates.
func (c *Coord) pause(tx *sqldb.Tx, h *head, writes []coord.GateWrite) (map[coord.Key]core.GateRow, error) {
	keys := make([]coord.Key, len(writes))
	for i, w := range writes {
		keys[i] = w.Key
	}
	rows, err := c.lockGates(tx, h, keys)
	if err != nil {
		return nil, err
	}
	changed := map[coord.Key]struct{}{}
	for _, w := range writes {
		w.Reason = cut(w.Reason, maxReason)
		row, ok := core.DecidePause(0, rows[w.Key], w, h.now)
		if ok {
			rows[w.Key] = row
			changed[w.Key] = struct{}{}
		}
	}
	var table sqldb.Table
	for k := range changed {
		g := rows[k]
		table.Add(string(k), int64(g.Gen), int64(g.At), g.Reason, int64(g.Changed))
	}
	tx.ExecRows(c.set.Get("gate_set"), &table)
	return rows, tx.Flush()
}

// Pause implements coord.Gatekeeper.
func (c *Coord) Pause(ctx context.Context, w coord.GateWrite) (out coord.Gate, err error) {
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		rows, err := c.pause(tx, &h, []coord.GateWrite{w})
		out = rows[w.Key].Read(w.Key, h.now)
		return err
	})
	return out, err
}

// Clear implements coord.Gatekeeper.
func (c *Coord) Clear(ctx context.Context, key coord.Key) (out coord.Gate, err error) {
	err = c.do(ctx, func(tx *sqldb.Tx, inode string) error {
		h := head{c: c, inode: inode}
		rows, err := c.lockGates(tx, &h, []coord.Key{key})
		if err != nil {
			return err
		}
		g := core.DecideClear(rows[key], h.now)
		table := new(sqldb.Table)
		table.Add(string(key), int64(g.Gen), int64(g.At), g.Reason, int64(g.Changed))
		tx.ExecRows(c.set.Get("gate_set"), table)
		out = g.Read(key, h.now)
		return nil
	})
	return out, err
}

// Gates implements coord.Gatekeeper.
func (c *Coord) Gates(ctx context.Context) (out []coord.Gate, err error) {
	err = c.view(ctx, func(tx *sqldb.Tx) error {
		out = nil
		var now coord.Micros
		tx.Query(c.set.Get("now"), func(r *sqldb.Row) error { now = coord.Micros(r.Int(0)); return nil })
		tx.Query(c.set.Get("gates_closed"), func(r *sqldb.Row) error {
			key, g := readGate(r)
			out = append(out, g.Read(key, 0))
			return nil
		})
		if err := tx.Flush(); err != nil {
			return err
		}
		for i := range out {
			out[i].For = time.Duration(max(out[i].At-now, 0)) * time.Microsecond
		}
		return nil
	})
	return out, err
}
