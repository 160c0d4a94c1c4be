package sqldb_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
)

func TestAddresses(t *testing.T) {
	const secret = "s3cr3t"
	for _, c := range []struct {
		dsn  string
		want error
		says string
	}{
		{"", sqldb.ErrDSN, "no scheme"},
		{"crawl.db", sqldb.ErrDSN, "no scheme"},
		{"oracle://u:" + secret + "@h/db", sqldb.ErrDSN, "oracle"},
		{"sqlite:", sqldb.ErrDSN, "path"},
		{"sqlite::memory:", sqldb.ErrDSN, "path"},
		{"postgres://u:" + secret + "@127.0.0.1:1", sqldb.ErrDSN, "names no database"},
		{"postgres:u:" + secret + "@h/db", sqldb.ErrDSN, "postgres://"},
		{"postgres://u:" + secret + "%zz@h/db", sqldb.ErrDSN, "percent-encoded"},
		{"postgres://u:" + secret + "@h:port/db", sqldb.ErrDSN, ""},
		{"postgres://u:" + secret + "@127.0.0.1:5432/db?sslmode=perhaps", sqldb.ErrDSN, "sslmode"},
		{"mysql://u:" + secret + "@127.0.0.1:3306/db?tls=perhaps", sqldb.ErrDSN, "tls=perhaps"},
		{"mysql://u:" + secret + "@127.0.0.1:3306/db?tsl=true", sqldb.ErrDSN, "tsl"},
		{"mysql://u:" + secret + "@127.0.0.1:3306/db?tls=true&tls-ca=/none", sqldb.ErrDSN, "tls-ca"},
		{"pg://u:" + secret + "@127.0.0.1:1/db", sqldb.ErrUnavailable, "127.0.0.1:1"},
		{"mysql://u:" + secret + "@127.0.0.1:1/db", sqldb.ErrUnavailable, "127.0.0.1:1"},
		{"mysql://u:" + secret + "@/db?socket=/none/s.sock", sqldb.ErrUnavailable, "s.sock"},
		{"postgres://u:" + secret + "@/db?host=/none", sqldb.ErrUnavailable, "/none"},
	} {
		db, err := sqldb.Open(t.Context(), c.dsn, sqldb.Options{})
		if err == nil {
			db.Close()
			t.Errorf("%s: no error", c.dsn)
			continue
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %v that says %q and keeps the password", c.dsn, err, c.want, c.says)
		}
	}
}

func TestServersRefuse(t *testing.T) {
	pg, my := testenv.Postgres(t), testenv.MySQL(t)
	change := func(dsn, from, to string) string {
		if !strings.Contains(dsn, from) {
			t.Skipf("the test server's address has no %q", from)
		}
		return strings.Replace(dsn, from, to, 1)
	}
	pgDB := pg[strings.LastIndex(pg, "/")+1 : strings.Index(pg, "?")]
	myDB := my[strings.LastIndex(my, "/")+1:]
	for name, c := range map[string]struct {
		dsn  string
		want error
	}{
		"PostgreSQL, a missing database": {change(pg, "/"+pgDB+"?", "/no_such_db?"), sqldb.ErrMissing},
		"MySQL, a missing database":      {change(my, "/"+myDB, "/no_such_db"), sqldb.ErrMissing},
		"MySQL, an unknown user":         {change(my, "root@", "nobody:wrong@"), sqldb.ErrAuth},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqldb.Open(t.Context(), c.dsn, sqldb.Options{})
			if err == nil {
				db.Close()
			}
			if !errors.Is(err, c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %v", err, c.want)
			}
		})
	}
}

func TestSQLiteFilesOfOthers(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	other := filepath.Join(dir, "other.db")
	h, err := sql.Open("sqlite", other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Exec("CREATE TABLE notes (text TEXT)"); err != nil {
		t.Fatal(err)
	}
	h.Close()
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"another application's file": {other, sqldb.ErrForeign},
		"text":                       {write("a.txt", bytes.Repeat([]byte("not a database\n"), 500)), sqldb.ErrForeign},
		"a cut file":                 {write("b.db", []byte("SQLite format 3\x00")), sqldb.ErrForeign},
		"a folder":                   {dir, sqldb.ErrForeign},
		"a missing file":             {filepath.Join(dir, "none.db"), sqldb.ErrMissing},
		"a missing folder":           {filepath.Join(dir, "none", "c.db"), sqldb.ErrMissing},
	} {
		for _, create := range []bool{false, true} {
			if create && name == "a missing file" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				before, _ := os.ReadFile(c.path)
				db, err := sqldb.Open(t.Context(), "sqlite:"+c.path, sqldb.Options{Create: create})
				if err == nil {
					db.Close()
				}
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.path) || strings.Contains(err.Error(), "\n") {
					t.Errorf("create %v: got %v, want one line with %v that names the file", create, err, c.want)
				}
				if after, _ := os.ReadFile(c.path); !bytes.Equal(before, after) {
					t.Error("the file was changed")
				}
			})
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*-wal")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestOldAndUnsuitableServers(t *testing.T) {
	t.Run("TLS where there is none", func(t *testing.T) {
		s := testenv.PrivatePostgres(t)
		dsn := strings.Replace(s.DSN(), "sslmode=disable", "sslmode=require", 1)
		if !strings.Contains(dsn, "sslmode") {
			dsn += map[bool]string{true: "&", false: "?"}[strings.Contains(dsn, "?")] + "sslmode=require"
		}
		_, err := sqldb.Open(t.Context(), dsn, sqldb.Options{})
		if !errors.Is(err, sqldb.ErrUnavailable) || !strings.Contains(err.Error(), "TLS") || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a binary log of statements", func(t *testing.T) {
		s := testenv.PrivateMariaDB(t, "log-bin=bin", "binlog-format=STATEMENT", "server-id=1")
		_, err := sqldb.Open(t.Context(), s.DSN(), sqldb.Options{})
		if !errors.Is(err, sqldb.ErrUnsupported) || !strings.Contains(err.Error(), "binlog_format") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an old MariaDB", func(t *testing.T) {
		s := testenv.PrivateMariaDB(t, "version=10.5.27-MariaDB-log")
		_, err := sqldb.Open(t.Context(), s.DSN(), sqldb.Options{})
		if !errors.Is(err, sqldb.ErrTooOld) || !strings.Contains(err.Error(), "10.5.27") || !strings.Contains(err.Error(), "10.6") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an old MySQL", func(t *testing.T) {
		s := testenv.PrivateMariaDB(t, "version=5.7.44")
		_, err := sqldb.Open(t.Context(), s.DSN(), sqldb.Options{})
		if err == nil || errors.Is(err, sqldb.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a server that is read-only", func(t *testing.T) {
		s := testenv.PrivateMariaDB(t, "read-only=1")
		_, err := sqldb.Open(t.Context(), s.DSN(), sqldb.Options{})
		if !errors.Is(err, sqldb.ErrReadOnly) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a Galera cluster", func(t *testing.T) {
		provider := ""
		for _, pattern := range []string{"/usr/lib*/galera*/libgalera_smm.so", "/usr/lib/*/galera*/libgalera_smm.so"} {
			if found, _ := filepath.Glob(pattern); len(found) > 0 {
				provider = found[0]
			}
		}
		if provider == "" {
			testenv.Missing(t, "galera", errors.New("no libgalera_smm.so, its provider (Debian: galera-4), is installed"))
		}
		port := testenv.FreePort(t)
		s := testenv.PrivateMariaDB(t, "wsrep-on=ON", "wsrep-provider="+provider, "wsrep-cluster-address=gcomm://", "binlog-format=ROW",
			"innodb-autoinc-lock-mode=2", "wsrep-node-address=127.0.0.1", fmt.Sprintf("wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:%d", port))
		_, err := sqldb.Open(t.Context(), s.DSN(), sqldb.Options{})
		if !errors.Is(err, sqldb.ErrUnsupported) || !strings.Contains(err.Error(), "Galera") || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a packet too small", func(t *testing.T) {
		s := testenv.PrivateMariaDB(t, "max-allowed-packet=1M")
		_, err := sqldb.Open(t.Context(), s.DSN(), sqldb.Options{})
		if !errors.Is(err, sqldb.ErrUnsupported) || !strings.Contains(err.Error(), "max_allowed_packet") {
			t.Errorf("got %v", err)
		}
	})
}

func TestUnixSockets(t *testing.T) {
	ask := func(t *testing.T, dsn, question string) (answer string) {
		t.Helper()
		db := open(t, dsn, sqldb.Options{})
		err := db.View(t.Context(), func(tx *sqldb.Tx) error {
			tx.Query(db.Dialect().Statement(question), func(r *sqldb.Row) error { answer = r.Text(0); return nil })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	t.Run("postgres", func(t *testing.T) {
		dir, err := os.MkdirTemp("", "pg") // t.TempDir is longer than a socket's path may be
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o777); err != nil { // the server runs under another account where the test runs as root
			t.Fatal(err)
		}
		s := testenv.PrivatePostgres(t, "unix_socket_directories="+dir)
		if got := ask(t, fmt.Sprintf("postgres://postgres@/test?host=%s&port=%d", dir, s.Port()), "SELECT COALESCE(inet_server_addr()::text, 'socket')"); got != "socket" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("mysql", func(t *testing.T) {
		s := testenv.PrivateMariaDB(t)
		socket := ask(t, s.DSN(), "SELECT @@socket")
		if got := ask(t, "mysql://root@/test?socket="+socket, "SELECT SUBSTRING_INDEX(USER(), '@', -1)"); got != "localhost" {
			t.Errorf("got %q", got)
		}
	})
}

func TestTooFewRights(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		s := testenv.PrivatePostgres(t)
		admin := open(t, s.DSN(), sqldb.Options{})
		exec(t, admin, "CREATE ROLE weak LOGIN", "REVOKE ALL ON SCHEMA public FROM PUBLIC", "GRANT USAGE ON SCHEMA public TO weak")
		db := open(t, strings.Replace(s.DSN(), "postgres@", "weak@", 1), sqldb.Options{})
		if _, err := db.Migrate(t.Context(), schema); !errors.Is(err, sqldb.ErrAuth) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line with %v", err, sqldb.ErrAuth)
		}
	})
	t.Run("mysql", func(t *testing.T) {
		s := testenv.PrivateMariaDB(t)
		admin := open(t, s.DSN(), sqldb.Options{})
		exec(t, admin, "CREATE USER weak@'%'", "GRANT SELECT ON test.* TO weak@'%'")
		db := open(t, strings.Replace(s.DSN(), "root@", "weak@", 1), sqldb.Options{})
		if _, err := db.Migrate(t.Context(), schema); !errors.Is(err, sqldb.ErrAuth) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line with %v", err, sqldb.ErrAuth)
		}
	})
}

func exec(t *testing.T, db *sqldb.DB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		err := db.Do(t.Context(), func(tx *sqldb.Tx) error { tx.Exec(db.Dialect().Statement(text)); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
}
