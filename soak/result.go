package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deepcrawl/soak/chaos"
	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
)

// Result is what a soak found.
type Result struct {
	OK         bool        `json:"ok"`
	Violations []Violation `json:"violations"`
	Checks     []Check     `json:"checks"`
	Faults     []Fault     `json:"faults"`
	Figures    Figures     `json:"figures"`
	Settings   Settings    `json:"settings"`

	// For the picture.
	hits    []web.Hit
	samples []judge.Sample
	began   time.Time
}

// Violation is a finding of the judge.
type Violation struct {
	Rule   judge.Rule `json:"rule"`
	Host   string     `json:"host,omitempty"`
	Path   string     `json:"path,omitempty"`
	Agent  string     `json:"agent,omitempty"`
	At     *time.Time `json:"at,omitempty"`
	Detail string     `json:"detail"`
	Hits   []uint64   `json:"hits,omitempty"` // numbers in the site's log
	Text   string     `json:"-"`
}

// Check is a rule that was checked, with what was seen.
type Check struct {
	Rule   judge.Rule `json:"rule"`
	Means  string     `json:"means"`
	Seen   string     `json:"seen"`
	Broken int        `json:"broken"` // violations
}

// Figures of a soak.
type Figures struct {
	Pages         int            `json:"pages"`
	Requests      int            `json:"requests"`
	Seconds       float64        `json:"seconds"`
	PerSecond     float64        `json:"requests_per_second"`
	PeakInFlight  map[string]int `json:"peak_in_flight"` // by host
	Cap           int            `json:"cap"`
	Repeats       int            `json:"repeats"`
	Explained     int            `json:"repeats_explained"`
	LateRefused   int            `json:"late_results_refused"`
	Leaders       int            `json:"leaders"`
	Slowest       float64        `json:"slowest_recovery_seconds"`
	AllowedSlow   float64        `json:"allowed_recovery_seconds"`
	Silence       float64        `json:"longest_silence_seconds"`
	PeakMemory    int64          `json:"peak_memory_bytes"`
	PeakSeats     int            `json:"peak_seats"`
	LeastShare    float64        `json:"least_throughput_share"`
	AllowedLeast  float64        `json:"allowed_throughput_share"`
	Modes         []string       `json:"coordination_modes"`
	FaultsByKind  map[string]int `json:"faults_by_kind"`
	LogLines      int            `json:"log_lines"`
	Acts          int            `json:"leader_acts"`
	Samples       int            `json:"samples"`
	SiteSeenPages int            `json:"site_pages"`
}

// Settings a soak ran with, so that it can be made again.
type Settings struct {
	Nodes           int      `json:"nodes"`
	Workers         int      `json:"workers"`
	Runs            int      `json:"runs"`
	Pages           int      `json:"pages"`
	Database        string   `json:"database"` // its kind
	Coord           string   `json:"coord"`
	LatencyMS       int64    `json:"latency_ms"`
	KillSeconds     float64  `json:"kill_seconds"`
	Chaos           []string `json:"chaos"`
	Seed            uint64   `json:"seed"`
	Times           string   `json:"times"`
	ProductionTimes bool     `json:"production_times"`
	Folder          string   `json:"folder,omitempty"` // kept, and so are the next two
	Kept            string   `json:"kept_database,omitempty"`
	KeptPrefix      string   `json:"kept_redis_prefix,omitempty"`
}

// Bounds of a node that are the same for every soak.
const (
	memoryBound = 512 << 20
	// commitBound is how long a result may wait to be stored on a busy machine.
	commitBound = 3 * time.Second
	// lateBound is how late a busy machine may make a process.
	lateBound = 300 * time.Millisecond
	// leastShare is the share of the usual throughput, scaled to the nodes left, that a site must see.
	leastShare = 0.25
)

// conclude collects the evidence and has it judged.
func (t *trial) conclude(ctx context.Context, failure error) (*Result, error) {
	t.tell("judging")
	e := judge.Evidence{Hits: t.site.Hits(), Expected: t.site.Expected, Tariffs: map[string]judge.Tariff{}, Samples: t.samples}
	var err error
	if e.Stored, err = t.db.Runs(ctx); err != nil {
		return nil, err
	}
	for _, tenant := range t.order.Tenants {
		e.Tariffs[tenant.Name] = judge.Tariff{Parallel: tenant.Parallel, Workers: tenant.Workers}
	}
	for i, r := range t.order.Runs {
		o := judge.Ordered{ID: t.ids[i], Tenant: r.Tenant, Agent: r.Agent, MaxPages: r.MaxPages, Seats: t.o.Nodes * t.o.Workers, PerSecond: r.PerSecond}
		e.Ordered = append(e.Ordered, o)
	}
	for _, n := range t.nodes {
		e.Lives = append(e.Lives, n.endings()...)
		lines, err := readLog(n)
		if err != nil {
			return nil, err
		}
		e.Log = append(e.Log, lines...)
	}
	slices.SortStableFunc(e.Log, func(a, b judge.LogLine) int { return a.At.Compare(b.At) })
	if e.Acts, err = t.db.Acts(ctx); err != nil {
		return nil, err
	}
	for _, f := range t.faults {
		span := judge.Span{From: f.At, To: f.To}
		switch {
		case f.Kind == chaos.DBRestart, f.Kind == chaos.DBPartition:
			e.Outages = append(e.Outages, judge.Outage{Span: span, Node: f.Node})
		case strings.HasPrefix(string(f.Kind), "redis-"):
			e.Switches = append(e.Switches, span)
		case f.Kind == chaos.Term, f.Kind == chaos.Clock:
			e.Shakes = append(e.Shakes, span)
		}
	}
	terms := judge.Terms{
		Cap: t.o.HostCap, Death: t.o.Times.Death, Beat: t.o.Times.Beat, Deadline: t.o.Times.Deadline, Commit: commitBound, Late: lateBound,
		LeastShare: leastShare,
		// A node's pools of connections to the database, and one connection for each place at each host and agent that is kept idle.
		Bounds: judge.Bounds{Memory: memoryBound, Sockets: 40 + 2*t.o.HostCap*2*len(t.order.Runs), Goroutines: 40},
	}
	if t.o.Keep {
		if err := t.keepLog(); err != nil {
			return nil, err
		}
	}
	v := judge.Judge(e, terms)
	if failure != nil {
		v.Violations = append(v.Violations, judge.Violation{Rule: judge.RuleRun, Detail: failure.Error() + ": " + states(t.samples)})
	}
	if t.o.Coord == "redis" && !slices.ContainsFunc(t.samples, func(s judge.Sample) bool { return s.Mode == "redis" }) {
		v.Violations = append(v.Violations, judge.Violation{Rule: judge.RuleRun, Detail: "coordination was never on Redis, though it was asked for"})
	}
	return t.result(v, e, terms), nil
}

// keepLog leaves the site's log in the folder that is kept.
func (t *trial) keepLog() error {
	f, err := os.Create(filepath.Join(t.ground.dir, "hits.jsonl"))
	if err != nil {
		return fmt.Errorf("keep the site's log: %w", err)
	}
	if err := t.site.WriteLog(f); err != nil {
		_ = f.Close() // the first error is the one to tell
		return err
	}
	return f.Close()
}

func readLog(n *node) ([]judge.LogLine, error) {
	f, err := os.Open(n.log)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("log of node %s: %w", n.name, err)
	}
	defer f.Close()
	return judge.ReadNodeLog(n.name, f)
}

// states says how the runs stood last.
func states(samples []judge.Sample) string {
	if len(samples) == 0 {
		return "the database never answered"
	}
	count := map[string]int{}
	for _, st := range samples[len(samples)-1].States {
		count[st]++
	}
	return words(count)
}

func words(count map[string]int) string {
	keys := make([]string, 0, len(count))
	for k := range count {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s %d", k, count[k])
	}
	return strings.Join(keys, ", ")
}

func (t *trial) result(v judge.Verdict, e judge.Evidence, terms judge.Terms) *Result {
	r := &Result{
		OK: len(v.Violations) == 0, Violations: []Violation{}, Faults: append([]Fault{}, t.faults...), hits: e.Hits, samples: t.samples, began: t.began,
		Settings: Settings{
			Nodes: t.o.Nodes, Workers: t.o.Workers, Runs: t.o.Runs, Pages: t.o.Pages, Coord: t.o.Coord, LatencyMS: t.o.Latency.Milliseconds(),
			KillSeconds: t.o.Kill.Seconds(), Chaos: []string{}, Seed: t.o.Seed, Times: t.o.Times.String(),
		},
		Figures: Figures{
			Pages: v.Figures.Pages, Requests: v.Figures.Requests, Seconds: v.Figures.Seconds, PerSecond: v.Figures.PerSecond,
			PeakInFlight: v.Figures.Peak, Cap: t.o.HostCap, Repeats: v.Figures.Repeats, Explained: v.Figures.Explained,
			LateRefused: v.Figures.Refused, Leaders: v.Figures.Leaders, Slowest: v.Figures.Slowest.Seconds(), AllowedSlow: terms.Recovery().Seconds(),
			Silence: v.Figures.Silence.Seconds(), PeakMemory: v.Figures.PeakMemory, PeakSeats: v.Figures.PeakSeats, LeastShare: v.Figures.Worst, AllowedLeast: leastShare,
			FaultsByKind: map[string]int{}, LogLines: len(e.Log), Acts: len(e.Acts), Samples: len(t.samples), SiteSeenPages: t.wanted,
		},
	}
	r.Settings.Database, _, _ = strings.Cut(t.ground.dsn, ":")
	if t.o.Keep {
		r.Settings.Folder, r.Settings.Kept, r.Settings.KeptPrefix = t.ground.dir, t.ground.name(), t.ground.prefix
	}
	for _, k := range t.o.Chaos {
		r.Settings.Chaos = append(r.Settings.Chaos, string(k))
	}
	if t.o.ChaosAll {
		r.Settings.Chaos = append(r.Settings.Chaos, chaos.All)
	}
	for _, f := range t.faults {
		r.Figures.FaultsByKind[string(f.Kind)]++
	}
	for _, s := range t.samples {
		if !slices.Contains(r.Figures.Modes, s.Mode) {
			r.Figures.Modes = append(r.Figures.Modes, s.Mode)
		}
	}
	for _, x := range v.Violations {
		out := Violation{Rule: x.Rule, Host: x.Host, Path: x.Path, Agent: x.Agent, Detail: x.Detail, Hits: x.Hits, Text: x.String()}
		if !x.At.IsZero() {
			out.At = &x.At
		}
		r.Violations = append(r.Violations, out)
	}
	r.Checks = r.checks()
	return r
}

// checks lists every rule with what was seen.
func (r *Result) checks() []Check {
	f := &r.Figures
	broken := map[judge.Rule]int{}
	for _, v := range r.Violations {
		broken[v.Rule]++
	}
	peak := 0
	for _, n := range f.PeakInFlight {
		peak = max(peak, n)
	}
	unmeasured := func(ok bool, s string) string {
		if !ok {
			return "its share not measured: no quiet time was long enough"
		}
		return s
	}
	all := []Check{
		{Rule: judge.RuleRun, Means: "every run is done, with no work left", Seen: fmt.Sprintf("%d runs", r.Settings.Runs+2)},
		{Rule: judge.RuleMissed, Means: "every page was seen by every run", Seen: fmt.Sprintf("%d pages", f.Pages)},
		{Rule: judge.RuleLedger, Means: "every URL is in one state that the site explains", Seen: fmt.Sprintf("%d URLs a run", f.SiteSeenPages)},
		{Rule: judge.RuleRepeated, Means: "no page was requested twice without a reason", Seen: fmt.Sprintf("%d repeats, %d in flight at a dead node", f.Repeats, f.Explained)},
		{Rule: judge.RuleUnexpected, Means: "no path was made up", Seen: fmt.Sprintf("%d requests", f.Requests)},
		{Rule: judge.RuleCap, Means: "in flight to a host never above the cap", Seen: fmt.Sprintf("peak %d of %d", peak, f.Cap)},
		{Rule: judge.RuleDisallowed, Means: "robots.txt was kept", Seen: fmt.Sprintf("%d requests", f.Requests)},
		{Rule: judge.RuleGate, Means: "no start while a host had asked for a pause", Seen: fmt.Sprintf("%d pauses", r.pauses())},
		{Rule: judge.RuleRate, Means: "the shared rate was kept in every window", Seen: "2 runs at 1 a second: by profile, and by crawl-delay"},
		{Rule: judge.RuleTariff, Means: "active runs and seats within the tariff", Seen: fmt.Sprintf("%d moments, up to %d seats", f.Samples, f.PeakSeats)},
		{Rule: judge.RuleLeaders, Means: "one leader at a time, with growing fences", Seen: fmt.Sprintf("the lead was taken %d times, %d acts", f.Leaders, f.Acts)},
		{Rule: judge.RuleLog, Means: "no errors in the nodes' logs", Seen: fmt.Sprintf("%d lines", f.LogLines)},
		{Rule: judge.RuleRecovery, Means: "what a dead node had returns in time", Seen: fmt.Sprintf("slowest %.1f s of %.0f s allowed", f.Slowest, f.AllowedSlow)},
		{Rule: judge.RuleStall, Means: "throughput with the nodes left, and no long silence", Seen: fmt.Sprintf("silent for %.1f s at most, %.0f s allowed; ", f.Silence, f.AllowedSlow) +
			unmeasured(f.LeastShare > 0, fmt.Sprintf("least %.2f of the usual, %.2f allowed", f.LeastShare, f.AllowedLeast))},
		{Rule: judge.RuleMemory, Means: "memory of a node within the bound", Seen: fmt.Sprintf("peak %d MB of %d", f.PeakMemory>>20, memoryBound>>20)},
		{Rule: judge.RuleLeak, Means: "nothing left open without work", Seen: "goroutines and sockets"},
		{Rule: judge.RuleExit, Means: "nodes end well when asked", Seen: fmt.Sprintf("%d nodes", r.Settings.Nodes)},
	}
	for i := range all {
		all[i].Broken = broken[all[i].Rule]
	}
	return all
}

func (r *Result) pauses() (n int) {
	for _, h := range r.hits {
		if !h.Gate.IsZero() {
			n++
		}
	}
	return n
}

// mostShown bounds the violations printed of one rule; JSON has all.
const mostShown = 5

// Print writes the table and the violations for people.
func (r *Result) Print(w io.Writer) error {
	var b strings.Builder
	f := &r.Figures
	fmt.Fprintf(&b, "%d pages in %.1f s, %.0f requests/s, %d nodes, %s, seed %d\n", f.Pages, f.Seconds, f.PerSecond, r.Settings.Nodes, r.Settings.Database, r.Settings.Seed)
	faults := "none"
	if len(r.Faults) > 0 {
		faults = words(f.FaultsByKind)
	}
	fmt.Fprintf(&b, "faults: %s    coordination: %s\n\n", faults, strings.Join(f.Modes, ", "))
	for _, c := range r.Checks {
		mark := "ok    "
		if c.Broken > 0 {
			mark = "BROKEN"
		}
		fmt.Fprintf(&b, "%s  %-10s  %-50s  %s\n", mark, c.Rule, c.Means, c.Seen)
	}
	shown := map[judge.Rule]int{}
	for _, v := range r.Violations {
		if shown[v.Rule]++; shown[v.Rule] == 1 {
			b.WriteByte('\n')
		}
		switch n := shown[v.Rule]; {
		case n <= mostShown:
			fmt.Fprintln(&b, v.Text)
		case n == mostShown+1:
			fmt.Fprintf(&b, "%s: and more; --json lists all\n", v.Rule)
		}
	}
	if r.OK {
		b.WriteString("\nno violations\n")
	} else {
		fmt.Fprintf(&b, "\n%d violations\n", len(r.Violations))
	}
	if r.Settings.Folder != "" {
		fmt.Fprintf(&b, "kept: %s, %s\n", r.Settings.Folder, r.Settings.Kept)
		if r.Settings.KeptPrefix != "" {
			fmt.Fprintf(&b, "kept: keys of Redis that begin with %s\n", r.Settings.KeptPrefix)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
