package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// Reason says why an exchange gave no usable response. It is empty for every
// response received whole, whatever its status.
type Reason string

const (
	ReasonOK          Reason = ""
	ReasonBadURL      Reason = "bad-url"     // not an absolute http or https URL
	ReasonDNS         Reason = "dns"         // the name has no address, or the resolver failed or was too slow
	ReasonPrivate     Reason = "private"     // the address is not public and AllowPrivate is off
	ReasonRefused     Reason = "refused"     // nothing listens on the port
	ReasonUnreachable Reason = "unreachable" // no route to the host or network
	ReasonTLS         Reason = "tls"         // certificate or handshake
	ReasonReset       Reason = "reset"       // the connection ended before the response did
	ReasonTimeout     Reason = "timeout"     // a phase or the hard deadline ran out
	ReasonHTTP        Reason = "http"        // the reply is not HTTP
	ReasonDecode      Reason = "decode"      // the body's content coding is unknown or broken from its first byte
	ReasonTooLarge    Reason = "too-large"   // the body passes MaxBody, or decompresses beyond MaxRatio
	ReasonGuard       Reason = "guard"       // Request.Guard refused; nothing was written
	ReasonCanceled    Reason = "canceled"    // the caller's context ended, or the client was closed
	ReasonInternal    Reason = "internal"    // a panic while making the exchange
)

// Errors a Result may carry, for errors.Is.
var (
	ErrPrivate  = errors.New("address is not public")
	ErrBadURL   = errors.New("not an absolute http or https URL")
	ErrClosed   = errors.New("client is closed")
	ErrTooLarge = errors.New("body is too large")
	ErrRatio    = errors.New("body decompresses beyond the allowed ratio")
	ErrTimeout  = errors.New("timed out")
)

// phase is the part of an exchange an error or a limit belongs to.
type phase uint32

const (
	phaseDeadline phase = iota + 1
	phaseDNS
	phaseConnect
	phaseTLS
	phaseFirstByte
	phaseBody
)

func (p phase) String() string {
	return [...]string{"", "hard deadline", "look up", "connect", "tls handshake", "wait for response", "read body"}[p]
}

// phaseError is an error with the phase it arose in.
type phaseError struct {
	phase phase
	err   error
}

func (e *phaseError) Error() string { return e.phase.String() + ": " + e.err.Error() }
func (e *phaseError) Unwrap() error { return e.err }

// timeoutIn is the error of a phase that ran out of time.
func timeoutIn(p phase) error { return &phaseError{p, ErrTimeout} }

// endedError says that the caller's context ended. Its cause is the caller's
// own affair: whatever it is, the exchange was cancelled, or out of time.
type endedError struct{ err, cause error }

func callerEnded(ctx context.Context) error {
	return &endedError{err: ctx.Err(), cause: context.Cause(ctx)}
}

func (e *endedError) Error() string {
	if errors.Is(e.err, e.cause) {
		return e.err.Error()
	}
	return e.err.Error() + ": " + e.cause.Error()
}

func (e *endedError) Unwrap() []error { return []error{e.err, e.cause} }

// reasonOf maps an error of an exchange to its reason.
func reasonOf(err error) Reason {
	if err == nil {
		return ReasonOK
	}
	var ended *endedError
	if errors.As(err, &ended) {
		if errors.Is(ended.err, context.DeadlineExceeded) {
			return ReasonTimeout
		}
		return ReasonCanceled
	}
	var ph phase
	var pe *phaseError
	if errors.As(err, &pe) {
		ph = pe.phase
	}
	var dnsErr *net.DNSError
	switch {
	case errors.Is(err, ErrBadURL):
		return ReasonBadURL
	case errors.Is(err, ErrPrivate):
		return ReasonPrivate
	case errors.Is(err, ErrClosed), errors.Is(err, context.Canceled):
		return ReasonCanceled
	case ph == phaseDNS, errors.As(err, &dnsErr):
		return ReasonDNS
	case errors.Is(err, ErrTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return ReasonTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return ReasonRefused
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.ENETDOWN):
		return ReasonUnreachable
	case ph == phaseTLS && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		return ReasonReset
	case ph == phaseTLS, isTLS(err):
		return ReasonTLS
	case isReset(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ReasonReset
	case ph == phaseConnect:
		return ReasonUnreachable
	}
	return ReasonHTTP
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var verify *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verify) ||
		errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid) ||
		strings.Contains(err.Error(), "error: tls: ") // an alert after the handshake has no exported type
}

// isReset recognises a connection that ended under the request. net/http and
// its HTTP/2 give several of these as unexported values, known by text only.
func isReset(err error) bool {
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, net.ErrClosed) {
		return true
	}
	text := err.Error()
	for _, s := range [...]string{
		"server closed idle connection", "connection closed", "ClientConn closed", "client connection lost",
		"client connection force closed", "stream error: ", "GOAWAY", "client conn not usable", "client conn could not be established", "client connection is closed",
		"connection is unavailable", "response body closed",
	} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}
