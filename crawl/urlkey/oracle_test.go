package urlkey_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	whatwg "github.com/nlnwa/whatwg-url/url"

	"deepcrawl/crawl/urlkey"
)

// The oracle: whatwg-url parses the whole URL, and the further rules of the
// package comment are applied to what it found, written with other means than
// in the package. net/url is no judge of what browsers follow.

var (
	errOracleScheme  = errors.New("scheme")
	errOracleInvalid = errors.New("invalid")
)

func oracleParse(raw string) (string, error) { return oracleForm(whatwg.Parse(escapeNonUTF8(raw))) }

func oracleResolve(base, href string) (string, error) {
	return oracleForm(whatwg.ParseRef(escapeNonUTF8(base), escapeNonUTF8(href)))
}

// escapeNonUTF8 is needed because the library replaces such bytes.
func escapeNonUTF8(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", s[0])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func oracleForm(u *whatwg.Url, err error) (string, error) {
	if err != nil {
		return "", errOracleInvalid
	}
	if p := u.Protocol(); p != "http:" && p != "https:" {
		return "", errOracleScheme
	}
	return oracleRules(u.Protocol(), u.Hostname(), u.Port(), u.Pathname(), u.Query())
}

// oracleRules applies the rules of the package comment to the parts of a URL
// that was parsed by the URL Standard.
func oracleRules(protocol, host, port, path, query string) (string, error) {
	host = strings.TrimSuffix(host, ".")
	if slices.Contains(strings.Split(host, "."), "") {
		return "", errOracleInvalid
	}
	form := protocol + "//" + host
	if port != "" {
		form += ":" + port
	}
	form += oracleEscapes(path, "-._~!$&'()*+,;=:@/")
	var params []string
	for param := range strings.SplitSeq(oracleEscapes(query, "-._~!$&()*+,;=:@/?"), "&") {
		name, _, _ := strings.Cut(strings.ToLower(param), "=")
		if !strings.HasPrefix(name, "utm_") && !slices.Contains(urlkey.DefaultTrackingParams(), name) {
			params = append(params, param)
		}
	}
	if query := strings.Join(params, "&"); query != "" {
		form += "?" + query
	}
	return form, nil
}

var signedLabel = regexp.MustCompile(`(^|\.)(0x?)?[+-][0-9a-f]*(:\d+)?$`)

var (
	token      = regexp.MustCompile(`(?s)%[0-9A-Fa-f]{2}|.`)
	alphanum   = regexp.MustCompile(`^[0-9A-Za-z]$`)
	unreserved = regexp.MustCompile(`^[0-9A-Za-z._~-]$`)
	hexDigit   = regexp.MustCompile(`^[0-9A-Fa-f]$`)
)

func oracleEscapes(s, allowed string) string {
	out := []string{"", ""}
	for _, t := range token.FindAllString(s, -1) {
		switch {
		case len(t) == 3 && t[0] == '%':
			t = strings.ToUpper(t)
			var b byte
			_, _ = fmt.Sscanf(t, "%%%02X", &b)
			c := string([]byte{b})
			n := len(out)
			afterLone := out[n-1] == "%" || out[n-2] == "%" && hexDigit.MatchString(out[n-1])
			if unreserved.MatchString(c) && !(hexDigit.MatchString(c) && afterLone) {
				t = c
			}
		case t != "%" && !alphanum.MatchString(t) && !strings.Contains(allowed, t):
			t = fmt.Sprintf("%%%02X", t)
		}
		out = append(out, t)
	}
	return strings.Join(out, "")
}

// checkAgainst compares a result of the package with the oracle's.
func checkAgainst(t *testing.T, what string, u urlkey.URL, err error, want string, wantErr error) {
	t.Helper()
	if errors.Is(err, urlkey.ErrTooLong) {
		if len(u.Raw) <= urlkey.MaxLen {
			t.Errorf("%s: too long with %d bytes", what, len(u.Raw))
		}
		err = nil
	} else if len(u.Raw) > urlkey.MaxLen {
		t.Errorf("%s: %d bytes are not too long", what, len(u.Raw))
	}
	if err == nil && strings.Contains("."+u.Host, ".xn--") && (wantErr != nil || strings.Contains(strings.ToLower(what), "xn--")) {
		return // the library still decodes A-labels, the URL Standard does not
	}
	if err == nil && signedLabel.MatchString(u.Host) {
		return // the library reads a signed last label as a number
	}
	switch {
	case wantErr != nil && err == nil:
		t.Errorf("%s: got %q, want an error (%v)", what, u.Raw, wantErr)
	case errors.Is(wantErr, errOracleScheme) && !errors.Is(err, urlkey.ErrScheme):
		t.Errorf("%s: got %v, want ErrScheme", what, err)
	case wantErr == nil && err != nil:
		t.Errorf("%s: got %v, want %q", what, err, want)
	case wantErr == nil && string(u.Raw) != want:
		t.Errorf("%s: got %q, want %q", what, u.Raw, want)
	}
}
