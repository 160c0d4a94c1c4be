package urlkey

import "bytes"

// plainPath returns how many leading bytes of s, which starts with a slash,
// are a path that is its own canonical form.
func plainPath(s []byte) int {
	for i, c := range s {
		if class[c]&pathByte != 0 {
			continue
		}
		// A segment that starts with a dot may be a dot segment.
		if c == '/' || c == '.' && i > 0 && s[i-1] != '/' {
			continue
		}
		return i
	}
	return len(s)
}

// plainQuery is plainPath for a query, with or without its question mark.
func plainQuery(s []byte) int {
	for i, c := range s {
		if class[c]&queryByte == 0 {
			return i
		}
	}
	return len(s)
}

// appendPath appends the segments of s to out, whose path so far starts at
// pathAt, and returns what follows them: nothing, or a query. The slash
// before the first segment is not part of s. URL Standard, path state.
func appendPath(out []byte, pathAt int, s []byte) (grown, rest []byte) {
	for {
		n := 0
		for n < len(s) && !isSlash(s[n]) && s[n] != '?' {
			n++
		}
		segment, last := s[:n], n == len(s) || s[n] == '?'
		switch dots(segment) {
		case 2:
			if i := bytes.LastIndexByte(out[pathAt:], '/'); i >= 0 {
				out = out[:pathAt+i]
			}
			if last {
				out = append(out, '/')
			}
		case 1:
			if last {
				out = append(out, '/')
			}
		default:
			out = append(out, '/')
			out = appendEscaped(out, segment, pathByte|unreserved)
		}
		if last {
			return out, s[n:]
		}
		s = s[n+1:]
	}
}

// dots returns 1 for a segment that means ".", 2 for "..", else 0.
func dots(segment []byte) int {
	if len(segment) > len("%2e%2e") {
		return 0
	}
	n := 0
	for i := 0; i < len(segment); n++ {
		switch {
		case segment[i] == '.':
			i++
		case len(segment) >= i+3 && segment[i] == '%' && segment[i+1] == '2' && segment[i+2]|0x20 == 'e':
			i += 3
		default:
			return 0
		}
	}
	if n > 2 {
		return 0
	}
	return n
}

// completes says that a hex digit appended to out would be read as part of an
// escape that the `%` at lone starts.
func completes(out []byte, lone int) bool {
	n := len(out) - lone
	return n == 1 || n == 2 && is(out[len(out)-1], hexDigit)
}

// appendEscaped appends s with its escapes normalised and every byte that has
// none of the bits escaped.
func appendEscaped(out, s []byte, bits byte) []byte {
	lone := -3 // where out has its last `%` that starts no escape
	for i := 0; i < len(s); {
		n := i
		for n < len(s) && class[s[n]]&bits != 0 {
			n++
		}
		out = append(out, s[i:n]...)
		if i = n; i == len(s) {
			break
		}
		c := s[i]
		switch {
		case c != '%':
			out = append(out, '%', hexUpper[c>>4], hexUpper[c&15])
			i++
		case i+2 < len(s) && is(s[i+1], hexDigit) && is(s[i+2], hexDigit):
			b := unhex(s[i+1])<<4 | unhex(s[i+2])
			if is(b, unreserved) && !(is(b, hexDigit) && completes(out, lone)) {
				out = append(out, b)
			} else {
				out = append(out, '%', hexUpper[b>>4], hexUpper[b&15])
			}
			i += 3
		default:
			lone = len(out)
			out = append(out, '%')
			i++
		}
	}
	return out
}
