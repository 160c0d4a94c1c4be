package sqlstore_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
	"deepcrawl/storage/storagetest"
)

func TestPortableStatementsAlone(t *testing.T) {
	storagetest.Run(t, func(t testing.TB) storagetest.Open {
		dsn := sqliteDSN(t)
		opener(t, dsn)
		return func(t testing.TB) storage.Store {
			s, err := sqlstore.OpenPortable(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
	})
}

func engines(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, sqliteDSN(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, testenv.Postgres(t)) })
	t.Run("mysql", func(t *testing.T) { test(t, testenv.MySQL(t)) })
}

// bulk makes rows fast, without the store's care.
func bulk(t testing.TB, db *sqldb.DB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		err := db.Do(t.Context(), func(tx *sqldb.Tx) error {
			if strings.HasPrefix(text, "ANALYZE TABLE") { // answers with a table
				tx.Query(db.Dialect().Statement(text), func(*sqldb.Row) error { return nil })
				return nil
			}
			tx.Exec(db.Dialect().Statement(text))
			return nil
		})
		if err != nil {
			t.Fatalf("%.80s: %v", text, err)
		}
	}
}

// series is a table expression with a column i from 0 to n-1.
func series(d sqldb.Dialect, n int) string {
	if d == sqldb.Postgres {
		return fmt.Sprintf("generate_series(0, %d) AS g(i)", n-1)
	}
	// 1,000 to the second power, joined: recursion to a million is slow on MariaDB.
	digits := "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)"
	var cols, from []string
	for i, f := 0, 1; f < n; i, f = i+1, f*10 {
		cols = append(cols, fmt.Sprintf("d%d.d * %d", i, f))
		from = append(from, fmt.Sprintf("%s d%d", digits, i))
	}
	return fmt.Sprintf("(SELECT %s AS i FROM %s) g", strings.Join(cols, " + "), strings.Join(from, ", "))
}

// fillRun gives a run urls queued URLs over one host and pages finished ones, straight into the tables.
func fillRun(t testing.TB, s *sqlstore.Store, run storage.RunID, urls, pages int) {
	t.Helper()
	db := s.DB()
	first := sqlstore.FirstURL(run)
	key := map[sqldb.Dialect]string{
		sqldb.SQLite:   "CAST(printf('%016d', (i * 7919) %% 10000019 * 1000 + " + fmt.Sprint(run%1000) + ") AS BLOB)",
		sqldb.Postgres: "decode(md5(i::text || 'x" + fmt.Sprint(run) + "'), 'hex')",
		sqldb.MySQL:    "UNHEX(MD5(CONCAT(i, 'x" + fmt.Sprint(run) + "')))",
	}[db.Dialect()]
	key = strings.ReplaceAll(key, "%%", "%")
	url := map[sqldb.Dialect]string{
		sqldb.SQLite: "'https://example.com/some/page/' || i", sqldb.Postgres: "'https://example.com/some/page/' || i", sqldb.MySQL: "CONCAT('https://example.com/some/page/', i)",
	}[db.Dialect()]
	fact := map[sqldb.Dialect]string{sqldb.SQLite: "zeroblob(450)", sqldb.Postgres: "decode(repeat('00', 450), 'hex')", sqldb.MySQL: "REPEAT('x', 450)"}[db.Dialect()]
	n := urls + pages
	bulk(t, db,
		fmt.Sprintf("INSERT INTO url (id, run_id, ukey, host_id, priority, depth, via, lastmod, discovered, url) SELECT %d + i, %d, %s, 1, 350, 1, 0, 0, 1, %s FROM %s WHERE i < %d", first, run, key, url, series(db.Dialect(), n), n),
		fmt.Sprintf("INSERT INTO frontier (run_id, host_id, pos, id, weight, via, attempts, token, reason, url) SELECT run_id, host_id, 22937601, id, 22937601, 0, 0, 0, '', url FROM url WHERE run_id = %d AND id >= %d", run, first+int64(pages)),
		fmt.Sprintf(`INSERT INTO page (id, run_id, token, fetched, state, status, attempts, outlinks, bytes, wire_bytes, ttfb_us, total_us, reason, content_type, title, redirect_to, facts)
			SELECT id, run_id, 1, 1, 4, 200, 1, 20, id, 1, 1, 1, '', 'text/html', 'title', '', %s FROM url WHERE run_id = %d AND id < %d`, fact, run, first+int64(pages)),
		fmt.Sprintf("INSERT INTO page_link (id, run_id, links) SELECT id, run_id, ukey FROM page JOIN (SELECT id AS uid, ukey FROM url WHERE run_id = %d) u ON u.uid = id WHERE run_id = %d", run, run),
		fmt.Sprintf("INSERT INTO inlink (id, run_id, n, source_id) SELECT id, run_id, 3, id FROM page WHERE run_id = %d", run),
		fmt.Sprintf("UPDATE run SET next_url = %d WHERE id = %d", n+1, run),
	)
}

func newRun(t testing.TB, s storage.Store) storage.RunID {
	t.Helper()
	run, err := s.CreateRun(t.Context(), storage.NewRun{Tenant: storage.DefaultTenant, Site: host})
	if err == nil {
		_, err = s.SetRunState(t.Context(), run.ID, []storage.RunState{storage.RunQueued}, storage.RunCrawling, "", time.Time{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return run.ID
}

// freezeStatistics makes the planner believe in tables as small as they are now.
func freezeStatistics(t testing.TB, db *sqldb.DB) {
	for _, table := range bigTables {
		switch db.Dialect() {
		case sqldb.Postgres:
			bulk(t, db, "ALTER TABLE "+table+" SET (autovacuum_enabled = false)", "ANALYZE "+table)
		case sqldb.MySQL:
			bulk(t, db, "ALTER TABLE "+table+" STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0")
		}
	}
	if db.Dialect() == sqldb.SQLite {
		bulk(t, db, "ANALYZE")
	}
}

var bigTables = []string{"url", "frontier", "page", "page_link", "inlink"}

// many is how many rows a test makes: more of them under make verify-large.
func many(usually, large int) int {
	if os.Getenv(testenv.VarLarge) != "" {
		return large
	}
	return usually
}

// inputs of statements that look at big tables, as they are in use.
func planInputs(run storage.RunID) map[string]struct {
	args []any
	tab  *sqldb.Table
} {
	first, end, id := sqlstore.FirstURL(run), sqlstore.EndURL(run), sqlstore.FirstURL(run)+5
	table := func(rows int, cells func(i int64) []any) *sqldb.Table {
		t := new(sqldb.Table)
		for i := range int64(rows) {
			t.Add(cells(i)...)
		}
		return t
	}
	r := int64(run)
	low, high := make([]byte, 16), []byte("\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff")
	type in = struct {
		args []any
		tab  *sqldb.Table
	}
	return map[string]in{
		"claim_pick":       {[]any{r, int64(1), int64(-1 << 62), int64(sqlstore.Again), int64(50)}, nil},
		"claim_take":       {[]any{r, int64(1), int64(50), int64(-1 << 62), int64(-1 << 62), int64(sqlstore.Again), int64(sqlstore.Delayed), int64(0), int64(1), "o", int64(sqlstore.First)}, nil},
		"claim_range":      {[]any{"o", int64(1)}, table(1, func(i int64) []any { return []any{r, int64(1), int64(-1 << 62), int64(22937601), id} })},
		"frontier_cut":     {nil, table(1, func(i int64) []any { return []any{r, int64(1), int64(-1 << 62), int64(22937601), id} })},
		"frontier_promote": {[]any{int64(sqlstore.Delayed), int64(sqlstore.Again)}, table(3, func(i int64) []any { return []any{r, i + 1} })},
		"frontier_delete":  {nil, table(50, func(i int64) []any { return []any{r, int64(1), int64(22937601), id + i} })},
		"frontier_put":     {[]any{int64(sqlstore.Again), int64(-sqlstore.First)}, table(50, func(i int64) []any { return []any{r, id + i, int64(0), int64(1)} })},
		"frontier_delay":   {nil, table(5, func(i int64) []any { return []any{r, id + i, int64(0), int64(1), int64(1), "x"} })},
		"frontier_fill":    {nil, table(2, func(i int64) []any { return []any{r, id + 50*i, id + 50*i + 49} })},
		"frontier_some":    {[]any{r, int64(50)}, nil},
		"tally_found":      {[]any{int64(0)}, table(2, func(i int64) []any { return []any{r, id + 50*i, id + 50*i + 49} })},
		"tally_excluded":   {[]any{int64(0)}, table(5, func(i int64) []any { return []any{r, id + i, "x"} })},
		"page_exclude":     {nil, table(5, func(i int64) []any { return []any{r, id + i, int64(6), "x"} })},
		"page_match":       {nil, table(50, func(i int64) []any { return []any{r, id + i, int64(1)} })},
		"delay_match":      {[]any{int64(sqlstore.Delayed)}, table(5, func(i int64) []any { return []any{r, id + i, int64(1)} })},
		"claim_of_call":    {[]any{"o", int64(1)}, table(1, func(i int64) []any { return []any{r} })},
		"ready_hosts":      {[]any{r, int64(sqlstore.Delayed), int64(0), int64(200)}, nil},
		"walk_next":        {[]any{r}, nil},
		"walk_ready":       {[]any{r, int64(sqlstore.Delayed)}, nil},
		"walk_count":       {[]any{r, int64(sqlstore.Delayed)}, nil},
		"count_from":       {[]any{r, int64(sqlstore.Delayed), int64(0), int64(200)}, nil},
		"boost_find":       {[]any{r}, table(50, func(i int64) []any { return []any{low} })},
		"boost_places": {nil, table(50, func(i int64) []any {
			return []any{r, int64(1), id + i, int64(22937601), int64(1), int64(2), int64(sqlstore.Again)}
		})},
		"boost_move":       {nil, table(50, func(i int64) []any { return []any{r, int64(1), int64(22937601), id + i, int64(-1)} })},
		"url_boosted":      {[]any{r, int64(sqlstore.Again), int64(sqlstore.Again)}, table(1, func(i int64) []any { return []any{host} })},
		"url_due":          {[]any{r, id, int64(sqlstore.Delayed)}, nil},
		"url_ahead":        {[]any{r, id, int64(sqlstore.Again)}, nil},
		"page_list":        {[]any{r, first, end, int64(100), int64(4), int64(5), int64(6), int64(1), "", int64(0), int64(999), int64(0), int64(1)}, nil},
		"url_list":         {[]any{r, first, end, int64(100), int64(0), int64(1), int64(sqlstore.Again)}, nil},
		"url_delayed":      {[]any{r, int64(sqlstore.Delayed)}, table(1, func(i int64) []any { return []any{host} })},
		"url_by_key":       {[]any{r, low}, nil},
		"url_text":         {[]any{r}, table(50, func(i int64) []any { return []any{id + i} })},
		"url_by_prefix":    {[]any{r}, table(50, func(i int64) []any { return []any{low, high} })},
		"url_known":        {[]any{r}, table(50, func(i int64) []any { return []any{low} })},
		"page_top_bytes":   {[]any{r, first, end, int64(10)}, nil},
		"page_top_total":   {[]any{r, first, end, int64(10)}, nil},
		"link_list":        {[]any{r, first, end, int64(100)}, nil},
		"inlink_find":      {[]any{r}, table(50, func(i int64) []any { return []any{low, high} })},
		"broken_links":     {[]any{r, first, end, int64(10), int64(5)}, nil},
		"timeline":         {[]any{r, first, end, int64(60_000_000), int64(4), int64(5), int64(6)}, nil},
		"cut_page_link":    {[]any{r, first, int64(100)}, nil},
		"delete_page_link": {[]any{r, first, id}, nil},
		"cut_page":         {[]any{r, first, int64(100)}, nil},
		"delete_page":      {[]any{r, first, id}, nil},
		"cut_inlink":       {[]any{r, first, int64(100)}, nil},
		"delete_inlink":    {[]any{r, first, id}, nil},
		"cut_url":          {[]any{r, first, int64(100)}, nil},
		"delete_url":       {[]any{r, first, id}, nil},
	}
}

// sorts may sort: they keep a few rows of a run, or handle a few.
var sorts = []string{"page_top_bytes", "page_top_total", "broken_links", "tally_excluded", "claim_of_call", "claim_take", "timeline"}

var (
	readsBig   = regexp.MustCompile(`(?:FROM|JOIN|UPDATE|USING) (url|frontier|page|page_link|inlink)\b`)
	sqliteScan = regexp.MustCompile(`^SCAN (\w+)( USING (COVERING )?INDEX.*)?$`)
	mysqlScan  = regexp.MustCompile(`table=(\w+) type=(ALL|index) `)
)

// wrongSteps returns what a plan should not hold.
func wrongSteps(d sqldb.Dialect, name string, plan []string) (wrong []string) {
	for _, line := range plan {
		bad := false
		switch d {
		case sqldb.SQLite:
			m := sqliteScan.FindStringSubmatch(line)
			bad = m != nil && slices.Contains([]string{"u", "f", "p", "l", "i", "s", "url", "frontier", "page", "page_link", "inlink"}, m[1]) ||
				strings.Contains(line, "TEMP B-TREE") && !slices.Contains(sorts, name)
		case sqldb.Postgres:
			for _, table := range bigTables {
				bad = bad || strings.Contains(line, "Seq Scan on "+table)
			}
			bad = bad && name != "broken_links" && name != "timeline" // look at a whole run
			bad = bad || strings.Contains(line, "Sort") && strings.Contains(line, "cost") && !slices.Contains(sorts, name)
		case sqldb.MySQL:
			m := mysqlScan.FindStringSubmatch(line)
			bad = m != nil && slices.Contains([]string{"u", "f", "p", "l", "i", "s", "url", "frontier", "page", "page_link", "inlink"}, m[1]) ||
				strings.Contains(line, "filesort") && !slices.Contains(sorts, name)
		}
		if bad {
			wrong = append(wrong, line)
		}
	}
	return wrong
}

func TestPlansWithABigFrontierAndStaleStatistics(t *testing.T) {
	engines(t, func(t *testing.T, dsn string) {
		opener(t, dsn)
		s := openStore(t, dsn, sqlstore.Options{})
		run, small := newRun(t, s), newRun(t, s)
		if _, err := s.Discover(t.Context(), small, []storage.Discovery{benchDiscovery(1)}, nil); err != nil { // makes the host
			t.Fatal(err)
		}
		fillRun(t, s, newRun(t, s), 50, 50)
		freezeStatistics(t, s.DB())
		fillRun(t, s, run, many(100_000, 1_000_000), 20_000)
		fillRun(t, s, newRun(t, s), 1000, 1000)
		for stats, prepare := range map[string]func(){"stale": func() {}, "fresh": func() { analyze(t, s.DB()) }} {
			prepare()
			inputs := planInputs(run)
			for _, name := range s.Set().Names() {
				st := s.Set().Get(name)
				in, ok := inputs[name]
				if !ok {
					if readsBig.MatchString(st.Text()) {
						t.Errorf("statement %s reads a big table and is not looked at", name)
					}
					continue
				}
				plan, err := s.DB().Explain(t.Context(), st, in.tab, in.args...)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if wrong := wrongSteps(s.DB().Dialect(), name, plan); len(wrong) > 0 || len(plan) == 0 {
					t.Errorf("%s statistics: %s: %q in\n%s\n%s", stats, name, wrong, strings.Join(plan, "\n"), st.Text())
				}
			}
		}
	})
}

func analyze(t testing.TB, db *sqldb.DB) {
	for _, table := range bigTables {
		bulk(t, db, map[sqldb.Dialect]string{sqldb.SQLite: "ANALYZE ", sqldb.Postgres: "ANALYZE ", sqldb.MySQL: "ANALYZE TABLE "}[db.Dialect()]+table)
	}
}
