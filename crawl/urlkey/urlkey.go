package urlkey

import (
	"crypto/sha256"
	"errors"
)

// MaxLen is the longest canonical URL, in bytes, that is crawled.
const MaxLen = 2048

// Errors are returned as they are, for links that cannot be followed are
// common; compare with errors.Is.
var (
	// ErrScheme says that the URL is not http or https: mailto:, javascript:,
	// tel:, data: and the like.
	ErrScheme = errors.New("not an http or https URL")
	// ErrInvalid says that the URL Standard cannot parse it, that its host is
	// empty or cannot exist, or that it is relative and there is no base.
	ErrInvalid = errors.New("invalid URL")
	// ErrTooLong says that the canonical form is longer than MaxLen. The URL
	// beside it is complete, so that it can be recorded as excluded.
	ErrTooLong = errors.New("URL longer than 2048 bytes")
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

// URL is a canonical URL and what is derived from it.
type URL struct {
	// Raw is the canonical form. From Base.Resolve it aliases the returned
	// buffer and is good as long as that is; from Parse it is the caller's.
	Raw []byte
	// Key is KeyOf(Raw), over the whole form even when that is too long.
	Key Key
	// Host is the unit of politeness: A-labels, lower case, without a leading
	// `www.` and without the scheme's default port. Another port stays:
	// "example.com:8080", "[::1]:8080".
	Host string
	// Origin is scheme://host[:port], `www.` kept; robots.txt lives there.
	Origin string
	// PathAt is the offset of the path in Raw; path and query are Raw[PathAt:].
	PathAt int
	// SameOrigin says that Origin is the base's. Parse leaves it false.
	SameOrigin bool
}
