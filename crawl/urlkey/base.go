package urlkey

import (
	"bytes"
	"errors"
)

// Base is the URL that the links of one page are resolved against. One
// goroutine uses it at a time. It can be reused, and then remembers the
// origins it has seen.
type Base struct {
	c         *Canonicalizer
	raw       []byte
	host      string
	origin    string
	kind      refKind // its scheme
	pathAt    int
	lastSlash int // of the path
	queryAt   int // len(raw) where there is none
	scratch   []byte
	origins   map[string]origin // of links to other origins
}

type origin struct{ origin, host string }

// maxOrigins bounds what a Base remembers; a page that links to more hosts
// than that is rare.
const maxOrigins = 256

// NewBase parses the URL that links are resolved against: the page's, or what
// `<base href>` makes of it. Errors are those of Parse, except that a base may
// be longer than MaxLen.
func (c *Canonicalizer) NewBase(raw string) (*Base, error) {
	b := &Base{c: c}
	if err := b.Reset(raw); err != nil {
		return nil, err
	}
	return b, nil
}

// Reset makes raw the base. After an error the base is what it was.
func (b *Base) Reset(raw string) error {
	u, err := b.c.Parse(raw)
	if err != nil && !errors.Is(err, ErrTooLong) {
		return err
	}
	b.raw, b.host, b.origin, b.pathAt = u.Raw, u.Host, u.Origin, u.PathAt
	b.kind = refHTTP
	if b.raw[len("http")] == 's' {
		b.kind = refHTTPS
	}
	b.queryAt = len(b.raw)
	if i := bytes.IndexByte(b.raw, '?'); i >= 0 {
		b.queryAt = i
	}
	b.lastSlash = bytes.LastIndexByte(b.raw[:b.queryAt], '/')
	return nil
}

// Resolve appends the canonical form of href, resolved against b, to buf and
// returns the grown buffer; URL.Raw aliases it. Errors are those of Parse, and
// buf is returned as it was except after ErrTooLong. Nothing is allocated but
// for a growing buffer, an origin not seen before, and hosts that are not
// plain lower-case ASCII.
//
// An href that only names a fragment, or is empty, gives the base itself.
func (b *Base) Resolve(buf []byte, href []byte) (URL, []byte, error) {
	start := len(buf)
	out, pathAt, ok := b.fast(buf, href)
	if !ok {
		var err error
		if out, pathAt, err = b.c.canonical(buf, href, b); err != nil {
			return URL{}, buf, err
		}
	}
	u := URL{Raw: out[start:len(out):len(out)], PathAt: pathAt}
	u.Key = KeyOf(u.Raw)
	if name := u.Raw[:pathAt]; string(name) == b.origin {
		u.SameOrigin, u.Origin, u.Host = true, b.origin, b.host
	} else {
		u.Origin, u.Host = b.other(name)
	}
	if len(u.Raw) > MaxLen {
		return u, out, ErrTooLong
	}
	return u, out, nil
}

// fast handles the links that most pages consist of: a path from the root, or
// a whole URL of the base's origin, that is canonical as it stands. Everything
// else is not ok and left to canonical; both give the same.
func (b *Base) fast(buf, href []byte) (out []byte, pathAt int, ok bool) {
	s := href
	if len(s) >= len(b.origin) && string(s[:len(b.origin)]) == b.origin {
		s = s[len(b.origin):]
	} else if len(s) > 1 && isSlash(s[1]) {
		return nil, 0, false
	}
	if len(s) == 0 || s[0] != '/' {
		return nil, 0, false
	}
	path := plainPath(s)
	end := path
	if path < len(s) && s[path] == '?' {
		end += plainQuery(s[path:])
	}
	if end < len(s) && s[end] != '#' {
		return nil, 0, false
	}
	out = append(buf, b.origin...)
	out = append(out, s[:end]...)
	if end > path {
		out = b.c.tracking.strip(out, len(out)-(end-path))
	}
	return out, b.pathAt, true
}

// other returns the strings of an origin that is not the base's.
func (b *Base) other(name []byte) (origin_, host string) {
	o, ok := b.origins[string(name)]
	if !ok {
		if b.origins == nil || len(b.origins) >= maxOrigins {
			b.origins = make(map[string]origin)
		}
		s := string(name)
		o = origin{origin: s, host: politeHost(s)}
		b.origins[s] = o
	}
	return o.origin, o.host
}
