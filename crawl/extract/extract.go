package extract

import (
	"bytes"
	"encoding/binary"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
	"golang.org/x/text/encoding/unicode"
)

// DefaultMaxLinks is the number of links kept of one page when nothing else is said.
const DefaultMaxLinks = 20_000

// maxPooled is the size above which a buffer is left to the collector rather than kept for the next page, in bytes.
const maxPooled = 1 << 20

// Config is what stays the same from page to page.
type Config struct {
	Product  string // robots product token, lower case: rules for this name apply to us
	MaxLinks int    // links kept a page, followed ones and resources each; 0 means DefaultMaxLinks
}

// Input is one fetched page.
type Input struct {
	Body        []byte // content decoding done, in its own charset; must stay unchanged until Page.Release
	ContentType string // Content-Type; when empty, the one of Header
	Header      http.Header
	Product     string // overrides Config.Product when set
	MaxLinks    int    // overrides Config.MaxLinks when set
}

// Page is the result of one extraction.
type Page struct {
	Facts Facts
	Links []Link // those of HTTP headers first, then in document order

	owner *Extractor
	scan  scan
}

// Extractor extracts pages. It is safe for concurrent use.
type Extractor struct {
	config Config
	pool   sync.Pool
}

// New returns an extractor.
func New(config Config) *Extractor {
	if config.MaxLinks <= 0 {
		config.MaxLinks = DefaultMaxLinks
	}
	return &Extractor{config: config}
}

// HTML reads a page. Any bytes are a page: it never fails. The result is valid until Release.
func (e *Extractor) HTML(in Input) *Page {
	p, _ := e.pool.Get().(*Page)
	if p == nil {
		p = new(Page)
	}
	p.owner = e
	if in.ContentType == "" && in.Header != nil {
		in.ContentType = in.Header.Get("Content-Type")
	}
	product, maxLinks := e.config.Product, e.config.MaxLinks
	if in.Product != "" {
		product = in.Product
	}
	if in.MaxLinks > 0 {
		maxLinks = in.MaxLinks
	}
	found := sniffCharset(in.Body, in.ContentType)
	p.read(in, found, product, maxLinks)
	// A meta element that the prescan did not reach may still name another encoding. Browsers start over then, once (HTML standard
	// section 13.2.3.4).
	if late := p.scan.lateCharset; late != "" {
		p.scan.release()
		clear(p.Links)
		p.Links, p.Facts = p.Links[:0], Facts{}
		found.enc, found.name = lookupCharset(late)
		found.certain = true
		p.read(in, found, product, maxLinks)
	}
	p.scan.finish()
	if len(in.Body) > 0 {
		putHash(&p.Facts.BodyHash, in.Body)
	}
	return p
}

// read makes one pass over the page in the given encoding.
func (p *Page) read(in Input, found foundCharset, product string, maxLinks int) {
	s, f := &p.scan, &p.Facts
	s.begin(p, product, maxLinks)
	f.Charset = found.name
	if !found.certain {
		s.tentative = found.name
	}
	buf := in.Body[found.bom:]
	switch {
	case found.enc != nil:
		s.decoded = decode(s.decoded[:0], buf, found.enc)
		buf = s.decoded
	default:
		buf = cutPartial(buf)
		if !found.valid && !utf8.Valid(buf) {
			f.Notes |= NoteBadBytes
			s.decoded = decode(s.decoded[:0], buf, unicode.UTF8)
			buf = s.decoded
		}
	}
	if bytes.IndexByte(buf, 0) >= 0 {
		f.Notes |= NoteNUL
	}
	if in.Header != nil {
		s.headers(in.Header)
	}
	s.xml = isXHTML(in.ContentType)
	s.document(buf)
}

// Release gives the buffers back. Links and their bytes are invalid afterwards; a copied Facts is not. A second call does nothing.
func (p *Page) Release() {
	e := p.owner
	if e == nil {
		return
	}
	p.owner = nil
	p.Facts = Facts{}
	clear(p.Links)
	p.Links = p.Links[:0]
	p.scan.release()
	if cap(p.Links) > 4*1024 {
		p.Links = nil
	}
	e.pool.Put(p)
}

func putHash(dst *[16]byte, b []byte) {
	h := xxh3.Hash128(b)
	binary.BigEndian.PutUint64(dst[:8], h.Hi)
	binary.BigEndian.PutUint64(dst[8:], h.Lo)
}

// mediaType is the type/subtype of a Content-Type value, as written.
func mediaType(contentType string) string {
	if i := strings.IndexAny(contentType, ";,"); i >= 0 {
		contentType = contentType[:i]
	}
	return strings.Trim(contentType, " \t\r\n")
}

func isXHTML(contentType string) bool {
	m := mediaType(contentType)
	return strings.EqualFold(m, "application/xhtml+xml") || strings.EqualFold(m, "application/vnd.wap.xhtml+xml")
}

// IsHTML reports whether a response is a page to extract: an HTML or XHTML type, or, where the type is missing or says nothing
// (mimesniff.spec.whatwg.org section 5.1: unknown/unknown, application/unknown, */*), a body that looks like HTML.
func IsHTML(contentType string, body []byte) bool {
	m := mediaType(contentType)
	switch {
	case strings.EqualFold(m, "text/html"), isXHTML(m):
		return true
	case m == "" || m == "*/*" || strings.EqualFold(m, "unknown/unknown") || strings.EqualFold(m, "application/unknown"):
		return strings.HasPrefix(http.DetectContentType(body), "text/html")
	}
	return false
}
