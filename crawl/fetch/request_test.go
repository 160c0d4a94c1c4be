package fetch_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"deepcrawl/crawl/fetch"
)

func TestRequestTarget(t *testing.T) {
	for _, tc := range []struct{ url, addr, authority, uri string }{
		{"http://Example.COM", "example.com:80", "example.com", "/"},
		{"HTTPS://example.com/a?b=c#d", "example.com:443", "example.com", "/a?b=c"},
		{"https://example.com:443/", "example.com:443", "example.com", "/"},
		{"http://example.com:443/", "example.com:443", "example.com:443", "/"},
		{"http://example.com:/", "example.com:80", "example.com", "/"},
		{"http://example.com?q", "example.com:80", "example.com", "/?q"},
		{"http://user:secret@example.com/", "example.com:80", "example.com", "/"},
		{"http://user@evil@example.com/", "example.com:80", "example.com", "/"},
		{"http://[::1]:8080/", "[::1]:8080", "[::1]:8080", "/"},
		{"http://[0:0::1]/", "[::1]:80", "[::1]", "/"},
		{"http://a_b.example-c.d./x", "a_b.example-c.d.:80", "a_b.example-c.d.", "/x"},
		{"http://bücher.example/", "xn--bcher-kva.example:80", "xn--bcher-kva.example", "/"},
		{"http://h/100%", "h:80", "h", "/100%"},
		{"http://h/%2f%zz|[]^`{}\"\\", "h:80", "h", "/%2f%zz|[]^`{}\"\\"},
		{"http://h/a b\r\nX: y", "h:80", "h", "/a%20b%0D%0AX:%20y"},
		{"http://h/\u00e9?\u00e9", "h:80", "h", "/%C3%A9?%C3%A9"},
		{"http://h//a//b", "h:80", "h", "//a//b"},
	} {
		addr, authority, uri, err := fetch.RequestTarget(tc.url)
		if err != nil || addr != tc.addr || authority != tc.authority || uri != tc.uri {
			t.Errorf("%q: got %q, %q, %q, %v; want %q, %q, %q", tc.url, addr, authority, uri, err, tc.addr, tc.authority, tc.uri)
		}
	}
}

func TestRequestOnTheWire(t *testing.T) {
	heads := make(chan string, 1)
	s := newRawServer(t, func(_ int, c *net.TCPConn) {
		br := bufio.NewReader(c)
		for {
			var head strings.Builder
			for {
				line, err := br.ReadString('\n')
				if err != nil {
					return
				}
				if head.WriteString(line); line == "\r\n" {
					break
				}
			}
			heads <- head.String()
			io.WriteString(c, "HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Path=/\r\nContent-Length: 2\r\n\r\nhi")
		}
	})
	c := newClient(t, nil)
	ask := func(r fetch.Request) []string {
		t.Helper()
		if res := do(t, c, r); res.Reason != "" {
			t.Fatalf("%q: got %q (%v)", r.URL, res.Reason, res.Err)
		}
		return strings.Split(strings.TrimSuffix(<-heads, "\r\n\r\n"), "\r\n")
	}
	t.Run("the target is sent byte for byte", func(t *testing.T) {
		for _, uri := range []string{"/", "/a?b=c&d", "/100%", "/a?b=100%", "/%2F%2f", "/a|b^c`d{e}", "/?", "//a//b", "//a?x//y", "/a//b?u=http://x/", "/*", "/;a=b,c", "/a%00b"} {
			if got, want := ask(fetch.Request{URL: s.url + uri})[0], "GET "+uri+" HTTP/1.1"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
	t.Run("a target that net/http can only send in absolute form is sent so", func(t *testing.T) {
		if got, want := ask(fetch.Request{URL: s.url + "//100%"})[0], "GET "+s.url+"//100% HTTP/1.1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("the headers are these and no others", func(t *testing.T) {
		want := []string{"GET /x HTTP/1.1", "Host: " + s.addr, "User-Agent: TestCrawler/1.0", "Accept: " + fetch.DefaultAccept, "Accept-Encoding: gzip, deflate, br, zstd"}
		got := ask(fetch.Request{URL: "http://user:secret@" + s.addr + "/x#f"})
		slices.Sort(got[2:])
		slices.Sort(want[2:])
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("a request's own headers replace the defaults and stay as they were", func(t *testing.T) {
		own := http.Header{"accept": {"text/plain"}, "X-Own": {"1", "2"}}
		got := ask(fetch.Request{URL: s.url, Header: own, Accept: "ignored/for-this"})
		for _, line := range []string{"Accept: text/plain", "X-Own: 1", "X-Own: 2"} {
			if !slices.Contains(got, line) {
				t.Errorf("no %q in %q", line, got)
			}
		}
		if len(own) != 2 || !slices.Equal(own["accept"], []string{"text/plain"}) { //nolint:staticcheck // not canonical on purpose
			t.Errorf("the caller's header was changed: %v", own)
		}
	})
	t.Run("no user agent is sent where none is set", func(t *testing.T) {
		anonymous := newClient(t, func(cfg *fetch.Config) { cfg.UserAgent = "" })
		do(t, anonymous, fetch.Request{URL: s.url})
		if head := <-heads; strings.Contains(head, "User-Agent") {
			t.Errorf("got %q", head)
		}
	})
	t.Run("a header that would split the request is an error, and nothing is written", func(t *testing.T) {
		res := do(t, c, fetch.Request{URL: s.url, Header: http.Header{"X": {"a\r\nY: b"}}})
		if res.Reason == "" || res.Wrote {
			t.Errorf("got %q (%v), wrote %v", res.Reason, res.Err, res.Wrote)
		}
	})
	t.Run("no cookie is kept", func(t *testing.T) {
		ask(fetch.Request{URL: s.url})
		for _, line := range ask(fetch.Request{URL: s.url}) {
			if strings.HasPrefix(line, "Cookie") {
				t.Errorf("got %q", line)
			}
		}
	})
}

// FuzzTarget: what parses can be asked for on one line, and only of the host
// it names.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"http://a/", "https://u:p@h:8080/x?y#z", "http://[::1]/", "http://é/%", "http://h//x", "http://h?\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		addr, authority, uri, err := fetch.RequestTarget(raw)
		if err != nil {
			return
		}
		if !strings.HasPrefix(uri, "/") || strings.ContainsAny(uri, " \r\n\t#\x00") || strings.ContainsAny(authority, "@/ \r\n\t") {
			t.Errorf("%q: authority %q, target %q", raw, authority, uri)
		}
		for i := range len(uri) {
			if uri[i] <= ' ' || uri[i] >= 0x7f {
				t.Errorf("%q: byte %x in target", raw, uri[i])
			}
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			t.Errorf("%q: address %q: %v", raw, addr, err)
		}
		scheme := "http://"
		if strings.EqualFold(raw[:5], "https") {
			scheme = "https://"
		}
		addr2, authority2, uri2, err := fetch.RequestTarget(scheme + authority + uri)
		if err != nil || addr2 != addr || authority2 != authority || uri2 != uri {
			t.Errorf("%q: again: %q %q %q, first %q %q %q, %v", raw, addr2, authority2, uri2, addr, authority, uri, err)
		}
	})
}
