package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/internal/config"
	"deepcrawl/storage"
)

// opened is what commands about the cluster work with.
type opened struct {
	cfg   *config.Config
	store storage.Store
	coord coord.Coord
}

// withCluster opens database and coordination for one command.
func (p *program) withCluster(c *cli.Context, fn func(opened) error) error {
	cfg, err := p.settings(c)
	if err != nil {
		return err
	}
	st, err := p.open(c.Context, cfg, mustExist)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // what was changed is committed
	cl, err := p.openCluster(c.Context, cfg, mustExist)
	if err != nil {
		return err
	}
	defer func() { _ = cl.close() }()
	err = fn(opened{cfg, st, cl.coord})
	if err != nil && (isStorage(err) || errors.Is(err, coord.ErrUnavailable) || errors.Is(err, coord.ErrUnknown)) {
		return explain(cfg, err)
	}
	return err
}

// seen is the cluster as read at one moment.
type seen struct {
	at       time.Time
	auth     coord.Authority
	server   coord.Ident
	leader   coord.Held
	sessions []coord.SessionInfo
	gates    []coord.Gate
	slots    []coord.Slot
	loads    []storage.OwnerLoad
	bans     []storage.Ban
	runs     []storage.Waiting
}

// unfinishedShown bounds the runs that are looked at together.
const unfinishedShown = 1000

// look reads what decides whether runs go on.
func (p *program) look(ctx context.Context, o opened) (*seen, error) {
	s := &seen{at: p.now()}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"read the authority", func() (err error) { s.auth, s.server, err = o.coord.Authority(ctx); return err }},
		{"read the leader", func() (err error) { s.leader, err = o.coord.Holder(ctx, crawl.LeaderLease); return err }},
		{"list sessions", func() (err error) { s.sessions, err = o.coord.Sessions(ctx); return err }},
		{"list gates", func() (err error) { s.gates, err = o.coord.Gates(ctx); return err }},
		{"list slots", func() (err error) {
			s.slots, err = o.coord.Occupied(ctx, "")
			if s.auth.Mode == coord.ModeRedis && (errors.Is(err, coord.ErrUnavailable) || errors.Is(err, coord.ErrUnknown)) {
				return nil // a Redis that the cluster is about to leave must not hide the rest
			}
			return err
		}},
		{"count claims", func() (err error) { s.loads, err = o.store.Claims(ctx); return err }},
		{"list bans", func() (err error) { s.bans, err = o.store.Bans(ctx); return err }},
		{"list unfinished runs", func() (err error) { s.runs, err = o.store.Unfinished(ctx, unfinishedShown); return err }},
	} {
		if err := step.do(); err != nil {
			return nil, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return s, nil
}

// scene puts what was read into the terms of package crawl.
func (s *seen) scene() *crawl.Scene {
	out := &crawl.Scene{
		Now: s.at, Gates: map[string]crawl.Wait{}, Bans: map[string]string{}, Slots: map[coord.Key]crawl.Usage{},
		Live: map[string]crawl.Session{}, Owners: map[string]crawl.OwnerLoad{},
	}
	if s.auth.Mode == coord.ModeDrain {
		out.Halted = "it changes hands (" + s.auth.Reason + ")"
	}
	for _, g := range s.gates {
		if g.Key.Kind() == hostKind {
			out.Gates[g.Key.Name()] = crawl.Wait{Reason: g.Reason, Until: s.at.Add(g.For)}
		}
	}
	for _, b := range s.bans {
		out.Bans[b.Host] = b.Reason
	}
	for _, slot := range s.slots {
		u := out.Slots[slot.Key]
		u.Taken++
		if u.Cap == 0 || slot.Cap > 0 && slot.Cap < u.Cap {
			u.Cap = slot.Cap
		}
		out.Slots[slot.Key] = u
	}
	for _, i := range s.sessions {
		if i.State == coord.Live {
			out.Live[i.Member.String()] = crawl.Session{
				Node: string(i.Member.Node), Role: i.Role, Age: i.Age, Workers: factNumber(i, factWorkers), Paused: i.Facts[factPaused],
			}
		}
	}
	for _, l := range s.loads {
		out.Owners[string(l.Owner)] = crawl.OwnerLoad{Claims: l.Claims, Seats: l.Seats}
	}
	return out
}

// hostKind is the kind of the keys of hosts.
const hostKind = "host"

// Names of the facts that sessions of nodes carry.
const (
	factVersion    = "version"
	factHost       = "host"
	factPID        = "pid"
	factWorkers    = "workers"
	factRunWorkers = "run_workers"
	factCap        = "host_inflight"
	factInFlight   = "in_flight"
	factPaused     = "paused"
	factLate       = "late_refused"
	factDwell      = "dwell_ms" // p50/p95/max
	factFair       = "fairness" // of the leader: Jain and the runs that got under half their share
)

func factNumber(i coord.SessionInfo, name string) int {
	n, err := strconv.Atoi(i.Facts[name])
	if err != nil {
		return 0 // another release's session
	}
	return n
}

// waitWords are why unfinished runs wait, by run.
type waitWords map[storage.RunID]crawl.Wait

// tell puts into the run why it waits.
func (w waitWords) tell(r *storage.Run) {
	if wait, ok := w[r.ID]; ok {
		r.Reason, r.Until = wait.Reason, wait.Until
	}
}

// waitWords looks at the cluster where one of the runs is unfinished.
func (p *program) waitWords(ctx context.Context, o opened, runs ...storage.Run) (waitWords, error) {
	out := waitWords{}
	if !slices.ContainsFunc(runs, func(r storage.Run) bool { return !r.State.Terminal() }) {
		return out, nil
	}
	s, err := p.look(ctx, o)
	if err != nil {
		return nil, err
	}
	scene := s.scene()
	for _, w := range s.runs {
		out[w.Run.ID] = scene.WaitOf(w)
	}
	return out, nil
}
