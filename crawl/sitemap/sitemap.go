package sitemap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	// Kind is the file's: under Index, Loc is another sitemap and not a page.
	Kind Kind
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
	l = l.withDefaults()
	in, err := open(ctx, r, l)
	d := &decoder{limits: l, yield: yield}
	if err == nil {
		d.s = newScanner(in)
		err = d.run()
		if err == nil && d.s.err != nil && d.s.err != io.EOF && !d.full {
			err = d.s.err
		}
	}
	d.info.Bytes = in.outer.n
	for _, w := range in.warn {
		d.note(w)
	}
	switch {
	case err == nil:
		if d.damage != nil {
			return d.info, d.damage
		}
		return d.info, nil
	case errors.Is(err, errLimit):
		d.info.Truncated = true
		d.note(fmt.Sprintf("cut at %d bytes", l.MaxBytes))
		if d.info.Kind == Unknown {
			return d.info, fmt.Errorf("%w: nothing like one in the first %d bytes", ErrNotSitemap, l.MaxBytes)
		}
		return d.info, nil
	case d.stopped != nil || errors.Is(err, ErrBomb) || errors.Is(err, ErrNotSitemap):
		return d.info, err
	case in.base.err != nil:
		return d.info, fmt.Errorf("read sitemap: %w", in.base.err)
	case in.outer.ratio == 0:
		return d.info, fmt.Errorf("read sitemap: %w", err)
	}
	return d.info, fmt.Errorf("%w: decompress: %w", ErrSyntax, err)
}

// decoder is the state shared by the readers of the several kinds.
type decoder struct {
	s      *scanner
	limits Limits
	yield  func(Entry) error
	info   Info

	damage  error // the first, wrapping ErrSyntax
	stopped error // yield's
	full    bool  // MaxEntries reached
}

// maxWarnings bounds Info.Warnings.
const maxWarnings = 20

// warn notes what a person should know, with the line it is about. It is cheap
// once the list is full: a file can be wrong a million times.
func (d *decoder) warn(format string, args ...any) {
	if len(d.info.Warnings) < maxWarnings {
		d.info.Warnings = append(d.info.Warnings, fmt.Sprintf("line %d: ", d.s.line())+fmt.Sprintf(format, args...))
	}
}

// note is warn for what belongs to no line.
func (d *decoder) note(what string) {
	if len(d.info.Warnings) < maxWarnings {
		d.info.Warnings = append(d.info.Warnings, what)
	}
}

// broken notes damage; reading goes on.
func (d *decoder) broken(what string) {
	if d.damage == nil {
		d.damage = fmt.Errorf("%w: line %d: %s", ErrSyntax, d.s.line(), what)
	}
	d.warn("%s", what)
}

// deliver hands an entry to yield; it is false when reading must end.
func (d *decoder) deliver(e Entry) bool {
	switch {
	case e.Loc == "":
		d.info.Skipped++
		d.warn("entry without a URL")
		return true
	case len(e.Loc) > d.limits.MaxURLLen:
		d.info.Skipped++
		d.warn("URL of more than %d bytes", d.limits.MaxURLLen)
		return true
	case d.info.Entries >= d.limits.MaxEntries:
		d.full, d.info.Truncated = true, true
		d.warn("cut at %d entries", d.limits.MaxEntries)
		return false
	}
	d.info.Entries++
	e.Kind = d.info.Kind
	if err := d.yield(e); err != nil {
		d.stopped = err
		return false
	}
	return true
}

// run looks at the beginning of the body and reads it as what it seems to be.
func (d *decoder) run() error {
	head := bytes.TrimLeft(d.s.peek(sniffLen), " \t\r\n\v\f\x00\ufeff")
	var err error
	switch {
	case len(head) == 0 && d.s.err != nil && d.s.err != io.EOF:
		return d.s.err
	case len(head) == 0:
		err = fmt.Errorf("%w: the body is empty", ErrNotSitemap)
	case head[0] == '<' || looksXML(head):
		err = d.xml()
	default:
		err = d.text()
	}
	if d.stopped != nil {
		return d.stopped
	}
	return err
}

// sniffLen is how far junk before the first tag is looked through.
const sniffLen = 4096

func looksXML(head []byte) bool {
	for _, mark := range []string{"<?xml", "urlset", "<sitemapindex", "<rss", "<feed", ":sitemapindex", ":feed"} {
		if bytes.Contains(head, []byte(mark)) {
			return true
		}
	}
	return false
}
