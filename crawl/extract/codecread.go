package extract

import "math"

// decoder cuts a blob into its parts. After a fault bad is set and everything reads as empty.
type decoder struct {
	rest string
	bad  bool
}

func (d *decoder) uvarint() uint64 {
	var v uint64
	for i := 0; i < len(d.rest) && i < 10; i++ {
		c := d.rest[i]
		if i == 9 && c > 1 {
			break
		}
		v |= uint64(c&0x7F) << (7 * i)
		if c < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	d.bad, d.rest = true, ""
	return 0
}

func (d *decoder) item() string {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, ""
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

// items splits a field into its strings.
func items(value string) ([]string, bool) {
	n := 0
	for d := (decoder{rest: value}); d.rest != ""; n++ {
		if d.item(); d.bad {
			return nil, false
		}
	}
	if n == 0 {
		return nil, true
	}
	list := make([]string, n)
	d := decoder{rest: value}
	for i := range list {
		list[i] = d.item()
	}
	return list, true
}

func number(value string) (uint64, bool) {
	d := decoder{rest: value}
	v := d.uvarint()
	return v, !d.bad && d.rest == ""
}

func setCount(dst *int, value string) bool {
	v, ok := number(value)
	if !ok || v > math.MaxInt64 {
		return false
	}
	*dst = int(v)
	return true
}

func setHash(dst *[16]byte, value string) bool {
	return copy(dst[:], value) == len(dst) && len(value) == len(dst)
}

func setPairs(dst *[]Pair, value string) bool {
	list, ok := items(value)
	if !ok || len(list)%2 != 0 {
		return false
	}
	for i := 0; i < len(list); i += 2 {
		*dst = append(*dst, Pair{list[i], list[i+1]})
	}
	return true
}

// setField stores one field and reports whether its value is well formed. An unknown tag is.
func (f *Facts) setField(tag uint64, value string) bool {
	if dst := f.textField(tag); dst != nil {
		*dst = value
		return true
	}
	if dst := f.countField(tag); dst != nil {
		return setCount(dst, value)
	}
	ok := true
	switch tag {
	case fieldFlags:
		var v uint64
		v, ok = number(value)
		f.setFlags(v)
	case fieldUnavailableAfter:
		var v uint64
		v, ok = number(value)
		f.UnavailableAfter = int64(v)
	case fieldNotes:
		var v uint64
		v, ok = number(value)
		f.Notes = Note(v)
	case fieldH1:
		f.H1, ok = items(value)
	case fieldH2:
		f.H2, ok = items(value)
	case fieldOG:
		ok = setPairs(&f.OG, value)
	case fieldTwitter:
		ok = setPairs(&f.Twitter, value)
	case fieldBotRobots:
		var list []Pair
		ok = setPairs(&list, value)
		for _, p := range list {
			f.BotRobots = append(f.BotRobots, BotRobots{p.Name, p.Value})
		}
	case fieldHreflang:
		var list []Pair
		ok = setPairs(&list, value)
		for _, p := range list {
			f.Hreflang = append(f.Hreflang, HreflangLink{p.Name, p.Value})
		}
	case fieldJSONLD:
		d := decoder{rest: value}
		head := d.uvarint()
		types, good := items(d.rest)
		ok = good && !d.bad && head>>1 <= math.MaxInt64
		f.JSONLD = append(f.JSONLD, JSONLD{types, head&1 != 0, int(head >> 1)})
	case fieldContentHash:
		ok = setHash(&f.ContentHash, value)
	case fieldBodyHash:
		ok = setHash(&f.BodyHash, value)
	case fieldSimhash:
		ok = len(value) == 8
		for i := 0; i < len(value); i++ {
			f.Simhash = f.Simhash<<8 | uint64(value[i])
		}
	}
	return ok
}

func (f *Facts) textField(tag uint64) *string {
	switch tag {
	case fieldTitle:
		return &f.Title
	case fieldDescription:
		return &f.Description
	case fieldRobots:
		return &f.Robots
	case fieldRobotsHeader:
		return &f.RobotsHeader
	case fieldCanonical:
		return &f.Canonical
	case fieldHeaderCanonical:
		return &f.HeaderCanonical
	case fieldBase:
		return &f.Base
	case fieldNext:
		return &f.Next
	case fieldPrev:
		return &f.Prev
	case fieldAMP:
		return &f.AMP
	case fieldLang:
		return &f.Lang
	case fieldViewport:
		return &f.Viewport
	case fieldCharset:
		return &f.Charset
	case fieldRefreshURL:
		return &f.RefreshURL
	}
	return nil
}

func (f *Facts) countField(tag uint64) *int {
	switch tag {
	case fieldTitleCount:
		return &f.TitleCount
	case fieldDescriptionCount:
		return &f.DescriptionCount
	case fieldCanonicalCount:
		return &f.CanonicalCount
	case fieldCanonicalInBody:
		return &f.CanonicalInBody
	case fieldH1Count:
		return &f.H1Count
	case fieldH2Count:
		return &f.H2Count
	case fieldJSONLDCount:
		return &f.JSONLDCount
	case fieldRefreshDelay:
		return &f.RefreshDelay
	case fieldImages:
		return &f.Images
	case fieldImagesNoAlt:
		return &f.ImagesNoAlt
	case fieldLinks:
		return &f.LinkCount
	case fieldResources:
		return &f.ResourceCount
	case fieldWords:
		return &f.Words
	case fieldTextBytes:
		return &f.TextBytes
	}
	return nil
}
