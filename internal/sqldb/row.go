package sqldb

import (
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
)

// Row is one row of a result, valid during the callback that gets it. Columns count from 0.
//
// Integers, text and bytes are all there is: cast sums and other decimals to an integer in the statement.
type Row struct {
	vals []driver.Value // SQLite and MySQL
	raw  [][]byte       // PostgreSQL
	text []bool         // PostgreSQL: the column is in text format
	// owned says that byte slices of vals are nobody else's.
	owned bool
	err   error
}

// Null reports whether a column is NULL.
func (r *Row) Null(i int) bool {
	if r.raw != nil {
		return r.raw[i] == nil
	}
	return r.vals[i] == nil
}

// Int returns an integer column; 0 for NULL. A column that holds none makes the statement fail.
func (r *Row) Int(i int) int64 {
	if r.raw != nil {
		b := r.raw[i]
		if r.text[i] {
			return r.parse(i, string(b))
		}
		switch len(b) {
		case 0:
			return 0
		case 1:
			return int64(b[0])
		case 2:
			return int64(int16(binary.BigEndian.Uint16(b)))
		case 4:
			return int64(int32(binary.BigEndian.Uint32(b)))
		case 8:
			return int64(binary.BigEndian.Uint64(b))
		}
		r.fail(i, b)
		return 0
	}
	switch v := r.vals[i].(type) {
	case nil:
		return 0
	case int64:
		return v
	case uint64:
		return int64(v)
	case []byte:
		return r.parse(i, string(v))
	case string:
		return r.parse(i, v)
	default:
		r.fail(i, v)
		return 0
	}
}

func (r *Row) parse(i int, s string) int64 {
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		r.fail(i, s)
	}
	return n
}

func (r *Row) fail(i int, v any) {
	if r.err == nil {
		r.err = fmt.Errorf("column %d is no integer: %v", i, v)
	}
}

// Text returns a text column; "" for NULL. The caller may keep it.
func (r *Row) Text(i int) string {
	if r.raw != nil {
		return string(r.raw[i])
	}
	switch v := r.vals[i].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	}
	return ""
}

// Bytes returns a bytes column, nil for NULL and for no bytes. The caller may keep it.
func (r *Row) Bytes(i int) []byte {
	if r.raw != nil {
		b := r.raw[i]
		if r.text[i] && len(b) >= 2 && b[0] == '\\' && b[1] == 'x' {
			out, err := hex.DecodeString(string(b[2:]))
			if err != nil && r.err == nil {
				r.err = fmt.Errorf("column %d: %w", i, err)
			}
			return out
		}
		if len(b) == 0 {
			return nil
		}
		return append([]byte(nil), b...)
	}
	switch v := r.vals[i].(type) {
	case []byte:
		if len(v) == 0 {
			return nil
		}
		if r.owned {
			return v
		}
		return append([]byte(nil), v...)
	case string:
		if v == "" {
			return nil
		}
		return []byte(v)
	}
	return nil
}
