package extract_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"deepcrawl/crawl/extract"
)

func factsStrings(f *extract.Facts) []string {
	out := []string{f.Title, f.Description, f.Robots, f.RobotsHeader, f.Canonical, f.HeaderCanonical, f.Base, f.Next, f.Prev, f.AMP, f.Lang, f.Viewport, f.Charset, f.RefreshURL}
	out = append(append(out, f.H1...), f.H2...)
	for _, p := range append(f.OG, f.Twitter...) {
		out = append(out, p.Name, p.Value)
	}
	for _, h := range f.Hreflang {
		out = append(out, h.Lang, h.Href)
	}
	for _, b := range f.BotRobots {
		out = append(out, b.Bot, b.Directives)
	}
	for _, j := range f.JSONLD {
		out = append(out, j.Types...)
	}
	return out
}

// FuzzHTML reads any bytes as a page: no panic, valid strings, a codec that gives the same facts back, the same answer twice, and
// the same tokens as x/net's tokenizer where no raw text is involved.
func FuzzHTML(f *testing.F) {
	for _, seed := range []string{
		"", "<", "</", "<a href=x>y</a>", "<title>a&amp;b", "<script><!--<script></script>--></script><a href=z>",
		"<svg><title>x</title><a xlink:href=y/></svg>", "<svg><![CDATA[<a href=b>]]></svg>", "<!--><a href=c><!---->", "<a href='x\"y' href=z>",
		"<meta charset=shift_jis>\x82\xa0<a href=\x82\xa0>", "\xff\xfe<\x00a\x00", "<template><a href=t></template>", "<noscript><img src=x></noscript>",
		"<frameset><frame src=f><a href=g></frameset>", "<img srcset='a 1x, b 2x'>", "<meta http-equiv=refresh content='0;url=x'>", "<plaintext><a href=u>",
		"<script type=application/ld+json>{\"@type\":[\"A\",\"B\"]}</script>", "<link rel='canonical alternate' hreflang=de href=x>", "<textarea><a href=v></textarea\x00>",
		"<math><annotation-xml encoding='text/html'><a href=w></a></annotation-xml></math>", "<h1>a<h2>b</h1>c", "<meta name=robots content='unavailable_after: Sunday, 06-Nov-94 08:49:37 GMT, noindex'>",
	} {
		f.Add([]byte(seed), "text/html", "noindex, otherbot: nofollow", `</x>; rel="next"`)
		f.Add([]byte(seed+"\x1b$B\x81\x30"), "text/html;charset=iso-2022-jp", "none", "5;url=x")
		f.Add([]byte(seed+"\x81\x30\x84"), "application/xhtml+xml;charset=gbk", "all", ",")
	}
	e := extract.New(extract.Config{Product: "deepcrawlcluster"})
	f.Fuzz(func(t *testing.T, body []byte, contentType, robots, link string) {
		before := bytes.Clone(body)
		in := extract.Input{Body: body, ContentType: contentType, Header: http.Header{"X-Robots-Tag": {robots}, "Link": {link}, "Refresh": {link}}, MaxLinks: 50}
		p := e.HTML(in)
		facts := p.Facts
		type flat struct {
			kind       extract.LinkKind
			href, text string
		}
		var links []flat
		kept := 0
		for _, l := range p.Links {
			if l.Kind.String() == "unknown" || l.Kind == 0 {
				t.Errorf("link without a kind: %+v", l)
			}
			if len(l.Text) > extract.MaxLinkText {
				t.Errorf("text of %d bytes", len(l.Text))
			}
			links = append(links, flat{l.Kind, string(l.Href), string(l.Text)})
			if l.Kind.Follow() {
				kept++
			}
		}
		if kept > 50 || kept != min(50, facts.LinkCount) {
			t.Errorf("kept %d of %d links", kept, facts.LinkCount)
		}
		p.Release()
		p.Release()
		if !bytes.Equal(body, before) {
			t.Fatal("the body was changed")
		}
		for _, s := range factsStrings(&facts) {
			if !utf8.ValidString(s) {
				t.Errorf("not UTF-8: %q", s)
			}
		}
		blob, err := facts.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var back extract.Facts
		if err := back.UnmarshalBinary(blob); err != nil {
			t.Fatalf("%v: %+v", err, facts)
		}
		if !reflect.DeepEqual(back, facts) {
			t.Errorf("round trip\n%+v\n%+v", back, facts)
		}
		again := e.HTML(in)
		defer again.Release()
		if !reflect.DeepEqual(again.Facts, facts) || len(again.Links) != len(links) {
			t.Errorf("second reading differs\n%+v\n%+v", again.Facts, facts)
		}
		for i, l := range again.Links {
			if links[i] != (flat{l.Kind, string(l.Href), string(l.Text)}) {
				t.Errorf("second reading: link %d is %v, was %v", i, l, links[i])
			}
		}
	})
}

// FuzzTokenizer holds our tags against x/net's tokenizer.
func FuzzTokenizer(f *testing.F) {
	for _, seed := range []string{"<a href=x>", "<a b='c\"d' e=f/>x</a >", "<!--x--!><p>", "<!-->x", "</x y=z>", "<?x><!x><p q", "<script>a<b</script>", "<title>&lt;</title>", "a<b&amp;c<d"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.IndexByte(body, 0) >= 0 || bytes.IndexByte(body, '\r') >= 0 {
			return // x/net leaves those to its tree builder
		}
		ours := extract.Tags(body)
		theirs := xnetTags(body)
		if !reflect.DeepEqual(ours, theirs) {
			t.Errorf("%q\nours   %q\ntheirs %q", body, ours, theirs)
		}
	})
}

// xnetTags lists start and end tags with their attributes; of equal attributes the first counts, as the standard has it.
func xnetTags(body []byte) []string {
	z := html.NewTokenizer(bytes.NewReader(body))
	var out []string
	for {
		kind := z.Next()
		switch kind {
		case html.ErrorToken:
			return out
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			tok := z.Token()
			s := "<"
			if kind == html.EndTagToken {
				s = "</"
			}
			s += tok.Data
			seen := map[string]bool{}
			for _, a := range tok.Attr {
				if !seen[a.Key] && kind != html.EndTagToken {
					seen[a.Key] = true
					s += " " + a.Key + "=" + a.Val
				}
			}
			out = append(out, s)
		}
	}
}

func FuzzFactsUnmarshal(f *testing.F) {
	full := sampleFacts()
	blob, _ := full.AppendBinary(nil)
	f.Add(blob)
	f.Add([]byte{1})
	f.Add([]byte{1, 200, 1, 1, 'x'})
	f.Fuzz(func(t *testing.T, data []byte) {
		var facts extract.Facts
		if err := facts.UnmarshalBinary(data); err != nil {
			if !reflect.DeepEqual(facts, extract.Facts{}) {
				t.Errorf("not zero after %v", err)
			}
			return
		}
		blob, err := facts.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var again extract.Facts
		if err := again.UnmarshalBinary(blob); err != nil || !reflect.DeepEqual(facts, again) {
			t.Errorf("%v\n%+v\n%+v", err, facts, again)
		}
	})
}

func FuzzJSONLD(f *testing.F) {
	for _, seed := range []string{`{"@type":"A"}`, `[{"@type":["A","B"]},{"@graph":[{"@type":"\u0043"}]}]`, `{"a":1e5,"b":-0.5,"c":[true,false,null]}`, `{`, `{"a":01}`, "{\"a\":\"\x01\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		types, valid := extract.ScanJSONLD(data)
		trimmed := bytes.TrimLeft(data, " \t\r\n")
		want := json.Valid(data) && len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[')
		if valid != want && !(want && bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > 400) {
			t.Errorf("%q: valid %v, want %v (types %q)", data, valid, want, types)
		}
	})
}
