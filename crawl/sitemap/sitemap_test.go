package sitemap_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"deepcrawl/crawl/sitemap"
)

func locs(es []sitemap.Entry) string {
	var out []string
	for _, e := range es {
		out = append(out, strings.TrimPrefix(e.Loc, "http://x/"))
	}
	return strings.Join(out, " ")
}

// us makes a urlset of pages http://x/NAME.
func us(inside string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + inside + `</urlset>`
}

func pages(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "<url><loc>http://x/%s</loc></url>\n", n)
	}
	return b.String()
}

func TestDamageCostsOnlyWhatItHits(t *testing.T) {
	tests := []struct {
		name, body, want string
		syntax           bool
	}{
		{"nothing wrong", us(pages("1", "2")), "1 2", false},
		{"cut in the middle of a loc", us(pages("1") + "<url><loc>http://x/2")[:len(us(pages("1")+"<url><loc>http://x/2"))-len("</urlset>")], "1 2", true},
		{"cut in the middle of a tag", us(pages("1", "2"))[:len(us(pages("1", "2")))-12], "1 2", true},
		{"the root is not closed", strings.TrimSuffix(us(pages("1", "2")), "</urlset>"), "1 2", true},
		{"an entry is not closed", us("<url><loc>http://x/1</loc>" + pages("2")), "1 2", true},
		{"a loc is not closed", us("<url><loc>http://x/1</url>" + pages("2")), "1 2", true},
		{"a loc runs into lastmod", us("<url><loc>http://x/1<lastmod>2024-01-01</lastmod></url>" + pages("2")), "1 2", true},
		{"a loc is closed by another name", us("<url><loc>http://x/1</lastmod></url>" + pages("2")), "1 2", true},
		{"an end tag lost its bracket", us("<url><loc>http://x/1</loc</url>" + pages("2")), "1 2", true},
		{"a start tag lost its bracket", us("<url><loc>http://x/1</loc><lastmod</url>" + pages("2")), "1 2", true},
		{"a quote is missing", us(`<url><loc>http://x/1</loc><xhtml:link href="http://x/de></url>` + pages("2", "3")), "1 2 3", true},
		{"an entry is closed twice", us(pages("1") + "</url>" + pages("2")), "1 2", true},
		{"a stray end tag", us("<url><loc>http://x/1</loc></b></url>" + pages("2")), "1 2", true},
		{"a stray less-than sign", us("<url>< <loc>http://x/1?a<3</loc></url>" + pages("2")), "1?a<3 2", true},
		{"an extension is not closed", us("<url><image:image><image:loc>http://x/i.jpg<loc>http://x/1</loc></url>" + pages("2")), "2", true},
		{"an ampersand is not escaped", us("<url><loc>http://x/?a=1&b=2&c;&amp;d&#x41;&#65;&nbsp</loc></url>"), "?a=1&b=2&c;&dAA&nbsp", false},
		{"an entity nobody declared", us("<url><loc>http://x/&eacute;&foo;</loc></url>"), "é&foo;", false},
		{"an entity of the document's own", `<!DOCTYPE u [<!ENTITY x "y">]>` + us("<url><loc>http://x/&x;</loc></url>"), "&x;", false},
		{"control characters and a NUL", us("<url><loc>\x00 http://x/1\x01</loc></url>"), "\x00 http://x/1\x01", false},
		{"two documents in one", us(pages("1")) + us(pages("2")), "1 2", false},
		{"junk behind the root", us(pages("1")) + "<!-- generated --><br>\n123", "1", false},
		{"a comment is not closed", us(pages("1") + "<!-- " + pages("2")), "1", true},
		{"a CDATA is not closed", us(pages("1") + "<url><loc><![CDATA[http://x/2</loc></url>"), "1 2</loc></url></urlset>", true},
		{"an entry within an entry", us("<url><loc>http://x/1</loc><url><loc>http://x/2</loc></url></url>"), "1 2", true},
		{"no root at all", pages("1", "2"), "1 2", false},
		{"pages in a file that says index", `<sitemapindex>` + pages("1") + `</sitemapindex>`, "1", false},
		{"upper case", "<URLSET><URL><LOC>http://x/1</LOC></URL></URLSET>", "1", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, info, err := decode(t, []byte(tt.body), sitemap.Limits{})
			want := tt.want
			if locs(got) != want && !(tt.name == "control characters and a NUL" && got[0].Loc == want) {
				t.Errorf("got %q, want %q", locs(got), want)
			}
			if errors.Is(err, sitemap.ErrSyntax) != tt.syntax || (err != nil) != tt.syntax {
				t.Errorf("error %v, want one: %v", err, tt.syntax)
			}
			if info.Kind != sitemap.URLSet {
				t.Errorf("kind %v", info.Kind)
			}
			if tt.syntax && (len(info.Warnings) == 0 || !strings.Contains(err.Error(), "line ")) {
				t.Errorf("nothing says where: %v, %q", err, info.Warnings)
			}
		})
	}
}

func TestFieldsAreReadWhereverTheyStand(t *testing.T) {
	const ns = `xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"`
	tests := []struct {
		name, body string
		want       sitemap.Entry
	}{
		{"spaces around everything", us("<url>\n<loc>\n http://x/1 \n</loc><priority> 0.7 </priority><changefreq> Daily </changefreq></url>"),
			sitemap.Entry{Loc: "http://x/1", Priority: 0.7, HasPriority: true, ChangeFreq: "daily"}},
		{"CDATA", us("<url><loc><![CDATA[http://x/?a=1&b=2]]></loc><priority><![CDATA[1.0]]></priority></url>"),
			sitemap.Entry{Loc: "http://x/?a=1&b=2", Priority: 1, HasPriority: true}},
		{"text and CDATA mixed", us("<url><loc>http://x/?a=1&amp;<![CDATA[b&amp;]]>c</loc></url>"), sitemap.Entry{Loc: "http://x/?a=1&b&amp;c"}},
		{"a comment inside", us("<url><loc>http://x/<!-- no -->1</loc></url>"), sitemap.Entry{Loc: "http://x/1"}},
		{"any prefix", `<s:urlset xmlns:s="x"><s:url><s:loc>http://x/1</s:loc><s:priority>0.2</s:priority></s:url></s:urlset>`,
			sitemap.Entry{Loc: "http://x/1", Priority: 0.2, HasPriority: true}},
		{"a prefix on the entries only", `<urlset><s:url><s:loc>http://x/1</s:loc></s:url></urlset>`, sitemap.Entry{Loc: "http://x/1"}},
		{"an image before the page", us(`<url><image:image><image:loc>http://x/i.jpg</image:loc></image:image><loc>http://x/1</loc></url>`),
			sitemap.Entry{Loc: "http://x/1"}},
		{"an image in its own default namespace", us(`<url><image xmlns="i"><loc>http://x/i.jpg</loc></image><loc>http://x/1</loc></url>`),
			sitemap.Entry{Loc: "http://x/1"}},
		{"an image's loc at the wrong place", us(`<url><image:loc>http://x/i.jpg</image:loc><loc>http://x/1</loc></url>`), sitemap.Entry{Loc: "http://x/1"}},
		{"news", us(`<url><loc>http://x/1</loc><news:news><news:publication_date>2024-01-01</news:publication_date></news:news></url>`),
			sitemap.Entry{Loc: "http://x/1"}},
		{"two locs: the first", us(`<url><loc>http://x/1</loc><loc>http://x/2</loc></url>`), sitemap.Entry{Loc: "http://x/1"}},
		{"a decimal comma", us(`<url><loc>http://x/1</loc><priority>0,5</priority></url>`), sitemap.Entry{Loc: "http://x/1", Priority: 0.5, HasPriority: true}},
		{"a priority out of range is kept", us(`<url><loc>http://x/1</loc><priority>10</priority></url>`), sitemap.Entry{Loc: "http://x/1", Priority: 10, HasPriority: true}},
		{"a priority that is none", us(`<url><loc>http://x/1</loc><priority>NaN</priority></url>`), sitemap.Entry{Loc: "http://x/1"}},
		{"a frequency that is none", us(`<url><loc>http://x/1</loc><changefreq>often</changefreq></url>`), sitemap.Entry{Loc: "http://x/1"}},
		{"a relative URL stays as it is", us(`<url><loc>/1</loc></url>`), sitemap.Entry{Loc: "/1"}},
		{"empty elements", us(`<url><lastmod/><loc>http://x/1</loc><priority/><image:image/></url>`), sitemap.Entry{Loc: "http://x/1"}},
		{"bytes that are not UTF-8", us("<url><loc>http://x/caf\xe9</loc></url>"), sitemap.Entry{Loc: "http://x/caf%E9"}},
		{"languages", us(`<url><loc>http://x/1</loc><xhtml:link rel="alternate" hreflang="de" href="http://x/de?a&amp;b"/>` +
			`<xhtml:link rel='alternate' hreflang='x-default' href='http://x/'></xhtml:link>` +
			`<link hreflang=fr href=http://x/fr /><xhtml:link rel="alternate" media="only screen" href="http://m.x/"/>` +
			`<xhtml:link rel="canonical" hreflang="en" href="http://x/c"/></url>`),
			sitemap.Entry{Loc: "http://x/1", Alternates: []sitemap.Alternate{{Lang: "de", Href: "http://x/de?a&b"},
				{Lang: "x-default", Href: "http://x/"}, {Lang: "fr", Href: "http://x/fr"}}}},
		{"an index", `<sitemapindex ` + ns + `><sitemap><loc>http://x/s.xml</loc><lastmod>2024-05-06</lastmod></sitemap></sitemapindex>`,
			sitemap.Entry{Kind: sitemap.Index, Loc: "http://x/s.xml", LastMod: time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC)}},
		{"sitemaps in a file that says urlset", `<urlset><sitemap><loc>http://x/s.xml</loc></sitemap></urlset>`,
			sitemap.Entry{Kind: sitemap.Index, Loc: "http://x/s.xml"}},
		{"RSS", `<rss><channel><link>http://x/</link><image><url>http://x/i</url><link>http://x/</link></image><item><description><p>a<link>b</p></description>` +
			`<link>http://x/1</link><guid>http://x/g</guid><source url="u">s</source><pubDate>Mon, 06 May 2024 10:00:00 +0200</pubDate></item></channel></rss>`,
			sitemap.Entry{Kind: sitemap.RSS, Loc: "http://x/1", LastMod: time.Date(2024, 5, 6, 8, 0, 0, 0, time.UTC)}},
		{"RSS with a guid only", `<rss><item><guid isPermaLink="false">abc</guid><guid>http://x/g</guid></item></rss>`, sitemap.Entry{Kind: sitemap.RSS, Loc: "http://x/g"}},
		{"RSS 1.0", `<rdf:RDF xmlns:dc="d"><item rdf:about="http://x/1"><title>t</title><dc:date>2024-05-06T10:00+02:00</dc:date></item></rdf:RDF>`,
			sitemap.Entry{Kind: sitemap.RSS, Loc: "http://x/1", LastMod: time.Date(2024, 5, 6, 8, 0, 0, 0, time.UTC)}},
		{"Atom", `<a:feed xmlns:a="x"><a:link href="http://x/"/><a:entry><a:source><a:link href="http://x/s"/></a:source>` +
			`<a:link rel="self" href="http://x/self"/><a:link rel="alternate" href="http://x/1"/><a:published>2023-01-01</a:published>` +
			`<a:updated>2024-05-06T10:00:00.123Z</a:updated></a:entry></a:feed>`,
			sitemap.Entry{Kind: sitemap.Atom, Loc: "http://x/1", LastMod: time.Date(2024, 5, 6, 10, 0, 0, 123e6, time.UTC)}},
		{"PHP warnings in front", "<br />\n<b>Warning</b>: mysql() in <b>x.php</b><br />\n" + us(pages("1")), sitemap.Entry{Loc: "http://x/1"}},
		{"white space in front", "\n\n \t" + us(pages("1")), sitemap.Entry{Loc: "http://x/1"}},
		{"words in front", "Deprecated: foo in bar.php\n" + us(pages("1")), sitemap.Entry{Loc: "http://x/1"}},
		{"a stylesheet and a doctype", `<?xml version="1.0"?><?xml-stylesheet href="a>b"?><!DOCTYPE urlset SYSTEM "x">` + us(pages("1")), sitemap.Entry{Loc: "http://x/1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.want.Kind == sitemap.Unknown {
				tt.want.Kind = sitemap.URLSet
			}
			got, info, err := decode(t, []byte(tt.body), sitemap.Limits{})
			if err != nil || len(got) != 1 {
				t.Fatalf("got %+v, %v", got, err)
			}
			if fmt.Sprintf("%+v", got[0]) != fmt.Sprintf("%+v", tt.want) || info.Kind != tt.want.Kind {
				t.Errorf("got  %+v\nwant %+v", got[0], tt.want)
			}
		})
	}
}

func TestEncodings(t *testing.T) {
	doc := func(name string) string {
		return `<?xml version="1.0" encoding="` + name + `"?><urlset><url><loc>http://x/é/日本</loc></url></urlset>`
	}
	latin := func(name string) string {
		return `<?xml version="1.0" encoding='` + name + `'?><urlset><url><loc>http://x/é</loc></url></urlset>`
	}
	u16 := func(e unicode.Endianness, b unicode.BOMPolicy) encoding.Encoding { return unicode.UTF16(e, b) }
	tests := []struct {
		name, body string
		enc        encoding.Encoding
		want       string
	}{
		{"UTF-8", doc("utf-8"), encoding.Nop, "é/日本"},
		{"UTF-8 with a mark", "\uFEFF" + doc("utf-8"), encoding.Nop, "é/日本"},
		{"UTF-8 that says UTF-16", doc("UTF-16"), encoding.Nop, "é/日本"},
		{"UTF-8 that says something unknown", doc("x-klingon"), encoding.Nop, "é/日本"},
		{"UTF-16LE with a mark", doc("UTF-16"), u16(unicode.LittleEndian, unicode.UseBOM), "é/日本"},
		{"UTF-16BE with a mark that says UTF-8", doc("utf-8"), u16(unicode.BigEndian, unicode.UseBOM), "é/日本"},
		{"UTF-16LE without a mark", doc("utf-16le"), u16(unicode.LittleEndian, unicode.IgnoreBOM), "é/日本"},
		{"UTF-16BE without a mark", doc("utf-16"), u16(unicode.BigEndian, unicode.IgnoreBOM), "é/日本"},
		{"UTF-32", doc("utf-32"), utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "é/日本"},
		{"UTF-32BE without a mark", doc("utf-32"), utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "é/日本"},
		{"ISO-8859-1", latin("ISO-8859-1"), charmap.ISO8859_1, "é"},
		{"Windows-1251", strings.ReplaceAll(latin("windows-1251"), "é", "й"), charmap.Windows1251, "й"},
		{"Shift_JIS", strings.ReplaceAll(doc("Shift_JIS"), "é/", ""), japanese.ShiftJIS, "日本"},
		{"GBK that is GB18030", strings.ReplaceAll(doc("gbk"), "é", "\U0001F600"), simplifiedchinese.GB18030, "\U0001F600/日本"},
		{"text in UTF-16 without a mark", "http://x/1\r\nhttp://x/2", u16(unicode.LittleEndian, unicode.IgnoreBOM), "1 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, err := tt.enc.NewEncoder().String(tt.body)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := decode(t, []byte(body), sitemap.Limits{})
			if err != nil || locs(got) != tt.want {
				t.Errorf("got %q, %v, want %q", locs(got), err, tt.want)
			}
		})
	}
}

func TestWhatIsNoSitemapIsSaidSo(t *testing.T) {
	tests := map[string]string{
		"an empty body":             "",
		"white space":               " \n\t\uFEFF\r\n",
		"an HTML page":              "<!DOCTYPE html>\n<html><head><title>404</title></head><body><url><loc>http://x/1</loc></url></body></html>",
		"an old HTML page":          `<!doctype HTML PUBLIC "-//W3C//DTD HTML 4.01//EN"><p>x`,
		"HTML without a doctype":    "<html><body>Not found</body></html>",
		"XHTML":                     `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body/></html>`,
		"other XML":                 `<?xml version="1.0"?><svg><path d="M0"/></svg>`,
		"an S3 error":               `<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>`,
		"JSON":                      `{"error":"not found"}`,
		"words":                     "this is a bogus sitemap",
		"an image":                  "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"URLs deep in another text": strings.Repeat("some words\n", 50) + "http://x/1\n",
		"a robots.txt":              "User-agent: *\nDisallow: /\nSitemap: http://x/s.xml\n",
		"gzipped HTML":              string(zip([]byte("<html></html>"))),
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := decode(t, []byte(body), sitemap.Limits{})
			if !errors.Is(err, sitemap.ErrNotSitemap) || len(got) != 0 || !utf8.ValidString(err.Error()) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	t.Run("but an empty urlset is one", func(t *testing.T) {
		if _, info, err := decode(t, []byte("<urlset/>"), sitemap.Limits{}); err != nil || info.Kind != sitemap.URLSet {
			t.Errorf("got %+v, %v", info, err)
		}
	})
}

func TestTextLists(t *testing.T) {
	body := "\uFEFF  http://x/1  \r\n\r\nHTTPS://x/2\tsecond\r# a comment\nhttp://x/caf\xe9\nwww.x/3\n" +
		"http://x/" + strings.Repeat("long", 600) + "\nhttp://x/4 with space"
	got, info, err := decode(t, []byte(body), sitemap.Limits{})
	if want := "1 HTTPS://x/2 caf%E9 4 with space"; err != nil || locs(got) != want {
		t.Errorf("got %q, %v, want %q", locs(got), err, want)
	}
	if info.Kind != sitemap.Text || info.Skipped != 3 {
		t.Errorf("got %+v", info)
	}
}

func TestLimits(t *testing.T) {
	many := us(pages("1", "2", "3", "4"))
	t.Run("of entries", func(t *testing.T) {
		got, info, err := decode(t, []byte(many), sitemap.Limits{MaxEntries: 2})
		if locs(got) != "1 2" || !info.Truncated || err != nil || len(info.Warnings) == 0 {
			t.Errorf("got %q, %+v, %v", locs(got), info, err)
		}
	})
	t.Run("exactly as many entries are not too many", func(t *testing.T) {
		if _, info, err := decode(t, []byte(many), sitemap.Limits{MaxEntries: 4}); info.Truncated || err != nil {
			t.Errorf("got %+v, %v", info, err)
		}
	})
	t.Run("of bytes, which is no damage", func(t *testing.T) {
		n := int64(strings.Index(many, "/3<"))
		got, info, err := decode(t, []byte(many), sitemap.Limits{MaxBytes: n})
		if locs(got) != "1 2" || !info.Truncated || err != nil || info.Bytes != n {
			t.Errorf("got %q, %+v, %v", locs(got), info, err)
		}
	})
	t.Run("exactly as many bytes are not too many", func(t *testing.T) {
		got, info, err := decode(t, []byte(many), sitemap.Limits{MaxBytes: int64(len(many))})
		if len(got) != 4 || info.Truncated || err != nil {
			t.Errorf("got %q, %+v, %v", locs(got), info, err)
		}
	})
	t.Run("of a text's bytes: the cut line is not half a URL", func(t *testing.T) {
		got, info, err := decode(t, []byte("http://x/1\nhttp://x/2345\n"), sitemap.Limits{MaxBytes: 22})
		if locs(got) != "1" || !info.Truncated || err != nil {
			t.Errorf("got %q, %+v, %v", locs(got), info, err)
		}
	})
	t.Run("of a URL's length", func(t *testing.T) {
		long := strings.Repeat("a", 3000)
		got, info, err := decode(t, []byte(us(pages(long, "2", strings.Repeat("&amp;", 1000)))), sitemap.Limits{})
		if len(got) != 2 || got[0].Loc != "http://x/2" || info.Skipped != 1 || err != nil {
			t.Errorf("got %d entries, %+v, %v", len(got), info, err)
		}
	})
	t.Run("of alternates", func(t *testing.T) {
		link := `<xhtml:link hreflang="de" href="http://x/de"/>`
		got, _, err := decode(t, []byte(us("<url><loc>http://x/1</loc>"+strings.Repeat(link, 600)+"</url>")), sitemap.Limits{})
		if err != nil || len(got) != 1 || len(got[0].Alternates) != 500 {
			t.Errorf("got %d, %v", len(got), err)
		}
	})
	t.Run("of warnings", func(t *testing.T) {
		_, info, _ := decode(t, []byte(us(strings.Repeat("<url><lastmod>soon</lastmod></url>", 1000))), sitemap.Limits{})
		if len(info.Warnings) != 20 || info.Skipped != 1000 {
			t.Errorf("%d warnings, %d skipped", len(info.Warnings), info.Skipped)
		}
	})
	t.Run("of a tag's length", func(t *testing.T) {
		body := us(`<url><loc>http://x/1</loc></url><url a="` + strings.Repeat("x", 1<<20) + `"><loc>http://x/2</loc></url>` + pages("3"))
		got, _, err := decode(t, []byte(body), sitemap.Limits{})
		if !strings.HasSuffix(locs(got), "3") || !errors.Is(err, sitemap.ErrSyntax) {
			t.Errorf("got %q, %v", locs(got), err)
		}
	})
}

func TestErrorsOfOthersComeThrough(t *testing.T) {
	body := us(pages("1", "2", "3"))
	t.Run("yield's as it is", func(t *testing.T) {
		mine := errors.New("mine")
		n := 0
		info, err := sitemap.Decode(t.Context(), strings.NewReader(body), sitemap.Limits{}, func(sitemap.Entry) error {
			if n++; n == 2 {
				return mine
			}
			return nil
		})
		if !errors.Is(err, mine) || err.Error() != "mine" || n != 2 || info.Entries != 2 {
			t.Errorf("got %v after %d, %+v", err, n, info)
		}
	})
	t.Run("yield's, also where it looks like one of ours", func(t *testing.T) {
		_, err := sitemap.Decode(t.Context(), strings.NewReader("http://x/1\nhttp://x/2"), sitemap.Limits{}, func(sitemap.Entry) error {
			return sitemap.ErrNotSitemap
		})
		if !errors.Is(err, sitemap.ErrNotSitemap) || err.Error() != sitemap.ErrNotSitemap.Error() {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the reader's, after what it gave", func(t *testing.T) {
		reset := errors.New("connection reset")
		n := 0
		r := io.MultiReader(strings.NewReader(body[:strings.Index(body, "/3<")]), iotest.ErrReader(reset))
		_, err := sitemap.Decode(t.Context(), r, sitemap.Limits{}, func(sitemap.Entry) error { n++; return nil })
		if !errors.Is(err, reset) || errors.Is(err, sitemap.ErrSyntax) || n != 2 {
			t.Errorf("got %v after %d", err, n)
		}
	})
	t.Run("the reader's, at once", func(t *testing.T) {
		reset := errors.New("connection reset")
		if _, err := sitemap.Decode(t.Context(), iotest.ErrReader(reset), sitemap.Limits{}, nil); !errors.Is(err, reset) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the context's", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		_, err := sitemap.Decode(ctx, newFlood(1_000_000), sitemap.Limits{}, func(sitemap.Entry) error {
			if n++; n == 10 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || n > 5000 {
			t.Errorf("got %v after %d", err, n)
		}
	})
	t.Run("a reader that gives nothing for ever", func(t *testing.T) {
		if _, err := sitemap.Decode(t.Context(), nothing{}, sitemap.Limits{}, nil); err == nil {
			t.Error("no error")
		}
	})
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

func TestOneByteAtATimeIsTheSame(t *testing.T) {
	body := []byte(us("<!-- c --><url><loc><![CDATA[http://x/1]]>?a&amp;b</loc><xhtml:link hreflang=\"de\" href='http://x/d>e'/></url>" + pages("2", "3")))
	want, _, err := decode(t, body, sitemap.Limits{})
	if err != nil || len(want) != 3 {
		t.Fatalf("got %v, %v", want, err)
	}
	var got []sitemap.Entry
	if _, err := sitemap.Decode(t.Context(), iotest.DataErrReader(iotest.OneByteReader(bytes.NewReader(body))), sitemap.Limits{}, func(e sitemap.Entry) error {
		got = append(got, e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
