package web

// Kind names what an answer was meant to be.
type Kind string

// What a path finally gives. KindPage to KindWrongLength are also what
// Expected tells of a path.
const (
	KindPage        Kind = "page"         // 200, HTML
	KindBig         Kind = "big"          // 200, HTML of Errors.BigBytes
	KindNotFound    Kind = "not-found"    // 404, linked on purpose
	KindGone        Kind = "gone"         // 410
	KindForbidden   Kind = "forbidden"    // 403
	KindBroken      Kind = "broken"       // 500 every time
	KindRedirect    Kind = "redirect"     // 3xx
	KindDrip        Kind = "drip"         // 200 whose body takes longer than a client should wait
	KindWrongLength Kind = "wrong-length" // 200 whose body is shorter than announced

	KindRobots  Kind = "robots"
	KindSitemap Kind = "sitemap"
	KindAsset   Kind = "asset" // style sheet or image
	KindTrap    Kind = "trap"
	KindUnknown Kind = "unknown" // 404: no page, link or sitemap of the site names this path
	KindMethod  Kind = "method"  // 405: neither GET nor HEAD
)

// What a path gives before it gives what Expected tells.
const (
	KindFails       Kind = "fails"         // 500
	KindUnavailable Kind = "unavailable"   // 503, Retry-After in seconds
	KindTooMany     Kind = "too-many"      // 429, Retry-After in seconds
	KindTooManyDate Kind = "too-many-date" // 429, Retry-After as a date
	KindReset       Kind = "reset"         // connection reset in mid-body
	KindHang        Kind = "hang"          // no answer
)

type share struct {
	name string
	v    float64
}

// shares lists the shares of the mix in the order fault assigns them.
func (e ErrorMix) shares() []share {
	return []share{
		{"Errors.NotFound", e.NotFound}, {"Errors.Gone", e.Gone}, {"Errors.Forbidden", e.Forbidden}, {"Errors.Broken", e.Broken},
		{"Errors.Redirect", e.Redirect}, {"Errors.Big", e.Big}, {"Errors.Drip", e.Drip}, {"Errors.WrongLength", e.WrongLength},
		{"Errors.Fails", e.Fails}, {"Errors.Unavailable", e.Unavailable}, {"Errors.TooMany", e.TooMany},
		{"Errors.TooManyDate", e.TooManyDate}, {"Errors.Reset", e.Reset}, {"Errors.Hang", e.Hang},
	}
}

// faultKinds are the kinds in the order of shares; the first leafKinds are
// permanent and placed on leaves only.
var faultKinds = [...]Kind{
	KindNotFound, KindGone, KindForbidden, KindBroken, KindRedirect, KindBig, KindDrip, KindWrongLength,
	KindFails, KindUnavailable, KindTooMany, KindTooManyDate, KindReset, KindHang,
}

const leafKinds = 8

// fault returns how a page misbehaves: the kind it finally has, and the
// transient kind it has before, "" when none.
func (s *Site) fault(host, page int) (final, before Kind) {
	if page == 0 || s.faultless {
		return KindPage, ""
	}
	u := s.graph.chance(host, page, saltFault)
	for i, sh := range s.mix {
		if u >= sh.v {
			u -= sh.v
			continue
		}
		switch {
		case i >= leafKinds:
			return KindPage, faultKinds[i]
		case s.graph.leaf(page):
			return faultKinds[i], ""
		}
		break
	}
	return KindPage, ""
}

// hops is the number of redirects between a redirecting page and its target, 1 to 3.
func (s *Site) hops(host, page int) int {
	return 1 + int(s.graph.random(host, page, saltHops, 0)%3)
}

// redirectStatus is the status of hop n of a page.
func (s *Site) redirectStatus(host, page, n int) int {
	codes := [...]int{301, 302, 303, 307, 308}
	return codes[s.graph.random(host, page, saltHops, uint64(n+1))%uint64(len(codes))]
}
