package extract

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The facts blob: one version byte, then fields of tag, length and value, tag and length as unsigned varints. Zero values are left out and
// unknown tags skipped, so a field can be added without a new version. Never reuse or renumber a tag.

const factsVersion = 1

// ErrFacts is returned for a blob that UnmarshalBinary cannot read.
var ErrFacts = errors.New("malformed facts")

const (
	fieldTitle = 1 + iota
	fieldTitleCount
	fieldDescription
	fieldDescriptionCount
	fieldRobots
	fieldRobotsHeader
	fieldBotRobots
	fieldFlags
	fieldUnavailableAfter
	fieldCanonical
	fieldCanonicalCount
	fieldCanonicalInBody
	fieldHeaderCanonical
	fieldBase
	fieldNext
	fieldPrev
	fieldAMP
	fieldLang
	fieldHreflang
	fieldViewport
	fieldCharset
	fieldH1
	fieldH2
	fieldH1Count
	fieldH2Count
	fieldOG
	fieldTwitter
	fieldJSONLD
	fieldJSONLDCount
	fieldRefreshDelay
	fieldRefreshURL
	fieldImages
	fieldImagesNoAlt
	fieldLinks
	fieldResources
	fieldWords
	fieldTextBytes
	fieldContentHash
	fieldBodyHash
	fieldSimhash
	fieldNotes
)

const (
	flagNoIndex = 1 << iota
	flagNoFollow
	flagNoArchive
	flagNoSnippet
	flagNoImageIndex
	flagHasRefresh
)

func (f *Facts) flags() (v uint64) {
	for i, set := range [...]bool{f.NoIndex, f.NoFollow, f.NoArchive, f.NoSnippet, f.NoImageIndex, f.HasRefresh} {
		if set {
			v |= 1 << i
		}
	}
	return v
}

func (f *Facts) setFlags(v uint64) {
	f.NoIndex = v&flagNoIndex != 0
	f.NoFollow = v&flagNoFollow != 0
	f.NoArchive = v&flagNoArchive != 0
	f.NoSnippet = v&flagNoSnippet != 0
	f.NoImageIndex = v&flagNoImageIndex != 0
	f.HasRefresh = v&flagHasRefresh != 0
}

func appendText(b []byte, tag byte, s string) []byte {
	if s == "" {
		return b
	}
	b = append(b, tag)
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendNumber(b []byte, tag byte, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = append(b, tag, 0)
	at := len(b)
	b = binary.AppendUvarint(b, v)
	b[at-1] = byte(len(b) - at) // at most 10
	return b
}

func appendHash(b []byte, tag byte, h *[16]byte) []byte {
	if *h == ([16]byte{}) {
		return b
	}
	b = append(b, tag, byte(len(h)))
	return append(b, h[:]...)
}

func uvarintSize(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func textSize(s string) int { return uvarintSize(uint64(len(s))) + len(s) }

func appendItem(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// appendList writes n items of strings; a field is a sequence of length-prefixed strings.
func appendList(b []byte, tag byte, n, width int, at func(i, j int) string) []byte {
	if n == 0 {
		return b
	}
	size := 0
	for i := 0; i < n; i++ {
		for j := 0; j < width; j++ {
			size += textSize(at(i, j))
		}
	}
	b = append(b, tag)
	b = binary.AppendUvarint(b, uint64(size))
	for i := 0; i < n; i++ {
		for j := 0; j < width; j++ {
			b = appendItem(b, at(i, j))
		}
	}
	return b
}

func appendStrings(b []byte, tag byte, list []string) []byte {
	return appendList(b, tag, len(list), 1, func(i, _ int) string { return list[i] })
}

func appendPairs(b []byte, tag byte, list []Pair) []byte {
	return appendList(b, tag, len(list), 2, func(i, j int) string {
		if j == 0 {
			return list[i].Name
		}
		return list[i].Value
	})
}

// AppendBinary appends the facts blob. It never fails; the error is there for encoding.BinaryAppender.
func (f *Facts) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, factsVersion)
	b = appendText(b, fieldTitle, f.Title)
	b = appendNumber(b, fieldTitleCount, uint64(f.TitleCount))
	b = appendText(b, fieldDescription, f.Description)
	b = appendNumber(b, fieldDescriptionCount, uint64(f.DescriptionCount))
	b = appendText(b, fieldRobots, f.Robots)
	b = appendText(b, fieldRobotsHeader, f.RobotsHeader)
	b = appendList(b, fieldBotRobots, len(f.BotRobots), 2, func(i, j int) string {
		if j == 0 {
			return f.BotRobots[i].Bot
		}
		return f.BotRobots[i].Directives
	})
	b = appendNumber(b, fieldFlags, f.flags())
	b = appendNumber(b, fieldUnavailableAfter, uint64(f.UnavailableAfter))
	b = appendText(b, fieldCanonical, f.Canonical)
	b = appendNumber(b, fieldCanonicalCount, uint64(f.CanonicalCount))
	b = appendNumber(b, fieldCanonicalInBody, uint64(f.CanonicalInBody))
	b = appendText(b, fieldHeaderCanonical, f.HeaderCanonical)
	b = appendText(b, fieldBase, f.Base)
	b = appendText(b, fieldNext, f.Next)
	b = appendText(b, fieldPrev, f.Prev)
	b = appendText(b, fieldAMP, f.AMP)
	b = appendText(b, fieldLang, f.Lang)
	b = appendList(b, fieldHreflang, len(f.Hreflang), 2, func(i, j int) string {
		if j == 0 {
			return f.Hreflang[i].Lang
		}
		return f.Hreflang[i].Href
	})
	b = appendText(b, fieldViewport, f.Viewport)
	b = appendText(b, fieldCharset, f.Charset)
	b = appendStrings(b, fieldH1, f.H1)
	b = appendStrings(b, fieldH2, f.H2)
	b = appendNumber(b, fieldH1Count, uint64(f.H1Count))
	b = appendNumber(b, fieldH2Count, uint64(f.H2Count))
	b = appendPairs(b, fieldOG, f.OG)
	b = appendPairs(b, fieldTwitter, f.Twitter)
	for i := range f.JSONLD { // one field a block
		b = appendJSONLD(b, &f.JSONLD[i])
	}
	b = appendNumber(b, fieldJSONLDCount, uint64(f.JSONLDCount))
	b = appendNumber(b, fieldRefreshDelay, uint64(f.RefreshDelay))
	b = appendText(b, fieldRefreshURL, f.RefreshURL)
	b = appendNumber(b, fieldImages, uint64(f.Images))
	b = appendNumber(b, fieldImagesNoAlt, uint64(f.ImagesNoAlt))
	b = appendNumber(b, fieldLinks, uint64(f.LinkCount))
	b = appendNumber(b, fieldResources, uint64(f.ResourceCount))
	b = appendNumber(b, fieldWords, uint64(f.Words))
	b = appendNumber(b, fieldTextBytes, uint64(f.TextBytes))
	b = appendHash(b, fieldContentHash, &f.ContentHash)
	b = appendHash(b, fieldBodyHash, &f.BodyHash)
	if f.Simhash != 0 {
		b = append(b, fieldSimhash, 8)
		b = binary.BigEndian.AppendUint64(b, f.Simhash)
	}
	return appendNumber(b, fieldNotes, uint64(f.Notes)), nil
}

func appendJSONLD(b []byte, j *JSONLD) []byte {
	head := uint64(j.Bytes) << 1
	if j.Valid {
		head |= 1
	}
	size := uvarintSize(head)
	for _, t := range j.Types {
		size += textSize(t)
	}
	b = append(b, fieldJSONLD)
	b = binary.AppendUvarint(b, uint64(size))
	b = binary.AppendUvarint(b, head)
	for _, t := range j.Types {
		b = appendItem(b, t)
	}
	return b
}

// MarshalBinary returns the facts blob.
func (f *Facts) MarshalBinary() ([]byte, error) { return f.AppendBinary(nil) }

// UnmarshalBinary replaces f with what the blob says. It returns ErrFacts (wrapped) for anything AppendBinary cannot have written,
// unknown tags apart; f is then the zero value. It keeps no reference to data.
func (f *Facts) UnmarshalBinary(data []byte) error {
	*f = Facts{}
	if len(data) == 0 {
		return fmt.Errorf("%w: empty", ErrFacts)
	}
	if data[0] != factsVersion {
		return fmt.Errorf("%w: version %d", ErrFacts, data[0])
	}
	d := decoder{rest: string(data[1:])}
	for d.rest != "" && !d.bad {
		tag := d.uvarint()
		value := d.item()
		if d.bad {
			break
		}
		if !f.setField(tag, value) {
			*f = Facts{}
			return fmt.Errorf("%w: field %d", ErrFacts, tag)
		}
	}
	if d.bad {
		*f = Facts{}
		return fmt.Errorf("%w: cut short", ErrFacts)
	}
	return nil
}
