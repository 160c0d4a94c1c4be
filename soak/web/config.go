package web

import (
	"fmt"
	"time"
)

// Config describes a site. The zero value of every field has a meaning; New
// fills in what is left out. It can be kept as JSON (durations in nanoseconds),
// so that a checker in another process can rebuild the site.
type Config struct {
	// Seed chooses links, words, and which pages are slow or faulty.
	Seed uint64
	// Pages of each host that are linked from its home page, itself included. Default 100.
	Pages int
	// PageBytes is the size of an ordinary page, met within a few hundred bytes.
	// A page is never smaller than its head and links. Default 11,000.
	PageBytes int
	// LinksPerPage is the number of anchors to pages of the site. Default 20, at least 2.
	LinksPerPage int
	// Hosts is the number of loopback hosts, 127.0.0.1 to 127.0.0.N. Default 1, at most 250.
	Hosts int
	// Latency is waited before every answer, robots.txt and sitemaps included.
	Latency time.Duration
	// SlowShare of the pages (0 to 1, the home page apart) wait SlowLatency instead.
	SlowShare   float64
	SlowLatency time.Duration
	// GzipShare of the pages are sent gzipped to clients that accept it.
	GzipShare float64
	// Errors says which share of the pages misbehaves, and how.
	Errors ErrorMix
	// Robots says what /robots.txt holds.
	Robots Robots
	// Sitemap serves /sitemap.xml, an index of child sitemaps, every second one
	// gzipped, and names it in robots.txt.
	Sitemap bool
	// SitemapEntries is the number of URLs in a child sitemap. Default 1,000, at most 50,000.
	SitemapEntries int
	// Orphans is the number of pages of each host that only the sitemap mentions.
	Orphans int
	// Traps served below /trap/ and linked from the home page.
	Traps []Trap
	// TrapSizes bounds the traps that have a size.
	TrapSizes TrapSizes
	// Variants writes some links in another spelling of the same URL: tracking
	// parameters, dot segments, upper-case host, needless percent-encoding. A
	// crawler with one canonical form requests each page once all the same.
	Variants bool
	// CrossHost links each host's home page to the home page of the next host.
	CrossHost bool
}

// ErrorMix gives the share (0 to 1) of pages that misbehave in each way; the
// shares add up to at most 1. Kinds marked "leaf" are placed on leaves of the
// page tree only and are rarer by the share of inner pages (about one in
// eight); transient kinds misbehave Times times for each user agent and then
// answer 200. The home page never misbehaves.
type ErrorMix struct {
	NotFound    float64 // 404, leaf
	Gone        float64 // 410, leaf
	Forbidden   float64 // 403, leaf
	Broken      float64 // 500 for ever, leaf
	Redirect    float64 // 301, 302, 303, 307 or 308, by one to three hops to a page of its own, leaf
	Big         float64 // a page of BigBytes, leaf
	Drip        float64 // one byte each DripInterval, DripBytes of them, leaf
	WrongLength float64 // announces more bytes than it sends, leaf

	Fails       float64 // 500, transient
	Unavailable float64 // 503 with Retry-After in seconds, transient
	TooMany     float64 // 429 with Retry-After in seconds, transient
	TooManyDate float64 // 429 with Retry-After as a date, transient
	Reset       float64 // connection reset in mid-body, transient
	Hang        float64 // no answer until the peer closes or HangFor is over, then closed, transient

	Times        int           // default 1
	RetryAfter   time.Duration // whole seconds, rounded up; default 1 s
	HangFor      time.Duration // default 5 min
	BigBytes     int           // default 2,000,000
	DripInterval time.Duration // default 1 s
	DripBytes    int           // default 600
}

// Robots says what /robots.txt of each host holds. The zero value allows everything.
type Robots struct {
	// Text is served as it is when not empty; Expected then does not know
	// which pages it forbids.
	Text string
	// Private is the number of pages below /private/ of each host. They are
	// disallowed, except every second one, which a longer Allow rule permits.
	// Page n links to private page n.
	Private int
	// CrawlDelay is announced to all agents or to DelayFor, in seconds with up to three decimals.
	CrawlDelay time.Duration
	// DelayFor, when not empty, is the one agent that it is announced to, by product token; the rest holds for it too.
	DelayFor string
	// Status, when not 0, is answered instead, the first Times times for each
	// agent, or always when Times is 0.
	Status int
	Times  int
}

// withDefaults returns c with what was left out filled in.
func (c Config) withDefaults() Config {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	defd := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	def(&c.Pages, 100)
	def(&c.PageBytes, 11_000)
	def(&c.LinksPerPage, 20)
	def(&c.Hosts, 1)
	def(&c.SitemapEntries, 1000)
	def(&c.Errors.Times, 1)
	def(&c.Errors.BigBytes, 2_000_000)
	def(&c.Errors.DripBytes, 600)
	defd(&c.Errors.RetryAfter, time.Second)
	defd(&c.Errors.HangFor, 5*time.Minute)
	defd(&c.Errors.DripInterval, time.Second)
	c.TrapSizes = c.TrapSizes.withDefaults()
	return c
}

// check returns an error that names the field which is out of range.
func (c Config) check() error {
	ints := []struct {
		name     string
		v        int
		min, max int
	}{
		{"Pages", c.Pages, 1, 100_000_000},
		{"PageBytes", c.PageBytes, 1, 64 << 20},
		{"LinksPerPage", c.LinksPerPage, 2, 1000},
		{"Hosts", c.Hosts, 1, 250},
		{"SitemapEntries", c.SitemapEntries, 1, 50_000},
		{"Orphans", c.Orphans, 0, 1_000_000},
		{"Robots.Private", c.Robots.Private, 0, c.Pages},
		{"Robots.Times", c.Robots.Times, 0, 1000},
		{"Errors.Times", c.Errors.Times, 1, 1000},
	}
	for _, f := range ints {
		if f.v < f.min || f.v > f.max {
			return fmt.Errorf("site: %s is %d, allowed are %d to %d", f.name, f.v, f.min, f.max)
		}
	}
	sum := 0.0
	for _, f := range append(c.Errors.shares(), share{"SlowShare", c.SlowShare}, share{"GzipShare", c.GzipShare}) {
		if !(f.v >= 0 && f.v <= 1) {
			return fmt.Errorf("site: %s is %v, allowed are 0 to 1", f.name, f.v)
		}
		if f.name != "SlowShare" && f.name != "GzipShare" {
			sum += f.v
		}
	}
	if sum > 1 {
		return fmt.Errorf("site: the shares of Errors add up to %v, at most 1 is allowed", sum)
	}
	if c.Orphans > 0 && !c.Sitemap {
		return fmt.Errorf("site: Orphans is %d without Sitemap, which alone mentions them", c.Orphans)
	}
	for _, t := range c.Traps {
		if !t.known() {
			return fmt.Errorf("site: unknown trap %q, allowed are %q", t, AllTraps())
		}
	}
	return nil
}
