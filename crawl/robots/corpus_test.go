package robots_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deepcrawl/crawl/robots"
)

// corpus returns a folder of the shared test data, or skips with the variable to set.
func corpus(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("DEEPCRAWL_CORPORA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "corpora")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		if strings.Contains(os.Getenv("DEEPCRAWL_TEST_REQUIRE"), "corpora") {
			t.Fatalf("corpora are required: %v", err)
		}
		t.Skipf("no corpora at %s; set DEEPCRAWL_CORPORA", root)
	}
	return dir
}

// pathQuery cuts a URL as Google's GetPathParamsQuery does: no scheme, authority
// or fragment, always beginning with "/".
func pathQuery(u string) string {
	u, _, _ = strings.Cut(u, "#")
	if _, rest, ok := strings.Cut(u, "://"); ok && !strings.ContainsAny(u[:len(u)-len(rest)-3], "/?;") {
		u = rest
	} else {
		u = strings.TrimPrefix(u, "//")
	}
	i := strings.IndexAny(u, "/?;")
	switch {
	case i < 0:
		return "/"
	case u[i] != '/':
		return "/" + u[i:]
	}
	return u[i:]
}

type googleCase struct {
	Test       string
	Robots     string
	Base64     []byte `json:"robots_base64"`
	Agent, URL string
	Allowed    bool
	GoogleOnly bool `json:"google_only"`
}

func TestGoogleExpectations(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(corpus(t, "robots-google"), "google_robots_cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases struct {
		Allowed []googleCase
		Paths   []struct{ URL, Path string } `json:"get_path_params_query"`
		Counts  []struct {
			Test, Robots, Sitemap string
			Base64                []byte `json:"robots_base64"`
			Valid                 *int   `json:"valid_directives"`
		} `json:"parse_counts"`
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases.Paths {
		if got := pathQuery(c.URL); got != c.Path {
			t.Errorf("the test's own path of %q: got %q, want %q", c.URL, got, c.Path)
		}
	}
	total, met := map[bool]int{}, map[bool]int{}
	for _, c := range cases.Allowed {
		body := []byte(c.Robots)
		if c.Base64 != nil {
			body = c.Base64
		}
		total[c.GoogleOnly]++
		ok, line := robots.Parse(body).Group(c.Agent).Allowed(pathQuery(c.URL))
		if ok != c.Allowed {
			t.Errorf("%s: %q, agent %q, %s: got %v by %q", c.Test, body[:min(len(body), 300)], c.Agent, c.URL[:min(len(c.URL), 100)], ok, line)
			continue
		}
		met[c.GoogleOnly]++
	}
	t.Logf("RFC 9309: %d of %d; Google only: %d of %d", met[false], total[false], met[true], total[true])
	if total[false] != 72 || total[true] != 73 {
		t.Errorf("the corpus has %d and %d cases, want 72 and 73", total[false], total[true])
	}
	for _, c := range cases.Counts {
		body := []byte(c.Robots)
		if c.Base64 != nil {
			body = c.Base64
		}
		f := robots.Parse(body)
		if c.Sitemap != "" {
			if got := f.Sitemaps(); len(got) != 1 || got[0] != c.Sitemap {
				t.Errorf("%s: sitemaps %q, want %q", c.Test, got, c.Sitemap)
			}
		}
		// The rule count is not part of the API; whether the user-agent line was
		// read shows in the rules that follow.
		if c.Test == "ID_UTF8ByteOrderMarkIsSkipped" && *c.Valid == 2 {
			withRule := append(append([]byte{}, body...), "Disallow: /no\n"...)
			if ok, _ := robots.Parse(withRule).Group("foo").Allowed("/no"); ok {
				t.Errorf("%s: %q: the first line was not understood", c.Test, body)
			}
		}
	}
}

// TestCrawlerCommonsExpectations holds the expectations of crawler-commons'
// SimpleRobotRulesParserTest for the files of its test folder, and for those that
// were added later what their own comments say.
func TestCrawlerCommonsExpectations(t *testing.T) {
	dir := corpus(t, "robots-crawler-commons")
	const unset = time.Duration(-1)
	type check struct {
		agent    string
		allowed  []string
		refused  []string
		delay    time.Duration // unset: none asked for; 0: not looked at
		sitemaps []string
	}
	tests := map[string][]check{
		"astore.amazon.com-robots.txt": {{agent: "any", delay: 5 * time.Second, allowed: []string{"/"}}},
		"crawl-delay-group-merging.txt": {
			{agent: "mybot", delay: 10 * time.Second, allowed: []string{"/", "/login/"}, refused: []string{"/private/"}},
			{agent: "yourbot", delay: unset, allowed: []string{"/"}, refused: []string{"/private/", "/login/"}},
			{agent: "other", delay: 30 * time.Second, allowed: []string{"/private/"}},
		},
		"directive-typos-robots.txt": {
			{agent: "bot1", refused: []string{"/desallow/", "/dissalow/"}},
			{agent: "bot2", refused: []string{"/useragent/"}},
			{agent: "bot3", refused: []string{"/useg-agent/"}},
			{agent: "bot4", refused: []string{"/useragent-no-colon/"}},
		},
		"dos-line-endings.txt":         {{agent: "bot1", delay: time.Second, allowed: []string{"/"}}},
		"extended-standard-robots.txt": {{agent: "foobot", allowed: []string{"/"}, delay: unset}},
		"extension-robots.txt": {
			{agent: "mybot", allowed: []string{"/", "/secret/"}, refused: []string{"/private/x"}, sitemaps: []string{"/sitemap.xml"}},
			{agent: "otherbot", allowed: []string{"/private/x"}, refused: []string{"/admin/"}},
			{agent: "any", allowed: []string{"/admin/"}},
		},
		"extensions-group-merging.txt": {
			{agent: "mybot", allowed: []string{"/", "/llms.txt"}, refused: []string{"/private/", "/login/"}},
			{agent: "yourbot", refused: []string{"/private/", "/login/"}},
			{agent: "other", allowed: []string{"/llms.txt"}, refused: []string{"/"}},
		},
		"format-errors-robots.txt": {
			{agent: "bot1", refused: []string{"/whitespace-before-colon/", "/no-colon/"}},
			{agent: "bot2", refused: []string{"/no-colon-useragent/"}},
			{agent: "bot3", allowed: []string{"/whitespace-before-colon/"}, refused: []string{"/other"}, sitemaps: []string{"/sitemap.xml"}},
		},
		"malformed-path.txt": {{agent: "bot1", allowed: []string{"/wiki/"}, refused: []string{
			"/wiki/Wikipedia_talk:Mediation_Committee/", "/wiki/Wikipedia_talk%3Mediation_Committee/"}}},
		"many-user-agents.txt": {
			{agent: "wget", refused: []string{"/"}},
			{agent: "mysuperlongbotnamethatmatchesnothing", allowed: []string{"/"}, refused: []string{"/bot-trap/"}},
		},
		"merge-rules.txt": {
			{agent: "wget", allowed: []string{"/foo/bar/bar.txt", "/chk/bar/bar.txt"}, refused: []string{"/tmp/bar/bar.txt"}},
			{agent: "other", refused: []string{"/foo/bar/bar.txt"}},
		},
		"precedence-of-rules.txt": {
			// crawler-commons also expects wget to be allowed "/". The file says
			// "Allow: /" and "Disallow: /*": the longer pattern wins in RFC 9309
			// section 2.2.2 (most octets) and in Google's parser, see the next test.
			{agent: "wget", allowed: []string{"/foo/bar"}, refused: []string{"/bar/foo"}},
			{agent: "testy", allowed: []string{"/", "/foo/bar"}, refused: []string{"/foo/blue", "/foo/", "/foo/tar"}},
		},
		"relative-sitemap-robots.txt": {{agent: "bot1", sitemaps: []string{"/sitemap.xml"}, refused: []string{"/cache/"}}},
		"rfc9309-example-longest-match-robots.txt": {
			{agent: "foobot", allowed: []string{"/example/page/x"}, refused: []string{"/example/page/disallowed.gif"}}},
		"rfc9309-example-rule-group-merging.txt": {
			{agent: "examplebot", refused: []string{"/foo", "/bar", "/baz"}},
			{agent: "bazbot", allowed: []string{"/foo"}, refused: []string{"/baz"}},
			{agent: "other", allowed: []string{"/baz"}, refused: []string{"/foo"}},
		},
		"rfc9309-example-simple-robots.txt": {
			{agent: "other", allowed: []string{"/publications/", "/x.gif?y"}, refused: []string{"/x.gif", "/example/"}},
			{agent: "foobot", allowed: []string{"/example/page.html", "/example/allowed.gif"}, refused: []string{"/", "/x.gif"}},
			{agent: "barbot", allowed: []string{"/x.gif"}, refused: []string{"/example/page.html"}},
			{agent: "bazbot", refused: []string{"/example/page.html"}},
			{agent: "quxbot", allowed: []string{"/", "/example/page.html", "/x.gif"}},
		},
		"robots-with-utf8-bom.txt": {{agent: "foobot", refused: []string{"/profile", "/login.aspx"},
			sitemaps: []string{"http://www.newsweek.com/sitemap_index.xml"}}},
		"robots-with-utf16le-bom.txt": {{agent: "foobot", refused: []string{"/profile", "/login.aspx"},
			sitemaps: []string{"http://www.newsweek.com/sitemap_index.xml"}}},
		"robots-with-utf16be-bom.txt": {{agent: "foobot", refused: []string{"/profile", "/login.aspx"},
			sitemaps: []string{"http://www.newsweek.com/sitemap_index.xml"}}},
		"sitemap-robots-dedup.txt": {{agent: "bot1", allowed: []string{"/"}, sitemaps: []string{"http://example.org/sitemap.xml"}}},
		"sitemap-robots.txt": {{agent: "bot1", sitemaps: []string{"http://domain.com/sitemap.xml",
			"http://domain.com/dir/my-sitemap.xml", "http://domain.com/dir/MixedCased-sitemap.xml"}}},
		"twitter.com-robots.txt": {
			{agent: "Slurp", delay: time.Second, allowed: []string{"/x"}, refused: []string{"/x?y", "/a/with_friends"}},
			{agent: "msnbot", delay: 10 * time.Second},
			{agent: "other", delay: unset, refused: []string{"/?"}},
		},
		"wildcards.txt": {{agent: "Any-darn-crawler", allowed: []string{"/wishlist/universal/page"},
			refused: []string{"/wishlist/bogus", "/anydirectoryhere/gcrnsts"}}},
		"www.flot.com-robots.txt": {{agent: "foobot", refused: []string{"/img/"}, sitemaps: []string{"http://flot.com/sitemap_index.xml"}}},
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		base := filepath.Base(name)
		if base == "SOURCE.txt" {
			continue
		}
		checks, ok := tests[base]
		if !ok {
			t.Errorf("%s: no expectations", base)
			continue
		}
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f := robots.Parse(body)
		for _, c := range checks {
			t.Run(base+" for "+c.agent, func(t *testing.T) {
				g := f.Group(c.agent)
				for _, p := range c.allowed {
					if ok, line := g.Allowed(p); !ok {
						t.Errorf("%s is refused by %q", p, line)
					}
				}
				for _, p := range c.refused {
					if ok, line := g.Allowed(p); ok {
						t.Errorf("%s is allowed by %q", p, line)
					}
				}
				d, asked := g.CrawlDelay()
				if c.delay == unset && asked || c.delay > 0 && d != c.delay {
					t.Errorf("crawl-delay %v %v, want %v", d, asked, c.delay)
				}
				if got := f.Sitemaps(); c.sitemaps != nil && strings.Join(got, " ") != strings.Join(c.sitemaps, " ") {
					t.Errorf("sitemaps %q, want %q", got, c.sitemaps)
				}
			})
		}
	}
}
