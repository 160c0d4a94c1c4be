package rediscoord

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"deepcrawl/coord"
)

// Second has the slots and rates of epochs that a database has opened here.
type Second struct{ table }

var _ coord.Second = (*Second)(nil)

// OpenSecond names a server; nothing is sent before the first call. ErrURL.
func OpenSecond(url string, o Options) (*Second, error) {
	c, err := newClient(url, o)
	if err != nil {
		return nil, err
	}
	space := func(v coord.View) string { return epochSpace(c.prefix, v.Epoch) }
	return &Second{table{client: c, space: space, mode: modeSecond}}, nil
}

// Occupied lists the slots recorded in epoch e, of all keys when key is empty.
func (s *Second) Occupied(ctx context.Context, e coord.Epoch, key coord.Key) ([]coord.Slot, error) {
	out, err := s.occupied(ctx, epochSpace(s.prefix, e), key)
	if err != nil {
		return nil, fmt.Errorf("list slots of epoch %d: %w", e, err)
	}
	return out, nil
}

// Probe implements coord.Second. A server that may not be used answers with Eligible false and ErrIneligible, which says why.
func (s *Second) Probe(ctx context.Context) (coord.Probed, error) { return s.probe(ctx) }

func (c *client) probe(ctx context.Context) (coord.Probed, error) {
	r, err := c.run(ctx, "probe", "")
	if err != nil && (strings.Contains(err.Error(), "CLUSTERDOWN") || strings.Contains(err.Error(), "MOVED ") || strings.Contains(err.Error(), "CROSSSLOT")) {
		err = fmt.Errorf("%w: %s: %w", ErrIneligible, isCluster, err)
	}
	if err != nil {
		return coord.Probed{}, err
	}
	p := coord.Probed{Ident: coord.RedisIdent{RunID: r.text(0), ReplID: r.text(1), Stamp: uint64(r.int(2))}, Now: coord.Micros(r.int(3))}
	why := ineligible(r.text(4), r.text(5), r.text(6), r.text(7))
	if why == "" && (p.Ident.RunID == "" || p.Ident.ReplID == "") {
		why = "INFO has no run_id or master_replid, so a restart or a promotion could not be noticed"
	}
	if why != "" {
		return p, fmt.Errorf("%w: %s", ErrIneligible, why)
	}
	p.Eligible = true
	return p, nil
}

const isCluster = "it is a Redis Cluster, where one script cannot see all slots"

// ineligible says why a server may not be used, or nothing.
func ineligible(version, mode, role, policy string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	x, errX := strconv.Atoi(major)
	y, errY := strconv.Atoi(minor)
	switch {
	case errX != nil || errY != nil || x < 6 || x == 6 && y < 2:
		return "version " + version + ", needed is 6.2"
	case mode == "cluster":
		return isCluster
	case mode == "sentinel":
		return "it is a sentinel, not a server"
	case role != "master":
		return "it is a replica (role " + role + ")"
	case policy != "noeviction":
		return "maxmemory-policy is " + policy + ", which can drop slots; needed is noeviction"
	}
	return ""
}

// Seed implements coord.Second.
func (s *Second) Seed(ctx context.Context, e coord.Epoch, carried []coord.Slot) (coord.Seeded, error) {
	slots := make([][5]any, len(carried))
	for i, x := range carried {
		slots[i] = [5]any{x.Key, x.N, x.Member.String(), x.Token, x.Cap}
	}
	r, err := s.run(ctx, "seed", epochSpace(s.prefix, e), encode(map[string]any{"epoch": e, "slots": slots}))
	if err != nil {
		out := coord.Seeded{}
		if errors.Is(err, coord.ErrStale) {
			out.Guard = coord.Epoch(r.int(1))
		}
		return out, fmt.Errorf("seed epoch %d: %w", e, err)
	}
	return coord.Seeded{Ident: coord.RedisIdent{RunID: r.text(0), ReplID: r.text(1), Stamp: uint64(r.int(2))}, Guard: e}, nil
}

// Reap implements coord.Second.
func (s *Second) Reap(ctx context.Context, v coord.View, live []coord.Member, before coord.Incarnation) (int, error) {
	names := make([]string, len(live))
	for i, m := range live {
		names[i] = m.String()
	}
	r, err := s.run(ctx, "reap", s.space(v), encode(map[string]any{"view": s.view(v), "live": names, "before": before}))
	if err != nil {
		return 0, fmt.Errorf("reap: %w", err)
	}
	return int(r.int(0)), nil
}

// Forget frees what a session had that has certainly ended, in the epoch seeded last, and reports how many slots. It is what Reap
// does without waiting; safe at any time later, because no member comes back.
func (s *Second) Forget(ctx context.Context, m coord.Member) (int, error) {
	r, err := s.run(ctx, "forget", "", m.String())
	if err != nil {
		return 0, fmt.Errorf("forget %s: %w", m, err)
	}
	return int(r.int(0)), nil
}
