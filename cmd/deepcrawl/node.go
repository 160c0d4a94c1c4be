package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/internal/config"
	"deepcrawl/internal/metrics"
	"deepcrawl/internal/proclock"
	"deepcrawl/storage"
)

// defaultIdleExit is just under cron's minute: a node that has found nothing to do makes room for the next start.
const defaultIdleExit = 55 * time.Second

// takeover is how long a newer binary waits for the older one to drain: the request deadline and a little.
const takeover = 75 * time.Second

func (p *program) nodeCommand() *cli.Command {
	keys := append(sharedKeys(), config.KeyNodeID, config.KeyCoord, config.KeyRedisURL, config.KeyRedisPrefix, config.KeyHostInflight,
		config.KeyWorkers, config.KeyRunWorkers, config.KeyReclaim, config.KeyUserAgent, config.KeyContact, config.KeyAllowPrivate,
		config.KeyBindAddr, config.KeySeenMemory, config.KeyRetention, config.KeyMetricsAddr)
	return &cli.Command{
		Name: "node", Usage: "work runs together with all nodes on the database",
		Description: "Made for cron:  * * * * * deepcrawl node\n" +
			"A start while the node runs says nothing and ends well. SIGTERM drains: requests in flight end, everything else is given back.",
		Flags: append([]cli.Flag{
			&cli.DurationFlag{Name: "idle-exit", Value: defaultIdleExit, Usage: "leave after `DURATION` without work"},
			&cli.BoolFlag{Name: "forever", Usage: "never leave for lack of work (for systemd)"},
			&cli.StringFlag{Name: soakNodeFlag, Hidden: true},
			&cli.StringFlag{Name: soakClockFlag, Hidden: true},
		}, settingFlags(keys...)...),
		Action: p.node,
	}
}

func (p *program) node(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	idle := c.Duration("idle-exit")
	switch {
	case c.Bool("forever") && c.IsSet("idle-exit"):
		return usagef("--forever: not together with --idle-exit")
	case c.Bool("forever"):
		idle = 0
	case idle <= 0:
		return usagef("--idle-exit: %v is not allowed; allowed: more than 0s (or --forever)", idle)
	}
	cfg, err := p.settings(c)
	if err != nil {
		return err
	}
	lock, id, err := p.becomeNode(c.Context, cfg)
	var held *proclock.HeldError
	switch {
	case errors.As(err, &held):
		return nil // cron mails every line, and this is how it should be
	case err != nil:
		return err
	}
	defer func() { _ = lock.Release() }()
	log, closeLog, err := p.newLogger(cfg, cfg.LogLevel, p.stderr)
	if err != nil {
		return err
	}
	defer closeLog()
	p.log = log

	st, err := p.open(c.Context, cfg, mustExist)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	cl, err := p.openCluster(c.Context, cfg, mustExist)
	if err != nil {
		return err
	}
	defer func() { _ = cl.close() }()
	cl.lock, cl.node, cl.role = lock, id, coord.RoleNode
	if c.String(soakNodeFlag) == soakShort {
		cl.timing = soakTiming()
	}
	clock, err := p.soakClock(c.String(soakClockFlag))
	if err != nil {
		return err
	}

	p.tuneRuntime()
	var node *crawl.Node
	stats := func() crawl.Stats { return node.Stats() }
	cl.facts = p.nodeFacts(cfg, cfg.Workers, cfg.RunWorkers, stats)
	told := metrics.New(p.version, func() metrics.Source { return node })
	node, err = crawl.New(p.nodeConfig(cfg, st, cl, crawl.Config{
		Name: string(id), Workers: cfg.Workers, RunWorkers: cfg.RunWorkers, IdleExit: idle, Lead: true, Retention: cfg.Retention,
		MayStore: mayStore(cfg), Metrics: told, Log: log, Join: p.join(cl, coord.Options{Log: log, Clock: clock}),
	}))
	if err != nil {
		return err
	}
	if cfg.MetricsAddr != "" {
		server, err := told.Listen(cfg.MetricsAddr, log)
		if err != nil {
			return usagef("%s (--metrics-addr): cannot listen on %s: %v; allowed: a free HOST:PORT of this machine", config.KeyMetricsAddr, cfg.MetricsAddr, listenCause(err))
		}
		defer func() { _ = server.Close() }()
		log.Info("metrics", "addr", server.Addr().String())
	}
	log.Info("node starts", "node", string(id), "version", p.version, "workers", cfg.Workers)
	err = node.Run(c.Context)
	if errors.Is(err, coord.ErrNodeBusy) {
		return fmt.Errorf("node id %s is in use by a live node on another machine or in another container; set %s to another id here, or stop that one", id, config.KeyNodeID)
	}
	if err != nil {
		return explain(cfg, err)
	}
	if c.IsSet(soakNodeFlag) {
		log.Info("left over", "goroutines", leftGoroutines(c.Context))
	}
	log.Info("node ends", "node", string(id))
	return nil
}

// listenCause is the system's word on why an address cannot be listened on.
func listenCause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// nodeConfig fills in what node and crawl share.
func (p *program) nodeConfig(cfg *config.Config, st storage.Store, cl *cluster, n crawl.Config) crawl.Config {
	n.Store, n.Gone = st, cl.gone
	n.HostCap, n.UserAgent, n.AllowPrivate, n.SeenMemory, n.Now = cfg.HostInflight, cfg.UserAgent, cfg.AllowPrivate, cfg.SeenMemory, p.now
	if cfg.BindAddr.IsValid() {
		n.BindAddr = cfg.BindAddr.String()
	}
	return n
}

// becomeNode takes the lock of the node's id on this machine. Where an older build holds it, that one is asked to drain.
func (p *program) becomeNode(ctx context.Context, cfg *config.Config) (*proclock.Lock, coord.NodeID, error) {
	thing := "node"
	if cfg.NodeID != "" {
		thing += "-" + cfg.NodeID
	}
	path, err := lockPath(cfg, thing)
	if err != nil {
		return nil, "", err
	}
	lock, err := proclock.Take(path)
	var held *proclock.HeldError
	if errors.As(err, &held) && p.newer(held.Holder) {
		// A build that could not work here must not end one that does.
		st, oerr := p.open(ctx, cfg, mustExist)
		if oerr != nil {
			return nil, "", oerr
		}
		if oerr = st.Close(); oerr != nil {
			return nil, "", explain(cfg, oerr)
		}
		lock, err = p.takeOver(ctx, path, held.Holder)
	}
	if err != nil {
		return nil, "", err
	}
	id := coord.NodeID(cfg.NodeID)
	if id == "" {
		// The id generated first stays this machine's: its lock proves that its last process is dead.
		if id = coord.NodeID(lock.Last.Node); id.Check() != nil {
			id = randomName("n")
		}
	}
	if err := lock.Describe(p.holder(id)); err != nil {
		return nil, "", errors.Join(fmt.Errorf("write %s: %w", path, err), lock.Release())
	}
	return lock, id, nil
}

// newer says whether this build is newer than the holder's.
func (p *program) newer(h proclock.Holder) bool {
	return h.PID > 0 && h.Version != p.version && !h.Built.IsZero() && built().After(h.Built)
}

// takeOver asks the holder to drain and waits for its lock.
func (p *program) takeOver(ctx context.Context, path string, h proclock.Holder) (*proclock.Lock, error) {
	if err := syscall.Kill(h.PID, syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) && !errors.Is(err, syscall.ESRCH) {
		return nil, fmt.Errorf("ask the older node (process %d) to drain: %w", h.PID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, takeover)
	defer cancel()
	for {
		lock, err := proclock.Take(path)
		var held *proclock.HeldError
		if !errors.As(err, &held) || held.Holder.PID != h.PID {
			return lock, err // it ended, or yet another took over
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
