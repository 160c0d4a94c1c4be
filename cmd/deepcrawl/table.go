package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
)

// field is one named value of an exported row: string, *string, int64, *int64, bool or nil.
type field struct {
	name  string
	value any
}

// table writes rows of the same fields.
type table interface {
	write(row []field) error
	// close writes what is left; the underlying file stays open.
	close() error
}

// csvTable writes RFC 4180 with a header line. Cells that a spreadsheet would take for a formula get an apostrophe in front.
type csvTable struct {
	w      *csv.Writer
	cells  []string
	header bool
	names  []string
}

func newCSV(w io.Writer, names []string) *csvTable {
	return &csvTable{w: csv.NewWriter(w), names: names}
}

func (t *csvTable) write(row []field) error {
	if err := t.begin(); err != nil {
		return err
	}
	t.cells = t.cells[:0]
	for _, f := range row {
		t.cells = append(t.cells, cell(f.value))
	}
	return t.w.Write(t.cells)
}

func (t *csvTable) begin() error {
	if t.header {
		return nil
	}
	t.header = true
	return t.w.Write(t.names)
}

func (t *csvTable) close() error {
	if err := t.begin(); err != nil {
		return err
	}
	t.w.Flush()
	return t.w.Error()
}

func cell(v any) string {
	switch v := v.(type) {
	case string:
		return escapeCell(v)
	case *string:
		if v != nil {
			return escapeCell(*v)
		}
	case int64:
		return strconv.FormatInt(v, 10)
	case *int64:
		if v != nil {
			return strconv.FormatInt(*v, 10)
		}
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// escapeCell keeps spreadsheets from running a page's text as a formula (OWASP, "CSV Injection").
func escapeCell(s string) string {
	if s == "" {
		return s
	}
	switch s[0] {
	case '=', '+', '-', '@', '\t', '\r':
		return "'" + s
	}
	return s
}

// jsonLines writes one object a line, with the fields in their order.
type jsonLines struct {
	w   *bufio.Writer
	buf bytes.Buffer
	enc *json.Encoder // into buf
}

func newJSONLines(w io.Writer) *jsonLines {
	t := &jsonLines{w: bufio.NewWriterSize(w, 64<<10)}
	t.enc = json.NewEncoder(&t.buf)
	t.enc.SetEscapeHTML(false) // URLs are full of ampersands
	return t
}

func (t *jsonLines) write(row []field) error {
	t.buf.Reset()
	t.buf.WriteByte('{')
	for i, f := range row {
		if i > 0 {
			t.buf.WriteByte(',')
		}
		t.buf.WriteByte('"')
		t.buf.WriteString(f.name)
		t.buf.WriteString(`":`)
		if err := t.enc.Encode(f.value); err != nil {
			return err
		}
		t.buf.Truncate(t.buf.Len() - 1) // the newline Encode adds
	}
	t.buf.WriteString("}\n")
	_, err := t.w.Write(t.buf.Bytes())
	return err
}

func (t *jsonLines) close() error { return t.w.Flush() }
