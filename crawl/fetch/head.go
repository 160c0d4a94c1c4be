package fetch

import "bytes"

// head is what the connection must know of a response head.
type head struct {
	status   int
	chunked  bool
	declared int64 // Content-Length, -1 without
}

// interim reports a 1xx response that another head follows (RFC 9110 15.2);
// 101 ends HTTP on the connection.
func (h head) interim() bool { return h.status >= 100 && h.status < 200 && h.status != 101 }

// length of the body of a response to GET, -1 where only the body tells
// (RFC 9112 section 6.3).
func (h head) length() int64 {
	switch {
	case h.status == 204 || h.status == 304:
		return 0
	case h.chunked:
		return -1
	}
	return h.declared
}

// maybeHTTP reports whether b can be the beginning of a response head.
func maybeHTTP(b []byte) bool {
	b = bytes.TrimLeft(b, "\r\n")
	const start = "HTTP/"
	if len(b) > len(start) {
		b = b[:len(start)]
	}
	return string(b) == start[:len(b)]
}

// headEnd returns the length of the response head at the start of b with its
// blank line, 0 where it is not complete. The first from bytes are known to
// hold no end. Line ends may lack their CR (RFC 9112 section 2.2); empty
// lines before the status line belong to the head.
func headEnd(b []byte, from int) int {
	i := 0
	for i < len(b) && (b[i] == '\r' || b[i] == '\n') {
		i++
	}
	i = max(i, from)
	for {
		n := bytes.IndexByte(b[i:], '\n')
		if n < 0 {
			return 0
		}
		i += n + 1
		switch {
		case i < len(b) && b[i] == '\n':
			return i + 1
		case i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n':
			return i + 2
		}
	}
}

// mendHead rewrites a whole response head in place so that net/http reads it,
// and returns what the head says and the mended length, at most len(b).
//
//   - Empty lines before the status line go.
//   - A line without a colon, with an empty name or with a name that is no
//     token goes, with its continuation lines: RFC 9112 section 5 has no place
//     for it, and browsers step over it.
//   - White space between name and colon goes (RFC 9112 section 5.1).
//   - Control bytes in values become spaces (RFC 9110 section 5.5).
//   - A Transfer-Encoding that does not name "chunked" goes ("identity", and
//     codings never asked for): the body is read by length or to the end, as
//     browsers do. "chunked" said twice is said once, and "gzip, chunked"
//     becomes "chunked"; the body's own first bytes give the gzip away later.
//   - A Content-Length that is no number goes; "10, 10" is 10 (RFC 9110
//     section 8.6).
func mendHead(b []byte) (head, int) {
	h := head{declared: -1}
	r, w := 0, 0
	for r < len(b) && (b[r] == '\r' || b[r] == '\n') {
		r++
	}
	first, dropped := true, true
	for r < len(b) {
		end := bytes.IndexByte(b[r:], '\n')
		if end < 0 {
			end = len(b)
		} else {
			end += r + 1
		}
		line := b[r:end]
		r = end
		text := trimEOL(line)
		switch {
		case first:
			first = false
			h.status = statusOf(text)
			w = keep(b, w, line)
		case len(text) == 0:
			w = keep(b, w, line)
		case text[0] == ' ' || text[0] == '\t':
			if !dropped {
				cleanValue(text)
				w = keep(b, w, line)
			}
		default:
			var n int
			n, dropped = h.field(line, text)
			if !dropped {
				w = keep(b, w, line[:n])
			}
		}
	}
	return h, w
}

// keep moves line to b[w:], which it may overlap, and returns its end.
func keep(b []byte, w int, line []byte) int { return w + copy(b[w:], line) }

// field mends one header line in place. It returns the line's new length, or
// that it is to be dropped.
func (h *head) field(line, text []byte) (n int, drop bool) {
	colon := bytes.IndexByte(text, ':')
	if colon <= 0 {
		return 0, true
	}
	name := bytes.TrimRight(text[:colon], " \t")
	for _, c := range name {
		if !tokenByte[c] {
			return 0, true
		}
	}
	if len(name) == 0 {
		return 0, true
	}
	eol := line[len(text):]
	if gap := colon - len(name); gap > 0 {
		copy(text[len(name):], text[colon:])
		text = text[:len(text)-gap]
	}
	value := text[len(name)+1:]
	cleanValue(value)
	n = len(text)
	switch {
	case len(name) == len("Content-Length") && asciiFold(name, "content-length"):
		length, size, ok := contentLength(value)
		if !ok {
			return 0, true
		}
		if h.declared < 0 {
			h.declared = length
		}
		n = len(name) + 1 + size
	case len(name) == len("Transfer-Encoding") && asciiFold(name, "transfer-encoding"):
		last, chunked := value, false
		for part := range bytes.SplitSeq(value, []byte{','}) {
			last = bytes.TrimSpace(part)
			chunked = chunked || asciiFold(last, "chunked")
		}
		switch {
		case !chunked, h.chunked:
			return 0, true
		case asciiFold(last, "chunked"):
			h.chunked = true
			n = len(name) + 1 + copy(value, "chunked")
		}
	}
	return n + copy(line[n:], eol), false
}

// contentLength reads a Content-Length value. size is how much of value to
// keep: identical values in a list count once.
func contentLength(value []byte) (length int64, size int, ok bool) {
	i := 0
	for i < len(value) && (value[i] == ' ' || value[i] == '\t') {
		i++
	}
	start := i
	for i < len(value) && '0' <= value[i] && value[i] <= '9' {
		if length > (1<<62)/10 {
			return 0, 0, false
		}
		length = length*10 + int64(value[i]-'0')
		i++
	}
	if i == start {
		return 0, 0, false
	}
	digits := value[start:i]
	for rest := value[i:]; ; rest = rest[len(digits):] {
		rest = bytes.TrimLeft(rest, " \t")
		if len(rest) == 0 {
			return length, i, true
		}
		if rest[0] != ',' {
			return 0, 0, false
		}
		if rest = bytes.TrimLeft(rest[1:], " \t"); !bytes.HasPrefix(rest, digits) {
			return 0, 0, false
		}
	}
}

// statusOf reads the status code of a status line, 0 where there is none.
func statusOf(line []byte) int {
	i := bytes.IndexByte(line, ' ')
	if i < 0 {
		return 0
	}
	code := bytes.TrimLeft(line[i:], " ")
	if len(code) < 3 || len(code) > 3 && code[3] != ' ' {
		return 0
	}
	n := 0
	for _, c := range code[:3] {
		if c < '0' || c > '9' {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}

func trimEOL(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}

// cleanValue makes spaces of the bytes no field value may hold.
func cleanValue(b []byte) {
	for i, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			b[i] = ' '
		}
	}
}

// asciiFold reports whether b is lower, a lower-case text, in any case.
func asciiFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// tokenByte is the tchar set of RFC 9110 section 5.6.2.
var tokenByte = func() (t [256]bool) {
	for _, c := range "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		t[c] = true
	}
	return t
}()
