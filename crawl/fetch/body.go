package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxBody is the body limit of this exchange, in bytes.
func (e *exchange) maxBody() int64 {
	if e.req.MaxBody > 0 {
		return e.req.MaxBody
	}
	return e.c.cfg.MaxBody
}

// readBody reads the body as transferred into res.buf and reports whether it
// came to its end, so that the connection can be kept.
func (e *exchange) readBody(resp *http.Response) bool {
	res, limit := e.res, e.maxBody()
	size := int64(16 << 10)
	if resp.ContentLength >= 0 {
		// Not more at first than a page is likely to have: the length is only
		// what the site says.
		size = min(resp.ContentLength, limit, 256<<10) + 1
	}
	buf := pooled.get(int(size))
	var err error
	for err == nil && int64(len(buf)) <= limit {
		buf = pooled.grow(buf)
		room := buf[len(buf):cap(buf)]
		if over := limit + 1 - int64(len(buf)); int64(len(room)) > over {
			room = room[:over]
		}
		e.limit(phaseBody, e.c.cfg.BodyGap)
		var n int
		n, err = resp.Body.Read(room)
		buf = buf[:len(buf)+n]
	}
	res.buf = buf
	res.WireBytes = int64(len(buf))
	switch {
	case int64(len(buf)) > limit:
		res.buf, res.WireBytes = buf[:limit], limit
		res.TooLarge, res.Truncated = true, true
		res.fail(ReasonTooLarge, fmt.Errorf("%w: more than %d bytes transferred", ErrTooLarge, limit))
		return false
	case err == io.EOF:
		return true
	case errors.Is(err, io.ErrUnexpectedEOF) && e.ctx.Err() == nil:
		// The site closed the connection early but cleanly. What came is
		// worth having; some sites always do it.
		res.Truncated, res.Err = true, &phaseError{phaseBody, err}
		return false
	}
	res.Truncated = true
	e.failErr(&phaseError{phaseBody, err})
	return false
}

// skipBody does without the body and reports whether the connection can be
// kept: a small body is cheaper to read than a connection to open.
func (e *exchange) skipBody(resp *http.Response) bool {
	e.res.Bytes = max(resp.ContentLength, 0)
	e.res.WireBytes = 0
	if resp.ContentLength < 0 || resp.ContentLength > e.c.cfg.DrainLimit {
		return false
	}
	buf := pooled.get(4 << 10)
	defer func() { pooled.put(buf) }()
	for {
		e.limit(phaseBody, e.c.cfg.BodyGap)
		n, err := resp.Body.Read(buf[:cap(buf)])
		e.res.WireBytes += int64(n)
		if err != nil {
			return err == io.EOF
		}
	}
}

// decode undoes the body's content codings.
func (e *exchange) decode() {
	res := e.res
	d := decodeBody(res.buf, res.Header["Content-Encoding"], res.ContentType, limits{max: e.maxBody(), ratio: e.c.cfg.MaxRatio})
	res.buf, res.Body = d.body, d.body
	res.Truncated = res.Truncated || d.truncated
	if d.reason == ReasonTooLarge {
		res.TooLarge = true
	}
	if res.Reason == ReasonOK {
		res.Reason = d.reason
		if d.err != nil {
			res.Err = d.err
		}
	}
	if d.reason == ReasonDecode {
		res.Body = nil
	}
	res.Bytes = int64(len(res.Body))
}
