package main

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestTables(t *testing.T) {
	rows := [][]field{
		{{"url", "https://a.example/?a=1&b=<2>"}, {"status", ptr(int64(200))}, {"title", "=1+1"}, {"bytes", int64(-1)}, {"nofollow", true}, {"at", isoTime(time.Time{})}},
		{{"url", "x,\"y\"\nz"}, {"status", (*int64)(nil)}, {"title", "@sum"}, {"bytes", int64(3)}, {"nofollow", false}, {"at", isoTime(time.Unix(0, 0))}},
	}
	names := []string{"url", "status", "title", "bytes", "nofollow", "at"}
	t.Run("CSV reads back, with formulas disarmed and nulls empty", func(t *testing.T) {
		var b strings.Builder
		w := newCSV(&b, names)
		for _, r := range rows {
			if err := w.write(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		got, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		want := [][]string{
			names,
			{"https://a.example/?a=1&b=<2>", "200", "'=1+1", "-1", "true", ""},
			{"x,\"y\"\nz", "", "'@sum", "3", "false", "1970-01-01T00:00:00Z"},
		}
		for i := range want {
			if strings.Join(got[i], "|") != strings.Join(want[i], "|") {
				t.Errorf("line %d: got %q, want %q", i, got[i], want[i])
			}
		}
	})
	t.Run("JSON lines keep the fields' order, ampersands and nulls", func(t *testing.T) {
		var b strings.Builder
		w := newJSONLines(&b)
		for _, r := range rows {
			if err := w.write(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		want := `{"url":"https://a.example/?a=1&b=<2>","status":200,"title":"=1+1","bytes":-1,"nofollow":true,"at":null}`
		if len(lines) != 2 || lines[0] != want {
			t.Errorf("got %s, want %s", lines, want)
		}
		for _, l := range lines {
			if !json.Valid([]byte(l)) {
				t.Errorf("not JSON: %s", l)
			}
		}
	})
	t.Run("an empty CSV has its header", func(t *testing.T) {
		var b strings.Builder
		if err := newCSV(&b, names).close(); err != nil || b.String() != strings.Join(names, ",")+"\n" {
			t.Errorf("got %q, %v", b.String(), err)
		}
	})
}

func TestEscapeCell(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", "=a": "'=a", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\t=a": "'\t=a", "\r=a": "'\r=a", "a=b": "a=b",
	} {
		if got := escapeCell(in); got != want {
			t.Errorf("escape %q: got %q, want %q", in, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{count(0), "0"}, {count(999), "999"}, {count(1000), "1,000"}, {count(-1234567), "-1,234,567"},
		{plural(1, "page"), "1 page"}, {plural(1200, "page"), "1,200 pages"},
		{size(999), "999 B"}, {size(1500), "1.5 kB"}, {size(2_500_000), "2.5 MB"}, {size(3_100_000_000), "3.1 GB"},
		{span(900 * time.Millisecond), "900 ms"}, {span(3200 * time.Millisecond), "3.2 s"}, {span(124 * time.Second), "2 min 4 s"}, {span(125 * time.Minute), "2 h 5 min"},
		{clip("abcdef", 4), "abc…"}, {clip("abcd", 4), "abcd"}, {clean("a\x1b[31mb\u009bc"), "a[31mbc"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
