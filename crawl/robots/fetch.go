package robots

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// answer is the end of a chain of hops.
type answer struct {
	url  string
	resp Response
	file *File // of a 2xx
	note string
}

// fetch asks for an origin's robots.txt and follows redirects, one hop at a time.
func (c *Cache) fetch(ctx context.Context, origin string) answer {
	at := origin + "/robots.txt"
	for hop := 0; ; hop++ {
		a := answer{url: at, resp: c.cfg.Fetch(ctx, at)}
		switch s := a.resp.Status; {
		case a.resp.Err != nil:
			return a
		case s >= 200 && s < 300:
			a.file = Parse(a.resp.Body)
			return a
		case s < 300 || s >= 400:
			return a
		}
		next, err := target(at, a.resp.Location)
		if err == nil && hop == maxRedirects {
			err = errTooManyRedirects
		}
		if err != nil {
			a.note = err.Error()
			return a
		}
		at = next
	}
}

// target resolves a redirect's Location; the error says why it leads nowhere.
func target(from, location string) (string, error) {
	if location == "" {
		return "", errors.New("redirect without a location")
	}
	base, err := url.Parse(from)
	if err != nil {
		return "", fmt.Errorf("parse %q: %w", from, err)
	}
	to, err := base.Parse(location)
	if err != nil {
		return "", fmt.Errorf("parse redirect target %q: %w", location, err)
	}
	if to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return "", fmt.Errorf("redirect to %q, which is not http", location)
	}
	to.Fragment, to.RawFragment, to.User = "", "", nil
	return to.String(), nil
}

// judge turns an answer into a policy and updates the entry's memory of failures
// and of the last good copy. Cache.mu is held.
func (c *Cache) judge(e *entry, a answer) *Policy {
	now := c.cfg.Now()
	p := &Policy{Status: a.resp.Status, URL: a.url, Err: a.note, FetchedAt: now}
	retryAfter := min(max(a.resp.RetryAfter, 0), maxRetryAfter)
	switch s := a.resp.Status; {
	case a.resp.Err != nil:
		p.Outcome, p.Status, p.Err = Unreachable, 0, a.resp.Err.Error()
	case s >= 200 && s < 300:
		p.Outcome = Found
		p.Group = a.file.Group(c.cfg.Product)
		p.Sitemaps = resolveAll(a.url, a.file.Sitemaps())
		d, _ := p.Group.CrawlDelay()
		p.Delay = min(d, c.cfg.MaxDelay)
	case s == http.StatusTooManyRequests:
		p.Outcome = Pause
		p.Err = "429 Too Many Requests"
	case s >= 300 && s < 500:
		p.Outcome = AllowAll
	default:
		p.Outcome = Unreachable
		p.Err = fmt.Sprintf("status %d", s)
	}

	if p.Outcome == Found || p.Outcome == AllowAll {
		ttl := c.cfg.TTL
		if a.resp.MaxAge > 0 {
			ttl = min(ttl, max(a.resp.MaxAge, c.cfg.MinTTL))
		}
		p.expires = now.Add(ttl)
		e.fails, e.good = 0, p
		return p
	}

	e.fails++
	if p.Outcome == Pause {
		wait := retryAfter
		if wait == 0 {
			wait = backoff(c.cfg.PauseAfter, c.cfg.RetryMax, e.fails)
		}
		p.PauseUntil = now.Add(wait)
		p.RetryAt, p.expires = p.PauseUntil, p.PauseUntil
		return p
	}
	if a.resp.Status == http.StatusServiceUnavailable && retryAfter > 0 {
		p.PauseUntil = now.Add(retryAfter)
	}
	p.RetryAt = now.Add(max(backoff(c.cfg.RetryMin, c.cfg.RetryMax, e.fails), retryAfter))
	p.expires = p.RetryAt
	if e.good == nil || now.Sub(e.good.FetchedAt) >= c.cfg.MaxStale {
		e.good = nil
		return p
	}
	stale := *e.good
	stale.RetryAt, stale.PauseUntil, stale.Err = p.RetryAt, p.PauseUntil, p.Err
	stale.expires = p.expires
	if end := stale.FetchedAt.Add(c.cfg.MaxStale); end.Before(stale.expires) {
		stale.expires = end
	}
	return &stale
}

// backoff is first doubled for each failure after the first, up to limit.
func backoff(first, limit time.Duration, fails int) time.Duration {
	d := first
	for i := 1; i < fails && d < limit; i++ {
		d *= 2
	}
	return min(d, max(limit, first))
}

// resolveAll makes sitemap lines absolute; those that are no http URL are
// dropped. Absolute ones stay as written: net/url refuses some that sites use.
func resolveAll(base string, refs []string) []string {
	var out []string
	for _, ref := range refs {
		if hasHTTPScheme(ref) {
			out = append(out, ref)
		} else if u, err := target(base, ref); err == nil {
			out = append(out, u)
		}
	}
	return out
}

func hasHTTPScheme(s string) bool {
	return len(s) > 7 && equalFold(s[:7], "http://") || len(s) > 8 && equalFold(s[:8], "https://")
}
