// Package frontier holds what the crawler knows of unfinished URLs in memory: how urgent a URL is, and which URLs are
// known to be stored already. The frontier itself lives in the store.
package frontier

import (
	"math"
	"time"
)

// Signals are what the priority of a URL is computed from.
type Signals struct {
	// Sitemap is the sitemap's priority; NaN or HasSitemap false means none was given (0.5, sitemaps.org protocol).
	Sitemap    float64
	HasSitemap bool
	LastMod    time.Time // sitemap's lastmod, zero none
	Known      bool      // it was discovered in an earlier run
	KnownMod   time.Time // the lastmod known then, zero none
}

const (
	minPriority = 1
	maxPriority = 999
	day         = 24 * time.Hour
)

// Priority returns 1..999, lower first: 400 points of sitemap priority, 280 of age, 80 for being known, less a bonus for
// an update.
func Priority(s Signals, now time.Time) int {
	p := 0.5
	if s.HasSitemap && !math.IsNaN(s.Sitemap) {
		p = min(max(s.Sitemap, 0), 1)
	}
	score := int(math.Round((1 - p) * 400))
	score += agePoints(s.LastMod, now)
	if s.Known {
		score += 80
	}
	switch {
	case s.LastMod.IsZero():
	case !s.KnownMod.IsZero() && s.LastMod.After(s.KnownMod):
		score -= 60
	case s.KnownMod.IsZero() && s.Known:
		score -= 30
	}
	return min(max(score, minPriority), maxPriority)
}

func agePoints(mod, now time.Time) int {
	if mod.IsZero() {
		return 150
	}
	switch age := now.Sub(mod); {
	case age <= day: // a date in the future too
		return 0
	case age <= 7*day:
		return 40
	case age <= 30*day:
		return 100
	case age <= 90*day:
		return 180
	}
	return 280
}
