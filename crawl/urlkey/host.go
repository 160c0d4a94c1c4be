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
	authority, rest := s[:n], s[n:]
	if i := bytes.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	host, port := splitPort(authority)
	https := out[len(out)-len("s://")] == 's'
	switch {
	case len(host) == 0 || len(host) > maxHost:
		return out, nil, ErrInvalid
	case plainHost(host):
		out = append(out, host...)
	default:
		h, err := parseHost(string(host))
		if err != nil {
			return out, nil, err
		}
		out = append(out, h...)
	}
	out, ok := appendPort(out, port, https)
	if !ok {
		return out, nil, ErrInvalid
	}
	return out, rest, nil
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

// plainHost says that h is its own canonical form: a lower-case ASCII name
// that is neither in A-label form, which needs checking, nor an IPv4 address
// in any of its spellings, whose last label starts with a digit.
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
		} else if c == '-' && i == label+3 && h[label] == 'x' && h[label+1] == 'n' && h[label+2] == '-' {
			return false
		}
	}
	return label < len(h) && 'a' <= h[label] && h[label] <= 'z'
}

// parseHost is the host parser of the URL Standard, for hosts of special
// schemes, and this package's two rules on dots.
func parseHost(h string) (string, error) {
	if h[0] == '[' && strings.IndexAny(h[1:], "[]") != len(h)-2 {
		return "", ErrInvalid // whatwg-url strips any number of brackets
	}
	u, err := whatwg.Parse("http://" + h + "/")
	if err != nil {
		return "", ErrInvalid
	}
	name := strings.TrimSuffix(u.Hostname(), ".")
	if name == "" || name[0] == '.' || strings.HasSuffix(name, ".") || strings.Contains(name, "..") {
		return "", ErrInvalid
	}
	return name, nil
}

// politeHost returns the unit of politeness of an origin, a substring of it.
func politeHost(origin string) string {
	_, host, _ := strings.Cut(origin, "://")
	if name, ok := strings.CutPrefix(host, "www."); ok && strings.Contains(name, ".") {
		return name
	}
	return host
}
