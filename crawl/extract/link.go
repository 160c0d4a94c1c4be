package extract

// LinkKind says what kind of reference a link is. The numbers are stored with edges: never reorder them. Zero is no kind.
type LinkKind uint8

const (
	Anchor     LinkKind = 1 + iota // a href, also SVG's a with href or xlink:href
	Area                           // area href
	Frame                          // frame src, in a frameset
	Iframe                         // iframe src
	Canonical                      // link rel=canonical, or the Link header
	Alternate                      // link rel=alternate of another language or medium, or the Link header
	Next                           // link rel=next
	Prev                           // link rel=prev or previous
	AMP                            // link rel=amphtml
	Refresh                        // meta refresh, or the Refresh header
	Image                          // img src, SVG image, input type=image
	Srcset                         // a candidate of srcset or imagesrcset
	Script                         // script src
	Stylesheet                     // link rel=stylesheet
	Media                          // audio, video, source and track src, video poster
	Embed                          // embed src, object data
	Icon                           // link rel=icon, apple-touch-icon, mask-icon
	Feed                           // link rel=alternate whose type is not a page's (RSS, Atom, oEmbed)
	Form                           // form action
	Resource                       // link rel=manifest, preload, modulepreload, prefetch
	kindCount
)

var kindNames = [kindCount]string{"", "anchor", "area", "frame", "iframe", "canonical", "alternate", "next", "prev", "amp", "refresh",
	"image", "srcset", "script", "stylesheet", "media", "embed", "icon", "feed", "form", "resource"}

// String is the kind's name in reports, lower case.
func (k LinkKind) String() string {
	if k >= kindCount {
		return "unknown"
	}
	return kindNames[k]
}

// Follow reports whether the target is a page to crawl rather than a resource of this one.
func (k LinkKind) Follow() bool { return k >= Anchor && k <= Refresh }

// Link is one reference of a page. Its byte slices alias the page's body or buffers and are valid until Page.Release.
type Link struct {
	Href       []byte // as written, references decoded, C0 controls and spaces trimmed; may be empty (the page itself)
	Text       []byte // anchors: visible text, white space collapsed, at most MaxLinkText bytes; for a bare image its alt
	Lang       string // hreflang as written, trimmed
	Kind       LinkKind
	Nofollow   bool // rel has nofollow (the page's own nofollow is Facts.NoFollow)
	UGC        bool // rel has ugc
	Sponsored  bool // rel has sponsored
	InHead     bool // stands in the head of the document
	FromHeader bool // from an HTTP header: resolve against the page's URL, not against Facts.Base (RFC 8288 section 3.1)
	NoScript   bool // inside noscript
}

// MaxLinkText bounds Link.Text, in bytes.
const MaxLinkText = 200
