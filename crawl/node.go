package crawl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl/extract"
	"deepcrawl/crawl/fetch"
	"deepcrawl/crawl/frontier"
	"deepcrawl/storage"
)

// Config is what a node is made of. Store, Join and UserAgent are required; zero values of the rest are defaults.
type Config struct {
	Store storage.Store
	// Join starts a session with the coordinator. It is called again after a session was fenced.
	Join func(ctx context.Context) (coord.Session, error)
	// FenceBase is added to the epoch of fences: where the coordinator forgets with the process, a number that grows with each
	// process (its start in microseconds).
	FenceBase uint64
	// Name is the node's name that runs with a Home are reserved for.
	Name string
	// Gone tells which owners of claims and seats are certainly over (session dead or left). nil: the process has the database for
	// itself, so that every owner but its own session is.
	Gone func(ctx context.Context) (func(storage.Owner) bool, error)
	// Lead makes the node take part in leading: duties one node does for all.
	Lead bool
	// Retention is how long ended runs are kept; 0: for ever. A leader's duty.
	Retention time.Duration
	// HungAfter is how long an active run may finish nothing, without waiting for anything, before the leader closes it; 12 h.
	HungAfter time.Duration
	// Only restricts the node to one run; Run returns when that run is over. 0: any run.
	Only storage.RunID
	// Workers is the number of runs served at a time; 1.
	Workers int
	// RunWorkers bounds the seats of one run over all nodes; 0: as Workers.
	RunWorkers int
	// HostCap bounds requests in flight to one host over everything; 24.
	HostCap int
	// IdleExit ends Run after this long without work; 0: never.
	IdleExit time.Duration

	UserAgent    string // of runs that name none
	AllowPrivate bool
	BindAddr     string

	// SeenMemory bounds the memory of known URLs in bytes; beyond it the database is asked. 256 MiB.
	SeenMemory int64
	// Turn is how long a worker serves a run before it asks which is next; 2 s.
	Turn time.Duration

	// MayStore is asked before work is begun; an error, whose text people read, keeps the node from starting requests until it is
	// gone (a disk that is nearly full). It is asked a few times a second and must not block. nil: always.
	MayStore func() error

	Metrics Metrics      // default: nobody is told
	Log     *slog.Logger // default: discard
	Now     func() time.Time
}

const (
	defaultHostCap    = 24
	defaultSeenMemory = 256 << 20
	defaultTurn       = 2 * time.Second
	idlePoll          = time.Second     // between looks for work while idle
	idleSlow          = 2 * time.Second // the same after idleLong without any
	idleLong          = 5 * time.Second
	rejoinPause       = time.Second     // between sessions, after a fencing
	storeRetryFirst   = time.Second / 4 // while the database does not answer
	storeRetryMost    = 2 * time.Second // so that results are stored soon after it answers again
)

// Node works runs. It is one process's part of the cluster.
type Node struct {
	cfg     Config
	log     *slog.Logger
	extract *extract.Extractor
	memory  *frontier.Memory

	mu      sync.Mutex
	clients map[string]*fetch.Client // by user agent
	current *life
	ended   map[storage.RunID]Snapshot
}

// New checks the configuration.
func New(cfg Config) (*Node, error) {
	if cfg.Store == nil || cfg.Join == nil {
		return nil, errors.New("crawl: a node needs a store and a coordinator")
	}
	cfg.Workers = max(cfg.Workers, 1)
	if cfg.RunWorkers <= 0 {
		cfg.RunWorkers = cfg.Workers
	}
	if cfg.HostCap <= 0 {
		cfg.HostCap = defaultHostCap
	}
	if cfg.SeenMemory <= 0 {
		cfg.SeenMemory = defaultSeenMemory
	}
	if cfg.HungAfter <= 0 {
		cfg.HungAfter = defaultHung
	}
	if cfg.Turn <= 0 {
		cfg.Turn = defaultTurn
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = noMetrics{}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Node{
		cfg: cfg, log: cfg.Log, extract: extract.New(extract.Config{}), memory: frontier.NewMemory(cfg.SeenMemory),
		clients: make(map[string]*fetch.Client), ended: make(map[storage.RunID]Snapshot),
	}, nil
}

// Run works until ctx ends, the node has been idle for IdleExit, or the run it is restricted to is over. When ctx ends it
// drains: no new requests, those in flight go on to their end (at most the request deadline), results are committed, claims
// and slots given back. It returns nil after an orderly end, and an error when it cannot work at all (no space left, database
// of another schema, coordinator refused); what was claimed is then returned when this node's next session starts or after
// the reclaim time.
func (n *Node) Run(ctx context.Context) error {
	defer n.closeClients()
	for {
		sess, err := n.cfg.Join(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("join the cluster: %w", err)
		}
		l := newLife(n, sess)
		n.setLife(l)
		err = l.run(ctx)
		n.setLife(nil)
		leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		if e := sess.Leave(leave); e != nil && !errors.Is(e, coord.ErrFenced) && !errors.Is(err, storage.ErrFull) {
			n.log.Warn("leave the cluster", "node", sess.ID().String(), "err", e)
		}
		cancel()
		if !errors.Is(err, errFenced) {
			return err
		}
		n.log.Warn("session ended, joining again", "node", sess.ID().String(), "err", sess.Err())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rejoinPause):
		}
	}
}

func (n *Node) setLife(l *life) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.current = l
}

// client returns the fetch client of a user agent.
func (n *Node) client(agent string, deadline time.Duration) (*fetch.Client, error) {
	if agent == "" {
		agent = n.cfg.UserAgent
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if c, ok := n.clients[agent]; ok {
		return c, nil
	}
	c, err := fetch.New(fetch.Config{
		UserAgent: agent, AllowPrivate: n.cfg.AllowPrivate, BindAddr: n.cfg.BindAddr,
		HardDeadline: deadline, IdlePerHost: 2 * n.cfg.HostCap,
	})
	if err != nil {
		return nil, err
	}
	n.clients[agent] = c
	return c, nil
}

func (n *Node) closeClients() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for agent, c := range n.clients {
		c.Close()
		delete(n.clients, agent)
	}
}

// errFenced ends a life whose session is over; the node joins again.
var errFenced = errors.New("session is over")

// retryStore calls fn until it succeeds, fails for good or ctx ends; a database that does not answer is waited for.
func retryStore(ctx context.Context, log *slog.Logger, what string, fn func() error) error {
	pause := storeRetryFirst
	for {
		err := fn()
		if err == nil || !(errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrUnknown)) {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		log.Warn("database does not answer, trying again", "op", what, "err", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(jitter(pause)):
		}
		pause = min(2*pause, storeRetryMost)
	}
}

// jitter spreads a pause over 75 to 125 %.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + time.Duration(rand.Int64N(int64(d/2)+1))
}
