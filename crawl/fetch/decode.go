package fetch

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const acceptEncoding = "gzip, deflate, br, zstd"

// maxCodings bounds the codings undone on one body.
const maxCodings = 4

// ratioFloor is the decoded size, in bytes, from which the ratio counts: a
// small page of blanks is no bomb.
const ratioFloor = 1 << 20

// coding is a content coding (RFC 9110 section 8.4.1).
type coding uint8

const (
	codingIdentity coding = iota
	codingGzip
	codingDeflate
	codingBrotli
	codingZstd
	codingUnknown
)

func codingOf(token string) coding {
	switch strings.ToLower(strings.Trim(token, " \t\"'")) {
	case "", "identity", "none", "binary", "8bit", "7bit", "chunked":
		return codingIdentity
	case "gzip", "x-gzip":
		return codingGzip
	case "deflate", "x-deflate":
		return codingDeflate
	case "br":
		return codingBrotli
	case "zstd", "x-zstd":
		return codingZstd
	}
	return codingUnknown
}

// decoded is what became of a body.
type decoded struct {
	body      []byte
	truncated bool // a coding broke off or failed its checksum; body is what came out before
	err       error
	reason    Reason
	undone    int // codings
}

// limits of decoding.
type limits struct {
	max   int64   // bytes out
	ratio float64 // out over in
}

// decodeBody undoes the content codings of wire, in the order opposite to
// encodings (each value may be a list). wire is a pooled buffer and is owned
// by the call; the result is a pooled buffer too.
func decodeBody(wire []byte, encodings []string, contentType string, lim limits) decoded {
	var codings []coding
	for _, v := range encodings {
		for token := range strings.SplitSeq(v, ",") {
			if c := codingOf(token); c != codingIdentity && len(codings) < 2*maxCodings {
				codings = append(codings, c)
			}
		}
	}
	d := decoded{body: wire}
	if len(wire) == 0 {
		return d
	}
	in := int64(len(wire))
	for i := len(codings) - 1; i >= 0; i-- {
		if d.undone == maxCodings && !looksPlain(d.body) {
			d.reason, d.err = ReasonDecode, errors.New("too many content codings")
			return d
		}
		c := codings[i]
		if is, sure := sniff(d.body); sure {
			c = is // the bytes know better than the header
		}
		if !d.undo(c, in, lim) {
			return d
		}
	}
	// Compressed without saying so, or once more than it says. A file that is
	// meant to be an archive is left alone.
	for before := -1; d.undone > before && d.undone < maxCodings && textType(contentType); {
		before = d.undone
		c, sure := sniff(d.body)
		if !sure || !d.undo(c, in, lim) {
			return d
		}
	}
	return d
}

// undo replaces d.body by its decoded form and reports whether to go on.
func (d *decoded) undo(c coding, in int64, lim limits) bool {
	out, err := inflate(c, d.body, in, lim)
	switch {
	case err == nil:
		pooled.put(d.body)
		d.body = out
		d.undone++
		return true
	case errors.Is(err, ErrTooLarge), errors.Is(err, ErrRatio):
		pooled.put(d.body)
		d.body, d.truncated, d.reason, d.err = out, true, ReasonTooLarge, err
		return false
	case len(out) == 0 || looksPlain(d.body):
		pooled.put(out)
		if looksPlain(d.body) {
			return true // mislabelled: it was never compressed
		}
		d.reason, d.err = ReasonDecode, err
		return false
	}
	pooled.put(d.body)
	d.body, d.truncated, d.err = out, true, err
	return false
}

// sniff recognises codings with a magic number: gzip (RFC 1952 section 2.3.1)
// and zstd (RFC 8878 section 3.1.1).
func sniff(b []byte) (coding, bool) {
	switch {
	case len(b) >= 3 && b[0] == 0x1f && b[1] == 0x8b && b[2] == 8:
		return codingGzip, true
	case len(b) >= 4 && b[0] == 0x28 && b[1] == 0xb5 && b[2] == 0x2f && b[3] == 0xfd:
		return codingZstd, true
	}
	return codingUnknown, false
}

// textType reports whether a body of this type is text, so that compressed
// bytes in it can only be a missing label.
func textType(contentType string) bool {
	t, _, _ := strings.Cut(contentType, ";")
	t = strings.ToLower(strings.TrimSpace(t))
	return t == "" || strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+xml") || strings.HasSuffix(t, "/xml") ||
		strings.HasSuffix(t, "json") || strings.HasSuffix(t, "javascript") || t == "application/x-html"
}

// looksPlain reports whether b begins like text rather than compressed bytes.
func looksPlain(b []byte) bool {
	if _, compressed := sniff(b); compressed {
		return false
	}
	b = b[:min(len(b), 512)]
	if bytes.HasPrefix(b, []byte{0xff, 0xfe}) || bytes.HasPrefix(b, []byte{0xfe, 0xff}) {
		return true // UTF-16
	}
	for _, c := range b {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != 0x1b || c == 0x7f {
			return false
		}
	}
	return len(b) > 0
}

// inflate undoes one coding. out is what came out, also with an error; it is a
// pooled buffer of its own.
func inflate(c coding, b []byte, in int64, lim limits) (out []byte, err error) {
	switch c {
	case codingGzip:
		return inflateGzip(b, in, lim)
	case codingDeflate:
		if len(b) >= 2 && b[0]&0x0f == 8 && (uint(b[0])<<8|uint(b[1]))%31 == 0 {
			out, err = inflateZlib(b, in, lim)
			if err == nil || len(out) > 0 {
				return out, err
			}
			pooled.put(out)
		}
		return inflateRaw(b, in, lim)
	case codingBrotli:
		r, _ := brotliPool.Get().(*brotli.Reader)
		src := bytes.NewReader(b)
		if r == nil {
			r = brotli.NewReader(src)
		} else if err := r.Reset(src); err != nil {
			return nil, err
		}
		out, err = readAll(r, b, in, lim)
		brotliPool.Put(r)
		return out, err
	case codingZstd:
		r, _ := zstdPool.Get().(*zstd.Decoder)
		if r == nil {
			if r, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20)); err != nil {
				return nil, err
			}
		}
		if err := r.Reset(bytes.NewReader(b)); err != nil {
			r.Close()
			return nil, err
		}
		out, err = readAll(r, b, in, lim)
		if r.Reset(nil) == nil {
			zstdPool.Put(r)
		}
		return out, err
	}
	return nil, errors.New("unknown content coding")
}

var gzipPool, zlibPool, flatePool, brotliPool, zstdPool sync.Pool

// inflateGzip reads members one by one: what follows the last one, padding or
// anything else, is not an error, as browsers have it.
func inflateGzip(b []byte, in int64, lim limits) ([]byte, error) {
	src := bytes.NewReader(b)
	r, _ := gzipPool.Get().(*gzip.Reader)
	var err error
	if r == nil {
		r, err = gzip.NewReader(src)
	} else {
		err = r.Reset(src)
	}
	if err == gzip.ErrHeader {
		if plain := plainGzip(b); plain != nil {
			return inflateGzip(plain, in, lim)
		}
	}
	if err != nil {
		return nil, err
	}
	defer gzipPool.Put(r)
	out := pooled.get(guess(b, lim))
	for {
		r.Multistream(false)
		if out, err = appendAll(out, r, in, lim); err != nil {
			return out, err
		}
		if rest := b[len(b)-src.Len():]; len(rest) < 18 || rest[0] != 0x1f || rest[1] != 0x8b {
			return out, nil
		}
		if err := r.Reset(src); err != nil {
			return out, nil
		}
	}
}

// plainGzip returns b without the optional parts of its first member's header,
// of which compress/gzip refuses file names and comments over 511 bytes; nil
// where there are none or the header is broken (RFC 1952 section 2.3).
func plainGzip(b []byte) []byte {
	const extra, name, comment, reserved, checksum = 4, 8, 16, 0xe0, 2
	if len(b) < 10 || b[0] != 0x1f || b[1] != 0x8b || b[2] != 8 {
		return nil
	}
	flags, i := b[3], 10
	if flags&(extra|name|comment) == 0 || flags&reserved != 0 {
		return nil
	}
	if flags&extra != 0 {
		if len(b) < i+2 {
			return nil
		}
		i += 2 + int(b[i]) + int(b[i+1])<<8
	}
	for _, text := range [...]byte{name, comment} {
		if flags&text == 0 {
			continue
		}
		if i >= len(b) {
			return nil
		}
		n := bytes.IndexByte(b[i:], 0)
		if n < 0 {
			return nil
		}
		i += n + 1
	}
	if flags&checksum != 0 {
		i += 2
	}
	if i >= len(b) {
		return nil
	}
	return append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}, b[i:]...)
}

func inflateZlib(b []byte, in int64, lim limits) ([]byte, error) {
	src := bytes.NewReader(b)
	r, _ := zlibPool.Get().(io.ReadCloser)
	var err error
	if r == nil {
		r, err = zlib.NewReader(src)
	} else {
		err = r.(zlib.Resetter).Reset(src, nil)
	}
	if err != nil {
		return nil, err
	}
	defer zlibPool.Put(r)
	return readAll(r, b, in, lim)
}

func inflateRaw(b []byte, in int64, lim limits) ([]byte, error) {
	src := bytes.NewReader(b)
	r, _ := flatePool.Get().(io.ReadCloser)
	if r == nil {
		r = flate.NewReader(src)
	} else if err := r.(flate.Resetter).Reset(src, nil); err != nil {
		return nil, err
	}
	defer flatePool.Put(r)
	return readAll(r, b, in, lim)
}

// guess is the first size of a buffer for b decoded.
func guess(b []byte, lim limits) int { return int(min(int64(len(b))*5, lim.max+1)) }

func readAll(r io.Reader, b []byte, in int64, lim limits) ([]byte, error) {
	return appendAll(pooled.get(guess(b, lim)), r, in, lim)
}

// appendAll reads r to its end behind out, within the limits.
func appendAll(out []byte, r io.Reader, in int64, lim limits) ([]byte, error) {
	for {
		out = pooled.grow(out)
		room := out[len(out):cap(out)]
		n, err := r.Read(room)
		out = out[:len(out)+n]
		size := int64(len(out))
		if size > ratioFloor && float64(size) > lim.ratio*float64(in) {
			return out[:min(size, lim.max)], ErrRatio
		}
		if size > lim.max {
			return out[:lim.max], ErrTooLarge
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}
