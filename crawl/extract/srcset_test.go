package extract_test

import (
	"slices"
	"strings"
	"testing"

	"deepcrawl/crawl/extract"
)

func TestSrcset(t *testing.T) {
	for value, want := range map[string]string{
		"a.png":                 "a.png",
		"a.png 1x, b.png 2x":    "a.png b.png",
		"a.png 100w,b.png 200w": "a.png b.png",
		"a.png, b.png":          "a.png b.png",
		"a.png,b.png":           "a.png,b.png", // a comma inside is part of the URL
		"a,b.png 1x, c.png 2x":  "a,b.png c.png",
		"data:image/png;base64,AAA,B 1x, c.png 2x": "data:image/png;base64,AAA,B c.png",
		" ,, a.png , ,b.png 2x,":                   "a.png b.png",
		"a.png,, b.png":                            "a.png b.png",
		"a.png 1q, b.png 2x":                       "b.png", // unknown descriptor
		"a.png 1x 2x, b.png":                       "b.png", // two densities
		"a.png 1x 100w, b.png":                     "b.png",
		"a.png 100w 50h, b.png 50h, c.png 2x 50h":  "a.png",
		"a.png 0w, b.png -1x, c.png 1.5x":          "c.png",
		"a.png (1x, 2x), b.png":                    "b.png", // a comma in parentheses
		"a.png 1e3x, b.png .5x, c.png 1.x":         "a.png b.png",
		"":                                         "",
		",":                                        "",
		"\n\ta.png\n2x":                            "a.png",
	} {
		if got := strings.Join(extract.SrcsetURLs(value), " "); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

func FuzzSrcset(f *testing.F) {
	for _, s := range []string{"a 1x, b 2x", "a,b c", "data:,a 1w 2h", "a (,) , b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		urls := extract.SrcsetURLs(s)
		for _, u := range urls {
			if u == "" || strings.ContainsAny(u, " \t\n\f\r") || u[0] == ',' || u[len(u)-1] == ',' || !strings.Contains(s, u) {
				t.Errorf("%q: %q", s, u)
			}
		}
		if more := extract.SrcsetURLs("first 1x, " + s); len(more) != len(urls)+1 || !slices.Equal(more[1:], urls) {
			t.Errorf("%q: %q behind a candidate, %q alone", s, more, urls)
		}
	})
}
