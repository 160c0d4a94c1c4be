// Command site serves a synthetic site as a process of its own. It prints its
// home pages as a JSON array, serves until its standard input is closed, and
// then writes its hit log. Standard input ends with the process that started
// it, so no server is left behind.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"deepcrawl/soak/web"
)

func main() {
	config := flag.String("config", "{}", "web.Config as JSON")
	addr := flag.String("addr", "127.0.0.1:0", "address of the first host")
	log := flag.String("log", "", "file the hit log is written to")
	flag.Parse()
	if err := run(*config, *addr, *log); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(config, addr, log string) (err error) {
	var c web.Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fmt.Errorf("read -config: %w", err)
	}
	site, err := web.New(c)
	if err != nil {
		return err
	}
	l, err := site.Listen(addr)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(l.URLs()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin) // an error ends it as the end does
	}()
	if err := l.Run(ctx); err != nil || log == "" {
		return err
	}
	f, err := os.Create(log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return site.WriteLog(f)
}
