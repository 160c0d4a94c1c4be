package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Defaults of Config.
const (
	DefaultHardDeadline     = 60 * time.Second
	DefaultDNSTimeout       = 10 * time.Second
	DefaultConnectTimeout   = 10 * time.Second
	DefaultTLSTimeout       = 10 * time.Second
	DefaultFirstByteTimeout = 30 * time.Second
	DefaultBodyGap          = 20 * time.Second
	DefaultMaxBody          = 5 << 20
	DefaultMaxHeader        = 1 << 20
	DefaultMaxRatio         = 250
	DefaultIdlePerHost      = 48
	DefaultMaxIdle          = 1024
	DefaultIdleConnTimeout  = 30 * time.Second
	DefaultDNSTTL           = 5 * time.Minute
	DefaultDNSNegativeTTL   = 5 * time.Second
	DefaultDNSEntries       = 10_000
	DefaultDrainLimit       = 32 << 10
	DefaultAccept           = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
)

// Resolver looks up the addresses of a host. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config sets a Client up. The zero value of a field means its default.
type Config struct {
	UserAgent    string // sent as it is; empty sends none
	Accept       string // default Accept header of a request that names none
	AllowPrivate bool   // allow loopback, private, link-local and other non-public addresses
	BindAddr     string // source IP address of connections; its family limits the addresses dialled

	MaxBody   int64   // bytes of body kept, as transferred and as decoded
	MaxHeader int64   // bytes of a response head
	MaxRatio  float64 // decoded over transferred bytes, checked once a body decodes beyond 1 MiB
	// DrainLimit is the largest body, in bytes, read and thrown away to keep an
	// HTTP/1 connection when Request.BodyFor refuses the body.
	DrainLimit int64

	// HardDeadline (M) bounds a whole exchange, which is aborted 1 s before it
	// (a fifth of M before it where M is under 5 s).
	HardDeadline     time.Duration
	DNSTimeout       time.Duration
	ConnectTimeout   time.Duration // TCP connect, all addresses together
	TLSTimeout       time.Duration
	FirstByteTimeout time.Duration // from the written request to the whole response head
	BodyGap          time.Duration // between two reads of the body

	IdlePerHost     int           // kept connections a host: twice the requests in flight to it
	MaxIdle         int           // kept connections in all
	IdleConnTimeout time.Duration // a kept connection older than this is closed
	DisableHTTP2    bool

	DNSTTL         time.Duration // how long addresses are believed
	DNSNegativeTTL time.Duration // how long a failed look-up is believed
	DNSEntries     int           // hosts remembered

	// TLS is cloned and completed with server name and ALPN; nil means the
	// system's roots. Certificates are always verified unless it says otherwise.
	TLS *tls.Config
	// Resolver is net.DefaultResolver when nil.
	Resolver Resolver
	// Dial replaces the TCP dialler, for tests. addr is always a literal address
	// and port, already checked against AllowPrivate.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Now is the wall clock used for Retry-After dates and Result.Started.
	Now func() time.Time
}

func (c *Config) setDefaults() error {
	def := func(d *time.Duration, v time.Duration, name string) error {
		if *d < 0 {
			return fmt.Errorf("fetch: %s is %v, must not be negative", name, *d)
		}
		if *d == 0 {
			*d = v
		}
		return nil
	}
	num := func(n *int64, v int64, name string) error {
		if *n < 0 {
			return fmt.Errorf("fetch: %s is %d, must not be negative", name, *n)
		}
		if *n == 0 {
			*n = v
		}
		return nil
	}
	perHost, maxIdle, entries := int64(c.IdlePerHost), int64(c.MaxIdle), int64(c.DNSEntries)
	err := errors.Join(
		def(&c.HardDeadline, DefaultHardDeadline, "HardDeadline"),
		def(&c.DNSTimeout, DefaultDNSTimeout, "DNSTimeout"),
		def(&c.ConnectTimeout, DefaultConnectTimeout, "ConnectTimeout"),
		def(&c.TLSTimeout, DefaultTLSTimeout, "TLSTimeout"),
		def(&c.FirstByteTimeout, DefaultFirstByteTimeout, "FirstByteTimeout"),
		def(&c.BodyGap, DefaultBodyGap, "BodyGap"),
		def(&c.IdleConnTimeout, DefaultIdleConnTimeout, "IdleConnTimeout"),
		def(&c.DNSTTL, DefaultDNSTTL, "DNSTTL"),
		def(&c.DNSNegativeTTL, DefaultDNSNegativeTTL, "DNSNegativeTTL"),
		num(&c.MaxBody, DefaultMaxBody, "MaxBody"),
		num(&c.MaxHeader, DefaultMaxHeader, "MaxHeader"),
		num(&c.DrainLimit, DefaultDrainLimit, "DrainLimit"),
		num(&perHost, DefaultIdlePerHost, "IdlePerHost"),
		num(&maxIdle, DefaultMaxIdle, "MaxIdle"),
		num(&entries, DefaultDNSEntries, "DNSEntries"),
	)
	if err != nil {
		return err
	}
	c.IdlePerHost, c.MaxIdle, c.DNSEntries = int(perHost), int(maxIdle), int(entries)
	if c.MaxRatio < 0 {
		return fmt.Errorf("fetch: MaxRatio is %v, must not be negative", c.MaxRatio)
	}
	if c.MaxRatio == 0 {
		c.MaxRatio = DefaultMaxRatio
	}
	if c.Accept == "" {
		c.Accept = DefaultAccept
	}
	if c.Resolver == nil {
		c.Resolver = net.DefaultResolver
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// Client makes exchanges. It is safe for use by many goroutines.
type Client struct {
	cfg     Config
	abortAt time.Duration // of an exchange, from its start
	dialer  *dialer
	pool    *pool

	uaValue, acceptValue, encodingValue []string // shared header values, never changed

	mu     sync.Mutex
	closed bool
	active map[*exchange]struct{}
	idle   sync.WaitGroup // of active
}

// New returns a client. Its error names the field of cfg that is wrong.
func New(cfg Config) (*Client, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	d, err := newDialer(&cfg)
	if err != nil {
		return nil, err
	}
	margin := min(time.Second, cfg.HardDeadline/5)
	c := &Client{
		cfg:           cfg,
		abortAt:       cfg.HardDeadline - margin,
		dialer:        d,
		acceptValue:   []string{cfg.Accept},
		uaValue:       []string{cfg.UserAgent},
		encodingValue: []string{acceptEncoding},
		active:        make(map[*exchange]struct{}),
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!cfg.DisableHTTP2)
	transport := &http.Transport{
		DialContext:            d.dialPlain,
		DialTLSContext:         d.dialTLS,
		DisableCompression:     true,
		MaxResponseHeaderBytes: cfg.MaxHeader,
		IdleConnTimeout:        cfg.IdleConnTimeout,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{WriteByteTimeout: writeStall},
	}
	c.pool = newPool(transport, &c.cfg)
	return c, nil
}

// writeStall is how long an HTTP/2 connection may take no bytes before it is
// given up: a request must not be written long after its guard was asked.
const writeStall = 2 * time.Second

// Close aborts the exchanges under way, waits for them to return, and closes
// every connection. It may be called more than once.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	for e := range c.active {
		e.abort(ErrClosed)
	}
	c.mu.Unlock()
	c.idle.Wait()
	c.pool.close()
	c.dialer.dns.close()
}

// enter registers an exchange so that Close can abort it.
func (c *Client) enter(e *exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.active[e] = struct{}{}
	c.idle.Add(1)
	return true
}

func (c *Client) leave(e *exchange) {
	c.mu.Lock()
	delete(c.active, e)
	c.mu.Unlock()
	c.idle.Done()
}

// CloseIdle closes the connections no exchange is using.
func (c *Client) CloseIdle() { c.pool.closeIdle() }
