// Package urlkey gives an http(s) URL one canonical form and, from it, a
// 16-byte key. Two spellings with the same canonical form are one page to a
// run; the canonical form is also what is requested.
//
// # The canonical form
//
// It is what the URL Standard (https://url.spec.whatwg.org/) makes of the
// input, with these further rules, each of which joins spellings that servers
// do not tell apart:
//
//   - the fragment goes; so does userinfo: a `user@host` link neither sends
//     credentials nor counts as another page;
//   - an empty query (`/a?`) goes with its question mark;
//   - query parameters that only track visitors go (Options); the others keep
//     their order and spelling;
//   - escapes of unreserved characters (RFC 3986, 2.3) are decoded, the hex
//     digits of all others are upper case. Reserved characters keep the form
//     they came in: `%2F` and `/` are different pages;
//   - bytes that RFC 3986 allows neither in a path nor in a query but browsers
//     leave alone ([ ] | ^ and, in queries, \ ` { }) are escaped, so that
//     `?f[x]=1` and `?f%5Bx%5D=1` are one page. Bytes that are not UTF-8 are
//     escaped one by one;
//   - a `%` that starts no escape stays as it is, as browsers send it. An
//     escaped hex digit straight behind it stays escaped, for decoding it
//     would make an escape of the two;
//   - the dot that ends a host name goes (`example.com.`). Host names with an
//     empty label are refused: DNS cannot hold one (RFC 1035, 2.3.1).
//
// A trailing slash is neither invented nor removed, slashes in a row stay, and
// parameters are not sorted: servers do tell these apart.
//
// The form is idempotent: canonicalising it again changes nothing.
//
// # How it is made
//
// Schemes, authorities, paths and queries are handled here in one pass over
// the bytes, without allocating and in time linear in the input, for hostile
// pages contain megabytes of dots and slashes. IP addresses and host names
// beyond ASCII go to github.com/nlnwa/whatwg-url. The tests hold that library,
// as a parser of whole URLs, against this package.
//
// Text is taken to be UTF-8. Browsers encode the query of a link in the
// encoding of its page; this package does not know the page.
package urlkey
