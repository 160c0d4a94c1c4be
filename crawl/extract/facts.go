package extract

// Bounds of what a page's facts keep. Counts go on beyond them.
const (
	MaxTitle       = 1024 // bytes of Title
	MaxDescription = 2048 // bytes of Description, OG and Twitter values, robots texts
	MaxURL         = 4096 // bytes of a URL kept in Facts; longer ones are left out and noted
	MaxHeading     = 256  // bytes of one H1 or H2
	MaxHeadings    = 10   // headings kept of each level
	MaxHreflang    = 200
	MaxPairs       = 40 // Open Graph pairs, and Twitter pairs
	MaxJSONLD      = 20 // JSON-LD blocks kept
	MaxTypes       = 20 // types kept of one block
	MaxBots        = 10 // bot-specific robots rules kept
)

// Note is a set of remarks about what was cut or looked odd.
type Note uint32

const (
	NoteLinksCut    Note = 1 << iota // more than MaxLinks links; the rest was counted, not kept
	NoteFactsCut                     // a list or text was longer than its bound
	NoteBadBytes                     // bytes that are not text in the page's encoding
	NoteNUL                          // the body holds NUL bytes
	NoteFrameset                     // the page is a frameset
	NoteLateHead                     // canonical or robots found outside the head
	NoteOpenRawText                  // title, script, style or the like never ended and swallowed the rest of the page
)

// HreflangLink is one hreflang annotation, as written.
type HreflangLink struct{ Lang, Href string }

// Pair is one Open Graph or Twitter property: the name lower case, the value with white space collapsed.
type Pair struct{ Name, Value string }

// JSONLD is one script of type application/ld+json: the @type values of its top-level nodes and of their @graph, in order.
type JSONLD struct {
	Types []string
	Valid bool // is JSON (RFC 8259) with an object or array at the top
	Bytes int
}

// BotRobots is a robots rule for one named crawler.
type BotRobots struct{ Bot, Directives string }

// Facts is what the audit knows about a page. It owns its memory: a copy stays valid after Page.Release. Strings are valid UTF-8.
type Facts struct {
	Title            string // first title of the document (not SVG's), white space collapsed
	TitleCount       int
	Description      string // first meta description, white space collapsed
	DescriptionCount int

	// Robots is what applies to us: directives of meta robots and X-Robots-Tag, general ones and those for our product token,
	// lower case, without repetitions, joined by ", ". Rules for different names add up, as Google has it: the more
	// restrictive wins (developers.google.com/search/docs/crawling-indexing/robots-meta-tag).
	Robots           string
	RobotsHeader     string // the part of Robots that came from X-Robots-Tag
	BotRobots        []BotRobots
	NoIndex          bool
	NoFollow         bool
	NoArchive        bool
	NoSnippet        bool
	NoImageIndex     bool
	UnavailableAfter int64 // unix seconds, 0 when not said or not a date

	Canonical       string // href of the first link rel=canonical in the head, else of the first anywhere
	CanonicalCount  int    // all of them in the document
	CanonicalInBody int    // those outside the head, which search engines ignore
	HeaderCanonical string // target of the first rel=canonical in the Link header
	Base            string // href of the first base element that has one
	Next, Prev, AMP string // hrefs of the first link of that relation, Link header included

	Lang     string // html lang
	Hreflang []HreflangLink
	Viewport string
	Charset  string // canonical WHATWG name the page was read in, lower case

	H1, H2           []string // text of the first ones, white space collapsed; may be ""
	H1Count, H2Count int
	OG, Twitter      []Pair
	JSONLD           []JSONLD
	JSONLDCount      int

	HasRefresh   bool
	RefreshDelay int    // seconds
	RefreshURL   string // raw; "" refreshes the page itself

	Images        int // img elements
	ImagesNoAlt   int // img elements without an alt attribute (an empty one is an answer)
	LinkCount     int // links whose kind is followed, kept or not
	ResourceCount int // other links, kept or not

	Words       int
	TextBytes   int      // bytes of the normalised visible text
	ContentHash [16]byte // xxh3-128 of the normalised visible text, zero when there is none
	BodyHash    [16]byte // xxh3-128 of the body as given
	Simhash     uint64   // of word pairs, 0 when there are no words

	Notes Note
}
