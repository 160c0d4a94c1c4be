package rediscoord

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"deepcrawl/coord"
)

// Coord is an authority in a Redis that stands alone.
type Coord struct{ table }

var _ coord.Coord = (*Coord)(nil)

// Open names a server and asks whether it may be used. ErrURL, ErrIneligible, coord.ErrUnavailable, coord.ErrUnknown.
func Open(ctx context.Context, url string, o Options) (*Coord, error) {
	c, err := newClient(url, o)
	if err != nil {
		return nil, err
	}
	if _, err := c.probe(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	space := func(coord.View) string { return aloneSpace(c.prefix) }
	return &Coord{table{client: c, space: space, mode: modeAlone}}, nil
}

func (c *Coord) do(ctx context.Context, name string, args ...any) (answer, error) {
	return c.run(ctx, name, aloneSpace(c.prefix), args...)
}

// readAuthority reads what tell of lib.lua wrote.
func readAuthority(a answer) (coord.Authority, coord.Ident, coord.Micros) {
	out := coord.Authority{
		Epoch: coord.Epoch(a.int(0)), Mode: coord.Mode(a.text(1)), Target: coord.Mode(a.text(2)),
		Redis: coord.RedisIdent{RunID: a.text(3), ReplID: a.text(4), Stamp: uint64(a.int(5))},
		DB:    coord.Ident{System: a.text(6), Start: a.text(7), Lossy: true}, HoldUntil: coord.Micros(a.int(8)), ChangedAt: coord.Micros(a.int(9)),
		Reason: a.text(10), Falls: int(a.int(11)), FellAt: coord.Micros(a.int(12)), Pin: coord.Mode(a.text(13)),
	}
	return out, coord.Ident{System: a.text(15), Start: a.text(16), Lossy: true}, coord.Micros(a.int(17))
}

// facts keeps facts within coord.MaxFacts.
func facts(f map[string]string) string {
	if f == nil {
		f = map[string]string{}
	}
	s := encode(f)
	if len(s) > coord.MaxFacts {
		s = encode(map[string]string{"facts": fmt.Sprintf("%d bytes are too many", len(s))})
	}
	return s
}

// Register implements coord.Roster.
func (c *Coord) Register(ctx context.Context, r coord.Registration) (coord.Registered, error) {
	a, err := c.do(ctx, "register", encode(map[string]any{
		"node": r.Node, "role": r.Role, "machine": r.Machine, "lock": r.LockFile, "life": rand.Text(),
	}), facts(r.Facts))
	if err != nil {
		return coord.Registered{}, fmt.Errorf("register %s: %w", r.Node, err)
	}
	auth, _, now := readAuthority(a.sub(1))
	return coord.Registered{Member: coord.Member{Node: r.Node, Incarnation: coord.Incarnation(a.int(0))}, Authority: auth, Now: now}, nil
}

// gateArg is a pause as the scripts read it.
type gateArg struct {
	Key    coord.Key `json:"key"`
	Length int64     `json:"length"` // microseconds
	Gen    uint64    `json:"gen"`
	Set    int64     `json:"set"`
	Reason string    `json:"reason"`
}

func gateWrite(w coord.GateWrite) gateArg {
	return gateArg{Key: w.Key, Length: min(w.For, coord.MaxPause).Microseconds(), Gen: min(w.Gen, maxInt), Set: int64(w.Set), Reason: w.Reason}
}

func readGates(a answer, now coord.Micros) []coord.Gate {
	var out []coord.Gate
	for i := 0; i+3 < len(a.list); i += 4 {
		at := coord.Micros(a.int(i + 2))
		out = append(out, coord.Gate{
			Key: coord.Key(a.text(i)), Gen: uint64(a.int(i + 1)), At: at, For: time.Duration(max(at-now, 0)) * time.Microsecond, Reason: a.text(i + 3),
		})
	}
	slices.SortFunc(out, func(a, b coord.Gate) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return out
}

// Beat implements coord.Roster.
func (c *Coord) Beat(ctx context.Context, b coord.Beat) (coord.BeatReply, error) {
	q := map[string]any{"member": b.Member.String(), "seq": b.Seq, "since": max(b.Since, 0)}
	if b.Ack != nil {
		slots := make([][4]any, len(b.Ack.Slots))
		for i, s := range b.Ack.Slots {
			slots[i] = [4]any{s.Key, s.N, s.Token, s.Cap}
		}
		q["ack"] = map[string]any{"epoch": b.Ack.Epoch, "slots": slots}
	}
	gates := make([]gateArg, len(b.Gates))
	for i, w := range b.Gates {
		gates[i] = gateWrite(w)
	}
	q["gates"] = gates
	a, err := c.do(ctx, "beat", encode(q), encode(b.Redis), facts(b.Facts))
	if err != nil {
		return coord.BeatReply{}, fmt.Errorf("beat of %s: %w", b.Member, err)
	}
	var out coord.BeatReply
	out.Authority, out.DB, out.Now = readAuthority(a.sub(0))
	out.Acked, out.Prev = coord.Epoch(a.int(1)), uint64(a.int(2))
	s := a.sub(3)
	for i := 0; i+4 < len(s.list); i += 5 {
		out.Sessions = append(out.Sessions, readState(s, i))
	}
	slices.SortFunc(out.Sessions, func(a, b coord.SessionState) int { return byMember(a.Member, b.Member) })
	out.Gates = readGates(a.sub(4), out.Now)
	return out, nil
}

func byMember(a, b coord.Member) int {
	switch {
	case a.Less(b):
		return -1
	case b.Less(a):
		return 1
	}
	return 0
}

func readState(a answer, i int) coord.SessionState {
	s := coord.SessionState{Member: a.member(i), State: coord.State(a.text(i + 1)), Seq: uint64(a.int(i + 2)), Acked: coord.Epoch(a.int(i + 3))}
	_ = json.Unmarshal([]byte(a.text(i+4)), &s.Redis) // another release's health is as good as none
	return s
}

// Bury implements coord.Roster.
func (c *Coord) Bury(ctx context.Context, b coord.Burial) (bool, error) {
	a, err := c.do(ctx, "end", encode(map[string]any{"member": b.Member.String(), "state": coord.Dead, "any": b.Proof, "seq": b.Seq}))
	if err != nil {
		return false, fmt.Errorf("bury %s: %w", b.Member, err)
	}
	return coord.State(a.text(0)) == coord.Dead, nil
}

// Leave implements coord.Roster.
func (c *Coord) Leave(ctx context.Context, m coord.Member) error {
	if _, err := c.do(ctx, "end", encode(map[string]any{"member": m.String(), "state": coord.Left, "any": true, "seq": 0})); err != nil {
		return fmt.Errorf("leave %s: %w", m, err)
	}
	return nil
}

// Sessions implements coord.Roster.
func (c *Coord) Sessions(ctx context.Context) ([]coord.SessionInfo, error) {
	a, err := c.do(ctx, "sessions")
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var out []coord.SessionInfo
	s := a.sub(0)
	for i := 0; i+10 < len(s.list); i += 11 {
		info := coord.SessionInfo{
			SessionState: readState(s, i), Role: coord.Role(s.text(i + 5)), Machine: s.text(i + 6), LockFile: s.text(i + 7),
			Age: time.Duration(s.int(i+8)) * time.Microsecond, Slots: int(s.int(i + 10)),
		}
		_ = json.Unmarshal([]byte(s.text(i+9)), &info.Facts) // written by facts
		out = append(out, info)
	}
	slices.SortFunc(out, func(a, b coord.SessionInfo) int { return byMember(a.Member, b.Member) })
	return out, nil
}

// Occupied implements coord.Slots.
func (c *Coord) Occupied(ctx context.Context, key coord.Key) ([]coord.Slot, error) {
	out, err := c.occupied(ctx, aloneSpace(c.prefix), key)
	if err != nil {
		return nil, fmt.Errorf("list slots: %w", err)
	}
	return out, nil
}

// Pause implements coord.Gatekeeper.
func (c *Coord) Pause(ctx context.Context, w coord.GateWrite) (coord.Gate, error) {
	return c.gate(ctx, "pause", w.Key, encode(gateWrite(w)))
}

// Clear implements coord.Gatekeeper.
func (c *Coord) Clear(ctx context.Context, key coord.Key) (coord.Gate, error) {
	return c.gate(ctx, "clear", key, string(key))
}

func (c *Coord) gate(ctx context.Context, name string, key coord.Key, arg string) (coord.Gate, error) {
	a, err := c.do(ctx, name, arg)
	if err != nil {
		return coord.Gate{}, fmt.Errorf("%s %s: %w", name, key, err)
	}
	g := readGates(a.sub(0), coord.Micros(a.int(1)))
	if len(g) != 1 {
		return coord.Gate{}, fmt.Errorf("%s %s: %d gates: %w", name, key, len(g), coord.ErrUnknown)
	}
	return g[0], nil
}

// Gates implements coord.Gatekeeper.
func (c *Coord) Gates(ctx context.Context) ([]coord.Gate, error) {
	a, err := c.do(ctx, "gates")
	if err != nil {
		return nil, fmt.Errorf("list gates: %w", err)
	}
	return readGates(a.sub(0), coord.Micros(a.int(1))), nil
}

// Hold implements coord.Leaser.
func (c *Coord) Hold(ctx context.Context, h coord.Hold) (coord.Held, error) {
	a, err := c.do(ctx, "hold", encode(map[string]any{
		"member": h.Member.String(), "view": c.view(h.View), "name": h.Name, "token": h.Token, "ttl": h.TTL.Microseconds(),
	}))
	if err != nil {
		return coord.Held{}, fmt.Errorf("hold %s: %w", h.Name, err)
	}
	return coord.Held{
		Name: h.Name, Member: h.Member, Token: h.Token, Fence: coord.Fence{Epoch: uint64(a.int(0)), Number: uint64(a.int(1))},
		For: time.Duration(a.int(2)) * time.Microsecond,
	}, nil
}

// Drop implements coord.Leaser.
func (c *Coord) Drop(ctx context.Context, h coord.Hold) error {
	if _, err := c.do(ctx, "drop", encode(map[string]any{"member": h.Member.String(), "name": h.Name, "token": h.Token})); err != nil {
		return fmt.Errorf("drop %s: %w", h.Name, err)
	}
	return nil
}

// Holder implements coord.Leaser.
func (c *Coord) Holder(ctx context.Context, name string) (coord.Held, error) {
	a, err := c.do(ctx, "holder", name)
	if err != nil || len(a.list) == 0 {
		if err != nil {
			err = fmt.Errorf("holder of %s: %w", name, err)
		}
		return coord.Held{}, err
	}
	return coord.Held{
		Name: name, Member: a.member(0), Token: coord.Token(a.int(1)), Fence: coord.Fence{Epoch: uint64(a.int(2)), Number: uint64(a.int(3))},
		For: time.Duration(a.int(4)) * time.Microsecond,
	}, nil
}

// Authority implements coord.Switch.
func (c *Coord) Authority(ctx context.Context) (coord.Authority, coord.Ident, error) {
	a, err := c.do(ctx, "authority")
	if err != nil {
		return coord.Authority{}, coord.Ident{}, fmt.Errorf("read the authority: %w", err)
	}
	auth, server, _ := readAuthority(a.sub(0))
	return auth, server, nil
}

// Drain implements coord.Switch.
func (c *Coord) Drain(ctx context.Context, d coord.Drain) (coord.Authority, error) {
	return c.change(ctx, "drain", map[string]any{
		"from": d.From, "seen": d.Seen, "target": d.Target, "reason": d.Reason, "newident": d.NewIdent, "lost": d.Lost,
		"hold": d.Hold.Microseconds(), "fall": d.Fall, "pin": d.Pin,
	})
}

// Open implements coord.Switch.
func (c *Coord) Open(ctx context.Context, o coord.Open) (coord.Authority, error) {
	return c.change(ctx, "open", map[string]any{
		"epoch": o.Epoch, "mode": o.Mode, "run": o.Redis.RunID, "repl": o.Redis.ReplID, "stamp": min(o.Redis.Stamp, maxInt),
	})
}

func (c *Coord) change(ctx context.Context, name string, q map[string]any) (coord.Authority, error) {
	a, err := c.do(ctx, name, encode(q))
	if err != nil {
		return coord.Authority{}, fmt.Errorf("%s: %w", name, err)
	}
	auth, _, _ := readAuthority(a.sub(0))
	return auth, nil
}

// Carried implements coord.Switch.
func (c *Coord) Carried(ctx context.Context, e coord.Epoch) ([]coord.Slot, error) {
	a, err := c.do(ctx, "carried", uint64(e))
	if err != nil {
		return nil, fmt.Errorf("read what epoch %d carries: %w", e, err)
	}
	return readSlots(a.sub(0)), nil
}
