package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"deepcrawl/soak/web"
)

// scenario is a site, how it is crawled, and what is asked of the crawl. A
// store or a coordinator to compare is another row of the table: its DSN goes
// into DB, its settings into Env. Where Store is set there is no crawl: the
// store alone is worked.
type scenario struct {
	Name     string
	About    string
	Site     web.Config
	InFlight int
	// Rounds is the number of measured rounds unless -rounds says otherwise.
	Rounds int
	// Paired scenarios run the baseline in each round as well.
	Paired bool
	// Heads name the baseline and what is measured in the table; null and deep when empty.
	Heads [2]string
	// DB is the DSN; "{dir}" stands for a folder that is new for each run,
	// "{postgres}" and "{mysql}" for a database that is.
	DB string
	// BaseDB is the DSN of the baseline; without one that is the null crawler.
	BaseDB string
	// Store makes what is measured of a store alone.
	Store func(ctx context.Context, s scenario, o options, dir string) (storePair, error)
	// Queued is how many URLs are queued in the store, Slice how long it is worked at a time.
	Queued int
	Slice  time.Duration
	// Env holds further settings of deepcrawl as KEY=VALUE.
	Env   []string
	Goals []goal
}

// scenarios is the table of what can be measured. The goals are those of the
// crawl's specification.
func scenarios() []scenario {
	const inFlight = 24
	base := web.Config{Seed: 20_260_101, Pages: 10_000, PageBytes: 11_000, LinksPerPage: 20}
	with := func(change func(*web.Config)) web.Config {
		c := base
		change(&c)
		return c
	}
	const sqlite = "sqlite:{dir}/crawl.db"
	return []scenario{
		{
			Name: "base", About: "no latency", Site: base, InFlight: inFlight, Rounds: 5, Paired: true, DB: sqlite,
			Goals: []goal{
				{Metric: speedRatio, Min: 1.1, Aim: 1.6},
				{Metric: cpuRatio, Max: 0.9, Aim: 0.6},
				clean,
			},
		},
		{
			Name: "latency", About: "20 ms before each answer", InFlight: inFlight, Rounds: 5, Paired: true, DB: sqlite,
			Site:  with(func(c *web.Config) { c.Latency = 20 * time.Millisecond }),
			Goals: []goal{{Metric: speedRatio, Min: 1.0}, clean},
		},
		{
			Name: "slow", About: "5 % of the pages take 2 s", InFlight: inFlight, Rounds: 2, DB: sqlite,
			Site:  with(func(c *web.Config) { c.SlowShare, c.SlowLatency = 0.05, 2*time.Second }),
			Goals: []goal{{Metric: idealShare, Min: 0.9}, clean},
		},
		{
			Name: "large", About: "does cost grow with work?", InFlight: inFlight, Rounds: 1, DB: sqlite,
			Site: with(func(c *web.Config) { c.Pages = 300_000 }),
			Goals: []goal{
				{Metric: tenthRatio, Min: 0.9},
				{Metric: peakMB, Max: 250},
				clean,
			},
		},
		{
			Name: "crawl-postgres", About: "stored in PostgreSQL, the baseline in SQLite", Site: base, InFlight: inFlight, Rounds: 5, Paired: true,
			Heads: [2]string{"sqlite", "pg"}, BaseDB: sqlite, DB: "{postgres}",
			Goals: []goal{{Metric: speedOver("PostgreSQL / SQLite"), Min: 0.7}, clean},
		},
		{
			Name: "crawl-mysql", About: "stored in MariaDB, the baseline in SQLite", Site: base, InFlight: inFlight, Rounds: 5, Paired: true,
			Heads: [2]string{"sqlite", "maria"}, BaseDB: sqlite, DB: "{mysql}",
			Goals: []goal{{Metric: speedOver("MariaDB / SQLite"), Min: 0.5}, clean},
		},
		queueScenario("queue-sqlite", sqlite),
		queueScenario("queue-postgres", "{postgres}"),
		queueScenario("queue-mysql", "{mysql}"),
		claimersScenario("claimers-postgres", "{postgres}", "pgx"),
		claimersScenario("claimers-mysql", "{mysql}", "the driver"),
		{
			Name: "snapshot", About: "PostgreSQL with a snapshot held open; a round is a tenth of the time", Rounds: 10, Paired: true,
			Heads: [2]string{"free", "held"}, DB: "{postgres}", Store: openSnapshot, Queued: 100_000,
			Goals: []goal{{Metric: speedOver("held / free"), Min: 0.5, Every: true}},
		},
	}
}

// queueScenario compares a long queue with one of a hundredth of it.
func queueScenario(name, db string) scenario {
	return scenario{
		Name: name, About: "claims and results with many URLs queued beside few", Rounds: 9, Paired: true, Heads: [2]string{"few", "many"}, DB: db,
		Store: openQueues, Queued: 1_000_000, Slice: 2 * time.Second,
		Goals: []goal{{Metric: speedOver("many / few"), Min: 0.8}},
	}
}

// claimersScenario compares claimers of the store with a loop by hand.
func claimersScenario(name, db, through string) scenario {
	return scenario{
		Name: name, About: fmt.Sprintf("%d claimers beside a hand-written loop of the same statements through %s", claimers, through), Rounds: 9, Paired: true,
		Heads: [2]string{"by hand", "store"}, DB: db, Store: openClaimers, Queued: 100_000, Slice: 2 * time.Second,
		Goals: []goal{{Metric: speedOver("store / by hand"), Min: 0.6}},
	}
}

// groups are names for several scenarios.
func groups() map[string]string {
	return map[string]string{
		"crawls": "base,latency,slow,large",
		"stores": "crawl-postgres,crawl-mysql,queue-sqlite,queue-postgres,queue-mysql,claimers-postgres,claimers-mysql,snapshot",
	}
}

// choose returns the scenarios named, comma-separated, or all of them.
func choose(names string) ([]scenario, error) {
	all := scenarios()
	if names == "all" {
		return all, nil
	}
	if g, ok := groups()[names]; ok {
		names = g
	}
	var chosen []scenario
next:
	for name := range strings.SplitSeq(names, ",") {
		for _, s := range all {
			if s.Name == name {
				chosen = append(chosen, s)
				continue next
			}
		}
		known := make([]string, len(all))
		for i, s := range all {
			known[i] = s.Name
		}
		return nil, fmt.Errorf("-scenario %q: there are %s, and for several crawls, stores and all", name, strings.Join(known, ", "))
	}
	return chosen, nil
}

func (s scenario) String() string {
	if s.Store != nil {
		return fmt.Sprintf("%s: %s, %d URLs queued", s.Name, s.About, s.Queued)
	}
	return fmt.Sprintf("%s: %d pages of %d bytes with %d links, %s, %d in flight",
		s.Name, s.Site.Pages, s.Site.PageBytes, s.Site.LinksPerPage, s.About, s.InFlight)
}
