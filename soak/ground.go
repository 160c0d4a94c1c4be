package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deepcrawl/internal/scratch"
)

// ground is what a soak stands on: a folder and a database of its own, gone afterwards.
type ground struct {
	dir     string
	dsn     string          // of the soak's own database
	server  *scratch.Server // private; nil: the operator's, or none
	prefix  string          // of keys in Redis
	cleanup []func(context.Context) error
	keep    bool
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
		if err := scratch.PingRedis(ctx, o.Redis); err != nil {
			return nil, fmt.Errorf("--redis: %w", err)
		}
		prefix, drop := scratch.Redis(o.Redis)
		g.prefix = prefix
		g.onClean(drop)
	}
	return g, nil
}

func (g *ground) onClean(fn func(context.Context) error) { g.cleanup = append(g.cleanup, fn) }

// database makes the database that db names.
func (g *ground) database(ctx context.Context, db string) error {
	create := map[string]func(context.Context, string) (string, func(context.Context) error, error){
		"postgres": scratch.Postgres, "postgresql": scratch.Postgres, "pg": scratch.Postgres, "mysql": scratch.MySQL, "mariadb": scratch.MySQL,
	}
	private := map[string]func(...string) (*scratch.Server, error){
		"postgres": scratch.NewPostgres, "pg": scratch.NewPostgres, "mysql": scratch.NewMariaDB,
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
		g.onClean(func(context.Context) error { server.Remove(); return nil })
		if err := server.Start(); err != nil {
			return err
		}
		db, scheme = server.DSN(), map[string]string{"postgres": "postgres", "pg": "postgres", "mysql": "mysql"}[db]
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

// remove takes everything away again, the last thing made first. It is idempotent.
func (g *ground) remove() error {
	if g.keep {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleaning)
	defer cancel()
	var errs []error
	for i := len(g.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, g.cleanup[i](ctx))
	}
	g.cleanup = nil
	return errors.Join(errs...)
}
