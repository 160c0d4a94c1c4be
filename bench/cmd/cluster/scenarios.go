package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
)

const (
	hostCap = 24
	nodes   = 3
	workers = 4
	// commit is how long a result may wait to be committed; what ends within it before a kill may be requested again.
	commit = 3 * time.Second
)

type scenario struct {
	name, about string
	run         func(context.Context, *runner, *result) error
}

func scenarios() []scenario {
	return []scenario{
		{"spread", "one site, three nodes of four workers beside one process on SQLite", spread},
		{"tenants", "ten runs of ten tenants on ten hosts, three nodes of four workers beside one process on SQLite", tenants},
		{"kill", "kill -9 of one of three nodes under load, started again ten seconds later", killAndStart},
		{"reclaim", "kill -9 of one of three nodes under load, reclaimed after fifteen seconds (the times of the soak)", killAndReclaim},
		{"gentle", "200 gentle runs of 50 tenants on 200 hosts with 200 ms latency, three nodes of 70 workers", gentle},
	}
}

func known() (names []string) {
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

func choose(names string) (chosen []scenario, err error) {
	if names == "all" {
		return scenarios(), nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.Index(known(), name)
		if i < 0 {
			return nil, fmt.Errorf("-scenario %q: there are %s and all", name, strings.Join(known(), ", "))
		}
		chosen = append(chosen, scenarios()[i])
	}
	return chosen, nil
}

// bench is the site of the benchmarks, with 20 ms before each answer.
func (r *runner) bench(pages, hosts int) web.Config {
	if r.pages > 0 {
		pages = r.pages
	}
	return web.Config{Seed: 20_260_101, Pages: pages, PageBytes: 11_000, LinksPerPage: 20, Latency: 20 * time.Millisecond, Hosts: hosts}
}

// load is what is crawled, and by whom.
type load struct {
	name       string // of profiles
	site       web.Config
	shared     bool // three nodes on PostgreSQL and Redis; else one on SQLite
	workers    int  // of each node
	runWorkers int
	flags      []string // of each node
	addedFirst bool     // the runs are there before the nodes start
	// add starts the run of a host.
	add func(ctx context.Context, c *cluster, host int, home string) error
	// during is called once all runs are there.
	during func(context.Context, *cluster) error
	// explain says what may have been requested twice.
	explain func([]web.Hit) map[judge.Request]int
}

// crawled is what became of a load.
type crawled struct {
	hits, pages []web.Hit
	hosts       []string
	bad         []string
	cpu         time.Duration // of the nodes
	until       time.Duration // from the first run added to the last one done
}

// crawl starts a site and nodes, adds a run a host, waits for the end, and stops all.
func (r *runner) crawl(ctx context.Context, l load) (out crawled, err error) {
	s, err := r.startSite(ctx, l.site)
	if err != nil {
		return out, err
	}
	cl, err := r.newCluster(ctx, l.shared)
	if err == nil {
		out.until, err = cl.work(ctx, l, s.homes)
		err = errors.Join(err, cl.close())
	}
	hits, serr := s.stop()
	if err = errors.Join(err, serr); err != nil {
		return out, err
	}
	var explained map[judge.Request]int
	if l.explain != nil {
		explained = l.explain(hits)
	}
	out.hits, out.pages, out.hosts, out.cpu = hits, pages(hits), hostNames(s.homes), cl.cpu()
	out.bad, err = violations(hits, l.site, hostCap, explained)
	return out, err
}

func (c *cluster) work(ctx context.Context, l load, homes []string) (took time.Duration, err error) {
	count := 1
	if l.shared {
		count = nodes
	}
	c.args = append([]string{"--workers", strconv.Itoa(l.workers), "--run-workers", strconv.Itoa(l.runWorkers), "--forever"}, l.flags...)
	start := func() error {
		for range count {
			if err := c.addNode(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	add := func() error {
		for i, home := range homes {
			if err := l.add(ctx, c, i, home); err != nil {
				return err
			}
		}
		return nil
	}
	steps := []func() error{start, add}
	if l.addedFirst {
		slices.Reverse(steps)
	}
	if err := steps[0](); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := steps[1](); err != nil {
		return 0, err
	}
	c.profile(ctx, l.name, 4*time.Second)
	if l.during != nil {
		if err := l.during(ctx, c); err != nil {
			return 0, err
		}
	}
	err = c.await(ctx, len(homes))
	return time.Since(began), err
}

// addFast adds a run of the default tenant.
func addFast(ctx context.Context, c *cluster, _ int, home string) error {
	_, err := c.do(ctx, "run", "add", home, "--profile", "fast")
	return err
}

// addOfTenant adds a run with a profile for one of so many tenants.
func addOfTenant(profile string, tenants int) func(context.Context, *cluster, int, string) error {
	return func(ctx context.Context, c *cluster, host int, home string) error {
		name := fmt.Sprintf("tenant-%d", host%tenants)
		if host < tenants {
			if _, err := c.do(ctx, "tenant", "add", name, "--tariff", "unlimited"); err != nil {
				return err
			}
		}
		_, err := c.do(ctx, "run", "add", home, "--tenant", name, "--profile", profile)
		return err
	}
}

// single is the crawl of one process on SQLite that clusters are compared with.
func (r *runner) single(ctx context.Context, res *result) (float64, error) {
	one, err := r.crawl(ctx, load{name: "single", site: r.bench(10_000, 1), workers: 1, runWorkers: 1, add: addFast})
	if err != nil {
		return 0, err
	}
	res.figure("pages/s of one process on SQLite", speed(one.hits))
	res.figure("its CPU in us a page", micros(one.cpu, len(one.pages)))
	return speed(one.hits), nil
}

func micros(d time.Duration, pages int) float64 {
	return float64(d.Microseconds()) / float64(max(pages, 1))
}

func spread(ctx context.Context, r *runner, res *result) error {
	one, err := r.single(ctx, res)
	if err != nil {
		return err
	}
	three, err := r.crawl(ctx, load{
		name: "spread", site: r.bench(10_000, 1), shared: true, workers: workers, runWorkers: nodes * workers, add: addFast,
	})
	if err != nil {
		return err
	}
	res.of("three nodes", three)
	res.atLeast("pages/s of three nodes over one process", speed(three.hits)/one, 0.8)
	res.clean(three.bad)
	return nil
}

// of tells the figures of a cluster's crawl.
func (r *result) of(who string, c crawled) {
	r.figure("pages/s of "+who, speed(c.hits))
	r.figure("  between a tenth and nine tenths of the pages", middle(c.pages))
	r.figure("  seconds the last hundredth took longer", tail(c.pages))
	r.figure("  seconds from the order to the last run done", c.until.Seconds())
	r.figure("  CPU of the nodes in us a page", micros(c.cpu, len(c.pages)))
	r.figure("  most requests in flight to a host", float64(mostInFlight(c)))
}

func mostInFlight(c crawled) (most int) {
	for _, h := range c.hosts {
		most = max(most, web.MaxInFlight(c.hits, h))
	}
	return most
}

func tenants(ctx context.Context, r *runner, res *result) error {
	one, err := r.single(ctx, res)
	if err != nil {
		return err
	}
	const hosts = 10
	l := load{
		name: "tenants-single", site: r.bench(8_000, hosts), workers: nodes * workers, runWorkers: nodes * workers, addedFirst: true, add: addOfTenant("fast", hosts),
	}
	alone, err := r.crawl(ctx, l)
	if err != nil {
		return err
	}
	l.name, l.shared, l.workers = "tenants", true, workers
	three, err := r.crawl(ctx, l)
	if err != nil {
		return err
	}
	fairness := func(c crawled) float64 {
		from, to := backlogged(c.pages, c.hosts)
		return jain(perHost(c.pages, c.hosts, from, to))
	}
	res.figure("pages/s of one process with ten runs", speed(alone.hits))
	res.figure("  Jain over its runs", fairness(alone))
	res.of("three nodes", three)
	res.figure("  pages/s over one process with the same ten runs", speed(three.hits)/speed(alone.hits))
	res.atLeast("pages/s of three nodes over one process", speed(three.hits)/one, 0.8)
	res.atLeast("Jain over the runs", fairness(three), 0.98)
	res.clean(append(alone.bad, three.bad...))
	return nil
}

// Moments of a kill.
const (
	beforeKill = 5 * time.Second // the window before it
	deadFor    = 11 * time.Second
	settle     = 5 * time.Second // after the kill, and after the return
)

func killAndStart(ctx context.Context, r *runner, res *result) error {
	return kill(ctx, r, res, true, deadFor, nil)
}

// killAndReclaim runs under the times of the soak: dead after 15 s of silence.
func killAndReclaim(ctx context.Context, r *runner, res *result) error {
	return kill(ctx, r, res, false, 15*time.Second+2*time.Second, []string{"--soak", "short-times"})
}

// kill ends one of three nodes under load; what the others reach is compared with what all reached before.
func kill(ctx context.Context, r *runner, res *result, again bool, after time.Duration, flags []string) error {
	var killed, back time.Time
	var dead string
	wait := func(d time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
	three, err := r.crawl(ctx, load{
		name: "kill", site: r.bench(40_000, 1), shared: true, workers: workers, runWorkers: nodes * workers, add: addFast, flags: flags,
		during: func(ctx context.Context, c *cluster) error {
			if err := wait(beforeKill + 4*time.Second); err != nil {
				return err
			}
			n := c.nodes[1]
			dead, killed = n.source, time.Now()
			n.kill()
			if err := wait(after); err != nil {
				return err
			}
			back = time.Now()
			if !again {
				return nil
			}
			return c.startNode(ctx, n)
		},
		explain: func(hits []web.Hit) map[judge.Request]int {
			return judge.InFlight(slices.DeleteFunc(slices.Clone(hits), func(h web.Hit) bool { return h.Source != dead || h.Arrival.After(killed) }), killed, commit)
		},
	})
	if err != nil {
		return err
	}
	if end := three.pages[len(three.pages)-1].End; end.Before(back.Add(2 * settle)) {
		return fmt.Errorf("the crawl was over %v after the node was back; -pages %d is too few", end.Sub(back).Round(time.Millisecond), len(three.pages))
	}
	slots := inFlight(three.hits, dead, killed)
	before := within(three.pages, killed.Add(-beforeKill), killed)
	without := within(three.pages, killed.Add(settle), back)
	whole := within(three.pages, back.Add(settle), back.Add(2*settle))
	res.figure("pages/s before", before)
	res.figure("requests of the dead node in flight", float64(slots))
	res.figure("pages/s of the others in the first five seconds", within(three.pages, killed, killed.Add(settle)))
	res.figure("pages/s of the others from then on", without)
	res.figure("pages/s once its slots were back", whole)
	for at := -beforeKill; killed.Add(at).Before(back.Add(2 * settle)); at += time.Second {
		res.Series = append(res.Series, within(three.pages, killed.Add(at), killed.Add(at+time.Second)))
	}
	share := float64(hostCap-slots) / hostCap
	res.atLeast("pages/s of the others after 5 s, over (cap - dead's slots)/cap of before", without/before/share, 0.9)
	res.atLeast("pages/s once its slots were back, over before", whole/before, 0.9)
	res.clean(three.bad)
	return nil
}

func gentle(ctx context.Context, r *runner, res *result) error {
	const (
		runs     = 200
		owners   = 50
		rate     = 1.0 // of the profile, requests a second
		starting = 5 * time.Second
	)
	c := r.bench(45, runs)
	c.Latency = 200 * time.Millisecond
	three, err := r.crawl(ctx, load{name: "gentle", site: c, shared: true, workers: 70, runWorkers: 4, addedFirst: true, add: addOfTenant("gentle", owners)})
	if err != nil {
		return err
	}
	from, to := backlogged(three.pages, three.hosts)
	from = from.Add(starting)
	if !to.After(from) {
		return fmt.Errorf("the runs were not under way together: the last began at %v, the first was through at %v", from, to)
	}
	got := within(three.pages, from, to)
	res.of("three nodes", three)
	res.figure("seconds in which all 200 were under way", to.Sub(from).Seconds())
	res.figure("  pages/s in them", got)
	res.figure("  Jain over the runs", jain(perHost(three.pages, three.hosts, from, to)))
	res.atLeast("pages/s of 200 runs of 1 a second, over 200", got/(runs*rate), 0.9)
	res.clean(three.bad)
	return nil
}
