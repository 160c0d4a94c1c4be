package soak

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"deepcrawl/soak/chaos"
)

// Times are the constants of coordination the nodes run under; see the protocol's page.
type Times struct {
	Beat     time.Duration
	View     time.Duration // E
	Deadline time.Duration // M: of a request
	Pause    time.Duration // P
	Death    time.Duration // T: silence after which a session is dead
	Lease    time.Duration // of who leads

	// Of the ways between Redis and the database; 0 is production's.
	Fall, Stable, Return time.Duration
}

func (t Times) String() string {
	s := fmt.Sprintf("beat %v, view %v, request deadline %v, pause %v, death %v, lease %v", t.Beat, t.View, t.Deadline, t.Pause, t.Death, t.Lease)
	if t.Fall > 0 {
		s += fmt.Sprintf(", Redis left after %v, taken again after %v of quiet and %v to %v of waiting", t.Fall, t.Stable, t.Return, 6*t.Return)
	}
	return s
}

// Options of a soak.
type Options struct {
	Nodes, Workers int // workers of each node
	Runs, Pages    int // pages of the site each run crawls
	HostCap        int
	Latency        time.Duration // of the site

	// DB is the database: sqlite, or a DSN in which a schema or a database is made for the soak, or postgres or mysql for a private
	// server started from installed programs.
	DB string
	// Coord is db or redis; Redis the server's URL, or Private.
	Coord, Redis string
	Port         int // of the site

	// Kill, when not 0, kills a random node this long after all are working, and again and again until half of the pages are done.
	Kill      time.Duration
	NoRestart bool // a killed node stays dead; else it is started again after a second
	Chaos     []chaos.Kind
	ChaosAll  bool // and every fault that these databases allow

	Times     Times
	NodeFlags []string // further flags of the node processes, such as those that set the times
	ClockFlag string   // flag of a node that takes OFFSET/DRIFT
	NodeEnv   []string // further settings of the nodes, NAME=value: to see that a wrong one is found
	Seed      uint64
	Timeout   time.Duration
	Keep      bool // leave folder and database behind

	Executable string // the binary whose nodes are tried
	// Setup makes the tables in a database and orders the runs: it is the product's own code.
	Setup func(ctx context.Context, dsn string, o Order) (runs []int64, err error)
	// Begin is called once the site listens, to say what will be done; it may be nil.
	Begin func()
	// Say gets lines for the person who watches; Progress the state of things every half second. Either may be nil.
	Say      func(line string)
	Progress func(Progress)
}

// Order is what the soak wants crawled.
type Order struct {
	Tenants []Tenant
	Runs    []Run
}

// Tenant is a tenant with a tariff of its own.
type Tenant struct {
	Name              string
	Parallel, Workers int
}

// Run is one crawl.
type Run struct {
	Tenant, Agent string
	Seeds         []string
	Profile       string
	MaxPages      int     // 0: all
	PerSecond     float64 // starts a host may see of it; 0: any
}

// Progress is how a soak stands.
type Progress struct {
	Phase    string
	Since    time.Duration
	Requests int
	Wanted   int // requests the site will see about
	InFlight int
	Runs     map[string]int // by state
	Nodes    int            // running
	Faults   int
	Mode     string // of coordination
}

// Limits of the options; the command names the flags.
const (
	maxNodes = 50
	maxRuns  = 50
)

// Check returns an error that names the option and what is allowed.
func (o *Options) Check() error {
	for _, f := range []struct {
		name     string
		v        int
		min, max int
	}{
		{"nodes", o.Nodes, 1, maxNodes}, {"workers", o.Workers, 1, 100}, {"runs", o.Runs, 1, maxRuns}, {"pages", o.Pages, 10, 1_000_000},
		{"host-cap", o.HostCap, 1, 1000}, {"port", o.Port, 0, 65535},
	} {
		if f.v < f.min || f.v > f.max {
			return fmt.Errorf("--%s: %d is not allowed; allowed: %d to %d", f.name, f.v, f.min, f.max)
		}
	}
	if o.Latency < 0 || o.Latency > o.Times.Deadline/2 {
		return fmt.Errorf("--latency: %v is not allowed; allowed: up to half the request deadline of %v", o.Latency, o.Times.Deadline)
	}
	if o.Kill < 0 {
		return fmt.Errorf("--kill: %v is not allowed; allowed: a number of seconds from 1", o.Kill)
	}
	if o.NoRestart && o.Kill > 0 && o.Nodes < 2 {
		return fmt.Errorf("--no-restart: the only node would stay dead; allowed: with --nodes 2 or more")
	}
	for _, k := range o.Chaos {
		if why := o.prevents(k); why != "" {
			return fmt.Errorf("--chaos: %s is not allowed: %s; allowed here: %s, %s", k, why, chaos.Words(o.possible()), chaos.All)
		}
	}
	return nil
}

// own says whether a fault harms a server, and then whether that is one of the soak's own.
func (o *Options) own(k chaos.Kind) (harms, own bool) {
	switch k {
	case chaos.DBRestart:
		return true, !strings.Contains(o.DB, ":")
	case chaos.RedisKill, chaos.RedisFlush, chaos.RedisRestart, chaos.RedisPromote:
		return true, o.Redis == Private
	}
	return false, false
}

// prevents says why a fault cannot be injected here; "" when it can.
func (o *Options) prevents(k chaos.Kind) string {
	db, onRedis := k == chaos.DBRestart || k == chaos.DBPartition, strings.HasPrefix(string(k), "redis-")
	switch {
	case db && strings.HasPrefix(o.DB, "sqlite"):
		return "SQLite has no server"
	case onRedis && o.Redis == "":
		return "it needs --coord redis"
	}
	if harms, own := o.own(k); harms && !own {
		return "the server is yours, and only private ones are harmed"
	}
	dsn := ""
	switch {
	case k == chaos.DBPartition && strings.Contains(o.DB, ":"):
		dsn = o.DB
	case k == chaos.RedisPartition && o.Redis != Private:
		dsn = o.Redis
	}
	if dsn != "" {
		if _, err := wayTo(dsn); err != nil {
			return err.Error()
		}
	}
	return ""
}

// possible lists the faults that can be injected here.
func (o *Options) possible() []chaos.Kind {
	return slices.DeleteFunc(chaos.Kinds(), func(k chaos.Kind) bool { return o.prevents(k) != "" })
}

// kinds are the faults of this soak.
func (o *Options) kinds() []chaos.Kind {
	kinds := slices.Clone(o.Chaos)
	if o.ChaosAll {
		kinds = o.possible()
	}
	if o.Kill > 0 && !slices.Contains(kinds, chaos.Kill) {
		kinds = append([]chaos.Kind{chaos.Kill}, kinds...)
	}
	return kinds
}

// Spared says which faults are left out because the servers are the operator's; "" when none is.
func (o *Options) Spared() string {
	if !o.ChaosAll {
		return ""
	}
	var spared []chaos.Kind
	for _, k := range chaos.Kinds() {
		if harms, own := o.own(k); harms && !own && !(k == chaos.DBRestart && strings.HasPrefix(o.DB, "sqlite")) && (k == chaos.DBRestart || o.Redis != "") {
			spared = append(spared, k)
		}
	}
	if len(spared) == 0 {
		return ""
	}
	return "servers of yours are not harmed: faults on nodes and on their ways to the servers only, without " + chaos.Words(spared)
}
