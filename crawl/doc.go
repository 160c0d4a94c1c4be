// Package crawl is the engine: it works runs to their end, on one node or on many.
//
// A [Node] joins the coordinator, which gives it a session; under that session its workers pick runs by fairness, claim
// URLs a little ahead of need, fetch each under a permit of the coordinator, extract links and facts, and commit results
// in groups. Everything that must survive the process is in the store; everything here can be lost at any moment.
//
// The life of a URL, by identifiers, is told in docs/architecture.md.
package crawl
