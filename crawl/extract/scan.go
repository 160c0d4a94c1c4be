package extract

import "unicode/utf8"

// captureMode says what the text of the raw element being read is for.
type captureMode uint8

const (
	captureNone captureMode = iota
	captureTitle
	captureJSONLD
	captureSkip
)

// fixup is a string of Facts that still lies in scan.strings.
type fixup struct {
	dst *string
	at  span
}

type pairSpan struct{ name, value span }

// scan is the state of one page's pass: the tokenizer and the little of a tree builder that our answers need.
type scan struct {
	t        tokenizer
	page     *Page
	f        *Facts
	product  string
	maxLinks int
	xml      bool

	tentative   string // name of the encoding while a meta element may change it
	lateCharset string // label of the encoding to start over with

	decoded []byte // body turned into UTF-8, when it was not
	arena   []byte // decoded attribute values
	text    textSink

	inHead       bool
	frameset     bool
	noscript     bool
	noscriptAt   int    // templates open when noscript started
	mute         bool   // text is not visible
	templates    []bool // open templates; true hides its contents
	hidden       int    // hiding ones among them
	foreign      []foreignNode
	foreignOver  int // foreign elements beyond maxForeign
	open         [tagCount]int32
	capture      captureMode
	anchor       int // index of the open anchor in Links, -1 when none
	anchorFrom   int // its start in text.out
	anchorAlt    []byte
	heading      tagID // open h1 or h2, tagOther when none
	headingFrom  int
	headingDepth int

	haveBase, haveCanonical, haveHeadCanonical, haveLang, haveViewport bool
	haveNext, havePrev, haveAMP                                        bool

	strings            []byte
	fixups             []fixup
	headings           [2][]span
	hreflang           []pairSpan
	og, twitter        []pairSpan
	robots, robotsHead []byte
	bots               []BotRobots
	jsonLD             []JSONLD
}

func (s *scan) begin(p *Page, product string, maxLinks int) {
	s.page, s.f, s.product, s.maxLinks = p, &p.Facts, product, maxLinks
	s.tentative, s.lateCharset = "", ""
	s.inHead = true
	s.frameset, s.noscript = false, false
	s.hidden, s.foreignOver = 0, 0
	s.open = [tagCount]int32{}
	s.capture = captureNone
	s.anchor, s.anchorAlt = -1, nil
	s.heading = tagOther
	s.haveBase, s.haveCanonical, s.haveHeadCanonical, s.haveLang, s.haveViewport = false, false, false, false, false
	s.haveNext, s.havePrev, s.haveAMP = false, false, false
	s.text.reset()
	s.updateMute()
}

// release drops what points into a page and keeps buffers of ordinary size.
func (s *scan) release() {
	s.t.reset(nil)
	s.page, s.f, s.anchorAlt = nil, nil, nil
	s.decoded, s.arena, s.text.out, s.strings = kept(s.decoded), kept(s.arena), kept(s.text.out), kept(s.strings)
	s.robots, s.robotsHead = s.robots[:0], s.robotsHead[:0]
	clear(s.fixups)
	s.fixups = s.fixups[:0]
	s.headings[0], s.headings[1] = s.headings[0][:0], s.headings[1][:0]
	s.hreflang, s.og, s.twitter = s.hreflang[:0], s.og[:0], s.twitter[:0]
	s.bots, s.jsonLD = nil, nil
	s.foreign = s.foreign[:0]
	s.templates = s.templates[:0]
	if cap(s.templates) > 1024 {
		s.templates = nil
	}
}

func kept(b []byte) []byte {
	if cap(b) > maxPooled {
		return nil
	}
	return b[:0]
}

// document reads the whole page.
func (s *scan) document(buf []byte) {
	t := &s.t
	t.reset(buf)
	t.cdata = s.xml
	for {
		switch t.next() {
		case tokenText:
			s.characters(t.buf[t.data.start:t.data.end], false)
		case tokenRaw:
			s.characters(t.buf[t.data.start:t.data.end], true)
		case tokenStart:
			s.capture = captureNone
			s.startTag()
			if s.lateCharset != "" {
				return
			}
			t.cdata = s.xml || s.foreignCurrent()
		case tokenEnd:
			s.capture = captureNone
			s.endTag()
			t.cdata = s.xml || s.foreignCurrent()
		case tokenEOF:
			s.closeAnchor()
			s.closeHeading()
			return
		}
	}
}

// characters takes text; raw says that it holds no references.
func (s *scan) characters(b []byte, raw bool) {
	if s.capture != captureNone {
		s.captured(b)
		return
	}
	if s.inHead && s.hidden == 0 && !s.noscript && len(s.foreign) == 0 {
		if isBlank(b) {
			return
		}
		s.leaveHead()
	}
	if !s.mute {
		s.text.write(b, raw)
	}
}

func isBlank(b []byte) bool {
	for _, c := range b {
		if !isSpace(c) {
			return false
		}
	}
	return true
}

// captured takes the text of a raw element.
func (s *scan) captured(b []byte) {
	if s.t.pos >= len(s.t.buf) {
		s.f.Notes |= NoteOpenRawText
	}
	switch s.capture {
	case captureTitle:
		if s.f.TitleCount == 1 {
			s.setText(&s.f.Title, s.decodeValue(b, false), MaxTitle)
		}
	case captureJSONLD:
		types, valid, cut := scanJSONLD(b)
		if cut {
			s.f.Notes |= NoteFactsCut
		}
		s.jsonLD = append(s.jsonLD, JSONLD{types, valid, len(b)})
	}
}

func (s *scan) updateMute() {
	s.mute = s.hidden > 0 || s.noscript || s.frameset || s.foreignMute()
}

func (s *scan) leaveHead() {
	s.inHead = false
	s.text.wordBreak()
}

// indexed reports whether facts count here: not in a template, and not in noscript.
func (s *scan) indexed() bool { return s.hidden == 0 && !s.noscript }

// attr is the value of an attribute with references decoded; nil when absent, never nil when present.
func (s *scan) attr(id attrID) []byte {
	if !s.t.has(id) {
		return nil
	}
	v := s.decodeValue(s.t.value(id), true)
	if v == nil {
		v = []byte{}
	}
	return v
}

// decodeValue decodes references into the arena, or returns b itself when there are none.
func (s *scan) decodeValue(b []byte, inAttribute bool) []byte {
	if !needsDecoding(b) {
		return b
	}
	// Decoding at most doubles a value (a two-rune entity, or U+FFFD for NUL: tripled). Old arenas stay alive through the slices into them.
	if cap(s.arena)-len(s.arena) < 3*len(b) {
		s.arena = make([]byte, 0, max(2*cap(s.arena), 4096, 3*len(b)))
	}
	start := len(s.arena)
	s.arena = appendDecoded(s.arena, b, inAttribute)
	return s.arena[start:len(s.arena):len(s.arena)]
}

// appendCollapsed appends b trimmed, with each run of ASCII white space as one space.
func appendCollapsed(dst, b []byte) []byte {
	b = trimSpace(b)
	for i := 0; i < len(b); {
		start := i
		for i < len(b) && !isSpace(b[i]) {
			i++
		}
		dst = append(dst, b[start:i]...)
		if i < len(b) {
			dst = append(dst, ' ')
			i = skipSpace(b, i)
		}
	}
	return dst
}

// cutText cuts b to at most limit bytes at a character's edge.
func cutText(b []byte, limit int) []byte {
	if len(b) <= limit {
		return b
	}
	for limit > 0 && !utf8.RuneStart(b[limit]) {
		limit--
	}
	return b[:limit]
}

// keep copies b, white space collapsed, into the page's strings.
func (s *scan) keep(b []byte, limit int) span {
	start := len(s.strings)
	s.strings = appendCollapsed(s.strings, b)
	if cut := cutText(s.strings[start:], limit); len(cut) < len(s.strings)-start {
		s.strings = s.strings[:start+len(cut)]
		s.f.Notes |= NoteFactsCut
	}
	return span{start, len(s.strings)}
}

func (s *scan) setText(dst *string, b []byte, limit int) {
	s.fixups = append(s.fixups, fixup{dst, s.keep(b, limit)})
}

// setURL keeps a URL as written, or leaves it out when it is longer than MaxURL.
func (s *scan) setURL(dst *string, href []byte) {
	s.fixups = append(s.fixups, fixup{dst, s.keepURL(href)})
}

func (s *scan) keepURL(href []byte) span {
	start := len(s.strings)
	if len(href) > MaxURL {
		s.f.Notes |= NoteFactsCut
	} else {
		s.strings = append(s.strings, href...)
	}
	return span{start, len(s.strings)}
}

// finish turns what was collected into Facts.
func (s *scan) finish() {
	f := s.f
	s.text.wordBreak()
	f.Words = s.text.words
	f.TextBytes = len(s.text.out)
	f.Simhash = s.text.sim.sum()
	if len(s.text.out) > 0 {
		putHash(&f.ContentHash, s.text.out)
	}
	if len(s.robots) > 0 {
		s.fixups = append(s.fixups, fixup{&f.Robots, s.keep(s.robots, len(s.robots))})
	}
	if len(s.robotsHead) > 0 {
		s.fixups = append(s.fixups, fixup{&f.RobotsHeader, s.keep(s.robotsHead, len(s.robotsHead))})
	}
	// One copy holds every string.
	all := string(s.strings)
	cut := func(at span) string { return all[at.start:at.end] }
	for _, x := range s.fixups {
		*x.dst = cut(x.at)
	}
	if n := len(s.headings[0]) + len(s.headings[1]); n > 0 {
		texts := make([]string, 0, n)
		for _, level := range s.headings {
			for _, at := range level {
				texts = append(texts, cut(at))
			}
		}
		if n1 := len(s.headings[0]); n1 > 0 {
			f.H1 = texts[:n1:n1]
		}
		if n1 := len(s.headings[0]); n1 < n {
			f.H2 = texts[n1:]
		}
	}
	if n := len(s.og) + len(s.twitter); n > 0 {
		pairs := make([]Pair, 0, n)
		for _, p := range s.og {
			pairs = append(pairs, Pair{cut(p.name), cut(p.value)})
		}
		for _, p := range s.twitter {
			pairs = append(pairs, Pair{cut(p.name), cut(p.value)})
		}
		if n1 := len(s.og); n1 > 0 {
			f.OG = pairs[:n1:n1]
		}
		if n1 := len(s.og); n1 < n {
			f.Twitter = pairs[n1:]
		}
	}
	if len(s.hreflang) > 0 {
		f.Hreflang = make([]HreflangLink, 0, len(s.hreflang))
		for _, p := range s.hreflang {
			f.Hreflang = append(f.Hreflang, HreflangLink{cut(p.name), cut(p.value)})
		}
	}
	f.BotRobots, f.JSONLD = s.bots, s.jsonLD
}
