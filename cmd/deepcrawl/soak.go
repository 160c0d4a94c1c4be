package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/coord"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/crawl"
	"deepcrawl/internal/config"
	"deepcrawl/soak"
	"deepcrawl/soak/chaos"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// soakNodeFlag is a hidden flag of deepcrawl node that only the soak gives. With the word soakShort the node runs under
// soakTiming (on a database every node must run under the same constants); with any it logs at its end what it left over.
const (
	soakNodeFlag   = "soak"
	soakShort      = "short-times"
	soakProduction = "production-times"
)

// soakClockFlag is another: OFFSET/DRIFT makes the node's clock wrong by a duration and run too fast by a share, as in 90s/0.03.
const soakClockFlag = "soak-clock"

// soakEnvFlag is a hidden flag of the soak: NAME=value is a setting of the nodes, to see that the judge finds what it breaks.
const soakEnvFlag = "node-env"

// soakClock makes the clock of a node. From then on the program itself has it too.
func (p *program) soakClock(text string) (coord.Clock, error) {
	if text == "" {
		return coord.SystemClock{}, nil
	}
	off, drift, _ := strings.Cut(text, "/")
	d, err := time.ParseDuration(off)
	if err != nil {
		return nil, usagef("--%s: %v", soakClockFlag, err)
	}
	share, err := strconv.ParseFloat(drift, 64)
	if err != nil {
		return nil, usagef("--%s: %v", soakClockFlag, err)
	}
	clock := coord.NewSkewedClock(d, share)
	p.now = clock.Now
	return clock, nil
}

// soakTiming is coord.SoakTiming with short ways between Redis and the database, so that a soak sees several.
func soakTiming() coord.Timing {
	t := coord.SoakTiming()
	t.Fall, t.Stable, t.ReturnEvery, t.ReturnPause = 3*time.Second, 4*time.Second, 2*time.Second, 5*time.Second
	return t
}

// leftGoroutines counts the goroutines there are after a node has ended, once those that are about to end have had a moment.
func leftGoroutines(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	least := runtime.NumGoroutine()
	for {
		select {
		case <-ctx.Done():
			return least
		case <-time.After(50 * time.Millisecond):
			least = min(least, runtime.NumGoroutine())
		}
	}
}

func (p *program) clusterSoakCommand() *cli.Command {
	return &cli.Command{
		Name: "soak", Usage: "prove a cluster polite and lossless before rollout",
		Description: "Starts a synthetic site and real nodes of this binary, lets several tenants crawl the site, injects faults, and judges from what\n" +
			"the site saw. Works in a folder and a schema, database and key prefix of its own, removed at the end.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "nodes", Value: 3, Usage: "node processes"},
			&cli.IntFlag{Name: "workers", Value: 2, Usage: "workers of each node"},
			&cli.IntFlag{Name: "runs", Value: 3, Usage: "runs of the whole site; a gentle one with a page limit is added"},
			&cli.IntFlag{Name: "pages", Value: 240, Usage: "pages of the site"},
			&cli.IntFlag{Name: "host-cap", Value: 8, Usage: "requests in flight to one host, over everything"},
			&cli.IntFlag{Name: "latency", Value: 20, Usage: "of the site, in `MS`"},
			&cli.StringFlag{Name: "db", Value: "sqlite", Usage: "sqlite, postgres (pg), mysql, or a DSN; the server is that of " + config.KeyDB + ", else a private one is started from installed programs"},
			&cli.StringFlag{Name: "coord", Value: "db", Usage: "db or redis"},
			&cli.StringFlag{Name: "redis", Usage: "Redis server (" + config.KeyRedisURL + "); without one a private one is started"},
			&cli.IntFlag{Name: "port", Value: 8080, Usage: "of the site on 127.0.0.1 and 127.0.0.2; 0: any"},
			&cli.IntFlag{Name: "kill", Usage: "kill -9 a random node `SECONDS` after all are working, and again until half the pages are done"},
			&cli.BoolFlag{Name: "no-restart", Usage: "leave a killed node dead; else it is started again after 1 s"},
			&cli.StringFlag{Name: "chaos", Usage: "faults, with commas: " + chaos.Words(chaos.Kinds()) + ", " + chaos.All},
			&cli.BoolFlag{Name: "production-times", Usage: "the constants of production instead of short ones"},
			&cli.IntFlag{Name: "seed", Value: 1, Usage: "of the site and of chance"},
			&cli.DurationFlag{Name: "timeout", Value: 10 * time.Minute, Usage: "of the crawls"},
			&cli.BoolFlag{Name: "keep", Usage: "leave folder and database behind, and say where"},
			jsonFlag(),
			&cli.StringFlag{Name: "o", Usage: "write a report with a picture to `FILE`, one HTML page"},
			&cli.StringFlag{Name: "config", Usage: "settings `FILE`"},
			&cli.StringSliceFlag{Name: soakEnvFlag, Hidden: true},
		},
		Action: p.clusterSoak,
	}
}

func (p *program) clusterSoak(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	o, err := p.soakOptions(c)
	if err != nil {
		return err
	}
	view := &soakView{p: p, quiet: c.Bool("json")}
	o.Say, o.Progress = view.say, view.progress
	o.Begin = func() {
		o.Say(fmt.Sprintf("%d nodes of %d workers on %s, %d runs of %d pages, host cap %d, seed %d", o.Nodes, o.Workers, soakDatabase(o.DB), o.Runs, o.Pages, o.HostCap, o.Seed))
		if o.Redis != "" {
			where := config.Mask(o.Redis)
			if o.Redis == soak.Private {
				where = "a private server"
			}
			o.Say("coordination on Redis: " + where)
		}
		o.Say("times: " + o.Times.String())
		if line := o.Spared(); line != "" {
			o.Say(line)
		}
	}
	res, err := soak.Execute(c.Context, o)
	view.clear()
	if err != nil {
		if errors.Is(err, context.Canceled) && c.Context.Err() != nil {
			return errInterrupted
		}
		return err
	}
	if file := c.String("o"); file != "" {
		if err := writeSoakReport(file, res); err != nil {
			return err
		}
	}
	if c.Bool("json") {
		err = p.printJSON(res)
	} else {
		err = res.Print(p.stdout)
	}
	if err != nil {
		return err
	}
	if !res.OK {
		return fmt.Errorf("soak: %s", plural(int64(len(res.Violations)), "violation"))
	}
	return nil
}

// soakOptions reads the flags. The settings' file and environment give the servers only.
func (p *program) soakOptions(c *cli.Context) (soak.Options, error) {
	var o soak.Options
	cfg, err := config.Load(config.Input{
		Flags: map[string]string{}, Environ: p.environ, File: c.String("config"), Files: config.DefaultFiles(), ReadFile: os.ReadFile, Version: p.version,
	})
	if err != nil {
		return o, err
	}
	for _, name := range []string{"latency", "kill", "seed"} {
		if c.Int(name) < 0 || name == "kill" && c.IsSet(name) && c.Int(name) == 0 {
			return o, usagef("--%s: %d is not allowed; allowed: a positive number", name, c.Int(name))
		}
	}
	if c.Duration("timeout") <= 0 {
		return o, usagef("--timeout: %v is not allowed; allowed: a duration such as 10m", c.Duration("timeout"))
	}
	o = soak.Options{
		Nodes: c.Int("nodes"), Workers: c.Int("workers"), Runs: c.Int("runs"), Pages: c.Int("pages"), HostCap: c.Int("host-cap"),
		Latency: time.Duration(c.Int("latency")) * time.Millisecond, Port: c.Int("port"), Coord: c.String("coord"), Redis: c.String("redis"),
		Kill: time.Duration(c.Int("kill")) * time.Second, NoRestart: c.Bool("no-restart"), Seed: uint64(c.Int("seed")),
		Timeout: c.Duration("timeout"), Keep: c.Bool("keep"), Setup: p.soakSetup,
	}
	if o.Executable, err = os.Executable(); err != nil {
		return o, fmt.Errorf("find this binary: %w", err)
	}
	timing := coord.DefaultTiming()
	o.NodeFlags = []string{"--" + soakNodeFlag, soakProduction}
	if !c.Bool("production-times") {
		timing = soakTiming()
		o.NodeFlags = []string{"--" + soakNodeFlag, soakShort}
	}
	o.ClockFlag, o.NodeEnv = "--"+soakClockFlag, c.StringSlice(soakEnvFlag)
	o.Times = soak.Times{Beat: timing.Beat, View: timing.View, Deadline: timing.Request, Pause: timing.Pause, Death: timing.Death,
		Lease: timing.LeaseTTL, Fall: timing.Fall, Stable: timing.Stable, Return: timing.ReturnPause}
	kinds, all, err := chaos.Parse(c.String("chaos"))
	if err != nil {
		return o, usagef("--chaos: %v", err)
	}
	o.Chaos, o.ChaosAll = kinds, all
	set := cfg.DB
	if slices.Contains(kinds, chaos.DBRestart) { // harms the server: not that of the settings
		set = ""
	}
	if o.DB, err = soakServer(c.String("db"), set); err != nil {
		return o, err
	}
	harm := func(k chaos.Kind) bool { return strings.HasPrefix(string(k), "redis-") && k != chaos.RedisPartition }
	switch {
	case o.Coord == "db":
		o.Redis = ""
	case o.Coord != "redis":
		return o, usagef("--coord: %q is not allowed; allowed: db, redis", o.Coord)
	case o.Redis == "" && (cfg.RedisURL == "" || slices.ContainsFunc(kinds, harm)):
		o.Redis = soak.Private
	case o.Redis == "":
		o.Redis = cfg.RedisURL
	}
	if err := o.Check(); err != nil {
		return o, usagef("%s", err)
	}
	return o, nil
}

// soakServer turns --db into what the soak takes: a word finds its server in the settings, else it stays a word and means a private
// one.
func soakServer(db, set string) (string, error) {
	if strings.Contains(db, ":") {
		return db, nil
	}
	scheme, _, _ := strings.Cut(set, ":")
	of := map[string]string{"pg": "postgres", "postgresql": "postgres", "mariadb": "mysql"}
	plain := func(s string) string {
		if other, ok := of[s]; ok {
			return other
		}
		return s
	}
	switch word := plain(db); word {
	case "sqlite":
		return "sqlite", nil
	case "postgres", "mysql":
		if plain(scheme) == word {
			return set, nil
		}
		return word, nil
	}
	return "", usagef("--db: %q is not allowed; allowed: sqlite, postgres, pg, mysql or a DSN", db)
}

// soakDatabase says which server is used.
func soakDatabase(db string) string {
	switch scheme, _, isDSN := strings.Cut(db, ":"); {
	case db == "sqlite":
		return "SQLite"
	case !isDSN:
		return "a private server of " + scheme
	}
	return config.Mask(db)
}

// soakSetup makes the tables and orders the runs.
func (p *program) soakSetup(ctx context.Context, dsn string, o soak.Order) ([]int64, error) {
	cfg := &config.Config{DB: dsn}
	if _, err := sqlstore.Migrate(ctx, dsn); err != nil {
		return nil, explain(cfg, err)
	}
	if _, err := sqlcoord.Migrate(ctx, dsn); err != nil {
		return nil, explain(cfg, err)
	}
	st, err := p.open(ctx, cfg, mustExist)
	if err != nil {
		return nil, err
	}
	defer func() { _ = st.Close() }() // each call below has committed
	tenants, ok := st.(storage.Tenants)
	if !ok {
		return nil, errors.New("the store keeps no tenants")
	}
	for _, t := range o.Tenants {
		if err := tenants.PutTariff(ctx, storage.Tariff{Name: t.Name, Parallel: t.Parallel, Workers: t.Workers}); err != nil {
			return nil, err
		}
		if err := tenants.PutTenant(ctx, storage.Tenant{Name: t.Name, Tariff: t.Name}); err != nil {
			return nil, err
		}
	}
	var ids []int64
	for _, r := range o.Runs {
		spec := crawl.Spec{Seeds: r.Seeds, Profile: r.Profile, MaxPages: r.MaxPages, UserAgent: r.Agent}
		if err := spec.Check(); err != nil {
			return nil, err
		}
		profile, err := crawl.ParseProfile(r.Profile)
		if err != nil {
			return nil, err
		}
		run, err := st.CreateRun(ctx, storage.NewRun{Tenant: r.Tenant, Site: spec.Site(), Spec: spec.Encode(), Concurrency: profile.Concurrency})
		if err != nil {
			return nil, err
		}
		ids = append(ids, int64(run.ID))
	}
	return ids, nil
}

func writeSoakReport(file string, res *soak.Result) error {
	f, err := os.Create(file)
	if err != nil {
		return usagef("-o: cannot write %s: %v", file, pathCause(err))
	}
	if err := res.WritePage(f); err != nil {
		_ = f.Close() // the first error is the one to tell
		return fmt.Errorf("write %s: %w", file, err)
	}
	return f.Close()
}
