package urlkey_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"deepcrawl/crawl/urlkey"
)

var fuzzSeeds = []string{
	"https://www.example.com/a/b/c.html?q=1&utm_source=x#f", "HTTP://user:pa@ss@Exämple.com.:0080/../%2e%2E/./a\\b?'[]|^`{}",
	"//h.example/x", "/a//b/", "../..", "?a=1&&gclid=2&", "https:x", "http:/x", "http:\\\\x/y", "mailto:a@b", "http://0x7f.1/", "http://[::FFFF:1.2.3.4]:99/",
	"http://h.example/%%341%4%31%zz%c3%bc", "ht\ttp://h\n.example/\ra", "http://xn--bcher-kva.de/", "http://a_b.-c-.d/", "http://\u00ad/", "http://1.2.3/", "#", "",
	"http://h.example/\xff\xc3?\xe2\x82", "http://B\xfccher.de", "https://h.example:", "http://a.0x/", "http://faß.ΒΌΛΟΣ.com", "http://h/?utm%5fid=1&utm_=&%75tm_x=%zz",
}

func FuzzParse(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s)
	}
	c := newCanonicalizer(f, urlkey.Options{})
	f.Fuzz(func(t *testing.T, raw string) {
		if len(raw) > 8192 || oracleGivesUp(raw) {
			return
		}
		u, err := c.Parse(raw)
		want, wantErr := oracleParse(raw)
		checkAgainst(t, raw, u, err, want, wantErr)
		checkForm(t, c, u, err)
	})
}

func FuzzResolve(f *testing.F) {
	for _, b := range []string{"https://www.example.com/a/b/c.html?q=1", "http://h.example", "http://h.example:8080/%zz/?x"} {
		for _, s := range fuzzSeeds {
			f.Add(b, s)
		}
	}
	c := newCanonicalizer(f, urlkey.Options{})
	f.Fuzz(func(t *testing.T, base, href string) {
		if len(base)+len(href) > 8192 || oracleGivesUp(base) || oracleGivesUp(href) {
			return
		}
		b, err := c.NewBase(base)
		if err != nil {
			return
		}
		u, _, err := b.Resolve(nil, []byte(href))
		want, wantErr := oracleResolve(base, href)
		checkAgainst(t, base+" + "+href, u, err, want, wantErr)
		checkForm(t, c, u, err)
		if err == nil {
			abs, err := c.Parse(string(u.Raw))
			if err != nil || abs.Host != u.Host || abs.Origin != u.Origin || abs.PathAt != u.PathAt || abs.Key != u.Key {
				t.Errorf("%q + %q: got %+v, parsing gives %+v, %v", base, href, u, abs, err)
			}
			if own, _ := c.Parse(base); u.SameOrigin != (own.Origin == u.Origin) {
				t.Errorf("%q + %q: same origin is %v", base, href, u.SameOrigin)
			}
		}
	})
}

// FuzzPlain goes for the fast path: mutated paths of the base's own origin,
// resolved as they are and with a line end inside, which the slow path takes.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"a/b.html?x=1&utm_id=2#f", ".", "../x", "a/.b", "a?b?c/../d", "%41", "//", "a\\b", "a?", "a?gclid=1", "é", "?'"} {
		f.Add(s)
	}
	c := newCanonicalizer(f, urlkey.Options{})
	b, err := c.NewBase("https://www.example.com/x/y")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, prefix := range []string{"/", "https://www.example.com/", "https://www.example.com"} {
			fast, _, fastErr := b.Resolve(nil, []byte(prefix+s))
			slow, _, slowErr := b.Resolve(nil, []byte("\n"+prefix+s))
			if !errors.Is(fastErr, slowErr) || string(fast.Raw) != string(slow.Raw) || fast.SameOrigin != slow.SameOrigin || fast.PathAt != slow.PathAt {
				t.Errorf("%q: got %q %v, the slow path %q %v", prefix+s, fast.Raw, fastErr, slow.Raw, slowErr)
			}
			checkForm(t, c, fast, fastErr)
		}
	})
}

// oracleGivesUp names what the package and the library decide differently on
// purpose: several brackets of one kind around an IPv6 address, which the
// library strips and the URL Standard refuses, and hosts longer than the
// package looks at.
func oracleGivesUp(s string) bool { return manyBrackets.MatchString(s) || len(s) > 4096 }

var manyBrackets = regexp.MustCompile(`\[[^/\\?#]*\[|\][^/\\?#]*\]`)

// checkForm holds what is true of every canonical form.
func checkForm(t *testing.T, c *urlkey.Canonicalizer, u urlkey.URL, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, urlkey.ErrTooLong) {
		return
	}
	form := string(u.Raw)
	if again, againErr := c.Parse(form); !errors.Is(againErr, err) || string(again.Raw) != form {
		t.Errorf("not idempotent: %q becomes %q, %v", form, again.Raw, againErr)
	}
	if u.Key != urlkey.KeyOf(u.Raw) {
		t.Errorf("%q: wrong key", form)
	}
	if form[:u.PathAt] != u.Origin || form[u.PathAt] != '/' || !strings.HasSuffix(u.Origin, u.Host) || u.Host == "" {
		t.Errorf("%q: origin %q, host %q, path at %d", form, u.Origin, u.Host, u.PathAt)
	}
	for i, b := range []byte(form) {
		if i >= u.PathAt && (b <= ' ' || b >= 0x7f || strings.IndexByte("\"#<>[\\]^`{|}", b) >= 0) {
			t.Errorf("%q: byte %q at %d", form, b, i)
		}
	}
}
