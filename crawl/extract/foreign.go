package extract

// maxForeign bounds the stack of open foreign elements; deeper ones are only counted.
const maxForeign = 128

// pointKind says where HTML may stand inside foreign content (HTML standard section 13.2.6).
type pointKind uint8

const (
	pointNone   pointKind = iota
	pointHTML             // foreignObject, desc, title; annotation-xml of an HTML type
	pointText             // MathML mi, mo, mn, ms, mtext
	pointAnnSVG           // annotation-xml of another type: only svg leaves MathML
)

// foreignNode is an open SVG or MathML element.
type foreignNode struct {
	key   uint64 // its name
	svg   bool
	point pointKind
	shows bool // text in it is visible
	inner int  // HTML elements opened in it as an integration point, about
}

// foreignCurrent reports whether the current node is an SVG or MathML element.
func (s *scan) foreignCurrent() bool {
	n := len(s.foreign)
	return n > 0 && (s.foreign[n-1].inner <= 0)
}

// foreignMute reports whether text is hidden by SVG.
func (s *scan) foreignMute() bool {
	n := len(s.foreign)
	return n > 0 && !s.foreign[n-1].shows
}

// foreignStart takes a start tag while SVG or MathML is open. It reports true when the tag is HTML after all.
func (s *scan) foreignStart() bool {
	t := &s.t
	top := &s.foreign[len(s.foreign)-1]
	switch {
	case top.point == pointHTML,
		top.point == pointText && t.tag != tagMglyph && t.tag != tagMalignmark,
		top.point == pointAnnSVG && t.tag == tagSVG:
		if t.flags&flagVoid == 0 && t.tag != tagSVG && t.tag != tagMath {
			top.inner++
		}
		return true
	case t.flags&flagBreakout != 0,
		t.tag == tagFont && (t.has(attrColor) || t.has(attrFace) || t.has(attrSize)):
		s.foreignOver = 0
		s.cutForeign()
		return true
	}
	if top.svg {
		s.svgLinks()
	}
	if !t.selfClosing {
		s.pushForeign(top.svg)
	}
	return false
}

// cutForeign closes foreign elements down to the innermost integration point.
func (s *scan) cutForeign() {
	n := len(s.foreign)
	for n > 0 && (s.foreign[n-1].point == pointNone || s.foreign[n-1].point == pointAnnSVG) {
		n--
	}
	s.foreign = s.foreign[:n]
	s.updateMute()
}

func (s *scan) pushForeign(svg bool) {
	if len(s.foreign) >= maxForeign {
		s.foreignOver++
		return
	}
	t := &s.t
	node := foreignNode{key: t.key, svg: svg, shows: !svg}
	if n := len(s.foreign); n > 0 && svg && s.foreign[n-1].point == pointNone {
		node.shows = s.foreign[n-1].shows
	}
	if svg {
		switch t.tag {
		case tagForeignObject:
			node.point, node.shows = pointHTML, true
		case tagDesc, tagTitle:
			node.point, node.shows = pointHTML, false
		}
	} else {
		switch t.tag {
		case tagMathText:
			node.point = pointText
		case tagAnnotationXML:
			node.point = pointAnnSVG
			if enc := s.attr(attrEncoding); equalFold(enc, "text/html") || equalFold(enc, "application/xhtml+xml") {
				node.point = pointHTML
			}
		}
	}
	s.foreign = append(s.foreign, node)
	s.updateMute()
}

// foreignEnd takes an end tag while SVG or MathML is open. It reports true when the tag is done with.
func (s *scan) foreignEnd() bool {
	t := &s.t
	top := &s.foreign[len(s.foreign)-1]
	if s.foreignOver > 0 {
		s.foreignOver--
		return true
	}
	if (t.tag == tagBr || t.tag == tagP) && (top.point == pointNone || top.point == pointAnnSVG) {
		s.cutForeign()
		return false
	}
	for i := len(s.foreign) - 1; i >= 0; i-- {
		n := &s.foreign[i]
		if n.key == t.key {
			s.foreign = s.foreign[:i]
			s.updateMute()
			return true
		}
		// HTML inside an integration point does not see what is outside. The roots do: pages that forget to close something
		// inside an SVG mean its end.
		if (n.point == pointHTML || n.point == pointText) && t.tag != tagSVG && t.tag != tagMath {
			break
		}
	}
	if top.point == pointHTML || top.point == pointText {
		if top.inner > 0 && t.flags&flagVoid == 0 {
			top.inner--
		}
		return false
	}
	if s.open[t.tag] > 0 {
		s.cutForeign() // the end of an HTML element around it closes an SVG left open
		return false
	}
	return true
}

// svgLinks reads the links of an SVG element. href wins over xlink:href (SVG 2, section 16.1.6).
func (s *scan) svgLinks() {
	if s.hidden > 0 {
		return
	}
	href := s.attr(attrHref)
	if href == nil {
		href = s.attr(attrXlinkHref)
	}
	if href == nil {
		return
	}
	switch s.t.tag {
	case tagA:
		s.addLink(Anchor, trimURL(href))
	case tagImage:
		s.addLink(Image, trimURL(href))
	case tagScript:
		s.addLink(Script, trimURL(href))
	}
}
