package extract

// tagID names the elements that matter here; every other element is tagOther.
type tagID uint8

const (
	tagOther tagID = iota
	tagA
	tagAnnotationXML
	tagArea
	tagAudio
	tagBase
	tagBody
	tagBr
	tagDesc
	tagEmbed
	tagFont
	tagForeignObject
	tagForm
	tagFrame
	tagFrameset
	tagH1
	tagH2
	tagH3
	tagHead
	tagHTML
	tagIframe
	tagImage
	tagImg
	tagInput
	tagLink
	tagMalignmark
	tagMath
	tagMathText
	tagMeta
	tagMglyph
	tagNoembed
	tagNoframes
	tagNoscript
	tagObject
	tagP
	tagPlaintext
	tagScript
	tagSource
	tagStyle
	tagSVG
	tagTemplate
	tagTextarea
	tagTitle
	tagTrack
	tagVideo
	tagXmp
	tagBlock    // any other block element
	tagInline   // any other phrasing element that leaves foreign content
	tagVoid     // any other void element
	tagHeadVoid // basefont, bgsound
	tagCount
)

// tagFlags are the properties of an element that the scan asks for on every tag.
type tagFlags uint16

const (
	flagBlock    tagFlags = 1 << iota // separates words
	flagHead                          // may stand in head without ending it
	flagBreakout                      // its start tag ends foreign content (HTML standard 13.2.6.5)
	flagAttrs                         // its attributes are read
	flagScope                         // its end tag closes a heading left open inside
	flagHeading                       // h1 to h6
	flagVoid                          // has no end tag
)

type tagEntry struct {
	key   uint64
	id    tagID
	flags tagFlags
}

const (
	tagTableBits = 9
	tagTableMask = 1<<tagTableBits - 1
	hashFactor   = 0x9E3779B97F4A7C15
)

// tagTable is an open-addressed table over packed names of up to eight bytes. It is built once and never written again.
var tagTable = buildTagTable()

// packName packs up to eight lower-case bytes, the last one lowest.
func packName(name string) uint64 {
	var k uint64
	for i := 0; i < len(name); i++ {
		k = k<<8 | uint64(name[i])
	}
	return k
}

func tagSlot(key uint64) uint64 { return key * hashFactor >> (64 - tagTableBits) }

func buildTagTable() *[1 << tagTableBits]tagEntry {
	t := new([1 << tagTableBits]tagEntry)
	add := func(id tagID, flags tagFlags, names ...string) {
		for _, name := range names {
			key := packName(name)
			i := tagSlot(key)
			for t[i].key != 0 {
				i = (i + 1) & tagTableMask
			}
			t[i] = tagEntry{key, id, flags}
		}
	}
	const void = flagVoid
	add(tagA, flagAttrs, "a")
	add(tagArea, flagAttrs|void, "area")
	add(tagAudio, flagAttrs, "audio")
	add(tagBase, flagAttrs|flagHead|void, "base")
	add(tagBody, flagBlock|flagBreakout|flagScope, "body")
	add(tagBr, flagBlock|flagBreakout|void, "br")
	add(tagDesc, 0, "desc")
	add(tagEmbed, flagAttrs|flagBreakout|void, "embed")
	add(tagFont, flagAttrs, "font")
	add(tagForm, flagAttrs|flagBlock|flagScope, "form")
	add(tagFrame, flagAttrs|flagBlock|void, "frame")
	add(tagFrameset, flagBlock, "frameset")
	add(tagH1, flagBlock|flagBreakout|flagHeading, "h1")
	add(tagH2, flagBlock|flagBreakout|flagHeading, "h2")
	add(tagH3, flagBlock|flagBreakout|flagHeading, "h3", "h4", "h5", "h6")
	add(tagHead, flagBlock|flagBreakout|flagHead, "head")
	add(tagHTML, flagAttrs|flagBlock|flagHead|flagScope, "html")
	add(tagIframe, flagAttrs, "iframe")
	add(tagImage, flagAttrs|void, "image")
	add(tagImg, flagAttrs|flagBreakout|void, "img")
	add(tagInput, flagAttrs|void, "input")
	add(tagLink, flagAttrs|flagHead|void, "link")
	add(tagMath, 0, "math")
	add(tagMathText, 0, "mi", "mo", "mn", "ms", "mtext")
	add(tagMglyph, 0, "mglyph")
	add(tagMeta, flagAttrs|flagHead|flagBreakout|void, "meta")
	add(tagNoembed, 0, "noembed")
	add(tagNoframes, flagHead, "noframes")
	add(tagNoscript, flagHead, "noscript")
	add(tagObject, flagAttrs, "object")
	add(tagP, flagBlock|flagBreakout, "p")
	add(tagScript, flagAttrs|flagHead, "script")
	add(tagSource, flagAttrs|void, "source")
	add(tagStyle, flagHead, "style")
	add(tagSVG, 0, "svg")
	add(tagTemplate, flagAttrs|flagHead, "template")
	add(tagTextarea, flagBlock, "textarea")
	add(tagTitle, flagHead, "title")
	add(tagTrack, flagAttrs|void, "track")
	add(tagVideo, flagAttrs, "video")
	add(tagXmp, flagBlock, "xmp")
	add(tagBlock, flagBlock|flagBreakout|flagScope, "center", "div", "dl", "menu", "ol", "pre", "table", "ul", "listing")
	add(tagBlock, flagBlock|flagBreakout|flagVoid, "hr")
	add(tagBlock, flagBlock|flagBreakout|flagScope, "dd", "dt", "li")
	add(tagBlock, flagBlock|flagScope, "address", "article", "aside", "details", "dialog", "dir", "fieldset", "figure", "footer",
		"header", "hgroup", "main", "nav", "search", "section", "summary", "button", "caption", "tbody", "td", "tfoot", "th", "thead", "tr", "select", "marquee")
	add(tagBlock, flagBlock, "legend", "optgroup", "option", "canvas", "rp", "rt")
	add(tagInline, flagBreakout, "b", "big", "code", "em", "i", "nobr", "ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "tt", "u", "var")
	add(tagVoid, flagVoid, "wbr", "param", "keygen")
	add(tagVoid, flagVoid|flagBlock, "col")
	add(tagHeadVoid, flagVoid|flagHead, "basefont", "bgsound")
	return t
}

// lookupTag finds an element by its packed name (names of at most eight bytes).
func lookupTag(key uint64) (tagID, tagFlags) {
	for i := tagSlot(key); ; i = (i + 1) & tagTableMask {
		e := &tagTable[i]
		if e.key == key {
			return e.id, e.flags
		}
		if e.key == 0 {
			return tagOther, 0
		}
	}
}

// lookupLongTag finds an element whose name has more than eight bytes, in any case.
func lookupLongTag(name []byte) (tagID, tagFlags) {
	var buf [16]byte
	if len(name) > len(buf) {
		return tagOther, 0
	}
	for i, c := range name {
		buf[i] = lowerTable[c]
	}
	switch string(buf[:len(name)]) {
	case "plaintext":
		return tagPlaintext, flagBlock
	case "blockquote":
		return tagBlock, flagBlock | flagBreakout | flagScope
	case "figcaption":
		return tagBlock, flagBlock | flagScope
	case "foreignobject":
		return tagForeignObject, 0
	case "annotation-xml":
		return tagAnnotationXML, flagAttrs
	case "malignmark":
		return tagMalignmark, 0
	}
	return tagOther, 0
}

// attrID names the attributes that are read.
type attrID uint8

const (
	attrAction attrID = iota
	attrAlt
	attrCharset
	attrColor
	attrContent
	attrData
	attrEncoding
	attrFace
	attrHref
	attrHreflang
	attrHTTPEquiv
	attrImageSrcset
	attrLang
	attrMedia
	attrName
	attrPoster
	attrProperty
	attrRel
	attrShadowRoot
	attrSize
	attrSrc
	attrSrcset
	attrType
	attrXlinkHref
	attrXMLLang
	attrCount
	attrNone = attrCount
)

const (
	keyAlt      = 'a'<<16 | 'l'<<8 | 't'
	keyRel      = 'r'<<16 | 'e'<<8 | 'l'
	keySrc      = 's'<<16 | 'r'<<8 | 'c'
	keyHref     = 'h'<<24 | 'r'<<16 | 'e'<<8 | 'f'
	keyType     = 't'<<24 | 'y'<<16 | 'p'<<8 | 'e'
	keyName     = 'n'<<24 | 'a'<<16 | 'm'<<8 | 'e'
	keyLang     = 'l'<<24 | 'a'<<16 | 'n'<<8 | 'g'
	keyData     = 'd'<<24 | 'a'<<16 | 't'<<8 | 'a'
	keyFace     = 'f'<<24 | 'a'<<16 | 'c'<<8 | 'e'
	keySize     = 's'<<24 | 'i'<<16 | 'z'<<8 | 'e'
	keyMedia    = 'm'<<32 | 'e'<<24 | 'd'<<16 | 'i'<<8 | 'a'
	keyColor    = 'c'<<32 | 'o'<<24 | 'l'<<16 | 'o'<<8 | 'r'
	keyAction   = 'a'<<40 | 'c'<<32 | 't'<<24 | 'i'<<16 | 'o'<<8 | 'n'
	keyPoster   = 'p'<<40 | 'o'<<32 | 's'<<24 | 't'<<16 | 'e'<<8 | 'r'
	keySrcset   = 's'<<40 | 'r'<<32 | 'c'<<24 | 's'<<16 | 'e'<<8 | 't'
	keyContent  = 'c'<<48 | 'o'<<40 | 'n'<<32 | 't'<<24 | 'e'<<16 | 'n'<<8 | 't'
	keyCharset  = 'c'<<48 | 'h'<<40 | 'a'<<32 | 'r'<<24 | 's'<<16 | 'e'<<8 | 't'
	keyProperty = 'p'<<56 | 'r'<<48 | 'o'<<40 | 'p'<<32 | 'e'<<24 | 'r'<<16 | 't'<<8 | 'y'
	keyHreflang = 'h'<<56 | 'r'<<48 | 'e'<<40 | 'f'<<32 | 'l'<<24 | 'a'<<16 | 'n'<<8 | 'g'
	keyEncoding = 'e'<<56 | 'n'<<48 | 'c'<<40 | 'o'<<32 | 'd'<<24 | 'i'<<16 | 'n'<<8 | 'g'
	keyXMLLang  = 'x'<<56 | 'm'<<48 | 'l'<<40 | ':'<<32 | 'l'<<24 | 'a'<<16 | 'n'<<8 | 'g'
)

func lookupAttr(key uint64, name []byte) attrID {
	if len(name) > 8 {
		return lookupLongAttr(name)
	}
	switch key {
	case keyHref:
		return attrHref
	case keySrc:
		return attrSrc
	case keyAlt:
		return attrAlt
	case keyRel:
		return attrRel
	case keyType:
		return attrType
	case keyName:
		return attrName
	case keyContent:
		return attrContent
	case keyLang:
		return attrLang
	case keyData:
		return attrData
	case keyFace:
		return attrFace
	case keySize:
		return attrSize
	case keyMedia:
		return attrMedia
	case keyColor:
		return attrColor
	case keyAction:
		return attrAction
	case keyPoster:
		return attrPoster
	case keySrcset:
		return attrSrcset
	case keyCharset:
		return attrCharset
	case keyProperty:
		return attrProperty
	case keyHreflang:
		return attrHreflang
	case keyEncoding:
		return attrEncoding
	case keyXMLLang:
		return attrXMLLang
	}
	return attrNone
}

func lookupLongAttr(name []byte) attrID {
	var buf [16]byte
	if len(name) > len(buf) {
		return attrNone
	}
	for i, c := range name {
		buf[i] = lowerTable[c]
	}
	switch string(buf[:len(name)]) {
	case "http-equiv":
		return attrHTTPEquiv
	case "xlink:href":
		return attrXlinkHref
	case "imagesrcset":
		return attrImageSrcset
	case "shadowrootmode":
		return attrShadowRoot
	}
	return attrNone
}
