package extract

import "bytes"

// prescan is the standard's "prescan a byte stream to determine its encoding" (HTML standard section 13.2.3.2), and after it
// "get an XML encoding". It returns a label that lookupCharset takes, or "".
func prescan(b []byte) string {
	// UTF-16 without a byte order mark, told by an XML declaration.
	if bytes.HasPrefix(b, []byte("<\x00?\x00x\x00")) {
		return "utf-16le"
	}
	if bytes.HasPrefix(b, []byte("\x00<\x00?\x00x")) {
		return "utf-16be"
	}
	for i := 0; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '<')
		if n < 0 {
			break
		}
		i += n
		rest := b[i:]
		switch {
		case bytes.HasPrefix(rest, []byte("<!--")):
			// The dashes of the opening may be those of the end.
			end := bytes.Index(rest[2:], []byte("-->"))
			if end < 0 {
				return xmlEncoding(b)
			}
			i += 2 + end + 2
		case len(rest) > 5 && hasPrefixFold(rest, "<meta") && (isSpace(rest[5]) || rest[5] == '/'):
			label, next := prescanMeta(b, i+5)
			if label != "" {
				return label
			}
			i = next
		case len(rest) > 1 && isAlpha(rest[1]) || len(rest) > 2 && rest[1] == '/' && isAlpha(rest[2]):
			for i < len(b) && !isSpace(b[i]) && b[i] != '>' {
				i++
			}
			for {
				var ok bool
				if _, _, i, ok = prescanAttr(b, i); !ok {
					break
				}
			}
		case len(rest) > 1 && (rest[1] == '!' || rest[1] == '/' || rest[1] == '?'):
			end := bytes.IndexByte(rest, '>')
			if end < 0 {
				return xmlEncoding(b)
			}
			i += end
		}
	}
	return xmlEncoding(b)
}

// prescanMeta reads the attributes of a meta tag from i on.
func prescanMeta(b []byte, i int) (label string, next int) {
	var seen [8][]byte
	names := seen[:0]
	gotPragma := false
	needPragma := 0 // 0 unknown, 1 needed, 2 not
	charset := ""
	for {
		name, value, n, ok := prescanAttr(b, i)
		i = n
		if !ok {
			break
		}
		known := false
		for _, s := range names {
			known = known || bytes.EqualFold(s, name)
		}
		if known {
			continue
		}
		switch {
		case equalFold(name, "http-equiv"):
			gotPragma = equalFold(value, "content-type")
		case equalFold(name, "content"):
			if charset == "" {
				if c := metaContentCharset(value); c != "" && knownCharset(c) {
					charset, needPragma = c, 1
				}
			}
		case equalFold(name, "charset"):
			needPragma = 2
			if c := string(trimSpace(value)); knownCharset(c) {
				charset = c
			} else {
				charset = "?"
			}
		default:
			continue
		}
		names = append(names, name)
	}
	if i >= len(b) && (len(b) == 0 || b[len(b)-1] != '>') {
		return "", i // the tag runs past what may be looked at
	}
	if needPragma == 0 || needPragma == 1 && !gotPragma || charset == "?" || charset == "" {
		return "", i
	}
	return metaLabel(charset), i
}

func knownCharset(label string) bool {
	_, name := lookupCharset(label)
	return name != ""
}

// metaLabel applies the overrides for encodings that cannot be true of a page whose meta was read as ASCII.
func metaLabel(label string) string {
	switch _, name := lookupCharset(label); name {
	case "utf-16be", "utf-16le":
		return utf8Name
	case "x-user-defined":
		return "windows-1252"
	}
	return label
}

// metaContentCharset is the standard's "extracting a character encoding from a meta element" (section 2.4.4).
func metaContentCharset(s []byte) string {
	for {
		i := 0
		for ; i < len(s); i++ {
			if hasPrefixFold(s[i:], "charset") {
				break
			}
		}
		if i >= len(s) {
			return ""
		}
		s = s[i+len("charset"):]
		for len(s) > 0 && isSpace(s[0]) {
			s = s[1:]
		}
		if len(s) == 0 || s[0] != '=' {
			continue
		}
		s = s[1:]
		for len(s) > 0 && isSpace(s[0]) {
			s = s[1:]
		}
		if len(s) == 0 {
			return ""
		}
		if q := s[0]; q == '"' || q == '\'' {
			end := bytes.IndexByte(s[1:], q)
			if end < 0 {
				return ""
			}
			return string(s[1 : 1+end])
		}
		end := 0
		for end < len(s) && !isSpace(s[end]) && s[end] != ';' {
			end++
		}
		return string(s[:end])
	}
}

// prescanAttr is the standard's "get an attribute" of the prescan. ok is false when there is none; next then stands on the byte
// that ended the tag.
func prescanAttr(b []byte, i int) (name, value []byte, next int, ok bool) {
	for i < len(b) && (isSpace(b[i]) || b[i] == '/') {
		i++
	}
	if i >= len(b) || b[i] == '>' {
		return nil, nil, i, false
	}
	start := i
	for i < len(b) && !(b[i] == '=' && i > start) && !isSpace(b[i]) && b[i] != '/' && b[i] != '>' {
		i++
	}
	if i >= len(b) {
		return nil, nil, i, false
	}
	name = b[start:i]
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	if i >= len(b) {
		return nil, nil, i, false
	}
	if b[i] != '=' {
		return name, nil, i, true
	}
	i++
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	if i >= len(b) {
		return nil, nil, i, false
	}
	if q := b[i]; q == '"' || q == '\'' {
		i++
		n := bytes.IndexByte(b[i:], q)
		if n < 0 {
			return nil, nil, len(b), false
		}
		return name, b[i : i+n], i + n + 1, true
	}
	start = i
	for i < len(b) && !isSpace(b[i]) && b[i] != '>' {
		i++
	}
	if i >= len(b) {
		return nil, nil, i, false
	}
	return name, b[start:i], i, true
}

// xmlEncoding is the standard's "get an XML encoding": the encoding of an XML declaration at the very start.
func xmlEncoding(b []byte) string {
	if !bytes.HasPrefix(b, []byte("<?xml")) {
		return ""
	}
	end := bytes.IndexByte(b, '>')
	if end < 0 {
		return ""
	}
	b = b[:end]
	i := bytes.Index(b, []byte("encoding"))
	if i < 0 {
		return ""
	}
	b = b[i+len("encoding"):]
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	if len(b) == 0 || b[0] != '=' {
		return ""
	}
	b = b[1:]
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	if len(b) == 0 || b[0] != '"' && b[0] != '\'' {
		return ""
	}
	n := bytes.IndexByte(b[1:], b[0])
	if n < 0 {
		return ""
	}
	label := string(b[1 : 1+n])
	for _, c := range []byte(label) {
		if c <= ' ' {
			return ""
		}
	}
	if !knownCharset(label) {
		return ""
	}
	return metaLabel(label)
}
