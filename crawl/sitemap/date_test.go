package sitemap_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"deepcrawl/crawl/sitemap"
)

func TestDatesOfAllForms(t *testing.T) {
	tests := []struct{ in, want string }{
		// W3C datetime, all precisions
		{"2024", "2024-01-01T00:00:00Z"},
		{"2024-05", "2024-05-01T00:00:00Z"},
		{"2024-05-06", "2024-05-06T00:00:00Z"},
		{"2024-05-06T10:11Z", "2024-05-06T10:11:00Z"},
		{"2024-05-06T10:11:12+02:00", "2024-05-06T08:11:12Z"},
		{"2024-05-06T10:11:12.5-05:30", "2024-05-06T15:41:12.5Z"},
		{"2024-05-06T10:11:12.123456789Z", "2024-05-06T10:11:12.123456789Z"},
		// what sites make of it
		{"2024-05-06T10:11:12", "2024-05-06T10:11:12Z"},
		{"2024-05-06 10:11:12", "2024-05-06T10:11:12Z"},
		{"2024-05-06 10:11:12 UTC", "2024-05-06T10:11:12Z"},
		{"2024-05-06 10:11:12 +0200", "2024-05-06T08:11:12Z"},
		{"2024-05-06T10:11:12+0200", "2024-05-06T08:11:12Z"},
		{"2024-05-06T10:11:12+02", "2024-05-06T08:11:12Z"},
		{"2024-05-06T10:11:12,5Z", "2024-05-06T10:11:12.5Z"},
		{"2024-05-06t10:11:12z", "2024-05-06T10:11:12Z"},
		{"2024-05-06T24:00:00Z", "2024-05-07T00:00:00Z"},
		{"2024-05-06T", "2024-05-06T00:00:00Z"},
		{"2024-05-06Z", "2024-05-06T00:00:00Z"},
		{"2024-05-06+02:00", "2024-05-05T22:00:00Z"},
		{"2024-5-6", "2024-05-06T00:00:00Z"},
		{"2024/05/06", "2024-05-06T00:00:00Z"},
		{"20240506", "2024-05-06T00:00:00Z"},
		{"20240506T101112Z", "2024-05-06T10:11:12Z"},
		{"\n 2024-05-06 \n", "2024-05-06T00:00:00Z"},
		// RFC 822, 1123, 850 and their relatives
		{"Mon, 06 May 2024 10:11:12 GMT", "2024-05-06T10:11:12Z"},
		{"Mon, 06 May 2024 10:11:12 +0200", "2024-05-06T08:11:12Z"},
		{"Mon, 06 May 2024 10:11:12 +0200 (CEST)", "2024-05-06T08:11:12Z"},
		{"Mon, 6 May 2024 10:11 EST", "2024-05-06T15:11:00Z"},
		{"Mon, 06 May 24 10:11:12 PDT", "2024-05-06T17:11:12Z"},
		{"06 May 2024 10:11:12", "2024-05-06T10:11:12Z"},
		{"06 May 2024", "2024-05-06T00:00:00Z"},
		{"6 May 99", "1999-05-06T00:00:00Z"},
		{"Monday, 06-May-24 10:11:12 GMT", "2024-05-06T10:11:12Z"},
		{"Mon May  6 10:11:12 2024", "2024-05-06T10:11:12Z"},
		{"Mon May 06 10:11:12 CEST 2024", "2024-05-06T08:11:12Z"},
		{"May 6, 2024", "2024-05-06T00:00:00Z"},
		{"Monday, May 6, 2024 10:11:12 UTC", "2024-05-06T10:11:12Z"},
		{"Mon, 06 May 2024 10:11:12 GMT+02:00", "2024-05-06T08:11:12Z"},
		{"Mon, 06 Sept 2024 10:11:12 XYZ", "2024-09-06T10:11:12Z"},
		// not a date, or a placeholder
		{"0000-00-00", ""}, {"0001-01-01T00:00:00", ""}, {"9999-12-31", ""}, {"1969-12-31", ""}, {"2024-13-01", ""}, {"2024-02-30", ""},
		{"2024-05-06T25:00Z", ""}, {"2024-05-06T10:61Z", ""}, {"yesterday", ""}, {"1714989072", ""}, {"2024-05-06junk", ""}, {"Mon, 32 May 2024", ""},
		{"", ""}, {"-", ""}, {"May", ""}, {"06 Mayo", ""}, {"2024-05-06T10:11:12+99:99", ""}, {"20", ""}, {"2024-05-06T10:11:12+2x", ""}, {"Mon May", ""},
	}
	for _, tt := range tests {
		got, info, err := decode(t, []byte(us("<url><loc>http://x/</loc><lastmod>"+tt.in+"</lastmod></url>")), sitemap.Limits{})
		if err != nil || len(got) != 1 {
			t.Fatalf("%q: %v, %v", tt.in, got, err)
		}
		s := ""
		if !got[0].LastMod.IsZero() {
			s = got[0].LastMod.Format(time.RFC3339Nano)
		}
		if s != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, s, tt.want)
		}
		if s == "" && tt.in != "" && len(info.Warnings) == 0 {
			t.Errorf("%q: no warning", tt.in)
		}
	}
}

// What encoding/xml escapes is read back the same, whatever the prefix and
// whatever stands between.
func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type page struct{ loc, alt string }
		word := rapid.StringOfN(rapid.SampledFrom([]rune(`ab/?&<>"'=;#%日é]-!`)), 1, 30, -1)
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) page { return page{"h" + word.Draw(t, "loc"), "h" + word.Draw(t, "alt")} }), 0, 8).Draw(t, "pages")
		prefix := rapid.SampledFrom([]string{"", "s:", "sm-1:"}).Draw(t, "prefix")
		filler := rapid.SampledFrom([]string{"", "\n  ", "<!-- <url> -->", `<image:image a="'>"><image:loc>no</image:loc></image:image>`, "<x/>", "<?pi?>"})
		esc := func(s string) string {
			var b bytes.Buffer
			if err := xml.EscapeText(&b, []byte(s)); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		var b strings.Builder
		fmt.Fprintf(&b, "<?xml version='1.0'?><%surlset>", prefix)
		for _, p := range list {
			f := filler.Draw(t, "filler")
			loc := esc(p.loc)
			if rapid.Bool().Draw(t, "cdata") && !strings.Contains(p.loc, "]]>") {
				loc = "<![CDATA[" + p.loc + "]]>"
			}
			fmt.Fprintf(&b, `%[1]s<%[2]surl>%[1]s<%[2]sloc>%[3]s</%[2]sloc>%[1]s<xhtml:link rel="alternate" hreflang="de" href="%[4]s"/></%[2]surl>`, f, prefix, loc, esc(p.alt))
		}
		fmt.Fprintf(&b, "</%surlset>", prefix)
		var got []page
		info, err := sitemap.Decode(t.Context(), strings.NewReader(b.String()), sitemap.Limits{}, func(e sitemap.Entry) error {
			if len(e.Alternates) != 1 {
				t.Fatalf("%s: %+v", b.String(), e)
			}
			got = append(got, page{e.Loc, e.Alternates[0].Href})
			return nil
		})
		if err != nil || len(info.Warnings) != 0 || fmt.Sprint(got) != fmt.Sprint(list) {
			t.Fatalf("%s\ngot  %q, %+v, %v\nwant %q", b.String(), got, info, err, list)
		}
	})
}
