package rediscoord

import (
	"context"
	"crypto/x509"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"deepcrawl/coord"
)

//go:embed lua/*.lua
var files embed.FS

// Options of Open and OpenSecond.
type Options struct {
	// Prefix of all keys, to share a server. Default "deepcrawl:".
	Prefix string
	// Connections bounds the connections. 0: 8.
	Connections int
	// RoundTrip, when set, is called for each wait for the server.
	RoundTrip func()
}

// ErrURL: the URL is not redis:// or rediss:// with what go-redis allows.
var ErrURL = errors.New("redis url not allowed")

// ErrIneligible: the server answers and may not be used; the text says why.
var ErrIneligible = errors.New("redis may not be used")

// client runs scripts on one server.
type client struct {
	rdb     *redis.Client
	prefix  string
	scripts map[string]*redis.Script
	trip    func()
}

// quiet turns off what the driver prints to standard error for each failed dial: callers get the error, and decide what is told.
// It is the driver's own setting, for the whole process.
var quiet = sync.OnceFunc(func() { redis.SetLogger(silent{}) })

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// newClient opens nothing yet: connections are made by the first call. ErrURL.
func newClient(raw string, o Options) (*client, error) {
	quiet()
	plain, roots, err := authorities(raw)
	if err != nil {
		return nil, err
	}
	opt, err := redis.ParseURL(plain)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrURL, strings.ReplaceAll(err.Error(), plain, "the url"))
	}
	if roots != nil {
		if opt.TLSConfig == nil {
			return nil, fmt.Errorf("%w: tls-ca is for rediss://", ErrURL)
		}
		opt.TLSConfig.RootCAs = roots
	}
	if opt.Network == "unix" {
		return nil, fmt.Errorf("%w: a socket's path, not redis:// or rediss://", ErrURL)
	}
	if _, port, err := net.SplitHostPort(opt.Addr); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	} else if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("%w: port %q, allowed are 1 to 65535", ErrURL, port)
	}
	opt.Protocol = 2
	opt.ContextTimeoutEnabled = true
	// A call that was sent is never sent again here: a second beat of one number would be fenced.
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.PoolSize = 8
	if o.Connections > 0 {
		opt.PoolSize = o.Connections
	}
	opt.DialTimeout = 3 * time.Second
	opt.DisableIdentity = true
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	c := &client{rdb: redis.NewClient(opt), prefix: o.Prefix, scripts: map[string]*redis.Script{}, trip: o.RoundTrip}
	if c.prefix == "" {
		c.prefix = "deepcrawl:"
	}
	lib, err := files.ReadFile("lua/lib.lua")
	if err != nil {
		return nil, err
	}
	entries, err := files.ReadDir("lua")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		body, err := files.ReadFile("lua/" + e.Name())
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(e.Name(), ".lua")
		c.scripts[name] = redis.NewScript(string(lib) + string(body))
	}
	return c, nil
}

// authorities takes tls-ca, the file of the authorities that sign the server's certificate, out of a URL. Without it they are the
// system's.
func authorities(raw string) (plain string, roots *x509.CertPool, err error) {
	u, err := url.Parse(raw)
	if err != nil || !u.Query().Has("tls-ca") {
		return raw, nil, nil // what cannot be parsed is refused by the driver, which says why
	}
	q := u.Query()
	name := q.Get("tls-ca")
	q.Del("tls-ca")
	u.RawQuery = q.Encode()
	pem, err := os.ReadFile(name)
	if err != nil {
		return "", nil, fmt.Errorf("%w: tls-ca: %w", ErrURL, err)
	}
	roots = x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return "", nil, fmt.Errorf("%w: tls-ca: no certificate in %s", ErrURL, name)
	}
	return u.String(), roots, nil
}

// Close closes the connections.
func (c *client) Close() error { return c.rdb.Close() }

// run executes a script and returns what follows 'ok'; its other answers are sentinels. With a sentinel the rest of the answer
// comes too.
func (c *client) run(ctx context.Context, name, space string, args ...any) (answer, error) {
	if c.trip != nil {
		c.trip()
	}
	if space == "" {
		space = root(c.prefix) // a key that an ACL user is allowed, for scripts that find the space themselves
	}
	v, err := c.scripts[name].Run(ctx, c.rdb, []string{root(c.prefix), space}, args...).Result()
	if err != nil {
		return answer{}, fmt.Errorf("redis %s: %w", name, translate(err))
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return answer{}, fmt.Errorf("redis %s answers %T: %w", name, v, coord.ErrUnknown)
	}
	a := answer{list: list[1:]}
	if word, _ := list[0].(string); word != "ok" {
		kind := refusals[word]
		if kind == nil {
			kind = coord.ErrUnknown
		}
		return a, fmt.Errorf("%s: %w", a.text(0), kind)
	}
	return a, nil
}

var refusals = map[string]error{
	"stale": coord.ErrStale, "noview": coord.ErrNoView, "fenced": coord.ErrFenced, "waiting": coord.ErrWaiting, "held": coord.ErrHeld,
	"lost": coord.ErrLost, "busy": coord.ErrNodeBusy, "unavailable": coord.ErrUnavailable,
}

// refused are the beginnings of errors that a server gives before a script has changed anything.
var refused = []string{
	"LOADING", "BUSY ", "NOAUTH", "WRONGPASS", "NOPERM", "READONLY", "MASTERDOWN", "MISCONF", "OOM", "NOREPLICAS", "CLUSTERDOWN", "MOVED",
	"CROSSSLOT", "ERR max number of clients", "ERR Client sent AUTH", "ERR AUTH", "ERR invalid password", "ERR DB index", "ERR unknown command",
	"DENIED",
}

// translate makes a sentinel of a driver's error: unavailable where the call certainly had no effect.
func translate(err error) error {
	kind := coord.ErrUnknown
	var op *net.OpError
	var dns *net.DNSError
	var re redis.Error
	switch {
	case errors.As(err, &op) && op.Op == "dial", errors.As(err, &dns), errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrClosed),
		errors.Is(err, redis.ErrPoolExhausted):
		kind = coord.ErrUnavailable
	case errors.As(err, &re):
		for _, word := range refused {
			if strings.HasPrefix(re.Error(), word) {
				kind = coord.ErrUnavailable
			}
		}
	}
	return &redisError{kind: kind, cause: err}
}

// redisError adds a sentinel to a driver's error.
type redisError struct{ kind, cause error }

func (e *redisError) Error() string {
	if errors.Is(e.cause, io.EOF) {
		return e.kind.Error() + ": the connection was closed"
	}
	return e.kind.Error() + ": " + e.cause.Error()
}
func (e *redisError) Unwrap() []error { return []error{e.kind, e.cause} }

// answer reads what a script returned. What is not there reads as nothing.
type answer struct{ list []any }

func (a answer) at(i int) any {
	if i < len(a.list) {
		return a.list[i]
	}
	return nil
}

func (a answer) text(i int) string {
	s, _ := a.at(i).(string)
	return s
}

func (a answer) int(i int) int64 {
	switch v := a.at(i).(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64) // what the scripts wrote with int()
		return n
	}
	return 0
}

func (a answer) sub(i int) answer {
	l, _ := a.at(i).([]any)
	return answer{l}
}

func (a answer) member(i int) coord.Member {
	node, inc, _ := strings.Cut(a.text(i), "/")
	n, _ := strconv.ParseUint(inc, 10, 64) // written by Member.String
	return coord.Member{Node: coord.NodeID(node), Incarnation: coord.Incarnation(n)}
}
