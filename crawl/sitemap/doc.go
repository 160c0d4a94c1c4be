// Package sitemap reads sitemaps as they are found in the wild: XML urlsets and
// indexes (sitemaps.org protocol 0.9), plain text lists, RSS and Atom feeds,
// gzipped or not, in any declared encoding. It streams: memory does not depend
// on the size of the file.
//
// The package does no I/O of its own. [Decode] reads one file; [Plan] remembers
// which files of a run are still to be read, so that a run can go on where it
// stopped.
//
// The XML reader is its own, not encoding/xml: it goes on after damage (a missing
// end tag, a stray "<", an unescaped "&", an undeclared entity), needs no element
// to be closed to deliver what came before, never expands entities of the
// document's own, and takes less than half the time. What it does not do: validate.
// Names are compared without prefix and case, so any namespace, also a wrong one
// or none, will do.
package sitemap
