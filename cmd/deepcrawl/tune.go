package main

import (
	"runtime/debug"
	"slices"
	"strings"
)

// gcPercent trades memory for the time of the collector: the heap is small and the garbage short-lived.
const gcPercent = 200

// tuneRuntime prepares the process for crawling, unless its environment says otherwise.
func (p *program) tuneRuntime() {
	if !slices.ContainsFunc(p.environ, func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) {
		debug.SetGCPercent(gcPercent)
	}
}
