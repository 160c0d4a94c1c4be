package fetch

import (
	"net/http"
	"strings"
	"time"
)

// MaxRetryAfter is the longest wait believed; a longer one counts as this.
const MaxRetryAfter = 24 * time.Hour

// ParseRetryAfter reads a Retry-After header (RFC 9110 section 10.2.3), either
// seconds or an HTTP date. A date is taken relative to the response's own Date,
// so that a site whose clock is wrong is understood as it meant it; where that
// is missing, or more than a day from now, relative to now. A date in the past
// is a wait of 0. ok is false for anything else.
func ParseRetryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	var value string
	for _, v := range h["Retry-After"] {
		if value = strings.TrimSpace(v); value != "" {
			break
		}
	}
	if value == "" {
		return 0, false
	}
	if n, digits := seconds(value); digits {
		return n, true
	}
	at, err := httpDate(value)
	if err != nil {
		return 0, false
	}
	base := now
	if d, err := httpDate(h.Get("Date")); err == nil {
		if off := d.Sub(now); off.Abs() <= 24*time.Hour {
			base = d
		}
	}
	return min(max(at.Sub(base), 0), MaxRetryAfter), true
}

// seconds reads delay-seconds; a fraction, which some sites send, rounds up.
func seconds(v string) (time.Duration, bool) {
	whole, fraction, point := strings.Cut(v, ".")
	if whole == "" || point && fraction == "" {
		return 0, false
	}
	var n, max int64 = 0, int64(MaxRetryAfter / time.Second)
	for i := 0; i < len(whole); i++ {
		if whole[i] < '0' || whole[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(whole[i]-'0'), max)
	}
	up := int64(0)
	for i := 0; i < len(fraction); i++ {
		if fraction[i] < '0' || fraction[i] > '9' {
			return 0, false
		}
		if fraction[i] != '0' {
			up = 1
		}
	}
	return time.Duration(min(n+up, max)) * time.Second, true
}

// httpDate reads the three forms of RFC 9110 section 5.6.7, and IMF-fixdate
// with another zone or a one-digit day, which sites send.
func httpDate(v string) (time.Time, error) {
	v = strings.TrimSpace(v)
	t, err := http.ParseTime(v)
	for _, layout := range [...]string{time.RFC1123Z, "Mon, _2 Jan 2006 15:04:05 MST", "Mon, _2 Jan 2006 15:04:05 -0700"} {
		if err == nil {
			break
		}
		t, err = time.Parse(layout, v)
	}
	return t, err
}
