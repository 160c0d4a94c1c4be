package sqldb_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
)

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
		cert, key := testenv.Certificate(t, "postgres")
		other, _ := testenv.Certificate(t, "postgres")
		s := testenv.PrivatePostgres(t, "ssl=on", "ssl_cert_file="+cert, "ssl_key_file="+key)
		test(t, s.DSN(), "sslmode=verify-full&sslrootcert="+cert, "sslmode=require", "sslmode=verify-full&sslrootcert="+other, "sslmode=verify-full&sslrootcert=/none.pem")
	})
	t.Run("mysql", func(t *testing.T) {
		cert, key := testenv.Certificate(t, "mysql")
		other, _ := testenv.Certificate(t, "mysql")
		s := testenv.PrivateMariaDB(t, "ssl-cert="+cert, "ssl-key="+key)
		test(t, s.DSN(), "tls=true&tls-ca="+cert, "tls=skip-verify", fmt.Sprint("tls=true&tls-ca=", other), "tls=true&tls-ca=/none.pem")
	})
}
