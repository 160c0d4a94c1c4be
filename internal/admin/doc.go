// Package admin is the pages and the API of deepcrawl serve: the cluster, its crawls, and who may see and steer them.
//
// Every page has a JSON twin below /api/v1 that is answered by the same code. GET changes nothing. A member or viewer sees what
// belongs to its tenant; anything else is answered as if it were not there, whatever it is.
//
// What is not guaranteed: figures that are shown live are up to a few seconds old, and the limits on sign-in attempts hold for each
// process serving pages, not over all of them.
package admin
