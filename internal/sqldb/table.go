package sqldb

import "fmt"

// Table is a table input: rows for one statement. The zero value is empty and ready; Reset keeps its memory.
// Cells are int64, string or []byte as the statement's columns say; a nil []byte is NULL, the others have none.
type Table struct {
	cells []any
	n     int
}

// Add appends a row. Byte slices are kept, not copied: they MUST NOT change before the transaction has ended.
func (t *Table) Add(cells ...any) {
	t.cells = append(t.cells, cells...)
	t.n++
}

// Len returns the number of rows.
func (t *Table) Len() int { return t.n }

// Reset empties the table.
func (t *Table) Reset() {
	clear(t.cells)
	t.cells, t.n = t.cells[:0], 0
}

func (t *Table) row(i, width int) []any { return t.cells[i*width : (i+1)*width] }

// check panics where a caller's cells do not fit the statement: that is a fault of the program.
func (t *Table) check(s *Stmt) {
	if len(t.cells) != t.n*len(s.rows) {
		panic(fmt.Sprintf("sqldb: statement %s takes %d columns, %d rows have %d cells", s.name, len(s.rows), t.n, len(t.cells)))
	}
}

// array returns a column as a slice that PostgreSQL takes as an array.
func (t *Table) array(col, width int, typ colType) any {
	switch typ {
	case typeText:
		out := make([]string, t.n)
		for i := range out {
			out[i] = t.cells[i*width+col].(string)
		}
		return out
	case typeBytes:
		out := make([][]byte, t.n)
		for i := range out {
			out[i] = t.cells[i*width+col].([]byte)
		}
		return out
	}
	out := make([]int64, t.n)
	for i := range out {
		out[i] = t.cells[i*width+col].(int64)
	}
	return out
}
