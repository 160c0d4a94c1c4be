package urlkey

import (
	"bytes"
	"strconv"
	"strings"

	whatwg "github.com/nlnwa/whatwg-url/url"
)

// maxHost bounds what is given to the host parser, in bytes of input. A name
// of 253 octets (RFC 1035, 2.3.4), every one escaped and in the longest
// Unicode spelling, is shorter.
const maxHost = 4096

// appendAuthority appends host and port of the authority that s starts with
// to out, which ends in scheme://, and returns what follows the authority. The
// slashes before it are not part of s.
func appendAuthority(out, s []byte) (grown, rest []byte, err error) {
	n := 0
	for n < len(s) && !isSlash(s[n]) && s[n] != '?' {
		n++
	}
	authority := s[:n]
	if i := bytes.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	host, port := splitPort(authority)
	https := out[len(out)-len("s://")] == 's'
	if len(host) == 0 || len(host) > maxHost {
		return out, nil, ErrInvalid
	}
	out, ok := appendHost(out, host)
	if !ok {
		return out, nil, ErrInvalid
	}
	out, ok = appendPort(out, port, https)
	if !ok {
		return out, nil, ErrInvalid
	}
	return out, s[n:], nil
}

// splitPort splits at the first colon outside of brackets.
func splitPort(authority []byte) (host, port []byte) {
	bracket := false
	for i, c := range authority {
		switch c {
		case '[':
			bracket = true
		case ']':
			bracket = false
		case ':':
			if !bracket {
				return authority[:i], authority[i+1:]
			}
		}
	}
	return authority, nil
}

func appendPort(out, port []byte, https bool) (grown []byte, ok bool) {
	if len(port) == 0 {
		return out, true
	}
	n := 0
	for _, c := range port {
		if c < '0' || c > '9' {
			return out, false
		}
		if n = n*10 + int(c-'0'); n > 65535 {
			return out, false
		}
	}
	if https && n == 443 || !https && n == 80 {
		return out, true
	}
	out = append(out, ':')
	return strconv.AppendInt(out, int64(n), 10), true
}

// appendHost is the host parser of the URL Standard for hosts of special
// schemes, and this package's two rules on dots. ASCII names, A-labels among
// them, are only put into lower case: whether a label is a valid A-label is
// for DNS to say, as the standard has it since 2025.
func appendHost(out, h []byte) (grown []byte, ok bool) {
	if plainHost(h) {
		return append(out, h...), true
	}
	if h[0] == '[' {
		if bytes.IndexAny(h[1:], "[]") != len(h)-2 {
			return out, false // whatwg-url strips any number of brackets
		}
		return appendParsedHost(out, h)
	}
	at := len(out)
	for i := 0; i < len(h); i++ {
		c := h[i]
		if c == '%' && i+2 < len(h) && is(h[i+1], hexDigit) && is(h[i+2], hexDigit) {
			c = unhex(h[i+1])<<4 | unhex(h[i+2])
			i += 2
		}
		switch {
		case c >= 0x80:
			return appendParsedHost(out[:at], h)
		case is(c, forbiddenByte):
			return out, false
		case 'A' <= c && c <= 'Z':
			c |= 0x20
		}
		out = append(out, c)
	}
	if endsInNumber(out[at:]) {
		return appendParsedHost(out[:at], h)
	}
	return trimDot(out, at)
}

// plainHost says that h is its own canonical form: a lower-case ASCII name
// that is not an IPv4 address in one of its spellings, whose last label starts
// with a digit.
func plainHost(h []byte) bool {
	label := 0
	for i, c := range h {
		if class[c]&hostByte == 0 {
			return false
		}
		if c == '.' {
			if i == label {
				return false
			}
			label = i + 1
		}
	}
	return label < len(h) && 'a' <= h[label] && h[label] <= 'z'
}

// endsInNumber is the ends-in-a-number checker of the URL Standard.
func endsInNumber(name []byte) bool {
	name = bytes.TrimSuffix(name, []byte("."))
	last := name[bytes.LastIndexByte(name, '.')+1:]
	if len(last) == 0 {
		return false
	}
	digits, isDigit := last, func(c byte) bool { return '0' <= c && c <= '9' }
	if len(last) >= 2 && last[0] == '0' && last[1] == 'x' {
		digits, isDigit = last[2:], func(c byte) bool { return is(c, hexDigit) }
	}
	for _, c := range digits {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

// appendParsedHost leaves addresses and names beyond ASCII to whatwg-url.
func appendParsedHost(out, h []byte) (grown []byte, ok bool) {
	u, err := whatwg.Parse("http://" + string(h) + "/")
	if err != nil {
		return out, false
	}
	return trimDot(append(out, u.Hostname()...), len(out))
}

// trimDot removes the dot that ends the name at out[at:], and refuses the name
// when it is or has an empty label.
func trimDot(out []byte, at int) (trimmed []byte, ok bool) {
	out = bytes.TrimSuffix(out, []byte("."))
	if len(out) <= at {
		return out, false
	}
	name := out[at:]
	return out, name[0] != '.' && name[len(name)-1] != '.' && !bytes.Contains(name, []byte(".."))
}

// politeHost returns the unit of politeness of an origin, a substring of it.
func politeHost(origin string) string {
	_, host, _ := strings.Cut(origin, "://")
	if name, ok := strings.CutPrefix(host, "www."); ok && strings.Contains(name, ".") {
		return name
	}
	return host
}
