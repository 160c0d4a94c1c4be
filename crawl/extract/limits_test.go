package extract_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"deepcrawl/crawl/extract"
)

func TestManyLinks(t *testing.T) {
	var b bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&b, "<a href=/p%d>x</a><img src=/i%d>", i, i)
	}
	p := page(t, extract.Input{Body: b.Bytes()})
	f := p.Facts
	if len(p.Links) != 2*extract.DefaultMaxLinks || f.LinkCount != 100_000 || f.ResourceCount != 100_000 || f.Images != 100_000 || f.Notes&extract.NoteLinksCut == 0 {
		t.Errorf("kept %d, counted %d and %d, notes %b", len(p.Links), f.LinkCount, f.ResourceCount, f.Notes)
	}
	p = page(t, extract.Input{Body: b.Bytes(), MaxLinks: 10})
	if len(p.Links) != 20 || string(p.Links[19].Href) != "/i9" {
		t.Errorf("kept %d with a bound of 10", len(p.Links))
	}
	p = page(t, extract.Input{Body: []byte("<a href=1><a href=2>"), MaxLinks: 2})
	if len(p.Links) != 2 || p.Facts.Notes != 0 {
		t.Errorf("at the bound: %d, notes %b", len(p.Links), p.Facts.Notes)
	}
}

func TestDeepNesting(t *testing.T) {
	for _, tag := range []string{"div", "b", "svg", "g", "math", "template", "a href=x", "table", "foreignObject", "noscript", "h1", "frameset"} {
		body := strings.Repeat("<"+tag+">", 200_000)
		p := page(t, extract.Input{Body: []byte(body + "<title>end</title>")})
		if p.Facts.LinkCount != 0 && tag != "a href=x" {
			t.Errorf("%s: %d links", tag, p.Facts.LinkCount)
		}
	}
	closed := strings.Repeat("<div><svg><g><foreignObject>", 20_000) + strings.Repeat("</foreignObject></g></svg></div>", 20_000)
	p := page(t, extract.Input{Body: []byte(closed + "<title>end</title><a href=y>")})
	if p.Facts.Title != "end" || len(p.Links) != 1 {
		t.Errorf("after deep SVG: title %q, %d links", p.Facts.Title, len(p.Links))
	}
}

func TestListsAreBounded(t *testing.T) {
	long := strings.Repeat("x\u00e9", 40_000)
	body := strings.Repeat("<h1>"+strings.Repeat("y", 1000)+"</h1><h2>z</h2><link rel=alternate hreflang=de href=/de><meta property=og:a content=b><meta name=twitter:a content=b><script type=application/ld+json>{}</script><meta name=googlebot content=noindex>", 500)
	p := page(t, extract.Input{Body: []byte("<title>" + long + "</title><meta name=description content=" + long + "><link rel=canonical href=" + long + "><meta name=robots content=" + long + ">" + body), ContentType: "text/html;charset=utf-8"})
	f := p.Facts
	if len(f.H1) != extract.MaxHeadings || len(f.H2) != extract.MaxHeadings || len(f.Hreflang) != extract.MaxHreflang || len(f.OG) != extract.MaxPairs ||
		len(f.Twitter) != extract.MaxPairs || len(f.JSONLD) != extract.MaxJSONLD || len(f.BotRobots) != extract.MaxBots || len(f.H1[0]) != extract.MaxHeading {
		t.Errorf("lists: %d %d %d %d %d %d %d", len(f.H1), len(f.H2), len(f.Hreflang), len(f.OG), len(f.Twitter), len(f.JSONLD), len(f.BotRobots))
	}
	if f.H1Count != 500 || f.JSONLDCount != 500 || f.Notes&extract.NoteFactsCut == 0 {
		t.Errorf("counts %d %d, notes %b", f.H1Count, f.JSONLDCount, f.Notes)
	}
	if len(f.Title) > extract.MaxTitle || len(f.Title) < extract.MaxTitle-2 || len(f.Description) > extract.MaxDescription || f.Canonical != "" || f.CanonicalCount != 1 || f.Robots != "" {
		t.Errorf("texts: title %d, description %d, canonical %d, robots %d bytes", len(f.Title), len(f.Description), len(f.Canonical), len(f.Robots))
	}
}

// garbage builds inputs that are hard on parsers that look back or search ahead again and again.
func garbage(n int) map[string][]byte {
	rng := rand.New(rand.NewPCG(8, 8))
	random := make([]byte, n)
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	soup := make([]byte, 0, n)
	pieces := []string{"<", ">", "&", "<!--", "<a href=", "\"", "'", "</", "<script>", "</script", "<svg>", "<![CDATA[", "]]>", "=", " ", "x", "&#", "<title>", "</title>", "\x00", "\xff", "<meta charset="}
	for len(soup) < n {
		soup = append(soup, pieces[rng.IntN(len(pieces))]...)
	}
	out := map[string][]byte{"random": random, "soup": soup}
	for _, piece := range []string{"<", "</", "<!", "<!-", "<!--", "-->", "<?", "&", "&a", "&#x", "&amp", "<a ", "<a =", "<a b='", "<a href=", "<script>", "<script><!--", "<!--<script>", "</script", "<title>", "<svg>", "<svg><![CDATA[", "<svg><g>", "</g>",
		"\x00", "\xff", "\xe4", "\r", "\"", "<template>", "</template>", "<textarea></textare", "<h1>", "<img srcset='a,", "a,", "a (,", "</p>", "<plaintext", "<math><mi>", "<meta charset=x>", "<a><svg></a>", "[{", "\"@type\":"} {
		out[fmt.Sprintf("%q", piece)] = bytes.Repeat([]byte(piece), n/len(piece))
	}
	for _, wrap := range []string{"<script type=application/ld+json>%s", "<img srcset=\"%s\">", "<meta http-equiv=refresh content='1;%s'>", "<meta name=robots content='%s'>", "<svg>%s", "<a href=x>%s", "<h1>%s", "<title>%s</title>", "<a rel='%s' href=x>"} {
		for _, piece := range []string{"[", "a,", "a (,", " ", "&amp;", "x: y,", "unavailable_after: Sun,", "<g>", "</x>"} {
			out[fmt.Sprintf(wrap, piece)] = fmt.Appendf(nil, wrap, strings.Repeat(piece, n/len(piece)))
		}
	}
	return out
}

// TestGarbageTakesLinearTime reads each input at one size and at four times that. Linear work takes four times as long; the bound
// leaves room for a busy machine and none for quadratic work.
func TestGarbageTakesLinearTime(t *testing.T) {
	e := extract.New(extract.Config{})
	best := func(body []byte) time.Duration {
		least := time.Hour
		for range 3 {
			start := time.Now()
			e.HTML(extract.Input{Body: body}).Release()
			least = min(least, time.Since(start))
		}
		return least
	}
	if raceEnabled {
		t.Skip("times mean nothing under the race detector")
	}
	small := garbage(60_000)
	for name, body := range garbage(240_000) {
		a, b := best(small[name]), best(body)
		if b > 12*a && b > 20*time.Millisecond {
			t.Errorf("%s: %v for 60 KB, %v for 240 KB", name, a, b)
		}
	}
}

func TestFiveMegabytesOfGarbage(t *testing.T) {
	e := extract.New(extract.Config{})
	size, limit := 5<<20, 2*time.Second
	if raceEnabled { // some ten times slower; the point here is the size
		size, limit = size/8, 5*time.Second
	}
	for name, body := range garbage(size) {
		if len(name) > 8 && name != "random" {
			continue // the bare pieces; wrapped ones are covered at smaller sizes
		}
		start := time.Now()
		e.HTML(extract.Input{Body: body}).Release()
		if d := time.Since(start); d > limit {
			t.Errorf("%s: took %v", name, d)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	e := extract.New(extract.Config{Product: "deepcrawlcluster"})
	bodies := [][]byte{benchPage(), []byte("<title>a</title><a href='?a&amp;b'>x</a>"), []byte("<meta charset=shift_jis><title>\x82\xa0</title>"), nil}
	var want []extract.Facts
	for _, b := range bodies {
		p := e.HTML(extract.Input{Body: b})
		want = append(want, p.Facts)
		p.Release()
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				n := (g + i) % len(bodies)
				p := e.HTML(extract.Input{Body: bodies[n]})
				if !reflect.DeepEqual(p.Facts, want[n]) {
					t.Errorf("page %d differs: %+v", n, p.Facts)
				}
				p.Release()
			}
		})
	}
	wg.Wait()
}

func TestReleaseGivesBuffersBack(t *testing.T) {
	e := extract.New(extract.Config{})
	body := []byte("<title>kept</title><h1>kept too</h1><meta property=og:x content=y>" + strings.Repeat("<a href='?a&amp;b'>x</a>", 100))
	p := e.HTML(extract.Input{Body: body})
	facts := p.Facts
	p.Release()
	if p.Facts.Title != "" || len(p.Links) != 0 {
		t.Error("a released page still has content")
	}
	for range 10 { // overwrite whatever the pool gives back
		e.HTML(extract.Input{Body: bytes.ToUpper(body)}).Release()
	}
	if facts.Title != "kept" || facts.H1[0] != "kept too" || facts.OG[0].Value != "y" {
		t.Errorf("copied facts changed: %+v", facts)
	}
}

func TestAllocations(t *testing.T) {
	if testing.CoverMode() != "" || raceEnabled {
		t.Skip("the race detector and coverage allocate, and the pool then drops pages at random")
	}
	e := extract.New(extract.Config{Product: "deepcrawlcluster"})
	in := extract.Input{Body: benchPage(), ContentType: "text/html; charset=utf-8"}
	for range 20 {
		e.HTML(in).Release()
	}
	// The strings of the facts, their lists, and now and then a page the collector took from the pool.
	if n := testing.AllocsPerRun(200, func() { e.HTML(in).Release() }); n > 8 {
		t.Errorf("%v allocations a page", n)
	}
}
