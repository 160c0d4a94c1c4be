// Command bench measures deepcrawl side by side with a null crawler on
// synthetic sites, and checks what is asked of it. Run it in bench/:
//
//	go run ./cmd/bench -scenario base,latency
//
// Each crawl is a process of its own against a site that is another process.
// Figures are medians over rounds of paired runs. It exits 0 when every goal
// is met, 1 when one is not or a crawl failed, 2 on wrong usage.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

type options struct {
	scenarios  []scenario
	side, null string
	root, deep string
	json       string
	profile    string
	profileFor time.Duration
	timeout    time.Duration
	keep       bool
	postgres   string
	mysql      string
	snapshot   time.Duration
}

// report is what -json writes.
type report struct {
	Started   time.Time        `json:"started"`
	Go        string           `json:"go"`
	CPUs      int              `json:"cpus"`
	Null      string           `json:"null"` // apart or workers: who parsed in the null crawler
	Load      string           `json:"load"` // of the last minute when it started; others' work spoils figures
	Met       bool             `json:"met"`
	Scenarios []scenarioReport `json:"scenarios"`
}

type scenarioReport struct {
	Name   string             `json:"name"`
	About  string             `json:"about"`
	Heads  [2]string          `json:"heads"`
	Rounds []round            `json:"rounds"`
	Median map[string]float64 `json:"median"`
	Goals  []verdict          `json:"goals"`
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	met, err := run(ctx, o, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err != nil || !met {
		stop()
		os.Exit(1)
	}
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(out)
	names := f.String("scenario", "base,latency", "scenarios, comma-separated, see README.md; or crawls, stores or all of them")
	rounds := f.Int("rounds", 0, "rounds of each scenario; 0 takes the scenario's own")
	pages := f.Int("pages", 0, "pages of the site, or URLs queued in a store; 0 takes the scenario's own")
	inFlight := f.Int("inflight", 0, "requests in flight; 0 takes the scenario's own")
	f.StringVar(&o.side, "side", "both", "both, null or deepcrawl: which crawls to run; goals count with both only")
	f.StringVar(&o.null, "null", "workers", "workers or apart: who parses in the null crawler; workers is the textbook way, apart is faster where there is latency")
	f.StringVar(&o.root, "root", "..", "checkout of deepcrawl")
	f.StringVar(&o.deep, "deepcrawl", "", "binary to measure instead of building one")
	f.StringVar(&o.json, "json", "", "file for the figures as JSON")
	f.StringVar(&o.profile, "profile", "", "folder for CPU profiles of deepcrawl")
	f.DurationVar(&o.profileFor, "profile-for", 3*time.Second, "length of a CPU profile; it starts after one second")
	f.DurationVar(&o.timeout, "timeout", 20*time.Minute, "limit of a single crawl")
	slice := f.Duration("slice", 0, "how long a store is worked at a time; 0 takes the scenario's own")
	f.DurationVar(&o.snapshot, "snapshot-for", 10*time.Minute, "how long scenario snapshot holds the snapshot")
	f.StringVar(&o.postgres, "postgres", "postgres://postgres@127.0.0.1:5432/postgres", "PostgreSQL server, an account that may make databases")
	f.StringVar(&o.mysql, "mysql", "mysql://root@127.0.0.1:3306/", "MariaDB server, an account that may make databases")
	f.BoolVar(&o.keep, "keep", false, "keep the built binaries and print where they are")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.side != "both" && o.side != "null" && o.side != "deepcrawl":
		return o, fmt.Errorf("-side %q: allowed are both, null and deepcrawl", o.side)
	case o.null != "apart" && o.null != "workers":
		return o, fmt.Errorf("-null %q: allowed are workers and apart", o.null)
	case *rounds < 0 || *pages < 0 || *inFlight < 0 || *slice < 0:
		return o, errors.New("-rounds, -pages, -inflight and -slice are not negative")
	case o.snapshot < time.Second:
		return o, errors.New("-snapshot-for is at least 1s")
	case o.profile != "" && o.deep != "":
		return o, errors.New("-profile needs a build of its own; leave -deepcrawl out")
	}
	chosen, err := choose(*names)
	for i := range chosen {
		s := &chosen[i]
		if *rounds > 0 {
			s.Rounds = *rounds
		}
		if *pages > 0 {
			s.Site.Pages = *pages
		}
		if *inFlight > 0 {
			s.InFlight = *inFlight
		}
		if *pages > 0 && s.Store != nil {
			s.Queued = *pages
		}
		if *slice > 0 {
			s.Slice = *slice
		}
	}
	o.scenarios = chosen
	return o, err
}

// run measures the scenarios and prints tables; it reports whether all goals are met.
func run(ctx context.Context, o options, out io.Writer) (met bool, err error) {
	dir, err := os.MkdirTemp("", "deepcrawl-bench-")
	if err != nil {
		return false, err
	}
	if o.keep {
		fmt.Fprintln(os.Stderr, "bench: binaries are kept in", dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	if o.profile != "" {
		if o.profile, err = filepath.Abs(o.profile); err == nil {
			err = os.MkdirAll(o.profile, 0o750)
		}
		if err != nil {
			return false, err
		}
	}
	if o.deep != "" {
		if o.deep, err = filepath.Abs(o.deep); err != nil {
			return false, err
		}
	}
	r := &runner{dir: dir, deep: o.deep, say: os.Stderr}
	if slices.ContainsFunc(o.scenarios, func(s scenario) bool { return s.Store == nil }) {
		if err := r.build(ctx, o.root, o.profile, o.side != "null"); err != nil {
			return false, err
		}
	}
	r.profile, r.profileFor, r.nullWorkers = o.profile, o.profileFor, o.null == "workers"
	r.servers = o.servers()

	rep := report{Started: time.Now(), Go: runtime.Version(), CPUs: runtime.NumCPU(), Null: o.null, Load: load(), Met: true}
	fmt.Fprintf(out, "%d CPUs shared with the site, %s, load %s at the start\n", rep.CPUs, rep.Go, rep.Load)
	for _, s := range o.scenarios {
		sr := scenarioReport{Name: s.Name, About: s.String(), Heads: s.Heads}
		if s.Store != nil {
			sr.Rounds, err = r.store(ctx, s, o)
		} else {
			sr.Rounds, err = r.crawls(ctx, s, o)
		}
		if err != nil {
			return false, err
		}
		sr.finish(s, o.side == "both")
		for _, v := range sr.Goals {
			rep.Met = rep.Met && v.Met
		}
		if err := sr.print(out); err != nil {
			return false, err
		}
		rep.Scenarios = append(rep.Scenarios, sr)
	}
	if o.json == "" {
		return rep.Met, nil
	}
	b, err := json.MarshalIndent(rep, "", "  ")
	if err != nil {
		return false, err
	}
	return rep.Met, os.WriteFile(o.json, append(b, '\n'), 0o600)
}

// crawls runs the rounds of a scenario.
func (r *runner) crawls(ctx context.Context, s scenario, o options) (rounds []round, err error) {
	for n := range s.Rounds {
		one, cancel := context.WithTimeout(ctx, 2*o.timeout)
		got, err := r.round(one, s, n, s.Paired && o.side != "deepcrawl" || o.side == "null", o.side != "null")
		cancel()
		if err != nil {
			return nil, err
		}
		rounds = append(rounds, got)
	}
	return rounds, nil
}

// load is the machine's load of the last minute, "unknown" where there is no /proc.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(b), " ")
	return one
}

// finish adds medians and, when asked for, the verdicts on the goals.
func (sr *scenarioReport) finish(s scenario, goals bool) {
	sr.Median = map[string]float64{}
	for _, m := range []metric{speedRatio, cpuRatio, idealShare, tenthRatio, peakMB} {
		if vs := values(m, sr.Rounds); len(vs) > 0 {
			sr.Median[m.Name] = median(vs)
		}
	}
	if !goals {
		return
	}
	for _, g := range s.Goals {
		sr.Goals = append(sr.Goals, g.judge(sr.Rounds))
	}
}

// print writes the table of rounds, the verdicts and the first violations.
func (sr *scenarioReport) print(out io.Writer) error {
	fmt.Fprintf(out, "\n%s\n", sr.About)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	cols := columns(sr.Rounds, sr.Heads)
	line := func(name string, cell func(column) string) {
		cells := []string{name}
		for _, c := range cols {
			cells = append(cells, cell(c))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	line("round", func(c column) string { return c.head })
	for i, r := range sr.Rounds {
		line(fmt.Sprint(i+1), func(c column) string { return c.cell(r) })
	}
	if len(sr.Rounds) > 1 {
		line("median", func(c column) string { return fmt.Sprintf(c.format, median(values(c.of, sr.Rounds))) })
		line("max/min", func(c column) string { return fmt.Sprintf("%.2f", spread(values(c.of, sr.Rounds))) })
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, v := range sr.Goals {
		word := "NOT MET"
		if v.Met {
			word = "met"
		}
		value := fmt.Sprintf("%.3g", v.Value)
		if !v.Known {
			value = "unknown"
		}
		fmt.Fprintf(out, "  %-8s %s: %s\n", word, v.Goal, value)
	}
	for i, r := range sr.Rounds {
		for _, s := range []*side{r.Null, r.Deep} {
			if s == nil {
				continue
			}
			for _, e := range s.Evidence {
				fmt.Fprintf(out, "  round %d: %s\n", i+1, e)
			}
		}
	}
	return nil
}
