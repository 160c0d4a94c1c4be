package scope_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"deepcrawl/crawl/scope"
)

func TestTrap(t *testing.T) {
	for _, tc := range []struct {
		path   string
		depth  int
		reason string // empty: no trap
	}{
		{"/a/b/a/b/a/b", 3, "repeating path /a/b x3"},
		{"/x/a/b/a/b/a/b/a/b/a", 3, "repeating path /a/b x4"},
		{"/a/a/a/a", 3, "repeating path /a x4"},
		{"/a/b/c/a/b/c/a/b/c/", 3, "repeating path /a/b/c x3"},
		{"/news/archive/archive/news/archive/news/news/archive", 6, "repeating path segments"},
		{strings.Repeat("/x", 2) + strings.Repeat("/y/z", 2) + "/1/2", 9, ""},
		{"/a/a/a", 9, ""},
		{"/a/b/a/b", 9, ""},
		{"/a/b/a/b/a/b", 1, ""},
		{"/2019/05/05/05/05", 9, ""},
		{"/tiles/0/0/0/0/0/0/0/0", 9, ""},
		{"/compare/a/vs/b/vs/c/vs/d/vs/e", 9, ""},
		{"/src/main/java/org/example/main/java/Main.java", 9, ""},
		{"//////////////////////////////////////////////a", 9, ""},
		{numbered(32), 9, ""},
		{numbered(33), 0, "more than 32 path segments"},
		{"/list?sort=a&page=2&sort=a&sort=a&sort=a", 5, "repeating parameter sort"},
		{"/list?f=1&f=2&f=3&f=4&f=5&a=&a=&a=&a=&b&b&b&b", 5, ""},
		{"/p/9999", 10_000, ""},
		{"/p/10001", 10_001, "more than 10000 links from a seed"},
	} {
		u := "https://example.com" + tc.path
		reason, is := scope.Trap([]byte(u), len("https://example.com"), tc.depth)
		if reason != tc.reason || is != (tc.reason != "") {
			t.Errorf("%s at depth %d: got %q, %v, want %q", tc.path, tc.depth, reason, is, tc.reason)
		}
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "/s%d", i)
	}
	return b.String()
}

func FuzzTraps(f *testing.F) {
	for _, s := range []string{"/a/b/a/b", "/cal/2031/05/17?x", "/x;jsessionid=0123456789abcdef?y=1", "/(S(lit3py55t21z5v55vlm25s55))/x", "?", "/?sid=1&date=17-05-2031", "/%31/1", "/?&=;=?"} {
		f.Add(s, 5)
	}
	traps := scope.NewTraps(scope.Limits{Now: today})
	f.Fuzz(func(t *testing.T, path string, depth int) {
		u := []byte("https://example.com/" + path)
		reason, is := scope.Trap(u, len("https://example.com"), depth)
		if is != (reason != "") {
			t.Errorf("%q: %q, %v", path, reason, is)
		}
		again, isAgain := traps.Check(u, len("https://example.com"), depth)
		if isAgain != (again != "") || is && !isAgain {
			t.Errorf("%q: Trap says %q, Traps %q, %v", path, reason, again, isAgain)
		}
	})
}

func BenchmarkTraps(b *testing.B) {
	for _, bc := range []struct{ name, url string }{
		{"product", "https://example.com/shop/shoes/product/%d"},
		{"page", "https://example.com/shop/shoes?page=%d&sort=price"},
		{"date", "https://example.com/blog/2019/05/%d"},
		{"echo", "https://example.com/blog/a/blog/p%d"},
		{"session", "https://example.com/shop/shoes?sid=ab12cd34ef56%d"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			traps := scope.NewTraps(scope.Limits{Now: today})
			r := rand.New(rand.NewPCG(1, 1))
			var urls [1024][]byte
			for i := range urls {
				urls[i] = fmt.Appendf(nil, bc.url, r.IntN(1_000_000))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				traps.Check(urls[i%len(urls)], len("https://example.com"), 5)
			}
		})
	}
}
