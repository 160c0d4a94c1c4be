// Command cluster measures several deepcrawl nodes on one PostgreSQL and one Redis, and checks what is asked of a cluster. Run it
// in bench/:
//
//	go run ./cmd/cluster -scenario spread,tenants,kill,gentle
//
// Nodes, the site and the single process they are compared with are processes of their own. It exits 0 when every goal is met, 1 when
// one is not or something failed, 2 on wrong usage.
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
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	scenarios []scenario
	rounds    int
	pages     int
	root      string
	deep      string
	site      string
	json      string
	db, redis string
	timeout   time.Duration
	pprof     string
}

// result is what one round of a scenario gave.
type result struct {
	Scenario string    `json:"scenario"`
	Round    int       `json:"round"`
	Figures  []figure  `json:"figures"`
	Verdicts []verdict `json:"verdicts"`
	Evidence []string  `json:"evidence,omitempty"` // the first violations
	Series   []float64 `json:"series,omitempty"`   // pages of each second, from five before a kill on
}

type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// verdict is what became of a goal.
type verdict struct {
	Goal  string  `json:"goal"`
	Value float64 `json:"value"`
	Met   bool    `json:"met"`
}

func (r *result) figure(name string, value float64) {
	r.Figures = append(r.Figures, figure{name, value})
}

func (r *result) atLeast(name string, value, least float64) {
	r.Verdicts = append(r.Verdicts, verdict{fmt.Sprintf("%s >= %.4g", name, least), value, value >= least})
}

// clean asks for no violations.
func (r *result) clean(violations []string) {
	r.Verdicts = append(r.Verdicts, verdict{"pages missed, requested twice without a reason, made up, or over the cap <= 0", float64(len(violations)), len(violations) == 0})
	r.Evidence = violations[:min(len(violations), 10)]
}

func (r *result) met() bool {
	return !slices.ContainsFunc(r.Verdicts, func(v verdict) bool { return !v.Met })
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	met, err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
	}
	if err != nil || !met {
		os.Exit(1)
	}
}

func parse(args []string, out io.Writer) (o options, err error) {
	f := flag.NewFlagSet("cluster", flag.ContinueOnError)
	f.SetOutput(out)
	names := f.String("scenario", "all", "scenarios, comma-separated: "+strings.Join(known(), ", ")+", or all")
	f.IntVar(&o.rounds, "rounds", 1, "rounds of each scenario")
	f.IntVar(&o.pages, "pages", 0, "pages of each host; 0 takes the scenario's own")
	f.StringVar(&o.root, "root", "..", "checkout of deepcrawl")
	f.StringVar(&o.deep, "deepcrawl", "", "binary to measure instead of building one")
	f.StringVar(&o.site, "site", "", "binary of cmd/site to use instead of building one")
	f.StringVar(&o.json, "json", "", "file for the figures as JSON")
	f.StringVar(&o.db, "postgres", "postgres://postgres@127.0.0.1:5432/postgres", "PostgreSQL; a schema is made and removed")
	f.StringVar(&o.redis, "redis", "redis://127.0.0.1:6379/0", "Redis; keys get a prefix and are removed; none: coordination through the database")
	f.StringVar(&o.pprof, "profile", "", "folder for CPU profiles of the first node, taken in mid-crawl")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "limit of a single crawl")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.rounds < 1 || o.pages < 0 {
		return o, errors.New("-rounds is at least 1, -pages not negative")
	}
	for _, name := range []*string{&o.deep, &o.site, &o.pprof} {
		if *name == "" {
			continue
		}
		if *name, err = filepath.Abs(*name); err != nil {
			return o, err
		}
	}
	o.scenarios, err = choose(*names)
	return o, err
}

// run measures and prints; it reports whether all goals are met.
func run(ctx context.Context, o options, out io.Writer) (met bool, err error) {
	dir, err := os.MkdirTemp("", "deepcrawl-bench-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := build(ctx, dir, o)
	if err != nil {
		return false, err
	}
	var all []*result
	met = true
	for _, s := range o.scenarios {
		for n := range o.rounds {
			one, cancel := context.WithTimeout(ctx, 2*o.timeout)
			got := &result{Scenario: s.name, Round: n + 1}
			err := s.run(one, r, got)
			cancel()
			if err != nil {
				return false, fmt.Errorf("scenario %s: %w", s.name, err)
			}
			all = append(all, got)
			met = met && got.met()
			got.print(out, s)
		}
	}
	if o.json == "" {
		return met, nil
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return false, err
	}
	return met, os.WriteFile(o.json, append(b, '\n'), 0o600)
}

func (r *result) print(out io.Writer, s scenario) {
	fmt.Fprintf(out, "\n%s round %d: %s\n", s.name, r.Round, s.about)
	for _, f := range r.Figures {
		fmt.Fprintf(out, "  %10.4g  %s\n", f.Value, f.Name)
	}
	for _, v := range r.Verdicts {
		word := "NOT MET"
		if v.Met {
			word = "met"
		}
		fmt.Fprintf(out, "  %-8s %s: %.4g\n", word, v.Goal, v.Value)
	}
	if len(r.Series) > 0 {
		fmt.Fprintf(out, "  pages of each second: %.0f\n", r.Series)
	}
	for _, e := range r.Evidence {
		fmt.Fprintf(out, "  %s\n", e)
	}
}
