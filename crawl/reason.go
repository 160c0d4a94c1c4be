package crawl

import (
	"time"

	"deepcrawl/crawl/fetch"
	"deepcrawl/storage"
)

// Reasons of the engine's own. Those of a fetch are the words of package fetch.
const (
	ReasonRobots      storage.Reason = "robots"             // robots.txt disallows it
	ReasonUnreachable storage.Reason = "robots-unreachable" // robots.txt could not be had, so nothing may be requested
	ReasonScope       storage.Reason = "scope"              // a seed outside the scope
	ReasonDepth       storage.Reason = "depth"              // more link hops than the run allows
	ReasonLimit       storage.Reason = "limit"              // the run's page or time limit was reached first
	ReasonTrap        storage.Reason = "trap"               // an endless space of URLs
	ReasonTooLong     storage.Reason = "too-long"           // URL beyond storage.MaxURL bytes
	ReasonChain       storage.Reason = "redirect-chain"     // more redirects in a row than maxRedirects
	ReasonHTTP        storage.Reason = "http"               // an error status that stayed (5xx, 429)
	ReasonRateLimited storage.Reason = "rate-limited"       // 429, or 503 with Retry-After: asked to wait
	ReasonBanned      storage.Reason = "banned"             // an operator banned its host
	ReasonPanic       storage.Reason = "panic"              // deepcrawl's own bug, in this page only
	ReasonTruncated   storage.Reason = "truncated"          // of a fetched page: its body ended early, what came was read
	ReasonHostDown    storage.Reason = "host-down"          // its host gave no answer for so long that it was given up
)

const (
	maxRedirects  = 10 // hops of a chain; Google follows 10 (Search Central, "Redirects and Google Search")
	maxAttempts   = 3  // requests for a URL that meets transient trouble
	maxAsked      = 8  // requests for a URL whose host asks to wait
	maxRetryDelay = 5 * time.Minute
)

// trouble is what a fetch says of the host.
type trouble uint8

const (
	fine        trouble = iota // the host answered like one that is well
	rateLimited                // 429, 503 with Retry-After
	forbidden                  // 403, 401
	timedOut
	troubled // 502, 503, 504, reset, refused and the like
	ownFault // another 5xx: this page's trouble, which says nothing of the host
)

// judge says how the host is doing, and whether another attempt may help.
func judge(r *fetch.Result) (t trouble, again bool) {
	switch r.Reason {
	case "":
	case fetch.ReasonTimeout:
		return timedOut, true
	case fetch.ReasonReset, fetch.ReasonRefused, fetch.ReasonUnreachable:
		return troubled, true
	case fetch.ReasonDNS, fetch.ReasonTLS:
		return troubled, false
	default:
		return fine, false
	}
	switch {
	case r.Status == 429, r.Status == 503 && r.HasRetryAfter:
		return rateLimited, true
	case r.Status == 501, r.Status == 505:
		return fine, false
	case r.Status == 502, r.Status == 503, r.Status == 504:
		return troubled, true
	case r.Status >= 500:
		return ownFault, true
	case r.Status == 403, r.Status == 401:
		return forbidden, false
	}
	return fine, false
}
