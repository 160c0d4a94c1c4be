package testenv

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// namePrefix starts the names of all that tests create on servers, followed by the time in hexadecimal seconds, so that what a
// killed process left can be told by its age.
const namePrefix = "dct_"

// leftoverAge is the age at which another process's schemas and databases are taken for left over.
const leftoverAge = 24 * time.Hour

// dialTimeout bounds one attempt to reach a server; a server on the loopback answers at once or is not there.
const dialTimeout = 3 * time.Second

func newName() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return namePrefix + strconv.FormatInt(time.Now().Unix(), 16) + "_" + hex.EncodeToString(b[:])
}

func leftOver(name string) bool {
	stamp, _, ok := strings.Cut(strings.TrimPrefix(name, namePrefix), "_")
	sec, err := strconv.ParseInt(stamp, 16, 64)
	return ok && err == nil && time.Since(time.Unix(sec, 0)) > leftoverAge
}

// server is what a lookup found, once a process.
type server struct {
	dsn string
	err error
}

// find tries the variable, then the local default, then a private instance.
func find(variable, local string, probe func(ctx context.Context, dsn string) (string, error), private func() (string, error)) server {
	try := func(dsn string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
		defer cancel()
		return probe(ctx, dsn)
	}
	if dsn := os.Getenv(variable); dsn != "" {
		dsn, err := try(dsn)
		return server{dsn, err}
	}
	dsn, err := try(local)
	if err == nil {
		return server{dsn, nil}
	}
	dsn, perr := private()
	if perr != nil {
		return server{"", fmt.Errorf("not at %s (%w) and none started: %w", local, err, perr)}
	}
	return server{dsn, nil}
}

func startShared(k kind) func() (string, error) {
	return func() (string, error) {
		if !diesWithParent {
			return "", errors.New("a shared private server needs Linux")
		}
		in, err := newInstance(k, nil)
		if err != nil {
			return "", err
		}
		if err := in.start(); err != nil {
			return "", err
		}
		return in.dsn, nil
	}
}

var (
	foundPostgres = sync.OnceValue(func() server {
		return find(VarPostgres, "postgres://postgres@127.0.0.1:5432/postgres", probePostgres, startShared(postgresKind))
	})
	foundMySQL = sync.OnceValue(func() server {
		return find(VarMySQL, "mysql://root@127.0.0.1:3306/", probeMySQL, startShared(mariadbKind))
	})
	foundRedis = sync.OnceValue(func() server {
		return find(VarRedis, "redis://127.0.0.1:6379/0", probeRedis, startShared(redisKind))
	})
)

// Postgres returns the DSN of a schema of the test's own: postgres://USER@HOST:PORT/DATABASE?search_path=SCHEMA.
func Postgres(t testing.TB) string {
	t.Helper()
	s := foundPostgres()
	if s.err != nil {
		skip(t, kindPostgres, VarPostgres, s.err)
	}
	name := newName()
	pgExec(t, s.dsn, "CREATE SCHEMA "+name)
	t.Cleanup(func() { pgExec(t, s.dsn, "DROP SCHEMA IF EXISTS "+name+" CASCADE") })
	u, err := url.Parse(s.dsn)
	if err != nil {
		t.Fatalf("parse %s: %v", VarPostgres, err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func pgExec(t testing.TB, dsn, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, dsn)
	if err == nil {
		defer c.Close(ctx)
		_, err = c.Exec(ctx, statement)
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func probePostgres(ctx context.Context, dsn string) (string, error) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer c.Close(ctx)
	rows, err := c.Query(ctx, "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE $1", strings.ReplaceAll(namePrefix, "_", `\_`)+"%")
	if err != nil {
		return "", err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", err
	}
	for _, n := range names {
		if leftOver(n) {
			_, _ = c.Exec(ctx, "DROP SCHEMA IF EXISTS "+n+" CASCADE") // another process may be at it too
		}
	}
	return dsn, nil
}

// MySQL returns the DSN of a database of the test's own, on MariaDB or MySQL: mysql://USER@HOST:PORT/NAME.
func MySQL(t testing.TB) string {
	t.Helper()
	s := foundMySQL()
	if s.err != nil {
		skip(t, kindMySQL, VarMySQL, s.err)
	}
	name := newName()
	myExec(t, s.dsn, "CREATE DATABASE "+name)
	t.Cleanup(func() { myExec(t, s.dsn, "DROP DATABASE IF EXISTS "+name) })
	u, err := url.Parse(s.dsn)
	if err != nil {
		t.Fatalf("parse %s: %v", VarMySQL, err)
	}
	u.Path = "/" + name
	return u.String()
}

func openMySQL(dsn string) (*sql.DB, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr = "tcp", u.Host
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	cfg.Timeout = dialTimeout
	cfg.Logger = &mysql.NopLogger{} // polls of a starting server are expected to fail
	con, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(con), nil
}

func myExec(t testing.TB, dsn, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	db, err := openMySQL(dsn)
	if err == nil {
		defer db.Close()
		_, err = db.ExecContext(ctx, statement)
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func probeMySQL(ctx context.Context, dsn string) (string, error) {
	db, err := openMySQL(dsn)
	if err != nil {
		return "", err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE ?", strings.ReplaceAll(namePrefix, "_", `\_`)+"%")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var old []string
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return "", err
		}
		if leftOver(n) {
			old = append(old, n)
		}
	}
	if err := rows.Err(); err != nil {
		return "", err
	}
	for _, n := range old {
		_, _ = db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+n) // another process may be at it too
	}
	return dsn, nil
}

// Redis returns a server's URL and a key prefix of the test's own; keys with it are deleted at the test's end.
func Redis(t testing.TB) (redisURL, prefix string) {
	t.Helper()
	s := foundRedis()
	if s.err != nil {
		skip(t, kindRedis, VarRedis, s.err)
	}
	prefix = newName() + ":"
	t.Cleanup(func() {
		if err := deleteKeys(s.dsn, prefix); err != nil {
			t.Errorf("delete keys %s*: %v", prefix, err)
		}
	})
	return s.dsn, prefix
}

func deleteKeys(dsn, prefix string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	opt, err := redis.ParseURL(dsn)
	if err != nil {
		return err
	}
	c := redis.NewClient(opt)
	defer c.Close()
	keys := c.Scan(ctx, 0, prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := c.Del(ctx, keys.Val()).Err(); err != nil {
			return err
		}
	}
	return keys.Err()
}

func probeRedis(ctx context.Context, dsn string) (string, error) {
	opt, err := redis.ParseURL(dsn)
	if err != nil {
		return "", err
	}
	opt.MaxRetries = -1
	c := redis.NewClient(opt)
	defer c.Close()
	return dsn, c.Ping(ctx).Err()
}
