package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/crawl/scope"
	"deepcrawl/internal/config"
	"deepcrawl/internal/proclock"
	"deepcrawl/storage"
)

func (p *program) crawlCommand() *cli.Command {
	keys := append(sharedKeys(), config.KeyUserAgent, config.KeyContact, config.KeyAllowPrivate, config.KeyBindAddr,
		config.KeyHostInflight, config.KeySeenMemory, config.KeyNodeID)
	return &cli.Command{
		Name: "crawl", Usage: "crawl a site to its end, on this machine", ArgsUsage: "URL...",
		Description: "Ctrl-C stops after the requests in flight and keeps the run resumable; a second one stops at once.",
		Flags: append(append(specFlags(),
			&cli.StringFlag{Name: "resume", Usage: "go on with `RUN` (its number, or last)"},
			&cli.BoolFlag{Name: "json", Usage: "print one JSON object at the end instead of the summary"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no progress and no summary"},
		), settingFlags(keys...)...),
		Action: p.crawl,
	}
}

// specFlags are the flags that make the definition of a run.
func specFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "max-pages", Usage: "request at most `N` URLs (0: no limit)"},
		&cli.IntFlag{Name: "depth", Usage: "follow at most `N` links away from the start (0: no limit)"},
		&cli.DurationFlag{Name: "time", Usage: "stop after this long, such as 30m (0: no limit)", DefaultText: "0"},
		&cli.StringFlag{Name: "profile", Usage: "how hard to press the site: " + strings.Join(profileNames(), ", "), DefaultText: crawl.DefaultProfile},
		&cli.StringFlag{Name: "scope", Usage: "what belongs to the site: host, domain, subdomains or prefix", DefaultText: string(scope.ModeHost)},
		&cli.StringSliceFlag{Name: "include", Usage: "crawl only URLs that match `REGEXP`, searched anywhere in the URL; may be repeated"},
		&cli.StringSliceFlag{Name: "exclude", Usage: "leave out URLs that match `REGEXP`; may be repeated"},
		&cli.BoolFlag{Name: "no-sitemaps", Usage: "do not read the site's sitemaps"},
		&cli.BoolFlag{Name: "follow-nofollow", Usage: "follow links marked nofollow too"},
	}
}

func profileNames() []string {
	var names []string
	for _, f := range crawl.Profiles() {
		names = append(names, f.Name)
	}
	return names
}

// fixedOnResume are flags that would change what a run has already decided about its URLs.
var fixedOnResume = []string{"depth", "scope", "include", "exclude", "no-sitemaps", "follow-nofollow"}

func (p *program) crawl(c *cli.Context) error {
	spec, err := specOf(c)
	if err != nil {
		return err
	}
	cfg, err := p.settings(c)
	if err != nil {
		return err
	}
	if err := checkLogFile(c, cfg); err != nil {
		return err
	}
	if c.IsSet(setting(config.KeyUserAgent).Flag()) {
		spec.UserAgent = cfg.UserAgent // goes with the run, wherever it is resumed
	}
	p.tuneRuntime()
	mode := create
	if c.IsSet("resume") {
		mode = mustExist
	}
	st, err := p.open(c.Context, cfg, mode)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // everything worth keeping is committed
	cl, err := p.openCluster(c.Context, cfg, mode)
	if err != nil {
		return err
	}
	defer func() { _ = cl.close() }()
	run, err := p.startRun(c, cfg, st, cl, spec)
	if err != nil {
		if isStorage(err) {
			err = explain(cfg, err)
		}
		return err
	}
	defer func() { _ = cl.lock.Release() }()
	return p.work(c, cfg, st, cl, run)
}

// specOf makes the definition of a run from the flags; nothing has been opened yet.
func specOf(c *cli.Context) (crawl.Spec, error) {
	for _, name := range []string{"max-pages", "depth"} {
		if c.Int(name) < 0 {
			return crawl.Spec{}, usagef("--%s: %d is not allowed; a number from 0 (no limit) is", name, c.Int(name))
		}
	}
	if c.Duration("time") < 0 {
		return crawl.Spec{}, usagef("--time: %v is not allowed; a duration such as 30m is, or 0 (no limit)", c.Duration("time"))
	}
	if _, err := crawl.ParseProfile(c.String("profile")); err != nil {
		return crawl.Spec{}, usagef("--profile: %q is not allowed; allowed: %s", c.String("profile"), strings.Join(profileNames(), ", "))
	}
	mode, err := scope.ParseMode(c.String("scope"))
	if err != nil {
		return crawl.Spec{}, usagef("--scope: %q is not allowed; allowed: host, domain, subdomains or prefix", c.String("scope"))
	}
	spec := crawl.Spec{
		Scope: mode, Include: c.StringSlice("include"), Exclude: c.StringSlice("exclude"), Profile: c.String("profile"),
		MaxPages: c.Int("max-pages"), MaxDepth: c.Int("depth"), MaxTime: crawl.Duration(c.Duration("time")),
		NoSitemaps: c.Bool("no-sitemaps"), FollowNofollow: c.Bool("follow-nofollow"),
	}
	if c.IsSet("resume") {
		if c.Args().Present() {
			return crawl.Spec{}, usagef("--resume: not together with a URL; the run has its own")
		}
		for _, name := range fixedOnResume {
			if c.IsSet(name) {
				return crawl.Spec{}, usagef("--%s: cannot be changed with --resume; allowed: --max-pages, --time, --profile", name)
			}
		}
		return spec, nil
	}
	if !c.Args().Present() {
		return crawl.Spec{}, usagef("crawl: which site? give a URL such as https://example.com")
	}
	for _, arg := range c.Args().Slice() {
		spec.Seeds = append(spec.Seeds, seedOf(arg))
	}
	if err := spec.Check(); err != nil {
		return crawl.Spec{}, usagef("%s", strings.TrimPrefix(err.Error(), scope.ErrConfig.Error()+": "))
	}
	return spec, nil
}

// seedOf lets people leave out https://, as browsers do.
func seedOf(arg string) string {
	host, _, _ := strings.Cut(arg, "/")
	if !strings.Contains(arg, ":") && strings.Contains(host, ".") {
		return "https://" + arg
	}
	return arg
}

// startRun makes the run, or finds the one to go on with and makes it ready for that.
//
// The lock of the run keeps a second process from working it beside this one, and proves that the process which held it before is
// dead: what that one had is taken over at once.
func (p *program) startRun(c *cli.Context, cfg *config.Config, st storage.Store, cl *cluster, spec crawl.Spec) (storage.Run, error) {
	ctx := c.Context
	if !c.IsSet("resume") {
		profile, err := crawl.ParseProfile(spec.Profile)
		if err != nil {
			return storage.Run{}, usagef("--%v", err)
		}
		run, err := st.CreateRun(ctx, storage.NewRun{
			Tenant: storage.DefaultTenant, Site: spec.Site(), Spec: spec.Encode(), Home: "crawl", Concurrency: profile.Concurrency,
		})
		if err == nil {
			err = p.lockRun(cfg, cl, run.ID)
		}
		return run, err
	}
	id, err := parseRun(ctx, st, "--resume", c.String("resume"))
	if err != nil {
		return storage.Run{}, err
	}
	run, err := st.Run(ctx, id)
	if err != nil {
		return storage.Run{}, ofRun(id, err)
	}
	if run.State.Terminal() {
		return storage.Run{}, usagef("--resume: run %d is %s, there is nothing to go on with; deepcrawl export %d writes its pages", id, run.State, id)
	}
	if err := p.lockRun(cfg, cl, id); err != nil {
		return storage.Run{}, err
	}
	old, err := crawl.DecodeSpec(run.Spec)
	if err != nil {
		return storage.Run{}, ofRun(id, err)
	}
	if c.IsSet("max-pages") {
		old.MaxPages = spec.MaxPages
	}
	if c.IsSet("time") {
		old.MaxTime = spec.MaxTime
	}
	if c.IsSet("profile") {
		old.Profile = spec.Profile
	}
	if c.IsSet(setting(config.KeyUserAgent).Flag()) {
		old.UserAgent = spec.UserAgent
	}
	if run.State == storage.RunPaused {
		if run, err = st.SetRunState(ctx, id, []storage.RunState{storage.RunPaused}, resumeTo(run), "", time.Time{}); err != nil {
			return storage.Run{}, ofRun(id, err)
		}
	}
	if err := st.UpdateRun(ctx, id, storage.RunUpdate{Spec: old.Encode(), Reason: ptr(""), Until: &time.Time{}}); err != nil {
		return storage.Run{}, ofRun(id, err)
	}
	return st.Run(ctx, id)
}

// lockRun makes this process the one that works the run with crawl, under a session name of its own.
func (p *program) lockRun(cfg *config.Config, cl *cluster, id storage.RunID) error {
	path, err := lockPath(cfg, fmt.Sprintf("run-%d", id))
	if err != nil {
		return err
	}
	lock, err := proclock.Take(path)
	var held *proclock.HeldError
	if errors.As(err, &held) {
		return fmt.Errorf("run %d is being crawled by another process (pid %d); wait for it or stop it", id, held.Holder.PID)
	}
	if err != nil {
		return err
	}
	cl.lock, cl.role, cl.node = lock, coord.RoleCrawl, randomName("crawl")
	return lock.Describe(p.holder(cl.node))
}

func setting(key string) config.Setting {
	table := config.Table()
	return table[slices.IndexFunc(table, func(s config.Setting) bool { return s.Key == key })]
}

// work runs a node for this one run and tells how it goes.
func (p *program) work(c *cli.Context, cfg *config.Config, st storage.Store, cl *cluster, run storage.Run) error {
	spec, err := crawl.DecodeSpec(run.Spec)
	if err != nil {
		return ofRun(run.ID, err)
	}
	view := p.newView(c.Bool("quiet"), run, spec)
	log, closeLog, err := p.logger(cfg, view)
	if err != nil {
		return err
	}
	defer closeLog()
	var node *crawl.Node
	cl.facts = p.nodeFacts(cfg, 1, 0, func() crawl.Stats { return node.Stats() })
	node, err = crawl.New(p.nodeConfig(cfg, st, cl, crawl.Config{
		Only: run.ID, MayStore: mayStore(cfg), Log: log, Join: p.join(cl, coord.Options{Log: log}),
	}))
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- node.Run(c.Context) }()
	err = p.watch(c.Context, view, func() (crawl.Snapshot, bool) { return node.Progress(run.ID) }, ended)
	last, _ := node.Progress(run.ID)
	view.close()
	return p.conclude(c, cfg, st, run.ID, last, err)
}

// watch shows progress until the node has ended.
func (p *program) watch(ctx context.Context, view view, progress func() (crawl.Snapshot, bool), ended <-chan error) error {
	tick := time.NewTicker(view.every())
	defer tick.Stop()
	stop := ctx.Done()
	for {
		select {
		case err := <-ended:
			return err
		case <-tick.C:
			if s, ok := progress(); ok {
				view.show(s)
			}
		case <-stop:
			stop = nil
			s, _ := progress()
			after := ""
			if s.InFlight > 0 {
				after = fmt.Sprintf(" after %s in flight", plural(int64(s.InFlight), "request"))
			}
			view.say("stopping" + after + "; Ctrl-C again stops at once")
		}
	}
}

// conclude says how the run stands and what to do next, and decides the exit code.
func (p *program) conclude(c *cli.Context, cfg *config.Config, st storage.Store, id storage.RunID, last crawl.Snapshot, failure error) error {
	stopped := c.Context.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), afterStop)
	defer cancel()
	if failure != nil && !(stopped && errors.Is(failure, context.Canceled)) {
		return fmt.Errorf("%w; go on with: %s", explain(cfg, fmt.Errorf("run %d: %w", id, failure)), resumeCommand(c, id))
	}
	run, ledger, err := loadRun(ctx, st, id)
	if err != nil {
		return explain(cfg, err)
	}
	if stopped && !run.State.Terminal() && run.State != storage.RunPaused {
		run.Reason = "interrupted; go on with crawl --resume"
		if err := st.UpdateRun(ctx, id, storage.RunUpdate{Reason: &run.Reason}); err != nil {
			return explain(cfg, err)
		}
	}
	failed := run.State == storage.RunFailed || run.State == storage.RunDone && ledger.Fetched == 0 && ledger.Failed > 0
	switch {
	case c.Bool("json"):
		if err := p.printJSON(newClosing(run, ledger)); err != nil {
			return err
		}
	case !c.Bool("quiet") && !(failed && ledger.Fetched == 0):
		if err := p.summarize(ctx, st, run, ledger, summaryOf{resume: resumeCommand(c, id), db: c.String("db"), traps: last.Traps, cuts: last.Cuts}); err != nil {
			return explain(cfg, err)
		}
	}
	switch {
	case failed:
		return fmt.Errorf("run %d failed: %s", id, failureOf(ctx, st, run))
	case run.State == storage.RunDone:
		return nil
	case stopped:
		if c.Bool("quiet") {
			p.note("interrupted; go on with: " + resumeCommand(c, id))
		}
		return errInterrupted
	}
	return fmt.Errorf("run %d is %s: %s", id, run.State, waits(run))
}

// failureOf is why a run failed, or why the first of its URLs did.
func failureOf(ctx context.Context, st storage.Store, run storage.Run) string {
	if run.State == storage.RunFailed && run.Reason != "" {
		return run.Reason
	}
	rows, err := st.ListPages(ctx, run.ID, storage.PageQuery{States: []storage.State{storage.Failed}, Limit: 1})
	if err != nil || len(rows) == 0 {
		return "no page could be fetched"
	}
	return fmt.Sprintf("no page could be fetched; %s: %s", rows[0].URL, outcome(rows[0].Status, rows[0].Reason))
}

// outcome is a status or, where there was no answer, the reason.
func outcome(status int, reason storage.Reason) string {
	switch {
	case status != 0 && reason != "":
		return fmt.Sprintf("%d (%s)", status, reason)
	case status != 0:
		return fmt.Sprint(status)
	}
	return string(reason)
}

func resumeCommand(c *cli.Context, id storage.RunID) string {
	private := ""
	if c.Bool("allow-private") {
		private = " --allow-private" // without it nothing of such a site could be requested
	}
	return fmt.Sprintf("deepcrawl crawl --resume %d%s%s", id, dbFlag(c.String("db")), private)
}

func dbFlag(db string) string {
	if db == "" {
		return ""
	}
	return " --db " + config.Mask(db)
}

// closing is the object crawl --json ends with.
type closing struct {
	Run        storage.RunID            `json:"run"`
	State      storage.RunState         `json:"state"`
	Discovered int64                    `json:"discovered"`
	Fetched    int64                    `json:"fetched"`
	Failed     int64                    `json:"failed"`
	Excluded   int64                    `json:"excluded"`
	Seconds    float64                  `json:"seconds"`
	Bytes      int64                    `json:"bytes"`
	ByStatus   map[string]int64         `json:"by_status"`
	ByReason   map[storage.Reason]int64 `json:"by_reason"`
	Reason     string                   `json:"reason"`
}

func newClosing(r storage.Run, l storage.Ledger) closing {
	return closing{
		Run: r.ID, State: r.State, Discovered: l.Discovered, Fetched: l.Fetched, Failed: l.Failed, Excluded: l.Excluded,
		Seconds: r.WorkedFor.Seconds(), Bytes: l.Bytes, ByStatus: statusWords(l.ByStatus), ByReason: reasons(l.ByReason), Reason: r.Reason,
	}
}

// logger makes the log of a command that shows progress: without --log only warnings, so that they stay readable.
func (p *program) logger(cfg *config.Config, view view) (*slog.Logger, func(), error) {
	if cfg.LogGiven || cfg.LogFile != "" {
		return p.newLogger(cfg, cfg.LogLevel, view)
	}
	log, done, err := p.newLogger(cfg, slog.LevelWarn, view)
	if err != nil {
		return nil, nil, err
	}
	return slog.New(tellOnce{log.Handler()}), done, nil
}
