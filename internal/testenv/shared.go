package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"deepcrawl/internal/scratch"
)

// probeTimeout bounds one attempt to reach a server; a server on the loopback answers at once or is not there.
const probeTimeout = 3 * time.Second

// workTimeout bounds making and dropping a schema or a database.
const workTimeout = 60 * time.Second

// server is what a lookup found, once a process.
type server struct {
	dsn string
	err error
}

// find tries the variable, then the local default, then a private instance.
func find(variable, local string, ping func(ctx context.Context, dsn string) error, create func(...string) (*scratch.Server, error)) server {
	try := func(dsn string) error {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		return ping(ctx, dsn)
	}
	if dsn := os.Getenv(variable); dsn != "" {
		return server{dsn, try(dsn)}
	}
	err := try(local)
	if err == nil {
		return server{local, nil}
	}
	dsn, perr := startShared(create)
	if perr != nil {
		return server{"", fmt.Errorf("not at %s (%w) and none started: %w", local, err, perr)}
	}
	return server{dsn, nil}
}

// startShared starts a server for all tests of the process.
func startShared(create func(...string) (*scratch.Server, error)) (string, error) {
	if !scratch.DiesWithParent {
		return "", errors.New("a shared private server needs Linux")
	}
	in, err := create()
	if err != nil {
		return "", err
	}
	if err := in.Start(); err != nil {
		return "", err
	}
	return in.DSN(), nil
}

var (
	foundPostgres = sync.OnceValue(func() server {
		return find(VarPostgres, "postgres://postgres@127.0.0.1:5432/postgres", scratch.PingPostgres, scratch.NewPostgres)
	})
	foundMySQL = sync.OnceValue(func() server {
		return find(VarMySQL, "mysql://root@127.0.0.1:3306/", scratch.PingMySQL, scratch.NewMariaDB)
	})
	foundRedis = sync.OnceValue(func() server {
		return find(VarRedis, "redis://127.0.0.1:6379/0", scratch.PingRedis, scratch.NewRedis)
	})
)

// Postgres returns the DSN of a schema of the test's own: postgres://USER@HOST:PORT/DATABASE?search_path=SCHEMA.
func Postgres(t testing.TB) string {
	t.Helper()
	return own(t, foundPostgres(), kindPostgres, VarPostgres, scratch.Postgres)
}

// MySQL returns the DSN of a database of the test's own, on MariaDB or MySQL: mysql://USER@HOST:PORT/NAME.
func MySQL(t testing.TB) string {
	t.Helper()
	return own(t, foundMySQL(), kindMySQL, VarMySQL, scratch.MySQL)
}

func own(t testing.TB, s server, word, variable string, create func(context.Context, string) (string, func(context.Context) error, error)) string {
	t.Helper()
	if s.err != nil {
		skip(t, word, variable, s.err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), workTimeout)
	defer cancel()
	dsn, drop, err := create(ctx, s.dsn)
	if err != nil {
		t.Fatal(err)
	}
	dropAfter(t, drop)
	return dsn
}

// Redis returns a server's URL and a key prefix of the test's own; keys with it are deleted at the test's end.
func Redis(t testing.TB) (redisURL, prefix string) {
	t.Helper()
	s := foundRedis()
	if s.err != nil {
		skip(t, kindRedis, VarRedis, s.err)
	}
	prefix, drop := scratch.Redis(s.dsn)
	dropAfter(t, drop)
	return s.dsn, prefix
}

func dropAfter(t testing.TB, drop func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), workTimeout)
		defer cancel()
		if err := drop(ctx); err != nil {
			t.Error(err)
		}
	})
}
