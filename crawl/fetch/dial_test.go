package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"deepcrawl/crawl/fetch"
)

func TestDNSCache(t *testing.T) {
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	t.Run("one look-up serves all who ask meanwhile, and outlives the first to give up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int64
			c := newClient(t, func(cfg *fetch.Config) {
				cfg.Dial = refuse
				cfg.Resolver = resolverFunc(func(ctx context.Context, _ string) ([]netip.Addr, error) {
					asked.Add(1)
					time.Sleep(2 * time.Second)
					return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, ctx.Err()
				})
			})
			impatient, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() {
				if res := c.Do(impatient, fetch.Request{URL: "http://a.example/"}); res.Reason != fetch.ReasonTimeout || res.Total != time.Second {
					t.Errorf("impatient: got %q (%v) after %v", res.Reason, res.Err, res.Total)
				}
			})
			synctest.Wait()
			for range 20 {
				wg.Go(func() {
					if res := c.Do(context.Background(), fetch.Request{URL: "http://a.example/"}); res.Reason != fetch.ReasonRefused {
						t.Errorf("got %q (%v)", res.Reason, res.Err)
					}
				})
			}
			wg.Wait()
			if asked.Load() != 1 {
				t.Errorf("asked %d times, want 1", asked.Load())
			}
		})
	})
	t.Run("answers and failures are believed for their time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			asked := map[string]int{}
			c := newClient(t, func(cfg *fetch.Config) {
				cfg.Dial = refuse
				cfg.Resolver = resolverFunc(func(_ context.Context, host string) ([]netip.Addr, error) {
					asked[host]++
					switch host {
					case "no.example":
						return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
					case "empty.example":
						return nil, nil
					}
					return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
				})
			})
			for range 10 {
				for _, host := range []string{"yes.example", "no.example", "empty.example"} {
					want := fetch.ReasonDNS
					if host == "yes.example" {
						want = fetch.ReasonRefused
					}
					if res := do(t, c, fetch.Request{URL: "http://" + host + "/"}); res.Reason != want {
						t.Errorf("%s: got %q (%v), want %q", host, res.Reason, res.Err, want)
					}
				}
				time.Sleep(time.Second)
			}
			if asked["yes.example"] != 1 || asked["no.example"] != 2 || asked["empty.example"] != 2 {
				t.Errorf("asked over 10 s: got %v, want 1, 2 and 2 times", asked)
			}
		})
	})
	t.Run("it is bounded and forgets the longest unused", func(t *testing.T) {
		var asked sync.Map
		c := newClient(t, func(cfg *fetch.Config) {
			cfg.Dial, cfg.DNSEntries = refuse, 10
			cfg.Resolver = resolverFunc(func(_ context.Context, host string) ([]netip.Addr, error) {
				n, _ := asked.LoadOrStore(host, new(atomic.Int64))
				n.(*atomic.Int64).Add(1)
				return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
			})
		})
		for i := range 100 {
			do(t, c, fetch.Request{URL: "http://kept.example/"})
			do(t, c, fetch.Request{URL: fmt.Sprintf("http://h%d.example/", i)})
		}
		if n := fetch.DNSEntries(c); n != 10 {
			t.Errorf("entries: got %d, want 10", n)
		}
		if n, _ := asked.Load("kept.example"); n.(*atomic.Int64).Load() != 1 {
			t.Errorf("a host in use was looked up %d times", n.(*atomic.Int64).Load())
		}
	})
}

func TestSeveralAddresses(t *testing.T) {
	const v6, v6b, v4 = "2001:db8::1", "2001:db8::2", "192.0.2.1"
	type attempt struct {
		addr string
		at   time.Duration
	}
	cases := []struct {
		name  string
		works string // the address that connects, after 100 ms
		fail  bool   // the others fail at once rather than hang
		want  []attempt
		total time.Duration
		ok    bool
	}{
		{"families alternate, each 250 ms after the one before while those hang", v6b, false,
			[]attempt{{v6, 0}, {v4, 250 * time.Millisecond}, {v6b, 500 * time.Millisecond}}, 600 * time.Millisecond, true},
		{"the next is tried at once when one fails", v6b, true, []attempt{{v6, 0}, {v4, 0}, {v6b, 0}}, 100 * time.Millisecond, true},
		{"the first is enough when it is quick", v6, true, []attempt{{v6, 0}}, 100 * time.Millisecond, true},
		{"none works", "", true, []attempt{{v6, 0}, {v4, 0}, {v6b, 0}}, 0, false},
		{"all hang", "", false, []attempt{{v6, 0}, {v4, 250 * time.Millisecond}, {v6b, 500 * time.Millisecond}}, 10 * time.Second, false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				resolver, _ := answers([]string{v6, v6b, v4})
				answer := pipes(t, func(c net.Conn) {
					c.Read(make([]byte, 1000))
					io.WriteString(c, okReply)
					io.Copy(io.Discard, c)
				})
				start := time.Now()
				var mu sync.Mutex
				var got []attempt
				c := newClient(t, func(cfg *fetch.Config) {
					cfg.Resolver = resolver
					cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
						host, _, _ := net.SplitHostPort(addr)
						mu.Lock()
						got = append(got, attempt{host, time.Since(start)})
						mu.Unlock()
						switch {
						case host == tc.works:
							time.Sleep(100 * time.Millisecond)
							return answer(ctx, network, addr)
						case tc.fail:
							return nil, syscall.ECONNREFUSED
						}
						<-ctx.Done()
						return nil, ctx.Err()
					}
				})
				res := do(t, c, fetch.Request{URL: "http://many.example/"})
				if (res.Reason == "") != tc.ok || res.Total != tc.total {
					t.Errorf("got %q (%v) after %v, want ok %v after %v", res.Reason, res.Err, res.Total, tc.ok, tc.total)
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("attempts: got %v, want %v", got, tc.want)
				}
				c.Close()
			})
		})
	}
}

func TestBindAddr(t *testing.T) {
	var from atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { from.Store(r.RemoteAddr) }))
	defer s.Close()
	t.Run("connections come from it", func(t *testing.T) {
		c := newClient(t, func(cfg *fetch.Config) { cfg.BindAddr = "127.0.0.1" })
		if res := do(t, c, fetch.Request{URL: s.URL}); res.Reason != "" || !strings.HasPrefix(from.Load().(string), "127.0.0.1:") {
			t.Errorf("got %q (%v) from %v", res.Reason, res.Err, from.Load())
		}
	})
	t.Run("only addresses of its family are dialled", func(t *testing.T) {
		c := newClient(t, func(cfg *fetch.Config) { cfg.BindAddr = "::1" })
		if res := do(t, c, fetch.Request{URL: s.URL}); res.Reason != fetch.ReasonUnreachable {
			t.Errorf("got %q (%v)", res.Reason, res.Err)
		}
	})
	t.Run("an address this machine has not is unreachable", func(t *testing.T) {
		c := newClient(t, func(cfg *fetch.Config) { cfg.BindAddr = "203.0.113.7" })
		if res := do(t, c, fetch.Request{URL: s.URL}); res.Reason != fetch.ReasonUnreachable {
			t.Errorf("got %q (%v)", res.Reason, res.Err)
		}
	})
	t.Run("what is no address is refused", func(t *testing.T) {
		for _, bad := range []string{"eth0", "127.0.0.1:80", "example.com"} {
			if _, err := fetch.New(fetch.Config{BindAddr: bad}); err == nil || !strings.Contains(err.Error(), bad) {
				t.Errorf("%q: got %v", bad, err)
			}
		}
	})
}

func TestWrongConfig(t *testing.T) {
	for _, cfg := range []fetch.Config{{HardDeadline: -1}, {DNSTTL: -1}, {MaxBody: -1}, {MaxRatio: -1}, {IdlePerHost: -1}, {DNSEntries: -1}} {
		if c, err := fetch.New(cfg); err == nil || c != nil || !strings.Contains(err.Error(), "must not be negative") {
			t.Errorf("got %v", err)
		}
	}
}

var errNoNetwork = errors.New("no network")

func TestDialError(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want fetch.Reason
	}{
		{syscall.ECONNREFUSED, fetch.ReasonRefused},
		{syscall.EHOSTUNREACH, fetch.ReasonUnreachable},
		{syscall.ENETUNREACH, fetch.ReasonUnreachable},
		{syscall.ECONNRESET, fetch.ReasonReset},
		{syscall.ETIMEDOUT, fetch.ReasonTimeout},
		{errNoNetwork, fetch.ReasonUnreachable},
	} {
		c := newClient(t, func(cfg *fetch.Config) {
			cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: tc.err}
			}
		})
		res := do(t, c, fetch.Request{URL: "http://192.0.2.1/"})
		if res.Reason != tc.want || !errors.Is(res.Err, tc.err) || res.Wrote {
			t.Errorf("%v: got %q (%v), want %q", tc.err, res.Reason, res.Err, tc.want)
		}
	}
}
