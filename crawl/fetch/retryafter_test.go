package fetch_test

import (
	"net/http"
	"testing"
	"time"

	"deepcrawl/crawl/fetch"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 10, 21, 7, 28, 0, 0, time.UTC)
	const date = "Wed, 21 Oct 2026 07:28:00 GMT"
	cases := []struct {
		value, date string
		want        time.Duration
		ok          bool
	}{
		{"0", "", 0, true},
		{"120", "", 2 * time.Minute, true},
		{"  120\t", "", 2 * time.Minute, true},
		{"1.5", "", 2 * time.Second, true},
		{"86400", "", 24 * time.Hour, true},
		{"86401", "", 24 * time.Hour, true},
		{"99999999999999999999999999", "", 24 * time.Hour, true},
		{"-1", "", 0, false},
		{"+5", "", 0, false},
		{"5s", "", 0, false},
		{"1.", "", 0, false},
		{".5", "", 0, false},
		{"soon", "", 0, false},
		{"", "", 0, false},
		{"Wed, 21 Oct 2026 07:30:00 GMT", date, 2 * time.Minute, true},
		{"Wed, 21 Oct 2026 07:30:00 GMT", "", 2 * time.Minute, true},
		{"Wednesday, 21-Oct-26 07:30:00 GMT", date, 2 * time.Minute, true},
		{"Wed Oct 21 07:30:00 2026", date, 2 * time.Minute, true},
		{"Wed, 21 Oct 2026 09:30:00 +0200", date, 2 * time.Minute, true},
		{"Wed, 21 Oct 2026 07:27:00 GMT", date, 0, true},
		{"Wed, 21 Oct 2027 07:28:00 GMT", date, 24 * time.Hour, true},
		{"Wed, 21 Oct 1998 07:28:00 GMT", date, 0, true},
		// The site's clock is 50 minutes behind ours: it meant two minutes.
		{"Wed, 21 Oct 2026 06:40:00 GMT", "Wed, 21 Oct 2026 06:38:00 GMT", 2 * time.Minute, true},
		// Its clock is years off: its Date is no ground to stand on.
		{"Wed, 21 Oct 2026 07:30:00 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", 2 * time.Minute, true},
		{"Wed, 21 Oct 2026 07:30:00 GMT", "yesterday", 2 * time.Minute, true},
	}
	for _, tc := range cases {
		h := http.Header{"Retry-After": {tc.value}}
		if tc.date != "" {
			h.Set("Date", tc.date)
		}
		if got, ok := fetch.ParseRetryAfter(h, now); got != tc.want || ok != tc.ok {
			t.Errorf("%q at %q: got %v, %v; want %v, %v", tc.value, tc.date, got, ok, tc.want, tc.ok)
		}
	}
	if got, ok := fetch.ParseRetryAfter(http.Header{}, now); got != 0 || ok {
		t.Errorf("without the header: got %v, %v", got, ok)
	}
	if got, ok := fetch.ParseRetryAfter(http.Header{"Retry-After": {"", "7", "9"}}, now); got != 7*time.Second || !ok {
		t.Errorf("said twice: got %v, %v; want the first", got, ok)
	}
	t.Run("a result carries it", func(t *testing.T) {
		s := replies(t, "HTTP/1.1 503 Busy\r\nDate: "+date+"\r\nRetry-After: Wed, 21 Oct 2026 07:28:30 GMT\r\nContent-Length: 0\r\n\r\n")
		c := newClient(t, func(cfg *fetch.Config) { cfg.Now = func() time.Time { return now } })
		res := do(t, c, fetch.Request{URL: s.url})
		if res.Status != 503 || !res.HasRetryAfter || res.RetryAfter != 30*time.Second || !res.Started.Equal(now) {
			t.Errorf("got %d, %v, %v, started %v", res.Status, res.HasRetryAfter, res.RetryAfter, res.Started)
		}
	})
}

// FuzzRetryAfter: whatever the headers, the wait is between nothing and a day.
func FuzzRetryAfter(f *testing.F) {
	f.Add("120", "")
	f.Add("Wed, 21 Oct 2026 07:30:00 GMT", "Wed, 21 Oct 2026 07:28:00 GMT")
	f.Add("Wednesday, 21-Oct-26 07:30:00 GMT", "Wed Oct 21 07:30:00 2026")
	f.Add("1.5", "x")
	now := time.Date(2026, 10, 21, 7, 28, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value, date string) {
		got, ok := fetch.ParseRetryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, now)
		if got < 0 || got > fetch.MaxRetryAfter || !ok && got != 0 {
			t.Errorf("%q at %q: got %v, %v", value, date, got, ok)
		}
	})
}
