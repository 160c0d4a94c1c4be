package sitemap

import (
	"bytes"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescape appends src to dst with its character and entity references resolved.
// What is no complete reference stays as it is: "&" alone is common in URLs. bad
// reports that there was one.
func unescape(dst, src []byte) (out []byte, bad bool) {
	for {
		i := bytes.IndexByte(src, '&')
		if i < 0 {
			return append(dst, src...), bad
		}
		dst, src = append(dst, src[:i]...), src[i:]
		end := bytes.IndexByte(src[:min(len(src), 34)], ';')
		r := ""
		if end > 1 {
			r = reference(src[1:end])
		}
		if r == "" {
			dst, src, bad = append(dst, '&'), src[1:], true
			continue
		}
		dst, src = append(dst, r...), src[end+1:]
	}
}

// reference resolves the inside of "&...;", or returns "".
func reference(name []byte) string {
	switch string(name) {
	case "amp":
		return "&"
	case "lt":
		return "<"
	case "gt":
		return ">"
	case "quot":
		return `"`
	case "apos":
		return "'"
	}
	if name[0] == '#' {
		num, base := string(name[1:]), 10
		if len(num) > 0 && (num[0] == 'x' || num[0] == 'X') {
			num, base = num[1:], 16
		}
		n, err := strconv.ParseUint(num, base, 32)
		if err != nil || n == 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
			return ""
		}
		return string(rune(n))
	}
	for _, c := range name {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return ""
		}
	}
	// XML knows only the five above; feeds use HTML's names without declaring them.
	ref := "&" + string(name) + ";"
	if s := html.UnescapeString(ref); s != ref && !strings.HasSuffix(s, ";") {
		return s
	}
	return ""
}

// urlString makes a string of a URL's bytes, percent-encoding what is not UTF-8.
func urlString(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(b)+16)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			out = append(out, '%', hex[b[0]>>4], hex[b[0]&15])
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return string(out)
}

// clip makes a short, valid string for a message.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

func hasHTTPScheme(b []byte) bool {
	return len(b) > 7 && foldEqual(b[:7], "http://") || len(b) > 8 && foldEqual(b[:8], "https://")
}

// parsePriority reads a number; a decimal comma is taken for a point.
func parsePriority(b []byte) (float64, bool) {
	f, err := strconv.ParseFloat(strings.Replace(string(b), ",", ".", 1), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// parseChangeFreq returns the word in lower case if it is one of the protocol's.
func parseChangeFreq(b []byte) string {
	for _, w := range [...]string{"daily", "weekly", "monthly", "yearly", "always", "hourly", "never"} {
		if foldEqual(b, w) {
			return w
		}
	}
	return ""
}
