package urlkey_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"deepcrawl/crawl/urlkey"
)

// pieces are what URLs that parsers disagree on are made of.
var pieces = strings.Split(
	`http: https: HTTPS: // / / / \ ? ? & = # @ : . .. ... %2e %2E . - _ ~ ' " < > [ ] { } | ^ ; , ! $ ( ) * +`+
		` a b A Z 0 9 1 4 f % % %4 %41 %7e %7E %2f %2F %25 %c3%bc %zz %00 %20 %61 ü ß 北 ΐ 。 xn-- xn--bcher-kva xn--a --`+
		` www. h.example example.com EXAMPLE.com localhost user:pw@ :80 :443 :8080 :0 :99999 : 1.2.3.4 0x7f 127.1 [::1] [1:2::3] 256 08`+
		` utm_source utm_ gclid=1 fbclid UTM_ID=%75 index.html page mailto: javascript: data: file:`, " ")

func generate(r *rand.Rand, most int) string {
	var b strings.Builder
	if r.IntN(3) > 0 {
		b.WriteString([]string{"http://", "https://", "//", "/", "http://h.example/", "https://www.example.com/"}[r.IntN(6)])
	}
	for range r.IntN(most) {
		switch n := r.IntN(100); {
		case n < 3:
			b.WriteByte(byte(r.IntN(256)))
		case n < 5:
			b.WriteString([]string{" ", "\t", "\n", "\r", "\x00", "\x7f", "\u00a0", "\u00ad", "\u200d", "\ufffd"}[r.IntN(10)])
		default:
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
	}
	return b.String()
}

func TestGenerated(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	r := rand.New(rand.NewPCG(1, 2))
	bases := []string{"https://www.example.com/x/y/z?q", "http://h.example", "http://h.example:8080//%zz/?x", "https://www.example.com/a/./b"}
	parsed, resolved := 0, 0
	for range 30_000 {
		raw := generate(r, 14)
		if oracleGivesUp(raw) {
			continue
		}
		u, err := c.Parse(raw)
		want, wantErr := oracleParse(raw)
		checkAgainst(t, raw, u, err, want, wantErr)
		checkForm(t, c, u, err)
		if err == nil {
			parsed++
		}
		base := bases[r.IntN(len(bases))]
		b, err := c.NewBase(base)
		if err != nil {
			t.Fatal(err)
		}
		u, _, err = b.Resolve(nil, []byte(raw))
		want, wantErr = oracleResolve(base, raw)
		checkAgainst(t, base+" + "+raw, u, err, want, wantErr)
		checkForm(t, c, u, err)
		if err == nil {
			resolved++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d parsed, %d resolved", parsed, resolved)
	if parsed < 5_000 || resolved < 15_000 {
		t.Errorf("too few generated URLs are valid to mean much: %d parsed, %d resolved", parsed, resolved)
	}
}
