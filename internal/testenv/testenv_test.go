package testenv_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"deepcrawl/internal/testenv"
)

func TestPostgres(t *testing.T) {
	t.Run("each test has a schema of its own that is gone afterwards", func(t *testing.T) {
		var first string
		t.Run("first", func(t *testing.T) {
			first = testenv.Postgres(t)
			pg(t, first, "CREATE TABLE a (x int)")
			if other := testenv.Postgres(t); pgCount(t, other, "a") != 0 {
				t.Errorf("the table is seen from another schema")
			}
			if got := pgCount(t, first, "a"); got != 1 {
				t.Errorf("got %d tables in the first schema, want 1", got)
			}
		})
		if first != "" && pgCount(t, first, "a") != 0 {
			t.Errorf("the schema outlived its test")
		}
	})
}

func pg(t *testing.T, dsn, statement string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func pgCount(t *testing.T, dsn, table string) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	err = c.QueryRow(t.Context(), "SELECT count(*) FROM pg_tables WHERE tablename = $1 AND schemaname = current_schema()", table).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMySQL(t *testing.T) {
	t.Run("each test has a database of its own that is gone afterwards", func(t *testing.T) {
		var dsn string
		t.Run("first", func(t *testing.T) {
			dsn = testenv.MySQL(t)
			if _, err := openMySQL(t, dsn).ExecContext(t.Context(), "CREATE TABLE a (x int)"); err != nil {
				t.Fatal(err)
			}
		})
		if dsn == "" {
			t.Skip("the first part was skipped, its message names the variable")
		}
		if err := openMySQL(t, dsn).PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), "Unknown database") {
			t.Errorf("got %v, want unknown database", err)
		}
	})
}

func openMySQL(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("mysql", u.User.String()+"@tcp("+u.Host+")"+u.Path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestRedis(t *testing.T) {
	t.Run("keys under the prefix are gone afterwards", func(t *testing.T) {
		var redisURL, prefix string
		t.Run("first", func(t *testing.T) {
			redisURL, prefix = testenv.Redis(t)
			if err := redisClient(t, redisURL).Set(t.Context(), prefix+"a", "1", 0).Err(); err != nil {
				t.Fatal(err)
			}
		})
		if redisURL == "" {
			t.Skip("the first part was skipped, its message names the variable")
		}
		if n, err := redisClient(t, redisURL).Exists(t.Context(), prefix+"a").Result(); err != nil || n != 0 {
			t.Errorf("got %d keys, %v", n, err)
		}
	})
}

func redisClient(t *testing.T, redisURL string) *redis.Client {
	t.Helper()
	opt, err := redis.ParseURL(redisURL)
	if err != nil {
		t.Fatal(err)
	}
	opt.MaxRetries = -1
	c := redis.NewClient(opt)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestPrivateServers(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...string) *testenv.Server{
		"PostgreSQL": testenv.PrivatePostgres, "MariaDB": testenv.PrivateMariaDB, "Redis": testenv.PrivateRedis,
	} {
		t.Run(name+" is stopped, killed, frozen and started again on one port", func(t *testing.T) {
			t.Parallel()
			s := start(t)
			dsn := s.DSN()
			if !listens(s) {
				t.Fatal("a started server does not listen")
			}
			for _, mode := range []testenv.StopMode{testenv.Fast, testenv.Immediate} {
				s.Stop(mode)
				if listens(s) {
					t.Errorf("stopped with mode %v it still listens", mode)
				}
				s.Start()
			}
			s.Kill()
			s.Kill() // twice is no error
			if listens(s) {
				t.Errorf("killed it still listens")
			}
			s.Start()
			s.Signal(syscall.SIGSTOP)
			if answers(t, name, dsn, 300*time.Millisecond) {
				t.Errorf("frozen it still answers")
			}
			s.Signal(syscall.SIGCONT)
			if !answers(t, name, dsn, 20*time.Second) {
				t.Errorf("thawed it does not answer")
			}
			if s.DSN() != dsn {
				t.Errorf("the DSN changed from %s to %s", dsn, s.DSN())
			}
		})
	}
}

func listens(s *testenv.Server) bool {
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())))
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

func answers(t *testing.T, name, dsn string, within time.Duration) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	switch name {
	case "PostgreSQL":
		c, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return false
		}
		return c.Close(t.Context()) == nil
	case "MariaDB":
		return openMySQL(t, dsn).PingContext(ctx) == nil
	default:
		return redisClient(t, dsn).Ping(ctx).Err() == nil
	}
}

func TestSmallDisk(t *testing.T) {
	t.Run("is full after its size and can be made read-only", func(t *testing.T) {
		dir := testenv.SmallDisk(t, 256<<10)
		if err := os.WriteFile(filepath.Join(dir, "a"), make([]byte, 1<<20), 0o644); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v, want no space", err)
		}
		testenv.ReadOnly(t, dir)
		if err := os.WriteFile(filepath.Join(dir, "b"), nil, 0o644); !errors.Is(err, syscall.EROFS) {
			t.Errorf("got %v, want read-only", err)
		}
	})
}

func TestBrowser(t *testing.T) {
	t.Run("the one of the variable comes first", func(t *testing.T) {
		name := filepath.Join(t.TempDir(), "some-chromium")
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv(testenv.VarChromium, name)
		if got := testenv.Browser(t); got != name {
			t.Errorf("got %s, want %s", got, name)
		}
	})
	for _, name := range []string{"chromium", "chromium-browser"} {
		t.Run(name+" is found on the PATH", func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv(testenv.VarChromium, "")
			t.Setenv("PATH", dir)
			if got := testenv.Browser(t); got != filepath.Join(dir, name) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestHelper is run by TestSkips in a process of its own.
func TestHelper(t *testing.T) {
	what := os.Getenv("TESTENV_HELPER")
	if what == "" {
		t.Skip("only for TestSkips, which sets TESTENV_HELPER")
	}
	switch what {
	case "postgres":
		testenv.Postgres(t)
	case "redis":
		testenv.Redis(t)
	case "corpora":
		testenv.Corpora(t, "no-such")
	case "browser":
		testenv.Browser(t)
	}
}

func TestSkips(t *testing.T) {
	for _, c := range []struct{ what, variable string }{
		{"postgres", testenv.VarPostgres}, {"redis", testenv.VarRedis}, {"corpora", testenv.VarCorpora}, {"browser", testenv.VarChromium},
	} {
		helper := func(require string) (string, error) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelper$", "-test.v")
			cmd.Env = append(os.Environ(), "TESTENV_HELPER="+c.what, testenv.VarRequire+"="+require,
				testenv.VarPostgres+"=postgres://nobody@127.0.0.1:1/x", testenv.VarRedis+"=redis://127.0.0.1:1/0", testenv.VarCorpora+"="+filepath.Join(t.TempDir(), "none"),
				testenv.VarChromium+"="+filepath.Join(t.TempDir(), "none"))
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		t.Run("a missing "+c.what+" skips and names the variable", func(t *testing.T) {
			out, err := helper("other")
			if err != nil || !strings.Contains(out, "--- SKIP: TestHelper") || !strings.Contains(out, c.variable) {
				t.Errorf("got %v\n%s", err, out)
			}
		})
		t.Run("a missing "+c.what+" fails where it is required", func(t *testing.T) {
			out, err := helper("x, " + c.what)
			if err == nil || !strings.Contains(out, "--- FAIL: TestHelper") || !strings.Contains(out, c.variable) {
				t.Errorf("got %v\n%s", err, out)
			}
		})
	}
}
