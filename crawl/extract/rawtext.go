package extract

import "bytes"

// nextRaw reads the text of a raw element up to its end tag, which the data state reads next. It returns tokenEOF for no text.
func (t *tokenizer) nextRaw() tokenKind {
	mode, start := t.raw, t.pos
	t.raw = rawNone
	var end int
	switch mode {
	case rawPlaintext:
		end = len(t.buf)
	case rawScript:
		end = t.scriptEnd(start)
	default:
		end = t.rawEnd(start)
	}
	t.pos = end
	if end == start {
		return tokenEOF
	}
	t.data = span{start, end}
	if mode == rawRCDATA {
		return tokenText
	}
	return tokenRaw
}

// rawEnd finds the appropriate end tag from i on, or the end of the input.
func (t *tokenizer) rawEnd(i int) int {
	b := t.buf
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '<')
		if n < 0 {
			break
		}
		i += n
		if i+1 < len(b) && b[i+1] == '/' && t.endsWith(i+2) {
			return i
		}
		i++
	}
	return len(b)
}

// endsWith reports whether the raw element's name stands at i, followed by a byte that ends a tag name.
func (t *tokenizer) endsWith(i int) bool {
	return nameAt(t.buf, i, t.rawName)
}

func nameAt(b []byte, i int, name []byte) bool {
	end := i + len(name)
	if end >= len(b) || classTable[b[end]]&classTagEnd == 0 {
		return false
	}
	for j, c := range name {
		if lowerTable[b[i+j]] != c {
			return false
		}
	}
	return true
}

var scriptName = []byte("script")

// scriptEnd finds the end tag of a script through the escaped states: between "<!--" and "-->" a "<script" opens a doubly escaped
// part in which "</script" only closes that part.
func (t *tokenizer) scriptEnd(i int) int {
	b := t.buf
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '<')
		if n < 0 {
			return len(b)
		}
		i += n
		switch {
		case i+1 < len(b) && b[i+1] == '/' && t.endsWith(i+2):
			return i
		case bytes.HasPrefix(b[i:], []byte("<!--")):
			// The dashes count towards "-->", so "<!-->" is already over.
			end, closed := t.escapedScript(i + 2)
			if closed {
				return end
			}
			i = end
		default:
			i++
		}
	}
	return len(b)
}

// escapedScript walks the escaped states from the dashes on. It returns the place of the end tag and true, or the place after
// "-->" (or the end of the input) and false.
func (t *tokenizer) escapedScript(i int) (int, bool) {
	b := t.buf
	double := false
	dashes := 0
	for i < len(b) {
		switch c := b[i]; {
		case c == '-':
			dashes++
			i++
			continue
		case c == '>' && dashes >= 2:
			return i + 1, false
		case c == '<' && double:
			if i+1 < len(b) && b[i+1] == '/' && nameAt(b, i+2, scriptName) {
				double = false
				i += len("</script")
			}
		case c == '<':
			switch {
			case i+1 < len(b) && b[i+1] == '/':
				if t.endsWith(i + 2) {
					return i, true
				}
			case nameAt(b, i+1, scriptName):
				double = true
				i += len("<script")
			}
		}
		dashes = 0
		i++
	}
	return len(b), false
}
