package sitemap_test

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"deepcrawl/crawl/sitemap"
)

func zip(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// flood is a urlset of n entries made while it is read.
type flood struct {
	i, n int
	left []byte
}

func newFlood(n int) *flood { return &flood{n: n, left: []byte(`<?xml version="1.0"?><urlset>`)} }

func (f *flood) Read(p []byte) (int, error) {
	if len(f.left) == 0 {
		switch {
		case f.i == f.n:
			f.i++
			f.left = append(f.left[:0], "</urlset>"...)
		case f.i > f.n:
			return 0, io.EOF
		default:
			f.i++
			f.left = fmt.Appendf(f.left[:0], "<url><loc>https://shop.example/category/product-%d.html</loc><lastmod>2024-05-06T10:11:12+02:00</lastmod>"+
				"<changefreq>weekly</changefreq><priority>0.5</priority></url>\n", f.i)
		}
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

func TestAMillionEntriesEndAtTheLimit(t *testing.T) {
	t.Run("of entries", func(t *testing.T) {
		n := 0
		info, err := sitemap.Decode(t.Context(), newFlood(1_000_000), sitemap.Limits{}, func(sitemap.Entry) error { n++; return nil })
		if err != nil || n != 50_000 || !info.Truncated || info.Entries != n {
			t.Errorf("got %d, %+v, %v", n, info, err)
		}
	})
	t.Run("of bytes, in little memory", func(t *testing.T) {
		n, most := 0, uint64(0)
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		before := m.HeapAlloc
		info, err := sitemap.Decode(t.Context(), newFlood(1_000_000), sitemap.Limits{MaxEntries: 1 << 30}, func(sitemap.Entry) error {
			if n++; n%50_000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
			return nil
		})
		if err != nil || !info.Truncated || info.Bytes != 50<<20 || n < 200_000 {
			t.Errorf("got %d, %+v, %v", n, info, err)
		}
		if most > before+2<<20 {
			t.Errorf("the heap grew by %d KiB", (most-before)>>10)
		}
	})
}

func TestGzip(t *testing.T) {
	body := []byte(us(pages("1", "2", "3")))
	one := zip(body)
	t.Run("once, twice, in members, with rubbish behind", func(t *testing.T) {
		half := len(body) / 2
		for name, b := range map[string][]byte{
			"once":                one,
			"twice":               zip(one),
			"in members":          append(zip(body[:half]), zip(body[half:])...),
			"with rubbish behind": append(append([]byte{}, one...), "rubbish"...),
			"with zeros behind":   append(append([]byte{}, one...), make([]byte, 512)...),
		} {
			if got, _, err := decode(t, b, sitemap.Limits{}); err != nil || locs(got) != "1 2 3" {
				t.Errorf("%s: got %q, %v", name, locs(got), err)
			}
		}
	})
	t.Run("cut off: what was there is delivered", func(t *testing.T) {
		var many []string
		for i := range 5000 {
			many = append(many, fmt.Sprint(i*7919))
		}
		b := zip([]byte(us(pages(many...))))
		got, _, err := decode(t, b[:len(b)/2], sitemap.Limits{})
		if !errors.Is(err, sitemap.ErrSyntax) || !errors.Is(err, io.ErrUnexpectedEOF) || len(got) < 1000 {
			t.Errorf("got %d, %v", len(got), err)
		}
	})
	t.Run("a wrong checksum", func(t *testing.T) {
		b := append([]byte{}, one...)
		b[len(b)-6] ^= 1
		if got, _, err := decode(t, b, sitemap.Limits{}); !errors.Is(err, sitemap.ErrSyntax) || locs(got) != "1 2 3" {
			t.Errorf("got %q, %v", locs(got), err)
		}
	})
	t.Run("a broken header", func(t *testing.T) {
		if _, _, err := decode(t, []byte("\x1f\x8b\x08\xff"), sitemap.Limits{}); !errors.Is(err, sitemap.ErrSyntax) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("three times is no sitemap", func(t *testing.T) {
		if _, _, err := decode(t, zip(zip(one)), sitemap.Limits{}); err == nil {
			t.Error("no error")
		}
	})
	zeros := make([]byte, 40<<20)
	copy(zeros, us(pages("1"))[:90])
	t.Run("a bomb", func(t *testing.T) {
		_, info, err := decode(t, zip(zeros), sitemap.Limits{})
		if !errors.Is(err, sitemap.ErrBomb) || info.Bytes > 30<<20 {
			t.Errorf("got %+v, %v", info, err)
		}
	})
	t.Run("a bomb within a bomb", func(t *testing.T) {
		if _, info, err := decode(t, zip(zip(zeros)), sitemap.Limits{}); !errors.Is(err, sitemap.ErrBomb) || info.Bytes > 2<<20 {
			t.Errorf("got %+v, %v", info, err)
		}
	})
	t.Run("a very repetitive sitemap is none", func(t *testing.T) {
		b := zip([]byte(us(strings.Repeat(pages("same"), 20000))))
		if got, _, err := decode(t, b, sitemap.Limits{MaxRatio: 1000}); err != nil || len(got) != 20000 {
			t.Errorf("got %d, %v", len(got), err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		us(pages("1", "2")), "<sitemapindex><sitemap><loc>a</loc>", "http://x/1\nhttp://x/2", "<rss><item><link>x</link><pubDate>Mon, 06 May 2024 10:00:00 GMT</pubDate>",
		"<feed><entry><link href=\"x\"/><updated>2024-01-01</updated></entry></feed>", "<urlset><url><loc><![CDATA[x]]></loc><!-- --></url>", "<html>",
		"\xff\xfe<\x00u\x00r\x00l\x00>\x00", string(zip([]byte(us(pages("1"))))), "<urlset><url><loc>http://x/&#x41;&amp;&</loc><xhtml:link hreflang='de' href=\"y",
	} {
		f.Add([]byte(s))
	}
	l := sitemap.Limits{MaxBytes: 1 << 16, MaxEntries: 50, MaxURLLen: 100, MaxAlternates: 3}
	f.Fuzz(func(t *testing.T, body []byte) {
		read := func(r io.Reader) (out []sitemap.Entry, info sitemap.Info, err error) {
			info, err = sitemap.Decode(t.Context(), r, l, func(e sitemap.Entry) error {
				if e.Loc == "" || len(e.Loc) > l.MaxURLLen || !utf8.ValidString(e.Loc) || e.Kind == sitemap.Unknown || len(e.Alternates) > l.MaxAlternates {
					t.Errorf("delivered %+v", e)
				}
				out = append(out, e)
				return nil
			})
			return out, info, err
		}
		got, info, err := read(bytes.NewReader(body))
		if info.Entries != len(got) || info.Entries > l.MaxEntries || info.Bytes > l.MaxBytes || len(info.Warnings) > 20 {
			t.Errorf("%+v with %d entries", info, len(got))
		}
		if err != nil && !errors.Is(err, sitemap.ErrSyntax) && !errors.Is(err, sitemap.ErrNotSitemap) && !errors.Is(err, sitemap.ErrBomb) {
			t.Errorf("error of no kind: %v", err)
		}
		for _, w := range info.Warnings {
			if !utf8.ValidString(w) {
				t.Errorf("warning %q", w)
			}
		}
		slow, slowInfo, slowErr := read(iotest.OneByteReader(bytes.NewReader(body)))
		if !reflect.DeepEqual(got, slow) || fmt.Sprint(info, err) != fmt.Sprint(slowInfo, slowErr) {
			t.Errorf("at once %v %+v %v\nby byte %v %+v %v", got, info, err, slow, slowInfo, slowErr)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	run := func(name string, body []byte, n int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				info, err := sitemap.Decode(b.Context(), bytes.NewReader(body), sitemap.Limits{}, func(sitemap.Entry) error { return nil })
				if err != nil || info.Entries != n {
					b.Fatal(info, err)
				}
			}
		})
	}
	body, err := io.ReadAll(newFlood(50_000))
	if err != nil {
		b.Fatal(err)
	}
	run("50,000 entries", body, 50_000)
	run("50,000 entries, gzipped", zip(body), 50_000)
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, "https://shop.example/category/product-%d.html\n", i)
	}
	run("50,000 lines", []byte(text.String()), 50_000)
	langs := strings.Repeat(`<xhtml:link rel="alternate" hreflang="de" href="https://shop.example/de/category/product-1.html"/>`+"\n", 20)
	run("10,000 entries of 20 languages", []byte(us(strings.Repeat("<url><loc>https://shop.example/1</loc>"+langs+"</url>", 10_000))), 10_000)
}

// BenchmarkEncodingXML is what the standard library takes for the same file.
func BenchmarkEncodingXML(b *testing.B) {
	body, err := io.ReadAll(newFlood(50_000))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		d := xml.NewDecoder(bytes.NewReader(body))
		d.Strict = false
		n := 0
		for {
			tok, err := d.RawToken()
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			if s, ok := tok.(xml.StartElement); ok && s.Name.Local == "url" {
				n++
			}
		}
		if n != 50_000 {
			b.Fatal(n)
		}
	}
}
