package fetch

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Request is one exchange to make; always a GET.
type Request struct {
	// URL is absolute, http or https. Path and query are sent byte for byte
	// (a lone "%" too); bytes that may not stand in a request line are
	// percent-encoded. A fragment is dropped, and so is "user:password@":
	// credentials found in links are never sent.
	URL    string
	Accept string      // empty means Config.Accept
	Header http.Header // added to the request, replacing a default of the same name; never changed
	// Guard, when set, is called once the connection is ready, right before
	// the request is written. If it returns an error nothing is written and the
	// result has Reason guard and that error. It is called again only if the
	// connection proved dead before a byte was written and another was dialled.
	Guard func() error
	// MaxBody overrides Config.MaxBody, in bytes.
	MaxBody int64
	// BodyFor decides, once the head is there, whether the body is wanted; nil
	// means always. Refused bodies are not stored; Result.Bytes is then the
	// Content-Length, or 0 where there is none.
	BodyFor func(status int, contentType string) bool
}

// target is a parsed URL.
type target struct {
	https     bool
	host      string // lower case, no brackets, no port
	port      uint16
	authority string // as in the Host header: no default port
	uri       string // path and query
}

func (t *target) scheme() string {
	if t.https {
		return "https"
	}
	return "http"
}

// addr is host and port for dialling.
func (t *target) addr() string {
	if strings.IndexByte(t.host, ':') >= 0 {
		return "[" + t.host + "]:" + strconv.Itoa(int(t.port))
	}
	return t.host + ":" + strconv.Itoa(int(t.port))
}

// url gives the URL in the form that makes net/http send uri unchanged.
func (t *target) url() *url.URL {
	u := &url.URL{Scheme: t.scheme(), Host: t.authority}
	if !strings.HasPrefix(t.uri, "//") {
		u.Opaque = t.uri
		return u
	}
	// Opaque with two leading slashes means an absolute request target to
	// net/http. Origin form is commoner, so take it where it survives.
	path, query, hasQuery := strings.Cut(t.uri, "?")
	if plain, err := url.PathUnescape(path); err == nil {
		v := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: plain, RawPath: path, RawQuery: query, ForceQuery: hasQuery && query == ""}
		if v.EscapedPath() == path && v.RequestURI() == t.uri {
			return v
		}
	}
	u.Opaque = "//" + t.authority + t.uri
	return u
}

const maxURL = 64 << 10

// parseTarget takes an absolute URL apart. It wants what a URL library has
// already canonicalised and is strict about the authority, lax about the rest.
func parseTarget(raw string) (target, error) {
	var t target
	bad := func(why string) (target, error) { return target{}, fmt.Errorf("%w: %s", ErrBadURL, why) }
	if len(raw) > maxURL {
		return bad("too long")
	}
	var rest string
	switch {
	case len(raw) >= 7 && strings.EqualFold(raw[:7], "http://"):
		rest, t.port = raw[7:], 80
	case len(raw) >= 8 && strings.EqualFold(raw[:8], "https://"):
		rest, t.port, t.https = raw[8:], 443, true
	default:
		return bad("scheme is not http or https")
	}
	defaultPort := t.port
	rest, _, _ = strings.Cut(rest, "#")
	authority := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, rest = rest[:i], rest[i:]
	} else {
		rest = ""
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	host, port := authority, ""
	if strings.HasPrefix(authority, "[") {
		end := strings.IndexByte(authority, ']')
		if end < 0 {
			return bad("unclosed [ in host")
		}
		ip, err := netip.ParseAddr(authority[1:end])
		if err != nil || !ip.Is6() || ip.Zone() != "" {
			return bad("IPv6 host")
		}
		host, port = ip.String(), authority[end+1:]
		if port != "" && port[0] != ':' {
			return bad("text after ]")
		}
		port = strings.TrimPrefix(port, ":")
		t.authority = "[" + host + "]"
	} else {
		if i := strings.LastIndexByte(authority, ':'); i >= 0 {
			host, port = authority[:i], authority[i+1:]
		}
		var err error
		if host, err = cleanHost(host); err != nil {
			return bad(err.Error())
		}
		t.authority = host
	}
	t.host = host
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return bad("port")
		}
		t.port = uint16(n)
		if t.port != defaultPort {
			t.authority += ":" + strconv.Itoa(int(t.port))
		}
	}
	switch {
	case rest == "":
		t.uri = "/"
	case rest[0] == '?':
		t.uri = "/" + escape(rest)
	default:
		t.uri = escape(rest)
	}
	return t, nil
}

// cleanHost lower-cases a host name and gives it in ASCII.
func cleanHost(host string) (string, error) {
	plain, ascii := true, true
	for i := 0; i < len(host); i++ {
		b := host[i]
		switch {
		case b >= 0x80:
			ascii = false
		case 'a' <= b && b <= 'z', '0' <= b && b <= '9', b == '-', b == '.', b == '_':
		case 'A' <= b && b <= 'Z':
			plain = false
		default:
			return "", fmt.Errorf("byte %q in host", b)
		}
	}
	switch {
	case !ascii:
		a, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", fmt.Errorf("host: %w", err)
		}
		host = a
	case !plain:
		host = strings.ToLower(host)
	}
	if host == "" || host == "." || len(host) > 254 || strings.Contains(host, "..") {
		return "", fmt.Errorf("host %q", host)
	}
	return host, nil
}

// escape percent-encodes what may not stand in a request line.
func escape(s string) string {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] >= 0x7f {
			n++
		}
	}
	if n == 0 {
		return s
	}
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(s)+2*n)
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}
