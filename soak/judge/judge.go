// Package judge checks a crawl from the outside. It shares no code with the
// crawler: what is here needs only the log of the site that was crawled and
// what the site expects of a crawl (package web).
//
// Every check is a pure function from a log to violations. A violation carries
// the evidence: what was requested when, and the numbers of the hits. Times are
// the site's; its log never counts a request as open while the client had
// it not (see package web), so an excess found here was one.
package judge

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"deepcrawl/soak/web"
)

// Rule names what was violated.
type Rule string

// The rules checked from the hit log.
const (
	RuleMissed     Rule = "missed"     // a page never gave its final answer to a crawl
	RuleRepeated   Rule = "repeated"   // a page was requested more often than can be explained
	RuleUnexpected Rule = "unexpected" // a path was requested that nothing on the site names
	RuleCap        Rule = "cap"        // more requests in flight to a host than its cap
	RuleDisallowed Rule = "disallowed" // a request to a path that robots.txt forbids
	RuleGate       Rule = "gate"       // a request to a host that had asked for a pause
	RuleRate       Rule = "rate"       // more starts within a window than the rate allows
)

// Violation is one finding with its evidence.
type Violation struct {
	Rule   Rule
	Host   string    // without port
	Path   string    // "" when the finding is about a host
	Agent  string    // the run, by its user agent; "" when the finding is about all
	At     time.Time // when it began; zero when it never happened, as with a missed page
	Detail string
	Hits   []uint64 // numbers of the hits that show it, at most 64
}

// String is one line for people.
func (v Violation) String() string {
	s := fmt.Sprintf("%s: %s%s", v.Rule, v.Host, v.Path)
	if v.Agent != "" {
		s += fmt.Sprintf(" (%s)", v.Agent)
	}
	if !v.At.IsZero() {
		s += " at " + v.At.UTC().Format("15:04:05.000000 UTC")
	}
	return s + ": " + v.Detail
}

const maxEvidence = 64

func evidence(seqs []uint64, seq uint64) []uint64 {
	if len(seqs) < maxEvidence {
		seqs = append(seqs, seq)
	}
	return seqs
}

// Request identifies what a run asks for: an agent, a host without port, a
// path with its query.
type Request struct {
	Agent, Host, Path string
}

func requestOf(h web.Hit) Request { return Request{h.Agent, h.Host, h.Path} }

// Rules says what a crawl was to keep to. A rule whose field is zero is not
// checked; missed, repeated, unexpected and disallowed always are.
type Rules struct {
	// Agents are the runs, each of which had to see every page. Empty means
	// the agents found in the log, or "" when it is empty.
	Agents  []string
	Repeats Repeats
	Cap     int // requests in flight to each host
	Gate    *Gate
	Rate    *Rate
}

// Check applies all rules, and returns the violations in the order of rules.
func Check(hits []web.Hit, expected iter.Seq[web.Expectation], r Rules) []Violation {
	vs := Missed(hits, expected, r.Agents)
	vs = append(vs, Repeated(hits, expected, r.Repeats)...)
	vs = append(vs, Unexpected(hits)...)
	vs = append(vs, Disallowed(hits, expected)...)
	if r.Cap > 0 {
		vs = append(vs, OverCap(hits, r.Cap)...)
	}
	if r.Gate != nil {
		vs = append(vs, InGate(hits, *r.Gate)...)
	}
	if r.Rate != nil {
		vs = append(vs, OverRate(hits, *r.Rate)...)
	}
	return vs
}

// byHost splits a log by host; each part is in order of arrival.
func byHost(hits []web.Hit) iter.Seq2[string, []web.Hit] {
	parts := map[string][]web.Hit{}
	for _, h := range hits {
		parts[h.Host] = append(parts[h.Host], h)
	}
	names := make([]string, 0, len(parts))
	for name, part := range parts {
		names = append(names, name)
		slices.SortStableFunc(part, func(a, b web.Hit) int { return a.Arrival.Compare(b.Arrival) })
	}
	slices.Sort(names)
	return func(yield func(string, []web.Hit) bool) {
		for _, name := range names {
			if !yield(name, parts[name]) {
				return
			}
		}
	}
}

// sorted orders violations by time, then host and path.
func sorted(vs []Violation) []Violation {
	slices.SortFunc(vs, func(a, b Violation) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Agent, b.Agent))
	})
	return vs
}
