package web

import (
	"iter"
	"net/http"
)

// Expectation is what a path of the site must give to a crawl that starts at
// the host's home page and reads its sitemaps.
type Expectation struct {
	Host string // without port
	Path string
	// Kind is what the path finally gives, Status its status.
	Kind   Kind
	Status int
	// Before is the transient kind the first Requests-1 answers have, for each agent.
	Before Kind
	// Requests a crawl makes that retries transient errors until it has the
	// final answer. 1 for most paths.
	Requests int
	// Allowed is false where the rules written by Config.Robots forbid the path.
	Allowed bool
	// Target is the path a redirect leads to.
	Target string
	// SitemapOnly tells that no page links to the path.
	SitemapOnly bool
}

// Expected yields every path a complete crawl of all hosts comes to know:
// pages, the hops and targets of redirects, private pages and orphans, but not
// robots.txt, sitemaps, assets and traps. Nothing is yielded twice.
func (s *Site) Expected() iter.Seq[Expectation] {
	return func(yield func(Expectation) bool) {
		for host := range s.cfg.Hosts {
			for page := range s.cfg.Pages {
				if !s.expectTree(host, page, yield) {
					return
				}
			}
			plain := Expectation{Host: hostName(host), Kind: KindPage, Status: http.StatusOK, Requests: 1, Allowed: true}
			for n := range s.cfg.Robots.Private {
				e := plain
				e.Path, e.Allowed = privatePath(n), n%2 == 1
				if !yield(e) {
					return
				}
			}
			for n := range s.cfg.Orphans {
				e := plain
				e.Path, e.SitemapOnly = s.orphanPath(host, n), true
				if !yield(e) {
					return
				}
			}
		}
	}
}

// expectTree yields a page of the tree and where it redirects to.
func (s *Site) expectTree(host, page int, yield func(Expectation) bool) bool {
	e := Expectation{
		Host: hostName(host), Path: string(s.graph.appendPath(nil, host, page)),
		Status: http.StatusOK, Requests: 1, Allowed: true,
	}
	e.Kind, e.Before = s.fault(host, page)
	if e.Before != "" {
		e.Requests += s.cfg.Errors.Times
	}
	switch e.Kind {
	case KindNotFound:
		e.Status = http.StatusNotFound
	case KindGone:
		e.Status = http.StatusGone
	case KindForbidden:
		e.Status = http.StatusForbidden
	case KindBroken:
		e.Status = http.StatusInternalServerError
	case KindRedirect:
		return s.expectRedirects(e, host, page, yield)
	}
	return yield(e)
}

func (s *Site) expectRedirects(e Expectation, host, page int, yield func(Expectation) bool) bool {
	for hop := s.hops(host, page); hop > 0; hop-- {
		e.Status = s.redirectStatus(host, page, hop)
		e.Target = s.movedPath(host, page, hop-1)
		if !yield(e) {
			return false
		}
		e.Path = e.Target
	}
	e.Kind, e.Status, e.Target = KindPage, http.StatusOK, ""
	return yield(e)
}
