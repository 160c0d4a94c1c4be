package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// misbehave answers as a transient kind does.
func (x *exchange) misbehave(page int, kind Kind) {
	e := &x.site.cfg.Errors
	x.kind = kind
	if kind != KindHang && !x.wait(x.site.cfg.Latency) {
		return
	}
	switch kind {
	case KindFails:
		x.sendText(http.StatusInternalServerError, "something broke\n")
	case KindUnavailable:
		x.sendRetry(http.StatusServiceUnavailable, e.RetryAfter, false)
	case KindTooMany:
		x.sendRetry(http.StatusTooManyRequests, e.RetryAfter, false)
	case KindTooManyDate:
		x.sendRetry(http.StatusTooManyRequests, e.RetryAfter, true)
	case KindReset:
		half := x.site.appendPage(nil, x.origin, x.host, page, x.path, x.site.cfg.PageBytes, nil)
		half = half[:len(half)/2]
		x.status, x.bytes = http.StatusOK, int64(len(half))
		x.cut("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: "+strconv.Itoa(2*len(half))+"\r\n\r\n"+string(half), true)
	case KindHang:
		if x.wait(e.HangFor) {
			x.cut("", false)
		}
	}
}

// permanent answers as a kind of the mix that does not mend.
func (x *exchange) permanent(page int, kind Kind) {
	e := &x.site.cfg.Errors
	if kind == KindBig {
		x.page(page, kind)
		return
	}
	x.kind = kind
	if !x.wait(x.site.cfg.Latency) {
		return
	}
	switch kind {
	case KindNotFound:
		x.sendText(http.StatusNotFound, "this page is linked and missing\n")
	case KindGone:
		x.sendText(http.StatusGone, "this page is gone\n")
	case KindForbidden:
		x.sendText(http.StatusForbidden, "not for you\n")
	case KindBroken:
		x.sendText(http.StatusInternalServerError, "broken for good\n")
	case KindDrip:
		x.drip(e.DripBytes, e.DripInterval)
	case KindWrongLength:
		body := x.site.appendPage(nil, x.origin, x.host, page, x.path, x.site.cfg.PageBytes, nil)
		x.begin(http.StatusOK, "text/html; charset=utf-8", len(body)+1000)
		x.finish(body)
	}
}

// drip sends n bytes, one each interval.
func (x *exchange) drip(n int, interval time.Duration) {
	x.begin(http.StatusOK, "text/html; charset=utf-8", n)
	flush := http.NewResponseController(x.w)
	for i := range n {
		if i == n-1 {
			x.finish([]byte{'\n'})
			return
		}
		if !x.write([]byte{'.'}) {
			return
		}
		if err := flush.Flush(); err != nil || !x.wait(interval) {
			x.aborted = true
			return
		}
	}
}

// movedPath is hop n of the redirects of a page; hop 0 is where they end.
func (s *Site) movedPath(host, page, hop int) string {
	return "/moved/" + strconv.Itoa(hop) + string(s.graph.appendPath(nil, host, page))
}

// movedNumber is the inverse of movedPath, for a path without "/moved/".
func (s *Site) movedNumber(host int, rest string) (hop, page int, ok bool) {
	first, slug, _ := strings.Cut(rest, "/")
	hop, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	page, ok = s.graph.number(host, slug, s.cfg.Pages)
	if !ok || hop < 0 || hop >= s.hops(host, page) {
		return 0, 0, false
	}
	final, _ := s.fault(host, page)
	return hop, page, final == KindRedirect
}

// redirect answers for hop n of a page's redirects, the page itself being the
// hop of the highest number.
func (x *exchange) redirect(page, hop int) {
	x.kind = KindRedirect
	if !x.wait(x.site.cfg.Latency) {
		return
	}
	x.w.Header().Set("Location", x.site.movedPath(x.host, page, hop-1))
	x.sendText(x.site.redirectStatus(x.host, page, hop), "moved\n")
}

// privatePath names a page below /private/; odd ones are allowed by robots.txt.
func privatePath(n int) string {
	if n%2 == 1 {
		return "/private/open-" + strconv.Itoa(n)
	}
	return "/private/doc-" + strconv.Itoa(n)
}

// privatePage is the inverse of privatePath, for a path without "/private/"; it
// returns the graph page that gives the content.
func (s *Site) privatePage(rest string) (page int, ok bool) {
	_, num, _ := strings.Cut(rest, "-")
	n, err := strconv.Atoi(num)
	if err != nil || n < 0 || n >= s.cfg.Robots.Private || privatePath(n) != "/private/"+rest {
		return 0, false
	}
	return s.cfg.Pages + s.cfg.Orphans + n, true
}

// orphanPath names orphan n of a host.
func (s *Site) orphanPath(host, n int) string {
	return "/orphan" + string(s.graph.appendPath(nil, host, s.cfg.Pages+n))
}

// orphanPage is the inverse of orphanPath, for a path without "/orphan/".
func (s *Site) orphanPage(host int, rest string) (page int, ok bool) {
	n, ok := s.graph.number(host, rest, s.cfg.Pages+s.cfg.Orphans)
	return n, ok && n >= s.cfg.Pages
}
