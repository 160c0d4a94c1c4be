package extract_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"deepcrawl/crawl/extract"
)

// benchPage is a page of about 11.7 KB with 23 links and some 1,100 words, the size the design's measurements were made on.
func benchPage() []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 600)
	for i := range words {
		n := 2 + rng.IntN(9)
		w := make([]byte, n)
		for j := range w {
			w[j] = byte('a' + rng.IntN(26))
		}
		words[i] = string(w)
	}
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Page 1234 of the synthetic site: words &amp; links</title>
<meta name="description" content="A synthetic page that looks like the pages of a shop or a magazine, with a description of usual length.">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="index, follow">
<link rel="canonical" href="https://site.example/section-3/page-1234">
<meta property="og:title" content="Page 1234"><meta property="og:type" content="article">
<link rel="stylesheet" href="/static/site.css">
</head>
<body class="page page-article">
<div id="header" class="header wide"><nav class="main"><ul>
`)
	for i := range 8 {
		fmt.Fprintf(&b, "<li class=\"item\"><a class=\"nav-link\" href=\"/section-%d/\">Section %d</a></li>\n", i, i)
	}
	b.WriteString("</ul></nav></div>\n<main><h1>Page 1234</h1>\n")
	links := 8
	for b.Len() < 11_500 {
		if rng.IntN(4) == 0 {
			fmt.Fprintf(&b, "<h2 class=\"t\">%s %s</h2>\n", words[rng.IntN(600)], words[rng.IntN(600)])
		}
		b.WriteString("<p class=\"text\">")
		for range 60 {
			b.WriteString(words[rng.IntN(600)])
			b.WriteByte(' ')
		}
		if links < 20 {
			fmt.Fprintf(&b, "<a href=\"/section-%d/page-%d\">%s</a> ", rng.IntN(8), rng.IntN(10000), words[rng.IntN(600)])
			links++
		}
		b.WriteString("</p>\n<div class=\"figure\"><img src=\"/img/pic.jpg\" alt=\"A picture\"></div>\n")
	}
	for ; links < 22; links++ {
		fmt.Fprintf(&b, "<a href=\"/section-%d/page-%d\">more</a>\n", rng.IntN(8), rng.IntN(10000))
	}
	b.WriteString("</main>\n<script>var x = 1; document.write('<a href=\"/no\">');</script>\n</body>\n</html>\n")
	return []byte(b.String())
}

func BenchmarkExtract(b *testing.B) {
	body := benchPage()
	e := extract.New(extract.Config{Product: "deepcrawlcluster"})
	in := extract.Input{Body: body, ContentType: "text/html; charset=utf-8"}
	p := e.HTML(in)
	b.Logf("%d bytes, %d links, %d words, blob %d bytes", len(body), p.Facts.LinkCount, p.Facts.Words, blobSize(b, &p.Facts))
	p.Release()
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		e.HTML(in).Release()
	}
}

func blobSize(tb testing.TB, f *extract.Facts) int {
	blob, err := f.AppendBinary(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return len(blob)
}

func BenchmarkFactsAppend(b *testing.B) {
	p := extract.New(extract.Config{}).HTML(extract.Input{Body: benchPage()})
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = p.Facts.AppendBinary(buf[:0])
	}
}

func BenchmarkFactsUnmarshal(b *testing.B) {
	p := extract.New(extract.Config{}).HTML(extract.Input{Body: benchPage()})
	blob, _ := p.Facts.AppendBinary(nil)
	var f extract.Facts
	b.ReportAllocs()
	for b.Loop() {
		if err := f.UnmarshalBinary(blob); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkXNetTokenizer(b *testing.B) {
	body := benchPage()
	b.ReportAllocs()
	for b.Loop() {
		z := html.NewTokenizer(bytes.NewReader(body))
		for z.Next() != html.ErrorToken {
			_, more := z.TagName()
			for more {
				_, _, more = z.TagAttr()
			}
		}
	}
}

func BenchmarkGoquery(b *testing.B) {
	body := benchPage()
	b.ReportAllocs()
	for b.Loop() {
		doc, err := goquery.NewDocumentFromReader(bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		doc.Find("a[href]").Each(func(int, *goquery.Selection) { n++ })
	}
}

func BenchmarkTokenizerAlone(b *testing.B) {
	body := benchPage()
	b.ReportAllocs()
	for b.Loop() {
		extract.CountTokens(body)
	}
}

// BenchmarkWordsAndSimhash is the text of the page: words, normalised text, simhash.
func BenchmarkWordsAndSimhash(b *testing.B) {
	var runs [][]byte
	z := html.NewTokenizer(bytes.NewReader(benchPage()))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		if kind == html.TextToken {
			runs = append(runs, bytes.Clone(z.Raw()))
		}
	}
	sink := extract.TextSink()
	b.Logf("%d words", sink(runs))
	b.ReportAllocs()
	for b.Loop() {
		sink(runs)
	}
}

// BenchmarkExtractCyrillic is a page without ASCII words, off the fast path.
func BenchmarkExtractCyrillic(b *testing.B) {
	var text strings.Builder
	for range 900 {
		text.WriteString("\u0441\u043b\u043e\u0432\u043e\u0430 ")
	}
	body := []byte("<!doctype html><meta charset=utf-8><title>t</title><p>" + text.String())
	e := extract.New(extract.Config{})
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		e.HTML(extract.Input{Body: body}).Release()
	}
}

func BenchmarkExtractChinese(b *testing.B) {
	body := []byte("<!doctype html><meta charset=utf-8><title>t</title><p>" + strings.Repeat("\u4e2d\u6587\u5b57\u7b26\u3002", 800))
	e := extract.New(extract.Config{})
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		e.HTML(extract.Input{Body: body}).Release()
	}
}
