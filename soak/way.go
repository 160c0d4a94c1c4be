package soak

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"deepcrawl/soak/chaos"
)

// way is how a server is reached: its address, and its DSN with another in its place.
type way struct {
	network, addr string
	via           func(addr string) string
}

// wayTo takes a DSN or a URL of Redis apart. The error says why a proxy cannot stand on the way.
func wayTo(dsn string) (way, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return way{}, fmt.Errorf("it cannot be parsed")
	}
	w := way{network: "tcp"}
	q := u.Query()
	port := map[string]string{"postgres": "5432", "postgresql": "5432", "pg": "5432", "mysql": "3306", "mariadb": "3306", "redis": "6379"}[u.Scheme]
	socket := ""
	switch {
	case port == "":
		return way{}, fmt.Errorf("a proxy cannot stand before %s", u.Scheme)
	case port == "5432":
		if mode := q.Get("sslmode"); strings.HasPrefix(mode, "verify") {
			return way{}, fmt.Errorf("a proxy cannot stand on a way with sslmode=%s", mode)
		}
		if dir := q.Get("host"); strings.HasPrefix(dir, "/") {
			socket = filepath.Join(dir, ".s.PGSQL."+port)
		}
		q.Del("host")
	case port == "3306":
		if mode := q.Get("tls"); mode != "" && mode != "false" && mode != "skip-verify" && mode != "preferred" {
			return way{}, fmt.Errorf("a proxy cannot stand on a way with tls=%s", mode)
		}
		socket = q.Get("socket")
		q.Del("socket")
	}
	host := u.Hostname()
	if host == "" {
		host = "127.0.0.1"
	}
	if u.Port() != "" {
		port = u.Port()
	}
	w.addr = net.JoinHostPort(host, port)
	if socket != "" {
		w.network, w.addr = "unix", socket
	}
	u.RawQuery = q.Encode()
	w.via = func(addr string) string {
		other := *u
		other.Host = addr
		return other.String()
	}
	return w, nil
}

// ways are one node's: through proxies where faults may lie on them, else straight.
type ways struct {
	dsn, redis  string
	db, redisTo *chaos.Proxy // nil: straight
}

// waysOf makes a node's ways.
func (t *trial) waysOf() (w ways, err error) {
	w = ways{dsn: t.ground.dsn, redis: t.ground.redis}
	if t.may(chaos.DBPartition) {
		if w.dsn, w.db, err = t.proxied(t.ground.dsn); err != nil {
			return w, err
		}
	}
	if t.may(chaos.RedisPartition) || t.may(chaos.RedisPromote) {
		w.redis, w.redisTo, err = t.proxied(t.ground.redis)
	}
	return w, err
}

func (t *trial) proxied(dsn string) (string, *chaos.Proxy, error) {
	to, err := wayTo(dsn)
	if err != nil {
		return "", nil, err
	}
	p, err := chaos.NewProxy(to.network, to.addr)
	if err != nil {
		return "", nil, err
	}
	t.ground.onClose(p.Close)
	return to.via(p.Addr()), p, nil
}
