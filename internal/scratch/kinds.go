package scratch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

const pgFolders = "/usr/lib/postgresql/*/bin"

var postgresKind = kind{
	name:    "PostgreSQL",
	account: "postgres", // PostgreSQL refuses to run as root
	dsn:     func(port int) string { return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/test", port) },
	prepare: func(dir string, cred *syscall.Credential) error {
		initdb, err := binary("initdb", pgFolders)
		if err != nil {
			return err
		}
		return run(cred, dir, initdb, "-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	},
	command: func(dir string, port int, settings []string) (*exec.Cmd, error) {
		postgres, err := binary("postgres", pgFolders)
		if err != nil {
			return nil, err
		}
		args := []string{"-D", filepath.Join(dir, "data"), "-p", fmt.Sprint(port)}
		for _, s := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "shared_buffers=32MB"}, settings...) {
			args = append(args, "-c", s)
		}
		return exec.Command(postgres, args...), nil
	},
	probe: func(ctx context.Context, dsn string) error {
		cfg, err := pgx.ParseConfig(dsn)
		if err != nil {
			return err
		}
		name := cfg.Database
		cfg.Database = "postgres"
		c, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return err
		}
		defer c.Close(ctx)
		var there bool
		if err := c.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&there); err != nil || there {
			return err
		}
		_, err = c.Exec(ctx, "CREATE DATABASE "+name)
		return err
	},
	stop: map[StopMode]syscall.Signal{Smart: syscall.SIGTERM, Fast: syscall.SIGINT, Immediate: syscall.SIGQUIT},
}

var mariadbKind = kind{
	name:    "MariaDB",
	account: "mysql",
	dsn:     func(port int) string { return fmt.Sprintf("mysql://root@127.0.0.1:%d/test", port) },
	prepare: func(dir string, cred *syscall.Credential) error {
		install, err := binary("mariadb-install-db", "/usr/bin")
		if err != nil {
			return err
		}
		// A folder for temporary tables of its own: a server that starts removes what it takes for leftovers of another there.
		return run(cred, dir, install, "--no-defaults", "--datadir="+filepath.Join(dir, "data"), "--tmpdir="+dir,
			"--auth-root-authentication-method=normal", "--skip-test-db")
	},
	command: func(dir string, port int, settings []string) (*exec.Cmd, error) {
		mariadbd, err := binary("mariadbd", "/usr/sbin")
		if err != nil {
			return nil, err
		}
		args := []string{
			"--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + dir, "--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", port),
			"--socket=" + filepath.Join(dir, "s"), "--pid-file=" + filepath.Join(dir, "pid"),
			"--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M", "--skip-name-resolve",
		}
		for _, s := range settings {
			args = append(args, "--"+s)
		}
		return exec.Command(mariadbd, args...), nil
	},
	probe: func(ctx context.Context, dsn string) error {
		db, err := openMySQL(dsn[:len(dsn)-len("test")])
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.ExecContext(ctx, "CREATE DATABASE IF NOT EXISTS test")
		return err
	},
	stop: map[StopMode]syscall.Signal{Smart: syscall.SIGTERM, Fast: syscall.SIGTERM, Immediate: syscall.SIGKILL},
}

var redisKind = kind{
	name:    "Redis",
	dsn:     func(port int) string { return fmt.Sprintf("redis://127.0.0.1:%d/0", port) },
	prepare: func(string, *syscall.Credential) error { return nil },
	command: func(dir string, port int, settings []string) (*exec.Cmd, error) {
		server, err := binary("redis-server", "/usr/bin", "/usr/local/bin")
		if err != nil {
			return nil, err
		}
		args := []string{"--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir}
		for _, s := range settings {
			name, value, _ := strings.Cut(s, "=")
			args = append(args, "--"+name, value)
		}
		return exec.Command(server, args...), nil
	},
	probe: PingRedis,
	stop:  map[StopMode]syscall.Signal{Smart: syscall.SIGTERM, Fast: syscall.SIGTERM, Immediate: syscall.SIGKILL},
}

// run runs a preparing program to its end, under the account.
func run(cred *syscall.Credential, dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, out[max(0, len(out)-1500):])
	}
	return nil
}
