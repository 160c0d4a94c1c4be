package fetch_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"deepcrawl/crawl/fetch"
)

// certificate makes a self-signed certificate for names and the pool that
// trusts it.
func certificate(t testing.TB, notAfter time.Time, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: names,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: notAfter,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	loopback := resolverFunc(func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	})
	tomorrow := time.Now().Add(24 * time.Hour)
	good, goodPool := certificate(t, tomorrow, "good.example")
	old, oldPool := certificate(t, time.Now().Add(-24*time.Hour), "good.example")
	other, otherPool := certificate(t, tomorrow, "other.example")
	cases := []struct {
		name   string
		cert   tls.Certificate
		roots  *x509.CertPool
		host   string
		serve  func(c *net.TCPConn) // instead of TLS
		conf   *tls.Config
		reason fetch.Reason
		is     any // errors.As target
	}{
		{name: "a good certificate is taken", cert: good, roots: goodPool, host: "good.example"},
		{name: "a final dot in the name does not matter", cert: good, roots: goodPool, host: "good.example."},
		{name: "an unknown authority is refused", cert: good, roots: otherPool, host: "good.example", reason: fetch.ReasonTLS, is: new(x509.UnknownAuthorityError)},
		{name: "another's certificate is refused", cert: other, roots: otherPool, host: "good.example", reason: fetch.ReasonTLS, is: new(x509.HostnameError)},
		{name: "an expired certificate is refused", cert: old, roots: oldPool, host: "good.example", reason: fetch.ReasonTLS, is: new(x509.CertificateInvalidError)},
		{name: "TLS 1.1 only is refused", cert: good, roots: goodPool, host: "good.example", conf: &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, reason: fetch.ReasonTLS},
		{name: "plain HTTP on the TLS port is refused", roots: goodPool, host: "good.example", reason: fetch.ReasonTLS, is: new(tls.RecordHeaderError),
			serve: func(c *net.TCPConn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); io.Copy(io.Discard, c) }},
		{name: "a reset in the handshake is a reset", roots: goodPool, host: "good.example", reason: fetch.ReasonReset,
			serve: func(c *net.TCPConn) { c.Read(make([]byte, 1)); reset(c) }},
		{name: "an end in the handshake is a handshake failed", roots: goodPool, host: "good.example", reason: fetch.ReasonTLS,
			serve: func(c *net.TCPConn) { c.Read(make([]byte, 4096)) }},
		{name: "an alert after the handshake is TLS", cert: good, roots: goodPool, host: "good.example", reason: fetch.ReasonTLS,
			conf: &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := newRawServer(t, func(_ int, c *net.TCPConn) {
				if tc.serve != nil {
					tc.serve(c)
					return
				}
				conf := &tls.Config{}
				if tc.conf != nil {
					conf = tc.conf.Clone()
				}
				conf.Certificates = []tls.Certificate{tc.cert}
				tc := tls.Server(c, conf)
				br := bufio.NewReader(tc)
				if _, err := http.ReadRequest(br); err == nil {
					io.WriteString(tc, okReply)
				}
				io.Copy(io.Discard, br)
			})
			c := newClient(t, func(cfg *fetch.Config) {
				cfg.Resolver, cfg.TLS = loopback, &tls.Config{RootCAs: tc.roots}
			})
			_, port, _ := net.SplitHostPort(s.addr)
			res := do(t, c, fetch.Request{URL: "https://" + tc.host + ":" + port + "/"})
			if res.Reason != tc.reason {
				t.Errorf("got %q (%v), want %q", res.Reason, res.Err, tc.reason)
			}
			if tc.is != nil && !errors.As(res.Err, tc.is) {
				t.Errorf("error %v is no %T", res.Err, tc.is)
			}
			if tc.reason == "" && string(res.Body) != "hi" {
				t.Errorf("body: got %q", res.Body)
			}
		})
	}
}

func TestReasons(t *testing.T) {
	t.Run("a refused port", func(t *testing.T) {
		if res := do(t, newClient(t, nil), fetch.Request{URL: closedPort(t)}); res.Reason != fetch.ReasonRefused || res.Wrote {
			t.Errorf("got %q (%v), wrote %v", res.Reason, res.Err, res.Wrote)
		}
	})
	t.Run("a name that cannot exist", func(t *testing.T) {
		c := newClient(t, func(cfg *fetch.Config) {
			cfg.Resolver = resolverFunc(func(_ context.Context, host string) ([]netip.Addr, error) {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			})
		})
		res := do(t, c, fetch.Request{URL: "http://nowhere.invalid/"})
		var dns *net.DNSError
		if res.Reason != fetch.ReasonDNS || !errors.As(res.Err, &dns) || !dns.IsNotFound || res.Wrote {
			t.Errorf("got %q (%v)", res.Reason, res.Err)
		}
	})
	t.Run("a reset before the response", func(t *testing.T) {
		s := newRawServer(t, func(_ int, c *net.TCPConn) { c.Read(make([]byte, 1)); reset(c) })
		if res := do(t, newClient(t, nil), fetch.Request{URL: s.url}); res.Reason != fetch.ReasonReset || !res.Wrote {
			t.Errorf("got %q (%v), wrote %v", res.Reason, res.Err, res.Wrote)
		}
	})
	t.Run("a reset in the body keeps what came", func(t *testing.T) {
		got := make(chan struct{})
		s := newRawServer(t, func(_ int, c *net.TCPConn) {
			http.ReadRequest(bufio.NewReader(c))
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			<-got
			reset(c)
		})
		c := newClient(t, nil)
		res := do(t, c, fetch.Request{URL: s.url, BodyFor: func(int, string) bool { close(got); return true }})
		if res.Reason != fetch.ReasonReset || !res.Truncated || res.Status != 200 || string(res.Body) != "half" && len(res.Body) != 0 {
			t.Errorf("got %q (%v), truncated %v, body %q", res.Reason, res.Err, res.Truncated, res.Body)
		}
	})
	t.Run("URLs that are none", func(t *testing.T) {
		for _, u := range []string{"", "x", "/path", "//host/", "ftp://h/", "javascript:alert(1)", "http://", "http:///p", "http://?q", "http://:80/", "http://h:0/", "http://h:65536/",
			"http://h:x/", "http://[::1/", "http://[::1]x/", "http://[127.0.0.1]/", "http://[fe80::1%25eth0]/", "http://a b/", "http://a%20b/", "http://a<b/", "http://a\r\nX: y/", "http://..", "http://a..b/", "http://u:p@/"} {
			if res := do(t, newClient(t, nil), fetch.Request{URL: u}); res.Reason != fetch.ReasonBadURL || !errors.Is(res.Err, fetch.ErrBadURL) || res.Wrote {
				t.Errorf("%q: got %q (%v)", u, res.Reason, res.Err)
			}
		}
	})
}
