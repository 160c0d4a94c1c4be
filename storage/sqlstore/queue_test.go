package sqlstore_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// fillQueue gives each of some tenants runs in a state, straight into the tables.
func fillQueue(t testing.TB, db *sqldb.DB, first, tenants, runs int, state string) {
	t.Helper()
	name := map[sqldb.Dialect]string{sqldb.SQLite: "'t' || (i % %d)", sqldb.Postgres: "'t' || (i % %d)", sqldb.MySQL: "CONCAT('t', i %% %d)"}[db.Dialect()]
	name = strings.ReplaceAll(strings.ReplaceAll(name, "%%", "%"), "%d", fmt.Sprint(tenants))
	bulk(t, db, fmt.Sprintf(`INSERT INTO run (id, tenant, site, spec, home, state, resume_state, reason, wait_until, previous_id, created, started, finished, worked_us,
		concurrency, served, next_url, allotted, inlinked, deleting)
		SELECT %d + i, %s, 'example.com', NULL, '', '%s', '', '', 0, 0, 1, 0, %s, 0, 0, 1, 1, NULL, 0, 0 FROM %s WHERE i < %d`,
		first, name, state, map[bool]string{true: "1", false: "0"}[state == "done"], series(db.Dialect(), max(tenants*runs, 2)), tenants*runs))
}

// scansRuns finds steps that read all runs.
var scansRuns = map[sqldb.Dialect]*regexp.Regexp{
	sqldb.SQLite:   regexp.MustCompile(`^SCAN (q|x|run)\b`),
	sqldb.Postgres: regexp.MustCompile(`Seq Scan on run\b`),
	sqldb.MySQL:    regexp.MustCompile(`table=(q|x|run) type=(ALL|index) `),
}

// TestLongQueues: what is asked at every pick, and of tenants, does not read the runs that wait or are over.
func TestLongQueues(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		opener(t, dsn)
		s := openStore(t, dsn, sqlstore.Options{})
		db := s.DB()
		const tenants, each = 50, 200
		if err := s.PutTariff(t.Context(), storage.Tariff{Name: "two", Parallel: 2}); err != nil {
			t.Fatal(err)
		}
		for i := range tenants {
			if err := s.PutTenant(t.Context(), storage.Tenant{Name: fmt.Sprintf("t%d", i), Tariff: "two"}); err != nil {
				t.Fatal(err)
			}
		}
		fillQueue(t, db, 1000, tenants, each, "queued")
		fillQueue(t, db, 100_000, tenants, 2*each, "done")
		switch db.Dialect() {
		case sqldb.SQLite:
			bulk(t, db, "ANALYZE")
		case sqldb.Postgres:
			bulk(t, db, "VACUUM ANALYZE run")
		case sqldb.MySQL:
			bulk(t, db, "ANALYZE TABLE run")
		}
		for name, args := range map[string][]any{
			"queue_tenants": nil, "queue_heads": nil, "queue_reserved": nil, "place_list": nil, "tenant_unfinished": {"t1", int64(10)}, "tenant_run": {"t1"},
			"stored_settled": {"t1"}, "stored_due": {"t1", int64(1)},
		} {
			var rows *sqldb.Table
			if name == "queue_heads" {
				rows = new(sqldb.Table)
				rows.Add("t1", int64(2))
			}
			plan, err := db.Explain(t.Context(), s.Set().Get(name), rows, args...)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, line := range plan {
				if scansRuns[db.Dialect()].MatchString(strings.TrimSpace(line)) {
					t.Errorf("%s reads all runs:\n%s", name, strings.Join(plan, "\n"))
				}
			}
		}
		picks := 2 * tenants
		var worst time.Duration
		start := time.Now()
		for i := range picks + 1 {
			before := time.Now()
			_, run, ok, err := s.Pick(t.Context(), "n", 0, nil, func(list []storage.Candidate) int {
				if want := picks - i; len(list) != want {
					t.Errorf("got %d candidates, want %d", len(list), want)
				}
				return 0
			})
			worst = max(worst, time.Since(before))
			if err != nil || ok != (i < picks) {
				t.Fatalf("pick %d: got %+v %v %v", i, run, ok, err)
			}
		}
		t.Logf("%v a pick, worst %v", time.Since(start)/time.Duration(picks+1), worst)
	})
}
