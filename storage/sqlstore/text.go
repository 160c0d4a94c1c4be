package sqlstore

import (
	"strings"
	"time"
	"unicode/utf8"
)

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// when turns unix microseconds into a time; 0 is the zero time.
func when(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us)
}

func unixMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Limits of text columns, in bytes.
const (
	maxTitle       = 512
	maxContentType = 128
	maxReason      = 32
	maxLocation    = 2048
)

// clean makes a text storable everywhere: PostgreSQL takes neither invalid UTF-8 nor NUL. It is cut to n bytes at a rune boundary.
func clean(s string, n int) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if s[i] == 0 || s[i] >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if !plain {
		s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	}
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
