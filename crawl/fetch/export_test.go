package fetch

import (
	"context"
	"net"
)

// Inner pieces for the external tests.

// ControlAddress runs the check that sits on the socket.
func ControlAddress(c *Client, address string) error {
	return c.dialer.control(context.Background(), "tcp", address, nil)
}

// RequestTarget parses a URL and tells what is dialled and asked for.
func RequestTarget(raw string) (addr, authority, uri string, err error) {
	t, err := parseTarget(raw)
	if err != nil {
		return "", "", "", err
	}
	return t.addr(), t.authority, t.uri, nil
}

// MendHead mends a copy of a response head.
func MendHead(b []byte) []byte {
	b = append([]byte(nil), b...)
	_, n := mendHead(b)
	return b[:n]
}

// HeadEnd is the length of the head at the start of b.
func HeadEnd(b []byte) int { return headEnd(b, 0) }

// HeadConn is the filter over c, as after a request has been written.
func HeadConn(c net.Conn, maxHeader int64) net.Conn {
	h := newHeadConn(c, newRawConn(c), maxHeader)
	h.idle.Store(false)
	h.asked.Store(true)
	return h
}

// DecodeBody undoes the codings of a copy of wire.
func DecodeBody(wire []byte, encodings []string, contentType string, maxBody int64, ratio float64) (body []byte, truncated bool, reason Reason, err error) {
	d := decodeBody(append(pooled.get(len(wire)), wire...), encodings, contentType, limits{max: maxBody, ratio: ratio})
	return d.body, d.truncated, d.reason, d.err
}

// KeptConns counts connections no exchange is on.
func KeptConns(c *Client) int {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	n := 0
	for _, h := range c.pool.hosts {
		n += len(h.idle) + len(h.h2)
	}
	return n
}

// DNSEntries counts the hosts remembered.
func DNSEntries(c *Client) int {
	c.dialer.dns.mu.Lock()
	defer c.dialer.dns.mu.Unlock()
	return len(c.dialer.dns.entries)
}
