package scratch

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// namePrefix starts the names of all that is created on servers, followed by the time in hexadecimal seconds, so that what a
// killed process left can be told by its age.
const namePrefix = "dct_"

// leftoverAge is the age at which another process's schemas and databases are taken for left over.
const leftoverAge = 24 * time.Hour

// dialTimeout bounds one attempt to reach a server.
const dialTimeout = 3 * time.Second

// NewName is a name nobody has: of a schema, a database, the start of a key prefix.
func NewName() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return namePrefix + strconv.FormatInt(time.Now().Unix(), 16) + "_" + hex.EncodeToString(b[:])
}

func leftOver(name string) bool {
	stamp, _, ok := strings.Cut(strings.TrimPrefix(name, namePrefix), "_")
	sec, err := strconv.ParseInt(stamp, 16, 64)
	return ok && err == nil && time.Since(time.Unix(sec, 0)) > leftoverAge
}

// Postgres makes a schema on a server (postgres://...) and returns a DSN whose tables are in it. drop removes it with all it holds.
func Postgres(ctx context.Context, dsn string) (own string, drop func(context.Context) error, err error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", nil, err
	}
	name := NewName()
	if err := pgExec(ctx, dsn, "CREATE SCHEMA "+name); err != nil {
		return "", nil, err
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String(), func(ctx context.Context) error { return pgExec(ctx, dsn, "DROP SCHEMA IF EXISTS "+name+" CASCADE") }, nil
}

func pgExec(ctx context.Context, dsn, statement string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err == nil {
		defer c.Close(ctx)
		_, err = c.Exec(ctx, statement)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// PingPostgres says whether the server answers, and drops schemas that were left there a day ago.
func PingPostgres(ctx context.Context, dsn string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	rows, err := c.Query(ctx, "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE $1", strings.ReplaceAll(namePrefix, "_", `\_`)+"%")
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, n := range names {
		if leftOver(n) {
			_, _ = c.Exec(ctx, "DROP SCHEMA IF EXISTS "+n+" CASCADE") // another process may be at it too
		}
	}
	return nil
}

// MySQL makes a database on a server of MySQL or MariaDB (mysql://...) and returns its DSN. drop removes it.
func MySQL(ctx context.Context, dsn string) (own string, drop func(context.Context) error, err error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", nil, err
	}
	name := NewName()
	if err := myExec(ctx, dsn, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func(ctx context.Context) error { return myExec(ctx, dsn, "DROP DATABASE IF EXISTS "+name) }, nil
}

// openMySQL understands the parts of a DSN that say where the server is and who asks.
func openMySQL(dsn string) (*sql.DB, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr = "tcp", u.Host
	if u.Port() == "" {
		cfg.Addr = u.Hostname() + ":3306"
	}
	if socket := u.Query().Get("socket"); socket != "" {
		cfg.Net, cfg.Addr = "unix", socket
	}
	cfg.TLSConfig = u.Query().Get("tls")
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	cfg.Timeout = dialTimeout
	cfg.Logger = &mysql.NopLogger{} // polls of a starting server are expected to fail
	con, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(con), nil
}

func myExec(ctx context.Context, dsn, statement string) error {
	db, err := openMySQL(dsn)
	if err == nil {
		defer db.Close()
		_, err = db.ExecContext(ctx, statement)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// PingMySQL says whether the server answers, and drops databases that were left there a day ago.
func PingMySQL(ctx context.Context, dsn string) error {
	db, err := openMySQL(dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE ?", strings.ReplaceAll(namePrefix, "_", `\_`)+"%")
	if err != nil {
		return err
	}
	defer rows.Close()
	var old []string
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return err
		}
		if leftOver(n) {
			old = append(old, n)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, n := range old {
		_, _ = db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+n) // another process may be at it too
	}
	return nil
}

// Redis returns a key prefix nobody has. drop deletes every key with it.
func Redis(redisURL string) (prefix string, drop func(context.Context) error) {
	prefix = NewName() + ":"
	return prefix, func(ctx context.Context) error {
		if err := deleteKeys(ctx, redisURL, prefix); err != nil {
			return fmt.Errorf("delete keys %s*: %w", prefix, err)
		}
		return nil
	}
}

func deleteKeys(ctx context.Context, redisURL, prefix string) error {
	opt, err := redis.ParseURL(redisURL)
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

// PingRedis says whether the server answers.
func PingRedis(ctx context.Context, redisURL string) error {
	opt, err := redis.ParseURL(redisURL)
	if err != nil {
		return err
	}
	opt.MaxRetries = -1
	c := redis.NewClient(opt)
	defer c.Close()
	return c.Ping(ctx).Err()
}
