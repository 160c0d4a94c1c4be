package web

import (
	"compress/gzip"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// exchange is one request being answered.
type exchange struct {
	site   *Site
	w      http.ResponseWriter
	r      *http.Request
	host   int
	path   string
	origin origin
	shard  *hitShard
	rec    *record

	// What the log will say.
	kind    Kind
	status  int
	bytes   int64
	gate    int64
	ended   int64 // 0 until stamped
	aborted bool
}

// stamp sets the end of the request, once.
func (x *exchange) stamp() {
	if x.ended == 0 {
		x.ended = x.site.log.now()
	}
}

// end completes the record.
func (x *exchange) end() {
	x.stamp()
	x.shard.mu.Lock()
	r := x.rec
	r.end, r.ended, r.aborted = x.ended, true, x.aborted
	r.status, r.bytes, r.gate = int16(x.status), x.bytes, x.gate
	if x.kind != "" {
		r.kind = x.kind
	}
	x.shard.mu.Unlock()
	x.site.log.ended.Add(1)
}

// lastPiece is the most that is written after End was stamped; it fits the
// socket's buffer, so the write does not wait for the client.
const lastPiece = 16 << 10

// begin sends status and header. A length below zero leaves it unsaid.
func (x *exchange) begin(status int, contentType string, length int) {
	h := x.w.Header()
	h["Content-Type"] = []string{contentType}
	if length >= 0 {
		h["Content-Length"] = []string{strconv.Itoa(length)}
	}
	x.status = status
	x.w.WriteHeader(status)
}

// write sends a piece of the body and reports whether the client still reads.
func (x *exchange) write(p []byte) bool {
	n, err := x.w.Write(p)
	x.bytes += int64(n)
	if err != nil {
		x.aborted = true
		x.stamp()
	}
	return err == nil
}

// finish sends the rest of the body, the last piece of it after stamping the end.
func (x *exchange) finish(body []byte) {
	if x.r.Method == http.MethodHead {
		x.stamp()
		return
	}
	for len(body) > lastPiece {
		n := min(len(body)-lastPiece, 64<<10)
		if !x.write(body[:n]) {
			return
		}
		body = body[n:]
	}
	x.stamp()
	x.write(body)
}

func (x *exchange) send(status int, contentType string, body []byte) {
	x.begin(status, contentType, len(body))
	x.finish(body)
}

func (x *exchange) sendText(status int, body string) {
	x.send(status, "text/plain; charset=utf-8", []byte(body))
}

func acceptsGzip(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}

// gzipped compresses fast, not well.
func gzipped(body []byte) []byte {
	var b appendWriter
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = z.Write(body) // appendWriter does not fail
	_ = z.Close()
	return b
}

type appendWriter []byte

func (b *appendWriter) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func (x *exchange) sendGzip(contentType string, body []byte) {
	x.w.Header().Set("Content-Encoding", "gzip")
	x.send(http.StatusOK, contentType, gzipped(body))
}

// sendRetry answers with a Retry-After of the configured length, as a date or
// in seconds, and logs the gate it asks for.
func (x *exchange) sendRetry(status int, after time.Duration, asDate bool) {
	now := time.Now()
	seconds := (after + time.Second - 1) / time.Second
	until, value := now.Add(seconds*time.Second), strconv.FormatInt(int64(seconds), 10)
	if asDate {
		until = now.Add(after).Truncate(time.Second).Add(time.Second)
		value = until.UTC().Format(http.TimeFormat)
	}
	x.gate = int64(until.Sub(x.site.log.start))
	x.w.Header().Set("Retry-After", value)
	x.sendText(status, "come back later\n")
}

// cut closes the connection at once; with reset the client sees a TCP reset.
// raw is written before.
func (x *exchange) cut(raw string, reset bool) {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // not HTTP/1: the server ends the stream
	}
	x.stamp()
	_, _ = conn.Write([]byte(raw)) // the connection is given up in any case
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// asset answers for style sheets and images.
func (x *exchange) asset(name string) {
	x.kind = KindAsset
	if !x.wait(x.site.cfg.Latency) {
		return
	}
	if strings.HasSuffix(name, ".css") {
		x.send(http.StatusOK, "text/css", []byte("body { margin: 2em }\n"))
		return
	}
	x.send(http.StatusOK, "image/png", []byte("\x89PNG\r\n\x1a\n"))
}
