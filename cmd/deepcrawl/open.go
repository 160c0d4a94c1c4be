package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/internal/config"
	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// openMode says what may happen to a database that is not there.
type openMode bool

const (
	mustExist openMode = false
	create    openMode = true
)

// open opens the database of the settings. Its errors are one line that names the database.
func (p *program) open(ctx context.Context, cfg *config.Config, mode openMode) (storage.Store, error) {
	if path, ok := sqliteFile(cfg.DB); ok && mode == create {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return nil, usagef("%s: the folder %s cannot be used: %v; allowed: a path in a folder that exists", cfg.DB, filepath.Dir(path), pathCause(err))
		}
	}
	st, err := sqlstore.Open(ctx, cfg.DB, sqlstore.Options{Create: bool(mode), Workers: cfg.Workers})
	if err != nil {
		return nil, explain(cfg, err)
	}
	return st, nil
}

// explain adds what can be done about an error of the database.
func explain(cfg *config.Config, err error) error {
	shown, _, _ := strings.Cut(config.Mask(cfg.DB), "?")
	hint := ""
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, sqldb.ErrMissing), errors.Is(err, storage.ErrNotFound):
		if hint = "make it first, then run deepcrawl migrate"; strings.HasPrefix(cfg.DB, "sqlite:") {
			hint = "deepcrawl crawl URL makes it, --db names another"
		}
	case errors.Is(err, storage.ErrForeign), errors.Is(err, sqldb.ErrForeign):
		hint = "it was left alone; --db names another"
	case errors.Is(err, storage.ErrReadOnly), errors.Is(err, sqldb.ErrReadOnly):
		hint = "make the file and its folder writable, or name another with --db"
	case errors.Is(err, storage.ErrFull), errors.Is(err, sqldb.ErrFull):
		hint = "what was stored is safe; make room and go on with --resume"
	case errors.Is(err, sqldb.ErrContention):
		hint = "another program keeps it locked; what was stored is safe"
	}
	path, embedded := sqliteFile(shown)
	if text := err.Error(); !strings.HasPrefix(text, "open ") && !strings.Contains(text, shown) && !(embedded && strings.Contains(text, filepath.Base(path))) {
		err = fmt.Errorf("%s: %w", shown, err)
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, hint)
}

// sqliteFile returns the path of an embedded database.
func sqliteFile(db string) (path string, ok bool) {
	rest, ok := strings.CutPrefix(db, "sqlite:")
	return strings.TrimPrefix(rest, "//"), ok
}

// withStore opens the database for one command.
func (p *program) withStore(c *cli.Context, mode openMode, fn func(storage.Store) error) (err error) {
	cfg, err := p.settings(c)
	if err != nil {
		return err
	}
	st, err := p.open(c.Context, cfg, mode)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := st.Close(); err == nil && cerr != nil {
			err = explain(cfg, cerr)
		}
	}()
	if err = fn(st); err != nil && isStorage(err) {
		return explain(cfg, err)
	}
	return err
}

func isStorage(err error) bool {
	for _, s := range []error{storage.ErrFull, storage.ErrReadOnly, storage.ErrSchema, storage.ErrForeign, storage.ErrUnavailable} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

// pathCause is the cause of a file error, which repeats neither path nor call.
func pathCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// afterStop is how long a command that was interrupted may still use the database, to say how things stand.
const afterStop = 20 * time.Second
