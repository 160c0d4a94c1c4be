package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// robots answers for /robots.txt.
func (x *exchange) robots() {
	c := &x.site.cfg
	x.kind = KindRobots
	if !x.wait(c.Latency) {
		return
	}
	if r := c.Robots; r.Status != 0 && (r.Times == 0 || x.site.before.add(x) <= r.Times) {
		switch r.Status {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			x.sendRetry(r.Status, c.Errors.RetryAfter, false)
		default:
			x.sendText(r.Status, "no robots.txt\n")
		}
		return
	}
	if c.Robots.Text != "" {
		x.sendText(http.StatusOK, c.Robots.Text)
		return
	}
	x.sendText(http.StatusOK, x.site.robotsText(x.origin))
}

// robotsText writes the rules of Config.Robots.
func (s *Site) robotsText(o origin) string {
	var b strings.Builder
	b.WriteString("# synthetic site\n")
	group := func(agent string, delay time.Duration) {
		b.WriteString("User-agent: " + agent + "\n")
		if s.cfg.Robots.Private > 0 {
			b.WriteString("Disallow: /private/\nAllow: /private/open-\n")
		} else {
			b.WriteString("Disallow:\n")
		}
		if delay > 0 {
			b.WriteString("Crawl-delay: " + strconv.FormatFloat(delay.Seconds(), 'f', -1, 64) + "\n")
		}
	}
	if agent := s.cfg.Robots.DelayFor; agent != "" {
		group(agent, s.cfg.Robots.CrawlDelay)
		b.WriteString("\n")
		group("*", 0)
	} else {
		group("*", s.cfg.Robots.CrawlDelay)
	}
	if s.cfg.Sitemap {
		b.WriteString("\nSitemap: " + string(o) + "/sitemap.xml\n")
	}
	if s.has(TrapSitemap) {
		b.WriteString("\nSitemap: " + string(o) + TrapSitemap.entry() + "\n")
	}
	return b.String()
}
