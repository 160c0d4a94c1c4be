package extract_test

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"deepcrawl/crawl/extract"
)

func TestLinkHeader(t *testing.T) {
	type l = extract.HeaderLink
	for name, c := range map[string]struct {
		header string
		want   []l
	}{
		"quoted and bare parameters":         {`<https://a.example/>; rel="canonical", </de>;rel=alternate;hreflang=de`, []l{{Href: "https://a.example/", Rel: "canonical"}, {Href: "/de", Rel: "alternate", Hreflang: "de"}}},
		"commas and semicolons in the URL":   {`</a,b;c>; rel=next`, []l{{Href: "/a,b;c", Rel: "next"}}},
		"commas in quoted strings":           {`</x>; title="a, <b>; rel=prev"; rel=next, </y>; rel=prev`, []l{{Href: "/x", Rel: "next"}, {Href: "/y", Rel: "prev"}}},
		"backslash escapes":                  {`</x>; rel="ne\xt"`, []l{{Href: "/x", Rel: "next"}}},
		"the first rel counts":               {`</x>; rel=next; rel=prev`, []l{{Href: "/x", Rel: "next"}}},
		"names in any case, spaces around =": {`</x> ; REL = "next" ;HrefLang= en`, []l{{Href: "/x", Rel: "next", Hreflang: "en"}}},
		"an anchor is noted":                 {`</x>; rel=canonical; anchor="/other"`, []l{{Href: "/x", Rel: "canonical", Anchored: true}}},
		"empty elements and parameters":      {`, ,</x>;;rel=next;, `, []l{{Href: "/x", Rel: "next"}}},
		"rubbish is skipped to the comma":    {`foo; rel=next, </x>; rel=prev`, []l{{Href: "/x", Rel: "prev"}}},
		"rubbish after a link":               {`</x>; rel=prev rubbish=1, </y>; rel=next`, []l{{Href: "/x", Rel: "prev rubbish=1"}, {Href: "/y", Rel: "next"}}},
		"an open bracket ends the field":     {`</x; rel=next`, nil},
		"an open quote runs to the end":      {`</x>; rel="next`, []l{{Href: "/x", Rel: "next"}}},
		"nothing":                            {``, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := extract.HeaderLinks(c.header); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestHeadersBecomeLinksAndFacts(t *testing.T) {
	p := page(t, extract.Input{Body: []byte("<link rel=canonical href=/doc><link rel=next href=/n2>"), Header: http.Header{
		"Link": {`<https://a.example/c>; rel="canonical"`, `</fr>; rel=alternate; hreflang=fr, </n>; rel="next nofollow", </p>; rel=prev, </f>; rel=alternate; type="application/rss+xml", </other>; rel=canonical; anchor="#x"`},
	}})
	f := p.Facts
	if f.HeaderCanonical != "https://a.example/c" || f.Canonical != "/doc" || f.CanonicalCount != 1 || f.Next != "/n" || f.Prev != "/p" {
		t.Errorf("facts: %+v", f)
	}
	if len(f.Hreflang) != 1 || f.Hreflang[0] != (extract.HreflangLink{Lang: "fr", Href: "/fr"}) {
		t.Errorf("hreflang: %+v", f.Hreflang)
	}
	var kinds []string
	for _, l := range p.Links {
		kinds = append(kinds, l.Kind.String()+" "+string(l.Href))
		if l.FromHeader != slices.Contains([]string{"https://a.example/c", "/fr", "/n", "/p", "/f"}, string(l.Href)) {
			t.Errorf("FromHeader of %s is %v", l.Href, l.FromHeader)
		}
	}
	if got := strings.Join(kinds, ", "); got != "canonical https://a.example/c, alternate /fr, next /n, prev /p, feed /f, canonical /doc, next /n2" {
		t.Errorf("links: %s", got)
	}
}

func TestRobotsDirectives(t *testing.T) {
	for name, c := range map[string]struct {
		body    string
		headers []string
		robots  string
		noindex bool
		follow  bool // links may be followed
	}{
		"nothing said":                         {"", nil, "", false, true},
		"all and index say nothing":            {"<meta name=robots content='index, follow, ALL'>", nil, "index, follow, all", false, true},
		"none is both":                         {"<meta name=ROBOTS content=None>", nil, "none", true, false},
		"several metas add up":                 {"<meta name=robots content=noindex><meta name=robots content='nofollow, noindex'>", nil, "noindex, nofollow", true, false},
		"our product's meta adds up":           {"<meta name=robots content=nofollow><meta name=DeepcrawlCluster content=noindex>", nil, "nofollow, noindex", true, false},
		"another bot's meta is not ours":       {"<meta name=googlebot content=noindex>", nil, "", false, true},
		"header for all":                       {"", []string{"noindex"}, "noindex", true, true},
		"several header lines":                 {"", []string{"noarchive", "nofollow"}, "noarchive, nofollow", false, false},
		"header for another bot":               {"", []string{"googlebot: noindex, nofollow"}, "", false, true},
		"header for us":                        {"", []string{"DeepcrawlCluster: noindex"}, "noindex", true, true},
		"one line for several bots":            {"", []string{"nosnippet, otherbot: noindex, deepcrawlcluster: nofollow, noarchive"}, "nosnippet, nofollow, noarchive", false, false},
		"values with a colon name no bot":      {"", []string{"max-snippet: 20, max-image-preview:large, noindex"}, "max-snippet: 20, max-image-preview:large, noindex", true, true},
		"a date with a comma":                  {"", []string{"unavailable_after: Sunday, 06-Nov-94 08:49:37 GMT, noindex"}, "unavailable_after: sunday, 06-nov-94 08:49:37 gmt, noindex", true, true},
		"header and meta together":             {"<meta name=robots content=nofollow>", []string{"noindex"}, "noindex, nofollow", true, false},
		"a meta in noscript or template isn't": {"<noscript><meta name=robots content=noindex></noscript><template><meta name=robots content=noindex></template>", nil, "", false, true},
		"part of a word is not it":             {"<meta name=robots content='noindexing, xnofollow'>", nil, "noindexing, xnofollow", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := page(t, extract.Input{Body: []byte(c.body), Header: http.Header{"X-Robots-Tag": c.headers}})
			f := p.Facts
			if f.Robots != c.robots || f.NoIndex != c.noindex || f.NoFollow == c.follow {
				t.Errorf("got %q noindex %v nofollow %v, want %q %v %v", f.Robots, f.NoIndex, f.NoFollow, c.robots, c.noindex, !c.follow)
			}
		})
	}
	t.Run("other bots' rules are kept by name", func(t *testing.T) {
		p := page(t, extract.Input{Body: []byte("<meta name=Googlebot content='NoIndex,noindex'>"), Header: http.Header{"X-Robots-Tag": {"bingbot: nofollow"}}})
		want := []extract.BotRobots{{Bot: "bingbot", Directives: "nofollow"}, {Bot: "googlebot", Directives: "noindex"}}
		if !reflect.DeepEqual(p.Facts.BotRobots, want) {
			t.Errorf("got %+v", p.Facts.BotRobots)
		}
	})
	t.Run("the header's part is told apart", func(t *testing.T) {
		p := page(t, extract.Input{Body: []byte("<meta name=robots content=nofollow>"), Header: http.Header{"X-Robots-Tag": {"noindex"}}})
		if p.Facts.RobotsHeader != "noindex" {
			t.Errorf("got %q", p.Facts.RobotsHeader)
		}
	})
	t.Run("dates of unavailable_after", func(t *testing.T) {
		const want = 784111777 // 1994-11-06 08:49:37 UTC
		for _, date := range []string{
			"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "06 Nov 1994 08:49:37 GMT", "06 Nov 1994 03:49:37 EST",
			"1994-11-06T08:49:37Z", "1994-11-06T09:49:37+01:00", "1994-11-06 08:49:37", "06-Nov-1994 00:49:37 PST",
		} {
			p := page(t, extract.Input{Body: []byte("<meta name=robots content='unavailable_after: " + date + "'>")})
			if got := p.Facts.UnavailableAfter; got != want {
				t.Errorf("%s: got %d, want %d", date, got, want)
			}
		}
		p := page(t, extract.Input{Body: []byte("<meta name=robots content='unavailable_after: soon'>")})
		if got := p.Facts.UnavailableAfter; got != 0 {
			t.Errorf("not a date: got %d", got)
		}
	})
}

func TestRefresh(t *testing.T) {
	for value, want := range map[string]struct {
		delay  int
		target string
		ok     bool
	}{
		"0; url=/x":            {0, "/x", true},
		"5":                    {5, "", true},
		" 5 ":                  {5, "", true},
		"5;":                   {5, "", true},
		"5.9;URL='/x y' ":      {5, "/x y", true},
		"5, url = \"/x\"junk":  {5, "/x", true},
		"5 url=/x":             {5, "/x", true},
		"5;/x":                 {5, "/x", true},
		"5;u":                  {5, "u", true},
		"5;ur/x":               {5, "ur/x", true},
		"5;url":                {5, "url", true},
		"5;url/x":              {5, "url/x", true},
		"5;url='/x":            {5, "/x", true},
		"5;'/x'y":              {5, "/x", true},
		"5;url=":               {5, "", true},
		".5;url=/x":            {0, "/x", true},
		";url=/x":              {0, "", false},
		"url=/x":               {0, "", false},
		"":                     {0, "", false},
		"5x;url=/x":            {0, "", false},
		"-1;url=/x":            {0, "", false},
		"99999999999999;url=x": {1 << 30, "x", true},
	} {
		delay, target, ok := extract.ParseRefresh(value)
		if delay != want.delay || target != want.target || ok != want.ok {
			t.Errorf("%q: got %d %q %v, want %d %q %v", value, delay, target, ok, want.delay, want.target, want.ok)
		}
	}
	t.Run("the header wins, then the first meta", func(t *testing.T) {
		body := []byte("<meta http-equiv=refresh content='bad'><meta http-equiv=Refresh content='3;url=/a'><meta http-equiv=refresh content='0;url=/b'>")
		if f := page(t, extract.Input{Body: body}).Facts; !f.HasRefresh || f.RefreshDelay != 3 || f.RefreshURL != "/a" {
			t.Errorf("got %+v", f)
		}
		p := page(t, extract.Input{Body: body, Header: http.Header{"Refresh": {"1; url=/h"}}})
		if f := p.Facts; f.RefreshDelay != 1 || f.RefreshURL != "/h" || !p.Links[0].FromHeader {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("one in noscript is a link but no refresh", func(t *testing.T) {
		p := page(t, extract.Input{Body: []byte("<noscript><meta http-equiv=refresh content='0;url=/nojs'></noscript>")})
		if p.Facts.HasRefresh || len(hrefs(p, extract.Refresh)) != 1 {
			t.Errorf("facts %+v, links %+v", p.Facts, p.Links)
		}
	})
}

func FuzzLinkHeader(f *testing.F) {
	for _, s := range []string{`</x>; rel="next"`, `<a>;x="\",<b>`, `a, <b>; rel = c; hreflang=d`, `<;>;;,`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		links := extract.HeaderLinks(s)
		for _, l := range links {
			if strings.Contains(l.Href, ">") || strings.Trim(l.Href, " \t") != l.Href {
				t.Errorf("href %q", l.Href)
			}
		}
		// A well-formed link in front changes nothing behind it.
		more := extract.HeaderLinks(`</first>; rel="next", ` + s)
		if len(more) != len(links)+1 || more[0].Href != "/first" || len(links) > 0 && !reflect.DeepEqual(more[1:], links) {
			t.Errorf("%q: %+v behind a link, %+v alone", s, more, links)
		}
	})
}

func FuzzRobotsTag(f *testing.F) {
	for _, s := range []string{"noindex, nofollow", "googlebot: none", "max-snippet:5", "unavailable_after: Sun, 06 Nov 1994 08:49:37 GMT, noindex", "a:b,c:d", ":,:"} {
		f.Add(s)
	}
	e := extract.New(extract.Config{Product: "deepcrawlcluster"})
	f.Fuzz(func(t *testing.T, s string) {
		if !isASCII(s) {
			return
		}
		p := e.HTML(extract.Input{Header: http.Header{"X-Robots-Tag": {s}}})
		facts := p.Facts
		p.Release()
		list := strings.Split(facts.Robots, ", ")
		none := slices.Contains(list, "none")
		if facts.NoIndex != (none || slices.Contains(list, "noindex")) && len(facts.Robots) < 2000 {
			t.Errorf("%q: noindex %v in %q", s, facts.NoIndex, facts.Robots)
		}
		if facts.NoFollow != (none || slices.Contains(list, "nofollow")) && len(facts.Robots) < 2000 {
			t.Errorf("%q: nofollow %v in %q", s, facts.NoFollow, facts.Robots)
		}
		if facts.Robots != facts.RobotsHeader {
			t.Errorf("%q: %q and %q", s, facts.Robots, facts.RobotsHeader)
		}
	})
}

func FuzzRefresh(f *testing.F) {
	for _, s := range []string{"0;url=x", "5", "1 , URL = 'a'b", ".;u"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		delay, target, ok := extract.ParseRefresh(s)
		if !ok && (delay != 0 || target != "") || delay < 0 {
			t.Fatalf("%q: %d %q %v", s, delay, target, ok)
		}
		if ok && !strings.Contains(target, `"`) {
			if _, again, _ := extract.ParseRefresh(`1;url="` + target + `"`); again != target {
				t.Errorf("%q: %q, written again %q", s, target, again)
			}
		}
	})
}
