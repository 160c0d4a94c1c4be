package failover_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"deepcrawl/coord"
	"deepcrawl/coord/coordtest"
	"deepcrawl/coord/failover"
	"deepcrawl/coord/rediscoord"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/internal/testenv"
)

// open opens a handle on a database with the Redis of url beside it.
func open(t testing.TB, dsn, url, prefix string) *failover.Coord {
	t.Helper()
	db, err := sqlcoord.Open(t.Context(), dsn, sqlcoord.Options{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := rediscoord.OpenSecond(url, rediscoord.Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := second.Close(); err != nil {
			t.Errorf("close redis: %v", err)
		}
		if err := db.Close(); err != nil {
			t.Errorf("close database: %v", err)
		}
	})
	return failover.New(db, second, nil)
}

func migrated(t testing.TB, dsn string) string {
	t.Helper()
	if _, err := sqlcoord.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	return dsn
}

func healthy(dsn func(t testing.TB) string) coordtest.Authority {
	return func(t testing.TB) coordtest.Open {
		d := migrated(t, dsn(t))
		url, prefix := testenv.Redis(t)
		return func(t testing.TB) coord.Coord { return open(t, d, url, prefix) }
	}
}

// dead is an authority whose Redis was never there.
func dead(t testing.TB, dsn func(t testing.TB) string) coordtest.Authority {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "redis://" + l.Addr().String() + "/0"
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) coordtest.Open {
		d := migrated(t, dsn(t))
		return func(t testing.TB) coord.Coord { return open(t, d, url, "p:") }
	}
}

func sqlite(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "coord.db") }

// suite passes everything, or with less only what must happen in time with a healthy Redis: a server's Safety takes minutes, and
// without Redis it is sqlcoord's, which its own tests run.
func suite(t *testing.T, dsn func(t testing.TB) string, less bool) {
	t.Run("redis healthy", func(t *testing.T) {
		t.Parallel() // they mostly wait
		if !less {
			coordtest.Safety(t, healthy(dsn))
		}
		coordtest.Liveness(t, healthy(dsn))
	})
	if less {
		return
	}
	t.Run("redis dead from the start", func(t *testing.T) {
		t.Parallel() // they mostly wait
		a := dead(t, dsn)
		coordtest.Safety(t, a)
		coordtest.Liveness(t, a)
	})
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	suite(t, sqlite, false)
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	suite(t, testenv.Postgres, os.Getenv(testenv.VarLarge) == "")
}

func TestMySQL(t *testing.T) {
	t.Parallel()
	suite(t, testenv.MySQL, os.Getenv(testenv.VarLarge) == "")
}
