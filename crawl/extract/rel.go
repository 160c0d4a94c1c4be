package extract

// relSet is the set of link types of a rel attribute that matter here.
type relSet uint32

const (
	relAlternate relSet = 1 << iota
	relAMP
	relCanonical
	relIcon
	relNext
	relNofollow
	relPrev
	relResource // manifest, preload, modulepreload, prefetch
	relSponsored
	relStylesheet
	relUGC
)

// parseRel reads a set of space-separated tokens, ASCII letters in any case.
func parseRel(b []byte) relSet {
	var set relSet
	for i := 0; i < len(b); {
		i = skipSpace(b, i)
		start := i
		for i < len(b) && !isSpace(b[i]) {
			i++
		}
		set |= relToken(b[start:i])
	}
	return set
}

func relToken(t []byte) relSet {
	if len(t) < 3 || len(t) > 32 {
		return 0
	}
	var buf [32]byte
	for i, c := range t {
		buf[i] = lowerTable[c]
	}
	switch string(buf[:len(t)]) {
	case "alternate":
		return relAlternate
	case "amphtml":
		return relAMP
	case "canonical":
		return relCanonical
	case "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon":
		return relIcon
	case "next":
		return relNext
	case "nofollow":
		return relNofollow
	case "prev", "previous":
		return relPrev
	case "manifest", "preload", "modulepreload", "prefetch":
		return relResource
	case "sponsored":
		return relSponsored
	case "stylesheet":
		return relStylesheet
	case "ugc":
		return relUGC
	}
	return 0
}

// alternateKind tells another page from a feed or an embedding description by the type of a rel=alternate link.
func alternateKind(mime []byte, hasLang bool) LinkKind {
	for i, c := range mime {
		if c == ';' {
			mime = mime[:i]
			break
		}
	}
	mime = trimSpace(mime)
	if hasLang || len(mime) == 0 || equalFold(mime, "text/html") || equalFold(mime, "application/xhtml+xml") {
		return Alternate
	}
	return Feed
}
