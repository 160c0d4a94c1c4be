package coordination_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/failover"
	"deepcrawl/coord/memcoord"
	"deepcrawl/coord/rediscoord"
	"deepcrawl/coord/session"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/crawl"
	"deepcrawl/internal/testenv"
	"deepcrawl/soak/web"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

const (
	pages     = 6000
	inFlight  = 24
	atLeast   = 0.95 // of the pages a second without a server to ask
	mostShare = 0.03 // of the lanes' time
	mostTrips = 0.05 // a page
	rounds    = 3
)

// timed counts what acquiring slots costs.
type timed struct {
	coord.Session
	spent *atomic.Int64
}

func (s timed) Acquire(ctx context.Context, need coord.Need) ([]coord.Permit, error) {
	begin := time.Now()
	defer func() { s.spent.Add(int64(time.Since(begin))) }()
	return s.Session.Acquire(ctx, need)
}

// coordination is where a session comes from.
type coordination struct {
	name string
	join func(t *testing.T) coord.Session
}

func joined(t *testing.T, c coord.Coord) coord.Session {
	t.Helper()
	s, err := session.Join(t.Context(), c, coord.Options{Node: "bench", Role: coord.RoleCrawl})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func database(t *testing.T) *sqlcoord.Coord {
	t.Helper()
	dsn := testenv.Postgres(t)
	if _, err := sqlcoord.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	db, err := sqlcoord.Open(t.Context(), dsn, sqlcoord.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // it is measured
	return db
}

var coordinations = []coordination{
	{"memory", func(t *testing.T) coord.Session { return joined(t, memcoord.New(nil)) }},
	{"PostgreSQL", func(t *testing.T) coord.Session { return joined(t, database(t)) }},
	{"Redis", func(t *testing.T) coord.Session {
		url, prefix := testenv.Redis(t)
		second, err := rediscoord.OpenSecond(url, rediscoord.Options{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = second.Close() }) // it is measured
		s := joined(t, failover.New(database(t), second, nil))
		for end := time.Now().Add(time.Minute); s.Status().Authority.Mode != coord.ModeRedis; time.Sleep(50 * time.Millisecond) { // the first switch
			if time.Now().After(end) {
				t.Fatalf("never in mode redis: %+v", s.Status().Authority)
			}
		}
		return s
	}},
}

// TestCrawl crawls one host at full speed into SQLite, with slots from memory, from PostgreSQL and from Redis in turn.
func TestCrawl(t *testing.T) {
	speed := map[string][]float64{}
	for round := range rounds {
		for i := range coordinations {
			c := coordinations[(i+round)%len(coordinations)]
			t.Run(fmt.Sprintf("%s %d", c.name, round+1), func(t *testing.T) {
				perSecond, share, trips := crawlOnce(t, c)
				t.Logf("%.0f pages/s, %.2f %% of the time and %.4f round trips a page for coordination", perSecond, 100*share, trips)
				speed[c.name] = append(speed[c.name], perSecond)
				if share > mostShare || trips > mostTrips {
					t.Errorf("at most %.0f %% and %.2f are allowed", 100*mostShare, mostTrips)
				}
			})
		}
	}
	median := func(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }
	base := median(speed["memory"])
	for _, c := range coordinations[1:] {
		ratio := median(speed[c.name]) / base
		t.Logf("%s: %.3f of memory's pages/s, at least %.2f", c.name, ratio, atLeast)
		if ratio < atLeast {
			t.Errorf("%s: %.3f of memory's pages/s", c.name, ratio)
		}
	}
}

func crawlOnce(t *testing.T, c coordination) (perSecond, share, trips float64) {
	t.Helper()
	site, err := web.New(web.Config{Seed: 7, Pages: pages, PageBytes: 11_000, LinksPerPage: 20, Latency: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	l, err := site.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- l.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	st, err := sqlstore.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "crawl.db"), sqlstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	spec := crawl.Spec{Seeds: []string{l.URLs()[0]}, Profile: "fast", NoSitemaps: true}
	run, err := st.CreateRun(t.Context(), storage.NewRun{Tenant: storage.DefaultTenant, Site: spec.Site(), Spec: spec.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	s := c.join(t)
	var spent atomic.Int64
	node, err := crawl.New(crawl.Config{
		Store: st, UserAgent: "DeepcrawlBench/1.0", AllowPrivate: true, Only: run.ID, HostCap: inFlight,
		Join: func(context.Context) (coord.Session, error) { return timed{s, &spent}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	before, begin := s.Status().RoundTrips, time.Now()
	if err := node.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	ledger, err := st.Ledger(t.Context(), run.ID)
	if err != nil || ledger.Fetched < pages*9/10 {
		t.Fatalf("ledger %+v, %v", ledger, err)
	}
	n := float64(ledger.Fetched)
	return n / took.Seconds(), float64(spent.Load()) / float64(time.Duration(inFlight)*took), float64(s.Status().RoundTrips-before) / n
}
