package sqlcoord_test

import (
	"path/filepath"
	"testing"

	"deepcrawl/coord"
	"deepcrawl/coord/coordtest"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/internal/testenv"
)

// on migrates a database of the test's own for each authority.
func on(dsn func(t testing.TB) string) coordtest.Authority {
	return func(t testing.TB) coordtest.Open {
		t.Helper()
		d := dsn(t)
		if _, err := sqlcoord.Migrate(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		return func(t testing.TB) coord.Coord { return open(t, d, sqlcoord.Options{}) }
	}
}

func open(t testing.TB, dsn string, o sqlcoord.Options) *sqlcoord.Coord {
	t.Helper()
	c, err := sqlcoord.Open(t.Context(), dsn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func sqliteDSN(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "coord.db") }

func TestSQLite(t *testing.T) {
	t.Parallel() // they mostly wait for their servers
	coordtest.Safety(t, on(sqliteDSN))
	coordtest.Liveness(t, on(sqliteDSN))
}

func TestPostgres(t *testing.T) {
	t.Parallel() // they mostly wait for their servers
	coordtest.Safety(t, on(testenv.Postgres))
	coordtest.Liveness(t, on(testenv.Postgres))
}

func TestMySQL(t *testing.T) {
	t.Parallel() // they mostly wait for their servers
	coordtest.Safety(t, on(testenv.MySQL))
	coordtest.Liveness(t, on(testenv.MySQL))
}
