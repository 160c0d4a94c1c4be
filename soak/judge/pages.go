package judge

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"deepcrawl/soak/web"
)

// Missed finds the allowed paths that never gave their final answer to an
// agent. An answer counts when it was of the expected kind and sent to its
// end; bodies meant to be too big or too slow count when they were begun. With
// no agents given those found in the log are taken.
func Missed(hits []web.Hit, expected iter.Seq[web.Expectation], agents []string) []Violation {
	type seen struct {
		kind    web.Kind
		whole   bool
		n       int
		last    web.Kind
		lastSeq uint64
	}
	got := make(map[Request]seen, len(hits))
	found := map[string]bool{}
	for _, h := range hits {
		found[h.Agent] = true
		s := got[requestOf(h)]
		s.n, s.last, s.lastSeq = s.n+1, h.Kind, h.Seq
		if !s.whole {
			s.kind = h.Kind
			s.whole = answered(h)
		}
		got[requestOf(h)] = s
	}
	if len(agents) == 0 {
		for a := range found {
			agents = append(agents, a)
		}
		slices.Sort(agents)
	}
	if len(agents) == 0 {
		agents = []string{""}
	}
	var vs []Violation
	for e := range expected {
		if !e.Allowed {
			continue
		}
		for _, a := range agents {
			s, ok := got[Request{a, e.Host, e.Path}]
			v := Violation{Rule: RuleMissed, Host: e.Host, Path: e.Path, Agent: a}
			switch {
			case !ok:
				v.Detail = "never requested"
			case !s.whole || s.kind != e.Kind:
				v.Detail = fmt.Sprintf("requested %d times, the last answer was %q, want %q in full", s.n, s.last, e.Kind)
				v.Hits = []uint64{s.lastSeq}
			default:
				continue
			}
			vs = append(vs, v)
		}
	}
	return sorted(vs)
}

// answered reports whether a hit gave what its path finally gives.
func answered(h web.Hit) bool {
	switch h.Kind {
	case web.KindFails, web.KindUnavailable, web.KindTooMany, web.KindTooManyDate, web.KindReset, web.KindHang:
		return false
	case web.KindBig, web.KindDrip:
		return h.Status != 0
	default:
		return !h.Aborted && !h.End.IsZero()
	}
}

// Repeats says which requests beside the first are explained.
type Repeats struct {
	// Explained counts further requests by what was asked for, such as those
	// that were in flight when a process was killed.
	Explained map[Request]int
	// Retries is the number of further requests granted to paths whose final
	// answer looks transient: status 500, a body too short or too slow.
	Retries int
}

// InFlight counts, for Repeats.Explained, the requests a process that was
// killed at a moment may have had no chance to record: those in flight then,
// and those that ended within the time a result may wait to be committed.
// hits holds the requests of that process only.
func InFlight(hits []web.Hit, killed time.Time, commit time.Duration) map[Request]int {
	open := map[Request]int{}
	for _, h := range hits {
		if !h.Arrival.After(killed) && (h.End.IsZero() || !h.End.Before(killed.Add(-commit))) {
			open[requestOf(h)]++
		}
	}
	return open
}

// Repeated finds paths that one agent requested more often than they needed
// and the repeats explain. robots.txt, sitemaps and assets are not judged:
// how often they are read is the business of caches.
func Repeated(hits []web.Hit, expected iter.Seq[web.Expectation], r Repeats) []Violation {
	byRequest := make(map[Request][]int32, len(hits))
	for i, h := range hits {
		switch h.Kind {
		case web.KindRobots, web.KindSitemap, web.KindAsset:
			continue
		}
		q := requestOf(h)
		byRequest[q] = append(byRequest[q], int32(i))
	}
	type place struct{ host, path string }
	needed := map[place]int{} // where it is not 1
	for e := range expected {
		n := e.Requests
		switch e.Kind {
		case web.KindBroken, web.KindDrip, web.KindWrongLength:
			n += r.Retries
		}
		if n != 1 {
			needed[place{e.Host, e.Path}] = n
		}
	}
	var vs []Violation
	for q, at := range byRequest {
		if len(at) == 1 {
			continue
		}
		need, ok := needed[place{q.Host, q.Path}]
		if !ok {
			need = 1
		}
		allowed := need + r.Explained[q]
		if len(at) <= allowed {
			continue
		}
		v := Violation{
			Rule: RuleRepeated, Host: q.Host, Path: q.Path, Agent: q.Agent, At: hits[at[allowed]].Arrival,
			Detail: fmt.Sprintf("requested %d times, explained are %d", len(at), allowed),
		}
		for _, i := range at {
			v.Hits = evidence(v.Hits, hits[i].Seq)
		}
		vs = append(vs, v)
	}
	return sorted(vs)
}

// Unexpected finds requests to paths that no page, redirect or sitemap of the
// site names: the crawler made them up. /favicon.ico and /sitemap.xml, which
// clients try by convention, are let pass.
func Unexpected(hits []web.Hit) []Violation {
	var vs []Violation
	for _, h := range hits {
		if h.Kind != web.KindUnknown || h.Path == "/favicon.ico" || h.Path == "/sitemap.xml" {
			continue
		}
		if h.Aborted || h.End.IsZero() {
			continue // what it would have been was not settled yet
		}
		vs = append(vs, Violation{
			Rule: RuleUnexpected, Host: h.Host, Path: h.Path, Agent: h.Agent, At: h.Arrival,
			Detail: "nothing on the site names this path", Hits: []uint64{h.Seq},
		})
	}
	return sorted(vs)
}

// Disallowed finds requests to paths that robots.txt forbids.
func Disallowed(hits []web.Hit, expected iter.Seq[web.Expectation]) []Violation {
	type place struct{ host, path string }
	forbidden := map[place]bool{}
	for e := range expected {
		if !e.Allowed {
			forbidden[place{e.Host, e.Path}] = true
		}
	}
	var vs []Violation
	for _, h := range hits {
		if forbidden[place{h.Host, h.Path}] {
			vs = append(vs, Violation{
				Rule: RuleDisallowed, Host: h.Host, Path: h.Path, Agent: h.Agent, At: h.Arrival,
				Detail: "robots.txt forbids this path", Hits: []uint64{h.Seq},
			})
		}
	}
	return sorted(vs)
}
