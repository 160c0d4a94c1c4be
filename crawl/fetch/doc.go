// Package fetch makes one HTTP exchange, one hop: no redirects, no cookies, no
// retries. It hands back what the site said, or why it said nothing.
//
// # One request an exchange
//
// net/http's Transport replays a GET when a kept-alive connection dies under
// it. A crawler that promises a site at most so many requests in flight, and
// one request a recorded attempt, cannot have that. So the client takes its
// connections from Transport.NewClientConn, keeps them in its own pool and
// makes each exchange on exactly one of them: there is no retry loop beneath
// it. When a kept connection turns out to be dead and provably not one byte of
// the request was handed to the operating system, no request was made, and the
// client dials once afresh (calling the guard again). In every other case the
// result carries Reason reset and Wrote true, and whether to try again is for
// the caller to decide and to record.
//
// # Deadlines
//
// HardDeadline (M) bounds the whole exchange; it is aborted a second before.
// Phases have their own limits within it: DNS, connect, TLS, first byte, and
// the gap between two reads of the body. Do returns only once this side has
// closed the exchange: the HTTP/1 connection is closed, or the HTTP/2 stream
// reset (and where the reset cannot be written soon, its connection closed).
// The site may still be at work for a moment after; whoever counts slots waits
// a little longer (PROTOCOL.md, constants).
//
// # Hostile sites
//
// Addresses that are not public are refused on the address actually dialled,
// after DNS, so a name that changes its answer gains nothing. Header size, body
// size as transferred and as decoded, and decompression ratio are bounded.
package fetch
