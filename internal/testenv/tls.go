package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"deepcrawl/internal/scratch"
)

// Certificate writes a self-signed certificate of 127.0.0.1, which is its own authority and good for an hour, and its key, for a
// private server of a kind (postgres, mysql, redis). Servers of databases read their keys as a user of their own.
func Certificate(t testing.TB, kind string) (cert, key string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "tls") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := writeCertificate(cert, key); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 { // the server runs as who runs the test
		return cert, key
	}
	if kind == kindRedis {
		if err := os.Chmod(key, 0o644); err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	u, err := user.Lookup(kind) // the users have the names of the kinds
	if err != nil {
		Missing(t, kind, err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2, os.Chown(cert, uid, gid), os.Chown(key, uid, gid)); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func writeCertificate(cert, key string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return err
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return err
	}
	if err := os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), 0o600)
}

// FreePort is a port of 127.0.0.1 that nobody listens on now.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := scratch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
