package fetch_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"deepcrawl/crawl/fetch"
)

// curlReply is one raw reply out of a curl test case.
type curlReply struct {
	name  string // testN/data1
	raw   []byte
	check []byte // what curl's client is expected to have received, head and body, or nil
}

var (
	curlSection = regexp.MustCompile(`(?s)<(data[0-9]*)([^>]*)>\n(.*?)\n?</data[0-9]*>`)
	curlCheck   = regexp.MustCompile(`(?s)<datacheck([^>]*)>\n(.*?)</datacheck>`)
	curlHex     = regexp.MustCompile(`(?s)%hex\[(.*?)\]hex%`)
	curlRepeat  = regexp.MustCompile(`(?s)%repeat\[(\d+) x (.*?)\]%`)
	curlHexByte = regexp.MustCompile(`%([0-9a-fA-F]{2})`)
)

// unhex turns %XX into bytes.
func unhex(s string) string {
	return curlHexByte.ReplaceAllStringFunc(s, func(h string) string {
		b, _ := hex.DecodeString(h[1:])
		return string(b)
	})
}

// curlExpand applies the substitutions of curl's docs/tests/FILEFORMAT.md that
// the corpus uses. ok is false where one needs a file the corpus has not.
func curlExpand(attrs, s string) (raw []byte, ok bool) {
	s = curlRepeat.ReplaceAllStringFunc(s, func(m string) string {
		p := curlRepeat.FindStringSubmatch(m)
		n, _ := strconv.Atoi(p[1])
		return strings.Repeat(unhex(p[2]), n)
	})
	s = curlHex.ReplaceAllStringFunc(s, func(m string) string { return unhex(curlHex.FindStringSubmatch(m)[1]) })
	s = strings.NewReplacer("%CR", "\r", "%SP", " ", "%LF", "\n", "%TESTNUMBER", "1234", "%HOSTIP", "127.0.0.1", "%HTTPPORT", "8990", "%HOST6IP", "[::1]").Replace(s)
	switch {
	case strings.Contains(attrs, `crlf="yes"`):
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
	case strings.Contains(attrs, `crlf="headers"`):
		head, body, found := strings.Cut(s, "\n\n")
		s = strings.ReplaceAll(head, "\n", "\r\n")
		if found {
			s += "\r\n\r\n" + body
		}
	}
	return []byte(s), !strings.Contains(s, "%includetext")
}

func curlReplies(t *testing.T) []curlReply {
	f, err := os.Open(filepath.Join(corpus(t, "http-curl"), "curl_http_cases.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []curlReply
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		part, _, _ := strings.Cut(string(text), "</reply>")
		sections := curlSection.FindAllStringSubmatch(part, -1)
		for _, m := range sections {
			body := m[3]
			if !strings.Contains(m[2], `nonewline="yes"`) && body != "" {
				body += "\n"
			}
			raw, ok := curlExpand(m[2], body)
			if !ok {
				continue
			}
			r := curlReply{name: filepath.Base(h.Name) + "/" + m[1], raw: raw}
			if c := curlCheck.FindStringSubmatch(part); c != nil && len(sections) == 1 {
				if check, ok := curlExpand(c[1], c[2]); ok {
					r.check = check
				}
			}
			out = append(out, r)
		}
	}
}

// curlNotMet lists the replies that do not give a whole response, with what
// curl makes of them.
var curlNotMet = map[string]struct {
	reason fetch.Reason
	why    string
}{
	"test36/data":   {fetch.ReasonHTTP, "the chunk size is no number; curl fails too (56)"},
	"test207/data":  {fetch.ReasonOK, "the site closes inside a chunk: kept and flagged; curl fails (18)"},
	"test221/data":  {fetch.ReasonDecode, "broken gzip header; curl fails too (61)"},
	"test223/data":  {fetch.ReasonDecode, "broken deflate data; curl fails too (61)"},
	"test315/data":  {fetch.ReasonDecode, "broken brotli data; curl fails too (61)"},
	"test1416/data": {fetch.ReasonHTTP, "the chunk size overflows; curl fails too (56)"},
	"test1496/data": {fetch.ReasonHTTP, "the body is not chunked though it says so; curl fails too (61)"},
	"test1546/data": {fetch.ReasonHTTP, "chunked is not the last transfer coding; curl fails too (61)"},
	"test1722/data": {fetch.ReasonHTTP, "chunked is not the last transfer coding; curl fails too (61)"},
	"test1723/data": {fetch.ReasonHTTP, "chunked is not the last transfer coding; curl fails too (61)"},
	"test1495/data": {fetch.ReasonHTTP, "chunked is not the last transfer coding; curl fails too (61)"},
}

// curlOtherBody lists the replies whose expected text is not the body.
var curlOtherBody = map[string]string{
	"test319/data":  "curl asked for the raw body",
	"test326/data":  "curl asked for the raw body",
	"test457/data":  "curl was to stop at 143 bytes",
	"test1618/data": "curl was to stop at 1000 bytes",
	"test1540/data": "the text of a test program",
	"test1541/data": "the text of a test program",
}

// curlTrailers is what the expected text may have after the body: trailers,
// which a crawler has no use for.
var curlTrailers = regexp.MustCompile(`^([-A-Za-z]+: .*\n)*$`)

func TestCurlReplies(t *testing.T) {
	replies := curlReplies(t)
	byName := make(map[string][]byte)
	for _, r := range replies {
		byName["/"+r.name] = r.raw
	}
	s := newRawServer(t, func(_ int, c *net.TCPConn) {
		br := bufio.NewReader(c)
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		c.Write(byName[r.URL.Path])
		c.CloseWrite()
		io.Copy(io.Discard, br)
	})
	c := newClient(t, func(cfg *fetch.Config) { cfg.HardDeadline = 10 * time.Second })
	reasons := map[fetch.Reason]int{}
	compared := 0
	for _, r := range replies {
		t.Run(r.name, func(t *testing.T) {
			res := do(t, c, fetch.Request{URL: s.url + "/" + r.name})
			c.CloseIdle() // the site ends each connection after one reply
			reasons[res.Reason]++
			notMet, listed := curlNotMet[r.name]
			switch {
			case listed && (res.Reason != notMet.reason || res.Reason == "" && !res.Truncated):
				t.Errorf("listed as not met (%s): got %q (%v), truncated %v", notMet.why, res.Reason, res.Err, res.Truncated)
			case listed:
				return
			case res.Reason != "" || res.Truncated:
				t.Errorf("got %q (%v), truncated %v", res.Reason, res.Err, res.Truncated)
			}
			if r.check == nil || curlOtherBody[r.name] != "" {
				return
			}
			unix := func(b []byte) string { return strings.ReplaceAll(string(b), "\r\n", "\n") }
			_, want, _ := strings.Cut(unix(r.check), "\n\n")
			if strings.HasPrefix(want, "HTTP/1.") {
				return // of several exchanges
			}
			compared++
			got := unix(res.Body)
			rest, ok := strings.CutPrefix(want, strings.TrimSuffix(got, "\n"))
			if !ok || !curlTrailers.MatchString(strings.TrimLeft(rest, "\n")) {
				t.Errorf("body: got %d bytes %.200q, want %d bytes %.200q", len(got), got, len(want), want)
			}
		})
	}
	t.Logf("%d replies, %d bodies compared; by reason: %v", len(replies), compared, reasons)
	if len(replies) < 150 || compared < 20 {
		t.Errorf("the corpus gave %d replies and %d bodies, too few", len(replies), compared)
	}
}
