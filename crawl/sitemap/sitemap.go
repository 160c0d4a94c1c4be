package sitemap

import (
	"context"
	"errors"
	"io"
	"time"
)

// Kind says what a file turned out to be.
type Kind int

const (
	Unknown Kind = iota
	URLSet       // <urlset>: entries are pages
	Index        // <sitemapindex>: entries are sitemaps
	Text         // one URL a line
	RSS          // RSS 0.9x, 1.0 (RDF) and 2.0: entries are items
	Atom         // Atom 0.3 and 1.0: entries are entries
)

// String names the kind as it appears in logs.
func (k Kind) String() string {
	switch k {
	case URLSet:
		return "urlset"
	case Index:
		return "index"
	case Text:
		return "text"
	case RSS:
		return "rss"
	case Atom:
		return "atom"
	}
	return "unknown"
}

// Entry is one URL of a sitemap. It shares no memory with the decoder.
type Entry struct {
	// Loc is the URL as written, white space around it removed and references
	// resolved. It is neither parsed nor resolved against the sitemap's address.
	// Bytes that are not UTF-8 are percent-encoded.
	Loc string
	// LastMod is zero where none was given or it could not be read. A date
	// without a time or zone is taken as UTC. Only years 1970 to 2199 count.
	LastMod time.Time
	// Priority is what was written, not limited to 0..1; never NaN or infinite.
	Priority    float64
	HasPriority bool
	// ChangeFreq is one of the protocol's seven words in lower case, or empty.
	ChangeFreq string
	// Alternates are the xhtml:link elements with an hreflang.
	Alternates []Alternate
}

// Alternate is another language's version of an entry's page.
type Alternate struct {
	Lang, Href string
}

// Limits bound what is read. Zero values stand for the defaults named.
type Limits struct {
	MaxBytes      int64 // decompressed bytes; 50 MiB (sitemaps.org)
	MaxEntries    int   // entries yielded; 50,000 (sitemaps.org)
	MaxURLLen     int   // bytes of Loc and Href; longer ones are skipped; 2,048
	MaxAlternates int   // of one entry, the rest is dropped; 500
	MaxRatio      int   // decompressed to compressed size, past the first MiB; 250
}

func (l Limits) withDefaults() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = 50 << 20
	}
	if l.MaxEntries <= 0 {
		l.MaxEntries = 50_000
	}
	if l.MaxURLLen <= 0 {
		l.MaxURLLen = 2048
	}
	if l.MaxAlternates <= 0 {
		l.MaxAlternates = 500
	}
	if l.MaxRatio <= 0 {
		l.MaxRatio = 250
	}
	return l
}

// Info is what Decode learned about a file, filled also when it returns an error.
type Info struct {
	Kind    Kind
	Entries int // entries yielded
	Skipped int // entries without a usable URL
	// Truncated: MaxBytes or MaxEntries was reached and more was there.
	Truncated bool
	Bytes     int64 // decompressed bytes read
	// Warnings are for a person: at most 20, each short and valid UTF-8.
	Warnings []string
}

var (
	// ErrSyntax: the file is damaged (XML or compression). What could be read
	// was delivered.
	ErrSyntax = errors.New("malformed sitemap")
	// ErrNotSitemap: the body is something else, such as an HTML page, or empty.
	ErrNotSitemap = errors.New("not a sitemap")
	// ErrBomb: the body decompresses to more than MaxRatio times its size. What
	// came before was delivered.
	ErrBomb = errors.New("decompression bomb")
)

// Decode streams the entries of a sitemap to yield until the input ends, a limit
// is reached (Info.Truncated, no error), ctx ends (its error) or yield returns an
// error (returned as is). Other errors wrap ErrSyntax, ErrNotSitemap, ErrBomb or
// what r returned; entries before the trouble, and where possible after it, have
// then been delivered. Decode does not close r.
func Decode(ctx context.Context, r io.Reader, l Limits, yield func(Entry) error) (Info, error) {
	return Info{}, nil
}
