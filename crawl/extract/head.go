package extract

// linkElement takes a link element.
func (s *scan) linkElement() {
	rels := parseRel(s.attr(attrRel))
	href := s.attr(attrHref)
	if rels&relResource != 0 {
		s.srcset(attrImageSrcset)
	}
	if href == nil || rels == 0 {
		return
	}
	href = trimURL(href)
	f, facts := s.f, !s.noscript
	if rels&relCanonical != 0 {
		if facts {
			s.canonical(href)
		}
		s.addLink(Canonical, href)
	}
	if len(href) == 0 {
		return // an empty href of any other link does nothing
	}
	if rels&relAlternate != 0 && rels&relStylesheet == 0 {
		lang := trimSpace(s.attr(attrHreflang))
		if len(lang) > 0 && facts {
			s.addHreflang(lang, href)
		}
		if l := s.addLink(alternateKind(s.attr(attrType), len(lang) > 0), href); l != nil && len(lang) > 0 {
			l.Lang = string(lang)
		}
	}
	if rels&relNext != 0 {
		if facts && !s.haveNext {
			s.haveNext = true
			s.setURL(&f.Next, href)
		}
		s.addLink(Next, href)
	}
	if rels&relPrev != 0 {
		if facts && !s.havePrev {
			s.havePrev = true
			s.setURL(&f.Prev, href)
		}
		s.addLink(Prev, href)
	}
	if rels&relAMP != 0 {
		if facts && !s.haveAMP {
			s.haveAMP = true
			s.setURL(&f.AMP, href)
		}
		s.addLink(AMP, href)
	}
	if rels&relStylesheet != 0 {
		s.addLink(Stylesheet, href)
	}
	if rels&relIcon != 0 {
		s.addLink(Icon, href)
	}
	if rels&relResource != 0 {
		s.addLink(Resource, href)
	}
}

// canonical notes one link rel=canonical. The first in the head wins over any outside it.
func (s *scan) canonical(href []byte) {
	f := s.f
	f.CanonicalCount++
	if !s.inHead {
		f.CanonicalInBody++
		f.Notes |= NoteLateHead
	}
	if s.inHead && !s.haveHeadCanonical {
		s.haveHeadCanonical, s.haveCanonical = true, true
		s.setURL(&f.Canonical, href)
	} else if !s.haveCanonical {
		s.haveCanonical = true
		s.setURL(&f.Canonical, href)
	}
}

func (s *scan) addHreflang(lang, href []byte) {
	if len(s.hreflang) >= MaxHreflang || len(lang) > MaxHeading {
		s.f.Notes |= NoteFactsCut
		return
	}
	s.hreflang = append(s.hreflang, pairSpan{s.keep(lang, MaxHeading), s.keepURL(href)})
}

// meta takes a meta element.
func (s *scan) meta() {
	if label := s.attr(attrCharset); label != nil && !s.noscript {
		s.metaCharset(trimSpace(label))
	}
	content := s.attr(attrContent)
	if content == nil {
		return
	}
	equiv := s.attr(attrHTTPEquiv)
	if equalFold(equiv, "refresh") {
		s.refresh(content, false)
	}
	if s.noscript {
		return
	}
	if equalFold(equiv, "content-type") && !s.t.has(attrCharset) {
		s.metaCharset([]byte(metaContentCharset(content)))
	}
	name := trimSpace(s.attr(attrName))
	property := trimSpace(s.attr(attrProperty))
	if len(property) > 0 && !s.social(property, content) || len(property) == 0 {
		s.namedMeta(name, content)
	}
}

// metaCharset notes that a meta element names another encoding than the one the page is read in.
func (s *scan) metaCharset(label []byte) {
	if s.tentative == "" || len(label) == 0 || !knownCharset(string(label)) {
		return
	}
	late := metaLabel(string(label))
	if _, name := lookupCharset(late); name != s.tentative {
		s.lateCharset = late
	}
	s.tentative = "" // the first one settles it
}

// namedMeta takes a meta element with a name attribute.
func (s *scan) namedMeta(name, content []byte) {
	if len(name) == 0 {
		return
	}
	f := s.f
	switch lowerTable[name[0]] {
	case 'd':
		if equalFold(name, "description") {
			f.DescriptionCount++
			if f.DescriptionCount == 1 {
				s.setText(&f.Description, content, MaxDescription)
			}
			return
		}
	case 'v':
		if equalFold(name, "viewport") {
			if !s.haveViewport {
				s.haveViewport = true
				s.setText(&f.Viewport, content, MaxHeading)
			}
			return
		}
	}
	if !s.social(name, content) {
		s.robotsMeta(name, content)
	}
}

// social keeps an Open Graph or Twitter property and reports whether it was one.
func (s *scan) social(name, content []byte) bool {
	var list *[]pairSpan
	switch {
	case hasPrefixFold(name, "og:"):
		list = &s.og
	case hasPrefixFold(name, "twitter:"):
		list = &s.twitter
	default:
		return false
	}
	if len(*list) >= MaxPairs || len(name) > MaxHeading {
		s.f.Notes |= NoteFactsCut
		return true
	}
	at := s.keep(name, MaxHeading)
	for i := at.start; i < at.end; i++ {
		s.strings[i] = lowerTable[s.strings[i]]
	}
	*list = append(*list, pairSpan{at, s.keep(content, MaxDescription)})
	return true
}

// refresh takes a refresh value, of a header or a meta element. The first that does anything counts.
func (s *scan) refresh(value []byte, header bool) {
	delay, target, ok := parseRefresh(value)
	if !ok {
		return
	}
	f := s.f
	if !f.HasRefresh && (header || !s.noscript) {
		f.HasRefresh, f.RefreshDelay = true, delay
		s.setURL(&f.RefreshURL, target)
	}
	if len(target) > 0 {
		if l := s.addLink(Refresh, target); l != nil && header {
			l.FromHeader, l.InHead = true, false
		}
	}
}

// addLink adds a link, or counts it when there are too many. The pointer is valid until the next call.
func (s *scan) addLink(kind LinkKind, href []byte) *Link {
	f := s.f
	if kind.Follow() {
		f.LinkCount++
		if f.LinkCount > s.maxLinks {
			f.Notes |= NoteLinksCut
			return nil
		}
	} else {
		if hasPrefixFold(href, "data:") {
			return nil // holds its content, there is nothing to fetch
		}
		f.ResourceCount++
		if f.ResourceCount > s.maxLinks {
			f.Notes |= NoteLinksCut
			return nil
		}
	}
	p := s.page
	p.Links = append(p.Links, Link{Href: href, Kind: kind, InHead: s.inHead, NoScript: s.noscript})
	return &p.Links[len(p.Links)-1]
}

// addRelLink adds a hyperlink with the rel of its element.
func (s *scan) addRelLink(kind LinkKind, href []byte) *Link {
	l := s.addLink(kind, trimURL(href))
	if l != nil && s.t.has(attrRel) {
		rels := parseRel(s.attr(attrRel))
		l.Nofollow = rels&relNofollow != 0
		l.UGC = rels&relUGC != 0
		l.Sponsored = rels&relSponsored != 0
	}
	return l
}
