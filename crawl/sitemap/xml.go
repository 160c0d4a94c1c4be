package sitemap

import (
	"bytes"
	"fmt"
	"io"
)

// element is what an element means to the reader.
type element int

const (
	other element = iota
	rootURLSet
	rootIndex
	rootRSS
	rootRDF
	rootFeed
	rootHTML
	entURL
	entSitemap
	entItem
	entEntry
	fieldLoc
	fieldLastMod
	fieldPriority
	fieldChangeFreq
	fieldLink
	fieldGUID
	fieldPubDate
	fieldDate
	fieldUpdated
	fieldPublished
)

// elementOf knows local names without case.
func elementOf(local []byte) element {
	var low [16]byte
	if len(local) > len(low) {
		return other
	}
	for i, c := range local {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		low[i] = c
	}
	switch string(low[:len(local)]) {
	case "urlset":
		return rootURLSet
	case "sitemapindex":
		return rootIndex
	case "rss", "channel":
		return rootRSS
	case "rdf":
		return rootRDF
	case "feed":
		return rootFeed
	case "html", "head", "body":
		return rootHTML
	case "url":
		return entURL
	case "sitemap":
		return entSitemap
	case "item":
		return entItem
	case "entry":
		return entEntry
	case "loc":
		return fieldLoc
	case "lastmod":
		return fieldLastMod
	case "priority":
		return fieldPriority
	case "changefreq":
		return fieldChangeFreq
	case "link":
		return fieldLink
	case "guid":
		return fieldGUID
	case "pubdate":
		return fieldPubDate
	case "date":
		return fieldDate
	case "updated", "modified":
		return fieldUpdated
	case "published", "issued", "created":
		return fieldPublished
	}
	return other
}

// kindOf is the kind of file a root, or an entry without one, makes.
func kindOf(el element) (kind Kind, entry element) {
	switch el {
	case rootURLSet, entURL:
		return URLSet, entURL
	case rootIndex, entSitemap:
		return Index, entSitemap
	case rootRSS, rootRDF:
		return RSS, entItem
	case rootFeed:
		return Atom, entEntry
	}
	return Unknown, other
}

// maxReserve is how many bytes of a field are kept beyond twice MaxURLLen.
const maxReserve = 4096

// xmlReader is the state between tags.
type xmlReader struct {
	d *decoder

	kind   Kind
	entry  element // what an entry is called in this kind
	root   []byte  // the root's name as written; empty after its end, or without one
	prefix string  // the prefix of entries, once one was seen
	primed bool

	open bool // inside an entry
	cur  Entry
	rank [2]int // what cur.Loc and cur.LastMod came from, higher is better
	perm bool   // the guid at hand may be a URL

	field  element // being captured, or other
	value  []byte  // its text with references resolved
	raw    []byte  // its text since the last CDATA, as written
	direct []byte  // text of the entry itself

	depth int    // 0, or how many elements named skip are open
	skip  []byte // the name of a foreign child being skipped

	scratch []byte

	ampSeen bool
}

// xml reads an XML document of any kind.
func (d *decoder) xml() error {
	x := &xmlReader{d: d}
	for {
		if !d.s.text(x.text) {
			break
		}
		more, err := x.markup()
		if err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
	if d.cut() {
		return nil
	}
	if x.kind == Unknown {
		return fmt.Errorf("%w: XML without urlset, sitemapindex, rss or feed", ErrNotSitemap)
	}
	switch {
	case x.open:
		d.broken("the file ends inside an entry")
		x.finish()
	case len(x.root) > 0:
		d.broken(fmt.Sprintf("the file ends before </%s>", clip(string(x.root))))
	}
	return nil
}

// cut says that the input was stopped, by a limit or an error, not by its end.
func (d *decoder) cut() bool { return d.s.err != nil && d.s.err != io.EOF }

// markup reads what begins with the "<" the scanner stands before; more is false
// when reading must end.
func (x *xmlReader) markup() (more bool, err error) {
	s := x.d.s
	head := s.peek(9)
	if len(head) < 2 {
		s.pos += len(head)
		return true, nil
	}
	whole := true
	switch c := head[1]; {
	case bytes.HasPrefix(head, []byte("<!--")):
		s.pos += 4
		whole = s.until("-->", drop)
	case bytes.HasPrefix(head, []byte("<![CDATA[")):
		s.pos += 9
		x.flush()
		whole = s.until("]]>", x.cdata)
	case c == '!':
		if foldEqual(head, "<!doctype") && x.kind == Unknown {
			if name := bytes.TrimLeft(s.peek(64)[9:], " \t\r\n"); len(name) >= 4 && foldEqual(name[:4], "html") {
				return false, fmt.Errorf("%w: an HTML page", ErrNotSitemap)
			}
		}
		whole = s.doctype()
	case c == '?':
		whole = s.until(">", drop)
	case c == '/' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == ':' || c >= 0x80:
		t, whole := s.tag()
		if !whole && !x.d.cut() {
			x.d.broken("a tag without its end")
		}
		if t.closing {
			return x.end(t), nil
		}
		return x.start(t)
	default:
		if x.open {
			x.d.broken(`"<" in text`)
		}
		x.text(head[:1])
		s.pos++
	}
	if !whole && !x.d.cut() {
		x.d.broken("the file ends inside a comment, CDATA or declaration")
	}
	return true, nil
}

func drop([]byte) {}

// text takes a piece of character data.
func (x *xmlReader) text(b []byte) {
	switch {
	case x.field != other:
		if room := 8*x.d.limits.MaxURLLen + maxReserve - len(x.raw); room > 0 {
			x.raw = append(x.raw, b[:min(len(b), room)]...)
		}
	case x.open && x.depth == 0 && len(x.direct) <= x.d.limits.MaxURLLen:
		if b = bytes.TrimSpace(b); len(b) > 0 {
			x.direct = append(x.direct, b[:min(len(b), x.d.limits.MaxURLLen+1)]...)
		}
	}
}

// cdata takes a piece of a CDATA section: no references in it.
func (x *xmlReader) cdata(b []byte) {
	if x.field != other {
		x.keep(b)
	} else {
		x.text(b)
	}
}

func (x *xmlReader) keep(b []byte) {
	if room := 2*x.d.limits.MaxURLLen + maxReserve - len(x.value); room > 0 {
		x.value = append(x.value, b[:min(len(b), room)]...)
	}
}

// flush resolves the references of what was collected.
func (x *xmlReader) flush() {
	if len(x.raw) == 0 {
		return
	}
	var bad bool
	if bytes.IndexByte(x.raw, '&') < 0 {
		x.keep(x.raw)
	} else {
		x.scratch, bad = unescape(x.scratch[:0], x.raw)
		x.keep(x.scratch)
	}
	x.raw = x.raw[:0]
	if bad && !x.ampSeen {
		x.ampSeen = true
		x.d.warn(`"&" not written as "&amp;"`)
	}
}

// start takes a start tag.
func (x *xmlReader) start(t tag) (more bool, err error) {
	el := elementOf(t.local)
	if x.kind == Unknown {
		if el == rootHTML {
			return false, fmt.Errorf("%w: an HTML page", ErrNotSitemap)
		}
		x.kind, x.entry = kindOf(el)
		x.d.info.Kind = x.kind
		if x.kind == Unknown {
			return true, nil
		}
		if el != x.entry {
			if !t.empty {
				x.root = append(x.root, t.local...)
			}
			return true, nil
		}
	}
	if !x.primed && (el == entURL && x.kind == Index || el == entSitemap && x.kind == URLSet) {
		x.d.warn("<%s> in a file that says it is of kind %s", t.local, x.kind)
		x.kind, x.entry = kindOf(el)
		x.d.info.Kind = x.kind
	}
	if el == x.entry && (!x.primed || string(t.prefix) == x.prefix) {
		if !x.primed {
			x.primed, x.prefix = true, string(t.prefix)
		}
		if x.open {
			x.d.broken("an entry begins inside another")
			if !x.finish() {
				return false, nil
			}
		}
		x.begin(t)
		if t.empty {
			return x.finish(), nil
		}
		return true, nil
	}
	if !x.open {
		if el == entURL && x.kind == Index || el == entSitemap && x.kind == URLSet {
			x.d.info.Skipped++
			x.d.warn("<%s> among entries of kind %s", t.local, x.kind)
		}
		return true, nil
	}
	if x.depth > 0 {
		if !t.empty && bytes.Equal(t.local, x.skip) {
			x.depth++
		}
		return true, nil
	}
	if !x.isField(el, t) {
		if x.field == other && !t.empty {
			x.skip, x.depth = append(x.skip[:0], t.local...), 1
		}
		return true, nil // inside a field: its text counts, the markup does not
	}
	if x.field != other {
		x.d.broken("an element begins inside another's text")
		x.closeField()
	}
	if el == fieldLink {
		if href, ok := t.attr("href"); ok {
			x.link(t, href)
			if !t.empty {
				x.skip, x.depth = append(x.skip[:0], t.local...), 1
			}
			return true, nil
		}
	}
	if t.empty {
		return true, nil
	}
	if el == fieldLink && (x.kind == URLSet || !isAlternate(t)) { // <link rel="enclosure">http://...</link>
		x.skip, x.depth = append(x.skip[:0], t.local...), 1
		return true, nil
	}
	x.field, x.perm = el, true
	if el == fieldGUID {
		if v, ok := t.attr("ispermalink"); ok && foldEqual(v, "false") {
			x.perm = false
		}
	}
	return true, nil
}

// isField says whether a child of an entry is read in this kind of file. A
// foreign prefix counts only where feeds use them for the same thing.
func (x *xmlReader) isField(el element, t tag) bool {
	own := string(t.prefix) == x.prefix
	switch x.kind {
	case URLSet, Index:
		switch el {
		case fieldLoc, fieldLastMod, fieldPriority, fieldChangeFreq:
			return own
		case fieldLink:
			return x.kind == URLSet
		}
	case RSS:
		switch el {
		case fieldLink:
			return own || foldEqual(t.prefix, "atom") || len(t.prefix) == 0
		case fieldGUID, fieldPubDate, fieldLastMod:
			return own
		case fieldDate, fieldUpdated, fieldPublished:
			return true // dc:date, atom:updated, dcterms:modified
		}
	case Atom:
		switch el {
		case fieldLink, fieldUpdated, fieldPublished:
			return own
		}
	}
	return false
}

func (x *xmlReader) begin(t tag) {
	x.open, x.cur, x.rank = true, Entry{}, [2]int{}
	x.direct = x.direct[:0]
	x.field, x.depth = other, 0
	if x.kind == RSS {
		if v, ok := t.attr("about"); ok { // RSS 1.0
			x.setLoc(v, 1)
		}
	}
}

// link takes a <link href>: an alternate language in a urlset, the page in a feed.
func (x *xmlReader) link(t tag, href []byte) {
	if !isAlternate(t) {
		return
	}
	if x.kind != URLSet {
		x.setLoc(href, 3)
		return
	}
	lang, ok := t.attr("hreflang")
	if !ok || len(x.cur.Alternates) >= x.d.limits.MaxAlternates {
		return
	}
	h, _ := unescape(nil, href)
	l, _ := unescape(nil, lang)
	h, l = bytes.TrimSpace(h), bytes.TrimSpace(l)
	if len(h) == 0 || len(h) > x.d.limits.MaxURLLen {
		return
	}
	x.cur.Alternates = append(x.cur.Alternates, Alternate{Lang: clip(string(l)), Href: urlString(h)})
}

// isAlternate says that a link leads to the page itself: by rel, or without one.
func isAlternate(t tag) bool {
	rel, ok := t.attr("rel")
	return !ok || foldEqual(bytes.TrimSpace(rel), "alternate")
}

// setLoc takes a URL unless a better source gave one.
func (x *xmlReader) setLoc(raw []byte, rank int) {
	b, _ := unescape(nil, raw)
	x.takeLoc(b, rank)
}

func (x *xmlReader) takeLoc(b []byte, rank int) {
	if b = bytes.TrimSpace(b); len(b) > 0 && rank > x.rank[0] {
		x.cur.Loc, x.rank[0] = urlString(b), rank
	}
}

func (x *xmlReader) takeTime(b []byte, rank int) {
	if b = bytes.TrimSpace(b); len(b) == 0 || rank <= x.rank[1] {
		return
	}
	t, ok := parseTime(string(b[:min(len(b), 64)]))
	if !ok {
		x.d.warn("date %q is not understood", clip(string(b)))
		return
	}
	x.cur.LastMod, x.rank[1] = t, rank
}

// end takes an end tag; it is false when reading must end.
func (x *xmlReader) end(t tag) bool {
	el := elementOf(t.local)
	switch {
	case x.open && el == x.entry && string(t.prefix) == x.prefix:
		if x.field != other || x.depth > 0 {
			x.d.broken("an entry ends inside one of its elements")
		}
		return x.finish()
	case len(x.root) > 0 && bytes.Equal(t.local, x.root):
		x.root = x.root[:0]
		if x.open {
			x.d.broken("the root ends inside an entry")
			return x.finish()
		}
	case !x.open:
		if el == x.entry && x.kind != Unknown && string(t.prefix) == x.prefix {
			x.d.broken("an entry ends that did not begin")
		}
	case x.depth > 0:
		if bytes.Equal(t.local, x.skip) {
			x.depth--
		}
	case x.field != other:
		if el == x.field {
			x.closeField()
		} else if x.isField(el, t) {
			x.d.broken("an element ends with another's name")
			x.closeField()
		}
	default:
		x.d.broken("an element ends that did not begin")
	}
	return true
}

// closeField files the text of the field being captured.
func (x *xmlReader) closeField() {
	x.flush()
	v := bytes.TrimSpace(x.value)
	switch x.field {
	case fieldLoc:
		x.takeLoc(v, 3)
	case fieldLink:
		x.takeLoc(v, 4)
	case fieldGUID:
		if hasHTTPScheme(v) { // some say isPermaLink="false" and give the page
			rank := 2
			if !x.perm {
				rank = 1
			}
			x.takeLoc(v, rank)
		}
	case fieldLastMod, fieldPubDate, fieldUpdated:
		x.takeTime(v, 3)
	case fieldDate:
		x.takeTime(v, 2)
	case fieldPublished:
		x.takeTime(v, 1)
	case fieldPriority:
		if f, ok := parsePriority(v); ok {
			x.cur.Priority, x.cur.HasPriority = f, true
		} else if len(v) > 0 {
			x.d.warn("priority %q is not understood", clip(string(v)))
		}
	case fieldChangeFreq:
		x.cur.ChangeFreq = parseChangeFreq(v)
	}
	x.field, x.value, x.raw = other, x.value[:0], x.raw[:0]
}

// finish ends the entry and delivers it; it is false when reading must end.
func (x *xmlReader) finish() bool {
	if x.field != other {
		x.closeField()
	}
	x.open, x.depth = false, 0
	if x.cur.Loc == "" && (x.kind == Index || x.kind == URLSet) {
		// <sitemap>http://...</sitemap>, the <loc> forgotten
		b, _ := unescape(nil, x.direct)
		if b = bytes.TrimSpace(b); hasHTTPScheme(b) {
			x.takeLoc(b, 1)
		}
	}
	return x.d.deliver(x.cur)
}
