package fetch_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"deepcrawl/crawl/fetch"
)

func TestOddHeads(t *testing.T) {
	const tail = "Content-Length: 2\r\n\r\nhi"
	cases := []struct {
		name  string
		reply string
		want  map[string]string
	}{
		{"a line without a colon is stepped over", "HTTP/1.1 200 OK\r\nA: 1\r\nno colon at all\r\nB: 2\r\n" + tail, map[string]string{"A": "1", "B": "2"}},
		{"and so are its continuation lines", "HTTP/1.1 200 OK\r\nA: 1\r\nno colon\r\n at: all\r\nB: 2\r\n" + tail, map[string]string{"A": "1", "B": "2", "At": ""}},
		{"as the first line too", "HTTP/1.1 200 OK\r\nno colon\r\nB: 2\r\n" + tail, map[string]string{"B": "2"}},
		{"a second status line is stepped over", "HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\nB: 2\r\n" + tail, map[string]string{"B": "2"}},
		{"a line that begins with its colon is stepped over", "HTTP/1.1 200 OK\r\n: x\r\nB: 2\r\n" + tail, map[string]string{"B": "2"}},
		{"a first line that begins with a space is stepped over", "HTTP/1.1 200 OK\r\n X: 1\r\nB: 2\r\n" + tail, map[string]string{"B": "2"}},
		{"a name with a space in it is stepped over", "HTTP/1.1 200 OK\r\nX Y: 1\r\nB: 2\r\n" + tail, map[string]string{"B": "2"}},
		{"a name in another alphabet is stepped over", "HTTP/1.1 200 OK\r\nÜber: 1\r\nB: 2\r\n" + tail, map[string]string{"B": "2"}},
		{"space before the colon is dropped", "HTTP/1.1 200 OK\r\nContent-Type : text/html\r\n" + tail, map[string]string{"Content-Type": "text/html"}},
		{"control bytes in a value are spaces", "HTTP/1.1 200 OK\r\nA: x\x00y\x7fz\x01\r\nB: 2\r\n" + tail, map[string]string{"A": "x y z", "B": "2"}},
		{"bytes of other alphabets in a value stay", "HTTP/1.1 302 Found\r\nLocation: /\xc3\xa9t\xe9\r\n" + tail, map[string]string{"Location": "/\xc3\xa9t\xe9"}},
		{"a folded value is one value", "HTTP/1.1 200 OK\r\nA: x\r\n\ty\r\n" + tail, map[string]string{"A": "x y"}},
		{"line ends without CR", "HTTP/1.1 200 OK\nA: 1\nno colon\nContent-Length: 2\n\nhi", map[string]string{"A": "1"}},
		{"no reason phrase", "HTTP/1.1 200\r\nA: 1\r\n" + tail, map[string]string{"A": "1"}},
		{"empty lines before it", "\r\n\r\nHTTP/1.1 200 OK\r\nA: 1\r\n" + tail, map[string]string{"A": "1"}},
		{"transfer coding identity", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nA: 1\r\n" + tail, map[string]string{"A": "1"}},
		{"chunked twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", nil},
		{"the same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n" + tail, map[string]string{"Content-Length": "2"}},
		{"a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: two\r\n" + tail, map[string]string{"Content-Length": "2"}},
		{"interim responses with odd lines", "HTTP/1.1 103 Early\r\nno colon\r\n\r\nHTTP/1.1 200 OK\r\nno colon\r\nA: 1\r\n" + tail, map[string]string{"A": "1"}},
	}
	for _, tc := range cases {
		for _, pace := range []int{len(tc.reply), 1} {
			name := tc.name
			if pace == 1 {
				name += ", byte by byte"
			}
			t.Run(name, func(t *testing.T) {
				s := newRawServer(t, func(_ int, c *net.TCPConn) {
					br := bufio.NewReader(c)
					for {
						if _, err := http.ReadRequest(br); err != nil {
							return
						}
						for part := range slices.Chunk([]byte(tc.reply), pace) {
							c.Write(part)
						}
					}
				})
				c := newClient(t, nil)
				for i := range 2 {
					res := do(t, c, fetch.Request{URL: s.url})
					if res.Reason != "" || res.Status < 200 || string(res.Body) != "hi" || res.Reused != (i == 1) {
						t.Fatalf("exchange %d: got %q (%v), status %d, body %q, reused %v", i, res.Reason, res.Err, res.Status, res.Body, res.Reused)
					}
					for k, v := range tc.want {
						if got := res.Header.Get(k); got != v {
							t.Errorf("%s: got %q, want %q", k, got, v)
						}
					}
				}
			})
		}
	}
	t.Run("two different lengths are not HTTP", func(t *testing.T) {
		s := replies(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"+tail)
		if res := do(t, newClient(t, nil), fetch.Request{URL: s.url}); res.Reason != fetch.ReasonHTTP {
			t.Errorf("got %q (%v)", res.Reason, res.Err)
		}
	})
}

// pieces is a connection that reads data in pieces of given sizes.
type pieces struct {
	net.Conn
	data  []byte
	sizes []byte
	n     int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	size := len(p.data)
	if len(p.sizes) > 0 {
		size = int(p.sizes[p.n%len(p.sizes)])%64 + 1
		p.n++
	}
	n := copy(b[:min(size, len(b))], p.data)
	p.data = p.data[n:]
	return n, nil
}

func (p *pieces) Close() error                     { return nil }
func (p *pieces) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (p *pieces) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (p *pieces) SetDeadline(time.Time) error      { return nil }
func (p *pieces) SetReadDeadline(time.Time) error  { return nil }
func (p *pieces) SetWriteDeadline(time.Time) error { return nil }

// response parses a reply with net/http, through the filter or not.
func response(r io.Reader) (resp *http.Response, body []byte, err error) {
	br := bufio.NewReader(r)
	for {
		if resp, err = http.ReadResponse(br, nil); err != nil {
			return nil, nil, err
		}
		if resp.StatusCode/100 != 1 || resp.StatusCode == 101 {
			break
		}
	}
	body, err = io.ReadAll(resp.Body)
	return resp, body, err
}

var headSeeds = []string{
	okReply,
	"HTTP/1.1 200 OK\r\nA: 1\r\nno colon\r\n folded\r\nContent-Length: 5\r\n\r\nhello",
	"HTTP/1.1 103 Early\r\nX\r\n\r\nHTTP/1.1 200 OK\nTransfer-Encoding: gzip, chunked\n\n5 ;x\nhello\n0\nt\n\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n10;ext=\"a\"\r\n0123456789abcdef\r\n0\r\nTrailer: x\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
	"\r\n\nHTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n",
	"HTTP/1.1 204 No\r\nA : \x00\x7f\r\n\r\nx",
	"HTTP/1.0 301 x\r\nLocation: /a\r\n b\r\n\r\n",
	"SSH-2.0-x\r\n", "HTTP/1.1 2", "", "HTTP/1.1 200 OK\r\n\r\n",
}

// FuzzHead: what net/http reads without the filter it reads the same with it,
// the filter's answer does not depend on how the bytes arrive, and mending
// what is mended changes nothing.
func FuzzHead(f *testing.F) {
	for _, s := range headSeeds {
		f.Add([]byte(s), []byte{1, 7, 30})
	}
	f.Fuzz(func(t *testing.T, data, sizes []byte) {
		if n := fetch.HeadEnd(data); n > 0 {
			once := fetch.MendHead(data[:n])
			if twice := fetch.MendHead(once); !bytes.Equal(once, twice) {
				t.Errorf("mended twice: %q became %q", once, twice)
			}
			if len(once) > n {
				t.Errorf("mending grew %d bytes to %d", n, len(once))
			}
		}
		filter := func(sizes []byte) (*http.Response, []byte, error) {
			return response(fetch.HeadConn(&pieces{data: data, sizes: sizes}, 1<<20))
		}
		resp, body, err := filter(nil)
		resp2, body2, err2 := filter(sizes)
		if (err == nil) != (err2 == nil) || !bytes.Equal(body, body2) || (resp == nil) != (resp2 == nil) {
			t.Fatalf("at once: %q, %v; in pieces: %q, %v", body, err, body2, err2)
		}
		plain, plainBody, plainErr := response(bytes.NewReader(data))
		if plainErr != nil || !bytes.HasPrefix(data, []byte("HTTP/")) {
			return
		}
		if err != nil {
			t.Fatalf("net/http reads it alone, not through the filter: %v", err)
		}
		if resp.StatusCode != plain.StatusCode || !bytes.Equal(body, plainBody) {
			t.Fatalf("got %d %q, net/http alone %d %q", resp.StatusCode, body, plain.StatusCode, plainBody)
		}
	})
}

// FuzzDecode: content decoding never panics, keeps to its limits and says so.
func FuzzDecode(f *testing.F) {
	for coding := range coders {
		header := strings.Replace(coding, "raw", "deflate", 1)
		wire := compress(coding, page)
		f.Add(wire, header)
		f.Add(wire[:len(wire)/2], header)
		f.Add(compress("gzip", wire), header+", gzip")
	}
	f.Add(page, "gzip")
	f.Add([]byte("(\xb5/\xfd"), "zsUd, gzip") // once never came to an end
	f.Add([]byte{0x1f, 0x8b, 8, 0x1c, 0, 0, 0, 0, 0, 0, 1, 0, 'x', 'n', 0, 'c', 0, 3, 0}, "gzip")
	f.Fuzz(func(t *testing.T, wire []byte, encoding string) {
		const limit = 3 << 20
		body, truncated, reason, err := fetch.DecodeBody(wire, []string{encoding}, htmlType, limit, 100)
		switch {
		case reason == fetch.ReasonTooLarge && (!truncated || !errors.Is(err, fetch.ErrTooLarge) && !errors.Is(err, fetch.ErrRatio)),
			reason == fetch.ReasonDecode && err == nil,
			reason != "" && reason != fetch.ReasonTooLarge && reason != fetch.ReasonDecode,
			reason == "" && truncated != (err != nil):
			t.Errorf("reason %q, truncated %v, error %v", reason, truncated, err)
		case len(wire) <= limit && len(body) > limit:
			t.Errorf("%d bytes, limit %d", len(body), limit)
		}
	})
}
