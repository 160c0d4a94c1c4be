package fetch_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"deepcrawl/crawl/fetch"
)

// replies answers each request on a connection with reply, as it is.
func replies(t testing.TB, reply string) *rawServer {
	return newRawServer(t, func(_ int, c *net.TCPConn) {
		br := bufio.NewReader(c)
		for {
			if _, err := http.ReadRequest(br); err != nil {
				return
			}
			io.WriteString(c, reply)
			if !strings.Contains(reply, "ength:") && !strings.Contains(reply, "chunked") {
				return // only the end of the connection ends this body
			}
		}
	})
}

func TestBodyLimits(t *testing.T) {
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/declared" {
			w.Header().Set("Content-Length", fmt.Sprint(1<<30))
		}
		block := make([]byte, 64<<10)
		for n := 0; n < 1<<30; n += len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
			sent.Add(int64(len(block)))
		}
	}))
	defer s.Close()
	for _, path := range []string{"/declared", "/chunked"} {
		t.Run("a 1 GB body stops at the limit: "+path, func(t *testing.T) {
			sent.Store(0)
			c := newClient(t, nil)
			res := do(t, c, fetch.Request{URL: s.URL + path})
			if res.Reason != fetch.ReasonTooLarge || !errors.Is(res.Err, fetch.ErrTooLarge) || !res.TooLarge || !res.Truncated || len(res.Body) != 5<<20 || res.WireBytes != 5<<20 {
				t.Errorf("got %q (%v), too large %v, %d bytes, %d on the wire", res.Reason, res.Err, res.TooLarge, len(res.Body), res.WireBytes)
			}
			if n := sent.Load(); n > 64<<20 {
				t.Errorf("the site could send %d bytes", n)
			}
			if n := fetch.KeptConns(c); n != 0 {
				t.Errorf("%d connections kept in mid-body", n)
			}
		})
	}
	t.Run("a request may set its own limit", func(t *testing.T) {
		for limit, want := range map[int64]fetch.Reason{9999: fetch.ReasonTooLarge, 10000: "", 10001: ""} {
			s := replies(t, "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n"+strings.Repeat("x", 10000))
			res := do(t, newClient(t, nil), fetch.Request{URL: s.url, MaxBody: limit})
			if res.Reason != want || int64(len(res.Body)) != min(limit, 10000) {
				t.Errorf("limit %d: got %q (%v), %d bytes", limit, res.Reason, res.Err, len(res.Body))
			}
		}
	})
	t.Run("a head over the limit is not HTTP", func(t *testing.T) {
		s := replies(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20)+"\r\nContent-Length: 0\r\n\r\n")
		if res := do(t, newClient(t, nil), fetch.Request{URL: s.url}); res.Reason != fetch.ReasonHTTP || !res.Wrote {
			t.Errorf("got %q (%v)", res.Reason, res.Err)
		}
	})
	t.Run("a big head under the limit is read", func(t *testing.T) {
		value := strings.Repeat("x", 900<<10)
		s := replies(t, "HTTP/1.1 200 OK\r\nno colon here\r\nX: "+value+"\r\nContent-Length: 2\r\n\r\nhi")
		if res := do(t, newClient(t, nil), fetch.Request{URL: s.url}); res.Reason != "" || res.Header.Get("X") != value || string(res.Body) != "hi" {
			t.Errorf("got %q (%v), %d bytes of value, body %q", res.Reason, res.Err, len(res.Header.Get("X")), res.Body)
		}
	})
}

func TestBodyFor(t *testing.T) {
	html := func(status int, contentType string) bool {
		return status == 200 && strings.HasPrefix(contentType, "text/html")
	}
	var served atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscanf(r.URL.Path, "/%d", &n)
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		w.Header().Set("Content-Length", fmt.Sprint(n))
		block := make([]byte, 32<<10)
		for n > 0 {
			k, err := w.Write(block[:min(n, len(block))])
			if err != nil {
				return
			}
			served.Add(int64(k))
			n -= k
		}
	})
	plain := httptest.NewServer(handler)
	defer plain.Close()
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	for _, s := range []struct {
		url  string
		keep bool // the connection outlives a large refused body
	}{{plain.URL, false}, {secure.URL, true}} {
		c := newClient(t, func(cfg *fetch.Config) { cfg.TLS = secure.Client().Transport.(*http.Transport).TLSClientConfig })
		res := do(t, c, fetch.Request{URL: s.url + "/1000?type=text/html", BodyFor: html})
		if res.Reason != "" || len(res.Body) != 1000 || res.Bytes != 1000 {
			t.Errorf("%s: a wanted body: got %q (%v), %d bytes", s.url, res.Reason, res.Err, len(res.Body))
		}
		res = do(t, c, fetch.Request{URL: s.url + "/20000?type=image/png", BodyFor: html})
		if res.Reason != "" || res.Body != nil || res.Bytes != 20000 || res.Truncated {
			t.Errorf("%s: a small image: got %q (%v), body %d, bytes %d", s.url, res.Reason, res.Err, len(res.Body), res.Bytes)
		}
		res = do(t, c, fetch.Request{URL: s.url + "/100000000?type=video/mp4", BodyFor: html})
		if res.Reason != "" || res.Body != nil || res.Bytes != 100_000_000 || !res.Reused {
			t.Errorf("%s: a video: got %q (%v), body %d, bytes %d, reused %v", s.url, res.Reason, res.Err, len(res.Body), res.Bytes, res.Reused)
		}
		res = do(t, c, fetch.Request{URL: s.url + "/10?type=text/html", BodyFor: html})
		if res.Reason != "" || len(res.Body) != 10 || res.Reused != s.keep {
			t.Errorf("%s: afterwards: got %q (%v), reused %v", s.url, res.Reason, res.Err, res.Reused)
		}
		c.Close()
	}
	if n := served.Load(); n > 100_000_000 {
		t.Errorf("the sites sent %d bytes", n)
	}
	t.Run("a panic in it is the exchange's failure", func(t *testing.T) {
		c := newClient(t, nil)
		res := do(t, c, fetch.Request{URL: plain.URL + "/10", BodyFor: func(int, string) bool { panic("broken filter") }})
		if res.Reason != fetch.ReasonInternal || !res.Wrote || fetch.KeptConns(c) != 0 {
			t.Errorf("got %q (%v), wrote %v, %d connections kept", res.Reason, res.Err, res.Wrote, fetch.KeptConns(c))
		}
	})
}

func TestBodyEnds(t *testing.T) {
	cases := []struct {
		name      string
		reply     string
		body      string
		truncated bool
		reason    fetch.Reason
		kept      int
	}{
		{"by length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", false, "", 1},
		{"by chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", false, "", 1},
		{"by chunks with lengths, extensions and trailers of any form",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5 ; x=\"y\"\r\nhello\n000\ntrail no colon\nA: b\r\n\n", "hello", false, "", 1},
		{"by the connection's end", "HTTP/1.1 200 OK\r\n\r\nhello", "hello", false, "", 0},
		{"by the connection's end, HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\nhello", "hello", false, "", 0},
		{"too early, by length", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-length : 50\r\n\r\nhello", "hello", true, "", 0},
		{"never, there is none", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "", false, "", 1},
		{"not modified", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "", false, "", 1},
		{"before more than was asked for", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world", "hello", false, "", 0},
		{"before a second response nobody asked for", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison", "hello", false, "", 0},
		{"before more than the chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison", "hello", false, "", 0},
		{"after interim responses", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", false, "", 1},
		{"with a switch of protocols", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\nContent-Length: 0\r\n\r\n", "", false, fetch.ReasonHTTP, 0},
		{"in words that are no HTTP", "SSH-2.0-OpenSSH_9.9\r\n", "", false, fetch.ReasonHTTP, 0},
		{"in nothing", "", "", false, fetch.ReasonReset, 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := newRawServer(t, func(_ int, c *net.TCPConn) {
				br := bufio.NewReader(c)
				if _, err := http.ReadRequest(br); err != nil {
					return
				}
				io.WriteString(c, tc.reply)
				if tc.kept == 0 {
					c.CloseWrite()
				}
				io.Copy(io.Discard, br)
			})
			c := newClient(t, nil)
			res := do(t, c, fetch.Request{URL: s.url})
			if res.Reason != tc.reason || string(res.Body) != tc.body || res.Truncated != tc.truncated || !res.Wrote {
				t.Errorf("got %q (%v), body %q, truncated %v; want %q, %q, %v", res.Reason, res.Err, res.Body, res.Truncated, tc.reason, tc.body, tc.truncated)
			}
			if n := fetch.KeptConns(c); tc.kept == 1 && n != 1 {
				t.Errorf("connections kept: got %d, want 1", n)
			}
			// Whatever was left on the connection, the next exchange is not
			// answered with it.
			if next := do(t, c, fetch.Request{URL: replies(t, okReply).url}); string(next.Body) != "hi" {
				t.Errorf("another site: got %q (%v) %q", next.Reason, next.Err, next.Body)
			}
		})
	}
	t.Run("what follows a body never answers the next request", func(t *testing.T) {
		for _, first := range []string{
			"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		} {
			s := replies(t, first+"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison")
			c := newClient(t, nil)
			for i := range 20 {
				if res := do(t, c, fetch.Request{URL: s.url}); res.Reason != "" || string(res.Body) != "hello" {
					t.Fatalf("exchange %d: got %q (%v), body %q", i, res.Reason, res.Err, res.Body)
				}
			}
		}
	})
}

func TestRelease(t *testing.T) {
	s := replies(t, okReply)
	c := newClient(t, nil)
	res := c.Do(t.Context(), fetch.Request{URL: s.url})
	res.Release()
	res.Release()
	if res.Body != nil {
		t.Error("the body outlives Release")
	}
	if res = c.Do(t.Context(), fetch.Request{URL: "ftp://x"}); res.Reason != fetch.ReasonBadURL {
		t.Errorf("got %q", res.Reason)
	}
	res.Release()
}

// TestChunkExtensionsCutAnywhere: a body is the same wherever the network cuts what the server sends, extensions of chunks included.
func TestChunkExtensionsCutAnywhere(t *testing.T) {
	data := []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n6 ; c\r\n world\r\n0;d\r\nT: x\r\n\r\n")
	for cut := 1; cut < len(data); cut++ {
		r := io.MultiReader(bytes.NewReader(data[:cut]), bytes.NewReader(data[cut:]))
		_, body, err := response(fetch.HeadConn(&readConn{Reader: r}, 1<<20))
		if err != nil || string(body) != "hello world" {
			t.Errorf("cut after %q: got %q, %v", data[:cut], body, err)
		}
	}
}

// readConn is a connection that a reader answers on.
type readConn struct {
	pieces
	io.Reader
}

func (c *readConn) Read(b []byte) (int, error) { return c.Reader.Read(b) }
