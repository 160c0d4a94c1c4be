package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
)

// pages are the whole answers with status 200, in the order of their end.
func pages(hits []web.Hit) []web.Hit {
	out := slices.DeleteFunc(slices.Clone(hits), func(h web.Hit) bool {
		return h.Kind != web.KindPage || h.Status != 200 || h.Aborted || h.End.IsZero()
	})
	slices.SortFunc(out, func(a, b web.Hit) int { return a.End.Compare(b.End) })
	return out
}

// first is when the first request arrived.
func first(hits []web.Hit) time.Time {
	return slices.MinFunc(hits, func(a, b web.Hit) int { return a.Arrival.Compare(b.Arrival) }).Arrival
}

// speed is pages a second from the first request to the end of the last page.
func speed(hits []web.Hit) float64 {
	p := pages(hits)
	if len(p) == 0 {
		return 0
	}
	return float64(len(p)) / p[len(p)-1].End.Sub(first(hits)).Seconds()
}

// within is pages a second of pages that ended in a window.
func within(p []web.Hit, from, to time.Time) float64 {
	n := 0
	for _, h := range p {
		if !h.End.Before(from) && h.End.Before(to) {
			n++
		}
	}
	return float64(n) / to.Sub(from).Seconds()
}

// middle is pages a second while a tenth to nine tenths of the pages ended.
func middle(p []web.Hit) float64 {
	a, b := len(p)/10, len(p)*9/10
	if b <= a {
		return 0
	}
	return float64(b-a) / p[b].End.Sub(p[a].End).Seconds()
}

// tail is how long the last hundredth of the pages took, over what it would have taken at the speed of the middle.
func tail(p []web.Hit) float64 {
	if len(p) < 100 {
		return 0
	}
	at := len(p) * 99 / 100
	return p[len(p)-1].End.Sub(p[at].End).Seconds() - float64(len(p)-at)/middle(p)
}

// jain is Jain's index of fairness: 1 when all are equal, 1/n when one has all.
func jain(xs []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range xs {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(xs)) * squares)
}

// perHost counts pages of each host that ended in a window.
func perHost(p []web.Hit, hosts []string, from, to time.Time) []float64 {
	n := map[string]float64{}
	for _, h := range p {
		if !h.End.Before(from) && h.End.Before(to) {
			n[h.Host]++
		}
	}
	out := make([]float64, len(hosts))
	for i, h := range hosts {
		out[i] = n[h]
	}
	return out
}

// hostNames are the hosts of home pages, without port.
func hostNames(homes []string) []string {
	out := make([]string, len(homes))
	for i, u := range homes {
		name, _, _ := strings.Cut(strings.TrimPrefix(u, "http://"), ":")
		out[i] = name
	}
	return out
}

// backlogged is the window in which every host still had pages: from when the last began to when the first was through.
func backlogged(p []web.Hit, hosts []string) (from, to time.Time) {
	began, ended := map[string]time.Time{}, map[string]time.Time{}
	for _, h := range p {
		if began[h.Host].IsZero() {
			began[h.Host] = h.End
		}
		ended[h.Host] = h.End
	}
	for i, h := range hosts {
		if i == 0 || began[h].After(from) {
			from = began[h]
		}
		if i == 0 || ended[h].Before(to) {
			to = ended[h]
		}
	}
	return from, to
}

// violations is what the judge finds in the site's log.
func violations(hits []web.Hit, c web.Config, limit int, explained map[judge.Request]int) ([]string, error) {
	s, err := web.New(c)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, v := range judge.Check(hits, s.Expected(), judge.Rules{Cap: limit, Repeats: judge.Repeats{Explained: explained}}) {
		out = append(out, fmt.Sprint(v))
	}
	return out, nil
}

// inFlight is how many requests of a source were in flight at a moment.
func inFlight(hits []web.Hit, source string, at time.Time) int {
	n := 0
	for _, h := range hits {
		if h.Source == source && !h.Arrival.After(at) && (h.End.IsZero() || h.End.After(at)) {
			n++
		}
	}
	return n
}
