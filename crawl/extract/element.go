package extract

import "bytes"

var (
	nameTitle    = []byte("title")
	nameTextarea = []byte("textarea")
	nameStyle    = []byte("style")
	nameXmp      = []byte("xmp")
	nameIframe   = []byte("iframe")
	nameNoembed  = []byte("noembed")
	nameNoframes = []byte("noframes")
)

// rawContent switches the tokenizer for the contents of the element just started.
func (s *scan) rawContent(mode rawMode, name []byte, capture captureMode) {
	if s.xml && s.t.selfClosing {
		return
	}
	s.t.raw, s.t.rawName, s.capture = mode, name, capture
}

// startTag takes a start tag.
func (s *scan) startTag() {
	t := &s.t
	if len(s.foreign) > 0 && !s.foreignStart() {
		return
	}
	id, flags := t.tag, t.flags
	if s.frameset {
		s.framesetTag()
		return
	}
	if s.inHead && flags&flagHead == 0 && s.indexed() {
		if id == tagFrameset {
			s.frameset = true
			s.f.Notes |= NoteFrameset
			s.updateMute()
			return
		}
		s.leaveHead()
	}
	if flags&flagBlock != 0 {
		s.text.wordBreak()
	}
	if flags&flagVoid == 0 {
		s.open[id]++
	}
	if s.heading != tagOther && flags&flagScope != 0 {
		s.headingDepth++
	}
	switch id {
	case tagOther, tagBlock, tagInline, tagVoid, tagP, tagBr:
		return
	case tagSVG, tagMath:
		if !t.selfClosing {
			s.pushForeign(id == tagSVG)
		}
	case tagTemplate:
		mode := s.attr(attrShadowRoot)
		hides := !equalFold(mode, "open") && !equalFold(mode, "closed")
		s.templates = append(s.templates, hides)
		if hides {
			s.hidden++
			s.updateMute()
		}
	case tagNoscript:
		if !s.noscript && s.hidden == 0 {
			s.noscript, s.noscriptAt = true, len(s.templates)
			s.updateMute()
		}
	case tagBody:
		s.noscript = s.noscript && s.hidden > 0
		s.inHead = s.inHead && s.hidden > 0
		s.updateMute()
	case tagTitle:
		capture := captureSkip
		if s.indexed() {
			s.f.TitleCount++
			capture = captureTitle
		}
		s.rawContent(rawRCDATA, nameTitle, capture)
	case tagTextarea:
		s.rawContent(rawRCDATA, nameTextarea, captureSkip)
	case tagStyle:
		s.rawContent(rawText, nameStyle, captureSkip)
	case tagXmp:
		s.rawContent(rawText, nameXmp, captureNone)
	case tagNoembed:
		s.rawContent(rawText, nameNoembed, captureSkip)
	case tagNoframes:
		s.rawContent(rawText, nameNoframes, captureSkip)
	case tagPlaintext:
		s.rawContent(rawPlaintext, nil, captureNone)
	case tagIframe:
		s.element(id)
		s.rawContent(rawText, nameIframe, captureSkip)
	case tagScript:
		s.script()
	default:
		s.element(id)
	}
}

// framesetTag takes a start tag in a frameset, where only frames and noframes mean anything.
func (s *scan) framesetTag() {
	switch s.t.tag {
	case tagFrame:
		if src := s.attr(attrSrc); src != nil {
			s.addLink(Frame, trimURL(src))
		}
	case tagNoframes:
		s.rawContent(rawText, nameNoframes, captureSkip)
	}
}

func (s *scan) script() {
	capture := captureSkip
	if s.hidden == 0 {
		if src := s.attr(attrSrc); len(src) > 0 {
			s.addLink(Script, trimURL(src))
		}
		if mime := s.attr(attrType); s.indexed() && equalFold(mediaTypeBytes(mime), "application/ld+json") {
			s.f.JSONLDCount++
			capture = captureJSONLD
			if s.f.JSONLDCount > MaxJSONLD {
				capture = captureSkip
				s.f.Notes |= NoteFactsCut
			}
		}
	}
	s.rawContent(rawScript, scriptName, capture)
}

func mediaTypeBytes(b []byte) []byte {
	if i := bytes.IndexByte(b, ';'); i >= 0 {
		b = b[:i]
	}
	return trimSpace(b)
}

// element takes an HTML element whose attributes matter and whose contents are ordinary.
func (s *scan) element(id tagID) {
	if s.hidden > 0 {
		return
	}
	switch id {
	case tagA:
		s.anchorStart()
	case tagArea:
		if href := s.attr(attrHref); href != nil {
			s.addRelLink(Area, href)
		}
	case tagIframe:
		if src := s.attr(attrSrc); len(src) > 0 {
			s.addLink(Iframe, trimURL(src))
		}
	case tagImg, tagImage:
		s.image()
	case tagInput:
		if src := s.attr(attrSrc); len(src) > 0 && equalFold(s.attr(attrType), "image") {
			s.addLink(Image, trimURL(src))
		}
	case tagSource:
		s.resource(Media, attrSrc)
		s.srcset(attrSrcset)
	case tagAudio, tagTrack:
		s.resource(Media, attrSrc)
	case tagVideo:
		s.resource(Media, attrSrc)
		s.resource(Media, attrPoster)
	case tagEmbed:
		s.resource(Embed, attrSrc)
	case tagObject:
		s.resource(Embed, attrData)
	case tagForm:
		s.resource(Form, attrAction)
	case tagLink:
		s.linkElement()
	case tagMeta:
		s.meta()
	case tagBase:
		if href := s.attr(attrHref); href != nil && !s.haveBase && !s.noscript {
			s.haveBase = true
			s.setURL(&s.f.Base, trimURL(href))
		}
	case tagHTML:
		lang := s.attr(attrLang)
		if lang == nil && s.xml { // in HTML it is an attribute without meaning
			lang = s.attr(attrXMLLang)
		}
		if lang != nil && !s.haveLang && !s.noscript {
			s.haveLang = true
			s.setText(&s.f.Lang, lang, MaxHeading)
		}
	case tagH1, tagH2, tagH3:
		s.headingStart(id)
	}
}

func (s *scan) resource(kind LinkKind, id attrID) {
	if v := trimURL(s.attr(id)); len(v) > 0 {
		s.addLink(kind, v)
	}
}

func (s *scan) srcset(id attrID) {
	if v := s.attr(id); len(v) > 0 {
		eachSrcset(v, func(url []byte) { s.addLink(Srcset, trimURL(url)) })
	}
}

func (s *scan) image() {
	if !s.noscript {
		s.f.Images++
		switch {
		case !s.t.has(attrAlt):
			s.f.ImagesNoAlt++
		case s.anchor >= 0 && s.anchorAlt == nil:
			s.anchorAlt = s.attr(attrAlt)
		}
	}
	s.resource(Image, attrSrc)
	s.srcset(attrSrcset)
}

// endTag takes an end tag.
func (s *scan) endTag() {
	t := &s.t
	if len(s.foreign) > 0 && s.foreignEnd() {
		return
	}
	if s.frameset {
		return
	}
	id, flags := t.tag, t.flags
	if flags&flagBlock != 0 {
		s.text.wordBreak()
	}
	if s.open[id] > 0 {
		s.open[id]--
	}
	switch id {
	case tagA:
		s.closeAnchor()
	case tagBody, tagHTML, tagBr:
		if s.inHead && s.indexed() {
			s.leaveHead()
		}
	case tagTemplate:
		if n := len(s.templates); n > 0 {
			if s.templates[n-1] {
				s.hidden--
			}
			s.templates = s.templates[:n-1]
			if s.noscript && n-1 < s.noscriptAt {
				s.noscript = false
			}
			s.updateMute()
		}
	case tagNoscript:
		if s.noscript && s.hidden == 0 {
			s.noscript = false
			s.updateMute()
		}
	}
	if s.heading != tagOther && s.indexed() {
		switch {
		case flags&flagHeading != 0:
			s.closeHeading()
		case flags&flagScope == 0:
		case s.headingDepth == 0:
			s.closeHeading()
		default:
			s.headingDepth--
		}
	}
}

func (s *scan) anchorStart() {
	s.closeAnchor()
	href := s.attr(attrHref)
	if href == nil {
		return
	}
	if s.addRelLink(Anchor, href) != nil && !s.noscript {
		s.anchor, s.anchorFrom, s.anchorAlt = len(s.page.Links)-1, len(s.text.out), nil
	}
}

func (s *scan) closeAnchor() {
	if s.anchor < 0 {
		return
	}
	text := bytes.TrimLeft(s.text.out[s.anchorFrom:len(s.text.out):len(s.text.out)], " ")
	if len(text) == 0 {
		text = trimSpace(s.anchorAlt)
	}
	if len(text) > 0 {
		s.page.Links[s.anchor].Text = cutText(text, MaxLinkText)
	}
	s.anchor, s.anchorAlt = -1, nil
}

func (s *scan) headingStart(id tagID) {
	if s.noscript {
		return
	}
	s.closeHeading()
	switch id {
	case tagH1:
		s.f.H1Count++
	case tagH2:
		s.f.H2Count++
	default:
		return
	}
	s.heading, s.headingFrom, s.headingDepth = id, len(s.text.out), 0
}

func (s *scan) closeHeading() {
	if s.heading == tagOther {
		return
	}
	level := &s.headings[0]
	if s.heading == tagH2 {
		level = &s.headings[1]
	}
	s.heading = tagOther
	if len(*level) >= MaxHeadings {
		s.f.Notes |= NoteFactsCut
		return
	}
	*level = append(*level, s.keep(s.text.out[s.headingFrom:], MaxHeading))
}
