package urlkey_test

import (
	"bytes"
	"errors"
	"testing"

	"deepcrawl/crawl/urlkey"
)

func TestResolve(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	const base = "https://u:p@www.example.com/a/b/c.html?q=1&utm_source=x#f"
	b, err := c.NewBase(base)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		href, want string
		same       bool
	}{
		{"", "https://www.example.com/a/b/c.html?q=1", true},
		{"#top", "https://www.example.com/a/b/c.html?q=1", true},
		{"?", "https://www.example.com/a/b/c.html", true},
		{"?p=2", "https://www.example.com/a/b/c.html?p=2", true},
		{"?utm_source=y", "https://www.example.com/a/b/c.html", true},
		{"d", "https://www.example.com/a/b/d", true},
		{"./", "https://www.example.com/a/b/", true},
		{"..", "https://www.example.com/a/", true},
		{"../../../x", "https://www.example.com/x", true},
		{"/", "https://www.example.com/", true},
		{"/x?y#z", "https://www.example.com/x?y", true},
		{"/x?utm_campaign=1#z", "https://www.example.com/x", true},
		{"/./x", "https://www.example.com/x", true},
		{"/%7Ex", "https://www.example.com/~x", true},
		{`\x\y`, "https://www.example.com/x/y", true},
		{" /x \n", "https://www.example.com/x", true},
		{"/a\nb", "https://www.example.com/ab", true},
		{"https:x", "https://www.example.com/a/b/x", true},
		{"https:/x", "https://www.example.com/x", true},
		{"https://www.example.com", "https://www.example.com/", true},
		{"https://www.example.com?a", "https://www.example.com/?a", true},
		{"https://www.example.com//x", "https://www.example.com//x", true},
		{"https://www.example.com/x", "https://www.example.com/x", true},
		{"https://www.example.com:443/x", "https://www.example.com/x", true},
		{"//me@www.example.com/x", "https://www.example.com/x", true},
		{"//www.example.com/x", "https://www.example.com/x", true},
		{`/\www.example.com/x`, "https://www.example.com/x", true},
		{`https:\\\www.example.com/x`, "https://www.example.com/x", true},
		{"https://www.example.com.evil.example/x", "https://www.example.com.evil.example/x", false},
		{"https://www.example.com:8443/x", "https://www.example.com:8443/x", false},
		{"https://www.example.com@evil.example/x", "https://evil.example/x", false},
		{"//example.com/x", "https://example.com/x", false},
		{"http://www.example.com/x", "http://www.example.com/x", false},
		{"http:www.example.com/x", "http://www.example.com/x", false},
	} {
		buf := []byte("before ")
		u, out, err := b.Resolve(buf, []byte(tc.href))
		if err != nil || string(u.Raw) != tc.want || u.SameOrigin != tc.same {
			t.Errorf("%q: got %q same origin %v, %v, want %q %v", tc.href, u.Raw, u.SameOrigin, err, tc.want, tc.same)
			continue
		}
		if string(out) != "before "+tc.want {
			t.Errorf("%q: buffer is %q", tc.href, out)
		}
		abs, err := c.Parse(tc.want)
		if err != nil || abs.Key != u.Key || abs.Host != u.Host || abs.Origin != u.Origin || abs.PathAt != u.PathAt {
			t.Errorf("%q: got %+v, but parsing gives %+v, %v", tc.href, u, abs, err)
		}
	}
	for _, tc := range []struct {
		href string
		want error
	}{
		{"mailto:x@example.com", urlkey.ErrScheme},
		{" javascript:void(0)", urlkey.ErrScheme},
		{"java\nscript:void(0)", urlkey.ErrScheme},
		{"https://", urlkey.ErrInvalid},
		{"//", urlkey.ErrInvalid},
		{"//[/", urlkey.ErrInvalid},
		{"http:", urlkey.ErrInvalid},
	} {
		buf := []byte("before")
		if u, out, err := b.Resolve(buf, []byte(tc.href)); !errors.Is(err, tc.want) || !bytes.Equal(out, buf) || u.Raw != nil {
			t.Errorf("%q: got %q, buffer %q, %v, want %v", tc.href, u.Raw, out, err, tc.want)
		}
	}
}

func TestReset(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	b, err := c.NewBase("http://a.example/x/y")
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(want string) {
		t.Helper()
		u, _, err := b.Resolve(nil, []byte("z"))
		if err != nil || string(u.Raw) != want || !u.SameOrigin {
			t.Errorf("got %q, %v, want %q", u.Raw, err, want)
		}
	}
	resolve("http://a.example/x/z")
	if err := b.Reset("javascript:void(0)"); !errors.Is(err, urlkey.ErrScheme) {
		t.Errorf("got %v, want ErrScheme", err)
	}
	resolve("http://a.example/x/z")
	if err := b.Reset("https://b.example"); err != nil {
		t.Fatal(err)
	}
	resolve("https://b.example/z")
}

func TestResolveDoesNotAllocate(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	b, err := c.NewBase("https://www.example.com/a/b.html?q")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 4096)
	for _, href := range []string{
		"/path/page.html", "https://www.example.com/path", "https://other.example/path", "../x y?b=1&utm_source=2",
		"//cdn.example/%7efoo", "?page=2", "#", "/a\nb", "mailto:x@y", "http://user@host.example:81/",
	} {
		h := []byte(href)
		run := func() { _, _, _ = b.Resolve(buf, h) }
		run() // remembers the origin
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%q: %v allocations", href, n)
		}
	}
}
