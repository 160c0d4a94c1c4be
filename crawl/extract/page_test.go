package extract_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"deepcrawl/crawl/extract"
)

// kindsOf writes links as "kind href" lines.
func kindsOf(p *extract.Page) string {
	var out []string
	for _, l := range p.Links {
		out = append(out, l.Kind.String()+" "+string(l.Href))
	}
	return strings.Join(out, "\n")
}

func TestWhatIsALink(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"anchors in every quoting":        {`<a href=/a><A HREF='/b'><a href = "/c"><a x=1 href=/d/ y><a href=e/>`, "anchor /a\nanchor /b\nanchor /c\nanchor /d/\nanchor e/"},
		"the first of two attributes":     {`<a href=/a href=/b>`, "anchor /a"},
		"empty href is the page":          {`<a href><a href=""><a name=x>`, "anchor \nanchor "},
		"references by attribute rules":   {`<a href="?a=1&amp;b=2&copy=3&lt;&#x41;&notit;">`, "anchor ?a=1&b=2&copy=3<A&notit;"},
		"space and controls are trimmed":  {"<a href=' \x01\n/a b \t'>", "anchor /a b"},
		"area and iframe":                 {`<map><area href=/a><area></map><iframe src=/i><a href=no></iframe><iframe></iframe>`, "area /a\niframe /i"},
		"frames in a frameset":            {`<html><frameset><frame src=/f><a href=/no><noframes><a href=/no></noframes></frameset>`, "frame /f"},
		"frame outside a frameset":        {`<p><frame src=/f>`, ""},
		"link relations":                  {`<link rel="CANONICAL" href=/c><link rel=alternate hreflang=de href=/de><link rel=alternate media=handheld href=/m><link rel="alternate" type="application/atom+xml" href=/feed><link rel=next href=/n><link rel=previous href=/p><link rel=amphtml href=/amp><link rel="shortcut icon" href=/i><link rel=stylesheet href=/s><link rel="alternate stylesheet" href=/s2><link rel=dns-prefetch href=//x><link rel=stylesheet href=''>`, "canonical /c\nalternate /de\nalternate /m\nfeed /feed\nnext /n\nprev /p\namp /amp\nicon /i\nstylesheet /s\nstylesheet /s2"},
		"resources":                       {`<img src=/i srcset="/i1 1x, /i2 2x"><picture><source srcset=/w.webp></picture><video src=/v poster=/p><track src=/t></video><script src=/s></script><embed src=/e><object data=/o></object><input type=image src=/b><form action=/f></form>`, "image /i\nsrcset /i1\nsrcset /i2\nsrcset /w.webp\nmedia /v\nmedia /p\nmedia /t\nscript /s\nembed /e\nembed /o\nimage /b\nform /f"},
		"data URLs of resources":          {`<img src="data:image/gif;base64,AA"><a href="data:x,y">`, "anchor data:x,y"},
		"SVG anchors":                     {`<svg><a xlink:href=/x><a href=/h xlink:href=/no><image href=/i /></svg><a xlink:href=/no>`, "anchor /x\nanchor /h\nimage /i"},
		"comments":                        {`<!-- <a href=no> --!><a href=/1><!--><a href=/2><!---><a href=/3><!- <a href=no><a href=/4></ <a href=no><a href=/5><?php <a href=no>`, "anchor /1\nanchor /2\nanchor /3\nanchor /4\nanchor /5"},
		"raw text":                        {`<script>'<a href=no>'</script><style><a href=no></style><textarea><a href=no></textarea><title><a href=no></title><xmp><a href=no></xmp><noembed><a href=no></noembed><a href=/y><plaintext><a href=no>`, "anchor /y"},
		"escaped scripts":                 {`<script><!-- <script> </script> <a href=no> --></script><a href=/y>`, "anchor /y"},
		"a script end in another case":    {`<SCRIPT></scripty><a href=no></ScRiPt ><a href=/y>`, "anchor /y"},
		"CDATA in HTML is a comment":      {`<![CDATA[<a href=/y>]]>`, ""},
		"CDATA in SVG is text":            {`<svg><![CDATA[<a href=no>]]></svg><a href=/y>`, "anchor /y"},
		"templates":                       {`<template><a href=no><template><a href=no></template><img src=no></template><a href=/y>`, "anchor /y"},
		"a template with a shadow root":   {`<div><template shadowrootmode=open><a href=/s></template></div>`, "anchor /s"},
		"noscript":                        {`<noscript><a href=/n><img src=/i></noscript>`, "anchor /n\nimage /i"},
		"a tag that never ends":           {`<a href=/y><a href="/no`, "anchor /y"},
		"NUL and upper case":              {"<A\x00 href=/no><a hre\x00f=/no><A HrEf=/y\x00>", "anchor /y\uFFFD"},
		"HTML closes an SVG left open":    {`<svg><path><p><title></title><a href=/y>`, "anchor /y"},
		"style in SVG is no raw text":     {`<svg><style><a href=/y></a></style></svg>`, "anchor /y"},
		"meta refresh":                    {`<meta http-equiv="refresh" content="0; url='/r'">`, "refresh /r"},
		"a nested anchor is its own link": {`<a href=/1>x<a href=/2>y</a>`, "anchor /1\nanchor /2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := kindsOf(page(t, extract.Input{Body: []byte(c.body)})); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestLinkProperties(t *testing.T) {
	t.Run("rel of anchors", func(t *testing.T) {
		p := page(t, extract.Input{Body: []byte(`<a href=1 rel="NoFollow noopener"><a href=2 rel=ugc><a href=3 rel="sponsored	nofollow"><area href=4 rel=nofollow><a href=5 rel=nofollows>`)})
		var got []string
		for _, l := range p.Links {
			got = append(got, fmt.Sprintf("%s %v %v %v", l.Href, l.Nofollow, l.UGC, l.Sponsored))
		}
		if want := "1 true false false, 2 false true false, 3 true false true, 4 true false false, 5 false false false"; strings.Join(got, ", ") != want {
			t.Errorf("got %s", strings.Join(got, ", "))
		}
	})
	t.Run("anchor text", func(t *testing.T) {
		long := strings.Repeat("\u00e9", 150)
		p := page(t, extract.Input{Body: []byte("x<a href=1> some\n <b>bo</b>ld&nbsp;text </a>y <a href=2><img src=i alt=' Logo '></a><a href=3><svg><title>no</title></svg></a><a href=4>" + long + "</a><a href=5>open")})
		want := []string{"some bold text", "Logo", "", strings.Repeat("\u00e9", 100), "open"}
		i := 0
		for _, l := range p.Links {
			if l.Kind == extract.Anchor {
				if string(l.Text) != want[i] {
					t.Errorf("%s: got %q, want %q", l.Href, l.Text, want[i])
				}
				i++
			}
		}
	})
	t.Run("head and body", func(t *testing.T) {
		for body, inHead := range map[string]bool{
			"<link rel=canonical href=c>":                                                true,
			"<head></head><link rel=canonical href=c><body>":                             true, // after head is put into it
			"<title>t</title> <script></script><link rel=canonical href=c>":              true,
			"<head><noscript><img src=p></noscript><link rel=canonical href=c>":          true, // scripts run where directives are read
			"<head><template><div></template><link rel=canonical href=c>":                true,
			"<body><link rel=canonical href=c>":                                          false,
			"<head><div></div><link rel=canonical href=c>":                               false, // a div ends the head
			"<head>text<link rel=canonical href=c>":                                      false,
			"<head><img src=x><link rel=canonical href=c>":                               false,
			"<head></body><link rel=canonical href=c>":                                   false,
			"<head></p></foo><link rel=canonical href=c>":                                true,
			"<!doctype html><!-- c --><html><head>\n<meta x><link rel=canonical href=c>": true,
		} {
			p := page(t, extract.Input{Body: []byte(body)})
			l := p.Links[len(p.Links)-1]
			if l.InHead != inHead || (p.Facts.CanonicalInBody == 0) != inHead {
				t.Errorf("%s: in head %v, want %v", body, l.InHead, inHead)
			}
		}
	})
	t.Run("kinds have names and are pages or resources", func(t *testing.T) {
		follow := map[string]bool{"anchor": true, "area": true, "frame": true, "iframe": true, "canonical": true, "alternate": true, "next": true, "prev": true, "amp": true, "refresh": true}
		seen := map[string]bool{}
		for k := extract.Anchor; k <= extract.Resource; k++ {
			if k.Follow() != follow[k.String()] || seen[k.String()] || k.String() == "unknown" {
				t.Errorf("%d: %s follow %v", k, k, k.Follow())
			}
			seen[k.String()] = true
		}
		if extract.LinkKind(0).Follow() || extract.LinkKind(200).Follow() || extract.LinkKind(200).String() != "unknown" {
			t.Error("kinds out of range")
		}
	})
}

func TestFactsOfTheHead(t *testing.T) {
	facts := func(body string) extract.Facts { return page(t, extract.Input{Body: []byte(body)}).Facts }
	t.Run("the title is the first one outside SVG", func(t *testing.T) {
		for body, want := range map[string]string{
			"<title>\n A &amp;  B\u00a0C </title>":                           "A & B\u00a0C",
			"<svg><title>no</title></svg><title>yes</title><title>2</title>": "yes",
			"<template><title>no</title></template><title>yes</title>":       "yes",
			"<noscript><title>no</title></noscript><title>yes</title>":       "yes",
			"<TITLE>a<b>c</TITLE>":                                           "a<b>c",
			"<title></title><title>2</title>":                                "",
			"<title>open <p>":                                                "open <p>",
			"<body><title>late</title>":                                      "late",
			"<svg><g><title/></g><desc></desc></svg><title>x</title>":        "x",
		} {
			if got := facts(body).Title; got != want {
				t.Errorf("%s: got %q, want %q", body, got, want)
			}
		}
		if n := facts("<svg><title>no</title></svg><title>1</title><title>2</title>").TitleCount; n != 2 {
			t.Errorf("count %d", n)
		}
	})
	t.Run("canonical: the first in the head, as written", func(t *testing.T) {
		f := facts(`<head><link rel=canonical href="/a/ "><link rel="canonical" href=/b></head><body><link rel=canonical href=/c>`)
		if f.Canonical != "/a/" || f.CanonicalCount != 3 || f.CanonicalInBody != 1 || f.Notes&extract.NoteLateHead == 0 {
			t.Errorf("got %+v", f)
		}
		if f := facts(`<body><link rel=canonical href=/c>`); f.Canonical != "/c" || f.CanonicalInBody != 1 {
			t.Errorf("got %+v", f)
		}
		if f := facts(`<link rel=canonical>`); f.CanonicalCount != 0 {
			t.Errorf("got %+v", f)
		}
	})
	t.Run("base: the first with an href", func(t *testing.T) {
		if f := facts(`<a href=x></a><base target=t><base href=" /b/ "><base href=/c/>`); f.Base != "/b/" {
			t.Errorf("got %q", f.Base)
		}
	})
	t.Run("social, structured and other metas", func(t *testing.T) {
		f := facts(`<html lang=" de-AT "><meta property="og:Title" content=" T
  1 "><meta name=og:image content=/i><meta name=twitter:card content=summary><meta name=viewport content="width=device-width">
<meta name=Description content=" a  b"><meta name=description content=2>
<link rel=alternate hreflang=x-default href=/><link rel=amphtml href=/amp>
<script type="application/ld+json; charset=utf-8">[{"@type":"Product","offers":{"@type":"Offer"}},{"@graph":[{"@type":["A","B"]}]}]</script>
<script type=application/ld+json>{"@type":"X",}</script><script type=application/json>{"@type":"No"}</script>`)
		want := extract.Facts{Description: "a b", DescriptionCount: 2, Lang: "de-AT", Viewport: "width=device-width", AMP: "/amp",
			OG: []extract.Pair{{Name: "og:title", Value: "T 1"}, {Name: "og:image", Value: "/i"}}, Twitter: []extract.Pair{{Name: "twitter:card", Value: "summary"}},
			Hreflang: []extract.HreflangLink{{Lang: "x-default", Href: "/"}}, Charset: "utf-8", LinkCount: 2, JSONLDCount: 2, BodyHash: f.BodyHash,
			JSONLD: []extract.JSONLD{{Types: []string{"Product", "A", "B"}, Valid: true, Bytes: 81}, {Types: []string{"X"}, Bytes: 14}}}
		if !reflect.DeepEqual(f, want) {
			t.Errorf("got  %+v\nwant %+v", f, want)
		}
	})
	t.Run("headings", func(t *testing.T) {
		f := facts("<h1> A <b>b</b><br>c </h1><h2>2a</h2><h1><img alt=x></h1><h2>2b<h3>3</h3><p>no</p><div><h1>open</div>no <svg><h2>after</h2>")
		if strings.Join(f.H1, "|") != "A b c||open" || strings.Join(f.H2, "|") != "2a|2b|after" || f.H1Count != 3 || f.H2Count != 3 {
			t.Errorf("got %q %q", f.H1, f.H2)
		}
	})
	t.Run("images", func(t *testing.T) {
		f := facts(`<img src=a><img src=b alt><img src=c alt=""><image src=d><svg><image href=e /></svg><noscript><img src=f></noscript><template><img></template>`)
		if f.Images != 4 || f.ImagesNoAlt != 2 {
			t.Errorf("got %d, %d without alt", f.Images, f.ImagesNoAlt)
		}
	})
}

func TestXHTML(t *testing.T) {
	body := []byte(`<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml" xml:lang="fr"><head><title>t</title><script src="/s"/></head><body><textarea/><![CDATA[<a href="no">]]><a href="/y">x</a></body></html>`)
	t.Run("served as such, elements close themselves and CDATA is text", func(t *testing.T) {
		p := page(t, extract.Input{Body: body, ContentType: "application/xhtml+xml; charset=utf-8"})
		if got := kindsOf(p); got != "script /s\nanchor /y" || p.Facts.Lang != "fr" || p.Facts.Words != 2 {
			t.Errorf("got %s, %+v", got, p.Facts)
		}
	})
	t.Run("served as HTML, an unclosed script swallows the page", func(t *testing.T) {
		p := page(t, extract.Input{Body: body, ContentType: "text/html"})
		if got := kindsOf(p); got != "script /s" || p.Facts.Notes&extract.NoteOpenRawText == 0 {
			t.Errorf("got %s, notes %b", got, p.Facts.Notes)
		}
	})
}

func TestIsHTML(t *testing.T) {
	for _, c := range []struct {
		contentType, body string
		want              bool
	}{
		{"text/html", "", true}, {"Text/HTML; charset=utf-8", "", true}, {" text/html ;x", "", true}, {"application/xhtml+xml", "", true},
		{"text/plain", "<html>", false}, {"application/json", "<html>", false}, {"text/htmlx", "<html>", false},
		{"", "<!DOCTYPE html><p>", true}, {"", "\n <html>", true}, {"", "{}", false}, {"", "", false}, {"*/*", "<head>", true}, {"unknown/unknown", "<body>", true},
	} {
		if got := extract.IsHTML(c.contentType, []byte(c.body)); got != c.want {
			t.Errorf("%q %q: got %v", c.contentType, c.body, got)
		}
	}
}
