package fetch_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deepcrawl/crawl/fetch"
)

// resolverFunc makes a Resolver of a function.
type resolverFunc func(ctx context.Context, host string) ([]netip.Addr, error)

func (f resolverFunc) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	return f(ctx, host)
}

// pipes gives a Dial hook whose every connection is served by serve, in
// virtual time: no sockets. The test ends when they all have.
func pipes(t *testing.T, serve func(c net.Conn)) func(context.Context, string, string) (net.Conn, error) {
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	return func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		serving.Go(func() {
			defer server.Close()
			serve(server)
		})
		return client, nil
	}
}

// drip writes s, then one byte every second until the connection is gone.
func drip(c net.Conn, s string) {
	if _, err := io.WriteString(c, s); err != nil {
		return
	}
	for {
		time.Sleep(time.Second)
		if _, err := io.WriteString(c, "x"); err != nil {
			return
		}
	}
}

func TestDeadlines(t *testing.T) {
	const url = "http://192.0.2.1/"
	readThen := func(then func(c net.Conn)) func(net.Conn) {
		return func(c net.Conn) {
			if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				then(c)
			}
			io.Copy(io.Discard, c)
		}
	}
	cases := []struct {
		name   string
		change func(*fetch.Config)
		url    string
		serve  func(c net.Conn)
		total  time.Duration
		reason fetch.Reason
		wrote  bool
		err    string
		body   string // its beginning
		deaf   bool   // serve does not notice the connection's end at once
	}{
		{name: "a body dripping one byte a second ends a second before the hard deadline",
			serve: readThen(func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbody") }),
			total: 59 * time.Second, reason: fetch.ReasonTimeout, wrote: true, err: "hard deadline: timed out", body: "bodyxxxxx", deaf: true},
		{name: "a head dripping one byte a second ends at the first-byte limit",
			deaf:  true,
			serve: readThen(func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nX: ") }),
			total: 30 * time.Second, reason: fetch.ReasonTimeout, wrote: true, err: "wait for response: timed out"},
		{name: "a silent site ends at the first-byte limit",
			serve: readThen(func(net.Conn) {}),
			total: 30 * time.Second, reason: fetch.ReasonTimeout, wrote: true, err: "wait for response: timed out"},
		{name: "a body that stalls ends at the gap limit and keeps what came",
			serve: readThen(func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf") }),
			total: 20 * time.Second, reason: fetch.ReasonTimeout, wrote: true, err: "read body: timed out", body: "half"},
		{name: "endless interim responses end at the first-byte limit",
			deaf: true,
			serve: readThen(func(c net.Conn) {
				for {
					if _, err := io.WriteString(c, "HTTP/1.1 102 Processing\r\n\r\n"); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}),
			total: 30 * time.Second, reason: fetch.ReasonTimeout, wrote: true, err: "wait for response: timed out"},
		{name: "the soak's hard deadline of 5 s aborts at 4 s",
			change: func(c *fetch.Config) { c.HardDeadline = 5 * time.Second },
			serve:  readThen(func(net.Conn) {}),
			total:  4 * time.Second, reason: fetch.ReasonTimeout, wrote: true, err: "hard deadline: timed out"},
		{name: "a site that does not read holds the request no longer",
			serve: func(c net.Conn) { time.Sleep(2 * time.Minute) }, deaf: true,
			total: 30 * time.Second, reason: fetch.ReasonTimeout, wrote: true, err: "wait for response: timed out"},
		{name: "a connect without answer ends at the connect limit",
			change: func(c *fetch.Config) {
				c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
			},
			total: 10 * time.Second, reason: fetch.ReasonTimeout, err: "connect: timed out"},
		{name: "a resolver without answer ends at the DNS limit",
			url: "http://slow.example/",
			change: func(c *fetch.Config) {
				c.Resolver = resolverFunc(func(ctx context.Context, _ string) ([]netip.Addr, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
			},
			total: 10 * time.Second, reason: fetch.ReasonDNS, err: "look up: timed out"},
		{name: "a TLS handshake without answer ends at the TLS limit",
			url: "https://192.0.2.1/", serve: func(c net.Conn) { io.Copy(io.Discard, c) },
			total: 10 * time.Second, reason: fetch.ReasonTimeout, err: "tls handshake: timed out"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var closed time.Duration // when the site saw the connection end
				cfg := fetch.Config{AllowPrivate: true, Dial: pipes(t, func(c net.Conn) {
					tc.serve(c)
					io.Copy(io.Discard, c)
					closed = time.Since(start)
				})}
				if tc.change != nil {
					tc.change(&cfg)
				}
				c, err := fetch.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if tc.url == "" {
					tc.url = url
				}
				res := c.Do(context.Background(), fetch.Request{URL: tc.url})
				if got := time.Since(start); got != tc.total || res.Total != tc.total {
					t.Errorf("took %v, says %v; want %v", got, res.Total, tc.total)
				}
				synctest.Wait()
				if tc.wrote && !tc.deaf && closed != tc.total {
					t.Errorf("when Do returned the connection was not closed: %v, want %v", closed, tc.total)
				}
				if res.Reason != tc.reason || res.Wrote != tc.wrote || res.Err == nil || res.Err.Error() != tc.err || !errors.Is(res.Err, fetch.ErrTimeout) {
					t.Errorf("got reason %q (%v), wrote %v; want %q (%s), %v", res.Reason, res.Err, res.Wrote, tc.reason, tc.err, tc.wrote)
				}
				if !strings.HasPrefix(string(res.Body), tc.body) || (tc.body != "") != res.Truncated {
					t.Errorf("body: got %q, truncated %v", res.Body, res.Truncated)
				}
			})
		})
	}
}

func TestCallersContext(t *testing.T) {
	run := func(name string, do func(t *testing.T, c *fetch.Client)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stall := pipes(t, func(c net.Conn) { io.Copy(io.Discard, c) })
				c, err := fetch.New(fetch.Config{AllowPrivate: true, Dial: stall})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				do(t, c)
			})
		})
	}
	run("a cancelled exchange ends at once", func(t *testing.T, c *fetch.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(3*time.Second, cancel)
		res := c.Do(ctx, fetch.Request{URL: "http://192.0.2.1/"})
		if res.Reason != fetch.ReasonCanceled || res.Total != 3*time.Second || !res.Wrote {
			t.Errorf("got %q (%v) after %v, wrote %v", res.Reason, res.Err, res.Total, res.Wrote)
		}
	})
	run("the caller's deadline is a timeout", func(t *testing.T, c *fetch.Client) {
		ctx, cancel := context.WithTimeout(context.Background(), 7*time.Second)
		defer cancel()
		res := c.Do(ctx, fetch.Request{URL: "http://192.0.2.1/"})
		if res.Reason != fetch.ReasonTimeout || res.Total != 7*time.Second {
			t.Errorf("got %q (%v) after %v", res.Reason, res.Err, res.Total)
		}
	})
	run("a context that has ended starts nothing", func(t *testing.T, c *fetch.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if res := c.Do(ctx, fetch.Request{URL: "http://192.0.2.1/"}); res.Reason != fetch.ReasonCanceled || res.Wrote {
			t.Errorf("got %q (%v), wrote %v", res.Reason, res.Err, res.Wrote)
		}
	})
	run("a guard that outlasts the caller's context writes nothing", func(t *testing.T, c *fetch.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		res := c.Do(ctx, fetch.Request{URL: "http://192.0.2.1/", Guard: func() error {
			cancel()
			synctest.Wait()
			return nil
		}})
		if res.Reason != fetch.ReasonCanceled || res.Wrote {
			t.Errorf("got %q (%v), wrote %v", res.Reason, res.Err, res.Wrote)
		}
	})
	run("Close aborts what is under way and waits for it", func(t *testing.T, c *fetch.Client) {
		done := make(chan *fetch.Result, 1)
		go func() { done <- c.Do(context.Background(), fetch.Request{URL: "http://192.0.2.1/"}) }()
		synctest.Wait()
		c.Close()
		synctest.Wait()
		select {
		case res := <-done:
			if res.Reason != fetch.ReasonCanceled || !errors.Is(res.Err, fetch.ErrClosed) {
				t.Errorf("got %q (%v)", res.Reason, res.Err)
			}
		default:
			t.Error("Close returned before the exchange did")
		}
		c.Close()
		if res := c.Do(context.Background(), fetch.Request{URL: "http://192.0.2.1/"}); !errors.Is(res.Err, fetch.ErrClosed) {
			t.Errorf("afterwards: got %q (%v)", res.Reason, res.Err)
		}
	})
}
