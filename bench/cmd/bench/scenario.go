package main

import (
	"fmt"
	"strings"
	"time"

	"deepcrawl/soak/web"
)

// scenario is a site, how it is crawled, and what is asked of the crawl. A
// store or a coordinator to compare is another row of the table: its DSN goes
// into DB, its settings into Env.
type scenario struct {
	Name     string
	About    string
	Site     web.Config
	InFlight int
	// Rounds is the number of measured rounds unless -rounds says otherwise.
	Rounds int
	// Paired scenarios run the null crawler in each round as well.
	Paired bool
	// DB is the DSN; "{dir}" stands for a folder that is new for each run.
	DB string
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
	}
}

// choose returns the scenarios named, comma-separated, or all of them.
func choose(names string) ([]scenario, error) {
	all := scenarios()
	if names == "all" {
		return all, nil
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
		return nil, fmt.Errorf("-scenario %q: there are %s and all", name, strings.Join(known, ", "))
	}
	return chosen, nil
}

func (s scenario) String() string {
	return fmt.Sprintf("%s: %d pages of %d bytes with %d links, %s, %d in flight",
		s.Name, s.Site.Pages, s.Site.PageBytes, s.Site.LinksPerPage, s.About, s.InFlight)
}
