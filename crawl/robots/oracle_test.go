package robots_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/jimsmart/grobotstxt"
	"pgregory.net/rapid"

	"deepcrawl/crawl/robots"
)

// The oracle is grobotstxt, a translation of Google's parser. What it does
// otherwise, and so is kept out of the comparison:
//
//   - it takes digits and most punctuation for part of a product token, where
//     RFC 9309 section 2.2.1 and Google's own parser stop ("bot2" names "bot");
//   - it trims Unicode white space, Google and this package only ASCII's;
//   - it does not decode unreserved octets (see the package comment; tested apart);
//   - its upper-casing of "%2f" breaks the digit (it clears a bit of every character), so
//     encodings in lower case are only compared where both digits are letters;
//   - it has no rule for /robots.txt and does not know "desallow" and "useg-agent";
//   - it normalises the URL with net/url first: only URLs that this leaves alone
//     are compared.
var otherwise = regexp.MustCompile(`(?im)agent[^\r\n]*bot[/!]?[0-9~$%'*+.^\x60|&]|desallow|useg-agent|[\x80-\xff]`)

func agree(t interface{ Fatalf(string, ...any) }, body, path string) {
	const agent = "bot"
	uri := "http://h.example" + path
	u, err := url.Parse(uri)
	if err != nil || u.String() != uri || strings.Contains(path, "#") || path == "/robots.txt" {
		return
	}
	want := grobotstxt.AgentAllowed(body, agent, uri)
	got, line := robots.Parse([]byte(body)).Group(agent).Allowed(path)
	if got != want {
		t.Fatalf("%q for %q: got %v by %q, the oracle says %v", body, path, got, line, want)
	}
}

func TestAgreesWithTheOracleOnRandomFiles(t *testing.T) {
	key := rapid.SampledFrom([]string{"User-agent", "user-agent ", "USERAGENT", "user agent", "Allow", "allow", "Disallow",
		"disallow", "dissalow", "disalow", "Disallowed", "Sitemap", "Crawl-delay", "Foo", " Disallow\t", "site-map", "allow-x"})
	agent := rapid.SampledFrom([]string{"*", "bot", "BOT", "Bot/1.0", "bot x", "other", "* x", "*x", "bot-x", "", "/", "bot, other"})
	pattern := rapid.StringOfN(rapid.SampledFrom([]rune("/ab*$.?=&")), 0, 12, -1)
	suffix := rapid.SampledFrom([]string{"", "index.html", "/index.htm", "%2F", "%ab", "*", "$", " ", "\u00e9", "%zz", "%"})
	sep := rapid.SampledFrom([]string{": ", ":", " ", "", " : ", "\t", "::"})
	eol := rapid.SampledFrom([]string{"\n", "\r", "\r\n", "\n\n", " # note\n", "\x00\n"})
	line := rapid.Custom(func(t *rapid.T) string {
		k := key.Draw(t, "key")
		v := pattern.Draw(t, "pattern") + suffix.Draw(t, "suffix")
		if strings.Contains(strings.ToLower(k), "agent") {
			v = agent.Draw(t, "agent")
		} else if rapid.IntRange(0, 9).Draw(t, "slash") > 0 {
			v = "/" + v
		}
		return k + sep.Draw(t, "sep") + v + eol.Draw(t, "eol")
	})
	file := rapid.SliceOfN(line, 0, 14)
	path := rapid.StringOfN(rapid.SampledFrom([]rune("/ab$*.?=&")), 0, 14, -1)
	tail := rapid.SampledFrom([]string{"", "index.html", "/index.html", "%2F", "%C3%A9", "%AB", "%2F/x"})
	rapid.Check(t, func(t *rapid.T) {
		lines := file.Draw(t, "lines")
		head := rapid.SampledFrom([]string{"", "user-agent: *\n", "user-agent: bot\n", "\uFEFF"}).Draw(t, "head")
		agree(t, head+strings.Join(lines, ""), "/"+path.Draw(t, "path")+tail.Draw(t, "tail"))
	})
}

func FuzzAgreesWithTheOracle(f *testing.F) {
	f.Add("user-agent: bot\ndisallow: /a*b$\nallow: /a/index.html", "/a/")
	f.Add("user-agent: *\ndisallow: /\nuser-agent: bot\nallow /x", "/x?y=1")
	f.Add("useragent:bot\r\rdisallow:\x00/", "/\x00")
	f.Fuzz(func(t *testing.T, body, path string) {
		if otherwise.MatchString(body) || strings.Contains(body, "%") || strings.Contains(path, "%") || !strings.HasPrefix(path, "/") {
			return
		}
		if len(body) > robots.MaxBytes || len(path) > 4096 {
			return
		}
		agree(t, body, path)
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("user-agent: *\ndisallow: /a\ncrawl-delay: 1.5\nsitemap: /s.xml"), "/a")
	f.Add([]byte("\xef\xbb\xbfuser-agent bot\rallow: /%e9*\xff$"), "/%C3%A9")
	f.Add([]byte("\xff\xfeu\x00s\x00"), "/")
	f.Fuzz(func(t *testing.T, body []byte, path string) {
		file := robots.Parse(body)
		for _, s := range file.Sitemaps() {
			if s == "" {
				t.Error("an empty sitemap line")
			}
		}
		for _, product := range []string{"bot", "", "Bot/2.0"} {
			g := file.Group(product)
			if d, ok := g.CrawlDelay(); d < 0 || d > 0 && !ok {
				t.Errorf("crawl-delay %v %v", d, ok)
			}
			ok, line := g.Allowed(path)
			if line == "" && !ok {
				t.Error("refused without a line")
			}
			if line != "" && strings.HasPrefix(line, "Allow: ") != ok {
				t.Errorf("%v by %q", ok, line)
			}
			if again, _ := g.Allowed(path); again != ok {
				t.Error("two answers to one question")
			}
			if ok, _ := g.Allowed("/robots.txt"); !ok {
				t.Error("/robots.txt is refused")
			}
		}
	})
}
