package sitemap

import (
	"strings"
	"time"
)

// parseTime reads the dates found in sitemaps and feeds: W3C datetime in all its
// precisions (www.w3.org/TR/NOTE-datetime), also with a space for the T, without
// zone (UTC) or with a zone without a colon; and RFC 822, 850, 1123 and C-style
// dates with or without weekday, seconds and zone, with two-digit years. Years
// outside 1970 to 2199 are refused: they are placeholders.
func parseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	t, ok := parseISO(s)
	if !ok {
		t, ok = parseMail(s)
	}
	if !ok {
		return time.Time{}, false
	}
	t = t.UTC()
	if t.Year() < 1970 || t.Year() > 2199 {
		return time.Time{}, false
	}
	return t, true
}

// cursor reads a date from the left.
type cursor struct {
	s  string
	ok bool
}

// num reads between lo and hi digits.
func (c *cursor) num(lo, hi int) int {
	n, v := 0, 0
	for n < hi && n < len(c.s) && c.s[n] >= '0' && c.s[n] <= '9' {
		v = v*10 + int(c.s[n]-'0')
		n++
	}
	if n < lo {
		c.ok = false
	}
	c.s = c.s[n:]
	return v
}

// take passes one byte of set if it is next.
func (c *cursor) take(set string) bool {
	if c.s == "" || strings.IndexByte(set, c.s[0]) < 0 {
		return false
	}
	c.s = c.s[1:]
	return true
}

func (c *cursor) spaces() { c.s = strings.TrimLeft(c.s, " \t\r\n\u00a0") }

func parseISO(s string) (time.Time, bool) {
	c := &cursor{s, true}
	year, month, day := c.num(4, 4), 1, 1
	if !c.ok {
		return time.Time{}, false
	}
	sep := c.take("-/.")
	if c.s != "" {
		month = c.num(1, 2)
		if c.s != "" && (c.take("-/.") || !sep) {
			day = c.num(1, 2)
		}
	}
	var hms [3]int
	var nsec int
	zone := time.UTC
	if c.take("Tt ") {
		c.spaces()
		if c.s != "" {
			hms, nsec = c.clock()
			zone = c.zone()
		}
	} else if c.s != "" && (c.s[0] == 'Z' || c.s[0] == 'z' || c.s[0] == '+' || c.s[0] == '-') {
		zone = c.zone() // a date with a zone: 2024-05-01+02:00
	}
	return c.date(year, month, day, hms, nsec, zone)
}

// clock reads hh:mm, hh:mm:ss and fractions, also hhmmss.
func (c *cursor) clock() (hms [3]int, nsec int) {
	hms[0] = c.num(1, 2)
	c.take(":.")
	hms[1] = c.num(2, 2)
	if c.take(":") || c.s != "" && c.s[0] >= '0' && c.s[0] <= '9' {
		hms[2] = c.num(1, 2)
		if c.take(".,") {
			scale := 100_000_000
			for c.s != "" && c.s[0] >= '0' && c.s[0] <= '9' {
				nsec += int(c.s[0]-'0') * scale
				scale /= 10
				c.s = c.s[1:]
			}
		}
	}
	return hms, nsec
}

// zone reads what names a zone and takes the rest of the date. Unknown words
// count as UTC, as RFC 2822 section 4.3 says of unknown zones.
func (c *cursor) zone() *time.Location {
	c.spaces()
	if c.s == "" {
		return time.UTC
	}
	sign := 0
	switch c.s[0] {
	case '+':
		sign = 1
	case '-':
		sign = -1
	}
	if sign == 0 {
		word := c.s
		if i := strings.IndexAny(word, " \t("); i >= 0 {
			word = word[:i]
		}
		rest := strings.TrimSpace(c.s[len(word):])
		if (strings.EqualFold(word, "GMT") || strings.EqualFold(word, "UTC")) && rest == "" {
			c.s = ""
			return time.UTC
		}
		// GMT+02:00, UT-5
		if i := strings.IndexAny(word, "+-"); i > 0 {
			c.s = word[i:]
			return c.zone()
		}
		c.s = ""
		return time.FixedZone("", zoneMinutes(word)*60)
	}
	c.s = c.s[1:]
	h := c.num(1, 2)
	c.take(":")
	m := 0
	if c.s != "" && c.s[0] >= '0' && c.s[0] <= '9' {
		m = c.num(2, 2)
	}
	if h > 24 || m > 59 {
		c.ok = false
	}
	c.spaces()
	if c.s != "" && c.s[0] != '(' { // a comment may follow: +0200 (CEST)
		c.ok = false
	}
	c.s = ""
	return time.FixedZone("", sign*(h*60+m)*60)
}

// zoneMinutes knows the zone names of RFC 822 and the commonest others.
func zoneMinutes(name string) int {
	switch strings.ToUpper(name) {
	case "PST":
		return -480
	case "PDT", "MST":
		return -420
	case "MDT", "CST":
		return -360
	case "CDT", "EST":
		return -300
	case "EDT":
		return -240
	case "CET", "MET", "BST", "WEST":
		return 60
	case "CEST", "MEST", "EET":
		return 120
	case "EEST", "MSK":
		return 180
	case "IST":
		return 330
	case "AWST":
		return 480
	case "JST", "KST":
		return 540
	case "AEST":
		return 600
	case "AEDT":
		return 660
	case "NZST":
		return 720
	case "NZDT":
		return 780
	}
	return 0
}

func (c *cursor) date(year, month, day int, hms [3]int, nsec int, zone *time.Location) (time.Time, bool) {
	if !c.ok || c.s != "" || month < 1 || month > 12 || day < 1 || day > 31 || hms[0] > 24 || hms[1] > 59 || hms[2] > 60 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hms[0], hms[1], hms[2], nsec, zone)
	if hms[0] < 24 && t.Day() != day {
		return time.Time{}, false // 31 February
	}
	return t, true
}

// parseMail reads "Thu, 05 Jan 2017 13:34:51 +0100" and its relatives.
func parseMail(s string) (time.Time, bool) {
	c := &cursor{s, true}
	if w := c.word(); w != "" {
		if m := monthOf(w); m > 0 { // Jan 5, 2017 or Jan 5 13:34:51 2017
			return c.american(m)
		}
		c.take(",.")
		c.spaces()
		if w := c.word(); w != "" { // Thu Jan 05 13:34:51 2017, Thu, Jan 5 2017
			return c.american(monthOf(w))
		}
	}
	day := c.num(1, 2)
	c.between()
	month := monthOf(c.word())
	c.between()
	year := c.year()
	if !c.ok {
		return time.Time{}, false
	}
	return c.tail(year, month, day)
}

func (c *cursor) between() {
	for c.take(" \t-,./") {
	}
}

func (c *cursor) american(month int) (time.Time, bool) {
	c.between()
	day := c.num(1, 2)
	c.between()
	if len(c.s) > 2 && (c.s[1] == ':' || c.s[2] == ':') { // clock before the year
		hms, nsec := c.clock()
		c.spaces()
		zone := time.UTC
		if w := c.s; w != "" && (w[0] < '0' || w[0] > '9') {
			end := strings.IndexByte(w, ' ')
			if end < 0 {
				return time.Time{}, false
			}
			c.s = w[:end]
			zone = c.zone()
			c.s = strings.TrimLeft(w[end:], " ")
		}
		year := c.year()
		return c.date(year, month, day, hms, nsec, zone)
	}
	year := c.year()
	return c.tail(year, month, day)
}

// tail reads the optional clock and zone after the date.
func (c *cursor) tail(year, month, day int) (time.Time, bool) {
	c.take(",")
	c.spaces()
	var hms [3]int
	var nsec int
	zone := time.UTC
	if c.s != "" {
		if c.s[0] >= '0' && c.s[0] <= '9' {
			hms, nsec = c.clock()
		}
		zone = c.zone()
	}
	return c.date(year, month, day, hms, nsec, zone)
}

// year reads two or four digits; two mean 1970 to 2069.
func (c *cursor) year() int {
	n := len(c.s)
	y := c.num(2, 4)
	switch n - len(c.s) {
	case 2:
		if y < 70 {
			return 2000 + y
		}
		return 1900 + y
	case 4:
		return y
	}
	c.ok = false
	return 0
}

func (c *cursor) word() string {
	n := 0
	for n < len(c.s) && (c.s[n]|0x20) >= 'a' && (c.s[n]|0x20) <= 'z' {
		n++
	}
	w := c.s[:n]
	c.s = c.s[n:]
	return w
}

// monthOf knows English months by their first three letters.
func monthOf(w string) int {
	if len(w) < 3 {
		return 0
	}
	i := strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(w[:3]))
	if i < 0 || i%3 != 0 {
		return 0
	}
	return i/3 + 1
}
