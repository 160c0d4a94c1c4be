package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

// statusEvery is how often --watch looks.
const statusEvery = 2 * time.Second

func (p *program) clusterStatusCommand() *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show coordination, nodes, runs, hosts and what is not as it should be",
		Flags: listFlags(
			&cli.BoolFlag{Name: "watch", Usage: "show it again every 2 seconds"},
			&cli.BoolFlag{Name: "sessions", Usage: "list sessions with their seats, claims and slots, ended ones too"},
		),
		Action: p.clusterStatus,
	}
}

// The figures have one form for commands, pages and the API.
type (
	status         = show.Cluster
	coordRow       = show.Coordination
	sessionRow     = show.Session
	statusRun      = show.ClusterRun
	hostSlots      = show.HostSlots
	fairnessRow    = show.Fairness
	clusterWarning = show.Warning
)

func (p *program) clusterStatus(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return p.withCluster(c, func(o opened) error {
		for {
			s, err := p.look(c.Context, o)
			if err != nil {
				return err
			}
			st := s.status(c.Bool("sessions"))
			if c.Bool("watch") && p.terminal && !c.Bool("json") {
				_, _ = io.WriteString(p.stdout, "\x1b[H\x1b[2J")
			}
			if c.Bool("json") {
				err = p.printJSON(st)
			} else {
				err = printStatus(p.stdout, &st, s)
			}
			if err != nil || !c.Bool("watch") {
				return err
			}
			if !pause(c.Context, statusEvery) {
				return nil
			}
		}
	})
}

// pause waits; it reports false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// status makes the figures of what was read.
func (s *seen) status(sessions bool) status {
	out := status{
		At: isoTime(s.at), Nodes: []sessionRow{}, Active: []statusRun{}, Waiting: []statusRun{}, Hosts: []hostSlots{},
		Coordination: coordRow{
			Mode: s.auth.Mode, Epoch: s.auth.Epoch, Target: s.auth.Target, Reason: s.auth.Reason, Pinned: s.auth.Pin == coord.ModeDB,
		},
		Gates: hostRows(nil, s.gates, s.at),
	}
	if s.auth.ChangedAt != 0 {
		out.Coordination.Since = isoTime(time.UnixMicro(int64(s.auth.ChangedAt)))
	}
	if text, gone := redisAway(s.liveNodes(), s.auth.Mode); text != "" {
		out.Coordination.Away, out.Coordination.AwaySince = text, isoTime(s.at.Add(-gone))
	}
	if s.leader.Member.Node != "" {
		out.Leader, out.LeaderSince = s.leader.Member.String(), isoTime(s.leader.Since())
	}
	scene := s.scene()
	for _, i := range s.sessions {
		row := newSessionRow(i, scene.Owners[i.Member.String()])
		if i.State == coord.Live && i.Role == coord.RoleNode {
			out.Nodes = append(out.Nodes, row)
		}
		if sessions {
			out.Sessions = append(out.Sessions, row)
		}
	}
	for _, w := range s.runs {
		wait := scene.WaitOf(w)
		row := statusRun{
			Run: w.Run.ID, State: w.Run.State, Tenant: w.Run.Tenant, Site: w.Run.Site, Seats: w.Occupied, Allowed: w.Allowed,
			Slots: scene.Slots[coord.RunKey(int64(w.Run.ID))].Taken, Reason: wait.Reason, Until: isoTime(wait.Until), Wait: wait,
		}
		if w.Run.State.Active() {
			out.Active = append(out.Active, row)
		} else {
			out.Waiting = append(out.Waiting, row)
		}
	}
	for key, u := range scene.Slots {
		if key.Kind() == hostKind {
			out.Hosts = append(out.Hosts, hostSlots{Host: key.Name(), Slots: u.Taken, Cap: u.Cap})
		}
	}
	slices.SortFunc(out.Hosts, func(a, b hostSlots) int {
		return cmp.Or(cmp.Compare(b.Slots, a.Slots), strings.Compare(a.Host, b.Host))
	})
	out.Fairness = s.fairness(scene)
	out.Warnings = s.warnings(out)
	return out
}

func newSessionRow(i coord.SessionInfo, load crawl.OwnerLoad) sessionRow {
	return sessionRow{
		Session: i.Member.String(), Node: string(i.Member.Node), Role: i.Role, State: i.State, AgeSeconds: i.Age.Seconds(), Version: i.Facts[factVersion],
		Host: i.Facts[factHost], PID: factNumber(i, factPID), Workers: factNumber(i, factWorkers), InFlight: factNumber(i, factInFlight),
		Seats: load.Seats, Claims: load.Claims, Slots: i.Slots, Paused: i.Facts[factPaused], Late: factNumber(i, factLate),
	}
}

func (s *seen) fairness(scene *crawl.Scene) fairnessRow {
	var f fairnessRow
	for _, i := range s.sessions {
		if i.State != coord.Live {
			continue
		}
		if d := i.Facts[factDwell]; d != "" {
			var n int
			var p50, p95, most float64
			if _, err := fmt.Sscanf(d, "%d %f %f %f", &n, &p50, &p95, &most); err == nil {
				f.Dwell.N += n
				f.Dwell.P50, f.Dwell.P95, f.Dwell.Max = max(f.Dwell.P50, p50/1e3), max(f.Dwell.P95, p95/1e3), max(f.Dwell.Max, most/1e3)
			}
		}
		if v := i.Facts[factFair]; v != "" && i.Member == s.leader.Member {
			jain, rest, _ := strings.Cut(v, " ")
			runs, starved, _ := strings.Cut(rest, " ")
			f.Jain, _ = strconv.ParseFloat(jain, 64) // another release's facts are as good as none
			f.Runs, _ = strconv.Atoi(runs)
			f.Starved = starved
		}
	}
	for _, w := range s.runs {
		if w.Run.State != storage.RunCrawling || w.Occupied > 0 || w.Served.IsZero() {
			continue
		}
		if why := scene.WaitOf(w).Reason; why != "" && !strings.HasPrefix(why, "no free worker") {
			continue
		}
		if gap := s.at.Sub(w.Served).Seconds(); gap > f.LongestGap {
			f.LongestGap, f.GapRun = gap, int64(w.Run.ID)
		}
	}
	return f
}

const shownRows = 20

func printStatus(out io.Writer, st *status, s *seen) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	mode := string(st.Coordination.Mode)
	if st.Coordination.Target != "" && s.auth.Mode == coord.ModeDrain {
		mode += " to " + string(st.Coordination.Target)
	}
	if st.Coordination.Pinned {
		mode += " (kept there by an operator)"
	}
	if mode == "" {
		line("coordination\tnot begun: no node has joined yet")
	} else {
		line("coordination\t%s, epoch %d, since %s: %s", mode, st.Coordination.Epoch, localTime(st.Coordination.Since), clean(st.Coordination.Reason))
	}
	leader := cmp.Or(st.Leader, "none")
	if st.LeaderSince != nil {
		leader += ", since " + localTime(st.LeaderSince)
	}
	line("leader\t%s", leader)
	d, f := st.Fairness.Dwell, st.Fairness
	if d.N > 0 {
		line("dwell\tp50 %.1f s, p95 %.1f s, most %.1f s (%s in the last minute)", d.P50, d.P95, d.Max, plural(int64(d.N), "wait"))
	}
	if f.Runs > 0 {
		line("fairness\tJain %.3f over %s", f.Jain, plural(int64(f.Runs), "run"))
	}
	if f.GapRun != 0 {
		line("longest gap\t%.1f s: run %d has no worker", f.LongestGap, f.GapRun)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	sessionTable(out, "\nNODE", st.Nodes)
	if len(st.Sessions) > 0 {
		sessionTable(out, "\nSESSION", st.Sessions)
	}
	runTable(out, "\nACTIVE", st.Active)
	runTable(out, "\nWAITING", st.Waiting)
	if len(st.Hosts) > 0 {
		line("\nHOST\tSLOTS\tCAP")
		for i, h := range st.Hosts {
			if i == shownRows {
				line("and %d more\t\t", len(st.Hosts)-i)
				break
			}
			line("%s\t%d\t%d", clean(h.Host), h.Slots, h.Cap)
		}
	}
	if len(st.Gates) > 0 {
		line("\nGATE\tUNTIL\tWHY")
		for i, g := range st.Gates {
			if i == shownRows {
				line("and %d more\t\t", len(st.Gates)-i)
				break
			}
			line("%s\t%s\t%s", clean(g.Host), localTime(g.Until), clean(g.Pause))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i, warning := range st.Warnings {
		if i == 0 {
			_, _ = fmt.Fprintln(out)
		}
		_, _ = fmt.Fprintf(out, "warning: %s (%s)\n", clean(warning.Text), warning.Code)
	}
	return nil
}

func sessionTable(out io.Writer, title string, rows []sessionRow) {
	if len(rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, title+"\tROLE\tSTATE\tLAST BEAT\tVERSION\tMACHINE\tPID\tWORKERS\tSEATS\tCLAIMS\tSLOTS\tIN FLIGHT")
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%.1f s ago\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", r.Session, r.Role, r.State, r.AgeSeconds, clean(cmp.Or(r.Version, "-")),
			clean(cmp.Or(r.Host, "-")), r.PID, r.Workers, r.Seats, r.Claims, r.Slots, r.InFlight)
	}
	_ = w.Flush() // stdout's own error shows at the next write
}

func runTable(out io.Writer, title string, rows []statusRun) {
	if len(rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, title+"\tSTATE\tTENANT\tSITE\tSEATS\tIN FLIGHT\tWAITS FOR")
	for i, r := range rows {
		if i == shownRows {
			_, _ = fmt.Fprintf(w, "and %d more\t\t\t\t\t\t\n", len(rows)-i)
			break
		}
		seats := strconv.Itoa(r.Seats)
		if r.Allowed > 0 {
			seats += " of " + strconv.Itoa(r.Allowed)
		}
		_, _ = fmt.Fprintf(w, "run %d\t%s\t%s\t%s\t%s\t%d\t%s\n", r.Run, r.State, clean(r.Tenant), clean(r.Site), seats, r.Slots, clean(r.Wait.String()))
	}
	_ = w.Flush()
}
