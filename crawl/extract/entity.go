package extract

import (
	"bytes"
	"html"
	"unicode/utf8"
)

// Character references, HTML standard section 13.2.5.72 and on. Only 106 names may lack their semicolon, none longer than six
// bytes: the markup and Latin-1 names below. The other two thousand need one and are rare on pages, so the standard library's
// table answers for them, at the price of an allocation.

const (
	maxLegacyName = 6
	maxEntityName = 32 // the longest is CounterClockwiseContourIntegral
)

// latin1Names are the names of U+00A0 to U+00FF in order.
const latin1Names = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr " +
	"deg plusmn sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest " +
	"Agrave Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml " +
	"ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig " +
	"agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave iacute icirc iuml " +
	"eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml yacute thorn yuml"

type legacyEntry struct {
	key uint64
	r   rune
}

const legacyBits = 8

// legacyTable is an open-addressed table of the names that may lack a semicolon. It is built once and never written again.
var legacyTable = buildLegacyTable()

func legacySlot(key uint64) uint64 { return key * hashFactor >> (64 - legacyBits) }

func buildLegacyTable() *[1 << legacyBits]legacyEntry {
	t := new([1 << legacyBits]legacyEntry)
	add := func(name string, r rune) {
		key := packName(name)
		i := legacySlot(key)
		for t[i].key != 0 {
			i = (i + 1) & (1<<legacyBits - 1)
		}
		t[i] = legacyEntry{key, r}
	}
	r := rune(0xA0)
	for _, name := range bytes.Fields([]byte(latin1Names)) {
		add(string(name), r)
		r++
	}
	for name, r := range map[string]rune{
		"amp": '&', "AMP": '&', "lt": '<', "LT": '<', "gt": '>', "GT": '>', "quot": '"', "QUOT": '"', "COPY": 0xA9, "REG": 0xAE,
	} {
		add(name, r)
	}
	return t
}

func lookupLegacy(key uint64) rune {
	for i := legacySlot(key); ; i = (i + 1) & (1<<legacyBits - 1) {
		e := &legacyTable[i]
		if e.key == key {
			return e.r
		}
		if e.key == 0 {
			return 0
		}
	}
}

// reference reads the character reference at b[0] == '&'. It appends the characters to dst and returns the bytes consumed, or
// 0 when there is none and the ampersand stands for itself.
func reference(dst, b []byte, inAttribute bool) ([]byte, int) {
	if len(b) < 2 {
		return dst, 0
	}
	if b[1] == '#' {
		return numericReference(dst, b)
	}
	if !isAlpha(b[1]) {
		return dst, 0
	}
	// The name is the longest run of letters and digits; only a legacy name may be a proper prefix of it.
	end := 1
	var legacyRune rune
	legacyEnd := 0
	var key uint64
	for end < len(b) && end <= maxEntityName && isAlnum(b[end]) {
		if end <= maxLegacyName {
			key = key<<8 | uint64(b[end])
			if r := lookupLegacy(key); r != 0 {
				legacyRune, legacyEnd = r, end+1
			}
		}
		end++
	}
	if end < len(b) && b[end] == ';' {
		if legacyEnd == end {
			return utf8.AppendRune(dst, legacyRune), end + 1
		}
		if out, ok := longEntity(dst, b[:end+1]); ok {
			return out, end + 1
		}
	}
	if legacyEnd == 0 {
		return dst, 0
	}
	if inAttribute && legacyEnd < len(b) && (b[legacyEnd] == '=' || isAlnum(b[legacyEnd])) {
		return dst, 0 // "&copy=1" in a query string is not a copyright sign
	}
	return utf8.AppendRune(dst, legacyRune), legacyEnd
}

// longEntity decodes "&name;" for a name that needs its semicolon.
func longEntity(dst, b []byte) ([]byte, bool) {
	switch string(b) {
	case "&apos;":
		return append(dst, '\''), true
	case "&ndash;":
		return append(dst, "\u2013"...), true
	case "&mdash;":
		return append(dst, "\u2014"...), true
	case "&hellip;":
		return append(dst, "\u2026"...), true
	case "&lsquo;":
		return append(dst, "\u2018"...), true
	case "&rsquo;":
		return append(dst, "\u2019"...), true
	case "&ldquo;":
		return append(dst, "\u201C"...), true
	case "&rdquo;":
		return append(dst, "\u201D"...), true
	case "&bull;":
		return append(dst, "\u2022"...), true
	case "&euro;":
		return append(dst, "\u20AC"...), true
	case "&rarr;":
		return append(dst, "\u2192"...), true
	case "&nGt;": // longer decoded than written, which the standard library leaves alone
		return append(dst, "\u226B\u20D2"...), true
	case "&nLt;":
		return append(dst, "\u226A\u20D2"...), true
	}
	in := string(b)
	out := html.UnescapeString(in)
	// A prefix that is a legacy name would be decoded too, and leave the semicolon behind.
	if out == in || out[len(out)-1] == ';' && in != "&semi;" {
		return dst, false
	}
	return append(dst, out...), true
}

// windows1252 is what numeric references to 0x80-0x9F mean.
var windows1252 = [32]rune{
	0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D, 0x017D, 0x8F,
	0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
}

func numericReference(dst, b []byte) ([]byte, int) {
	i := 2
	hex := i < len(b) && (b[i] == 'x' || b[i] == 'X')
	if hex {
		i++
	}
	digits := i
	n := rune(0)
	for ; i < len(b); i++ {
		c := b[i]
		var d rune
		switch {
		case '0' <= c && c <= '9':
			d = rune(c - '0')
		case hex && 'a' <= lowerTable[c] && lowerTable[c] <= 'f':
			d = rune(lowerTable[c]-'a') + 10
		default:
			d = -1
		}
		if d < 0 {
			break
		}
		if n <= utf8.MaxRune {
			if hex {
				n = n*16 + d
			} else {
				n = n*10 + d
			}
		}
	}
	if i == digits {
		return dst, 0
	}
	if i < len(b) && b[i] == ';' {
		i++
	}
	switch {
	case n == 0 || n > utf8.MaxRune || 0xD800 <= n && n <= 0xDFFF:
		n = utf8.RuneError
	case 0x80 <= n && n <= 0x9F:
		n = windows1252[n-0x80]
	}
	return utf8.AppendRune(dst, n), i
}

// appendDecoded appends text or an attribute value with references decoded, CR LF and CR turned into LF, and NUL into U+FFFD.
func appendDecoded(dst, b []byte, inAttribute bool) []byte {
	for i := 0; i < len(b); {
		start := i
		for i < len(b) && b[i] != '&' && b[i] != '\r' && b[i] != 0 {
			i++
		}
		dst = append(dst, b[start:i]...)
		if i >= len(b) {
			break
		}
		switch b[i] {
		case '&':
			out, n := reference(dst, b[i:], inAttribute)
			if n == 0 {
				out, n = append(dst, '&'), 1
			}
			dst = out
			i += n
		case '\r':
			dst = append(dst, '\n')
			i++
			if i < len(b) && b[i] == '\n' {
				i++
			}
		default:
			dst = append(dst, "\uFFFD"...)
			i++
		}
	}
	return dst
}

// needsDecoding reports whether appendDecoded would change b.
func needsDecoding(b []byte) bool {
	for _, c := range b {
		if c == '&' || c == '\r' || c == 0 {
			return true
		}
	}
	return false
}
