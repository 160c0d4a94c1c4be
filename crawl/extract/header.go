package extract

import (
	"bytes"
	"net/http"
	"unicode/utf8"
)

// headers reads what HTTP headers say about the page: Link, X-Robots-Tag, Refresh.
func (s *scan) headers(h http.Header) {
	for _, line := range h["Link"] {
		eachHeaderLink(headerText(line), s.headerLink)
	}
	for _, line := range h["X-Robots-Tag"] {
		s.robotsHeader(headerText(line))
	}
	for _, line := range h["Refresh"] {
		if !s.f.HasRefresh {
			s.refresh(headerText(line), true)
		}
	}
}

// headerText is a header value as UTF-8: bytes that are not that are read one by one, as ISO-8859-1 (RFC 9110 section 5.5).
func headerText(line string) []byte {
	if utf8.ValidString(line) {
		return []byte(line)
	}
	out := make([]byte, 0, 2*len(line))
	for i := 0; i < len(line); i++ {
		out = utf8.AppendRune(out, rune(line[i]))
	}
	return out
}

// headerTarget is one link-value of a Link header.
type headerTarget struct {
	href, rel, hreflang, mime []byte
	anchored                  bool // has an anchor parameter: the link is not about this page
}

// headerLink takes one link of a Link header.
func (s *scan) headerLink(t headerTarget) {
	if t.anchored || len(t.href) == 0 {
		return
	}
	f := s.f
	rels := parseRel(t.rel)
	add := func(kind LinkKind, lang []byte) {
		if l := s.addLink(kind, t.href); l != nil {
			l.FromHeader, l.InHead = true, false
			l.Nofollow = rels&relNofollow != 0
			if len(lang) > 0 {
				l.Lang = string(lang)
			}
		}
	}
	if rels&relCanonical != 0 {
		if f.HeaderCanonical == "" {
			s.setURL(&f.HeaderCanonical, t.href)
		}
		add(Canonical, nil)
	}
	if rels&relAlternate != 0 && rels&relStylesheet == 0 {
		if len(t.hreflang) > 0 {
			s.addHreflang(t.hreflang, t.href)
		}
		add(alternateKind(t.mime, len(t.hreflang) > 0), t.hreflang)
	}
	if rels&relNext != 0 {
		if !s.haveNext {
			s.haveNext = true
			s.setURL(&f.Next, t.href)
		}
		add(Next, nil)
	}
	if rels&relPrev != 0 {
		if !s.havePrev {
			s.havePrev = true
			s.setURL(&f.Prev, t.href)
		}
		add(Prev, nil)
	}
	if rels&relAMP != 0 {
		if !s.haveAMP {
			s.haveAMP = true
			s.setURL(&f.AMP, t.href)
		}
		add(AMP, nil)
	}
	if rels&relStylesheet != 0 {
		add(Stylesheet, nil)
	}
	if rels&relResource != 0 {
		add(Resource, nil)
	}
}

// eachHeaderLink parses a Link header field by RFC 8288, appendix B.2, leniently: a faulty link-value is skipped up to the next
// comma. The byte slices may alias b.
func eachHeaderLink(b []byte, add func(headerTarget)) {
	for i := 0; i < len(b); {
		if isOWS(b[i]) || b[i] == ',' {
			i++
			continue
		}
		if b[i] != '<' {
			i = skipHeaderValue(b, i)
			continue
		}
		end := bytes.IndexByte(b[i:], '>')
		if end < 0 {
			return
		}
		t := headerTarget{href: trimURL(b[i+1 : i+end])}
		i += end + 1
		haveRel, haveType := false, false
		for {
			for i < len(b) && isOWS(b[i]) {
				i++
			}
			if i >= len(b) || b[i] != ';' {
				break
			}
			i++
			var name, value []byte
			name, value, i = headerParam(b, i)
			switch {
			case equalFold(name, "rel") && !haveRel:
				t.rel, haveRel = value, true
			case equalFold(name, "hreflang") && len(t.hreflang) == 0:
				t.hreflang = trimSpace(value)
			case equalFold(name, "type") && !haveType:
				t.mime, haveType = value, true
			case equalFold(name, "anchor"):
				t.anchored = true
			}
		}
		add(t)
		if i < len(b) && b[i] != ',' {
			i = skipHeaderValue(b, i)
		}
	}
}

func isOWS(c byte) bool { return c == ' ' || c == '\t' }

// skipHeaderValue goes past the next comma outside quotes and angle brackets.
func skipHeaderValue(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch b[i] {
		case ',':
			return i + 1
		case '"':
			_, i = quotedString(b, i)
			i--
		}
	}
	return i
}

// headerParam reads one parameter after its ';'. The name is empty for an empty parameter.
func headerParam(b []byte, i int) (name, value []byte, next int) {
	for i < len(b) && isOWS(b[i]) {
		i++
	}
	start := i
	for i < len(b) && !isOWS(b[i]) && b[i] != '=' && b[i] != ';' && b[i] != ',' {
		i++
	}
	name = b[start:i]
	for i < len(b) && isOWS(b[i]) {
		i++
	}
	if i >= len(b) || b[i] != '=' {
		return name, nil, i
	}
	i++
	for i < len(b) && isOWS(b[i]) {
		i++
	}
	if i < len(b) && b[i] == '"' {
		value, i = quotedString(b, i)
		return name, value, i
	}
	start = i
	for i < len(b) && b[i] != ';' && b[i] != ',' {
		i++
	}
	return name, bytes.TrimRight(b[start:i], " \t"), i
}

// quotedString reads the quoted string at b[i] == '"', without its quotes and with backslash escapes undone.
func quotedString(b []byte, i int) (value []byte, next int) {
	i++
	start := i
	escaped := false
	for i < len(b) && b[i] != '"' {
		if b[i] == '\\' && i+1 < len(b) {
			escaped = true
			i++
		}
		i++
	}
	raw := b[start:min(i, len(b))]
	if i < len(b) {
		i++
	}
	if !escaped {
		return raw, min(i, len(b))
	}
	out := make([]byte, 0, len(raw))
	for j := 0; j < len(raw); j++ {
		if raw[j] == '\\' && j+1 < len(raw) {
			j++
		}
		out = append(out, raw[j])
	}
	return out, min(i, len(b))
}
