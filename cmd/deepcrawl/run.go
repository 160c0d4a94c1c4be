package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/crawl"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

func (p *program) runCommand() *cli.Command {
	flags := func(more ...cli.Flag) []cli.Flag {
		return append(append(settingFlags(sharedKeys()...), jsonFlag()), more...)
	}
	change := func(name, usage string, do func(ctx context.Context, st storage.Store, id storage.RunID) (string, error)) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: "RUN...", Flags: flags(),
			Action: func(c *cli.Context) error { return p.changeRuns(c, do) },
		}
	}
	return &cli.Command{
		Name: "run", Usage: "list, show and steer runs",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list runs, newest first",
				Flags: flags(
					&cli.IntFlag{Name: "limit", Usage: "show at most `N` runs", Value: 50},
					&cli.StringSliceFlag{Name: "state", Usage: "only runs in `STATE`; may be repeated"},
					&cli.StringFlag{Name: "tenant", Usage: "only runs of `TENANT`"},
				),
				Action: p.runList,
			},
			p.runAddCommand(),
			{Name: "show", Usage: "show one run", ArgsUsage: "RUN", Flags: flags(), Action: p.runShow},
			p.runWhyCommand(),
			change("pause", "stop working on runs until they are resumed", pauseRun),
			change("resume", "let paused runs go on", resumeRun),
			change("cancel", "end runs for good; what was stored stays", cancelRun),
			change("delete", "delete runs and all that was stored of them", deleteRunForGood),
		},
	}
}

// runRow is a run in JSON.
type runRow = show.Run

// runDetail is run show in JSON.
type runDetail = show.RunDetail

func newRunRow(r storage.Run, l storage.Ledger) runRow { return show.NewRun(r, l) }

func (p *program) runList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	filter := storage.RunFilter{Tenant: c.String("tenant"), Limit: c.Int("limit")}
	if filter.Limit < 1 || filter.Limit > 1000 {
		return usagef("--limit: %d is not allowed; a number from 1 to 1000 is", filter.Limit)
	}
	for _, s := range c.StringSlice("state") {
		if !slices.Contains(storage.RunStates(), storage.RunState(s)) {
			return usagef("--state: %q is not a state; allowed: %s", s, runStateWords())
		}
		filter.States = append(filter.States, storage.RunState(s))
	}
	return p.withCluster(c, func(o opened) error {
		runs, err := o.store.ListRuns(c.Context, filter)
		if err != nil {
			return fmt.Errorf("list runs: %w", err)
		}
		why, err := p.waitWords(c.Context, o, runs...)
		if err != nil {
			return err
		}
		ids := make([]storage.RunID, len(runs))
		for i := range runs {
			ids[i] = runs[i].ID
		}
		tallies, err := o.store.Tallies(c.Context, ids)
		if err != nil {
			return err
		}
		rows := make([]runRow, 0, len(runs))
		for i := range runs {
			why.tell(&runs[i])
			rows = append(rows, newRunRow(runs[i], tallies[runs[i].ID]))
		}
		if c.Bool("json") {
			return p.printJSON(rows)
		}
		if len(rows) == 0 {
			p.note("no runs; start one with: deepcrawl crawl URL")
			return nil
		}
		w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "RUN\tSTATE\tTENANT\tDISCOVERED\tFETCHED\tFAILED\tEXCLUDED\tCREATED\tURL\tREASON")
		for i, r := range rows {
			_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", r.Run, r.State, r.Tenant, r.Discovered, r.Fetched, r.Failed, r.Excluded,
				stamp(runs[i].Created), clip(clean(r.URL), 60), clean(waits(runs[i])))
		}
		return w.Flush()
	})
}

func runStateWords() string {
	var words []string
	for _, s := range storage.RunStates() {
		words = append(words, string(s))
	}
	return strings.Join(words, ", ")
}

// waits is why a run waits and until when, for people.
func waits(r storage.Run) string {
	if r.State.Terminal() {
		return r.Reason
	}
	return crawl.Wait{Reason: r.Reason, Until: r.Until}.String()
}

func (p *program) runShow(c *cli.Context) error {
	return p.withCluster(c, func(o opened) error {
		st := o.store
		id, err := oneRun(c, st)
		if err != nil {
			return err
		}
		r, l, err := loadRun(c.Context, st, id)
		if err != nil {
			return err
		}
		why, err := p.waitWords(c.Context, o, r)
		if err != nil {
			return err
		}
		why.tell(&r)
		if c.Bool("json") {
			spec, err := crawl.DecodeSpec(r.Spec)
			if err != nil {
				return err
			}
			return p.printJSON(show.NewRunDetail(r, l, spec))
		}
		return p.summarize(c.Context, st, r, l, summaryOf{resume: resumeCommand(c, id), db: c.String("db")})
	})
}

func loadRun(ctx context.Context, st storage.Store, id storage.RunID) (storage.Run, storage.Ledger, error) {
	r, err := st.Run(ctx, id)
	if err != nil {
		return storage.Run{}, storage.Ledger{}, ofRun(id, err)
	}
	l, err := st.Ledger(ctx, id)
	if err != nil {
		return storage.Run{}, storage.Ledger{}, ofRun(id, err)
	}
	return r, l, nil
}

// ofRun says which run an error is about.
func ofRun(id storage.RunID, err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return usagef("run %d: no such run; deepcrawl run list shows them", id)
	}
	if strings.HasPrefix(err.Error(), fmt.Sprintf("run %d: ", id)) {
		return err // the store has said so
	}
	return fmt.Errorf("run %d: %w", id, err)
}

// parseRun reads a run's number, or "last" for the newest.
func parseRun(ctx context.Context, st storage.Store, name, arg string) (storage.RunID, error) {
	if arg == "last" {
		runs, err := st.ListRuns(ctx, storage.RunFilter{Limit: 1})
		if err != nil {
			return 0, fmt.Errorf("list runs: %w", err)
		}
		if len(runs) == 0 {
			return 0, usagef("%s: there is no run yet; start one with: deepcrawl crawl URL", name)
		}
		return runs[0].ID, nil
	}
	id, err := strconv.ParseInt(arg, 10, 64)
	if err != nil || id < 1 {
		return 0, usagef("%s: %q is not a run; allowed: its number, or last", name, arg)
	}
	return storage.RunID(id), nil
}

func oneRun(c *cli.Context, st storage.Store) (storage.RunID, error) {
	switch c.NArg() {
	case 0:
		return 0, usagef("%s: which run? give its number, or last", c.Command.Name)
	case 1:
		return parseRun(c.Context, st, c.Command.Name, c.Args().First())
	}
	return 0, usagef("%s: unexpected argument; %s takes one run", c.Args().Get(1), c.Command.Name)
}

// changeRuns does one thing to each run named. All are looked up before the first is changed.
func (p *program) changeRuns(c *cli.Context, do func(context.Context, storage.Store, storage.RunID) (string, error)) error {
	if !c.Args().Present() {
		return usagef("%s: which run? give its number, or last", c.Command.Name)
	}
	return p.withStore(c, mustExist, func(st storage.Store) error {
		var ids []storage.RunID
		for _, arg := range c.Args().Slice() {
			id, err := parseRun(c.Context, st, c.Command.Name, arg)
			if err != nil {
				return err
			}
			if _, err := st.Run(c.Context, id); err != nil {
				return ofRun(id, err)
			}
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		type row struct {
			Run   storage.RunID `json:"run"`
			State string        `json:"state"`
		}
		rows := []row{}
		for _, id := range ids {
			state, err := do(c.Context, st, id)
			if err != nil {
				return ofRun(id, err)
			}
			rows = append(rows, row{id, state})
			if !c.Bool("json") {
				_, _ = fmt.Fprintf(p.stdout, "run %d: %s\n", id, state)
			}
		}
		if c.Bool("json") {
			return p.printJSON(rows)
		}
		return nil
	})
}

func unfinished() []storage.RunState {
	return []storage.RunState{storage.RunQueued, storage.RunPreparing, storage.RunCrawling, storage.RunFinishing}
}

func pauseRun(ctx context.Context, st storage.Store, id storage.RunID) (string, error) {
	r, err := st.SetRunState(ctx, id, unfinished(), storage.RunPaused, "paused by hand", time.Time{})
	return string(r.State), err
}

func resumeRun(ctx context.Context, st storage.Store, id storage.RunID) (string, error) {
	r, err := st.Run(ctx, id)
	if err != nil {
		return "", err
	}
	if r.State != storage.RunPaused {
		return "", fmt.Errorf("it is %s, not paused: %w", r.State, storage.ErrState)
	}
	r, err = st.SetRunState(ctx, id, []storage.RunState{storage.RunPaused}, resumeTo(r), "", time.Time{})
	return string(r.State), err
}

func resumeTo(r storage.Run) storage.RunState {
	if r.Resume == "" {
		return storage.RunQueued
	}
	return r.Resume
}

func cancelRun(ctx context.Context, st storage.Store, id storage.RunID) (string, error) {
	r, err := st.SetRunState(ctx, id, append(unfinished(), storage.RunPaused), storage.RunCancelled, "cancelled by hand", time.Time{})
	return string(r.State), err
}

// deleteBatch bounds one step of a deletion: small enough that claims of other runs hardly wait for it.
const deleteBatch = 2000

func deleteRun(ctx context.Context, st storage.Store, id storage.RunID) (string, error) {
	for {
		done, err := st.DeleteRun(ctx, id, deleteBatch)
		if errors.Is(err, storage.ErrState) {
			return "", fmt.Errorf("it is being worked on; pause or cancel it first: %w", err)
		}
		if err != nil {
			return "", err
		}
		if done {
			return "deleted", nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
}

// deleteRunForGood also gives the room back to the system, where that is the client's work.
func deleteRunForGood(ctx context.Context, st storage.Store, id storage.RunID) (string, error) {
	state, err := deleteRun(ctx, st, id)
	if c, ok := st.(interface{ Compact(context.Context) error }); ok && err == nil {
		if err := c.Compact(ctx); err != nil {
			return "", fmt.Errorf("it is deleted, but its room was not given back: %w", err)
		}
	}
	return state, err
}

func statusWords(m map[int]int64) map[string]int64 { return show.StatusWords(m) }

func reasons(m map[storage.Reason]int64) map[storage.Reason]int64 { return show.Reasons(m) }
