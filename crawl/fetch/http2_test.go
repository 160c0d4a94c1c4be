package fetch_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"deepcrawl/crawl/fetch"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// testTLS is a server certificate for 127.0.0.1 and example.com, and a client
// configuration that trusts it.
func testTLS(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	return s.TLS.Clone(), s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
}

// frameServer speaks HTTP/2 by the frame. onRequest runs for each request head
// and answers it; returning false ends the connection.
type frameServer struct {
	url     string
	client  *tls.Config
	hits    hits
	onReset func(f *http2.Framer, id uint32) // runs when the client resets a stream
}

func newFrameServer(t testing.TB, onRequest func(n int, f *http2.Framer, id uint32, path string) bool) *frameServer {
	t.Helper()
	serverConf, clientConf := testTLS(t)
	serverConf.NextProtos = []string{"h2"}
	s := &frameServer{client: clientConf, onReset: func(*http2.Framer, uint32) {}}
	raw := newRawServer(t, func(n int, tcp *net.TCPConn) {
		c := tls.Server(tcp, serverConf)
		defer c.Close()
		preface := make([]byte, len(http2.ClientPreface))
		if _, err := io.ReadFull(c, preface); err != nil {
			return
		}
		f := http2.NewFramer(c, c)
		f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			switch frame := frame.(type) {
			case *http2.SettingsFrame:
				if !frame.IsAck() {
					f.WriteSettingsAck()
				}
			case *http2.PingFrame:
				f.WritePing(true, frame.Data)
			case *http2.RSTStreamFrame:
				s.onReset(f, frame.StreamID)
			case *http2.MetaHeadersFrame:
				s.hits.add(frame.PseudoValue("path"))
				if !onRequest(n, f, frame.StreamID, frame.PseudoValue("path")) {
					return
				}
			}
		}
	})
	s.url = "https://" + raw.addr
	return s
}

// reply answers a stream with a head and a body.
func reply(f *http2.Framer, id uint32, body string) bool {
	var buf writeBuffer
	e := hpack.NewEncoder(&buf)
	e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
	e.WriteField(hpack.HeaderField{Name: "content-type", Value: "text/html"})
	f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: buf, EndHeaders: true, EndStream: body == ""})
	if body != "" {
		f.WriteData(id, true, []byte(body))
	}
	return true
}

type writeBuffer []byte

func (b *writeBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

func TestNoReplayHTTP2(t *testing.T) {
	cases := []struct {
		name   string
		second func(f *http2.Framer, id uint32) bool
	}{
		{"the stream is refused", func(f *http2.Framer, id uint32) bool {
			return f.WriteRSTStream(id, http2.ErrCodeRefusedStream) == nil
		}},
		{"the site goes away before the stream", func(f *http2.Framer, id uint32) bool {
			return f.WriteGoAway(id-2, http2.ErrCodeNo, nil) == nil
		}},
		{"the connection ends", func(*http2.Framer, uint32) bool { return false }},
		{"enhance your calm", func(f *http2.Framer, id uint32) bool {
			f.WriteGoAway(id, http2.ErrCodeEnhanceYourCalm, nil)
			return false
		}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := newFrameServer(t, func(_ int, f *http2.Framer, id uint32, path string) bool {
				if path == "/second" {
					return tc.second(f, id)
				}
				return reply(f, id, "hi")
			})
			c := newClient(t, func(cfg *fetch.Config) { cfg.TLS = s.client })
			if res := do(t, c, fetch.Request{URL: s.url + "/first"}); res.Reason != "" || res.Proto != "HTTP/2.0" {
				t.Fatalf("first: got %v: %v, %v", res.Reason, res.Err, res.Proto)
			}
			res := do(t, c, fetch.Request{URL: s.url + "/second"})
			if res.Reason != fetch.ReasonReset || !res.Wrote || !res.Reused {
				t.Errorf("got reason %q (%v), wrote %v, reused %v", res.Reason, res.Err, res.Wrote, res.Reused)
			}
			if n := s.hits.of("/second"); n != 1 {
				t.Errorf("the site saw the request %d times, want 1", n)
			}
			if res := do(t, c, fetch.Request{URL: s.url + "/third"}); res.Reason != "" {
				t.Errorf("afterwards: got %v: %v", res.Reason, res.Err)
			}
		})
	}
}

func TestAbortHTTP2(t *testing.T) {
	t.Run("the site sees the reset, and other streams go on", func(t *testing.T) {
		asked := make(chan string, 2)
		var slow uint32 // its stream
		s := newFrameServer(t, func(_ int, f *http2.Framer, id uint32, path string) bool {
			defer func() { asked <- path }()
			switch path {
			case "/first":
				return reply(f, id, "hi")
			case "/slow":
				slow = id
			}
			return true // never answered
		})
		s.onReset = func(f *http2.Framer, id uint32) { reply(f, slow, fmt.Sprint("after the reset of ", id-slow)) }
		c := newClient(t, func(cfg *fetch.Config) { cfg.TLS = s.client })
		do(t, c, fetch.Request{URL: s.url + "/first"})
		<-asked
		answered := make(chan *fetch.Result, 1)
		go func() { answered <- c.Do(context.Background(), fetch.Request{URL: s.url + "/slow"}) }()
		<-asked
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan *fetch.Result, 1)
		go func() { done <- c.Do(ctx, fetch.Request{URL: s.url + "/never"}) }()
		<-asked
		cancel()
		res := <-done
		if res.Reason != fetch.ReasonCanceled || !errors.Is(res.Err, context.Canceled) || !res.Wrote {
			t.Errorf("got reason %q (%v), wrote %v", res.Reason, res.Err, res.Wrote)
		}
		if res := <-answered; res.Reason != "" || string(res.Body) != "after the reset of 2" || !res.Reused {
			t.Errorf("the other stream: got %q (%v), body %q, reused %v", res.Reason, res.Err, res.Body, res.Reused)
		}
	})
	t.Run("a site fallen silent gets no more exchanges on that connection", func(t *testing.T) {
		s := newFrameServer(t, func(n int, f *http2.Framer, id uint32, _ string) bool {
			return n == 0 || reply(f, id, "hi")
		})
		c := newClient(t, func(cfg *fetch.Config) { cfg.TLS, cfg.FirstByteTimeout = s.client, 50*time.Millisecond })
		if res := do(t, c, fetch.Request{URL: s.url + "/silent"}); res.Reason != fetch.ReasonTimeout || !res.Wrote {
			t.Errorf("got %q (%v), wrote %v", res.Reason, res.Err, res.Wrote)
		}
		if res := do(t, c, fetch.Request{URL: s.url + "/next"}); res.Reason != "" || res.Reused {
			t.Errorf("next: got %q (%v), reused %v", res.Reason, res.Err, res.Reused)
		}
	})
}

func TestManyStreamsShareOneConnection(t *testing.T) {
	var mu sync.Mutex
	conns := map[string]bool{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		conns[r.RemoteAddr] = true
		mu.Unlock()
		w.Write([]byte("hi"))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	c := newClient(t, func(cfg *fetch.Config) { cfg.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig })
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			if res := c.Do(context.Background(), fetch.Request{URL: s.URL}); res.Reason != "" {
				t.Errorf("got %v: %v", res.Reason, res.Err)
			}
		})
	}
	wg.Wait()
	if len(conns) != 1 {
		t.Errorf("24 workers at once to an unknown host: got %d connections, want 1", len(conns))
	}
}
