package urlkey

import "bytes"

// Options configure a Canonicalizer.
type Options struct {
	// TrackingParams are the query parameters to remove: names, or prefixes
	// written as "utm_*", in any case. Nil means DefaultTrackingParams.
	TrackingParams []string
	// KeepTracking leaves every query parameter in place.
	KeepTracking bool
}

// Canonicalizer makes canonical URLs. It is safe for concurrent use.
type Canonicalizer struct {
	tracking *tracking // nil: keep all
}

// New returns a Canonicalizer, or an error that names the tracking parameter
// that cannot be one and what is allowed.
func New(o Options) (*Canonicalizer, error) {
	if o.KeepTracking {
		return &Canonicalizer{}, nil
	}
	params := o.TrackingParams
	if params == nil {
		params = DefaultTrackingParams()
	}
	t, err := compileTracking(params)
	if err != nil {
		return nil, err
	}
	return &Canonicalizer{tracking: t}, nil
}

// Parse returns the canonical form of an absolute URL, or ErrScheme,
// ErrInvalid, or ErrTooLong with a complete URL. For many URLs at a time, as
// in a sitemap, Base.Resolve does the same without allocating.
func (c *Canonicalizer) Parse(raw string) (URL, error) {
	out, pathAt, err := c.canonical(make([]byte, 0, len(raw)+8), []byte(raw), nil)
	if err != nil {
		return URL{}, err
	}
	origin := string(out[:pathAt])
	u := URL{Raw: out, Key: KeyOf(out), Host: politeHost(origin), Origin: origin, PathAt: pathAt}
	if len(out) > MaxLen {
		return u, ErrTooLong
	}
	return u, nil
}

// canonical appends the canonical form of href to out. Without a base href
// must be absolute. The returned offset is that of the path, from where the
// form starts.
func (c *Canonicalizer) canonical(out, href []byte, b *Base) (grown []byte, pathAt int, err error) {
	start := len(out)
	var scratch *[]byte
	if b != nil {
		scratch = &b.scratch
	}
	s := clean(href, scratch)
	kind, s := split(s, b)
	switch kind {
	case refOther:
		return out, 0, ErrScheme
	case refHTTP, refHTTPS:
		if kind == refHTTPS {
			out = append(out, "https://"...)
		} else {
			out = append(out, "http://"...)
		}
		if out, s, err = appendAuthority(out, s); err != nil {
			return out[:start], 0, err
		}
		pathAt = len(out)
		if len(s) > 0 && s[0] != '?' {
			s = s[1:]
		}
		out, s = appendPath(out, pathAt, s)
	case refRelative:
		if b == nil {
			return out, 0, ErrInvalid
		}
		pathAt = start + b.pathAt
		switch {
		case len(s) == 0:
			return append(out, b.raw...), b.pathAt, nil
		case isSlash(s[0]):
			out = append(out, b.raw[:b.pathAt]...)
			out, s = appendPath(out, pathAt, s[1:])
		case s[0] == '?':
			out = append(out, b.raw[:b.queryAt]...)
		default:
			out = append(out, b.raw[:b.lastSlash]...)
			out, s = appendPath(out, pathAt, s)
		}
	}
	return c.appendQuery(out, s), pathAt - start, nil
}

// appendQuery appends s, which is empty or starts with a question mark.
func (c *Canonicalizer) appendQuery(out, s []byte) []byte {
	if len(s) <= 1 {
		return out
	}
	at := len(out)
	out = append(out, '?')
	out = appendEscaped(out, s[1:], queryByte)
	return c.tracking.strip(out, at)
}

// maxScratch keeps one hostile link from pinning memory for a Base's life.
const maxScratch = 64 << 10

// clean does what the URL Standard does before it parses, and drops the
// fragment: the first `#` starts it, wherever that stands.
func clean(s []byte, scratch *[]byte) []byte {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	i := 0
	for i < len(s) && class[s[i]]&cutByte == 0 {
		i++
	}
	if i == len(s) || s[i] == '#' {
		return s[:i]
	}
	var buf []byte
	if scratch != nil {
		buf = (*scratch)[:0]
	}
	for ; len(s) > 0 && s[0] != '#'; s = s[1:] {
		if class[s[0]]&cutByte == 0 {
			buf = append(buf, s[0])
		}
	}
	if scratch != nil && cap(buf) <= maxScratch {
		*scratch = buf
	}
	return buf
}

type refKind int

const (
	refRelative refKind = iota // to the base's origin
	refHTTP                    // an authority follows
	refHTTPS
	refOther
)

// split takes scheme and slashes from s. URL Standard, the states from scheme
// start to special authority ignore slashes.
func split(s []byte, b *Base) (refKind, []byte) {
	kind, rest := scheme(s)
	switch {
	case kind == refOther:
		return refOther, s
	case kind == refRelative:
		if b == nil || len(s) < 2 || !isSlash(s[0]) || !isSlash(s[1]) {
			return refRelative, s
		}
		return b.kind, skipSlashes(s)
	case b != nil && kind == b.kind && !bytes.HasPrefix(rest, []byte("//")):
		// "https:page" is relative to a base of that scheme, and like any
		// relative reference may still name an authority: "https:\\host".
		if len(rest) < 2 || !isSlash(rest[0]) || !isSlash(rest[1]) {
			return refRelative, rest
		}
	}
	return kind, skipSlashes(rest)
}

func skipSlashes(s []byte) []byte {
	for len(s) > 0 && isSlash(s[0]) {
		s = s[1:]
	}
	return s
}

// scheme returns refRelative when s has none.
func scheme(s []byte) (refKind, []byte) {
	if len(s) == 0 || !isLetter(s[0]) {
		return refRelative, s
	}
	n := 1
	for n < len(s) && class[s[n]]&schemeByte != 0 {
		n++
	}
	if n == len(s) || s[n] != ':' {
		return refRelative, s
	}
	switch {
	case n == 4 && s[0]|0x20 == 'h' && s[1]|0x20 == 't' && s[2]|0x20 == 't' && s[3]|0x20 == 'p':
		return refHTTP, s[n+1:]
	case n == 5 && s[0]|0x20 == 'h' && s[1]|0x20 == 't' && s[2]|0x20 == 't' && s[3]|0x20 == 'p' && s[4]|0x20 == 's':
		return refHTTPS, s[n+1:]
	}
	return refOther, s
}
