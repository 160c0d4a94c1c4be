package sqlstore_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// firstSchema is the schema before there were tenants.
func firstSchema(t testing.TB) sqldb.Schema {
	t.Helper()
	sc := sqlstore.Schema()
	only := fstest.MapFS{}
	files, err := fs.Glob(sc.Migrations, "*/00001_*.sql")
	if err != nil || len(files) != 3 {
		t.Fatalf("got %q, %v", files, err)
	}
	for _, f := range files {
		text, err := fs.ReadFile(sc.Migrations, f)
		if err != nil {
			t.Fatal(err)
		}
		only[f] = &fstest.MapFile{Data: text}
	}
	sc.Migrations, sc.Oldest = only, 1
	return sc
}

// TestUpgradeKeepsRuns: runs of a database from before there were tenants have one afterwards, and active ones their places.
func TestUpgradeKeepsRuns(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		old, err := sqldb.Open(t.Context(), dsn, sqldb.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		defer old.Close()
		if _, err := old.Migrate(t.Context(), firstSchema(t)); err != nil {
			t.Fatal(err)
		}
		for i, state := range []string{"queued", "preparing", "crawling", "finishing", "paused", "done"} {
			fillQueue(t, old, 1+i, 1, 1, state)
		}
		bulk(t, old, "UPDATE run SET tenant = 'local' WHERE id IN (1, 3)", "UPDATE sequence SET last = 6 WHERE name = 'run'")
		rep, err := sqlstore.Migrate(t.Context(), dsn)
		if err != nil || rep.From != 1 || len(rep.Applied) == 0 || !strings.HasPrefix(rep.Applied[0], "00002_") {
			t.Fatalf("got %+v, %v", rep, err)
		}
		s := openStore(t, dsn, sqlstore.Options{})
		for _, name := range []string{"t0", storage.DefaultTenant} {
			tenant, tariff, err := s.Tenant(t.Context(), name)
			if err != nil || tenant.Suspended || tariff != (storage.Tariff{Name: "unlimited"}) {
				t.Errorf("got %+v %+v %v", tenant, tariff, err)
			}
		}
		if err := openSQL(t, dsn).each(t.Context(), sqlAstray, func(r *sqldb.Row) error {
			t.Errorf("run %d is %s and has place %d", r.Int(0), r.Text(1), r.Int(2))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		_, _, _, err = s.Pick(t.Context(), "n", 0, nil, func(list []storage.Candidate) int {
			if len(list) != 4 {
				t.Errorf("got %+v, want the queued and the active ones", list)
			}
			return -1
		})
		if err != nil {
			t.Error(err)
		}
		if err := old.Check(t.Context(), firstSchema(t)); err == nil {
			t.Error("a node from before tariffs may work on: it would not keep to them")
		}
	})
}
