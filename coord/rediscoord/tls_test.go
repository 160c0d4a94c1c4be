package rediscoord_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"deepcrawl/coord"
	"deepcrawl/coord/rediscoord"
	"deepcrawl/internal/testenv"
)

// certificate writes a self-signed certificate of 127.0.0.1, which is its own authority, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "redis-tls") // t.TempDir is closed to the server, which may run as another user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// freePort is one nobody listens on now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	other, _ := certificate(t)
	port := freePort(t)
	server := testenv.PrivateRedis(t, fmt.Sprintf("tls-port=%d", port), "tls-cert-file="+cert, "tls-key-file="+key, "tls-ca-cert-file="+cert,
		"tls-auth-clients=no")
	opt, err := redis.ParseURL(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(opt)
	defer admin.Close()
	if err := admin.ConfigSet(t.Context(), "requirepass", "s:cret@").Err(); err != nil {
		t.Fatal(err)
	}
	at := func(scheme, query string) string {
		return fmt.Sprintf("%s://:s%%3Acret%%40@127.0.0.1:%d/0%s", scheme, port, query)
	}
	t.Run("a server whose authority is named is used", func(t *testing.T) {
		s := second(t, at("rediss", "?tls-ca="+cert), rediscoord.Options{})
		p, err := s.Probe(t.Context())
		if err != nil || !p.Eligible {
			t.Fatalf("got %+v, %v", p, err)
		}
		v, err := s.Seed(t.Context(), 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Grant(t.Context(), coord.Ask{
			Member: coord.Member{Node: "a", Incarnation: 1}, Groups: [][]coord.AskKey{{{Key: "host:x", Cap: 1, Token: 1}}},
			View: coord.View{Epoch: 3, Mode: coord.ModeRedis, Redis: v.Ident, RedisUntil: p.Now + 3600e6},
		})
		if err != nil || len(g.Groups[0].N) != 1 {
			t.Errorf("got %+v, %v", g, err)
		}
	})
	for name, url := range map[string]string{
		"an authority nobody named is not trusted": at("rediss", ""),
		"another authority is not trusted":         at("rediss", "?tls-ca="+other),
		"plain text to a TLS port":                 at("redis", ""),
		"a wrong password":                         fmt.Sprintf("rediss://:wrong@127.0.0.1:%d/0?tls-ca=%s", port, cert),
		"TLS to a plain port":                      fmt.Sprintf("rediss://127.0.0.1:%d/0?tls-ca=%s", server.Port(), cert),
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := second(t, url, rediscoord.Options{}).Probe(t.Context()); err == nil || p.Eligible {
				t.Errorf("got %+v, %v", p, err)
			} else {
				t.Log(err)
			}
		})
	}
	for name, url := range map[string]string{
		"an authority that is not there": at("rediss", "?tls-ca=/none.pem"),
		"a file without certificates":    at("rediss", "?tls-ca="+key),
		"an authority without TLS":       at("redis", "?tls-ca="+cert),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := rediscoord.OpenSecond(url, rediscoord.Options{}); !errors.Is(err, rediscoord.ErrURL) {
				t.Errorf("got %v", err)
			}
		})
	}
}
