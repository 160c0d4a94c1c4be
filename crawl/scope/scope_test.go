package scope_test

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepcrawl/crawl/scope"
)

// seed splits a canonical URL as package urlkey does.
func seed(url string) scope.Seed {
	at := strings.Index(url, "://") + len("://")
	at += strings.IndexByte(url[at:], '/')
	host := url[strings.Index(url, "://")+3 : at]
	if rest, ok := strings.CutPrefix(host, "www."); ok && strings.Contains(rest, ".") {
		host = rest
	}
	return scope.Seed{Host: host, URL: []byte(url), PathAt: at}
}

func compile(t testing.TB, c scope.Config, seeds ...string) *scope.Scope {
	t.Helper()
	var all []scope.Seed
	for _, s := range seeds {
		all = append(all, seed(s))
	}
	s, err := scope.Compile(c, all)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(s *scope.Scope, url string) scope.Verdict {
	u := seed(url)
	return s.Check(u.Host, u.URL, u.PathAt)
}

func TestModes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		mode    scope.Mode
		seeds   []string
		in, out []string
	}{
		{"host is the default and folds www and scheme", "", []string{"https://www.example.com/a/b"},
			[]string{"https://example.com/", "http://www.example.com/x", "https://example.com/a?b"},
			[]string{"https://blog.example.com/", "https://example.com:8080/", "https://example.com.evil.test/", "https://myexample.com/"}},
		{"several seeds add up", scope.ModeHost, []string{"https://a.example/", "https://b.example/"},
			[]string{"https://a.example/x", "https://b.example/x"}, []string{"https://c.example/"}},
		{"a port is a host of its own", scope.ModeHost, []string{"http://127.0.0.1:8080/"},
			[]string{"http://127.0.0.1:8080/x"}, []string{"http://127.0.0.1/", "http://127.0.0.1:9090/", "http://127.0.0.2:8080/"}},
		{"domain is the registrable one", scope.ModeDomain, []string{"https://shop.example.co.uk/"},
			[]string{"https://example.co.uk/", "https://a.b.example.co.uk/", "https://example.co.uk:8443/"},
			[]string{"https://example2.co.uk/", "https://co.uk/", "https://other.co.uk/", "https://notexample.co.uk/"}},
		{"domain knows private suffixes", scope.ModeDomain, []string{"https://me.github.io/"},
			[]string{"https://me.github.io/x", "https://a.me.github.io/"}, []string{"https://you.github.io/", "https://github.io/"}},
		{"a public suffix is a domain of its own", scope.ModeDomain, []string{"https://github.io/"},
			[]string{"https://github.io/x"}, []string{"https://you.github.io/"}},
		{"a suffix below the domain is not part of it", scope.ModeDomain, []string{"https://amazonaws.com/"},
			[]string{"https://docs.amazonaws.com/"}, []string{"https://bucket.s3.amazonaws.com/"}},
		{"domain of an address is the address", scope.ModeDomain, []string{"http://127.0.0.1:8080/"},
			[]string{"http://127.0.0.1/", "http://127.0.0.1:9090/"}, []string{"http://127.1.0.1/", "http://1.127.0.1/", "http://10.0.0.1/"}},
		{"domain of an IPv6 address is the address", scope.ModeDomain, []string{"http://[::1]:8080/"},
			[]string{"http://[::1]/"}, []string{"http://[::2]/"}},
		{"domain of a single label is the label", scope.ModeDomain, []string{"http://localhost:3000/"},
			[]string{"http://localhost/"}, []string{"http://other/"}},
		{"subdomains are the host and what is below", scope.ModeSubdomains, []string{"https://www.blog.example.com/"},
			[]string{"https://blog.example.com/", "https://a.b.blog.example.com/", "http://x.blog.example.com:81/"},
			[]string{"https://example.com/", "https://myblog.example.com/"}},
		{"an address has no subdomains", scope.ModeSubdomains, []string{"http://127.0.0.1:8080/"},
			[]string{"http://127.0.0.1:9090/"}, []string{"http://127.0.0.2/"}},
		{"prefix is the directory of the seed", scope.ModePrefix, []string{"https://example.com/docs/intro.html?x=/y/"},
			[]string{"https://www.example.com/docs/", "https://example.com/docs/a/b"},
			[]string{"https://example.com/", "https://example.com/docs", "https://example.com/docs2/", "https://a.example.com/docs/"}},
		{"prefix of a seed in the root without extension is that name", scope.ModePrefix, []string{"https://example.com/blog"},
			[]string{"https://example.com/blog", "https://example.com/blog/", "https://example.com/blog/a", "https://example.com/blog?page=2"},
			[]string{"https://example.com/", "https://example.com/blogs", "https://example.com/blog.html"}},
		{"prefix of a file in the root is the host", scope.ModePrefix, []string{"https://example.com/index.html"},
			[]string{"https://example.com/", "https://example.com/a/b"}, []string{"https://b.example.com/"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := compile(t, scope.Config{Mode: tc.mode}, tc.seeds...)
			for _, u := range append(tc.seeds, tc.in...) {
				if v := check(s, u); !v.In || v.Rule != "" {
					t.Errorf("%s: got %+v, want in", u, v)
				}
			}
			mode := tc.mode
			if mode == "" {
				mode = scope.ModeHost
			}
			for _, u := range tc.out {
				if v := check(s, u); v.In || v.Rule != "outside "+string(mode) {
					t.Errorf("%s: got %+v, want outside %s", u, v, mode)
				}
			}
		})
	}
}

func TestPatterns(t *testing.T) {
	const home = "https://example.com/"
	for _, tc := range []struct {
		name             string
		include, exclude []string
		url, rule        string
	}{
		{"a plain text is searched anywhere", nil, []string{"/cart"}, home + "shop/cart?x", "excluded by pattern /cart"},
		{"an expression is searched anywhere", nil, []string{`\?sort=`}, home + "a?sort=price", `excluded by pattern \?sort=`},
		{"an anchor is an anchor", nil, []string{`\.pdf$`}, home + "a.pdf?x", ""},
		{"upper and lower case are apart", nil, []string{"/Cart"}, home + "cart", ""},
		{"case can be ignored", nil, []string{"(?i)/Cart"}, home + "cart", "excluded by pattern (?i)/Cart"},
		{"an include has to match", []string{"/blog/"}, nil, home + "shop/", "no include pattern matches"},
		{"one include is enough", []string{"/blog/", "/shop/"}, nil, home + "shop/", ""},
		{"exclude wins over include", []string{"/blog/"}, []string{"/blog/tag/"}, home + "blog/tag/x", "excluded by pattern /blog/tag/"},
		{"a seed needs no include", []string{"/blog/"}, nil, home, ""},
		{"a seed can be excluded", nil, []string{"^https://example.com/$"}, home, "excluded by pattern ^https://example.com/$"},
		{"letters beyond ASCII match their escapes", nil, []string{"/café+/"}, home + "caf%C3%A9%C3%A9/", "excluded by pattern /café+/"},
		{"patterns do not widen the mode", []string{"."}, nil, "https://other.example/", "outside host"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := compile(t, scope.Config{Include: tc.include, Exclude: tc.exclude}, home)
			if v := check(s, tc.url); v.Rule != tc.rule || v.In != (tc.rule == "") {
				t.Errorf("got %+v, want rule %q", v, tc.rule)
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	home := []scope.Seed{seed("https://example.com/")}
	for _, tc := range []struct {
		name  string
		c     scope.Config
		seeds []scope.Seed
		want  []string
	}{
		{"an unknown mode", scope.Config{Mode: "site"}, home, []string{`"site"`, "host, domain, subdomains, prefix"}},
		{"a glob as exclude", scope.Config{Exclude: []string{"*.pdf"}}, home, []string{"--exclude", `"*.pdf"`, `\.pdf$`}},
		{"a broken include", scope.Config{Include: []string{"ok", "("}}, home, []string{"--include", `"("`}},
		{"an empty include", scope.Config{Include: []string{""}}, home, []string{"--include is empty"}},
		{"no seeds", scope.Config{}, nil, []string{"no seeds"}},
		{"a seed without host", scope.Config{}, []scope.Seed{{URL: []byte("/x")}}, []string{`"/x"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := scope.Compile(tc.c, tc.seeds)
			if !errors.Is(err, scope.ErrConfig) {
				t.Fatalf("got %v, want ErrConfig", err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not name %q", err, w)
				}
			}
		})
	}
}

func TestParseMode(t *testing.T) {
	for _, m := range []scope.Mode{scope.ModeHost, scope.ModeDomain, scope.ModeSubdomains, scope.ModePrefix} {
		if got, err := scope.ParseMode(string(m)); err != nil || got != m {
			t.Errorf("%s: got %q, %v", m, got, err)
		}
	}
	if got, err := scope.ParseMode(""); err != nil || got != scope.ModeHost {
		t.Errorf("empty: got %q, %v", got, err)
	}
	if _, err := scope.ParseMode("Host"); !errors.Is(err, scope.ErrConfig) {
		t.Errorf("got %v, want ErrConfig", err)
	}
}

func TestCheckDoesNotAllocate(t *testing.T) {
	for _, m := range []scope.Mode{scope.ModeHost, scope.ModeDomain, scope.ModeSubdomains, scope.ModePrefix} {
		s := compile(t, scope.Config{Mode: m, Include: []string{"/a", "/12"}, Exclude: []string{"/x", "sort="}}, "https://example.com/")
		for _, u := range []string{"https://example.com/", "https://example.com/b/12", "https://example.com/b", "https://a.b.example.co.uk/x", "https://a.example.com:8080/x", "http://127.0.0.1/"} {
			in := seed(u)
			if n := testing.AllocsPerRun(100, func() { s.Check(in.Host, in.URL, in.PathAt) }); n != 0 {
				t.Errorf("%s %s: %v allocations", m, u, n)
			}
		}
	}
}

// TestPublicSuffixes holds ModeDomain against the cases of publicsuffix.org.
// They stand outside of the repository.
func TestPublicSuffixes(t *testing.T) {
	dir := os.Getenv("DEEPCRAWL_CORPORA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpora")
	}
	f, err := os.Open(filepath.Join(dir, "publicsuffix", "tests.txt"))
	if err != nil {
		if strings.Contains(os.Getenv("DEEPCRAWL_TEST_REQUIRE"), "corpora") {
			t.Fatalf("corpus is required: %v", err)
		}
		t.Skip("no corpus publicsuffix/tests.txt; set DEEPCRAWL_CORPORA to the folder of corpora")
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 || strings.HasPrefix(fields[0], "//") {
			continue
		}
		name, domain := fields[0], fields[1]
		if name == "null" || name[0] == '.' || strings.ToLower(name) != name || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
			continue // not a canonical host
		}
		n++
		if domain == "null" {
			domain = name
		}
		s := compile(t, scope.Config{Mode: scope.ModeDomain}, "http://"+name+"/")
		if !check(s, "http://"+domain+"/").In {
			t.Errorf("%s: its domain %s is out", name, domain)
		}
		if domain == name {
			if check(s, "http://other."+name+"/").In && fields[1] == "null" {
				t.Errorf("%s is a public suffix, but a name below it is in", name)
			}
		} else if !check(s, "http://other."+domain+"/").In {
			t.Errorf("%s: other.%s is out", name, domain)
		}
		if _, parent, ok := strings.Cut(domain, "."); ok && check(s, "http://deepcrawl-other."+parent+"/").In {
			t.Errorf("%s: a neighbour of %s is in", name, domain)
		}
	}
	if n < 30 {
		t.Errorf("only %d cases", n)
	}
}
