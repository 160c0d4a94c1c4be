package extract_test

import (
	"net/http"
	"testing"

	"deepcrawl/crawl/extract"
)

func page(t *testing.T, in extract.Input) *extract.Page {
	t.Helper()
	p := extract.New(extract.Config{Product: "deepcrawlcluster"}).HTML(in)
	t.Cleanup(p.Release)
	return p
}

func TestPageGivesLinksAndFacts(t *testing.T) {
	body := `<!DOCTYPE html><html lang="en"><head><meta charset=utf-8><title> A &amp; B
 page </title><base href="/x/"><link rel=canonical href="/c"><meta name="description" content="d  e"><meta name=robots content="noindex, follow">
<link rel="alternate" hreflang=de href="/de"><script type="application/ld+json">{"@type":"Article"}</script></head>
<body><h1>Head <b>line</b></h1><p>Some te<b>xt</b> here.</p><a href=" /a?x=1&amp;y=2 " rel="nofollow ugc">go <i>there</i></a><img src=i.png><img src=j.png alt>
<!-- <a href=/no> --><script>"<a href=/no2>"</script></body></html>`
	p := page(t, extract.Input{Body: []byte(body), Header: http.Header{"X-Robots-Tag": {"deepcrawlcluster: noarchive"}}})
	f := p.Facts
	if f.Title != "A & B page" || f.Base != "/x/" || f.Canonical != "/c" || f.Description != "d e" || !f.NoIndex || !f.NoArchive || f.Lang != "en" {
		t.Errorf("facts: %+v", f)
	}
	if f.Words != 7 || f.Images != 2 || f.ImagesNoAlt != 1 || len(f.H1) != 1 || f.H1[0] != "Head line" {
		t.Errorf("facts: %+v", f)
	}
	if len(p.Links) != 5 {
		t.Fatalf("links: %+v", p.Links)
	}
	a := p.Links[2]
	if string(a.Href) != "/a?x=1&y=2" || a.Kind != extract.Anchor || !a.Nofollow || !a.UGC || string(a.Text) != "go there" {
		t.Errorf("anchor: %+v", a)
	}
	blob, err := f.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	var back extract.Facts
	if err := back.UnmarshalBinary(blob); err != nil || back.Title != f.Title || back.BodyHash != f.BodyHash {
		t.Errorf("round trip: %v %+v", err, back)
	}
}
