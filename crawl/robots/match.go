package robots

import "strings"

// appendRules adds the patterns of one Allow or Disallow line. An empty value
// matches nothing that counts (Google: priority 0), so it adds none.
func appendRules(rules []rule, allow bool, value string) []rule {
	if value == "" {
		return rules
	}
	name := "Disallow: "
	if allow {
		name = "Allow: "
	}
	line := name + strings.ToValidUTF8(value, "\uFFFD")
	add := func(pattern string) {
		literal := strings.IndexByte(pattern, '*') < 0 && pattern[len(pattern)-1] != '$'
		rules = append(rules, rule{pattern: pattern, line: line, allow: allow, literal: literal})
	}
	pattern := escape(value)
	add(pattern)
	if allow {
		// Google: a directory's index page stands for the directory.
		if i := strings.LastIndexByte(pattern, '/'); i >= 0 && strings.HasPrefix(pattern[i:], "/index.htm") {
			add(pattern[:i+1] + "$")
		}
		return rules
	}
	if decoded, _ := normalise(pattern); decoded != pattern {
		add(decoded)
	}
	return rules
}

// matches reports whether the pattern matches a prefix of path, or all of it
// where the pattern ends in "$".
func (r *rule) matches(path string) bool {
	if r.literal {
		return strings.HasPrefix(path, r.pattern)
	}
	return wildcard(path, r.pattern)
}

// wildcard matches a pattern of literal pieces between stars. Each piece is put
// at the first place it fits, which loses no match because only the last piece
// can be tied to the end; so every byte of path is looked at about once.
func wildcard(path, pattern string) bool {
	anchored := pattern != "" && pattern[len(pattern)-1] == '$'
	if anchored {
		pattern = pattern[:len(pattern)-1]
	}
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		return strings.HasPrefix(path, pattern) && (!anchored || len(path) == len(pattern))
	}
	if !strings.HasPrefix(path, pattern[:star]) {
		return false
	}
	path, pattern = path[star:], pattern[star+1:]
	for {
		star = strings.IndexByte(pattern, '*')
		if star < 0 {
			if anchored {
				return strings.HasSuffix(path, pattern)
			}
			return strings.Contains(path, pattern)
		}
		i := strings.Index(path, pattern[:star])
		if i < 0 {
			return false
		}
		path, pattern = path[i+star:], pattern[star+1:]
	}
}

const upperHex = "0123456789ABCDEF"

// escape puts a rule into the form Google's parser compares: octets outside
// ASCII percent-encoded, hex digits of percent-encodings in upper case.
func escape(s string) string {
	clean := true
	for i := 0; i < len(s) && clean; i++ {
		clean = s[i] < 0x80 && (s[i] != '%' || !isEncoded(s, i) || !isLowerHex(s[i+1]) && !isLowerHex(s[i+2]))
	}
	if clean {
		return s
	}
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%' && isEncoded(s, i):
			out = append(out, '%', upper(s[i+1]), upper(s[i+2]))
			i += 2
		case c >= 0x80:
			out = append(out, '%', upperHex[c>>4], upperHex[c&15])
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// canonical reports that normalise would change nothing.
func canonical(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
		if s[i] == '%' && isEncoded(s, i) {
			if isLowerHex(s[i+1]) || isLowerHex(s[i+2]) || unreserved(octet(s, i)) {
				return false
			}
		}
	}
	return true
}

// normalise escapes as escape does and decodes percent-encoded unreserved
// characters (RFC 9309 section 2.2.2, RFC 3986 section 2.3). It also reports
// whether s held octets outside ASCII.
func normalise(s string) (out string, nonASCII bool) {
	b := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%' && isEncoded(s, i):
			if o := octet(s, i); unreserved(o) {
				b = append(b, o)
			} else {
				b = append(b, '%', upper(s[i+1]), upper(s[i+2]))
			}
			i += 2
		case c >= 0x80:
			nonASCII = true
			b = append(b, '%', upperHex[c>>4], upperHex[c&15])
		default:
			b = append(b, c)
		}
	}
	return string(b), nonASCII
}

func isEncoded(s string, i int) bool {
	return i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2])
}

func octet(s string, i int) byte { return hexValue(s[i+1])<<4 | hexValue(s[i+2]) }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isLowerHex(c byte) bool { return 'a' <= c && c <= 'f' }

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		return c - ('a' - 'A')
	}
	return c
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}
