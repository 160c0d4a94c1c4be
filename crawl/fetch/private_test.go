package fetch_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deepcrawl/crawl/fetch"
)

func TestAddresses(t *testing.T) {
	refused := map[string][]string{
		"unspecified":                    {"0.0.0.0", "::", "0.1.2.3"},
		"loopback":                       {"127.0.0.1", "127.255.255.254", "::1"},
		"private":                        {"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fdff::1"},
		"carrier-grade NAT":              {"100.64.0.1", "100.127.255.255"},
		"link-local":                     {"169.254.0.1", "fe80::1", "fe80::1%eth0", "febf::1"},
		"site-local":                     {"fec0::1"},
		"metadata":                       {"169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254"},
		"multicast":                      {"224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"},
		"broadcast and reserved":         {"255.255.255.255", "240.0.0.1"},
		"documentation":                  {"192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"},
		"benchmarks":                     {"198.18.0.1", "198.19.255.255", "2001:2::1"},
		"protocol assignments":           {"192.0.0.1", "192.88.99.1", "2001::1", "2001:10::1", "2001:20::1"},
		"IPv4-mapped":                    {"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"},
		"IPv4-compatible":                {"::127.0.0.1", "::8.8.8.8"},
		"NAT64 around anything":          {"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::a00:1"},
		"6to4 around anything":           {"2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1"},
		"Teredo":                         {"2001:0:4136:e378:8000:63bf:3fff:fdd2"},
		"discard, segment routing, rest": {"100::1", "100:0:0:1::1", "5f00::1", "4000::1", "1::1"},
	}
	public := []string{"8.8.8.8", "1.1.1.1", "93.184.216.34", "172.32.0.1", "172.15.255.255", "100.63.255.255", "100.128.0.1", "169.253.1.1", "192.0.1.1",
		"198.17.255.255", "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1", "2620:0:2d0:200::7", "::ffff:8.8.8.8"}
	c := newClient(t, func(cfg *fetch.Config) {
		cfg.AllowPrivate = false
		cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialled") }
	})
	open := newClient(t, nil)
	for kind, list := range refused {
		t.Run(kind+" is refused", func(t *testing.T) {
			for _, a := range list {
				addr := netip.AddrPortFrom(netip.MustParseAddr(a), 80).String()
				if err := fetch.ControlAddress(c, addr); !errors.Is(err, fetch.ErrPrivate) {
					t.Errorf("socket to %s: got %v", addr, err)
				}
				if err := fetch.ControlAddress(open, addr); err != nil {
					t.Errorf("socket to %s where allowed: got %v", addr, err)
				}
				if strings.Contains(a, "%") {
					continue
				}
				if res := do(t, c, fetch.Request{URL: "http://" + addr + "/"}); res.Reason != fetch.ReasonPrivate || !errors.Is(res.Err, fetch.ErrPrivate) || res.Wrote {
					t.Errorf("http://%s: got %q (%v)", addr, res.Reason, res.Err)
				}
			}
		})
	}
	t.Run("public addresses are dialled", func(t *testing.T) {
		for _, a := range public {
			addr := netip.AddrPortFrom(netip.MustParseAddr(a), 80).String()
			if err := fetch.ControlAddress(c, addr); err != nil {
				t.Errorf("socket to %s: got %v", addr, err)
			}
			if res := do(t, c, fetch.Request{URL: "http://" + addr + "/"}); res.Err == nil || !strings.Contains(res.Err.Error(), "dialled") {
				t.Errorf("http://%s: got %q (%v)", addr, res.Reason, res.Err)
			}
		}
	})
	t.Run("an address that is none is refused", func(t *testing.T) {
		for _, a := range []string{"", "localhost:80", "8.8.8.8", "[::1]"} {
			if err := fetch.ControlAddress(c, a); !errors.Is(err, fetch.ErrPrivate) {
				t.Errorf("%q: got %v", a, err)
			}
		}
	})
}

// answers is a Resolver giving one list after another, the last for ever.
func answers(lists ...[]string) (fetch.Resolver, *atomic.Int64) {
	var n atomic.Int64
	return resolverFunc(func(context.Context, string) ([]netip.Addr, error) {
		i := int(n.Add(1)) - 1
		var out []netip.Addr
		for _, s := range lists[min(i, len(lists)-1)] {
			out = append(out, netip.MustParseAddr(s))
		}
		return out, nil
	}), &n
}

func TestRebinding(t *testing.T) {
	// A listener where rebinding would lead: nothing may ever reach it.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var reached atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	url := "http://rebind.example:" + port + "/"

	t.Run("a name that turns private is refused at the next dial", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			resolver, asked := answers([]string{"93.184.216.34"}, []string{"127.0.0.1"})
			var dialled []string
			c := newClient(t, func(cfg *fetch.Config) {
				cfg.AllowPrivate, cfg.Resolver, cfg.DNSTTL = false, resolver, time.Minute
				cfg.Dial = func(_ context.Context, _, addr string) (net.Conn, error) {
					dialled = append(dialled, addr)
					return nil, errors.New("not today")
				}
			})
			do(t, c, fetch.Request{URL: url})
			time.Sleep(time.Minute)
			res := do(t, c, fetch.Request{URL: url})
			if res.Reason != fetch.ReasonPrivate || asked.Load() != 2 || len(dialled) != 1 || dialled[0] != "93.184.216.34:"+port {
				t.Errorf("got %q (%v), asked %d times, dialled %v", res.Reason, res.Err, asked.Load(), dialled)
			}
		})
	})
	t.Run("the real dialler refuses a private answer", func(t *testing.T) {
		resolver, _ := answers([]string{"127.0.0.1", "::1", "::ffff:127.0.0.1"})
		c := newClient(t, func(cfg *fetch.Config) { cfg.AllowPrivate, cfg.Resolver = false, resolver })
		if res := do(t, c, fetch.Request{URL: url}); res.Reason != fetch.ReasonPrivate {
			t.Errorf("got %q (%v)", res.Reason, res.Err)
		}
	})
	t.Run("of a mixed answer only the public part is dialled", func(t *testing.T) {
		resolver, _ := answers([]string{"127.0.0.1", "93.184.216.34", "10.0.0.1"})
		var dialled []string
		c := newClient(t, func(cfg *fetch.Config) {
			cfg.AllowPrivate, cfg.Resolver = false, resolver
			cfg.Dial = func(_ context.Context, _, addr string) (net.Conn, error) {
				dialled = append(dialled, addr)
				return nil, errors.New("not today")
			}
		})
		do(t, c, fetch.Request{URL: url})
		if len(dialled) != 1 || dialled[0] != "93.184.216.34:"+port {
			t.Errorf("dialled %v", dialled)
		}
	})
	l.Close()
	<-done
	if n := reached.Load(); n != 0 {
		t.Errorf("the private listener was reached %d times", n)
	}
}
