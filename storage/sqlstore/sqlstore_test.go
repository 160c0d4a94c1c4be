package sqlstore_test

import (
	"path/filepath"
	"testing"

	"deepcrawl/internal/testenv"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
	"deepcrawl/storage/storagetest"
)

// opener migrates a database and opens stores on it.
func opener(t testing.TB, dsn string) storagetest.Open {
	t.Helper()
	if _, err := sqlstore.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	return func(t testing.TB) storage.Store { return openStore(t, dsn, sqlstore.Options{Workers: 8}) }
}

func openStore(t testing.TB, dsn string, opt sqlstore.Options) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), dsn, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func sqliteDSN(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "crawl.db") }

func TestSQLite(t *testing.T) {
	storagetest.Run(t, func(t testing.TB) storagetest.Open { return opener(t, sqliteDSN(t)) })
}

func TestPostgres(t *testing.T) {
	storagetest.Run(t, func(t testing.TB) storagetest.Open { return opener(t, testenv.Postgres(t)) })
}

func TestMySQL(t *testing.T) {
	storagetest.Run(t, func(t testing.TB) storagetest.Open { return opener(t, testenv.MySQL(t)) })
}
