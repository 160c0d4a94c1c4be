package sqldb

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Statement compiles a text without inputs, for what is asked once.
func (d Dialect) Statement(text string) *Stmt {
	return &Stmt{name: text, dialect: d, text: text, parts: []string{text}}
}

// Explain returns the plan a database makes for a statement with these inputs, a line for each step, without running it. On
// PostgreSQL it is the generic plan: the one a statement used often ends up with. MySQL's lines are "table=T type=X key=K Extra".
// It is meant for tests; that it returns no error also says that the statement can be prepared.
func (db *DB) Explain(ctx context.Context, st *Stmt, t *Table, args ...any) (plan []string, err error) {
	o := op{st: st, args: args, tab: t, exact: -1}
	if t != nil && !st.bulk {
		one := *t
		one.cells, one.n = t.row(0, len(st.rows)), 1
		o.tab = &one
	}
	err = db.Do(ctx, func(tx *Tx) error {
		plan = nil
		tx.explain(db.dialect, o, func(r *Row) error {
			plan = append(plan, db.dialect.planLine(r))
			return nil
		})
		return nil
	})
	return plan, err
}

// Prepare has the database parse and plan a statement with made-up inputs, for tests of all statements of a set.
func (db *DB) Prepare(ctx context.Context, st *Stmt) error {
	invent := func(cols []column) []any {
		out := make([]any, len(cols))
		for i, c := range cols {
			out[i] = map[colType]any{typeInt: int64(1), typeText: "x", typeBytes: []byte("x")}[c.typ]
		}
		return out
	}
	var t *Table
	if st.rows != nil {
		t = new(Table)
		t.Add(invent(st.rows)...)
	}
	_, err := db.Explain(ctx, st, t, invent(st.in)...)
	return err
}

func (tx *Tx) explain(d Dialect, o op, each func(*Row) error) {
	switch d {
	case SQLite:
		st := *o.st
		st.text = "EXPLAIN QUERY PLAN " + st.text
		o.st, o.each = &st, each
		tx.queue(o)
	case Postgres:
		tx.Exec(d.Statement("SET LOCAL plan_cache_mode = force_generic_plan"))
		name := "explained_" + strconv.FormatUint(rand.Uint64(), 36)
		tx.Exec(d.Statement("PREPARE " + name + " AS " + o.st.text))
		tx.Query(d.Statement("EXPLAIN EXECUTE "+name+o.literals()), each)
		tx.Exec(d.Statement("DEALLOCATE " + name))
	case MySQL:
		o.each = each
		tx.Query(d.Statement("EXPLAIN "+string(o.appendMySQL(nil))), each)
	}
}

func (d Dialect) planLine(r *Row) string {
	switch d {
	case SQLite:
		return r.Text(3)
	case Postgres:
		return strings.TrimSpace(r.Text(0))
	}
	n := len(r.vals) // MySQL has two columns more than MariaDB
	return fmt.Sprintf("table=%s type=%s key=%s %s", r.Text(2), r.Text(n-7), r.Text(n-5), r.Text(n-1))
}

// literals writes the inputs as PostgreSQL's EXECUTE takes them.
func (o *op) literals() string {
	if len(o.st.refs) == 0 {
		return ""
	}
	out := make([]string, len(o.st.refs))
	for i, r := range o.st.refs {
		switch r.kind {
		case refIn:
			out[i] = pgLiteral(o.args[r.i])
		case refCol:
			out[i] = pgLiteral(o.tab.row(0, len(o.st.rows))[r.i])
		case refArray:
			vals := make([]string, o.tab.n)
			for k := range vals {
				vals[k] = pgLiteral(o.tab.row(k, len(o.st.rows))[r.i])
			}
			out[i] = "ARRAY[" + strings.Join(vals, ",") + "]::" + o.st.rows[r.i].typ.postgres() + "[]"
		}
	}
	return "(" + strings.Join(out, ", ") + ")"
}

func pgLiteral(v any) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case []byte:
		return `'\x` + hex.EncodeToString(v) + `'`
	}
	return "NULL"
}
