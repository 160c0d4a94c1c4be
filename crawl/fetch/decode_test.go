package fetch_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepcrawl/crawl/fetch"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const htmlType = "text/html; charset=utf-8"

var page = []byte("<!doctype html><title>Page</title>" + strings.Repeat("<p>Some words of a page, and some more.</p>\n", 200))

// coders compress in each coding.
var coders = map[string]func(w io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"raw": func(w io.Writer) io.WriteCloser {
		f, _ := flate.NewWriter(w, 9)
		return f
	},
	"br": func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, _ := zstd.NewWriter(w)
		return z
	},
}

func compress(coding string, b []byte) []byte {
	var buf bytes.Buffer
	w := coders[coding](&buf)
	w.Write(b)
	w.Close()
	return buf.Bytes()
}

func TestDecode(t *testing.T) {
	gz := compress("gzip", page)
	corrupt := bytes.Clone(gz)
	corrupt[len(corrupt)-6] ^= 0xff // in the checksum
	cases := []struct {
		name      string
		encoding  []string
		typ       string
		wire      []byte
		want      []byte
		truncated bool
		reason    fetch.Reason
	}{
		{"none", nil, htmlType, page, page, false, ""},
		{"gzip", []string{"gzip"}, htmlType, gz, page, false, ""},
		{"x-gzip in capitals", []string{"X-GZip"}, htmlType, gz, page, false, ""},
		{"deflate, with zlib's wrapper", []string{"deflate"}, htmlType, compress("deflate", page), page, false, ""},
		{"deflate, raw", []string{"deflate"}, htmlType, compress("raw", page), page, false, ""},
		{"brotli", []string{"br"}, htmlType, compress("br", page), page, false, ""},
		{"zstd", []string{"zstd"}, htmlType, compress("zstd", page), page, false, ""},
		{"two codings in one header", []string{"gzip, br"}, htmlType, compress("br", gz), page, false, ""},
		{"two codings in two headers", []string{"deflate", "gzip"}, htmlType, compress("gzip", compress("deflate", page)), page, false, ""},
		{"identity beside another", []string{"identity, gzip,"}, htmlType, gz, page, false, ""},
		{"gzip said, plain sent", []string{"gzip"}, htmlType, page, page, false, ""},
		{"deflate said, plain sent", []string{"deflate"}, htmlType, page, page, false, ""},
		{"br said, plain sent", []string{"br"}, htmlType, page, page, false, ""},
		{"zstd said, plain sent", []string{"zstd"}, htmlType, page, page, false, ""},
		{"gzip said twice, sent once", []string{"gzip, gzip"}, htmlType, gz, page, false, ""},
		{"gzip said once, sent twice", []string{"gzip"}, htmlType, compress("gzip", gz), page, false, ""},
		{"br said, gzip sent", []string{"br"}, htmlType, gz, page, false, ""},
		{"deflate said, gzip sent", []string{"deflate"}, htmlType, gz, page, false, ""},
		{"nothing said, gzip sent", nil, htmlType, gz, page, false, ""},
		{"nothing said, zstd sent", nil, "application/xhtml+xml", compress("zstd", page), page, false, ""},
		{"nothing said of an archive", nil, "application/gzip", gz, gz, false, ""},
		{"an archive, compressed once more", []string{"gzip"}, "application/x-gzip", compress("gzip", gz), gz, false, ""},
		{"a coding nobody has, plain sent", []string{"utf-8"}, htmlType, page, page, false, ""},
		{"a coding nobody has", []string{"compress"}, htmlType, []byte{0x1f, 0x9d, 0x90, 0, 1, 2}, nil, false, fetch.ReasonDecode},
		{"gzip said, noise sent", []string{"gzip"}, htmlType, []byte{0, 1, 2, 3, 4, 5, 0xff, 0xfe}, nil, false, fetch.ReasonDecode},
		{"the first bytes of zstd and no more", []string{"x, gzip"}, htmlType, []byte("(\xb5/\xfd"), nil, false, fetch.ReasonDecode},
		{"an empty body", []string{"gzip"}, htmlType, nil, nil, false, ""},
		{"two gzip members", []string{"gzip"}, htmlType, append(bytes.Clone(gz), gz...), append(bytes.Clone(page), page...), false, ""},
		{"gzip with padding behind", []string{"gzip"}, htmlType, append(bytes.Clone(gz), make([]byte, 100)...), page, false, ""},
		{"gzip with text behind", []string{"gzip"}, htmlType, append(bytes.Clone(gz), "<!-- served by cache 7 -->"...), page, false, ""},
		{"gzip without its checksum", []string{"gzip"}, htmlType, gz[:len(gz)-8], page, true, ""},
		{"gzip with a wrong checksum", []string{"gzip"}, htmlType, corrupt, page, true, ""},
		{"zlib with a wrong checksum", []string{"deflate"}, htmlType, func() []byte {
			z := compress("deflate", page)
			z[len(z)-1] ^= 0xff
			return z
		}(), page, true, ""},
		{"a hundred codings", []string{strings.Repeat("gzip,", 100)}, htmlType, gz, page, false, ""},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			body, truncated, reason, err := fetch.DecodeBody(tc.wire, tc.encoding, tc.typ, 5<<20, 250)
			if reason != tc.reason || truncated != tc.truncated {
				t.Errorf("got reason %q, truncated %v (%v); want %q, %v", reason, truncated, err, tc.reason, tc.truncated)
			}
			if tc.reason == "" && !bytes.Equal(body, tc.want) {
				t.Errorf("body: got %d bytes %.60q, want %d", len(body), body, len(tc.want))
			}
		})
	}
	for coding := range coders {
		header := strings.Replace(coding, "raw", "deflate", 1)
		t.Run("a cut "+coding+" body keeps what came", func(t *testing.T) {
			big := make([]byte, 400<<10) // letters at random, so that each part takes as long as the next
			rnd := rand.New(rand.NewPCG(1, 2))
			for i := range big {
				big[i] = 'a' + byte(rnd.IntN(26))
			}
			wire := compress(coding, big)
			body, truncated, reason, err := fetch.DecodeBody(wire[:len(wire)*2/3], []string{header}, htmlType, 5<<20, 250)
			if reason != "" || !truncated || err == nil || len(body) == 0 || !bytes.HasPrefix(big, body) {
				t.Errorf("got %d of %d bytes, reason %q, truncated %v (%v)", len(body), len(big), reason, truncated, err)
			}
		})
	}
}

func TestDecodeLimits(t *testing.T) {
	zeros := make([]byte, 20<<20)
	for coding := range coders {
		header := strings.Replace(coding, "raw", "deflate", 1)
		bomb := compress(coding, zeros)
		t.Run(coding+" stops at the size limit", func(t *testing.T) {
			body, truncated, reason, err := fetch.DecodeBody(bomb, []string{header}, htmlType, 900_000, 250)
			if reason != fetch.ReasonTooLarge || !truncated || len(body) != 900_000 {
				t.Errorf("got %d bytes, %q, truncated %v (%v)", len(body), reason, truncated, err)
			}
		})
		t.Run(coding+" stops at the ratio limit", func(t *testing.T) {
			body, _, reason, err := fetch.DecodeBody(bomb, []string{header}, htmlType, 100<<20, 20)
			if reason != fetch.ReasonTooLarge || len(body) < 1<<20 || len(body) > 9<<20 {
				t.Errorf("got %d bytes, %q (%v)", len(body), reason, err)
			}
		})
		t.Run(coding+" under both limits is whole", func(t *testing.T) {
			body, truncated, reason, err := fetch.DecodeBody(bomb, []string{header}, htmlType, 20<<20, 1e9)
			if reason != "" || truncated || len(body) != len(zeros) {
				t.Errorf("got %d bytes, %q, truncated %v (%v)", len(body), reason, truncated, err)
			}
		})
	}
	t.Run("a bomb within a bomb stops too", func(t *testing.T) {
		body, _, reason, err := fetch.DecodeBody(compress("gzip", compress("br", zeros)), []string{"br, gzip"}, htmlType, 5<<20, 250)
		if reason != fetch.ReasonTooLarge || len(body) > 5<<20 {
			t.Errorf("got %d bytes, %q (%v)", len(body), reason, err)
		}
	})
}

func TestCompressedCorpus(t *testing.T) {
	dir := corpus(t, "http-compressed-scrapy")
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	html := func(got []byte) bool {
		return len(got) == 74837 && bytes.HasPrefix(got, []byte("<!DOCTYPE")) && bytes.HasSuffix(bytes.TrimSpace(got), []byte("</html>"))
	}
	html3 := func(got []byte) bool {
		return len(got) == 74840 && bytes.HasSuffix(bytes.TrimSpace(got), []byte("</html>"))
	}
	same := func(name string) func([]byte) bool {
		return func(got []byte) bool { return bytes.Equal(got, read(name)) }
	}
	ends := func(text string) func([]byte) bool {
		return func(got []byte) bool { return bytes.HasSuffix(got, []byte(text)) }
	}
	latin1 := func(got []byte) bool { // the expected text was written as Latin-1 into UTF-8
		runes := make([]rune, len(got))
		for i, b := range got {
			runes[i] = rune(b)
		}
		return string(runes) == string(read("unexpected-eof-output.txt"))
	}
	cases := map[string]struct {
		encoding, typ string
		is            func(got []byte) bool
		truncated     bool
		reason        fetch.Reason
	}{
		"bomb-br.bin":                             {"br", htmlType, nil, true, fetch.ReasonTooLarge},
		"bomb-deflate.bin":                        {"deflate", htmlType, nil, true, fetch.ReasonTooLarge},
		"bomb-gzip.bin":                           {"gzip", htmlType, nil, true, fetch.ReasonTooLarge},
		"bomb-zstd.bin":                           {"zstd", htmlType, nil, true, fetch.ReasonTooLarge},
		"html-br.bin":                             {"br", htmlType, html, false, ""},
		"html-gzip.bin":                           {"gzip", htmlType, html, false, ""},
		"html-gzip-deflate.bin":                   {"gzip, deflate", htmlType, html, false, ""},
		"html-gzip-deflate-gzip.bin":              {"gzip, deflate, gzip", htmlType, html, false, ""},
		"html-rawdeflate.bin":                     {"deflate", htmlType, html3, false, ""},
		"html-zlibdeflate.bin":                    {"deflate", htmlType, html3, false, ""},
		"html-zstd-static-content-size.bin":       {"zstd", htmlType, html, false, ""},
		"html-zstd-static-no-content-size.bin":    {"zstd", htmlType, html, false, ""},
		"html-zstd-streaming-no-content-size.bin": {"zstd", htmlType, html, false, ""},
		// zlib gets one more byte, the "l", out of the last bits of this one.
		"truncated-crc-error.gz":       {"gzip", htmlType, ends("</htm"), true, ""},
		"truncated-crc-error-short.gz": {"gzip", htmlType, ends("</html>"), true, ""},
		"unexpected-eof.gz":            {"gzip", htmlType, latin1, true, ""},
		"feed-sample1.xml":             {"", "application/xml", same("feed-sample1.xml"), false, ""},
		"feed-sample1.xml.gz":          {"", "application/xml", same("feed-sample1.xml"), false, ""},
		"feed-sample1.xml.bz2":         {"", "application/x-bzip2", same("feed-sample1.xml.bz2"), false, ""},
		"feed-sample1.zip":             {"", "application/zip", same("feed-sample1.zip"), false, ""},
		"feed-sample1.tar":             {"", "application/x-tar", same("feed-sample1.tar"), false, ""},
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if tc := cases[name]; tc.encoding != "" {
			w.Header().Set("Content-Encoding", tc.encoding)
		}
		w.Header().Set("Content-Type", cases[name].typ)
		w.Write(read(name))
	}))
	defer s.Close()
	c := newClient(t, nil)
	for _, f := range files {
		switch f.Name() {
		case "LICENSE", "SOURCE.txt", "unexpected-eof-output.txt":
			continue
		}
		tc, ok := cases[f.Name()]
		if !ok {
			t.Errorf("%s has no expectation", f.Name())
			continue
		}
		t.Run(f.Name(), func(t *testing.T) {
			res := do(t, c, fetch.Request{URL: s.URL + "/" + f.Name()})
			if res.Reason != tc.reason || res.Truncated != tc.truncated || res.TooLarge != (tc.reason == fetch.ReasonTooLarge) {
				t.Errorf("got %q (%v), truncated %v, too large %v", res.Reason, res.Err, res.Truncated, res.TooLarge)
			}
			if tc.is != nil && !tc.is(res.Body) {
				t.Errorf("body: got %d bytes %.40q ... %q", len(res.Body), res.Body, res.Body[max(0, len(res.Body)-20):])
			}
			if tc.is == nil && (len(res.Body) == 0 || len(res.Body) > 5<<20) {
				t.Errorf("body: got %d bytes", len(res.Body))
			}
		})
	}
}
