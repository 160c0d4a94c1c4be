package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"strings"

	"deepcrawl/soak/web"
)

// summary is the object `deepcrawl crawl --json` ends with, as far as it is checked here.
type summary struct {
	State                                 string
	Discovered, Fetched, Failed, Excluded int
}

// checkSummary compares what deepcrawl says of its run with what the site saw.
func checkSummary(stdout []byte, pages int) error {
	lines := strings.Split(strings.TrimSpace(string(stdout)), "\n")
	var s summary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
		// The object may be spread over lines.
		if err := json.Unmarshal(stdout, &s); err != nil {
			return fmt.Errorf("read the summary of crawl --json: %w", err)
		}
	}
	if s.State != "done" || s.Fetched != pages || s.Discovered != s.Fetched+s.Failed+s.Excluded {
		return fmt.Errorf("the summary is %+v, want done with %d pages fetched and a ledger that balances", s, pages)
	}
	return nil
}

// stored is a row of `deepcrawl export --what pages --format jsonl`, as far as it is checked here.
type stored struct {
	URL, State, Title, Canonical string
	Status, Outlinks, Inlinks    int
	Bytes                        int64
}

// checkStored compares the pages a crawl has stored with those of the site: it
// was only a durable crawl if every page is there, once, with its facts.
func checkStored(export io.Reader, expected iter.Seq[web.Expectation]) error {
	missing := map[string]bool{}
	for e := range expected {
		missing[e.Host+e.Path] = true
	}
	lines := bufio.NewScanner(export)
	lines.Buffer(nil, 1<<20)
	var errs []error
	wrong := func(format string, args ...any) {
		if len(errs) < maxEvidence {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	for lines.Scan() {
		var s stored
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return fmt.Errorf("read the export: %w", err)
		}
		u, err := url.Parse(s.URL)
		if err != nil {
			return fmt.Errorf("read the export: %w", err)
		}
		key := u.Hostname() + u.EscapedPath()
		switch {
		case !missing[key]:
			wrong("stored twice, or no page of the site: %s", s.URL)
		case s.State != "fetched" || s.Status != 200 || s.Title == "" || s.Canonical != s.URL || s.Outlinks == 0 || s.Inlinks == 0 || s.Bytes == 0:
			wrong("stored without all its facts: %+v", s)
		}
		delete(missing, key)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the export: %w", err)
	}
	if len(missing) > 0 {
		wrong("%d pages are not stored", len(missing))
	}
	return errors.Join(errs...)
}

// checkStoredFile is checkStored for a file.
func checkStoredFile(name string, expected iter.Seq[web.Expectation]) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(checkStored(f, expected), f.Close())
}
