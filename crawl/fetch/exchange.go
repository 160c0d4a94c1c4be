package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"
)

// Result is what became of one exchange. Reason "" means the response arrived
// whole, whatever its status.
type Result struct {
	Status      int    // 0 without a response head
	Proto       string // "HTTP/1.1", "HTTP/2.0"
	Header      http.Header
	ContentType string // as sent
	Location    string // as sent, unresolved

	// Body is decoded, and valid until Release. It may be there, in part, beside
	// a Reason: too-large, and timeout, reset or canceled while it was read.
	Body             []byte
	WireBytes, Bytes int64 // of the body: as transferred, without chunk framing; as decoded
	// Truncated: Body lacks its end. The site closed early, a coding broke off
	// or failed its checksum, or Reason says more.
	Truncated bool
	TooLarge  bool // MaxBody or MaxRatio was passed; Body is what fits

	Started    time.Time
	TTFB       time.Duration // from right before the request was written to the whole response head
	Total      time.Duration
	RemoteAddr netip.AddrPort
	Reused     bool // on a kept connection

	RetryAfter    time.Duration // at most MaxRetryAfter
	HasRetryAfter bool

	Wrote  bool // bytes of the request may have reached the site
	Reason Reason
	Err    error // says more where Reason is set, and where a coding broke

	buf []byte
}

// Release gives the body's memory back. Body must not be used afterwards. It
// may be called more than once.
func (r *Result) Release() {
	if r.buf != nil {
		pooled.put(r.buf)
		r.buf, r.Body = nil, nil
	}
}

// exchange is one call of Do.
type exchange struct {
	c      *Client
	req    *Request
	res    *Result
	target target
	ctx    context.Context
	cancel context.CancelCauseFunc
	until  time.Time // hard deadline
	timer  *time.Timer
	phase  atomic.Uint32           // what the timer stands for
	raw    atomic.Pointer[rawConn] // once there is a connection
	tried  atomic.Int64            // bytes written on raw when the exchange was aborted
}

// Do makes one exchange. It never returns nil and never panics; a panic of
// Guard or BodyFor is the result's error.
func (c *Client) Do(ctx context.Context, r Request) *Result {
	start := time.Now()
	res := &Result{Started: c.cfg.Now()}
	c.do(ctx, &r, res, start)
	res.Total = time.Since(start)
	return res
}

func (c *Client) do(ctx context.Context, r *Request, res *Result, start time.Time) {
	defer func() {
		if p := recover(); p != nil {
			res.fail(ReasonInternal, fmt.Errorf("panic: %v", p))
		}
	}()
	t, err := parseTarget(r.URL)
	if err != nil {
		res.fail(ReasonBadURL, err)
		return
	}
	e := &exchange{c: c, req: r, res: res, target: t, until: start.Add(c.abortAt)}
	if ctx.Err() != nil {
		err := callerEnded(ctx)
		res.fail(reasonOf(err), err)
		return
	}
	// The caller's context reaches the exchange through abort alone, which
	// notes what had been written by then.
	e.ctx, e.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	defer e.cancel(nil)
	defer context.AfterFunc(ctx, func() { e.abort(callerEnded(ctx)) })()
	if !c.enter(e) {
		res.fail(ReasonCanceled, ErrClosed)
		return
	}
	defer c.leave(e)
	e.phase.Store(uint32(phaseDeadline))
	e.timer = time.AfterFunc(c.abortAt, func() { e.abort(timeoutIn(phase(e.phase.Load()))) })
	defer e.timer.Stop()
	if e.attempt(false) {
		e.attempt(true)
	}
}

// abort ends the exchange early, because of cause.
func (e *exchange) abort(cause error) {
	if raw := e.raw.Load(); raw != nil {
		e.tried.Store(raw.tried.Load())
	}
	e.cancel(cause)
}

func (r *Result) fail(reason Reason, err error) { r.Reason, r.Err = reason, err }

// failErr records err, or what ended the exchange's context where that is
// the cause of it.
func (e *exchange) failErr(err error) {
	if e.ctx.Err() != nil {
		err = context.Cause(e.ctx)
	}
	e.res.fail(reasonOf(err), err)
}

// limit gives the exchange d to finish phase p, never beyond the hard deadline.
func (e *exchange) limit(p phase, d time.Duration) {
	if left := time.Until(e.until); left < d {
		p, d = phaseDeadline, left
	}
	if e.timer.Stop() {
		e.phase.Store(uint32(p))
		e.timer.Reset(max(d, 0))
	}
}

// resetWait bounds how long an aborted HTTP/2 exchange waits for its
// RST_STREAM to be written before the connection is closed instead.
const resetWait = 250 * time.Millisecond

// attempt makes the exchange on one connection. It reports whether the
// connection, a kept one, proved dead before anything was written, so that no
// request was made and another may be tried.
func (e *exchange) attempt(fresh bool) (again bool) {
	res, pool := e.res, e.c.pool
	c, reused, err := pool.get(e.ctx, &e.target, fresh)
	if err != nil {
		e.failErr(err)
		return false
	}
	lent := true
	defer func() {
		if lent { // a panic
			pool.discard(c, true)
		}
	}()
	e.raw.Store(c.raw)
	res.Reused, res.RemoteAddr = reused, c.raw.remote()
	req := e.request()
	if e.req.Guard != nil {
		if err := e.req.Guard(); err != nil {
			lent = false
			pool.release(c)
			res.fail(ReasonGuard, err)
			return false
		}
	}
	if e.ctx.Err() != nil {
		lent = false
		pool.release(c)
		e.failErr(e.ctx.Err())
		return false
	}
	tried := c.raw.tried.Load()
	wroteAt := time.Now()
	e.limit(phaseFirstByte, e.c.cfg.FirstByteTimeout)
	resp, err := c.cc.RoundTrip(req)
	if err != nil {
		lent = false
		// An aborted HTTP/2 stream may still be about to write its headers.
		res.Wrote = c.raw.tried.Load() > tried || c.http2() && e.ctx.Err() != nil
		e.failErr(err)
		e.abandon(c)
		if res.Wrote || !reused || fresh || e.ctx.Err() != nil {
			return false
		}
		res.fail(ReasonOK, nil)
		return true
	}
	res.Wrote = true
	res.TTFB = time.Since(wroteAt)
	res.Status, res.Proto, res.Header = resp.StatusCode, resp.Proto, resp.Header
	res.ContentType = resp.Header.Get("Content-Type")
	res.Location = resp.Header.Get("Location")
	if _, has := resp.Header["Retry-After"]; has {
		res.RetryAfter, res.HasRetryAfter = ParseRetryAfter(resp.Header, e.c.cfg.Now())
	}
	if v := resp.Header.Get("Keep-Alive"); v != "" && !c.http2() {
		c.keep = keepAlive(v, e.c.cfg.IdleConnTimeout)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		lent = false
		pool.discard(c, true)
		res.fail(ReasonHTTP, errors.New("switched protocols unasked"))
		return false
	}
	var whole bool
	if e.req.BodyFor == nil || e.req.BodyFor(res.Status, res.ContentType) {
		whole = e.readBody(resp)
	} else {
		whole = e.skipBody(resp)
	}
	lent = false
	if whole {
		resp.Body.Close()
		pool.put(c)
	} else {
		if c.http2() {
			resp.Body.Close()
		}
		e.abandon(c)
	}
	if res.buf != nil {
		e.decode()
	}
	return false
}

// abandon ends an exchange that did not come to its end, on this side for
// certain: net/http has the reset of an aborted HTTP/2 stream written by a
// goroutine of its own, so wait for it.
func (e *exchange) abandon(c *conn) {
	if !c.http2() {
		e.c.pool.discard(c, true)
		return
	}
	broken := c.cc.Err() != nil
	if !broken && e.ctx.Err() != nil {
		broken = !c.raw.awaitWrite(e.tried.Load(), resetWait)
	}
	if e.res.Reason == ReasonTimeout {
		e.c.pool.retire(c)
	}
	e.c.pool.discard(c, broken)
}

// request builds the request. Header values are shared and never changed.
func (e *exchange) request() *http.Request {
	h := make(http.Header, 4+len(e.req.Header))
	h["User-Agent"] = e.c.uaValue
	h["Accept"] = e.c.acceptValue
	if e.req.Accept != "" {
		h["Accept"] = []string{e.req.Accept}
	}
	h["Accept-Encoding"] = e.c.encodingValue
	for k, v := range e.req.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	r := &http.Request{
		Method: http.MethodGet, URL: e.target.url(), Host: e.target.authority, Header: h,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	return r.WithContext(e.ctx)
}
