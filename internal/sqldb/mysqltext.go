package sqldb

import (
	"fmt"
	"strconv"
)

// results is how many result sets a queued statement shows: one a row of its table where it runs once a row.
func (o *op) results() int {
	if o.tab != nil && !o.st.bulk {
		return o.tab.n
	}
	return 1
}

// appendMySQL writes the statement with its inputs as literals. Several statements go in one text, so they cannot be prepared;
// escaping is safe because the connection is utf8mb4 and its sql_mode, set by us, takes backslashes.
func (o *op) appendMySQL(b []byte) []byte {
	for i := range o.results() {
		if len(b) > 0 {
			b = append(b, ';')
		}
		b = append(b, o.st.parts[0]...)
		for k, r := range o.st.refs {
			switch r.kind {
			case refIn:
				b = appendLiteral(b, o.args[r.i])
			case refCol:
				b = appendLiteral(b, o.tab.row(i, len(o.st.rows))[r.i])
			case refRows:
				b = o.appendRows(b)
			case refValues:
				b = o.appendValues(b)
			case refAny:
				b = o.appendAny(b)
			}
			b = append(b, o.st.parts[k+1]...)
		}
		switch {
		case o.exact >= 0 && o.tab != nil && !o.st.bulk:
			b = append(b, ";SELECT IF(ROW_COUNT() = 1, 1, (SELECT 1 UNION ALL SELECT 2))"...)
		case o.exact >= 0:
			b = append(b, ";SELECT IF(ROW_COUNT() = "...)
			b = strconv.AppendInt(b, o.exact, 10)
			b = append(b, ", 1, (SELECT 1 UNION ALL SELECT 2))"...)
		case o.each == nil:
			b = append(b, ";SELECT ROW_COUNT()"...)
		}
	}
	return b
}

func (o *op) appendRows(b []byte) []byte {
	w := len(o.st.rows)
	b = append(b, '(')
	for i := range o.tab.n {
		if i > 0 {
			b = append(b, " UNION ALL "...)
		}
		b = append(b, "SELECT "...)
		for k, v := range o.tab.row(i, w) {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendLiteral(b, v)
			if i == 0 {
				b = append(b, " AS "...)
				b = append(b, o.st.rows[k].name...)
			}
		}
	}
	return append(b, ')')
}

func (o *op) appendValues(b []byte) []byte {
	w := len(o.st.rows)
	b = append(b, "VALUES "...)
	for i := range o.tab.n {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '(')
		for k, v := range o.tab.row(i, w) {
			if k > 0 {
				b = append(b, ',')
			}
			b = appendLiteral(b, v)
		}
		b = append(b, ')')
	}
	return b
}

// appendAny writes the condition for each row of the table.
func (o *op) appendAny(b []byte) []byte {
	b = append(b, '(')
	for i := range o.tab.n {
		if i > 0 {
			b = append(b, " OR "...)
		}
		b = append(b, o.st.any.parts[0]...)
		for k, r := range o.st.any.refs {
			if r.kind == refIn {
				b = appendLiteral(b, o.args[r.i])
			} else {
				b = appendLiteral(b, o.tab.row(i, len(o.st.rows))[r.i])
			}
			b = append(b, o.st.any.parts[k+1]...)
		}
	}
	return append(b, ')')
}

func appendLiteral(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "NULL"...)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case string:
		return append(appendEscaped(append(b, '\''), v), '\'')
	case []byte:
		if v == nil {
			return append(b, "NULL"...)
		}
		return append(appendEscaped(append(b, "_binary'"...), v), '\'')
	}
	panic(fmt.Sprintf("sqldb: inputs are int64, string and []byte, not %T", v))
}

func appendEscaped[T string | []byte](b []byte, s T) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case 0:
			b = append(b, '\\', '0')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case 0x1a:
			b = append(b, '\\', 'Z')
		case '\'', '"', '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return b
}
