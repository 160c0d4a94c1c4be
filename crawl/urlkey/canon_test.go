package urlkey_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"deepcrawl/crawl/urlkey"
)

func newCanonicalizer(t testing.TB, o urlkey.Options) *urlkey.Canonicalizer {
	t.Helper()
	c, err := urlkey.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParse(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	groups := []struct {
		name  string
		cases [][2]string
	}{
		{"scheme and host are lower case and an empty path is a slash", [][2]string{
			{"HTTP://Example.COM", "http://example.com/"},
			{"https://example.com?a=1", "https://example.com/?a=1"},
			{"https:example.com/x", "https://example.com/x"},
			{`https:\\example.com\x\y`, "https://example.com/x/y"},
		}},
		{"names become A-labels and lose the dot at their end", [][2]string{
			{"https://нэб.рф/", "https://xn--90ax2c.xn--p1ai/"},
			{"https://b%C3%BCcher.de/", "https://xn--bcher-kva.de/"},
			{"https://XN--A.example/", "https://xn--a.example/"},
			{"https://faß.de", "https://xn--fa-hia.de/"},
			{"https://example.com./a", "https://example.com/a"},
			{"https://A_b.example/", "https://a_b.example/"},
		}},
		{"addresses have one spelling", [][2]string{
			{"http://0x7f.1/", "http://127.0.0.1/"},
			{"http://2130706433/", "http://127.0.0.1/"},
			{"http://127.0.0.1.:8080/", "http://127.0.0.1:8080/"},
			{"http://[2001:DB8:0:0::1]:80/", "http://[2001:db8::1]/"},
		}},
		{"default ports go and others stay", [][2]string{
			{"http://example.com:80/", "http://example.com/"},
			{"https://example.com:443/", "https://example.com/"},
			{"https://example.com:80/", "https://example.com:80/"},
			{"https://example.com:/", "https://example.com/"},
			{"https://example.com:0008080/", "https://example.com:8080/"},
		}},
		{"userinfo and fragments go", [][2]string{
			{"https://me:secret@example.com/a", "https://example.com/a"},
			{"https://a@b@example.com/a", "https://example.com/a"},
			{"https://example.com/a#b?c", "https://example.com/a"},
			{"https://example.com#@evil.example/", "https://example.com/"},
		}},
		{"dot segments are resolved, escaped or not", [][2]string{
			{"http://h.example/a/./b/../c", "http://h.example/a/c"},
			{"http://h.example/../../a/..", "http://h.example/"},
			{"http://h.example/a/%2e%2E/b/%2e", "http://h.example/b/"},
			{"http://h.example/a/.%2e/...", "http://h.example/..."},
			{"http://h.example/.well-known/x", "http://h.example/.well-known/x"},
		}},
		{"slashes are neither invented nor removed", [][2]string{
			{"http://h.example/a", "http://h.example/a"},
			{"http://h.example/a/", "http://h.example/a/"},
			{"http://h.example/a//b///", "http://h.example/a//b///"},
		}},
		{"escapes keep their meaning", [][2]string{
			{"http://h.example/%41%7e%2d%2E%5f", "http://h.example/A~-._"},
			{"http://h.example/a%2fb%3f%23%25", "http://h.example/a%2Fb%3F%23%25"},
			{"http://h.example/(a),%28b%29", "http://h.example/(a),%28b%29"},
			{"http://h.example/ü?ü=%fc", "http://h.example/%C3%BC?%C3%BC=%FC"},
			{"http://h.example/a b\"<>`{}|^[]", "http://h.example/a%20b%22%3C%3E%60%7B%7D%7C%5E%5B%5D"},
			{"http://h.example/?f[x]={a|b}", "http://h.example/?f%5Bx%5D=%7Ba%7Cb%7D"},
			{"http://h.example/it's?it's", "http://h.example/it's?it%27s"},
			{"http://h.example/?a+b=c%2Bd", "http://h.example/?a+b=c%2Bd"},
			{"http://h.example/\xff?\xe9", "http://h.example/%FF?%E9"},
		}},
		{"a lone percent sign stays and makes no escape", [][2]string{
			{"http://h.example/100%", "http://h.example/100%"},
			{"http://h.example/%zz%7A?%", "http://h.example/%zzz?%"},
			{"http://h.example/%%341", "http://h.example/%%341"},
			{"http://h.example/%4%31", "http://h.example/%4%31"},
			{"http://h.example/%%7e", "http://h.example/%~"},
		}},
		{"white space around and line ends within go", [][2]string{
			{" \t\n\x00 https://example.com/a\nb\tc \r\n", "https://example.com/abc"},
			{"ht\ntps://exam\tple.com/", "https://example.com/"},
		}},
		{"queries keep their order and lose tracking", [][2]string{
			{"http://h.example/?", "http://h.example/"},
			{"http://h.example/a?#x", "http://h.example/a"},
			{"http://h.example/?b=1&a=2&b=1", "http://h.example/?b=1&a=2&b=1"},
			{"http://h.example/?&&a&", "http://h.example/?&&a&"},
			{"http://h.example/?utm_source=x", "http://h.example/"},
			{"http://h.example/?a=1&utm_source=x&b=2", "http://h.example/?a=1&b=2"},
			{"http://h.example/?utm_source=x&b=2", "http://h.example/?b=2"},
			{"http://h.example/?a=1&GCLID=x&Utm_Medium", "http://h.example/?a=1"},
			{"http://h.example/?utm%5Fsource=x&a", "http://h.example/?a"},
			{"http://h.example/?a=utm_source&gclidx=1&xgclid=1", "http://h.example/?a=utm_source&gclidx=1&xgclid=1"},
			{"http://h.example/?&fbclid=1&", "http://h.example/?&"},
		}},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, tc := range g.cases {
				u, err := c.Parse(tc[0])
				if err != nil || string(u.Raw) != tc[1] {
					t.Errorf("%q: got %q, %v, want %q", tc[0], u.Raw, err, tc[1])
					continue
				}
				if sum := sha256.Sum256(u.Raw); u.Key != urlkey.Key(sum[:16]) || u.Key.Prefix() != [8]byte(sum[:8]) {
					t.Errorf("%q: key is not that of the canonical form", tc[0])
				}
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	for _, tc := range []struct {
		raw  string
		want error
	}{
		{"mailto:a@b.example", urlkey.ErrScheme},
		{"JavaScript:void(0)", urlkey.ErrScheme},
		{"tel:+4912345", urlkey.ErrScheme},
		{"data:text/html,x", urlkey.ErrScheme},
		{"ftp://h.example/", urlkey.ErrScheme},
		{"file:///etc/passwd", urlkey.ErrScheme},
		{"httpx://h.example/", urlkey.ErrScheme},
		{"", urlkey.ErrInvalid},
		{"/path", urlkey.ErrInvalid},
		{"//h.example/", urlkey.ErrInvalid},
		{"http:", urlkey.ErrInvalid},
		{"http://", urlkey.ErrInvalid},
		{"http://user@/", urlkey.ErrInvalid},
		{"http://:80/", urlkey.ErrInvalid},
		{"http://h.example:port/", urlkey.ErrInvalid},
		{"http://h.example:65536/", urlkey.ErrInvalid},
		{"http://a b/", urlkey.ErrInvalid},
		{"http://a%00b/", urlkey.ErrInvalid},
		{"http://[::1/", urlkey.ErrInvalid},
		{"http://[[::1]]/", urlkey.ErrInvalid},
		{"http://1.2.3.4.5/", urlkey.ErrInvalid},
		{"http://256.1.1.1/", urlkey.ErrInvalid},
		{"http://a..b/", urlkey.ErrInvalid},
		{"http://.a/", urlkey.ErrInvalid},
		{"http://./", urlkey.ErrInvalid},
		{"http://a../", urlkey.ErrInvalid},
		{"http://" + strings.Repeat("ü", 5000) + "/", urlkey.ErrInvalid},
	} {
		u, err := c.Parse(tc.raw)
		if !errors.Is(err, tc.want) {
			t.Errorf("%.60q: got %q, %v, want %v", tc.raw, u.Raw, err, tc.want)
		}
	}
}

func TestHostAndOrigin(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	for _, tc := range []struct{ raw, host, origin string }{
		{"http://www.Example.com/x", "example.com", "http://www.example.com"},
		{"https://example.com:443/", "example.com", "https://example.com"},
		{"https://www.example.com:8080/", "example.com:8080", "https://www.example.com:8080"},
		{"http://example.com./", "example.com", "http://example.com"},
		{"http://www2.example.com/", "www2.example.com", "http://www2.example.com"},
		{"http://www.com/", "www.com", "http://www.com"},
		{"http://www.localhost/", "www.localhost", "http://www.localhost"},
		{"http://127.0.0.1:8080/", "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"http://[::1]:8080/", "[::1]:8080", "http://[::1]:8080"},
		{"https://www.нэб.рф/", "xn--90ax2c.xn--p1ai", "https://www.xn--90ax2c.xn--p1ai"},
	} {
		u, err := c.Parse(tc.raw)
		if err != nil || u.Host != tc.host || u.Origin != tc.origin {
			t.Errorf("%s: got %q %q, %v, want %q %q", tc.raw, u.Host, u.Origin, err, tc.host, tc.origin)
		}
		if u.PathAt != len(u.Origin) || u.Raw[u.PathAt] != '/' || u.SameOrigin {
			t.Errorf("%s: path at %d of %q, same origin %v", tc.raw, u.PathAt, u.Raw, u.SameOrigin)
		}
	}
}

func TestTooLong(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	const origin = "https://h.example"
	fits := origin + "/" + strings.Repeat("a", urlkey.MaxLen-len(origin)-1)
	t.Run("the limit itself is allowed", func(t *testing.T) {
		if u, err := c.Parse(fits); err != nil || len(u.Raw) != urlkey.MaxLen {
			t.Errorf("got %d bytes, %v", len(u.Raw), err)
		}
	})
	t.Run("only the canonical form counts", func(t *testing.T) {
		if _, err := c.Parse(fits + "?utm_source=x#" + strings.Repeat("f", 1<<20)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a longer one comes complete beside the error", func(t *testing.T) {
		u, err := c.Parse(fits + "b")
		if !errors.Is(err, urlkey.ErrTooLong) || string(u.Raw) != fits+"b" || u.Key != urlkey.KeyOf(u.Raw) || u.Host != "h.example" || u.PathAt != len(origin) {
			t.Errorf("got %d bytes, host %q, path at %d, %v", len(u.Raw), u.Host, u.PathAt, err)
		}
		b, err := c.NewBase(origin)
		if err != nil {
			t.Fatal(err)
		}
		r, buf, err := b.Resolve(nil, []byte(fits[len(origin):]+"b"))
		if !errors.Is(err, urlkey.ErrTooLong) || r.Key != u.Key || string(buf) != fits+"b" || !r.SameOrigin {
			t.Errorf("resolved: got %d bytes, %v", len(r.Raw), err)
		}
	})
	t.Run("a base may be longer", func(t *testing.T) {
		b, err := c.NewBase(fits + "bcd")
		if err != nil {
			t.Fatal(err)
		}
		if u, _, err := b.Resolve(nil, []byte("x")); err != nil || string(u.Raw) != origin+"/x" {
			t.Errorf("got %q, %v", u.Raw, err)
		}
	})
}

func TestOptions(t *testing.T) {
	const raw = "http://h.example/?utm_source=a&sid=b&SID2=c&gclid=d"
	for _, tc := range []struct {
		name string
		o    urlkey.Options
		want string
	}{
		{"the default list", urlkey.Options{}, "http://h.example/?sid=b&SID2=c"},
		{"an own list replaces it", urlkey.Options{TrackingParams: []string{"Sid*"}}, "http://h.example/?utm_source=a&gclid=d"},
		{"an empty list keeps all", urlkey.Options{TrackingParams: []string{}}, raw},
		{"keeping tracking keeps all", urlkey.Options{KeepTracking: true}, raw},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u, err := newCanonicalizer(t, tc.o).Parse(raw)
			if err != nil || string(u.Raw) != tc.want {
				t.Errorf("got %q, %v, want %q", u.Raw, err, tc.want)
			}
		})
	}
	t.Run("keeping tracking still drops an empty query", func(t *testing.T) {
		u, err := newCanonicalizer(t, urlkey.Options{KeepTracking: true}).Parse("http://h.example/?")
		if err != nil || string(u.Raw) != "http://h.example/" {
			t.Errorf("got %q, %v", u.Raw, err)
		}
	})
	for _, bad := range []string{"", "*", "a*b", "a=b", "a&b", "ü", "a b", "a%20", strings.Repeat("a", 65)} {
		if _, err := urlkey.New(urlkey.Options{TrackingParams: []string{bad}}); err == nil || !strings.Contains(err.Error(), "tracking parameter") {
			t.Errorf("%q: got %v, want an error naming it", bad, err)
		}
	}
}

// TestHostileLengths would take hours were any of these not linear.
func TestHostileLengths(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	b, err := c.NewBase("https://h.example/a/b")
	if err != nil {
		t.Fatal(err)
	}
	const n = 512 << 10
	for _, piece := range []string{"/a", "../", "./", "%2e%2e/", "//", "@", "&utm_a", "?", "%", "%41", "\t", "ü", "[", ":", ".", "\\", "a=&", ";", "-"} {
		long := strings.Repeat(piece, n/len(piece))
		for _, raw := range []string{"https://h.example/" + long, "https://h.example/?" + long, "https://" + long + "@h.example/", "https://" + long + ".example/", long} {
			u, err := c.Parse(raw)
			if err == nil && len(u.Raw) > urlkey.MaxLen {
				t.Errorf("%.40q: %d bytes are not too long", raw, len(u.Raw))
			}
			r, _, rerr := b.Resolve(nil, []byte(raw))
			if err == nil && (rerr != nil || r.Key != u.Key) {
				t.Errorf("%.40q: parsed but resolved to %.40q, %v", raw, r.Raw, rerr)
			}
		}
	}
}
