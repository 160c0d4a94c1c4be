package extract

import "bytes"

type tokenKind uint8

const (
	tokenEOF     tokenKind = iota
	tokenText              // character data in which references count
	tokenRaw               // character data in which they do not
	tokenStart             // start tag
	tokenEnd               // end tag
	tokenComment           // comment, bogus comment, or processing instruction
	tokenDoctype
)

// rawMode is how the tokenizer reads what follows a start tag; the caller sets it, as only it knows whether the element is foreign.
type rawMode uint8

const (
	rawNone      rawMode = iota
	rawRCDATA            // title, textarea
	rawText              // style, xmp, iframe, noembed, noframes
	rawScript            // script, with its escaped states
	rawPlaintext         // the rest of the document
)

type span struct{ start, end int }

// tokenizer walks buf by the states of the HTML standard, section 13.2.5. It never copies and never looks back, so its time is
// linear in len(buf) whatever stands there: every unterminated construct consumes the rest.
type tokenizer struct {
	buf []byte
	pos int

	raw     rawMode
	rawName []byte // lower-case name of the element whose end tag ends the raw text
	cdata   bool   // a CDATA section may start here (the current node is foreign)

	data        span // text or comment
	name        span // tag name, as written
	key         uint64
	tag         tagID
	flags       tagFlags
	selfClosing bool

	seen uint32 // set of attrID in vals; the first of two equal attributes counts
	vals [attrCount]span

	listAll bool   // tests only: list keeps every attribute
	list    []span // name, value, name, value...
}

func (t *tokenizer) reset(buf []byte) {
	t.buf, t.pos, t.raw, t.cdata, t.seen = buf, 0, rawNone, false, 0
}

// next reads one token.
func (t *tokenizer) next() tokenKind {
	if t.raw != rawNone {
		if kind := t.nextRaw(); kind != tokenEOF {
			return kind
		}
	}
	b, start := t.buf, t.pos
	for at := start; at < len(b); {
		i := at
		if b[i] != '<' {
			n := bytes.IndexByte(b[i:], '<')
			if n < 0 {
				break
			}
			i += n
		}
		if i+1 >= len(b) {
			break
		}
		c := b[i+1]
		switch {
		case classTable[c]&classAlpha != 0:
		case c == '!' || c == '?':
		case c == '/' && i+2 < len(b):
		default:
			at = i + 1
			continue
		}
		if i > start {
			t.data, t.pos = span{start, i}, i
			return tokenText
		}
		switch {
		case c == '!':
			return t.markup(i + 2)
		case c == '?':
			return t.bogus(i + 1)
		case c != '/':
			if t.tagToken(i + 1) {
				return tokenStart
			}
			return tokenEOF
		case isAlpha(b[i+2]):
			if t.tagToken(i + 2) {
				return tokenEnd
			}
			return tokenEOF
		case b[i+2] == '>': // "</>" is nothing
			start, at = i+3, i+3
		default:
			return t.bogus(i + 2)
		}
	}
	t.pos = len(b)
	if start < len(b) {
		t.data = span{start, len(b)}
		return tokenText
	}
	return tokenEOF
}

// tagToken reads a tag whose name starts at i. It reports false, at the end of the input, for a tag that never ends.
func (t *tokenizer) tagToken(i int) bool {
	b := t.buf
	start := i
	var key uint64
	for i < len(b) && classTable[b[i]]&classTagEnd == 0 {
		key = key<<8 | uint64(lowerTable[b[i]])
		i++
	}
	t.name, t.selfClosing, t.seen = span{start, i}, false, 0
	if i-start <= 8 {
		t.key = key
		t.tag, t.flags = lookupTag(key)
	} else {
		t.tag, t.flags = lookupLongTag(b[start:i])
		t.key = longKey(b[start:i])
	}
	if t.listAll {
		t.list = t.list[:0]
	}
	if i < len(b) && b[i] == '>' {
		t.pos = i + 1
		return true
	}
	return t.attributes(i)
}

// longKey tells names of more than eight bytes apart where open elements are compared.
func longKey(name []byte) uint64 {
	h := uint64(len(name))
	for _, c := range name {
		h = (h ^ uint64(lowerTable[c])) * hashFactor
	}
	return h | 1<<63
}

// attributes reads from the end of the tag name to past the '>'.
func (t *tokenizer) attributes(i int) bool {
	b := t.buf
	want := t.flags&flagAttrs != 0
	for {
		// Before attribute name.
		for i < len(b) && classTable[b[i]]&classSpace != 0 {
			i++
		}
		if i >= len(b) {
			break
		}
		switch b[i] {
		case '>':
			t.pos = i + 1
			return true
		case '/':
			i++
			if i < len(b) && b[i] == '>' {
				t.selfClosing = true
				t.pos = i + 1
				return true
			}
			continue
		}
		// Attribute name; a leading '=' belongs to it.
		nameStart := i
		key := uint64(lowerTable[b[i]])
		i++
		for i < len(b) && classTable[b[i]]&classAttrEnd == 0 {
			key = key<<8 | uint64(lowerTable[b[i]])
			i++
		}
		nameEnd := i
		// After attribute name.
		for i < len(b) && classTable[b[i]]&classSpace != 0 {
			i++
		}
		var value span
		if i < len(b) && b[i] == '=' {
			i++
			for i < len(b) && classTable[b[i]]&classSpace != 0 {
				i++
			}
			if i >= len(b) {
				break
			}
			switch c := b[i]; c {
			case '"', '\'':
				i++
				n := bytes.IndexByte(b[i:], c)
				if n < 0 {
					t.pos = len(b)
					return false
				}
				value = span{i, i + n}
				i += n + 1
			case '>':
			default:
				value.start = i
				for i < len(b) && b[i] != '>' && classTable[b[i]]&classSpace == 0 {
					i++
				}
				value.end = i
			}
		}
		if want {
			if id := lookupAttr(key, b[nameStart:nameEnd]); id != attrNone && t.seen&(1<<id) == 0 {
				t.seen |= 1 << id
				t.vals[id] = value
			}
		}
		if t.listAll {
			t.list = append(t.list, span{nameStart, nameEnd}, value)
		}
	}
	t.pos = len(b)
	return false
}

// has reports whether the current tag carries the attribute.
func (t *tokenizer) has(id attrID) bool { return t.seen&(1<<id) != 0 }

// value returns an attribute as written, nil when absent.
func (t *tokenizer) value(id attrID) []byte {
	if t.seen&(1<<id) == 0 {
		return nil
	}
	v := t.vals[id]
	return t.buf[v.start:v.end]
}

// markup reads what follows "<!".
func (t *tokenizer) markup(i int) tokenKind {
	rest := t.buf[i:]
	switch {
	case len(rest) >= 2 && rest[0] == '-' && rest[1] == '-':
		return t.comment(i + 2)
	case hasPrefixFold(rest, "doctype"):
		t.bogus(i + len("doctype"))
		return tokenDoctype
	case t.cdata && bytes.HasPrefix(rest, []byte("[CDATA[")):
		i += len("[CDATA[")
		end := len(t.buf)
		t.pos = end
		if n := bytes.Index(t.buf[i:], []byte("]]>")); n >= 0 {
			end = i + n
			t.pos = end + 3
		}
		t.data = span{i, end}
		return tokenRaw
	}
	return t.bogus(i)
}

// comment reads from after "<!--". It ends at "-->" or "--!>", or at once for "<!-->" and "<!--->".
func (t *tokenizer) comment(start int) tokenKind {
	b := t.buf
	rest := b[start:]
	if len(rest) > 0 && rest[0] == '>' {
		t.data, t.pos = span{start, start}, start+1
		return tokenComment
	}
	if len(rest) > 1 && rest[0] == '-' && rest[1] == '>' {
		t.data, t.pos = span{start, start}, start+2
		return tokenComment
	}
	for i := start; i < len(b); {
		n := bytes.IndexByte(b[i:], '>')
		if n < 0 {
			break
		}
		i += n
		if i-2 >= start && b[i-1] == '-' && b[i-2] == '-' {
			t.data, t.pos = span{start, i - 2}, i+1
			return tokenComment
		}
		if i-3 >= start && b[i-1] == '!' && b[i-2] == '-' && b[i-3] == '-' {
			t.data, t.pos = span{start, i - 3}, i+1
			return tokenComment
		}
		i++
	}
	// At the end of input the dashes that might have ended the comment are not part of it.
	end := len(b)
	for _, tail := range []string{"--!", "--", "-"} {
		if end-len(tail) >= start && string(b[end-len(tail):end]) == tail {
			end -= len(tail)
			break
		}
	}
	t.data, t.pos = span{start, end}, len(b)
	return tokenComment
}

// bogus reads a bogus comment: up to the next '>'.
func (t *tokenizer) bogus(start int) tokenKind {
	n := bytes.IndexByte(t.buf[start:], '>')
	if n < 0 {
		t.data, t.pos = span{start, len(t.buf)}, len(t.buf)
		return tokenComment
	}
	t.data, t.pos = span{start, start + n}, start+n+1
	return tokenComment
}
