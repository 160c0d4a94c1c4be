// Package scope decides which URLs belong to a run, and notices crawler traps:
// parts of a site that have no end.
//
// Both take canonical URLs (bytes, with the offset of the path) and know
// nothing of fetching or storing. Scope is pure. Trap is pure; Traps remembers
// a bounded amount about the URLs of one run.
package scope
