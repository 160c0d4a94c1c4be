package sitemap

import (
	"bytes"
	"io"
)

// window is the scanner's buffer and so the longest tag it takes.
const window = 64 << 10

// scanner cuts a stream of UTF-8 into text and markup. It never holds more than
// its window: text and the inside of comments and CDATA pass through in pieces.
type scanner struct {
	r        io.Reader
	buf      []byte
	pos, end int
	lines    int   // newlines before buf[0]
	err      error // why reading ended, io.EOF when well
}

func newScanner(r io.Reader) *scanner { return &scanner{r: r, buf: make([]byte, window)} }

// fill reads more behind what is unread, moving that to the front. It is false
// when the window is full or the input has ended.
func (s *scanner) fill() bool {
	if s.err != nil {
		return false
	}
	if s.pos > 0 {
		s.lines += bytes.Count(s.buf[:s.pos], []byte{'\n'})
		copy(s.buf, s.buf[s.pos:s.end])
		s.end -= s.pos
		s.pos = 0
	}
	if s.end == len(s.buf) {
		return false
	}
	for range 100 {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if err != nil {
			s.err = err
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// line is the number of the line the scanner stands in, from 1.
func (s *scanner) line() int {
	return s.lines + bytes.Count(s.buf[:s.pos], []byte{'\n'}) + 1
}

// peek returns up to n unread bytes.
func (s *scanner) peek(n int) []byte {
	for s.end-s.pos < n && s.fill() {
	}
	return s.buf[s.pos:min(s.end, s.pos+n)]
}

// text gives the bytes up to the next "<" to sink, in pieces, and is false at the
// end of the input.
func (s *scanner) text(sink func([]byte)) bool {
	for {
		if i := bytes.IndexByte(s.buf[s.pos:s.end], '<'); i >= 0 {
			if i > 0 {
				sink(s.buf[s.pos : s.pos+i])
			}
			s.pos += i
			return true
		}
		if s.end > s.pos {
			sink(s.buf[s.pos:s.end])
			s.pos = s.end
		}
		if !s.fill() {
			return false
		}
	}
}

// until gives the bytes up to delim to sink and passes delim; false when the
// input ends first.
func (s *scanner) until(delim string, sink func([]byte)) bool {
	for {
		if i := bytes.Index(s.buf[s.pos:s.end], []byte(delim)); i >= 0 {
			sink(s.buf[s.pos : s.pos+i])
			s.pos += i + len(delim)
			return true
		}
		// What could be the beginning of delim stays for the next round.
		if n := s.end - s.pos - (len(delim) - 1); n > 0 {
			sink(s.buf[s.pos : s.pos+n])
			s.pos += n
		}
		if !s.fill() {
			sink(s.buf[s.pos:s.end])
			s.pos = s.end
			return false
		}
	}
}

// doctype passes a <!DOCTYPE ...> with the internal subset it may have; false
// when the input ends first.
func (s *scanner) doctype() bool {
	depth := 0
	for {
		for ; s.pos < s.end; s.pos++ {
			switch s.buf[s.pos] {
			case '[':
				depth++
			case ']':
				depth--
			case '>':
				if depth <= 0 {
					s.pos++
					return true
				}
			}
		}
		if !s.fill() {
			return false
		}
	}
}

// tag is the inside of a tag. Its slices are valid until the scanner moves on.
type tag struct {
	prefix, local []byte
	attrs         []byte
	closing       bool // </x>
	empty         bool // <x/>
}

// tag reads a tag the scanner stands before ("<"). whole is false for one that
// runs into another "<", into the end of the input, or out of the window; what
// there is of it is passed. Quotes are only trusted as far as that, so a missing
// one does not swallow the file.
func (s *scanner) tag() (t tag, whole bool) {
	i, quote := 1, byte(0)
	for {
		for ; s.pos+i < s.end; i++ {
			c := s.buf[s.pos+i]
			switch {
			case c == '<':
				t = parseTag(s.buf[s.pos+1 : s.pos+i])
				s.pos += i
				return t, false
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '>':
				t = parseTag(s.buf[s.pos+1 : s.pos+i])
				s.pos += i + 1
				return t, true
			case (c == '"' || c == '\'') && afterEquals(s.buf[s.pos:s.pos+i]):
				quote = c
			}
		}
		if !s.fill() {
			t = parseTag(s.buf[s.pos+1 : s.pos+i])
			s.pos += i
			return t, false
		}
	}
}

// afterEquals says that a quote opens a value: the last thing before it is "=".
func afterEquals(b []byte) bool {
	b = bytes.TrimRight(b, " \t\r\n")
	return len(b) > 0 && b[len(b)-1] == '='
}

func parseTag(b []byte) tag {
	var t tag
	if len(b) > 0 && b[0] == '/' {
		t.closing, b = true, b[1:]
	} else if len(b) > 0 && b[len(b)-1] == '/' {
		t.empty, b = true, b[:len(b)-1]
	}
	n := 0
	for n < len(b) && !isSpace(b[n]) && b[n] != '/' {
		n++
	}
	t.local, t.attrs = b[:n], b[n:]
	if i := bytes.LastIndexByte(t.local, ':'); i >= 0 {
		t.prefix, t.local = t.local[:i], t.local[i+1:]
	}
	return t
}

// attr returns the raw value of the attribute with this local name.
func (t *tag) attr(name string) ([]byte, bool) {
	b := t.attrs
	for {
		b = bytes.TrimLeft(b, " \t\r\n/")
		n := 0
		for n < len(b) && !isSpace(b[n]) && b[n] != '=' {
			n++
		}
		if n == 0 && len(b) == 0 {
			return nil, false
		}
		key := b[:n]
		if i := bytes.LastIndexByte(key, ':'); i >= 0 {
			key = key[i+1:]
		}
		b = bytes.TrimLeft(b[n:], " \t\r\n")
		var value []byte
		if len(b) > 0 && b[0] == '=' {
			b = bytes.TrimLeft(b[1:], " \t\r\n")
			value, b = attrValue(b)
		}
		if foldEqual(key, name) {
			return value, true
		}
	}
}

func attrValue(b []byte) (value, rest []byte) {
	if len(b) > 0 && (b[0] == '"' || b[0] == '\'') {
		if i := bytes.IndexByte(b[1:], b[0]); i >= 0 {
			return b[1 : 1+i], b[2+i:]
		}
		return b[1:], nil
	}
	n := 0
	for n < len(b) && !isSpace(b[n]) {
		n++
	}
	return b[:n], b[n:]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// foldEqual compares with a lower-case ASCII name.
func foldEqual(b []byte, name string) bool {
	if len(b) != len(name) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}
