// Package web serves synthetic sites that log every request they see.
//
// A [Site] is a function of its [Config]: the same configuration gives the same
// pages, links, errors and robots rules in every process, so a checker can
// build the site again and know what a crawl of it had to find
// ([Site.Expected]) without asking the crawler. Nothing is kept for a page:
// content comes from the seed and the page's number when it is asked for, so a
// site of a million pages costs no more memory than one of ten. Only the log
// grows, by about a hundred bytes a request.
//
// The package shares no code with the crawler and uses the standard library
// only.
//
// # Shape of a site
//
// Page 0 is "/". Pages form a tree of fixed fan-out, so that every page can be
// reached from the home page, and every page links to the home page and to the
// same few top pages, so that the home page can be reached from every page.
// The remaining links of a page go to pages chosen by the seed. Each page has
// exactly [Config.LinksPerPage] anchors to pages of the site, an anchor to
// another site and a mailto anchor.
//
// Errors that a crawl cannot recover from are placed on leaves of the tree
// only, so they never cut off other pages. Every host of a site
// (127.0.0.1, 127.0.0.2, ...) is such a site of its own, seeded by its number.
//
// # What the log promises
//
// Arrival is stamped when the request's header has been read; End before the
// last piece of the answer is written, or when the peer closes. Both lie inside
// the time during which the client has the request open, so requests counted
// as simultaneous by the log were simultaneous: the log may count a few
// microseconds too little, and never too much.
package web
