package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Trap is a part of a site that would hold a careless crawler for ever. Each
// lives below /trap/NAME.
type Trap string

// The traps.
const (
	TrapCalendar Trap = "calendar" // months without end, each with its days
	TrapRepeat   Trap = "repeat"   // relative links that repeat path segments without end
	TrapSession  Trap = "session"  // every link carries a session id that is new for each request
	TrapLoop     Trap = "loop"     // two pages that redirect to each other
	TrapSelf     Trap = "self"     // a page that redirects to itself
	TrapHuge     Trap = "huge"     // a body of TrapSizes.HugeBytes
	TrapDrip     Trap = "drip"     // a body that comes one byte each TrapSizes.DripInterval, for a day
	TrapLinks    Trap = "links"    // a page of TrapSizes.Links links
	TrapSitemap  Trap = "sitemap"  // a sitemap of TrapSizes.SitemapEntries URLs, named in robots.txt
	TrapSlow     Trap = "slow"     // a page that waits TrapSizes.SlowLatency
	TrapNested   Trap = "nested"   // a page of 3,000 nested elements
)

// AllTraps returns every trap.
func AllTraps() []Trap {
	return []Trap{
		TrapCalendar, TrapRepeat, TrapSession, TrapLoop, TrapSelf, TrapHuge, TrapDrip, TrapLinks, TrapSitemap, TrapSlow, TrapNested,
	}
}

func (t Trap) known() bool { return slices.Contains(AllTraps(), t) }

// entry is the path by which the trap is linked.
func (t Trap) entry() string {
	switch t {
	case TrapCalendar:
		return "/trap/calendar/2024/01"
	case TrapRepeat:
		return "/trap/repeat/"
	case TrapSitemap:
		return "/trap/sitemap/map.xml"
	default:
		return "/trap/" + string(t)
	}
}

// TrapSizes bounds the traps that have a size; what is 0 gets its default.
type TrapSizes struct {
	HugeBytes      int64         // default 1 GiB
	Links          int           // default 100,000
	SitemapEntries int           // default 1,000,000
	DripInterval   time.Duration // default 1 s
	SlowLatency    time.Duration // default 30 s
}

func (t TrapSizes) withDefaults() TrapSizes {
	if t.HugeBytes == 0 {
		t.HugeBytes = 1 << 30
	}
	if t.Links == 0 {
		t.Links = 100_000
	}
	if t.SitemapEntries == 0 {
		t.SitemapEntries = 1_000_000
	}
	if t.DripInterval == 0 {
		t.DripInterval = time.Second
	}
	if t.SlowLatency == 0 {
		t.SlowLatency = 30 * time.Second
	}
	return t
}

func (s *Site) has(t Trap) bool { return slices.Contains(s.cfg.Traps, t) }

// trap answers for a path below /trap/; it reports whether there is one.
func (x *exchange) trap(rest string) bool {
	s := x.site
	name, rest, _ := strings.Cut(rest, "/")
	t := Trap(name)
	if !s.has(t) {
		return false
	}
	latency := s.cfg.Latency
	if t == TrapSlow {
		latency = s.cfg.TrapSizes.SlowLatency
	}
	x.kind = KindTrap
	if !x.wait(latency) {
		return true
	}
	return x.spring(t, rest)
}

func (x *exchange) spring(t Trap, rest string) bool {
	sizes := x.site.cfg.TrapSizes
	switch t {
	case TrapCalendar:
		body, ok := calendar(rest)
		if !ok {
			x.kind = KindUnknown
			return false
		}
		x.sendPage("Calendar", body)
	case TrapRepeat:
		x.sendPage("Repeat", `<a href="news/">news</a> <a href="archive/">archive</a>`)
	case TrapSession:
		var b strings.Builder
		for i := range 10 {
			id := mix(x.site.cfg.Seed ^ x.site.sessions.Add(1))
			b.WriteString(`<a href="/trap/session/` + strconv.Itoa(i) + `?sid=` + strconv.FormatUint(id, 16) + "\">item</a>\n")
		}
		x.sendPage("Session", b.String())
	case TrapLoop:
		other := "/trap/loop/2"
		if rest == "2" {
			other = "/trap/loop"
		}
		x.w.Header().Set("Location", other)
		x.sendText(http.StatusFound, "round\n")
	case TrapSelf:
		x.w.Header().Set("Location", x.r.RequestURI)
		x.sendText(http.StatusMovedPermanently, "here\n")
	case TrapHuge:
		x.huge(sizes.HugeBytes)
	case TrapDrip:
		x.drip(int(24*time.Hour/sizes.DripInterval), sizes.DripInterval)
	case TrapLinks:
		if rest != "" {
			x.sendPage("Item "+rest, "")
			break
		}
		x.stream("text/html; charset=utf-8", "<!DOCTYPE html><title>Links</title>\n", sizes.Links, func(b []byte, i int) []byte {
			b = strconv.AppendInt(append(b, `<a href="/trap/links/`...), int64(i), 10)
			return append(b, "\">item</a>\n"...)
		}, "\n")
	case TrapSitemap:
		if rest != "map.xml" {
			x.sendPage("Listed "+rest, "")
			break
		}
		x.stream("application/xml", xmlHead+urlset, sizes.SitemapEntries, func(b []byte, i int) []byte {
			b = append(append(b, "<url><loc>"...), x.origin...)
			b = strconv.AppendInt(append(b, "/trap/sitemap/"...), int64(i), 10)
			return append(b, "</loc></url>\n"...)
		}, "</urlset>\n")
	case TrapSlow:
		x.sendPage("Slow", "")
	case TrapNested:
		x.sendPage("Nested", strings.Repeat("<div><b>", 1500)+`<a href="/trap/nested/inner">inner</a>`)
	}
	return true
}

// sendPage sends a small page of its own.
func (x *exchange) sendPage(title, body string) {
	x.send(http.StatusOK, "text/html; charset=utf-8",
		[]byte("<!DOCTYPE html>\n<html lang=\"en\"><head><title>"+title+"</title></head><body><h1>"+title+"</h1>\n"+body+"</body></html>\n"))
}

// calendar is the body for "YEAR/MONTH" or "YEAR/MONTH/DAY".
func calendar(rest string) (string, bool) {
	parts := strings.Split(rest, "/")
	if len(parts) < 2 || len(parts) > 3 {
		return "", false
	}
	year, err1 := strconv.Atoi(parts[0])
	month, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil || month < 1 || month > 12 || year < 0 || year > 9999 {
		return "", false
	}
	link := func(d time.Time, format string) string {
		return `<a href="/trap/calendar/` + d.Format(format) + `">` + d.Format(format) + "</a>\n"
	}
	first := time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	body := link(first.AddDate(0, -1, 0), "2006/01") + link(first.AddDate(0, 1, 0), "2006/01")
	if len(parts) == 2 {
		for d := first; d.Month() == first.Month(); d = d.AddDate(0, 0, 1) {
			body += link(d, "2006/01/02")
		}
	}
	return body, true
}

// stream sends n generated entries between a head and a tail, of a length not announced.
func (x *exchange) stream(contentType, head string, n int, entry func(b []byte, i int) []byte, tail string) {
	x.begin(http.StatusOK, contentType, -1)
	if x.r.Method == http.MethodHead {
		return
	}
	b := append(make([]byte, 0, 64<<10), head...)
	for i := range n {
		b = entry(b, i)
		if len(b) > 60<<10 {
			if !x.write(b) {
				return
			}
			b = b[:0]
		}
	}
	x.finish(append(b, tail...))
}

// huge sends n bytes of HTML.
func (x *exchange) huge(n int64) {
	x.begin(http.StatusOK, "text/html; charset=utf-8", int(n))
	if x.r.Method == http.MethodHead {
		return
	}
	block := make([]byte, 0, 64<<10)
	for k := uint64(0); len(block) < 63<<10; k++ {
		block = append(block, x.site.text.blocks[k%fillers]...)
	}
	for n > int64(len(block)) {
		if !x.write(block) {
			return
		}
		n -= int64(len(block))
	}
	x.finish(block[:n])
}
