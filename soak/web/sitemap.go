package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	xmlHead  = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	urlset   = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
	indexTag = "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
)

// sitemapChildren is the number of child sitemaps of each host.
func (s *Site) sitemapChildren() int {
	return (s.cfg.Pages + s.cfg.Orphans + s.cfg.SitemapEntries - 1) / s.cfg.SitemapEntries
}

// sitemapName is the file name of child n, from 1. Even ones are gzipped.
func sitemapName(n int) string {
	name := "sitemap-" + strconv.Itoa(n) + ".xml"
	if n%2 == 0 {
		name += ".gz"
	}
	return name
}

// sitemap answers for the index and its children; it reports whether name is one.
func (x *exchange) sitemap(name string) bool {
	s := x.site
	child := 0
	if name != "sitemap.xml" {
		num, _, _ := strings.Cut(strings.TrimPrefix(name, "sitemap-"), ".")
		n, err := strconv.Atoi(num)
		if err != nil || n < 1 || n > s.sitemapChildren() || sitemapName(n) != name {
			return false
		}
		child = n
	}
	x.kind = KindSitemap
	if !x.wait(s.cfg.Latency) {
		return true
	}
	switch {
	case child == 0:
		x.send(http.StatusOK, "application/xml", s.sitemapIndex(x.origin))
	case child%2 == 0:
		x.send(http.StatusOK, "application/gzip", gzipped(s.sitemapChild(x.origin, x.host, child)))
	default:
		x.send(http.StatusOK, "application/xml", s.sitemapChild(x.origin, x.host, child))
	}
	return true
}

func (s *Site) sitemapIndex(o origin) []byte {
	b := append([]byte(xmlHead), indexTag...)
	for n := 1; n <= s.sitemapChildren(); n++ {
		b = append(append(b, "<sitemap><loc>"...), o...)
		b = append(append(b, '/'), sitemapName(n)...)
		b = append(b, "</loc></sitemap>\n"...)
	}
	return append(b, "</sitemapindex>\n"...)
}

// sitemapChild lists pages of the tree, then orphans. Times and priorities come
// from the seed; a third of the entries has no lastmod, a fifth no priority.
func (s *Site) sitemapChild(o origin, host, child int) []byte {
	first := time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)
	b := append([]byte(xmlHead), urlset...)
	lo := (child - 1) * s.cfg.SitemapEntries
	for n := lo; n < min(lo+s.cfg.SitemapEntries, s.cfg.Pages+s.cfg.Orphans); n++ {
		b = append(append(b, "<url><loc>"...), o...)
		if n >= s.cfg.Pages {
			b = append(b, "/orphan"...)
		}
		b = append(s.graph.appendPath(b, host, n), "</loc>"...)
		r := s.graph.random(host, n, saltSitemap, 0)
		if r%3 != 0 {
			b = append(b, "<lastmod>"...)
			b = first.Add(time.Duration(r>>8%1000)*24*time.Hour).AppendFormat(b, time.DateOnly)
			b = append(b, "</lastmod>"...)
		}
		if r>>24%5 != 0 {
			b = append(b, "<priority>"...)
			b = strconv.AppendFloat(b, float64(r>>32%11)/10, 'f', 1, 64)
			b = append(b, "</priority>"...)
		}
		b = append(b, "</url>\n"...)
	}
	return append(b, "</urlset>\n"...)
}
