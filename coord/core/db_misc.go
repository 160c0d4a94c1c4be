package core

import (
	"fmt"
	"time"

	"deepcrawl/coord"
)

// Pause writes a gate.
func (d *DB) Pause(now coord.Micros, w coord.GateWrite) coord.Gate {
	d.pause(now, w)
	return d.Gates[w.Key].Read(w.Key, now)
}

func (d *DB) pause(now coord.Micros, w coord.GateWrite) {
	if row, changed := DecidePause(d.Off, d.Gates[w.Key], w, now); changed {
		d.Gates[w.Key] = row
	}
}

// Clear opens a gate.
func (d *DB) Clear(now coord.Micros, key coord.Key) coord.Gate {
	d.Gates[key] = DecideClear(d.Gates[key], now)
	return d.Gates[key].Read(key, now)
}

// Closed lists the closed gates.
func (d *DB) Closed(now coord.Micros) []coord.Gate {
	var out []coord.Gate
	for _, k := range sortedKeys(d.Gates) {
		if g := d.Gates[k]; g.At > now {
			out = append(out, g.Read(k, now))
		}
	}
	return out
}

// Take takes from a bucket.
func (d *DB) Take(now coord.Micros, t coord.Take) (coord.Taken, error) {
	if err := d.check(now, t.Member, t.View); err != nil {
		return coord.Taken{}, fmt.Errorf("take from %s: %w", t.Key, err)
	}
	row, ok := d.Rates[t.Key]
	row, wait, err := DecideTake(d.Off, row, ok, d.Auth.Epoch, now, t.ClockBound, t.Limit)
	if err != nil {
		return coord.Taken{}, fmt.Errorf("take from %s: %w", t.Key, err)
	}
	d.Rates[t.Key] = row
	return coord.Taken{Epoch: d.Auth.Epoch, Wait: wait}, nil
}

// Hold takes or renews a lease.
func (d *DB) Hold(now coord.Micros, h coord.Hold) (coord.Held, error) {
	s, ok := d.Sessions[h.Member]
	if err := CheckHold(d.Off, d.Auth, d.Server, s, ok, h, now); err != nil {
		return coord.Held{}, fmt.Errorf("hold %s: %w", h.Name, err)
	}
	row := d.Leases[h.Name]
	row, err := DecideHold(d.Off, row, d.Sessions[row.Member].State == coord.Live, h, d.Auth, now)
	if err != nil {
		return coord.Held{}, err
	}
	d.Leases[h.Name] = row
	return row.Read(h.Name, now), nil
}

// Drop ends an acquisition.
func (d *DB) Drop(h coord.Hold) {
	if row := d.Leases[h.Name]; row.Member == h.Member && row.Token == h.Token {
		row.Free = true
		d.Leases[h.Name] = row
	}
}

// Holder reads a lease.
func (d *DB) Holder(now coord.Micros, name string) coord.Held {
	row := d.Leases[name]
	if d.Sessions[row.Member].State != coord.Live {
		return coord.Held{}
	}
	return row.Read(name, now)
}

// Drain enters a drain.
func (d *DB) Drain(now coord.Micros, r coord.Drain) (coord.Authority, error) {
	highest := coord.Epoch(0)
	for _, s := range d.Sessions {
		highest = max(highest, s.Acked)
	}
	next, err := DecideDrain(d.Off, d.Auth, d.Server, highest, r, now)
	if err != nil {
		return d.Auth, err
	}
	d.Auth = next
	return next, nil
}

// Carried reads the slots for a seed.
func (d *DB) Carried(now coord.Micros, e coord.Epoch) ([]coord.Slot, error) {
	if err := d.barrier(now, e); err != nil {
		return nil, fmt.Errorf("read what epoch %d carries: %w", e, err)
	}
	return d.slotsOf(nil), nil
}

// Open ends a drain.
func (d *DB) Open(now coord.Micros, o coord.Open) (coord.Authority, error) {
	err := d.barrier(now, o.Epoch)
	if !d.Off.on(R10Again) && o.Mode == coord.ModeRedis {
		err = nil
	}
	if err != nil {
		return d.Auth, fmt.Errorf("open %s in epoch %d: %w", o.Mode, o.Epoch, err)
	}
	d.Auth = DecideOpen(d.Auth, o, now)
	if !d.Off.on(R10Again) {
		d.Auth.Epoch = o.Epoch
	}
	if o.Mode == coord.ModeRedis && d.Off.on(R10Delete) {
		clear(d.Slots)
	}
	return d.Auth, nil
}

func (d *DB) barrier(now coord.Micros, e coord.Epoch) error {
	lowest, live := coord.Epoch(0), false
	for _, s := range d.Sessions {
		if s.State == coord.Live && (!live || s.Acked < lowest) {
			lowest, live = s.Acked, true
		}
	}
	return CheckBarrier(d.Off, d.Auth, d.Server, e, lowest, live, now)
}

// fallMemory is how long a fallback counts towards the spacing of the next return.
const fallMemory = 2 * time.Hour
