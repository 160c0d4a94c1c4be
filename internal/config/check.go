package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"deepcrawl/coord"
)

// minReclaim is the protocol's bound in seconds: (view + request) x 1.1 + pause + 2 s.
func minReclaim() int { return int((coord.DefaultTiming().MinDeath() + time.Second - 1) / time.Second) }

func allowedReclaim() string {
	return fmt.Sprintf("a number of seconds from %d to 86400", minReclaim())
}

func oneOf(words ...string) func(string) error {
	return func(v string) error {
		if !slices.Contains(words, v) {
			return errors.New("unknown word")
		}
		return nil
	}
}

func number(least, most int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		switch {
		case err != nil:
			return errors.New("not a number")
		case n < least:
			return fmt.Errorf("below %d", least)
		case n > most:
			return fmt.Errorf("above %d", most)
		}
		return nil
	}
}

func checkDB(v string) error {
	scheme, rest, ok := strings.Cut(v, ":")
	if !ok {
		if strings.ContainsFunc(v, unicode.IsControl) {
			return errors.New("no scheme")
		}
		return fmt.Errorf("no scheme; perhaps sqlite:%s", v)
	}
	switch scheme {
	case "sqlite":
		if strings.Trim(rest, "/") == "" {
			return errors.New("a path must follow the scheme")
		}
		return nil
	case "postgres", "postgresql", "pg", "mysql", "mariadb":
	default:
		return fmt.Errorf("unknown scheme %q", scheme)
	}
	u, err := parseURL(v)
	if err != nil {
		return err
	}
	if scheme == "mysql" || scheme == "mariadb" {
		if u.Host == "" && u.Query().Get("socket") == "" {
			return errors.New("no host, and no socket=PATH")
		}
		if strings.Trim(u.Path, "/") == "" {
			return errors.New("no database name after the host")
		}
	}
	return nil
}

// parseURL is url.Parse with an error that does not repeat the URL, which may hold a password.
func parseURL(v string) (*url.URL, error) {
	u, err := url.Parse(v)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) && !strings.Contains(ue.Err.Error(), "port") && !strings.Contains(ue.Err.Error(), "userinfo") {
			return nil, ue.Err
		}
		return nil, errors.New("not a URL (a password's special characters must be percent-encoded)")
	}
	return u, nil
}

func checkNodeID(v string) error {
	if len(v) > 16 {
		return fmt.Errorf("%d characters", len(v))
	}
	for _, r := range v {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-') {
			return fmt.Errorf("%q is not allowed", r)
		}
	}
	return nil
}

func checkRedisURL(v string) error {
	u, err := parseURL(v)
	if err != nil {
		return err
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" {
		return fmt.Errorf("unknown scheme %q", u.Scheme)
	}
	if u.Host == "" {
		return errors.New("no host")
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if _, err := strconv.ParseUint(db, 10, 16); err != nil {
			return errors.New("the path must be the database's number")
		}
	}
	return nil
}

func checkRedisPrefix(v string) error {
	if len(v) > 64 {
		return fmt.Errorf("%d characters", len(v))
	}
	for _, r := range v {
		if r <= ' ' || r > '~' || r == '{' || r == '}' {
			return fmt.Errorf("%q is not allowed", r)
		}
	}
	return nil
}

// checkUserAgent demands a product token of RFC 9309 section 2.2.1.
func checkUserAgent(v string) error {
	if len(v) > 256 {
		return errors.New("longer than 256 characters")
	}
	for _, r := range v {
		if r < ' ' || r > '~' {
			return fmt.Errorf("%q is not allowed", r)
		}
	}
	product, version, ok := strings.Cut(v, "/")
	if !ok || version == "" || version[0] == ' ' {
		return errors.New("no /VERSION after the product name")
	}
	if product == "" {
		return errors.New("no product name before /")
	}
	for _, r := range product {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_') {
			return fmt.Errorf("%q is not allowed in the product name", r)
		}
	}
	if strings.EqualFold(product, "deepcrawl") {
		return fmt.Errorf("the name %s is another company's crawler", product)
	}
	return nil
}

func checkContact(v string) error {
	for _, r := range v {
		if r <= ' ' || r > '~' || r == '(' || r == ')' {
			return fmt.Errorf("%q is not allowed", r)
		}
	}
	if strings.HasPrefix(v, "http://") || strings.HasPrefix(v, "https://") {
		u, err := url.Parse(v)
		if err != nil || u.Host == "" {
			return errors.New("not a URL")
		}
		return nil
	}
	if name, host, ok := strings.Cut(v, "@"); !ok || name == "" || host == "" || strings.Contains(host, "@") {
		return errors.New("neither a URL nor a mail address")
	}
	return nil
}

func parseBool(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "true", "1", "yes", "on":
		return true, nil
	case "false", "0", "no", "off":
		return false, nil
	}
	return false, errors.New("unknown word")
}

func checkBool(v string) error {
	_, err := parseBool(v)
	return err
}

func checkIP(v string) error {
	if _, err := netip.ParseAddr(v); err != nil {
		return errors.New("not an IP address")
	}
	return nil
}

func parseSize(v string) (int64, error) {
	digits := strings.TrimRight(strings.ToUpper(v), "KMGB")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return 0, errors.New("not a size")
	}
	switch strings.ToUpper(v)[len(digits):] {
	case "":
	case "KB", "K":
		n <<= 10
	case "MB", "M":
		n <<= 20
	case "GB", "G":
		n <<= 30
	default:
		return 0, errors.New("unknown unit")
	}
	if n < 1<<20 || n > 64<<30 {
		return 0, errors.New("out of range")
	}
	return n, nil
}

func checkSize(v string) error {
	_, err := parseSize(v)
	return err
}

func checkListen(v string) error {
	_, port, err := net.SplitHostPort(v)
	if err != nil {
		return errors.New("no port")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return errors.New("not a port number")
	}
	return nil
}

// parseRetention returns 0 for off.
func parseRetention(v string) (time.Duration, error) {
	if v == "off" {
		return 0, nil
	}
	unit := time.Hour
	digits, days := strings.CutSuffix(v, "d")
	if days {
		unit = 24 * time.Hour
	} else if digits, days = strings.CutSuffix(v, "h"); !days {
		return 0, errors.New("no unit")
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || n > 100_000 {
		return 0, errors.New("not a number of days or hours")
	}
	return time.Duration(n) * unit, nil
}

func checkRetention(v string) error {
	_, err := parseRetention(v)
	return err
}
