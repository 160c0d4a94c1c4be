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
	workers := flag.Bool("workers", false, "let the workers parse between two requests")
	flag.Parse()
	if flag.NArg() != 1 || *inFlight < 1 {
		fmt.Fprintln(os.Stderr, "usage: null [-inflight N] [-workers] URL")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	how := nullcrawl.Apart
	if *workers {
		how = nullcrawl.Workers
	}
	stats, err := nullcrawl.Crawl(ctx, flag.Arg(0), *inFlight, how)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(stats)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "null:", err)
		os.Exit(1)
	}
}
