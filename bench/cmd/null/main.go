// Command null runs the null crawler as a process of its own, so that its time
// and memory can be measured as those of deepcrawl are.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"deepcrawl/bench/nullcrawl"
)

func main() {
	inFlight := flag.Int("inflight", 24, "requests in flight")
	flag.Parse()
	if flag.NArg() != 1 || *inFlight < 1 {
		fmt.Fprintln(os.Stderr, "usage: null [-inflight N] URL")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	stats, err := nullcrawl.Crawl(ctx, flag.Arg(0), *inFlight)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(stats)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "null:", err)
		os.Exit(1)
	}
}
