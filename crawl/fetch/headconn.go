package fetch

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
)

var errSpent = errors.New("connection closed by its site")

// headConn stands between net/http's HTTP/1 reader and the connection. It
// mends response heads (mendHead), because net/http loses a whole response
// over one odd line; and it hides bytes that no request asked for, which
// net/http would print to the process's standard logger.
//
// A head that arrives in one read, as nearly all do, is scanned and mended in
// the reader's own buffer; nothing is copied or allocated.
type headConn struct {
	net.Conn // TLS or raw
	raw      *rawConn
	max      int

	asked atomic.Bool // a request was written since the last response head
	idle  atomic.Bool // no exchange is on the connection
	spent atomic.Bool // the site has closed it, or has sent what was not asked for

	// Owned by the goroutine that reads.
	inBody  bool
	left    int64 // of the body; -1 when its end is not known by length
	chunked bool
	chunks  chunks
	buf     []byte // of a head that needs several reads
	scanned int    // of buf
	out     []byte // ready to be handed out
}

func newHeadConn(c net.Conn, raw *rawConn, maxHeader int64) *headConn {
	h := &headConn{Conn: c, raw: raw, max: int(maxHeader)}
	h.idle.Store(true)
	return h
}

// Write refuses a connection known to be spent: then nothing is written, and
// the exchange may take another.
func (c *headConn) Write(p []byte) (int, error) {
	if c.spent.Load() {
		return 0, errSpent
	}
	c.idle.Store(false)
	c.asked.Store(true)
	return c.Conn.Write(p)
}

// Close closes the socket at once. A TLS close_notify could wait seconds for
// a peer that does not read, and nothing is owed to it.
func (c *headConn) Close() error { return c.raw.Close() }

func (c *headConn) Read(p []byte) (int, error) {
	for {
		if len(c.out) > 0 {
			n := copy(p, c.out)
			c.out = c.out[n:]
			if len(c.out) == 0 && cap(c.buf) > 64<<10 {
				c.buf = nil
			}
			return n, nil
		}
		if c.spent.Load() || len(p) == 0 {
			return 0, io.EOF
		}
		n, err := c.Conn.Read(p)
		switch {
		case n == 0 && err == nil:
			continue
		case n == 0:
			// Of a head cut short nothing is handed out. A last chunk without
			// the blank line after it is whole for all that.
			c.spent.Store(true)
			if c.inBody && c.chunked && c.chunks.state == chunkTrailer && err == io.EOF {
				c.chunks.state = chunkEnd
				return copy(p, "\r\n"), nil
			}
			return 0, err
		case c.idle.Load():
			c.spent.Store(true) // nothing was asked for
			return 0, io.EOF
		}
		if c.inBody && c.asked.Load() {
			c.inBody = false // net/http writes a request only after the last body's end
		}
		if c.inBody {
			n = c.take(p[:n])
		} else {
			c.asked.Store(false)
			n = c.head(p, n)
		}
		if n > 0 {
			return n, nil // an error will come again
		}
	}
}

// take looks at b, bytes of the body, and returns how many of them to hand
// out; 0 when there is something else in out, or nothing. What follows the
// body belongs to no response.
func (c *headConn) take(b []byte) int {
	switch {
	case c.chunked:
		n, out, used := c.chunks.filter(b, c.buf[:0])
		if used < len(b) {
			c.spent.Store(true)
		}
		if n == 0 {
			c.out, c.buf = out, out[:0]
		}
		return n
	case c.left < 0:
		return len(b)
	}
	n := min(c.left, int64(len(b)))
	if n < int64(len(b)) {
		c.spent.Store(true)
	}
	c.left -= n
	return int(n)
}

// head handles n bytes just read into p while a head is due. It returns how
// many bytes p holds for net/http, 0 when more must be read or c.out is set.
func (c *headConn) head(p []byte, n int) int {
	if len(c.buf) == 0 {
		if end := headEnd(p[:n], 0); end > 0 {
			h, m := mendHead(p[:end])
			if !h.interim() {
				c.begin(h)
				rest := c.take(p[end:n])
				if len(c.out) > 0 {
					c.out = append(append([]byte(nil), p[:m]...), c.out...)
					return 0
				}
				if m != end {
					copy(p[m:], p[end:end+rest])
				}
				return m + rest
			}
			n = m + copy(p[m:], p[end:n])
		} else if !maybeHTTP(p[:n]) {
			c.begin(head{declared: -1})
			return n // net/http says what is wrong with it
		}
	}
	c.buf = append(c.buf, p[:n]...)
	c.assemble()
	return 0
}

// assemble moves whole heads from buf to out, and the body after the last.
func (c *headConn) assemble() {
	at := 0 // everything before is mended
	for {
		end := headEnd(c.buf[at:], c.scanned)
		if end == 0 {
			c.scanned = max(0, len(c.buf)-at-3)
			break
		}
		h, m := mendHead(c.buf[at : at+end])
		c.scanned = 0
		if h.interim() {
			c.buf = append(c.buf[:at+m], c.buf[at+end:]...)
			at += m
			continue
		}
		c.begin(h)
		rest := c.buf[at+end:]
		whole := c.buf
		c.buf = nil // take may use it
		n := c.take(rest)
		c.out = append(append(whole[:at+m], rest[:n]...), c.out...)
		c.buf = whole[:0]
		return
	}
	switch {
	case len(c.buf) > c.max || !maybeHTTP(c.buf[at:]):
		c.begin(head{declared: -1})
		c.scanned = 0
		c.out, c.buf = c.buf, c.buf[:0]
	case at > 0:
		// Interim responses are through; keep the rest for the next read.
		c.out = append([]byte(nil), c.buf[:at]...)
		c.buf = append(c.buf[:0], c.buf[at:]...)
	}
}

// begin starts the body after head h.
func (c *headConn) begin(h head) {
	c.inBody, c.left, c.chunked, c.chunks = true, h.length(), h.chunked, chunks{}
}
