package extract

// VisibleText is the normalised text that ContentHash and Words are made of.
func (p *Page) VisibleText() []byte { return p.scan.text.out }

// ScanJSONLD is scanJSONLD.
func ScanJSONLD(b []byte) (types []string, valid bool) {
	types, valid, _ = scanJSONLD(b)
	return types, valid
}

// ParseRefresh is parseRefresh.
func ParseRefresh(b string) (delay int, target string, ok bool) {
	d, t, ok := parseRefresh([]byte(b))
	return d, string(t), ok
}

// SrcsetURLs lists the URLs of a srcset value.
func SrcsetURLs(b string) []string {
	var out []string
	eachSrcset([]byte(b), func(u []byte) { out = append(out, string(u)) })
	return out
}

// HeaderLink is one parsed link of a Link header.
type HeaderLink struct {
	Href, Rel, Hreflang, Type string
	Anchored                  bool
}

// HeaderLinks parses a Link header.
func HeaderLinks(b string) []HeaderLink {
	var out []HeaderLink
	eachHeaderLink([]byte(b), func(t headerTarget) {
		out = append(out, HeaderLink{string(t.href), string(t.rel), string(t.hreflang), string(t.mime), t.anchored})
	})
	return out
}

// Tags lists the tags of a buffer in the form of the fuzz test, with raw text after the elements for which x/net's tokenizer
// switches to it.
func Tags(body []byte) []string {
	var out []string
	t := tokenizer{listAll: true}
	t.reset(body)
	for {
		switch kind := t.next(); kind {
		case tokenEOF:
			return out
		case tokenEnd:
			out = append(out, "</"+string(lowered(t.buf[t.name.start:t.name.end])))
		case tokenStart:
			name := string(lowered(t.buf[t.name.start:t.name.end]))
			s := "<" + name
			seen := map[string]bool{}
			for i := 0; i < len(t.list); i += 2 {
				key := string(lowered(t.buf[t.list[i].start:t.list[i].end]))
				if !seen[key] {
					seen[key] = true
					s += " " + key + "=" + string(appendDecoded(nil, t.buf[t.list[i+1].start:t.list[i+1].end], true))
				}
			}
			out = append(out, s)
			switch name {
			case "title", "textarea":
				t.raw, t.rawName = rawRCDATA, []byte(name)
			case "iframe", "noembed", "noframes", "noscript", "style", "xmp":
				t.raw, t.rawName = rawText, []byte(name)
			case "script":
				t.raw, t.rawName = rawScript, scriptName
			case "plaintext":
				t.raw = rawPlaintext
			}
		}
	}
}

// SimhashOf is the simhash of a list of features.
func SimhashOf(features []uint64) uint64 {
	var s simhash
	for _, f := range features {
		s.add(f)
	}
	return s.sum()
}

// CountTokens runs the tokenizer alone.
func CountTokens(body []byte) (n int) {
	var t tokenizer
	t.reset(body)
	for t.next() != tokenEOF {
		n++
	}
	return n
}

// TextSink runs words, normalised text and simhash alone, over runs of text.
func TextSink() func(runs [][]byte) int {
	var s textSink
	return func(runs [][]byte) int {
		s.reset()
		for _, r := range runs {
			s.write(r, false)
			s.wordBreak()
		}
		s.sim.sum()
		return s.words
	}
}
