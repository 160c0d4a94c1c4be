package core

import (
	"time"

	"deepcrawl/coord"
)

// GateRow is a gate as stored. A missing row has generation 1 and is open.
type GateRow struct {
	Gen     uint64
	At      coord.Micros // not before
	Reason  string
	Changed coord.Micros
}

// DecidePause merges a write into a row: the later end wins; a rewrite of an earlier generation is void, one of a later
// generation shows that a Clear was lost and brings it back. A new pause that was set before the gate was cleared is void, as
// long as nothing has closed it since.
func DecidePause(off Off, row GateRow, w coord.GateWrite, now coord.Micros) (GateRow, bool) {
	row.Gen = max(row.Gen, 1)
	at := now + micros(min(w.For, coord.MaxPause))
	switch {
	case w.Gen == 0 && w.Set > 0 && row.Gen > 1 && row.At == 0 && w.Set <= row.Changed && off.on(RGateClear):
		return row, false
	case w.Gen == 0 || w.Gen == row.Gen:
		if at <= row.At && off.on(RGateMax) {
			return row, false
		}
		row.At, row.Reason = at, w.Reason
	case w.Gen > row.Gen:
		row.Gen, row.At, row.Reason = w.Gen, at, w.Reason
	default:
		return row, false
	}
	row.Changed = now
	return row, true
}

// DecideClear opens a gate and starts its next generation.
func DecideClear(row GateRow, now coord.Micros) GateRow {
	return GateRow{Gen: max(row.Gen, 1) + 1, Changed: now}
}

// Read is the gate as a session gets it.
func (row GateRow) Read(key coord.Key, now coord.Micros) coord.Gate {
	return coord.Gate{Key: key, Gen: max(row.Gen, 1), At: row.At, For: time.Duration(max(row.At-now, 0)) * time.Microsecond, Reason: row.Reason}
}

// GateOverlap is how far before Beat.Since a beat reads changed gates, so that none is missed that was written in a
// transaction which ended after a later one.
const GateOverlap = 10 * time.Second
