package judge

import (
	"fmt"
	"math"
	"slices"
	"time"

	"deepcrawl/soak/web"
)

// OverCap finds the times at which more than limit requests were in flight to
// a host, all agents and sources together; one violation for each time it went
// over, until it was back at the limit. A request that arrives at the instant
// another ends is not beside it. A request without end lasts to the end of the log.
func OverCap(hits []web.Hit, limit int) []Violation {
	var vs []Violation
	for host, part := range byHost(hits) {
		// Ends in order; arrivals are in order already.
		ends := make([]int, 0, len(part))
		for i, h := range part {
			if !h.End.IsZero() {
				ends = append(ends, i)
			}
		}
		slices.SortFunc(ends, func(a, b int) int { return part[a].End.Compare(part[b].End) })
		open := map[int]bool{}
		var over *Violation
		var since time.Time
		peak := 0
		closeAt := func(t time.Time) {
			over.Detail = fmt.Sprintf("up to %d in flight, the cap is %d, for %v", peak, limit, t.Sub(since))
			vs = append(vs, *over)
			over = nil
		}
		for i, h := range part {
			for len(ends) > 0 && !part[ends[0]].End.After(h.Arrival) {
				delete(open, ends[0])
				if over != nil && len(open) <= limit {
					closeAt(part[ends[0]].End)
				}
				ends = ends[1:]
			}
			if h.End.IsZero() || h.End.After(h.Arrival) {
				open[i] = true
			}
			if len(open) <= limit {
				continue
			}
			if over == nil {
				over, since, peak = &Violation{Rule: RuleCap, Host: host, At: h.Arrival}, h.Arrival, 0
			}
			if len(open) > peak {
				peak = len(open)
				over.Hits = over.Hits[:0]
				for o := range open {
					over.Hits = evidence(over.Hits, part[o].Seq)
				}
				slices.Sort(over.Hits)
			}
		}
		if over != nil {
			last := part[len(part)-1].Arrival
			for len(ends) > 0 && len(open) > limit {
				last = part[ends[0]].End
				delete(open, ends[0])
				ends = ends[1:]
			}
			closeAt(last)
		}
	}
	return sorted(vs)
}

// Gate says how soon a pause a host asked for has to be kept.
type Gate struct {
	// Same is how long after the answer the client that got it may still
	// start requests to the host: the time the answer needs to reach it.
	Same time.Duration
	// Other is the same for clients at other addresses.
	Other time.Duration
	// Lost reports answers that nobody came to know, because their reader was
	// killed. May be nil.
	Lost func(web.Hit) bool
	// Deaf reports that the maker of a request at another address could not know what had been told. May be nil.
	Deaf func(told, request web.Hit) bool
	// Fast is by what share the clock of a request's maker runs too fast: a pause ends that much earlier there. May be nil.
	Fast func(web.Hit) float64
}

// InGate finds requests that arrived at a host while it had asked for a pause
// (429 or 503 with Retry-After, RFC 9110 section 10.2.3).
func InGate(hits []web.Hit, g Gate) []Violation {
	var vs []Violation
	for host, part := range byHost(hits) {
		var asked []web.Hit
		for _, h := range part {
			if !h.Gate.IsZero() && !h.Aborted && !h.End.IsZero() && (g.Lost == nil || !g.Lost(h)) {
				asked = append(asked, h)
			}
		}
		slices.SortFunc(asked, func(a, b web.Hit) int { return a.End.Compare(b.End) })
		var gates []web.Hit // asked before the current hit, and not over yet
		for _, h := range part {
			for len(asked) > 0 && asked[0].End.Before(h.Arrival) {
				gates = append(gates, asked[0])
				asked = asked[1:]
			}
			gates = slices.DeleteFunc(gates, func(x web.Hit) bool { return !x.Gate.After(h.Arrival) })
			for _, x := range gates {
				grace := g.Other
				if x.Source == h.Source {
					grace = g.Same
				}
				if g.Fast != nil && x.Gate.Sub(h.Arrival) <= time.Duration(g.Fast(h)*float64(x.Gate.Sub(x.End))) {
					continue
				}
				if h.Arrival.Sub(x.End) <= grace || x.Source != h.Source && g.Deaf != nil && g.Deaf(x, h) {
					continue
				}
				vs = append(vs, Violation{
					Rule: RuleGate, Host: host, Path: h.Path, Agent: h.Agent, At: h.Arrival,
					Detail: fmt.Sprintf("started from %s %v after the host told %s to stay away for another %v",
						h.Source, h.Arrival.Sub(x.End), x.Source, x.Gate.Sub(h.Arrival)),
					Hits: []uint64{x.Seq, h.Seq},
				})
				break
			}
		}
	}
	return sorted(vs)
}

// Rate is a budget of starts to each host.
type Rate struct {
	PerSecond float64
	Burst     float64
	// Slack is added to each window.
	Slack time.Duration
}

// OverRate finds windows in which more requests arrived at a host than
// Burst + PerSecond x (window + Slack). Every window between two arrivals is
// looked at; windows reported do not overlap.
func OverRate(hits []web.Hit, r Rate) []Violation {
	allowed := func(window time.Duration) float64 {
		return r.Burst + r.PerSecond*(window+r.Slack).Seconds()
	}
	var vs []Violation
	for host, part := range byHost(hits) {
		// With a hit's excess k - rate x t, the window from i to j holds too
		// many when excess(j) - excess(i) + 1 is over what a window of no
		// length allows, so only the i of the least excess has to be kept.
		first := 0
		least, leastAt := math.Inf(1), 0
		for j := range part {
			excess := float64(j) - r.PerSecond*part[j].Arrival.Sub(part[first].Arrival).Seconds()
			if excess < least {
				least, leastAt = excess, j
			}
			n, window := j-leastAt+1, part[j].Arrival.Sub(part[leastAt].Arrival)
			if float64(n) <= allowed(window)+1e-9 {
				continue
			}
			v := Violation{
				Rule: RuleRate, Host: host, At: part[leastAt].Arrival,
				Detail: fmt.Sprintf("%d starts within %v, allowed are %.1f", n, window, allowed(window)),
			}
			for _, h := range part[leastAt : j+1] {
				v.Hits = evidence(v.Hits, h.Seq)
			}
			vs = append(vs, v)
			if first = j + 1; first < len(part) {
				least = math.Inf(1)
			}
		}
	}
	return sorted(vs)
}
