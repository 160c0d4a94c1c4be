package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"deepcrawl/bench/proc"
	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
)

// side is what one crawl of a round gave.
type side struct {
	Pages          int     `json:"pages"` // whole answers with status 200
	Seconds        float64 `json:"seconds"`
	PagesPerSecond float64 `json:"pages_per_second"` // over the whole process, start and finish included
	CPUMicros      float64 `json:"cpu_us_per_page"`
	PeakMB         float64 `json:"peak_mb"`
	MaxInFlight    int     `json:"max_in_flight"`
	// CrawlSeconds is the time from the first request to the end of the last.
	CrawlSeconds float64 `json:"crawl_seconds"`
	// IdealPagesPerSecond is Little's law for this very run: requests allowed
	// in flight over the mean time the site took for one, from its own log.
	// Work of the client between two requests is no part of it.
	IdealPagesPerSecond float64 `json:"ideal_pages_per_second"`
	MeanServiceMillis   float64 `json:"mean_service_ms"`
	// Tenths is pages/s over each tenth of the pages by their end. Most URLs
	// are discovered in the first, none in the last, so the last alone says
	// little about growth.
	Tenths     []float64 `json:"tenths_pages_per_second"`
	SiteMicros float64   `json:"site_cpu_us_per_page"` // what serving a page cost
	Violations int       `json:"violations"`
	Evidence   []string  `json:"evidence,omitempty"` // the first violations
}

// round is one crawl of each kind; a kind that was not run is nil.
type round struct {
	Null *side `json:"null,omitempty"` // the baseline, where that is another
	Deep *side `json:"deepcrawl,omitempty"`
}

const maxEvidence = 10

// measure turns a crawl's usage and the site's log into figures.
func measure(s scenario, u proc.Usage, siteCPU time.Duration, hits []web.Hit) (*side, error) {
	site, err := web.New(s.Site)
	if err != nil {
		return nil, err
	}
	pages := slices.DeleteFunc(slices.Clone(hits), func(h web.Hit) bool {
		return h.Kind != web.KindPage || h.Status != 200 || h.Aborted || h.End.IsZero()
	})
	if len(pages) == 0 {
		return nil, fmt.Errorf("the crawl fetched no page in %v; it said: %s", u.Wall, strings.TrimSpace(string(u.Stdout)))
	}
	slices.SortFunc(pages, func(a, b web.Hit) int { return a.End.Compare(b.End) })
	first := slices.MinFunc(hits, func(a, b web.Hit) int { return a.Arrival.Compare(b.Arrival) }).Arrival
	service := time.Duration(0)
	for _, h := range pages {
		service += h.End.Sub(h.Arrival)
	}
	n := float64(len(pages))
	mean := service.Seconds() / n
	out := &side{
		Pages: len(pages), Seconds: u.Wall.Seconds(), PagesPerSecond: n / u.Wall.Seconds(),
		CPUMicros: float64(u.CPU.Microseconds()) / n, PeakMB: float64(u.Peak) / 1e6, MaxInFlight: web.MaxInFlight(hits, ""),
		CrawlSeconds: pages[len(pages)-1].End.Sub(first).Seconds(), MeanServiceMillis: 1e3 * mean,
		IdealPagesPerSecond: float64(s.InFlight) / mean, SiteMicros: float64(siteCPU.Microseconds()) / n,
	}
	out.Tenths = tenths(pages)
	vs := judge.Check(hits, site.Expected(), judge.Rules{Cap: s.InFlight})
	out.Violations = len(vs)
	for _, v := range vs[:min(len(vs), maxEvidence)] {
		out.Evidence = append(out.Evidence, v.String())
	}
	return out, nil
}

// tenths is pages/s over each tenth of the pages, which are in the order of
// their end. Fewer than twenty pages have no tenths.
func tenths(pages []web.Hit) []float64 {
	if len(pages) < 20 {
		return nil
	}
	rates := make([]float64, 10)
	for i := range rates {
		part := pages[len(pages)*i/10 : len(pages)*(i+1)/10]
		d := part[len(part)-1].End.Sub(part[0].End).Seconds()
		rates[i] = float64(len(part)-1) / max(d, 1e-9)
	}
	return rates
}

// column is one column of the table of rounds.
type column struct {
	head, format string
	of           metric
}

func sideColumn(head, format string, null bool, of func(*side) float64) column {
	return column{head, format, metric{head, func(r round) (float64, bool) {
		s := r.Deep
		if null {
			s = r.Null
		}
		if s == nil {
			return 0, false
		}
		v := of(s)
		return v, v != 0 // what was not measured is zero
	}}}
}

func tenthColumn(head string, of func([]float64) float64) column {
	return column{head, "%.0f", metric{head, func(r round) (float64, bool) {
		if r.Deep == nil || r.Deep.Tenths == nil {
			return 0, false
		}
		return of(r.Deep.Tenths), true
	}}}
}

// columns of the table under the names of what is compared; those no round knows are left out.
func columns(rounds []round, heads [2]string) []column {
	base, deep := cmp.Or(heads[0], "null"), cmp.Or(heads[1], "deep")
	rate := func(s *side) float64 { return s.PagesPerSecond }
	cpu := func(s *side) float64 { return s.CPUMicros }
	peak := func(s *side) float64 { return s.PeakMB }
	all := []column{
		sideColumn(base+" p/s", "%.0f", true, rate),
		sideColumn(deep+" p/s", "%.0f", false, rate),
		{"ratio", "%.2f", speedRatio},
		sideColumn(base+" us/p", "%.0f", true, cpu),
		sideColumn(deep+" us/p", "%.0f", false, cpu),
		{"ratio", "%.2f", cpuRatio},
		sideColumn(base+" MB", "%.0f", true, peak),
		sideColumn(deep+" MB", "%.0f", false, peak),
		sideColumn("in flight", "%.0f", false, func(s *side) float64 { return float64(s.MaxInFlight) }),
		{"of ideal", "%.3f", idealShare},
		tenthColumn("1st tenth", func(t []float64) float64 { return t[0] }),
		tenthColumn("slowest", slices.Min[[]float64]),
		tenthColumn("last tenth", func(t []float64) float64 { return t[9] }),
		sideColumn("site us/p", "%.0f", false, func(s *side) float64 { return s.SiteMicros }),
	}
	return slices.DeleteFunc(all, func(c column) bool { return len(values(c.of, rounds)) == 0 })
}

// row of the table for one round.
func (c column) cell(r round) string {
	v, ok := c.of.Of(r)
	if !ok {
		return "-"
	}
	return fmt.Sprintf(c.format, v)
}

// spread is the largest value over the smallest, a hint of how noisy the machine is.
func spread(vs []float64) float64 {
	if len(vs) == 0 {
		return 0
	}
	return slices.Max(vs) / cmp.Or(slices.Min(vs), 1)
}
