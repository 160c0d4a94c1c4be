package extract

// Byte classes, one table look-up each. Both tables are built once and never written again.
const (
	classSpace   uint8 = 1 << iota // tab, LF, FF, CR, space: the HTML standard's ASCII white space
	classTagEnd                    // ends a tag name: white space, '/', '>'
	classAttrEnd                   // ends an attribute name: white space, '/', '>', '='
	classAlpha                     // ASCII letter
	classAlnum                     // ASCII letter or digit
	classPlain                     // text byte that needs no look: printable ASCII but '&', and lead or trail bytes of most scripts
)

var (
	classTable = buildClassTable()
	lowerTable = buildLowerTable()
)

func buildClassTable() *[256]uint8 {
	t := new([256]uint8)
	for _, c := range []byte("\t\n\f\r ") {
		t[c] |= classSpace | classTagEnd | classAttrEnd
	}
	for _, c := range []byte("/>") {
		t[c] |= classTagEnd | classAttrEnd
	}
	t['='] |= classAttrEnd
	for c := 0; c < 256; c++ {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			t[c] |= classAlpha | classAlnum
		case '0' <= c && c <= '9':
			t[c] |= classAlnum
		}
		switch {
		case c > ' ' && c < 0x80 && c != '&':
			t[c] |= classPlain
		// Leads of characters that may be spaces, ideographs or invisible: C2 (U+0080-00BF), E1-E9, EF, F0.
		case c >= 0x80 && c != 0xC2 && (c < 0xE1 || c > 0xE9) && c != 0xEF && c != 0xF0:
			t[c] |= classPlain
		}
	}
	return t
}

func buildLowerTable() *[256]byte {
	t := new([256]byte)
	for c := range t {
		t[c] = byte(c)
		if 'A' <= c && c <= 'Z' {
			t[c] = byte(c) + 'a' - 'A'
		}
	}
	return t
}

func isSpace(c byte) bool { return classTable[c]&classSpace != 0 }
func isAlpha(c byte) bool { return classTable[c]&classAlpha != 0 }
func isAlnum(c byte) bool { return classTable[c]&classAlnum != 0 }

// equalFold reports whether b equals the lower-case ASCII string s, ASCII letters in any case.
func equalFold(b []byte, s string) bool {
	return len(b) == len(s) && hasPrefixFold(b, s)
}

func hasPrefixFold(b []byte, s string) bool {
	if len(b) < len(s) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if lowerTable[b[i]] != s[i] {
			return false
		}
	}
	return true
}

// trimSpace cuts ASCII white space at both ends.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// trimURL cuts C0 controls and spaces at both ends, as the URL standard's parser does first.
func trimURL(b []byte) []byte {
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	return b
}
