package show

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
)

// Count writes a number with thousands separated: 12,345.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Plural is "1 page", "2 pages".
func Plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + one + "s"
}

// Size writes bytes as people read them.
func Size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// Span writes a duration as people read it, at most two units.
func Span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// Stamp writes a time with its zone, for people.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

// ISO is a time in JSON and CSV: RFC 3339 in UTC, nil for none.
func ISO(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format(time.RFC3339)
	return &s
}

// Local shows a time of a JSON row to people.
func Local(iso *string) string {
	if iso == nil {
		return "-"
	}
	t, err := time.Parse(time.RFC3339, *iso)
	if err != nil {
		return *iso
	}
	return Stamp(t)
}

// Clip cuts a text for a column, marking the cut.
func Clip(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:max(0, width-1)]) + "…"
}

// maxMarks is how many marks may stand on one letter; writing needs four at most.
const maxMarks = 8

// Clean drops control characters, so that a page's title or URL cannot drive a terminal, those that turn the direction of what
// follows (Unicode Standard Annex 9 section 2), and marks heaped on a letter, which would spill over what stands around it.
func Clean(s string) string {
	marks := 0
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Me) {
			if marks++; marks > maxMarks {
				return -1
			}
			return r
		}
		if unseen(r) {
			return -1
		}
		marks = 0
		return r
	}, s)
}

// unseen is a character that shows nothing itself and does something to what is around it.
func unseen(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// Escape writes what Clean drops as JSON does, so that a JSON text of several lines means the same and can be shown.
func Escape(json string) string {
	var b strings.Builder
	marks := 0
	for _, r := range json {
		mark := unicode.In(r, unicode.Mn, unicode.Me)
		if marks++; !mark {
			marks = 0
		}
		if r == '\n' || !unseen(r) && marks <= maxMarks {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
