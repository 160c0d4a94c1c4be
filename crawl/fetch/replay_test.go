package fetch_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"deepcrawl/crawl/fetch"
)

const okReply = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"

func TestNoReplay(t *testing.T) {
	// Each server answers the first request on a connection and then does its
	// worst to the second.
	cases := []struct {
		name    string
		second  func(br *bufio.Reader, c *net.TCPConn, h *hits)
		reason  fetch.Reason
		wrote   bool
		replays bool // net/http's Transport asks again
	}{
		{"the request is read, then the connection ends", func(br *bufio.Reader, c *net.TCPConn, h *hits) {
			h.next(br)
		}, fetch.ReasonReset, true, true},
		{"the request is read, then the connection is reset", func(br *bufio.Reader, c *net.TCPConn, h *hits) {
			h.next(br)
			reset(c)
		}, fetch.ReasonReset, true, true},
		{"one byte is read, then the connection is reset", func(br *bufio.Reader, c *net.TCPConn, h *hits) {
			br.ReadByte()
			h.add("/second")
			reset(c)
		}, fetch.ReasonReset, true, true},
		{"half a status line is answered", func(br *bufio.Reader, c *net.TCPConn, h *hits) {
			h.next(br)
			io.WriteString(c, "HTTP/1.1 2")
		}, fetch.ReasonReset, true, false},
		{"half a head is answered, then a reset", func(br *bufio.Reader, c *net.TCPConn, h *hits) {
			h.next(br)
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-")
			reset(c)
		}, fetch.ReasonReset, true, false},
		{"408 is answered, as an idle connection's end", func(br *bufio.Reader, c *net.TCPConn, h *hits) {
			h.next(br)
			io.WriteString(c, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}, fetch.ReasonOK, true, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			serve := func(h *hits) *rawServer {
				return newRawServer(t, func(_ int, c *net.TCPConn) {
					br := bufio.NewReader(c)
					if _, err := h.next(br); err != nil {
						return
					}
					io.WriteString(c, okReply)
					if _, err := br.Peek(1); err == nil {
						tc.second(br, c, h)
					}
				})
			}
			var h hits
			s := serve(&h)
			c := newClient(t, nil)
			if res := do(t, c, fetch.Request{URL: s.url + "/first"}); res.Reason != "" {
				t.Fatalf("first: got %v: %v", res.Reason, res.Err)
			}
			res := do(t, c, fetch.Request{URL: s.url + "/second"})
			if res.Reason != tc.reason || res.Wrote != tc.wrote || !res.Reused {
				t.Errorf("got reason %q (%v), wrote %v, reused %v; want %q, %v, true", res.Reason, res.Err, res.Wrote, res.Reused, tc.reason, tc.wrote)
			}
			if n := h.of("/second"); n != 1 {
				t.Errorf("the site saw the request %d times, want 1", n)
			}
			if n := s.accepted.Load(); n != 1 {
				t.Errorf("connections: got %d, want 1", n)
			}

			// The control: the same with net/http shows the test bites.
			var control hits
			s = serve(&control)
			tr := &http.Transport{}
			defer tr.CloseIdleConnections()
			for _, path := range []string{"/first", "/second"} {
				req, _ := http.NewRequest("GET", s.url+path, nil)
				if resp, err := tr.RoundTrip(req); err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
			if replayed := control.of("/second") > 1; replayed != tc.replays {
				t.Errorf("net/http: seen %d times, want a replay %v", control.of("/second"), tc.replays)
			}
		})
	}
}

func TestDeadConnectionIsReplacedWhenNothingWasWritten(t *testing.T) {
	var h hits
	gone := make(chan struct{}, 1)
	s := newRawServer(t, func(_ int, c *net.TCPConn) {
		if _, err := h.next(bufio.NewReader(c)); err != nil {
			return
		}
		io.WriteString(c, okReply)
		c.Close()
		gone <- struct{}{}
	})
	c := newClient(t, nil)
	var guarded atomic.Int64
	for i := range 20 {
		path := fmt.Sprintf("/%d", i)
		res := do(t, c, fetch.Request{URL: s.url + path, Guard: func() error { guarded.Add(1); return nil }})
		if res.Reason != "" || string(res.Body) != "hi" || h.of(path) != 1 {
			t.Fatalf("exchange %d: got %q %v, seen %d times", i, res.Reason, res.Err, h.of(path))
		}
		<-gone // the end of the connection is on its way before the next exchange
	}
	if n := guarded.Load(); n < 20 || n > 40 {
		t.Errorf("guard calls: got %d, want one a connection tried", n)
	}
}

func TestNoReplayUnderHammering(t *testing.T) {
	// Connections die at random moments under many workers. Whatever happens,
	// the site sees each request at most once, and only if Wrote says so.
	var h hits
	s := newRawServer(t, func(n int, c *net.TCPConn) {
		rnd := rand.New(rand.NewPCG(7, uint64(n)))
		br := bufio.NewReader(c)
		for {
			switch rnd.IntN(10) {
			case 0:
				reset(c)
				return
			case 1:
				return
			}
			if _, err := h.next(br); err != nil {
				return
			}
			switch rnd.IntN(10) {
			case 0:
				reset(c)
				return
			case 1:
				return
			case 2:
				io.WriteString(c, okReply[:rnd.IntN(len(okReply))])
				return
			}
			io.WriteString(c, okReply)
		}
	})
	c := newClient(t, nil)
	const workers, each = 8, 150
	var wg sync.WaitGroup
	var ok, lost, unseen atomic.Int64
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				path := fmt.Sprintf("/%d/%d", w, i)
				res := c.Do(context.Background(), fetch.Request{URL: s.url + path})
				seen := h.of(path)
				switch {
				case seen > 1, seen == 1 && !res.Wrote, res.Reason == "" && !res.Truncated && seen != 1:
					t.Errorf("%s: seen %d times, wrote %v, reason %q: %v", path, seen, res.Wrote, res.Reason, res.Err)
				case res.Reason == "":
					ok.Add(1)
				default:
					lost.Add(1)
				}
				if seen == 0 {
					unseen.Add(1)
				}
				res.Release()
			}
		})
	}
	wg.Wait()
	if ok.Load() == 0 || lost.Load() == 0 {
		t.Errorf("the server was to spare some and kill some: %d ok, %d lost", ok.Load(), lost.Load())
	}
	t.Logf("%d ok, %d lost, %d never seen, %d connections", ok.Load(), lost.Load(), unseen.Load(), s.accepted.Load())
}
