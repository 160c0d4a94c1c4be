package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
)

// trial is one soak under way.
type trial struct {
	o      Options
	rand   *rand.Rand
	ground *ground
	site   *web.Site
	urls   []string
	order  Order
	ids    []int64 // of the runs, as ordered
	nodes  []*node
	db     *judge.DB
	began  time.Time
	wanted int // requests the site will see about

	dbBusy, redisBusy atomic.Bool // a fault of it is under way
	first             int         // of ground.redises, the primary; whoever has redisBusy may change it

	mu      sync.Mutex
	faults  []Fault
	samples []judge.Sample
	broken  error // of the soak itself
}

// ErrTimeout is why a soak that took too long was ended; it is judged all the same.
var ErrTimeout = errors.New("the runs did not end in time")

// Execute makes a soak and judges it. An error says that it could not be made; whether the cluster did well is in the result.
func Execute(ctx context.Context, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	t := &trial{o: o, rand: rand.New(rand.NewPCG(o.Seed, 0x50a1)), began: time.Now()}
	if t.o.Say == nil {
		t.o.Say = func(string) {}
	}
	if t.o.Progress == nil {
		t.o.Progress = func(Progress) {}
	}
	return t.execute(ctx)
}

func (t *trial) execute(ctx context.Context) (res *Result, err error) {
	stopSite, err := t.serveSite()
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := stopSite(); e != nil {
			err = errors.Join(err, e)
		}
	}()
	if t.o.Begin != nil {
		t.o.Begin()
	}
	if t.ground, err = newGround(ctx, &t.o); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // nobody is told where it is
			t.ground.keep = false
		}
		if e := t.ground.remove(); e != nil {
			err = errors.Join(err, fmt.Errorf("remove what the soak made: %w", e))
		}
	}()
	t.order = newOrder(&t.o, t.urls)
	if t.ids, err = t.o.Setup(ctx, t.ground.dsn, t.order); err != nil {
		return nil, fmt.Errorf("set up the soak's database: %w", err)
	}
	if t.db, err = judge.OpenDB(t.ground.dsn); err != nil {
		return nil, err
	}
	defer t.db.Close()
	if err := t.makeNodes(); err != nil {
		return nil, err
	}
	defer t.killNodes()
	for _, n := range t.nodes {
		if err := n.start(); err != nil {
			return nil, err
		}
	}
	failure := t.work(ctx)
	if err := cmp.Or(ctx.Err(), t.failure()); err != nil {
		return nil, err
	}
	if err := t.endNodes(ctx); err != nil {
		return nil, err
	}
	return t.conclude(ctx, failure)
}

// siteConfig is the site of a soak: two hosts, with everything a crawl may meet.
func siteConfig(o *Options) web.Config {
	const hosts = 2
	pages := max(o.Pages/hosts, 5)
	// Each page that asks for a pause stops its host for 2 s, once for each run: one or two a host show what they show.
	few := min(0.5/float64(pages), 0.01)
	return web.Config{
		Seed: o.Seed, Pages: pages, PageBytes: 6000, Hosts: hosts, Latency: o.Latency, SlowShare: 0.02, SlowLatency: 4 * max(o.Latency, 50*time.Millisecond),
		GzipShare: 0.2, Sitemap: true, SitemapEntries: max(pages/2, 50), Orphans: max(pages/20, 1), Variants: true, CrossHost: true,
		Robots: web.Robots{Private: min(max(pages/20, 2), 20), CrawlDelay: crawlDelay, DelayFor: delayedAgent},
		Errors: web.ErrorMix{
			NotFound: 0.04, Gone: 0.01, Redirect: 0.05, Big: 0.01, Drip: 0.01, Fails: 2 * few, Reset: few,
			Unavailable: few, TooMany: few, TooManyDate: few,
			RetryAfter: 2 * time.Second, BigBytes: 400_000,
			DripInterval: 100 * time.Millisecond, DripBytes: 20, // slow, and over before the deadline
		},
	}
}

// serveSite starts the site; the function it returns stops it and waits until its log is complete.
func (t *trial) serveSite() (stop func() error, err error) {
	if t.site, err = web.New(siteConfig(&t.o)); err != nil {
		return nil, err
	}
	l, err := t.site.Listen(net.JoinHostPort("127.0.0.1", strconv.Itoa(t.o.Port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--port: %d is in use on 127.0.0.1 or 127.0.0.2; allowed: a free port, 0 for any", t.o.Port)
	}
	if err != nil {
		return nil, err
	}
	t.urls = l.URLs()
	for e := range t.site.Expected() {
		if e.Allowed {
			t.wanted += e.Requests
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	}), nil
}

// gentlePages is the page limit of the runs that have a rate.
const gentlePages = 8

// The site's robots.txt asks one agent for a delay between its requests.
const (
	delayedAgent = "SoakDelay"
	crawlDelay   = time.Second
)

// newOrder is what is crawled: runs of the whole site by several tenants, the first of which may have but one at a time, and two
// runs with a page limit: a gentle one, whose profile has a rate, and one that robots.txt asks for a delay.
func newOrder(o *Options, urls []string) Order {
	seats := max(2, o.Nodes*o.Workers*2/3)
	var order Order
	tenants := (o.Runs + 1) / 2
	for i := range tenants {
		order.Tenants = append(order.Tenants, Tenant{Name: fmt.Sprintf("soak-%d", i+1), Parallel: 3, Workers: seats})
	}
	if o.Runs >= 3 {
		order.Tenants[0].Parallel = 1
	}
	for i := range o.Runs {
		order.Runs = append(order.Runs, Run{Tenant: order.Tenants[i%tenants].Name, Agent: fmt.Sprintf("SoakRun/%d", i+1), Seeds: urls, Profile: "normal"})
	}
	order.Runs = append(order.Runs, Run{
		Tenant: order.Tenants[tenants-1].Name, Agent: "SoakRun/gentle", Seeds: urls[:1], Profile: "gentle", MaxPages: min(gentlePages, o.Pages), PerSecond: 1,
	}, Run{
		Tenant: order.Tenants[tenants-1].Name, Agent: delayedAgent + "/1", Seeds: urls[len(urls)-1:], Profile: "normal", MaxPages: min(gentlePages, o.Pages),
		PerSecond: 1 / crawlDelay.Seconds(),
	})
	return order
}

// makeNodes prepares the nodes, each with an address its requests come from.
func (t *trial) makeNodes() error {
	empty := filepath.Join(t.ground.dir, "empty.env") // so that no settings file of the machine takes part
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		return fmt.Errorf("settings of the nodes: %w", err)
	}
	for i := range t.o.Nodes {
		name := fmt.Sprintf("soak%d", i+1)
		source := fmt.Sprintf("127.0.1.%d", i+1)
		to, err := t.waysOf()
		if err != nil {
			return err
		}
		n := &node{
			ways: to, clockFlag: t.o.ClockFlag,
			name: name, source: source, binary: t.o.Executable, dir: t.ground.dir, log: filepath.Join(t.ground.dir, name+".log"),
			args: append([]string{"node", "--forever", "--config", empty}, t.o.NodeFlags...),
			env: []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + t.ground.dir, "TMPDIR=" + t.ground.dir, "GORACE=" + os.Getenv("GORACE"), "TZ=UTC",
				"DEEPCRAWL_DB=" + to.dsn, "DEEPCRAWL_NODE_ID=" + name, "DEEPCRAWL_COORD=" + t.o.Coord,
				"DEEPCRAWL_HOST_INFLIGHT=" + strconv.Itoa(t.o.HostCap), "DEEPCRAWL_WORKERS=" + strconv.Itoa(t.o.Workers),
				"DEEPCRAWL_RUN_WORKERS=" + strconv.Itoa(t.o.Nodes*t.o.Workers), "DEEPCRAWL_ALLOW_PRIVATE=true", "DEEPCRAWL_BIND_ADDR=" + source,
				"DEEPCRAWL_LOG=info", "DEEPCRAWL_LOG_FORMAT=json",
			},
		}
		if t.o.Redis != "" {
			n.env = append(n.env, "DEEPCRAWL_REDIS_URL="+to.redis, "DEEPCRAWL_REDIS_PREFIX="+t.ground.prefix)
		}
		n.env = append(n.env, t.o.NodeEnv...) // the last of a name counts
		t.nodes = append(t.nodes, n)
	}
	return nil
}

func (t *trial) killNodes() {
	for _, n := range t.nodes {
		n.kill()
	}
}

// sampleEvery is the pause between two looks at the database.
const sampleEvery = 500 * time.Millisecond

// work waits until every run is over, with faults injected meanwhile.
func (t *trial) work(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.o.Timeout)
	defer cancel()
	faults := make(chan struct{})
	stopFaults, endFaults := context.WithCancel(ctx)
	defer endFaults()
	go func() {
		defer close(faults)
		t.inject(stopFaults)
	}()
	defer func() { <-faults }()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		if s, ok := t.sample(ctx); ok && s.Over() {
			endFaults()
			return nil
		}
		t.tell("crawling")
		select {
		case <-ctx.Done():
			return ErrTimeout
		case <-tick.C:
		}
		if t.failure() != nil {
			return nil
		}
		for _, n := range t.nodes {
			if n.gaveUp() && len(t.o.kinds()) > 0 { // as cron would; whether it might is for the judge to say
				t.restart(n)
			}
		}
		if err := t.someNode(); err != nil {
			return err
		}
	}
}

// someNode returns an error when no node runs and none will be started.
func (t *trial) someNode() error {
	for _, n := range t.nodes {
		n.mu.Lock()
		alive := n.proc != nil || len(n.lives) > 0 && !n.dead && (n.lives[len(n.lives)-1].End != judge.EndItself || len(t.o.kinds()) > 0)
		n.mu.Unlock()
		if alive {
			return nil
		}
	}
	return errors.New("no node is left")
}

// sample looks at the database and the processes.
func (t *trial) sample(ctx context.Context) (judge.Sample, bool) {
	look, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s, err := t.db.Sample(look)
	for _, n := range t.nodes {
		n.measure(false)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		return s, false
	}
	t.samples = append(t.samples, s)
	return s, true
}

// tell reports progress.
func (t *trial) tell(phase string) {
	p := Progress{
		Phase: phase, Since: time.Since(t.began), Requests: t.site.Requests(), Wanted: t.wanted*t.o.Runs + 2*gentlePages, InFlight: t.site.InFlight(),
		Runs: map[string]int{},
	}
	for _, n := range t.nodes {
		if n.running() {
			p.Nodes++
		}
	}
	t.mu.Lock()
	p.Faults = len(t.faults)
	if k := len(t.samples); k > 0 {
		p.Mode = t.samples[k-1].Mode
		for _, st := range t.samples[k-1].States {
			p.Runs[st]++
		}
	}
	t.mu.Unlock()
	t.o.Progress(p)
}

// endNodes asks every node to drain and waits for that; before, it looks what they hold without work.
func (t *trial) endNodes(ctx context.Context) error {
	settle := time.NewTimer(2 * t.o.Times.Beat) // what was kept for the next request is given back meanwhile
	defer settle.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-settle.C:
	}
	deadline := time.NewTimer(t.o.Times.Deadline + drainGrace)
	defer deadline.Stop()
	var ends []<-chan struct{}
	for _, n := range t.nodes {
		n.measure(true)
	}
	for _, n := range t.nodes {
		ends = append(ends, n.term())
	}
	t.tell("draining")
	for i, end := range ends {
		select {
		case <-end:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			t.o.Say("node " + t.nodes[i].name + " did not end in time and is killed")
			deadline.Reset(0)
			t.nodes[i].overdue()
		}
	}
	return nil
}

// overdue kills a process that was asked to end and did not; the judge is told.
func (n *node) overdue() {
	n.mu.Lock()
	p, _ := n.current()
	n.mu.Unlock()
	if p == nil {
		return
	}
	p.Kill()
}
