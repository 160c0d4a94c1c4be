package sitemap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"
)

// errLimit ends the input where MaxBytes is reached.
var errLimit = errors.New("size limit")

// maxLayers is how many times a body may be gzipped: once as a file, once more by
// a server that compresses what is compressed already.
const maxLayers = 2

// ratioFree is how much output is not held against the ratio: a small repetitive
// file may compress very well.
const ratioFree = 1 << 20

// input is the opened body: decompressed UTF-8.
type input struct {
	io.Reader
	base  *baseReader
	outer *meter
	warn  []string
}

// baseReader is the caller's reader with ctx and a count. Its error is kept to
// tell a broken connection from a broken file.
type baseReader struct {
	ctx context.Context
	r   io.Reader
	n   int64
	err error
}

func (b *baseReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		b.err = err
		return 0, err
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// meter counts one layer's bytes and stops it at the limits.
type meter struct {
	r     io.Reader
	base  *baseReader
	n     int64
	max   int64
	ratio int64 // 0: not compressed
}

func (m *meter) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if m.n >= m.max {
		var one [1]byte
		if n, err := io.ReadFull(m.r, one[:]); n == 0 {
			return 0, err
		}
		return 0, errLimit
	}
	if left := m.max - m.n; int64(len(p)) > left {
		p = p[:left]
	}
	n, err := m.r.Read(p)
	m.n += int64(n)
	if m.ratio > 0 && m.n > ratioFree && m.n > m.ratio*m.base.n {
		return n, fmt.Errorf("%w: %d bytes from %d", ErrBomb, m.n, m.base.n)
	}
	return n, err
}

// open peels gzip and decodes to UTF-8.
func open(ctx context.Context, r io.Reader, l Limits) (*input, error) {
	in := &input{base: &baseReader{ctx: ctx, r: r}}
	in.outer = &meter{r: in.base, base: in.base, max: l.MaxBytes}
	br := bufio.NewReaderSize(in.outer, 4096)
	for range maxLayers {
		magic, _ := br.Peek(3)
		if !bytes.Equal(magic, []byte{0x1f, 0x8b, 8}) {
			break
		}
		gz := &gunzip{br: br, warn: in.note}
		in.outer = &meter{r: gz, base: in.base, max: l.MaxBytes, ratio: int64(l.MaxRatio)}
		br = bufio.NewReaderSize(in.outer, 4096)
	}
	head, err := br.Peek(1024)
	if len(head) == 0 && err != nil && err != io.EOF {
		return in, err
	}
	enc, skip, note := detect(head)
	if note != "" {
		in.note(note)
	}
	if _, err := br.Discard(skip); err != nil {
		return in, err
	}
	in.Reader = br
	if enc != nil {
		in.Reader = transform.NewReader(br, enc.NewDecoder())
	}
	return in, nil
}

func (in *input) note(s string) { in.warn = append(in.warn, s) }

// gunzip reads gzip members one after the other and ignores what follows them.
type gunzip struct {
	br   *bufio.Reader
	gz   *gzip.Reader
	warn func(string)
	err  error
}

func (g *gunzip) Read(p []byte) (int, error) {
	for g.err == nil {
		if g.gz == nil {
			if g.gz, g.err = gzip.NewReader(g.br); g.err != nil {
				break
			}
			g.gz.Multistream(false)
		}
		n, err := g.gz.Read(p)
		if err == io.EOF {
			err = g.next()
		}
		g.err = err
		if n > 0 {
			return n, nil
		}
	}
	return 0, g.err
}

// next moves to the following member, if there is one.
func (g *gunzip) next() error {
	magic, err := g.br.Peek(2)
	switch {
	case len(magic) == 0:
		return err
	case !bytes.Equal(magic, []byte{0x1f, 0x8b}):
		g.warn("bytes after the end of the gzip data")
		return io.EOF
	}
	if err := g.gz.Reset(g.br); err != nil {
		return err
	}
	g.gz.Multistream(false)
	return nil
}

// detect finds the encoding by byte order mark, by the pattern of zero bytes, or
// by the XML declaration (XML 1.0 appendix F), and how many bytes of mark to
// skip. A nil encoding is UTF-8.
func detect(head []byte) (enc encoding.Encoding, skip int, note string) {
	utf16 := func(e unicode.Endianness) encoding.Encoding { return unicode.UTF16(e, unicode.IgnoreBOM) }
	switch {
	case bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
		return nil, 3, ""
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE, 0, 0}):
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), 4, ""
	case bytes.HasPrefix(head, []byte{0, 0, 0xFE, 0xFF}):
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), 4, ""
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
		return utf16(unicode.LittleEndian), 2, ""
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return utf16(unicode.BigEndian), 2, ""
	}
	if len(head) >= 4 {
		zero := [4]bool{head[0] == 0, head[1] == 0, head[2] == 0, head[3] == 0}
		switch zero {
		case [4]bool{true, false, true, false}:
			return utf16(unicode.BigEndian), 0, ""
		case [4]bool{false, true, false, true}:
			return utf16(unicode.LittleEndian), 0, ""
		case [4]bool{true, true, true, false}:
			return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), 0, ""
		case [4]bool{false, true, true, true}:
			return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), 0, ""
		}
	}
	label := declared(head)
	if label == "" {
		return nil, 0, ""
	}
	enc, name := charset.Lookup(label)
	switch {
	case enc == nil && !wide(label):
		return nil, 0, fmt.Sprintf("unknown encoding %q, read as UTF-8", clip(label))
	case name == "gbk":
		// WHATWG decodes gbk as gb18030; x/net's table for gbk garbles the
		// four-byte sequences.
		return simplifiedchinese.GB18030, 0, ""
	case enc == nil || name == "utf-8" || wide(name):
		return nil, 0, "" // a declaration read as single bytes is not in a wide encoding
	case name == "replacement":
		return nil, 0, fmt.Sprintf("unsupported encoding %q, read as UTF-8", clip(label))
	}
	return enc, 0, ""
}

func wide(label string) bool {
	label = strings.ToLower(label)
	for _, p := range []string{"utf-16", "utf16", "utf-32", "utf32", "ucs-", "iso-10646-ucs", "unicode"} {
		if strings.HasPrefix(label, p) {
			return true
		}
	}
	return false
}

// declared returns the encoding an XML declaration near the beginning names.
func declared(head []byte) string {
	i := bytes.Index(head, []byte("<?xml"))
	if i < 0 {
		return ""
	}
	decl := head[i+5:]
	if end := bytes.IndexByte(decl, '>'); end >= 0 {
		decl = decl[:end]
	}
	i = bytes.Index(decl, []byte("encoding"))
	if i < 0 {
		return ""
	}
	v := bytes.TrimLeft(decl[i+len("encoding"):], " \t\r\n")
	if len(v) == 0 || v[0] != '=' {
		return ""
	}
	v = bytes.TrimLeft(v[1:], " \t\r\n")
	if len(v) == 0 || v[0] != '"' && v[0] != '\'' {
		return ""
	}
	end := bytes.IndexByte(v[1:], v[0])
	if end < 0 {
		return ""
	}
	return strings.TrimSpace(string(v[1 : 1+end]))
}
