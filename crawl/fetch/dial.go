package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// attemptGap is the head start of each address over the next, RFC 8305
// section 5 ("Connection Attempt Delay").
const attemptGap = 250 * time.Millisecond

// dialer opens connections: cached DNS, public addresses only, several
// addresses raced, TLS on top.
type dialer struct {
	cfg  *Config
	dns  *dnsCache
	bind netip.Addr
	net  net.Dialer
	tls  *tls.Config
}

func newDialer(cfg *Config) (*dialer, error) {
	d := &dialer{cfg: cfg}
	d.net = net.Dialer{KeepAlive: 30 * time.Second, ControlContext: d.control}
	if cfg.BindAddr != "" {
		a, err := netip.ParseAddr(cfg.BindAddr)
		if err != nil {
			return nil, fmt.Errorf("fetch: BindAddr %q is not an IP address", cfg.BindAddr)
		}
		d.bind = a.Unmap()
		d.net.LocalAddr = &net.TCPAddr{IP: d.bind.AsSlice(), Zone: d.bind.Zone()}
	}
	d.tls = &tls.Config{}
	if cfg.TLS != nil {
		d.tls = cfg.TLS.Clone()
	}
	if d.tls.ClientSessionCache == nil {
		d.tls.ClientSessionCache = tls.NewLRUClientSessionCache(256)
	}
	d.tls.NextProtos = []string{"h2", "http/1.1"}
	if cfg.DisableHTTP2 {
		d.tls.NextProtos = []string{"http/1.1"}
	}
	d.dns = newDNSCache(cfg)
	return d, nil
}

// control runs on the socket with the address about to be dialled: whatever
// DNS said before, this is the address that counts.
func (d *dialer) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrPrivate, address)
	}
	return d.check(ap.Addr())
}

func (d *dialer) check(a netip.Addr) error {
	if d.cfg.AllowPrivate || public(a) {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrPrivate, a)
}

// dialed is filled in by the dial functions for the pool, which reaches them
// only through http.Transport and so passes it in the context.
type dialed struct {
	raw  *rawConn
	head *headConn // nil for HTTP/2
}

type dialedKey struct{}

// dialPlain is Transport.DialContext.
func (d *dialer) dialPlain(ctx context.Context, _, addr string) (net.Conn, error) {
	raw, err := d.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	h := newHeadConn(raw, raw, d.cfg.MaxHeader)
	if out, ok := ctx.Value(dialedKey{}).(*dialed); ok {
		out.raw, out.head = raw, h
	}
	return h, nil
}

// dialTLS is Transport.DialTLSContext. net/http speaks HTTP/2 on a *tls.Conn
// that negotiated it and HTTP/1 on anything else.
func (d *dialer) dialTLS(ctx context.Context, _, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	raw, err := d.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	conf := d.tls.Clone()
	if conf.ServerName == "" {
		conf.ServerName = strings.TrimSuffix(host, ".")
	}
	tc := tls.Client(raw, conf)
	hctx, cancel := context.WithTimeoutCause(ctx, d.cfg.TLSTimeout, ErrTimeout)
	defer cancel()
	if err := tc.HandshakeContext(hctx); err != nil {
		raw.Close()
		if hctx.Err() != nil {
			err = context.Cause(hctx)
		}
		return nil, &phaseError{phaseTLS, err}
	}
	out, _ := ctx.Value(dialedKey{}).(*dialed)
	if tc.ConnectionState().NegotiatedProtocol == "h2" {
		if out != nil {
			out.raw = raw
		}
		return tc, nil
	}
	h := newHeadConn(tc, raw, d.cfg.MaxHeader)
	if out != nil {
		out.raw, out.head = raw, h
	}
	return h, nil
}

// dial resolves addr and connects to the first of its addresses that answers.
func (d *dialer) dial(ctx context.Context, addr string) (*rawConn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	var addrs []netip.Addr
	if ip, perr := netip.ParseAddr(host); perr == nil {
		addrs = []netip.Addr{ip}
	} else if addrs, err = d.dns.lookup(ctx, host); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &phaseError{phaseDNS, err}
	}
	list, err := d.usable(addrs)
	if err != nil {
		return nil, &phaseError{phaseConnect, err}
	}
	cctx, cancel := context.WithTimeoutCause(ctx, d.cfg.ConnectTimeout, ErrTimeout)
	defer cancel()
	conn, err := d.race(cctx, list, port)
	if err != nil {
		if cctx.Err() != nil {
			err = context.Cause(cctx)
		}
		return nil, &phaseError{phaseConnect, err}
	}
	return newRawConn(conn), nil
}

// usable drops the addresses that may not be dialled and interleaves the
// families, the resolver's first choice first (RFC 8305 section 4).
func (d *dialer) usable(addrs []netip.Addr) ([]netip.Addr, error) {
	var first, second []netip.Addr
	var refused error
	for _, a := range addrs {
		a = a.Unmap()
		if err := d.check(a); err != nil {
			refused = err
			continue
		}
		if d.bind.IsValid() && d.bind.Is4() != a.Is4() {
			if refused == nil {
				refused = fmt.Errorf("%w: %s from %s", syscall.EADDRNOTAVAIL, a, d.bind)
			}
			continue
		}
		if len(first) == 0 || first[0].Is4() == a.Is4() {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	if len(first) == 0 {
		return nil, refused
	}
	if len(second) == 0 {
		return first, nil
	}
	out := make([]netip.Addr, 0, len(first)+len(second))
	for i := 0; i < len(first) || i < len(second); i++ {
		if i < len(first) {
			out = append(out, first[i])
		}
		if i < len(second) {
			out = append(out, second[i])
		}
	}
	return out, nil
}

// race dials the addresses one after another, each attemptGap after the one
// before or as soon as that has failed; the first connection wins and the
// others are closed before it returns.
func (d *dialer) race(ctx context.Context, addrs []netip.Addr, port string) (net.Conn, error) {
	if len(addrs) == 1 {
		return d.connect(ctx, addrs[0], port)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		conn net.Conn
		err  error
	}
	results := make(chan outcome)
	timer := time.NewTimer(0)
	defer timer.Stop()
	next, running := 0, 0
	var won net.Conn
	var errs []error
	for {
		var start <-chan time.Time
		if next < len(addrs) && won == nil {
			start = timer.C
		}
		if start == nil && running == 0 {
			break
		}
		select {
		case <-start:
			a := addrs[next]
			next++
			running++
			timer.Reset(attemptGap)
			go func() {
				c, err := d.connect(ctx, a, port)
				results <- outcome{c, err}
			}()
		case r := <-results:
			running--
			switch {
			case r.err != nil:
				errs = append(errs, r.err)
				if ctx.Err() != nil {
					next = len(addrs)
				}
				timer.Reset(0)
			case won != nil:
				r.conn.Close()
			default:
				won = r.conn
				cancel()
			}
		}
	}
	if won != nil {
		return won, nil
	}
	return nil, errors.Join(errs...)
}

func (d *dialer) connect(ctx context.Context, a netip.Addr, port string) (net.Conn, error) {
	addr := net.JoinHostPort(a.String(), port)
	if d.cfg.Dial != nil {
		return d.cfg.Dial(ctx, "tcp", addr)
	}
	return d.net.DialContext(ctx, "tcp", addr)
}
