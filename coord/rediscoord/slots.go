package rediscoord

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
)

// table is the slots and rates of one space: what Coord and Second have in common.
type table struct {
	*client
	// space is where a view's rows are; mode says which checks the script makes.
	space func(v coord.View) string
	mode  string
}

// maxInt is the greatest integer that Lua's numbers hold: 2^53.
const maxInt = 1 << 53

// viewArg is a view as the scripts read it.
type viewArg struct {
	Mode   string `json:"mode"`  // which checks
	Asked  string `json:"asked"` // the view's own
	Epoch  uint64 `json:"epoch"`
	Run    string `json:"run"`
	Repl   string `json:"repl"`
	Stamp  uint64 `json:"stamp"`
	System string `json:"system"`
	Start  string `json:"start"`
	Till   int64  `json:"till"`
}

func (t table) view(v coord.View) viewArg {
	a := viewArg{
		Mode: t.mode, Asked: string(v.Mode), Epoch: min(uint64(v.Epoch), maxInt), Run: v.Redis.RunID, Repl: v.Redis.ReplID,
		Stamp: min(v.Redis.Stamp, maxInt), System: v.DB.System, Start: v.DB.Start, Till: int64(v.Until),
	}
	if t.mode == modeSecond {
		a.Till = int64(v.RedisUntil)
	}
	return a
}

// The checks.
const (
	modeAlone  = "db"
	modeSecond = "redis"
)

// encode makes the argument of a script; it holds nothing that could not be encoded.
func encode(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// list makes an empty array of nil, which JSON would make null.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// Grant implements coord.Slots.
func (t table) Grant(ctx context.Context, a coord.Ask) (coord.Granted, error) {
	groups := make([][][3]any, len(a.Groups))
	for i, g := range a.Groups {
		groups[i] = make([][3]any, len(g))
		for j, k := range g {
			groups[i][j] = [3]any{k.Key, k.Cap, k.Token}
		}
	}
	r, err := t.run(ctx, "grant", t.space(a.View), encode(map[string]any{"member": a.Member.String(), "view": t.view(a.View), "groups": groups}))
	if err != nil {
		return coord.Granted{}, fmt.Errorf("grant to %s: %w", a.Member, err)
	}
	out := coord.Granted{Epoch: a.View.Epoch, Groups: make([]coord.GroupGrant, len(a.Groups)), Caps: map[coord.Key]int{}}
	told := r.sub(0)
	for i := range out.Groups {
		if full, ok := told.at(i).(string); ok {
			n, key, _ := strings.Cut(full, " ")
			waiting, _ := strconv.Atoi(n) // written by the script
			out.Groups[i].Full, out.Groups[i].Waiting = coord.Key(key), waiting
			continue
		}
		numbers := told.sub(i)
		if len(numbers.list) != len(a.Groups[i]) {
			return coord.Granted{}, fmt.Errorf("grant to %s: %d numbers for %d keys: %w", a.Member, len(numbers.list), len(a.Groups[i]), coord.ErrUnknown)
		}
		out.Groups[i].N = make([]int, len(numbers.list))
		for j := range numbers.list {
			out.Groups[i].N[j] = int(numbers.int(j))
		}
	}
	readCaps(out.Caps, r.sub(1))
	return out, nil
}

func readCaps(into map[coord.Key]int, a answer) {
	for i := 0; i+1 < len(a.list); i += 2 {
		into[coord.Key(a.text(i))] = int(a.int(i + 1))
	}
}

// Return implements coord.Slots.
func (t table) Return(ctx context.Context, r coord.Return) error {
	_, err := t.run(ctx, "return", t.space(r.View), encode(map[string]any{"member": r.Member.String(), "tokens": list(r.Tokens)}))
	if err != nil {
		return fmt.Errorf("return by %s: %w", r.Member, err)
	}
	return nil
}

// Reconcile implements coord.Slots.
func (t table) Reconcile(ctx context.Context, q coord.Reconcile) (coord.Reconciled, error) {
	r, err := t.run(ctx, "reconcile", t.space(q.View), encode(map[string]any{
		"member": q.Member.String(), "view": t.view(q.View), "upto": min(q.Upto, maxInt), "tokens": list(q.Tokens),
	}))
	if err != nil {
		return coord.Reconciled{}, fmt.Errorf("reconcile %s: %w", q.Member, err)
	}
	out := coord.Reconciled{Epoch: q.View.Epoch, Freed: int(r.int(0)), Caps: map[coord.Key]int{}}
	missing := r.sub(1)
	for i := range missing.list {
		out.Missing = append(out.Missing, coord.Token(missing.int(i)))
	}
	p := r.sub(2)
	for i := 0; i+2 < len(p.list); i += 3 {
		out.Pressure = append(out.Pressure, coord.Pressure{Key: coord.Key(p.text(i)), Share: int(p.int(i + 1)), Cap: int(p.int(i + 2))})
	}
	slices.SortFunc(out.Pressure, func(a, b coord.Pressure) int { return strings.Compare(string(a.Key), string(b.Key)) })
	readCaps(out.Caps, r.sub(3))
	return out, nil
}

// occupied lists the slots of a space.
func (t table) occupied(ctx context.Context, space string, key coord.Key) ([]coord.Slot, error) {
	r, err := t.run(ctx, "occupied", space, string(key))
	if err != nil {
		return nil, err
	}
	return readSlots(r.sub(0)), nil
}

func readSlots(a answer) []coord.Slot {
	var out []coord.Slot
	for i := 0; i+5 < len(a.list); i += 6 {
		out = append(out, coord.Slot{
			Key: coord.Key(a.text(i)), N: int(a.int(i + 1)), Member: a.member(i + 2), Token: coord.Token(a.int(i + 3)),
			Epoch: coord.Epoch(a.int(i + 4)), Cap: int(a.int(i + 5)),
		})
	}
	slices.SortFunc(out, core.SlotOrder)
	return out
}

// Take implements coord.Rate.
func (t table) Take(ctx context.Context, q coord.Take) (coord.Taken, error) {
	r, err := t.run(ctx, "take", t.space(q.View), encode(map[string]any{
		"member": q.Member.String(), "view": t.view(q.View), "key": q.Key, "interval": core.Interval(q.Limit), "burst": q.Limit.Burst,
		"bound": q.ClockBound,
	}))
	if err != nil {
		return coord.Taken{}, fmt.Errorf("take from %s: %w", q.Key, err)
	}
	return coord.Taken{Epoch: q.View.Epoch, Wait: time.Duration(r.int(0)) * time.Microsecond}, nil
}
