package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

// topPages is how many pages the lists of the summary hold.
const topPages = 5

// summaryOf is what a summary says beyond what is stored.
type summaryOf struct {
	resume string // command; empty: none to offer
	db     string // the --db flag, if given, to repeat in commands
	traps  map[string]string
	cuts   map[string]string
}

// summarize prints how a run stands, for people.
func (p *program) summarize(ctx context.Context, st storage.Store, r storage.Run, l storage.Ledger, of summaryOf) error {
	var b strings.Builder
	head(&b, r, l)
	statusLines(&b, l)
	for _, list := range []struct {
		title, by string
		value     func(storage.PageRow) string
	}{
		{"Slowest pages", "total", func(p storage.PageRow) string { return span(p.Total) }},
		{"Largest pages", "bytes", func(p storage.PageRow) string { return size(p.Bytes) }},
	} {
		rows, err := st.TopPages(ctx, r.ID, list.by, topPages)
		if err != nil {
			return ofRun(r.ID, err)
		}
		if len(rows) < 2 {
			continue // of one page neither is worth a list
		}
		fmt.Fprintf(&b, "\n%s\n", list.title)
		for _, row := range rows {
			fmt.Fprintf(&b, "  %12s  %s\n", list.value(row), clean(row.URL))
		}
	}
	broken, err := st.BrokenLinks(ctx, r.ID, topPages+1)
	if err != nil {
		return ofRun(r.ID, err)
	}
	brokenLines(&b, broken, r.ID, of.db)
	if len(of.cuts) > 0 {
		b.WriteString("\nLeft out\n")
		for _, kind := range slices.Sorted(maps.Keys(of.cuts)) {
			fmt.Fprintf(&b, "  %s: %s\n", kind, clean(of.cuts[kind]))
		}
	}
	if len(of.traps) > 0 {
		b.WriteString("\nCrawler traps met, not crawled on\n")
		for _, kind := range slices.Sorted(maps.Keys(of.traps)) {
			fmt.Fprintf(&b, "  %s: %s\n", kind, clean(of.traps[kind]))
		}
	}
	if l.Discovered == 1 && l.Fetched == 1 {
		rows, err := st.ListPages(ctx, r.ID, storage.PageQuery{Limit: 1})
		if err != nil {
			return ofRun(r.ID, err)
		}
		if len(rows) == 1 && rows[0].RedirectTo != "" && rows[0].RedirectTo != rows[0].URL {
			fmt.Fprintf(&b, "\nThe site redirects out of what is crawled; perhaps this is the one to crawl\n  %s\n", clean(rows[0].RedirectTo))
		}
	}
	next(&b, r, of)
	_, err = p.stdout.Write([]byte(b.String()))
	return err
}

func head(b *strings.Builder, r storage.Run, l storage.Ledger) {
	row := newRunRow(r, l)
	fmt.Fprintf(b, "%s\nrun %d, %s", clean(row.URL), r.ID, r.State)
	if reason := waits(r); reason != "" {
		fmt.Fprintf(b, " (%s)", clean(reason))
	}
	if r.WorkedFor > 0 {
		fmt.Fprintf(b, ", %s of work", span(r.WorkedFor))
	}
	b.WriteString("\n\n")
	fmt.Fprintf(b, "  %s discovered: %s fetched, %s failed, %s excluded", plural(l.Discovered, "URL"), count(l.Fetched), count(l.Failed), count(l.Excluded))
	if left := l.Queued + l.Claimed + l.Delayed; left > 0 {
		fmt.Fprintf(b, ", %s left", count(left))
	}
	b.WriteString("\n")
	if l.Bytes > 0 {
		fmt.Fprintf(b, "  %s of pages", size(l.Bytes))
		if l.WireBytes > 0 && l.WireBytes < l.Bytes {
			fmt.Fprintf(b, ", %s transferred", size(l.WireBytes))
		}
		if secs := r.WorkedFor.Seconds(); secs >= 1 {
			fmt.Fprintf(b, ", %.1f pages/s", float64(l.Fetched+l.Failed)/secs)
		}
		b.WriteString("\n")
	}
	if l.LateRefused > 0 {
		fmt.Fprintf(b, "  %s of sessions given up were refused\n", plural(l.LateRefused, "late result"))
	}
}

// statusLines counts answers by class, each with its statuses, and URLs without a page by reason.
func statusLines(b *strings.Builder, l storage.Ledger) {
	var classes [10]int64
	statuses := slices.Sorted(maps.Keys(l.ByStatus))
	for _, s := range statuses {
		if s >= 100 && s < 1000 {
			classes[s/100] += l.ByStatus[s]
		}
	}
	title := "\nAnswers\n"
	for class, n := range classes {
		if n == 0 {
			continue
		}
		var parts []string
		for _, s := range statuses {
			if s/100 == class {
				parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s x %d %s", count(l.ByStatus[s]), s, http.StatusText(s))))
			}
		}
		fmt.Fprintf(b, "%s  %dxx %9s  %s\n", title, class, count(n), strings.Join(parts, ", "))
		title = ""
	}
	if len(l.ByReason) == 0 {
		return
	}
	b.WriteString("\nNot fetched, and why\n")
	words := slices.SortedFunc(maps.Keys(l.ByReason), func(a, c storage.Reason) int {
		return cmp.Or(cmp.Compare(l.ByReason[c], l.ByReason[a]), cmp.Compare(a, c))
	})
	for _, w := range words {
		fmt.Fprintf(b, "  %-18s %9s  %s\n", w, count(l.ByReason[w]), reasonText(w))
	}
}

// reasonText says what a reason code means.
func reasonText(r storage.Reason) string {
	switch r {
	case crawl.ReasonRobots:
		return "robots.txt disallows it"
	case crawl.ReasonUnreachable:
		return "robots.txt could not be had, so nothing may be requested"
	case crawl.ReasonScope:
		return "the start URL is outside the scope"
	case crawl.ReasonDepth:
		return "more links away from the start than --depth allows"
	case crawl.ReasonLimit:
		return "the page or time limit was reached first"
	case crawl.ReasonTrap:
		return "an endless space of URLs"
	case crawl.ReasonTooLong:
		return fmt.Sprintf("URL longer than %d bytes", storage.MaxURL)
	case crawl.ReasonChain:
		return "too many redirects in a row"
	case crawl.ReasonHTTP:
		return "an error status that stayed"
	case crawl.ReasonRateLimited:
		return "the host kept asking to wait"
	case crawl.ReasonPanic:
		return "deepcrawl's own bug, please report it"
	case crawl.ReasonHostDown:
		return "its host gave no answer for too long"
	case "dns":
		return "unknown host"
	case "timeout":
		return "no answer in time"
	case "tls":
		return "certificate or TLS handshake not accepted"
	case "refused":
		return "connection refused"
	case "reset":
		return "connection broken off"
	case "too-large":
		return "body beyond the size limit"
	case "truncated":
		return "body ended early; what came was read"
	case "malformed":
		return "the answer is no HTTP"
	case "decode":
		return "body cannot be decompressed"
	case "private":
		return "a private address (--allow-private allows them)"
	}
	return ""
}

func brokenLines(b *strings.Builder, broken []storage.BrokenLink, run storage.RunID, db string) {
	if len(broken) == 0 {
		return
	}
	b.WriteString("\nBroken links\n")
	for i, l := range broken {
		if i == topPages {
			fmt.Fprintf(b, "  and more: deepcrawl export %d --what links%s\n", run, dbFlag(db))
			break
		}
		fmt.Fprintf(b, "  %12s  %s\n", outcome(l.Status, l.Reason), clean(l.URL))
		if l.Source != "" {
			fmt.Fprintf(b, "  %12s  on %s, e.g. %s\n", "", plural(l.Inlinks, "page"), clean(l.Source))
		}
	}
}

func next(b *strings.Builder, r storage.Run, of summaryOf) {
	b.WriteString("\nNext\n")
	if !r.State.Terminal() && of.resume != "" {
		fmt.Fprintf(b, "  %s\n", of.resume)
	}
	fmt.Fprintf(b, "  deepcrawl export %d -o pages.csv%s\n", r.ID, dbFlag(of.db))
	fmt.Fprintf(b, "  deepcrawl export %d --what links -o links.csv%s\n", r.ID, dbFlag(of.db))
	if r.State == storage.RunDone && r.Finished.Sub(r.Created) > 0 {
		fmt.Fprintf(b, "  deepcrawl export %d --what sitemap -o sitemap.xml%s\n", r.ID, dbFlag(of.db))
	}
}
