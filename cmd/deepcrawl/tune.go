package main

import (
	"os"
	"runtime/debug"
)

// gcPercent trades memory for the time of the collector: the heap is small and the garbage short-lived.
const gcPercent = 200

// tuneRuntime prepares the process for crawling, unless its environment says otherwise.
func tuneRuntime() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
