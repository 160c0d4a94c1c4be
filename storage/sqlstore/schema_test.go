package sqlstore_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
	"deepcrawl/storage/sqlstore"
)

// kind folds the types of three dialects into what they hold. On MySQL text is VARBINARY, or BLOB where it is long.
func kind(d sqldb.Dialect, typ string) string {
	switch t := strings.ToLower(typ); {
	case d == sqldb.MySQL && t == "blob":
		return "text"
	case strings.Contains(t, "int"):
		return "integer"
	case strings.Contains(t, "text"), strings.Contains(t, "char"), strings.HasPrefix(t, "varbinary"):
		return "text"
	case strings.Contains(t, "blob"), t == "bytea", strings.HasPrefix(t, "binary"):
		return "bytes"
	default:
		return typ
	}
}

var introspection = map[sqldb.Dialect]struct{ columns, indexes string }{
	sqldb.SQLite: {
		`SELECT m.name, c.name, c.type, CASE WHEN c."notnull" = 1 OR c.pk > 0 THEN 0 ELSE 1 END FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`,
		`SELECT m.name, i.name, i."unique", x.seqno, x.name FROM sqlite_master m JOIN pragma_index_list(m.name) i JOIN pragma_index_info(i.name) x WHERE m.type = 'table' AND i.origin = 'c' ORDER BY 1, 2, 4`,
	},
	sqldb.Postgres: {
		`SELECT table_name, column_name, data_type, CASE WHEN is_nullable = 'YES' THEN 1 ELSE 0 END FROM information_schema.columns WHERE table_schema = current_schema()`,
		`SELECT t.relname, c.relname, i.indisunique::int, k.n, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
			JOIN LATERAL unnest(i.indkey::int[]) WITH ORDINALITY k(att, n) ON true JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.att
			WHERE t.relnamespace = current_schema()::regnamespace AND NOT i.indisprimary ORDER BY 1, 2, 4`,
	},
	sqldb.MySQL: {
		`SELECT table_name, column_name, data_type, IF(is_nullable = 'YES', 1, 0) FROM information_schema.columns WHERE table_schema = DATABASE()`,
		`SELECT table_name, index_name, 1 - non_unique, seq_in_index, column_name FROM information_schema.statistics WHERE table_schema = DATABASE() AND index_name <> 'PRIMARY' ORDER BY 1, 2, 4`,
	},
}

// onlyOnServers are indexes SQLite does without: it has one writer, which locks nothing but the whole.
var onlyOnServers = []string{"index claim_owner of claim"}

func introspect(t *testing.T, db *sqldb.DB) map[string]string {
	t.Helper()
	out := map[string]string{}
	skip := func(table string) bool {
		return strings.HasSuffix(table, "_version") || strings.HasSuffix(table, "_serves") || strings.HasPrefix(table, "sqlite_")
	}
	err := db.View(t.Context(), func(tx *sqldb.Tx) error {
		clear(out)
		q := introspection[db.Dialect()]
		tx.Query(db.Dialect().Statement(q.columns), func(r *sqldb.Row) error {
			if !skip(r.Text(0)) {
				out["column "+r.Text(0)+"."+r.Text(1)] = fmt.Sprint(kind(db.Dialect(), r.Text(2)), ", null ", r.Int(3))
			}
			return nil
		})
		tx.Query(db.Dialect().Statement(q.indexes), func(r *sqldb.Row) error {
			if !skip(r.Text(0)) {
				out["index "+r.Text(1)+" of "+r.Text(0)] += fmt.Sprint(" ", r.Text(4), "/unique ", r.Int(2))
			}
			return nil
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheSchemasAreTheSame(t *testing.T) {
	schemas := map[string]map[string]string{}
	for name, dsn := range map[string]func(testing.TB) string{"sqlite": sqliteDSN, "postgres": testenv.Postgres, "mysql": testenv.MySQL} {
		address := dsn(t)
		opener(t, address)
		schemas[name] = introspect(t, openStore(t, address, sqlstore.Options{}).DB())
	}
	for _, name := range onlyOnServers {
		delete(schemas["postgres"], name)
		delete(schemas["mysql"], name)
	}
	want := schemas["sqlite"]
	if len(want) < 80 {
		t.Errorf("got only %d columns and indexes of SQLite: %v", len(want), slices.Sorted(maps.Keys(want)))
	}
	for _, name := range []string{"postgres", "mysql"} {
		got := schemas[name]
		for _, what := range slices.Sorted(maps.Keys(want)) {
			if got[what] != want[what] {
				t.Errorf("%s of %s: got %q, want %q", what, name, got[what], want[what])
			}
		}
		for _, what := range slices.Sorted(maps.Keys(got)) {
			if _, ok := want[what]; !ok {
				t.Errorf("%s of %s is not there on SQLite", what, name)
			}
		}
	}
}
