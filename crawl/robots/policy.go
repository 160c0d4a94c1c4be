package robots

import "time"

// Outcome is what the attempt to get an origin's robots.txt came to.
type Outcome int

const (
	// Found: a robots.txt was read and its rules hold.
	Found Outcome = iota
	// AllowAll: there is none to obey (4xx except 429, an empty redirect, more
	// than five redirects): everything is allowed, RFC 9309 section 2.3.1.3.
	AllowAll
	// Unreachable: 5xx or a network error: nothing is allowed, and it is asked
	// for again at RetryAt, RFC 9309 section 2.3.1.4.
	Unreachable
	// Pause: 429: no request of any kind to the origin before PauseUntil.
	Pause
)

// String names the outcome as it appears in logs.
func (o Outcome) String() string {
	switch o {
	case Found:
		return "found"
	case AllowAll:
		return "allow-all"
	case Unreachable:
		return "unreachable"
	case Pause:
		return "pause"
	}
	return "unknown"
}

// Policy is what one fetch of robots.txt means for an origin. It is immutable
// once handed out and safe for concurrent use.
type Policy struct {
	Outcome Outcome
	// Group holds the rules for the cache's product token; nil unless Found.
	Group *Group
	// Sitemaps are the file's sitemap lines, resolved against its URL.
	Sitemaps []string
	// Delay is the crawl-delay asked for, at most Config.MaxDelay; 0 when none.
	Delay time.Duration
	// RetryAt is when robots.txt is asked for again: after a failure, also where
	// an older copy (Outcome Found or AllowAll) is in use meanwhile. Else zero.
	RetryAt time.Time
	// PauseUntil is the gate the origin asked for (429, or 503 with
	// Retry-After); zero when none.
	PauseUntil time.Time
	// Status is the last hop's HTTP status, 0 after a network error.
	Status int
	// URL is the last hop's address; it differs from the origin's own
	// /robots.txt after redirects.
	URL string
	// Err says what went wrong, in words for a person; empty when nothing did.
	Err string
	// FetchedAt is when the answer came.
	FetchedAt time.Time

	expires time.Time
}

// Allowed reports whether a path with its query may be fetched, and the line of
// robots.txt that decided (empty when none did). Under Unreachable and Pause
// nothing but /robots.txt is allowed, and that is a refusal for now: look at
// Outcome before recording it as final.
func (p *Policy) Allowed(pathQuery string) (ok bool, line string) {
	switch p.Outcome {
	case Found:
		return p.Group.Allowed(pathQuery)
	case AllowAll:
		return true, ""
	}
	return pathQuery == "/robots.txt", ""
}

// size estimates the bytes the policy holds.
func (p *Policy) size() int64 {
	n := 256 + p.Group.size() + int64(len(p.URL)+len(p.Err))
	for _, s := range p.Sitemaps {
		n += 16 + int64(len(s))
	}
	return n
}
