package crawl

import (
	"encoding/binary"
	"errors"
	"fmt"

	"deepcrawl/crawl/extract"
)

// Edge is one outgoing link of a page as stored.
type Edge struct {
	Kind     extract.LinkKind
	Nofollow bool // nofollow, ugc or sponsored
	Self     bool // the page links to itself
	// URL is the target's canonical URL where it is not among the run's URLs (outside the scope, not followed), else empty.
	URL []byte
	// Prefix is the start of the target's key otherwise.
	Prefix [8]byte
}

// Links are kept in one row a page:
//
//	codec byte 1, then for each link: head byte, target
//	head: bits 0-4 kind, bit 5 nofollow, bit 6 target is a URL, bit 7 target is the page itself
//	target: 8 bytes of the key, or uvarint length and URL
const (
	edgeCodec    = 1
	edgeKind     = 0x1f
	edgeNofollow = 0x20
	edgeInline   = 0x40
	edgeSelf     = 0x80
)

// KindRedirect is the kind of the edge from a redirect to its target.
const KindRedirect extract.LinkKind = 31

// KindName is the name of an edge's kind in exports.
func KindName(k extract.LinkKind) string {
	if k == KindRedirect {
		return "redirect"
	}
	return k.String()
}

var errEdges = errors.New("damaged link row")

func appendEdgeKey(b []byte, kind extract.LinkKind, nofollow, self bool, prefix [8]byte) []byte {
	if len(b) == 0 {
		b = append(b, edgeCodec)
	}
	head := edgeHead(kind, nofollow)
	if self {
		head |= edgeSelf
	}
	b = append(b, head)
	return append(b, prefix[:]...)
}

func appendEdgeURL(b []byte, kind extract.LinkKind, nofollow bool, url []byte) []byte {
	if len(b) == 0 {
		b = append(b, edgeCodec)
	}
	b = append(b, edgeHead(kind, nofollow)|edgeInline)
	b = binary.AppendUvarint(b, uint64(len(url)))
	return append(b, url...)
}

func edgeHead(kind extract.LinkKind, nofollow bool) byte {
	head := byte(kind) & edgeKind
	if nofollow {
		head |= edgeNofollow
	}
	return head
}

// EachEdge calls fn for the links of a stored row, in the order of the page; URL is valid during the call.
func EachEdge(row []byte, fn func(Edge)) error {
	if len(row) == 0 {
		return nil
	}
	if row[0] != edgeCodec {
		return fmt.Errorf("%w: codec %d is not known", errEdges, row[0])
	}
	for row = row[1:]; len(row) > 0; {
		head := row[0]
		row = row[1:]
		e := Edge{Kind: extract.LinkKind(head & edgeKind), Nofollow: head&edgeNofollow != 0, Self: head&edgeSelf != 0}
		if head&edgeInline == 0 {
			if len(row) < 8 {
				return errEdges
			}
			e.Prefix = [8]byte(row)
			row = row[8:]
		} else {
			n, w := binary.Uvarint(row)
			if w <= 0 || n > uint64(len(row)-w) {
				return errEdges
			}
			e.URL = row[w : w+int(n)]
			row = row[w+int(n):]
		}
		fn(e)
	}
	return nil
}
