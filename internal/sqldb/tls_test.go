package sqldb_test

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
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
)

// certificate writes a self-signed certificate of 127.0.0.1, which is its own authority, and its key.
func certificate(t *testing.T, owner string) (cert, key string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "tls")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
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
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // servers give root up and read the files as another
		u, err := user.Lookup(owner)
		if err != nil {
			t.Skipf("there is no user %s to run the server as: %v", owner, err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		for _, name := range []string{cert, key} {
			if err := os.Chown(name, uid, gid); err != nil {
				t.Fatal(err)
			}
		}
	}
	return cert, key
}

// with returns a DSN with other parameters.
func with(t *testing.T, dsn, params string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.RawQuery = params
	return u.String()
}

func TestTLS(t *testing.T) {
	encrypted := map[sqldb.Dialect]string{
		sqldb.Postgres: "SELECT CASE WHEN ssl THEN 'yes' ELSE '' END FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
		sqldb.MySQL:    "SELECT VARIABLE_VALUE FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Ssl_cipher'",
	}
	test := func(t *testing.T, dsn, good, unchecked, wrong, none string) {
		for name, params := range map[string]string{"checked": good, "unchecked": unchecked} {
			t.Run(name, func(t *testing.T) {
				db, err := sqldb.Open(t.Context(), with(t, dsn, params), sqldb.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				var answer string
				err = db.View(t.Context(), func(tx *sqldb.Tx) error {
					tx.Query(db.Dialect().Statement(encrypted[db.Dialect()]), func(r *sqldb.Row) error { answer = r.Text(0); return nil })
					return nil
				})
				if err != nil || answer == "" {
					t.Errorf("the connection is not encrypted (%v)", err)
				}
			})
		}
		t.Run("an authority that did not sign it", func(t *testing.T) {
			db, err := sqldb.Open(t.Context(), with(t, dsn, wrong), sqldb.Options{})
			if err == nil {
				db.Close()
			}
			if !errors.Is(err, sqldb.ErrUnavailable) || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line about the certificate", err)
			}
		})
		t.Run("an authority's file that is missing", func(t *testing.T) {
			if _, err := sqldb.Open(t.Context(), with(t, dsn, none), sqldb.Options{}); !errors.Is(err, sqldb.ErrDSN) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("postgres", func(t *testing.T) {
		cert, key := certificate(t, "postgres")
		other, _ := certificate(t, "postgres")
		s := testenv.PrivatePostgres(t, "ssl=on", "ssl_cert_file="+cert, "ssl_key_file="+key)
		test(t, s.DSN(), "sslmode=verify-full&sslrootcert="+cert, "sslmode=require", "sslmode=verify-full&sslrootcert="+other, "sslmode=verify-full&sslrootcert=/none.pem")
	})
	t.Run("mysql", func(t *testing.T) {
		cert, key := certificate(t, "mysql")
		other, _ := certificate(t, "mysql")
		s := testenv.PrivateMariaDB(t, "ssl-cert="+cert, "ssl-key="+key)
		test(t, s.DSN(), "tls=true&tls-ca="+cert, "tls=skip-verify", fmt.Sprint("tls=true&tls-ca=", other), "tls=true&tls-ca=/none.pem")
	})
}
