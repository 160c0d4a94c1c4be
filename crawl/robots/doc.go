// Package robots reads robots.txt as RFC 9309 defines it, with the longest-match
// rule and the tolerances of Google's open parser (github.com/google/robotstxt),
// and keeps what one fetch of it means for an origin in a cache.
//
// The package does no network I/O of its own: [Cache] is given a [FetchFunc]
// that performs one hop.
//
// What a fetch means is a [Policy]. While robots.txt is unreachable (5xx, network
// errors) everything is refused (RFC 9309 section 2.3.1.4) and it is asked for
// again after 30 s, doubled to 30 min; a copy fetched earlier is used meanwhile
// until it is 48 h old, which section 2.4 allows in that case only. Otherwise an
// answer serves for 24 h at most, less where Cache-Control says so.
//
// Where the RFC and Google's parser part ways:
//
//   - Percent-encoding. Google escapes non-ASCII octets of a rule, upper-cases
//     its hex digits and compares with the URL as given; RFC 9309 section 2.2.2
//     compares after decoding unreserved octets. Here a Disallow rule refuses a
//     URL that either reading refuses, and the URL (but not an Allow rule) is
//     also tried with its unreserved octets decoded. A canonical URL, which is
//     what a crawler holds, is compared once.
//   - "Allow: /dir/index.html" also allows "/dir/" (Google only; followed).
//   - /robots.txt itself is always allowed (RFC 9309 section 2.2.2).
//   - UTF-16 with a byte order mark is decoded (neither asks for it, sites do it).
//   - A body beyond [MaxBytes] is cut at the last whole line, so that half a rule
//     never counts as a rule.
//   - Crawl-delay is in neither; it does not end the list of user-agent lines of
//     a group, and belongs to the user agents named before it.
package robots
