package sqldb

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// badDSN reports what is wrong with an address without repeating it, since it may hold a password.
func badDSN(format string, args ...any) error {
	return fmt.Errorf("%w: "+format+"; allowed are sqlite:PATH, postgres://user:pass@host:port/db and mysql://user:pass@host:port/db",
		append([]any{ErrDSN}, args...)...)
}

func parseDSN(dsn string) (address, error) {
	scheme, rest, ok := strings.Cut(dsn, ":")
	if !ok {
		return address{}, badDSN("it has no scheme")
	}
	switch strings.ToLower(scheme) {
	case "sqlite":
		if rest == "" || strings.HasPrefix(rest, ":memory:") {
			return address{}, badDSN("sqlite: needs the path of a file")
		}
		if p, cut := strings.CutPrefix(rest, "//"); cut {
			rest = p
		}
		path, err := filepath.Abs(rest)
		if err != nil {
			return address{}, badDSN("path of the file: %v", err)
		}
		return address{dialect: SQLite, path: path, shown: "sqlite:" + rest}, nil
	case "postgres", "postgresql", "pg":
		u, err := serverURL("postgres:" + rest)
		if err != nil {
			return address{}, err
		}
		return address{dialect: Postgres, dsn: u.String(), shown: shown(u)}, nil
	case "mysql", "mariadb":
		u, err := serverURL("mysql:" + rest)
		if err != nil {
			return address{}, err
		}
		return address{dialect: MySQL, dsn: u.String(), shown: shown(u)}, nil
	}
	return address{}, badDSN("unknown scheme %q", cutTo(scheme, 20))
}

func cutTo(s string, n int) string { return s[:min(len(s), n)] }

func serverURL(dsn string) (*url.URL, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) { // its Error repeats the address
			err = ue.Err
		}
		// Some causes quote the part that is wrong, which may be the password.
		text, _, _ := strings.Cut(err.Error(), "\"")
		return nil, badDSN("%s(a password with special characters must be percent-encoded)", text)
	}
	if !strings.HasPrefix(dsn, u.Scheme+"://") {
		return nil, badDSN("%s:// expected", u.Scheme)
	}
	if strings.Trim(u.Path, "/") == "" && u.Query().Get("dbname") == "" {
		return nil, badDSN("it names no database")
	}
	return u, nil
}

// shown is a server's address without password and parameters.
func shown(u *url.URL) string {
	s := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	if u.User != nil {
		s.User = url.User(u.User.Username())
	}
	return s.String()
}

// describe puts the address in front of an error of opening it.
func describe(a address, err error) error { return fmt.Errorf("open %s: %w", a.shown, err) }
