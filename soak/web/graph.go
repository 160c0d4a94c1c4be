package web

import (
	"strconv"
	"strings"
)

// graph says which pages exist and where they link. It has no state besides
// its parameters. Page numbers are int; node is (host number, page number).
type graph struct {
	seed   uint64
	pages  int
	links  int // anchors to pages of the site on each page
	fixed  int // of these: the same on every page, pages 0 to fixed-1
	fanout int // children of an inner page
}

func newGraph(c Config) graph {
	g := graph{seed: c.Seed, pages: c.Pages, links: c.LinksPerPage}
	g.fixed = min(1+min(4, c.LinksPerPage/5), c.Pages)
	g.fanout = max(1, min(8, (c.LinksPerPage-g.fixed)/2))
	return g
}

// Salts keep the random choices made for one page independent of each other.
const (
	saltLink uint64 = iota + 1
	saltSlug
	saltFault
	saltSlow
	saltGzip
	saltText
	saltHops
	saltSitemap
	saltVariant
)

// mix is the finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable
// pseudorandom number generators, 2014), a bijection that scatters well.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// random is the choice number k made for a page under a salt.
func (g graph) random(host, page int, salt, k uint64) uint64 {
	return mix(mix(g.seed+salt<<56+uint64(host)<<40) ^ mix(uint64(page)<<12+k))
}

// chance is a number in [0, 1) for a page under a salt.
func (g graph) chance(host, page int, salt uint64) float64 {
	return float64(g.random(host, page, salt, 0)>>11) / (1 << 53)
}

// children are the pages lo to hi-1.
func (g graph) children(page int) (lo, hi int) {
	lo = min(page*g.fanout+1, g.pages)
	return lo, min(lo+g.fanout, g.pages)
}

// leaf reports whether no other page depends on this one for being reached.
func (g graph) leaf(page int) bool {
	lo, hi := g.children(page)
	return lo == hi
}

// appendLinks appends the pages this page links to, in document order, exactly
// g.links of them.
func (g graph) appendLinks(dst []int, host, page int) []int {
	start := len(dst)
	for i := range g.fixed {
		dst = append(dst, i)
	}
	lo, hi := g.children(page)
	for c := lo; c < hi; c++ {
		dst = append(dst, c)
	}
	for k := uint64(0); len(dst)-start < g.links; k++ {
		dst = append(dst, int(g.random(host, page, saltLink, k)%uint64(g.pages)))
	}
	return dst
}

var (
	sections = strings.Fields("garden kitchen office travel music health sport science history animals fashion money tools books games cars")
	adjs     = strings.Fields("blue quiet round heavy early bright narrow gentle solid rapid hollow plain warm sharp broad distant " +
		"clever modern little golden simple hidden open royal silver wild young noble fresh clean deep light")
	nouns = strings.Fields("lamp table river window engine letter basket mirror bridge ladder pillow bottle camera ticket saddle anchor " +
		"button candle drawer fabric hammer island jacket kettle locket marble needle orchid pencil quiver ribbon spring")
)

// appendSlug appends "section/adjective-noun-number", which identifies a page.
func (g graph) appendSlug(dst []byte, host, page int) []byte {
	r := g.random(host, page, saltSlug, 0)
	dst = append(dst, sections[r%uint64(len(sections))]...)
	dst = append(dst, '/')
	dst = append(dst, adjs[r>>8%uint64(len(adjs))]...)
	dst = append(dst, '-')
	dst = append(dst, nouns[r>>16%uint64(len(nouns))]...)
	dst = append(dst, '-')
	return strconv.AppendInt(dst, int64(page), 10)
}

// appendPath appends the path of a page: "/" for page 0, "/slug" for the rest.
func (g graph) appendPath(dst []byte, host, page int) []byte {
	dst = append(dst, '/')
	if page == 0 {
		return dst
	}
	return g.appendSlug(dst, host, page)
}

// number returns the page a slug (a path without its leading slash) names, if
// it is the slug of a page numbered below limit.
func (g graph) number(host int, slug string, limit int) (int, bool) {
	cut := strings.LastIndexByte(slug, '-')
	if cut < 0 {
		return 0, false
	}
	n, err := strconv.Atoi(slug[cut+1:])
	if err != nil || n < 0 || n >= limit {
		return 0, false
	}
	var buf [96]byte
	return n, string(g.appendSlug(buf[:0], host, n)) == slug
}
