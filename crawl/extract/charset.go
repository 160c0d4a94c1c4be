package extract

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/transform"
)

// prescanBytes is how much of a page the standard lets the meta prescan look at.
const prescanBytes = 1024

const utf8Name = "utf-8"

// foundCharset is what sniffCharset found.
type foundCharset struct {
	enc     encoding.Encoding // nil for UTF-8
	name    string            // canonical WHATWG name, lower case
	bom     int               // bytes of byte order mark
	certain bool              // a later meta element does not change it
	valid   bool              // the body is known to be valid UTF-8
}

// sniffCharset finds the encoding of a page: byte order mark, Content-Type, meta prescan, XML declaration, then UTF-8 when the
// bytes are that and windows-1252 otherwise (HTML standard section 13.2.3.2).
func sniffCharset(body []byte, contentType string) foundCharset {
	switch {
	case bytes.HasPrefix(body, []byte("\xEF\xBB\xBF")):
		return foundCharset{name: utf8Name, bom: 3, certain: true}
	case bytes.HasPrefix(body, []byte("\xFE\xFF")):
		enc, name := lookupCharset("utf-16be")
		return foundCharset{enc: enc, name: name, bom: 2, certain: true}
	case bytes.HasPrefix(body, []byte("\xFF\xFE")):
		enc, name := lookupCharset("utf-16le")
		return foundCharset{enc: enc, name: name, bom: 2, certain: true}
	}
	if label := contentTypeCharset(contentType); label != "" {
		if enc, name := lookupCharset(label); name != "" {
			return foundCharset{enc: enc, name: name, certain: true}
		}
	}
	if label := prescan(body[:min(len(body), prescanBytes)]); label != "" {
		if enc, name := lookupCharset(label); name != "" {
			return foundCharset{enc: enc, name: name}
		}
	}
	if utf8.Valid(cutPartial(body)) {
		return foundCharset{name: utf8Name, valid: true}
	}
	enc, name := lookupCharset("windows-1252")
	return foundCharset{enc: enc, name: name}
}

// cutPartial cuts a last UTF-8 character that is not all there, as happens at the size cap.
func cutPartial(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		c := b[len(b)-i]
		if c < utf8.RuneSelf {
			break
		}
		if utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				b = b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// lookupCharset finds an encoding by a WHATWG label. The name is empty for an unknown label, the encoding nil for UTF-8.
func lookupCharset(label string) (encoding.Encoding, string) {
	if label == "utf-8" || label == "UTF-8" {
		return nil, utf8Name
	}
	enc, name := charset.Lookup(label)
	switch name {
	case "":
		return nil, ""
	case utf8Name:
		return nil, utf8Name
	case "gbk", "gb18030":
		// One decoder for both labels, as the Encoding standard says; the GBK one mangles four-byte sequences.
		return simplifiedchinese.GB18030, name
	}
	return enc, name
}

// contentTypeCharset is the charset parameter of a Content-Type value.
func contentTypeCharset(contentType string) string {
	rest := []byte(contentType)
	i := bytes.IndexByte(rest, ';')
	for i >= 0 {
		rest = trimSpace(rest[i+1:])
		eq := bytes.IndexAny(rest, "=;")
		if eq < 0 {
			return ""
		}
		if rest[eq] == ';' {
			i = eq
			continue
		}
		name := trimSpace(rest[:eq])
		rest = trimSpace(rest[eq+1:])
		var value []byte
		if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
			q := rest[0]
			rest = rest[1:]
			end := bytes.IndexByte(rest, q)
			if end < 0 {
				end = len(rest)
			}
			value, rest = rest[:end], rest[end:]
		} else {
			end := bytes.IndexByte(rest, ';')
			if end < 0 {
				end = len(rest)
			}
			value, rest = rest[:end], rest[end:]
		}
		if equalFold(name, "charset") {
			return string(trimSpace(value))
		}
		i = bytes.IndexByte(rest, ';')
	}
	return ""
}

// decode appends body, in the given encoding, to dst as UTF-8. Undecodable bytes become U+FFFD.
func decode(dst, body []byte, enc encoding.Encoding) []byte {
	d := enc.NewDecoder()
	for {
		if cap(dst)-len(dst) < 64 || cap(dst) < len(body) {
			grown := make([]byte, len(dst), max(2*cap(dst), len(body)+len(body)/2+64))
			copy(grown, dst)
			dst = grown
		}
		n, m, err := d.Transformer.Transform(dst[len(dst):cap(dst)], body, true)
		dst, body = dst[:len(dst)+n], body[m:]
		if err == transform.ErrShortDst {
			if n == 0 && m == 0 {
				grown := make([]byte, len(dst), 2*cap(dst)+64)
				copy(grown, dst)
				dst = grown
			}
			continue
		}
		return dst
	}
}
