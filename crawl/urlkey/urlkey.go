package urlkey

import (
	"crypto/sha256"
	"errors"
)

// Key is the identity of a URL in "seen?" tests: the SHA-256 of its canonical
// form cut to 16 bytes.
type Key [16]byte

// KeyOf returns the key of a canonical URL. It does not canonicalise.
func KeyOf(canonical []byte) Key {
	sum := sha256.Sum256(canonical)
	return Key(sum[:16])
}

// Prefix is the part of the key that an edge of the link graph stores.
func (k Key) Prefix() [8]byte { return [8]byte(k[:8]) }

// MaxLen is the longest canonical URL, in bytes, that is crawled.
const MaxLen = 2048

var (
	// ErrScheme is returned for what is not http or https: mailto:,
	// javascript:, tel:, data: and the like.
	ErrScheme = errors.New("not an http or https URL")
	// ErrInvalid is returned for what the URL Standard cannot parse, and for
	// hosts that cannot exist.
	ErrInvalid = errors.New("invalid URL")
	// ErrTooLong is returned, together with a complete URL, when the canonical
	// form is longer than MaxLen.
	ErrTooLong = errors.New("URL longer than 2048 bytes")
)

// URL is a canonical URL and what is derived from it.
type URL struct {
	// Raw is the canonical form. After Base.Resolve it aliases the returned
	// buffer; after Parse it is the caller's own.
	Raw []byte
	// Key is KeyOf(Raw), over the full form even when that is too long.
	Key Key
	// Host is the unit of politeness: A-labels, lower case, without a leading
	// `www.` and without the scheme's default port. Another port stays:
	// "example.com:8080".
	Host string
	// Origin is scheme://host[:port], `www.` kept; robots.txt lives there.
	Origin string
	// PathAt is the offset of the path in Raw; path and query are Raw[PathAt:].
	PathAt int
	// SameOrigin says that Origin is the base's; Resolve sets it, Parse never.
	SameOrigin bool
}

// Options configure a Canonicalizer.
type Options struct {
	// TrackingParams are names of query parameters to remove, or prefixes
	// written as "utm_*"; nil means DefaultTrackingParams.
	TrackingParams []string
	// KeepTracking leaves every query parameter in place.
	KeepTracking bool
}

// DefaultTrackingParams returns the parameters that are removed by default.
func DefaultTrackingParams() []string { return []string{"utm_*", "gclid", "fbclid"} }

// Canonicalizer is safe for concurrent use.
type Canonicalizer struct{}

// New returns a Canonicalizer, or an error that names a bad parameter.
func New(Options) (*Canonicalizer, error) { return &Canonicalizer{}, nil }

// Parse returns the canonical form of an absolute URL.
func (c *Canonicalizer) Parse(raw string) (URL, error) { return URL{}, ErrInvalid }

// Base is a parsed base URL; one goroutine uses it at a time.
type Base struct{}

// NewBase parses the URL that links are resolved against.
func (c *Canonicalizer) NewBase(raw string) (*Base, error) { return nil, ErrInvalid }

// Reset parses another base URL into b.
func (b *Base) Reset(raw string) error { return ErrInvalid }

// Resolve appends the canonical form of href, resolved against b, to buf and
// returns the grown buffer.
func (b *Base) Resolve(buf []byte, href []byte) (URL, []byte, error) {
	return URL{}, buf, ErrInvalid
}
