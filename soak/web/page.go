package web

import (
	"strconv"
)

// origin is the scheme and authority the client used, such as
// "http://127.0.0.1:8080"; pages name themselves by it.
type origin string

// extras are the anchors of a page beside those to graph pages, as paths.
type extras []string

// appendTitle appends the two words of a page's slug as a title.
func (s *Site) appendTitle(dst []byte, host, page int) []byte {
	r := s.graph.random(host, page, saltSlug, 0)
	a, n := adjs[r>>8%uint64(len(adjs))], nouns[r>>16%uint64(len(nouns))]
	dst = append(dst, a[0]-'a'+'A')
	dst = append(dst, a[1:]...)
	dst = append(dst, ' ')
	dst = append(dst, n...)
	dst = append(dst, ' ')
	return strconv.AppendInt(dst, int64(page), 10)
}

// appendPage appends the HTML of a graph page. path is the page's own; size is
// the length aimed at.
func (s *Site) appendPage(dst []byte, o origin, host, page int, path string, size int, more extras) []byte {
	start := len(dst)
	draw := func(k uint64) uint64 { return s.graph.random(host, page, saltText, k) % fillers }
	var tbuf [64]byte
	title := s.appendTitle(tbuf[:0], host, page)
	desc := s.text.plain[draw(0)]
	desc = desc[:min(150, len(desc))]

	dst = append(dst, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>"...)
	dst = append(dst, title...)
	dst = append(dst, " | Synthetic site</title>\n<meta name=\"description\" content=\""...)
	dst = append(dst, desc...)
	dst = append(dst, "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"canonical\" href=\""...)
	dst = append(append(dst, o...), path...)
	dst = append(dst, "\">\n<meta property=\"og:title\" content=\""...)
	dst = append(dst, title...)
	dst = append(dst, "\">\n<meta property=\"og:type\" content=\"article\">\n<meta property=\"og:url\" content=\""...)
	dst = append(append(dst, o...), path...)
	dst = append(dst, "\">\n<meta name=\"twitter:card\" content=\"summary\">\n<link rel=\"stylesheet\" href=\"/static/style.css\">\n"+
		"<link rel=\"icon\" href=\"/static/icon.png\">\n<meta name=\"author\" content=\"Synthetic\">\n"...)
	dst = append(dst, `<script type="application/ld+json">{"@context":"https://schema.org","@type":"Article","headline":"`...)
	dst = append(dst, title...)
	dst = append(dst, `","wordCount":`...)
	dst = strconv.AppendInt(dst, int64(size/7), 10)
	dst = append(dst, "}</script>\n</head>\n<body>\n<header class=\"top\"><nav><ul class=\"nav\">\n"...)

	var lbuf [64]int
	links := s.graph.appendLinks(lbuf[:0], host, page)
	fixed := s.graph.fixed
	footer := fixed / 2
	for _, to := range links[:fixed-footer] {
		dst = append(dst, "<li class=\"nav-item\">"...)
		dst = s.appendAnchor(dst, o, host, page, to, 0)
		dst = append(dst, "</li>\n"...)
	}
	dst = append(dst, "</ul></nav></header>\n<main><article>\n<h1>"...)
	dst = append(dst, title...)
	dst = append(dst, "</h1>\n<p class=\"lead\">"...)
	dst = append(dst, s.text.plain[draw(1)]...)
	dst = append(dst, "</p>\n"...)

	body := links[fixed:]
	const tail = 500 // about what follows the article
	for k := uint64(2); ; k++ {
		block := s.text.blocks[draw(k)]
		room := size - (len(dst) - start) - tail - 75*len(body) - 40*len(more)
		if len(body) == 0 && room < len(block)/2 {
			break
		}
		if k%4 == 2 {
			dst = append(dst, "<h2>"...)
			dst = append(dst, s.text.words[draw(k+1<<10)]...)
			dst = append(dst, "</h2>\n"...)
		}
		if room >= len(block)/2 {
			dst = append(dst, block...)
		}
		if len(body) > 0 {
			n := min(2, len(body))
			dst = append(dst, "<p class=\"more\">"...)
			for _, to := range body[:n] {
				dst = s.appendAnchor(dst, o, host, page, to, k)
				dst = append(dst, ' ')
			}
			dst = append(dst, "</p>\n"...)
			body = body[n:]
		}
		if k%4 == 0 && k < 16 {
			dst = append(dst, `<img src="/static/img-`...)
			dst = strconv.AppendUint(dst, draw(k)%100, 10)
			dst = append(dst, `.png" width="320" height="200"`...)
			if k != 12 {
				dst = append(dst, ` alt="`...)
				dst = append(dst, title...)
				dst = append(dst, '"')
			}
			dst = append(dst, ">\n"...)
		}
	}
	dst = append(dst, "</article></main>\n<footer><p>\n"...)
	for _, to := range links[fixed-footer : fixed] {
		dst = s.appendAnchor(dst, o, host, page, to, 0)
		dst = append(dst, '\n')
	}
	for _, href := range more {
		dst = append(append(append(dst, `<a href="`...), href...), "\">more</a>\n"...)
	}
	return append(dst, "<a href=\"https://elsewhere.example/\">Elsewhere</a>\n"+
		"<a href=\"mailto:editor@elsewhere.example\">Write to us</a>\n</p></footer>\n</body>\n</html>\n"...)
}

// appendAnchor appends a link to a page. Most are relative to the origin; of
// the links within the article (k > 0) some carry a fragment, some are
// absolute, and with Config.Variants some are another spelling of the URL.
func (s *Site) appendAnchor(dst []byte, o origin, host, from, to int, k uint64) []byte {
	dst = append(dst, `<a href="`...)
	variant := uint64(0)
	if k > 0 {
		variant = s.graph.random(host, from, saltVariant, uint64(to)) % 16
	}
	switch {
	case variant == 1:
		dst = append(dst, o...)
		dst = s.graph.appendPath(dst, host, to)
	case variant == 2:
		dst = s.graph.appendPath(dst, host, to)
		dst = append(dst, "#part-2"...)
	case s.cfg.Variants && variant >= 3 && variant <= 8:
		dst = s.appendVariant(dst, o, host, to, variant)
	default:
		dst = s.graph.appendPath(dst, host, to)
	}
	dst = append(dst, `">`...)
	dst = s.appendTitle(dst, host, to)
	return append(dst, "</a>"...)
}

// appendVariant appends another spelling of a page's URL, variant 3 to 8.
func (s *Site) appendVariant(dst []byte, o origin, host, to int, variant uint64) []byte {
	switch variant {
	case 3:
		dst = s.graph.appendPath(dst, host, to)
		return append(dst, "?utm_source=news&amp;utm_medium=mail"...)
	case 4:
		dst = append(dst, "/static/.."...)
		return s.graph.appendPath(dst, host, to)
	case 5:
		dst = append(dst, "HTTP"...)
		dst = append(dst, o[len("http"):]...)
		return s.graph.appendPath(dst, host, to)
	case 6:
		// The last digit percent-encoded: an unreserved character (RFC 3986, 6.2.2.2).
		dst = s.graph.appendPath(dst, host, to)
		if to == 0 {
			return dst
		}
		last := dst[len(dst)-1]
		return append(append(dst[:len(dst)-1], "%3"...), last)
	case 7:
		dst = append(dst, "  "...)
		dst = s.graph.appendPath(dst, host, to)
		return append(dst, '\n')
	default:
		dst = append(dst, "//"...)
		dst = append(dst, o[len("http://"):]...)
		return s.graph.appendPath(dst, host, to)
	}
}
