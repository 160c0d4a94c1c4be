package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"deepcrawl/coord"
)

// DB is the authority's database in memory: the tables of the protocol, each method one transaction at a time of its clock.
// It is not safe for concurrent use. The zero value is an empty database; Server is who answers.
type DB struct {
	Off    Off
	Server coord.Ident

	Auth     coord.Authority // Epoch 0: no row yet
	Sessions map[coord.Member]SessionRow
	Slots    map[coord.Key][]coord.Slot // by number
	Wants    map[coord.Key][]Want
	Leases   map[string]LeaseRow
	Gates    map[coord.Key]GateRow
	Rates    map[coord.Key]RateRow
}

// NewDB is an empty database answered by server.
func NewDB(off Off, server coord.Ident) *DB {
	return &DB{
		Off: off, Server: server, Sessions: map[coord.Member]SessionRow{}, Slots: map[coord.Key][]coord.Slot{},
		Wants: map[coord.Key][]Want{}, Leases: map[string]LeaseRow{}, Gates: map[coord.Key]GateRow{}, Rates: map[coord.Key]RateRow{},
	}
}

// Clone is a copy that shares nothing that changes.
func (d *DB) Clone() *DB {
	c := *d
	c.Sessions, c.Leases, c.Gates, c.Rates = maps.Clone(d.Sessions), maps.Clone(d.Leases), maps.Clone(d.Gates), maps.Clone(d.Rates)
	c.Slots = make(map[coord.Key][]coord.Slot, len(d.Slots))
	for k, v := range d.Slots {
		c.Slots[k] = slices.Clone(v)
	}
	c.Wants = make(map[coord.Key][]Want, len(d.Wants))
	for k, v := range d.Wants {
		c.Wants[k] = slices.Clone(v)
	}
	return &c
}

const (
	// ListEnded is how long beats list sessions that ended.
	ListEnded = 10 * time.Minute
	// KeepEnded is how long the rows of ended sessions stay.
	KeepEnded = time.Hour
)

// Register adds a session.
func (d *DB) Register(now coord.Micros, r coord.Registration) (coord.Registered, error) {
	if d.Auth.Epoch == 0 {
		d.Auth = FirstAuthority(d.Server, now)
	}
	inc := coord.Incarnation(0)
	for m, s := range d.Sessions {
		if m.Node != r.Node {
			continue
		}
		inc = max(inc, m.Incarnation)
		if r.Role == coord.RoleNode && s.Role == coord.RoleNode && s.State == coord.Live {
			return coord.Registered{}, fmt.Errorf("register %s: %s is live: %w", r.Node, m, coord.ErrNodeBusy)
		}
	}
	m := coord.Member{Node: r.Node, Incarnation: NextIncarnation(inc, now)}
	d.Sessions[m] = SessionRow{
		Role: r.Role, Machine: r.Machine, LockFile: r.LockFile, Facts: r.Facts, BeatAt: now, Acked: d.Auth.Epoch, State: coord.Live,
	}
	for m, s := range d.Sessions {
		if s.State != coord.Live && now-s.EndedAt > micros(KeepEnded) {
			delete(d.Sessions, m)
		}
	}
	return coord.Registered{Member: m, Authority: d.Auth, Now: now}, nil
}

// NextIncarnation is above every earlier one of the node, and after lost commits above those nobody remembers: it is the time.
func NextIncarnation(last coord.Incarnation, now coord.Micros) coord.Incarnation {
	return max(last+1, coord.Incarnation(max(now, 1)))
}

// Beat is a sign of life, and an ack.
func (d *DB) Beat(now coord.Micros, b coord.Beat) (coord.BeatReply, error) {
	row, ok := d.Sessions[b.Member]
	if err := CheckBeat(d.Off, row, ok, b.Seq); err != nil {
		return coord.BeatReply{}, fmt.Errorf("beat of %s: %w", b.Member, err)
	}
	prev := row.Seq
	row.Seq, row.BeatAt, row.Facts, row.Redis = max(row.Seq, b.Seq), now, b.Facts, b.Redis
	if row.State == "" { // R14Fence is off: a session without a row makes one
		row.State = coord.Live
	}
	if b.Ack != nil && CheckAck(d.Off, d.Auth, row, b.Ack.Epoch) {
		row.Acked = b.Ack.Epoch
		d.removeSlots(func(s coord.Slot) bool { return s.Member == b.Member })
		others := d.slotsOf(nil)
		for _, s := range CarrySlots(b.Member, b.Ack.Epoch, b.Ack.Slots, others) {
			d.insert(s)
		}
	}
	d.Sessions[b.Member] = row
	for _, w := range b.Gates {
		d.pause(now, w)
	}
	reply := coord.BeatReply{Authority: d.Auth, DB: d.Server, Now: now, Acked: row.Acked, Prev: prev}
	for _, m := range d.members() {
		s := d.Sessions[m]
		if s.State == coord.Live || now-s.EndedAt < micros(ListEnded) {
			reply.Sessions = append(reply.Sessions, coord.SessionState{Member: m, State: s.State, Seq: s.Seq, Acked: s.Acked, Redis: s.Redis})
		}
	}
	for _, k := range sortedKeys(d.Gates) {
		if g := d.Gates[k]; g.Changed >= b.Since-micros(GateOverlap) {
			reply.Gates = append(reply.Gates, g.Read(k, now))
		}
	}
	return reply, nil
}

// Bury marks a session dead.
func (d *DB) Bury(now coord.Micros, b coord.Burial) (bool, error) {
	row, ok := d.Sessions[b.Member]
	if !ok || row.State != coord.Live {
		return ok && row.State == coord.Dead, nil
	}
	if !b.Proof && row.Seq != b.Seq && d.Off.on(R9Seq) {
		return false, nil
	}
	d.end(now, b.Member, row, coord.Dead)
	return true, nil
}

// Leave marks a session left.
func (d *DB) Leave(now coord.Micros, m coord.Member) error {
	if row, ok := d.Sessions[m]; ok && row.State == coord.Live {
		d.end(now, m, row, coord.Left)
	}
	return nil
}

// end frees what a session owns.
func (d *DB) end(now coord.Micros, m coord.Member, row SessionRow, state coord.State) {
	row.State, row.EndedAt = state, now
	d.Sessions[m] = row
	d.removeSlots(func(s coord.Slot) bool { return s.Member == m })
	for k, ws := range d.Wants {
		d.setWants(k, slices.DeleteFunc(ws, func(w Want) bool { return w.Member == m }))
	}
	for name, l := range d.Leases {
		if l.Member == m {
			l.Free = true
			d.Leases[name] = l
		}
	}
}

// List is every session for people.
func (d *DB) List(now coord.Micros) []coord.SessionInfo {
	var out []coord.SessionInfo
	for _, m := range d.members() {
		s := d.Sessions[m]
		info := coord.SessionInfo{
			SessionState: coord.SessionState{Member: m, State: s.State, Seq: s.Seq, Acked: s.Acked, Redis: s.Redis},
			Role:         s.Role, Machine: s.Machine, LockFile: s.LockFile, Facts: maps.Clone(s.Facts),
			Age: time.Duration(now-s.BeatAt) * time.Microsecond,
		}
		for _, slots := range d.Slots {
			for _, x := range slots {
				if x.Member == m {
					info.Slots++
				}
			}
		}
		out = append(out, info)
	}
	return out
}

// Grant decides an ask.
func (d *DB) Grant(now coord.Micros, a coord.Ask) (coord.Granted, error) {
	if err := d.check(now, a.Member, a.View); err != nil {
		return coord.Granted{}, fmt.Errorf("grant to %s: %w", a.Member, err)
	}
	keys := AskKeys(a)
	g := DecideGrant(d.Off, d.Auth.Epoch, now, a, d.slotsOf(keys), d.wantsOf(keys))
	for _, s := range g.Insert {
		d.insert(s)
	}
	for _, k := range g.Settled {
		d.setWants(k, slices.DeleteFunc(d.Wants[k], func(w Want) bool { return w.Member == a.Member }))
	}
	for _, w := range g.Wanted {
		d.setWants(w.Key, PutWant(d.Wants[w.Key], w))
	}
	return g.Reply, nil
}

// AskKeys are the keys of an ask, sorted, once each.
func AskKeys(a coord.Ask) []coord.Key {
	var keys []coord.Key
	for _, g := range a.Groups {
		for _, k := range g {
			keys = append(keys, k.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// PutWant inserts a want, or renews the member's: a want that went stale begins anew.
func PutWant(wants []Want, w Want) []Want {
	for i := range wants {
		if wants[i].Member == w.Member && wants[i].Key == w.Key {
			if wants[i].Fresh(w.Seen) {
				w.Since = wants[i].Since
			}
			wants[i] = w
			return wants
		}
	}
	return append(wants, w)
}

// Return removes slots.
func (d *DB) Return(r coord.Return) {
	d.removeSlots(func(s coord.Slot) bool { return s.Member == r.Member && slices.Contains(r.Tokens, s.Token) })
}

// Reconcile removes what nobody knows.
func (d *DB) Reconcile(now coord.Micros, r coord.Reconcile) (coord.Reconciled, error) {
	if err := d.check(now, r.Member, r.View); err != nil {
		return coord.Reconciled{}, fmt.Errorf("reconcile %s: %w", r.Member, err)
	}
	all := d.slotsOf(nil)
	var own []coord.Slot
	for _, s := range all {
		if s.Member == r.Member {
			own = append(own, s)
		}
	}
	out := DecideReconcile(d.Off, d.Auth.Epoch, now, r, own, all, d.wantsOf(nil))
	for _, del := range out.Delete {
		d.removeSlots(func(s coord.Slot) bool { return s == del })
	}
	return out.Reply, nil
}

// Occupied lists slots.
func (d *DB) Occupied(key coord.Key) []coord.Slot {
	if key == "" {
		return d.slotsOf(nil)
	}
	return slices.Clone(d.Slots[key])
}

// check is CheckSession and CheckView.
func (d *DB) check(now coord.Micros, m coord.Member, v coord.View) error {
	row, ok := d.Sessions[m]
	if err := CheckSession(d.Off, row, ok, d.Auth.Epoch); err != nil {
		return err
	}
	return CheckView(d.Off, d.Auth, d.Server, v, now)
}

func (d *DB) members() []coord.Member {
	return slices.SortedFunc(maps.Keys(d.Sessions), func(a, b coord.Member) int {
		if a.Less(b) {
			return -1
		}
		if b.Less(a) {
			return 1
		}
		return 0
	})
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// slotsOf copies the slots of the keys, of all when nil.
func (d *DB) slotsOf(keys []coord.Key) []coord.Slot {
	if keys == nil {
		keys = sortedKeys(d.Slots)
	}
	var out []coord.Slot
	for _, k := range keys {
		out = append(out, d.Slots[k]...)
	}
	return out
}

func (d *DB) wantsOf(keys []coord.Key) []Want {
	if keys == nil {
		keys = sortedKeys(d.Wants)
	}
	var out []Want
	for _, k := range keys {
		out = append(out, d.Wants[k]...)
	}
	return out
}

// insert adds a slot; a taken number panics, as a violated primary key would fail.
func (d *DB) insert(s coord.Slot) {
	row := d.Slots[s.Key]
	i, found := slices.BinarySearchFunc(row, s, SlotOrder)
	if found {
		panic(fmt.Sprintf("coord/core: slot %s %d of %s is taken by %s", s.Key, s.N, s.Member, row[i].Member))
	}
	d.Slots[s.Key] = slices.Insert(row, i, s)
}

func (d *DB) removeSlots(del func(coord.Slot) bool) {
	for k, row := range d.Slots {
		row = slices.DeleteFunc(row, del)
		if len(row) == 0 {
			delete(d.Slots, k)
			continue
		}
		d.Slots[k] = row
	}
}

func (d *DB) setWants(k coord.Key, ws []Want) {
	if len(ws) == 0 {
		delete(d.Wants, k)
		return
	}
	d.Wants[k] = ws
}
