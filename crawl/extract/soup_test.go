package extract_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// soup writes random pages. Well-formed ones must read exactly as the tree reads them.
type soup struct {
	rng *rand.Rand
	b   strings.Builder
	n   int
	// x/net loses the rest of the page after a template inside foreignObject (checked by hand against the standard), so none there.
	inSVG bool
}

func (s *soup) pick(list ...string) string { return list[s.rng.IntN(len(list))] }

func (s *soup) words() {
	for range 1 + s.rng.IntN(4) {
		s.b.WriteString(s.pick("alpha ", "Beta", " gamma\n", "&amp;", "&lt;b&gt;", "&eacute;t&eacute; ", "&#8364;", "5 < 6 ", "a&b ", "&copy2 ", "\u00e9 ", "\u4e2d\u6587 ", "x&nbsp;y ", "<!-- <a href=c> -->", "\r\n", "&notin; "))
	}
}

func (s *soup) value(v string) string {
	v = strings.ReplaceAll(v, "&", s.pick("&amp;", "&", "&#38;"))
	switch s.rng.IntN(4) {
	case 0:
		return "'" + v + "'"
	case 1:
		if !strings.ContainsAny(v, " \t\n\"'=<>`") && v != "" {
			return v
		}
	case 2:
		return "\"\n " + v + " \""
	}
	return `"` + v + `"`
}

func (s *soup) attr(name, v string) string {
	if s.rng.IntN(4) == 0 {
		name = strings.ToUpper(name)
	}
	return " " + name + s.pick("=", "=", " = ", "=\n") + s.value(v) + s.pick("", "", " class=x", " DATA-href='y'", " href2", " /")
}

func (s *soup) url() string {
	s.n++
	return fmt.Sprintf(s.pick("/p%d", "p%d?a=1&b=2", "//host/%d", "https://h.example/%d#f", "?q=%d&copy=3", "../%d,x"), s.n)
}

// phrasing writes inline content; inA says that an anchor is open.
func (s *soup) phrasing(depth int, inA bool) {
	for range 1 + s.rng.IntN(3) {
		switch k := s.rng.IntN(15); {
		case k < 5 || depth <= 0:
			s.words()
		case k == 5 && !inA:
			s.b.WriteString("<" + s.pick("a", "A") + s.attr("href", s.url()) + ">")
			s.phrasing(depth-1, true)
			s.b.WriteString(s.pick("</a>", "</A >"))
		case k == 6:
			s.b.WriteString("<img" + s.attr("src", s.url()) + s.pick("", " alt", s.attr("alt", "x")) + ">")
		case k == 7:
			tag := s.pick("b", "span", "em", "custom-tag", "q", "label", "u")
			s.b.WriteString("<" + tag + ">")
			s.phrasing(depth-1, inA)
			s.b.WriteString("</" + tag + ">")
		case k == 8:
			s.b.WriteString(s.pick("<br>", "<br/>", "<input>", "<wbr>"))
		case k == 9:
			s.b.WriteString("<script" + s.pick("", s.attr("src", s.url())) + ">" + s.pick("var x='<a href=n>';", "<!-- <script> </script> <a href=z> -->", "if(a<b){}", "") + "</script>")
		case k == 10:
			s.b.WriteString("<svg><title>no</title><g><path/></g><a" + s.attr(s.pick("href", "xlink:href"), s.url()) + " id=i><text>t</text></a><style>a<b</style><![CDATA[<a href=q>]]></svg>")
		case k == 11:
			s.b.WriteString("<noscript><img" + s.attr("src", s.url()) + ">" + s.pick("", "<a href=ns>x</a>") + "</noscript>")
		case k == 12 && !s.inSVG:
			s.b.WriteString("<template><a href=t>x</a><h1>t</h1></template>")
		case k == 13:
			s.b.WriteString("<math><mi>x</mi><mo>+</mo><mtext><b>z</b></mtext></math>")
		case k == 14:
			s.b.WriteString(s.pick("<textarea><a href=no></textarea>", "<iframe"+s.attr("src", s.url())+"><a href=no></iframe>", "<style>p>a{}</style>", "<button>go</button>"))
		}
	}
}

func (s *soup) flow(depth int) {
	for range 1 + s.rng.IntN(4) {
		switch k := s.rng.IntN(10); {
		case k < 3 || depth <= 0:
			s.b.WriteString("<p>")
			s.phrasing(3, false)
			s.b.WriteString(s.pick("</p>", "</p>", ""))
			s.b.WriteString("<div></div>")
		case k < 5:
			tag := s.pick("div", "section", "main", "ARTICLE", "blockquote", "center")
			s.b.WriteString("<" + tag + s.pick("", " class=\"a>b\"") + ">")
			s.flow(depth - 1)
			s.b.WriteString("</" + tag + ">")
		case k == 5:
			tag := s.pick("h1", "h2", "h3")
			s.b.WriteString("<" + tag + ">")
			s.phrasing(2, false)
			s.b.WriteString("</" + tag + ">")
		case k == 6:
			s.b.WriteString("<ul>")
			for range 1 + s.rng.IntN(3) {
				s.b.WriteString("<li>")
				s.phrasing(2, false)
				s.b.WriteString(s.pick("</li>", ""))
			}
			s.b.WriteString("</ul>")
		case k == 7:
			s.b.WriteString("<table><tr><td>")
			s.phrasing(2, false)
			s.b.WriteString("</td><td>x</td></tr></table>")
		case k == 8:
			s.b.WriteString("<svg viewBox='0 0 1 1'><foreignObject><div>")
			s.inSVG = true
			s.phrasing(1, false)
			s.inSVG = false
			s.b.WriteString("</div></foreignObject><desc>d</desc></svg>")
		default:
			s.phrasing(3, false)
		}
	}
}

func (s *soup) page() string {
	s.b.Reset()
	if s.rng.IntN(4) > 0 {
		s.b.WriteString("<!doctype html>\n")
	}
	s.b.WriteString("<html" + s.pick("", s.attr("lang", "en-GB")) + "><head>")
	for range s.rng.IntN(8) {
		switch s.rng.IntN(8) {
		case 0:
			s.b.WriteString("<title>" + s.pick("One &amp; two", " A\n B ", "<b>x</b>", "") + "</title>")
		case 1:
			s.b.WriteString("<link" + s.attr("rel", s.pick("canonical", "Canonical nofollow", "stylesheet", "next")) + s.attr("href", s.url()) + ">")
		case 2:
			s.b.WriteString("<meta" + s.attr("name", "description") + s.attr("content", "some &lt;text&gt; here") + ">")
		case 3:
			s.b.WriteString("<base" + s.attr("href", "/base/") + ">")
		case 4:
			s.b.WriteString("<style>a<b</style>")
		case 5:
			s.b.WriteString("<script>'<link rel=canonical href=no>'</script>")
		case 6:
			s.b.WriteString("<noscript><link rel=stylesheet href=ns.css></noscript>")
		case 7:
			s.b.WriteString("<template><title>t</title></template>\n")
		}
	}
	s.b.WriteString("</head>" + s.pick("\n", "") + "<body>")
	s.flow(3)
	s.b.WriteString("</body></html>")
	return s.b.String()
}

// ravel cuts, doubles, drops and inserts pieces, so that nothing is well formed any more.
func (s *soup) ravel(page string) string {
	b := []byte(page)
	for range 1 + s.rng.IntN(4) {
		if len(b) < 10 {
			break
		}
		i := s.rng.IntN(len(b))
		n := s.rng.IntN(min(30, len(b)-i))
		switch s.rng.IntN(4) {
		case 0:
			b = append(b[:i:i], b[i+n:]...)
		case 1:
			b = append(b[:i:i], append([]byte(s.pick("<", ">", "\"", "'", "</", "<!--", "-->", "<a", "=", "&", "\x00", "<svg>", "</svg>", "<title>", "</p>", "<table>", "</div>", "<template>", "<select>", "<noscript>", "<script>", "<h1>", "<body>", "</body>", "<p>", "<a href=u>")), b[i:]...)...)
		case 2:
			b = append(b[:i:i], append([]byte(string(b[i:i+n])), b[i:]...)...)
		case 3:
			b[i] = byte(s.rng.IntN(128))
		}
	}
	return string(b)
}

func TestAgreesWithTheTreeOnWellFormedPages(t *testing.T) {
	s := &soup{rng: rand.New(rand.NewPCG(11, 7))}
	for range 3000 {
		page := s.page()
		want, err := treeView(t, []byte(page))
		if err != nil {
			t.Fatal(err)
		}
		if diff := differences(streamView([]byte(page)), want); len(diff) > 0 {
			t.Fatalf("%s\n\t%s", page, strings.Join(diff, "\n\t"))
		}
	}
}

// TestAgreesWithTheTreeOnRavelledPages bounds how often broken pages read differently. What is left, by hand over the list
// (set -v and print to see it): text and facts in a noscript that lost its end (we read facts as with scripting on, the tree as with
// scripting off); HTML elements open inside foreignObject or an SVG title when their end tags are damaged; templates inside an
// SVG that lost its end (x/net drops the rest of the page there); headings in headings.
func TestAgreesWithTheTreeOnRavelledPages(t *testing.T) {
	s := &soup{rng: rand.New(rand.NewPCG(3, 5))}
	const pages = 5000
	differ := 0
	fields := map[string]int{}
	for range pages {
		page := s.ravel(s.page())
		want, err := treeView(t, []byte(page))
		if err != nil {
			t.Fatal(err)
		}
		diff := differences(streamView([]byte(page)), want)
		if len(diff) > 0 {
			differ++
		}
		for _, d := range diff {
			name, _, _ := strings.Cut(d, ":")
			fields[name]++
		}
	}
	t.Logf("%d of %d differ: %v", differ, pages, fields)
	if differ > pages*8/100 || fields["links"] > pages/80 || fields["title"] > pages/200 || fields["canonical"] > pages/500 {
		t.Errorf("%d of %d differ: %v", differ, pages, fields)
	}
}
