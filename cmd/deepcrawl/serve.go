package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/urfave/cli/v2"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/internal/admin"
	"deepcrawl/internal/config"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

func (p *program) serveCommand() *cli.Command {
	keys := append(sharedKeys(), config.KeyListen, config.KeyCoord, config.KeyRedisURL, config.KeyRedisPrefix, config.KeyReclaim)
	return &cli.Command{
		Name: "serve", Usage: "show the cluster and its crawls in a browser, with an API",
		Description: "The first start prints a link that makes the operator. TLS is a proxy's work; keep the address on this machine without one.",
		Flags:       settingFlags(keys...),
		Action:      p.serve,
	}
}

func (p *program) serve(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return p.withCluster(c, func(o opened) error {
		store, ok := o.store.(admin.Store)
		if !ok {
			return errors.New("serve: the database keeps no users")
		}
		log, closeLog, err := p.newLogger(o.cfg, o.cfg.LogLevel, p.stderr)
		if err != nil {
			return err
		}
		defer closeLog()
		server, err := admin.New(admin.Config{Store: store, Operations: &operations{p, o}, Version: p.version, Now: p.now, Log: log})
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", o.cfg.Listen)
		if err != nil {
			return usagef("%s: cannot listen on %s: %v; allowed: a free HOST:PORT of this machine", config.KeyListen, o.cfg.Listen, listenCause(err))
		}
		defer func() { _ = l.Close() }() // closed by the server already, unless it never began
		base := "http://" + reachable(l.Addr())
		p.note("pages at " + base + "/")
		path, err := server.OfferSetUp(c.Context)
		if err != nil {
			return err
		}
		if path != "" {
			p.note("nobody may sign in yet; make the operator within a day at " + base + path)
		}
		return server.Serve(c.Context, l)
	})
}

// reachable is an address as a browser on this machine takes it.
func reachable(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a.String()
	}
	return fmt.Sprintf("127.0.0.1:%d", t.Port)
}

// operations are what commands do, for the pages.
type operations struct {
	p *program
	o opened
}

var _ admin.Operations = (*operations)(nil)

// told makes a mistake in what a person asked for one the pages tell them of.
func told(err error) error {
	var usage *usageError
	if errors.As(err, &usage) {
		return &admin.Mistake{Text: strings.TrimLeft(usage.msg, "-")}
	}
	return err
}

// Cluster implements admin.ClusterOperations.
func (w *operations) Cluster(ctx context.Context) (show.Cluster, error) {
	s, err := w.p.look(ctx, w.o)
	if err != nil {
		return show.Cluster{}, err
	}
	return s.status(false), nil
}

// Hosts implements admin.ClusterOperations.
func (w *operations) Hosts(ctx context.Context) ([]show.Host, error) {
	bans, err := w.o.store.Bans(ctx)
	if err != nil {
		return nil, fmt.Errorf("list bans: %w", err)
	}
	gates, err := w.o.coord.Gates(ctx)
	if err != nil {
		return nil, fmt.Errorf("list gates: %w", err)
	}
	return hostRows(bans, gates, w.p.now()), nil
}

// Coordinate implements admin.ClusterOperations.
func (w *operations) Coordinate(ctx context.Context, to coord.Mode) (string, error) {
	if to != coord.ModeDB && to != coord.ModeRedis {
		return "", &admin.Mistake{Text: fmt.Sprintf("coordination: %q; allowed: db or redis", to)}
	}
	_, err := switchTo(ctx, w.o.coord, to)
	if errors.Is(err, errNoSession) {
		return "", &admin.Mistake{Text: err.Error()}
	}
	if err != nil {
		return "", told(err)
	}
	a, _, err := w.o.coord.Authority(ctx)
	if err != nil {
		return "", err
	}
	if a.Mode == coord.ModeDrain {
		return fmt.Sprintf("coordination moves to %s, epoch %d; it ends when every session has agreed", a.Target, a.Epoch), nil
	}
	return fmt.Sprintf("coordination is with %s, epoch %d", a.Mode, a.Epoch), nil
}

// HasRedis implements admin.ClusterOperations.
func (w *operations) HasRedis() bool { return hasRedis(w.o.coord) }

// SteerHost implements admin.ClusterOperations.
func (w *operations) SteerHost(ctx context.Context, action, name, reason string) (string, error) {
	host, err := hostOf("host", strings.TrimSpace(name))
	if err != nil {
		return "", told(err)
	}
	var said string
	switch action {
	case "ban":
		said, err = banHost(ctx, w.o, host, reason)
	case "unban":
		said, err = unbanHost(ctx, w.o, host)
	case "clear":
		said, err = w.p.clearHost(ctx, w.o, host)
	default:
		return "", fmt.Errorf("%s: %w", action, storage.ErrNotFound)
	}
	return host + ": " + said, told(err)
}

// Check implements admin.ClusterOperations.
func (w *operations) Check(ctx context.Context, say func(show.CheckLine)) error {
	k := w.p.newChecker(ctx, w.o)
	k.told = say
	k.all()
	return ctx.Err()
}

// Start implements admin.RunOperations.
func (w *operations) Start(ctx context.Context, tenant string, spec crawl.Spec) (storage.Run, error) {
	for i, s := range spec.Seeds {
		spec.Seeds[i] = seedOf(s)
	}
	if err := spec.Check(); err != nil {
		return storage.Run{}, &admin.Mistake{Text: err.Error()}
	}
	profile, err := crawl.ParseProfile(spec.Profile)
	if err != nil {
		return storage.Run{}, &admin.Mistake{Text: err.Error()}
	}
	run, err := w.o.store.CreateRun(ctx, storage.NewRun{Tenant: tenant, Site: spec.Site(), Spec: spec.Encode(), Concurrency: profile.Concurrency})
	if errors.Is(err, storage.ErrNotFound) {
		err = &admin.Mistake{Text: fmt.Sprintf("there is no tenant %q", tenant)}
	}
	return run, err
}

// SteerRun implements admin.RunOperations.
func (w *operations) SteerRun(ctx context.Context, action string, id storage.RunID) (string, error) {
	do, ok := map[string]func(context.Context, storage.Store, storage.RunID) (string, error){
		"pause": pauseRun, "resume": resumeRun, "cancel": cancelRun, "delete": deleteRun,
	}[action]
	if !ok {
		return "", fmt.Errorf("%s: %w", action, storage.ErrNotFound)
	}
	return do(ctx, w.o.store, id)
}

// Waits implements admin.RunOperations.
func (w *operations) Waits(ctx context.Context, runs []storage.Run) error {
	why, err := w.p.waitWords(ctx, w.o, runs...)
	if err != nil {
		return err
	}
	for i := range runs {
		why.tell(&runs[i])
	}
	return nil
}

// Export implements admin.RunOperations.
func (w *operations) Export(ctx context.Context, run storage.Run, what, format string, to io.Writer) error {
	for _, e := range exports {
		if e.what != what {
			continue
		}
		x := &exporter{ctx: ctx, store: w.o.store, run: run, format: format, stdout: to}
		var err error
		if x.spec, err = crawl.DecodeSpec(run.Spec); err != nil {
			return err
		}
		return e.run(x)
	}
	return fmt.Errorf("export %s: %w", what, storage.ErrNotFound)
}
