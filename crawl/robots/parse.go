package robots

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxBytes is how much of a robots.txt is read; RFC 9309 section 2.5 asks for at
// least this much. What follows is ignored.
const MaxBytes = 500 << 10

// maxLine is where a line is cut, as Google's parser does: eight times the
// longest URL common browsers took.
const maxLine = 2083*8 - 1

// maxCrawlDelay keeps an absurd crawl-delay inside time.Duration; a crawler caps
// it far below.
const maxCrawlDelay = 24 * time.Hour

// File is a parsed robots.txt. It is immutable and safe for concurrent use.
type File struct {
	blocks   []block
	sitemaps []string
}

// block is a run of user-agent lines and the rules that follow them.
type block struct {
	agents []string // as written; "*" for the default group
	rules  []rule
	delays []agentDelay
}

// agentDelay is a crawl-delay and the number of agents named before it.
type agentDelay struct {
	agents int
	delay  time.Duration
}

// Parse reads a robots.txt body. It never fails: what is not understood is
// skipped, as RFC 9309 section 2.2 asks. Lines end in LF, CR or CRLF; at most
// MaxBytes are read.
func Parse(body []byte) *File {
	text := toUTF8(cut(body))
	p := parser{file: &File{}, seen: map[string]bool{}}
	for len(text) > 0 {
		var line string
		if i := strings.IndexAny(text, "\r\n"); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			line, text = text, ""
		}
		p.line(line)
	}
	p.flush()
	return p.file
}

// cut limits a body to MaxBytes, ending with a whole line.
func cut(body []byte) []byte {
	if len(body) <= MaxBytes {
		return body
	}
	if c := body[MaxBytes]; c == '\n' || c == '\r' {
		return body[:MaxBytes]
	}
	body = body[:MaxBytes]
	return body[:bytes.LastIndexAny(body, "\r\n")+1]
}

// toUTF8 removes a byte order mark (also a partial UTF-8 one, as Google's parser
// does) and decodes UTF-16 where the mark says so.
func toUTF8(body []byte) string {
	switch {
	case bytes.HasPrefix(body, []byte{0xFE, 0xFF}):
		return fromUTF16(body[2:], 0, 1)
	case bytes.HasPrefix(body, []byte{0xFF, 0xFE}):
		return fromUTF16(body[2:], 1, 0)
	}
	for _, c := range []byte{0xEF, 0xBB, 0xBF} {
		if len(body) == 0 || body[0] != c {
			break
		}
		body = body[1:]
	}
	return string(body)
}

func fromUTF16(b []byte, hi, lo int) string {
	out := make([]byte, 0, len(b)/2+len(b)/8)
	for ; len(b) >= 2; b = b[2:] {
		r := rune(b[hi])<<8 | rune(b[lo])
		if utf16.IsSurrogate(r) && len(b) >= 4 {
			if full := utf16.DecodeRune(r, rune(b[2+hi])<<8|rune(b[2+lo])); full != utf8.RuneError {
				r, b = full, b[2:]
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

type parser struct {
	file   *File
	cur    block
	closed bool // a rule followed the agents of cur: the next agent opens a block
	seen   map[string]bool
}

func (p *parser) flush() {
	if len(p.cur.agents) > 0 {
		p.file.blocks = append(p.file.blocks, p.cur)
	}
	p.cur, p.closed = block{}, false
}

func (p *parser) line(line string) {
	if len(line) > maxLine {
		line = line[:maxLine]
	}
	key, value, ok := keyValue(line)
	if !ok {
		return
	}
	switch classify(key) {
	case keyAgent:
		if p.closed {
			p.flush()
		}
		p.cur.agents = append(p.cur.agents, agentName(value))
	case keyAllow:
		p.rule(true, value)
	case keyDisallow:
		p.rule(false, value)
	case keyDelay:
		if d, ok := parseDelay(value); ok && len(p.cur.agents) > 0 {
			p.cur.delays = append(p.cur.delays, agentDelay{len(p.cur.agents), d})
		}
	case keySitemap:
		p.sitemap(value)
	case keyUnknown:
		// A sitemap's address alone on a line: what was meant is plain.
		if bare := trim(line); hasHTTPScheme(bare) && strings.Contains(bare, "sitemap") && !strings.ContainsAny(bare, " \t#") {
			p.sitemap(bare)
		}
	}
}

func (p *parser) sitemap(value string) {
	if value != "" && !p.seen[value] {
		p.seen[value] = true
		p.file.sitemaps = append(p.file.sitemaps, strings.Clone(value))
	}
}

func (p *parser) rule(allow bool, value string) {
	if len(p.cur.agents) == 0 {
		return // rules outside a group are ignored, RFC 9309 section 2.1
	}
	p.closed = true
	p.cur.rules = appendRules(p.cur.rules, allow, value)
}

// keyValue splits a line at its colon, or at white space where the colon was
// forgotten and exactly two words are left.
func keyValue(line string) (key, value string, ok bool) {
	if i := strings.IndexByte(line, '#'); i >= 0 {
		line = line[:i]
	}
	line = trim(line)
	sep := strings.IndexByte(line, ':')
	if sep < 0 {
		sep = strings.IndexAny(line, " \t")
		if sep < 0 || strings.ContainsAny(trim(line[sep:]), " \t") {
			return "", "", false
		}
	}
	key = trim(line[:sep])
	return key, trim(line[sep+1:]), key != ""
}

// trim removes ASCII white space only: a no-break space belongs to a value.
func trim(s string) string { return strings.Trim(s, " \t\n\v\f\r") }

type keyKind int

const (
	keyUnknown keyKind = iota
	keyAgent
	keyAllow
	keyDisallow
	keySitemap
	keyDelay
)

type keyName struct {
	name string
	kind keyKind
}

// keys are tried in this order, each as a case-insensitive prefix of what stands
// before the colon. The typos are those Google's parser accepts, and two more
// ("desallow", "useg-agent") that crawler-commons found on sites.
var keys = [...]keyName{
	{"user-agent", keyAgent}, {"useragent", keyAgent}, {"user agent", keyAgent}, {"useg-agent", keyAgent},
	{"allow", keyAllow},
	{"disallow", keyDisallow}, {"dissallow", keyDisallow}, {"dissalow", keyDisallow}, {"disalow", keyDisallow},
	{"diaslow", keyDisallow}, {"diasllow", keyDisallow}, {"disallaw", keyDisallow}, {"desallow", keyDisallow},
	{"sitemap", keySitemap}, {"site-map", keySitemap},
	{"crawl-delay", keyDelay}, {"crawldelay", keyDelay}, {"crawl delay", keyDelay},
}

func classify(key string) keyKind {
	for _, k := range keys {
		if len(key) >= len(k.name) && equalFold(key[:len(k.name)], k.name) {
			return k.kind
		}
	}
	return keyUnknown
}

// agentName is the part of a user-agent line that is compared: "*" for the
// default group, else the value up to white space or "/".
func agentName(value string) string {
	if value != "" && value[0] == '*' && (len(value) == 1 || strings.IndexByte(" \t\n\v\f\r", value[1]) >= 0) {
		return "*"
	}
	if i := strings.IndexAny(value, " \t\v\f/"); i >= 0 {
		value = value[:i]
	}
	return value
}

// token is the leading run of characters RFC 9309 section 2.2.1 allows in a
// product token: letters, "_" and "-".
func token(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && s[i] != '-' && s[i] != '_' {
			return s[:i]
		}
	}
	return s
}

// equalFold compares ASCII letters without case and everything else exactly.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i++ {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// parseDelay reads the number of seconds a crawl-delay begins with.
func parseDelay(s string) (time.Duration, bool) {
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.') {
		end++
	}
	secs, err := strconv.ParseFloat(s[:end], 64)
	if err != nil && !math.IsInf(secs, 1) || math.IsNaN(secs) {
		return 0, false
	}
	if secs >= maxCrawlDelay.Seconds() {
		return maxCrawlDelay, true
	}
	return time.Duration(secs * float64(time.Second)), true
}

// Sitemaps lists the sitemap lines as written, without repeats, in file order.
// They belong to no group and may be relative, though they should not be.
func (f *File) Sitemaps() []string { return f.sitemaps }
