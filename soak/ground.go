package soak

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deepcrawl/internal/scratch"
	"deepcrawl/soak/chaos"
)

// Private, as Options.Redis, is a server of the soak's own, started from installed programs.
const Private = "private"

// ground is what a soak stands on: a folder, a database and perhaps a Redis of its own, gone afterwards.
type ground struct {
	dir      string
	dsn      string          // of the soak's own database
	server   *scratch.Server // private; nil: the operator's, or none
	redis    string          // URL; "" without
	redises  []*scratch.Server
	prefix   string // of keys in Redis
	closers  []func()
	cleaners []func(context.Context) error
	keep     bool
}

// cleaning bounds how long removing the ground may take.
const cleaning = 30 * time.Second

// newGround makes it. What was made is removed when it fails.
func newGround(ctx context.Context, o *Options) (g *ground, err error) {
	dir, err := os.MkdirTemp("", "deepcrawl-soak-")
	if err != nil {
		return nil, fmt.Errorf("folder of the soak: %w", err)
	}
	g = &ground{dir: dir, keep: o.Keep}
	g.onClean(func(context.Context) error { return os.RemoveAll(dir) })
	defer func() {
		if err != nil {
			g.keep = false
			err = errors.Join(err, g.remove())
		}
	}()
	if err := g.database(ctx, o.DB); err != nil {
		return nil, err
	}
	if o.Redis != "" {
		err = g.secondPlace(ctx, o)
	}
	return g, err
}

// onClean says how to remove something that is kept where that is asked for; onClose what always ends with the soak.
func (g *ground) onClean(fn func(context.Context) error) { g.cleaners = append(g.cleaners, fn) }
func (g *ground) onClose(fn func())                      { g.closers = append(g.closers, fn) }

// Private servers lose nothing that they confirmed, as those of an operator.
const (
	durablePostgres = "fsync=on"
	durableMariaDB  = "innodb-flush-log-at-trx-commit=1"
)

// database makes the database that db names.
func (g *ground) database(ctx context.Context, db string) error {
	create := map[string]func(context.Context, string) (string, func(context.Context) error, error){
		"postgres": scratch.Postgres, "postgresql": scratch.Postgres, "pg": scratch.Postgres, "mysql": scratch.MySQL, "mariadb": scratch.MySQL,
	}
	private := map[string]func() (*scratch.Server, error){
		"postgres": func() (*scratch.Server, error) { return scratch.NewPostgres(durablePostgres) },
		"mysql":    func() (*scratch.Server, error) { return scratch.NewMariaDB(durableMariaDB) },
	}
	scheme, _, isDSN := strings.Cut(db, ":")
	switch {
	case scheme == "sqlite":
		g.dsn = "sqlite:" + filepath.Join(g.dir, "soak.db")
		return nil
	case !isDSN && private[db] != nil:
		server, err := private[db]()
		if err != nil {
			return fmt.Errorf("--db: no server of %s is set (DEEPCRAWL_DB or a DSN), and none can be started: %w", db, err)
		}
		g.server = server
		g.onClose(server.Kill)
		g.onClean(func(context.Context) error { server.Remove(); return nil })
		if err := server.Start(); err != nil {
			return err
		}
		db, scheme = server.DSN(), db
		fallthrough
	case create[scheme] != nil:
		if scheme == "pg" {
			db = "postgres" + strings.TrimPrefix(db, "pg")
		}
		dsn, drop, err := create[scheme](ctx, db)
		if err != nil {
			return fmt.Errorf("--db: make a database for the soak: %w", err)
		}
		g.dsn = dsn
		if g.server == nil { // a private one goes as a whole
			g.onClean(drop)
		}
		return nil
	}
	return fmt.Errorf("--db: unknown database; allowed: sqlite, postgres, mysql or a DSN")
}

// secondPlace makes the Redis ready: the operator's with a key prefix of the soak's own, or a private one, with a replica where
// one is to be promoted.
func (g *ground) secondPlace(ctx context.Context, o *Options) error {
	if o.Redis != Private {
		if err := scratch.PingRedis(ctx, o.Redis); err != nil {
			return fmt.Errorf("--redis: %w", err)
		}
		g.redis = o.Redis
		prefix, drop := scratch.Redis(o.Redis)
		g.prefix = prefix
		g.onClean(drop)
		return nil
	}
	count := 1
	if slices.Contains(o.kinds(), chaos.RedisPromote) {
		count = 2
	}
	for range count {
		server, err := scratch.NewRedis("repl-diskless-sync-delay=0")
		if err != nil {
			return fmt.Errorf("--coord: no Redis is set (--redis or DEEPCRAWL_REDIS_URL), and none can be started: %w", err)
		}
		g.redises = append(g.redises, server)
		g.onClose(server.Kill)
		g.onClean(func(context.Context) error { server.Remove(); return nil })
		if err := server.Start(); err != nil {
			return err
		}
	}
	g.redis, g.prefix = g.redises[0].DSN(), "soak:"
	if count == 2 {
		return scratch.FollowRedis(ctx, g.redises[1].DSN(), g.redis)
	}
	return nil
}

// name says which database is the soak's, without who may use it.
func (g *ground) name() string {
	if g.server != nil {
		return "data of the private server in " + g.server.Dir()
	}
	u, err := url.Parse(g.dsn)
	if err != nil {
		return g.dsn
	}
	u.User = nil
	return u.String()
}

// remove ends what runs and takes everything away again that is not to be kept, the last thing made first. It is idempotent.
func (g *ground) remove() error {
	for i := len(g.closers) - 1; i >= 0; i-- {
		g.closers[i]()
	}
	g.closers = nil
	if g.keep {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleaning)
	defer cancel()
	var errs []error
	for i := len(g.cleaners) - 1; i >= 0; i-- {
		errs = append(errs, g.cleaners[i](ctx))
	}
	g.cleaners = nil
	return errors.Join(errs...)
}
