package robots

import (
	"slices"
	"strings"
	"time"
)

// Group is the set of rules for one product token, merged over the file. It is
// immutable and safe for concurrent use. A nil Group allows everything.
type Group struct {
	rules    []rule // best first: longest pattern, Allow before Disallow
	delay    time.Duration
	hasDelay bool
}

// rule is one pattern; a line may give more than one.
type rule struct {
	pattern string
	line    string // e.g. "Disallow: /private", what a person is shown
	allow   bool
	literal bool // neither "*" nor a final "$"
}

// Group merges the groups that name product, compared without case (RFC 9309
// section 2.2.1), or else the groups for "*". What follows a "/" in product is
// dropped. The result is never nil; without any matching group it allows all.
func (f *File) Group(product string) *Group {
	product, _, _ = strings.Cut(product, "/")
	named := func(agent string) bool {
		return agent != "*" && product != "" && (equalFold(agent, product) || equalFold(token(agent), product))
	}
	if g, found := f.merge(named); found {
		return g
	}
	g, _ := f.merge(func(agent string) bool { return agent == "*" })
	return g
}

func (f *File) merge(match func(agent string) bool) (*Group, bool) {
	g, found := &Group{}, false
	for _, b := range f.blocks {
		i := slices.IndexFunc(b.agents, match)
		if i < 0 {
			continue
		}
		found = true
		g.rules = append(g.rules, b.rules...)
		for _, d := range b.delays {
			if i >= d.agents {
				continue
			}
			if !g.hasDelay || d.delay > g.delay {
				g.delay = d.delay
			}
			g.hasDelay = true
		}
	}
	slices.SortStableFunc(g.rules, func(a, b rule) int {
		if d := len(b.pattern) - len(a.pattern); d != 0 {
			return d
		}
		switch {
		case a.allow == b.allow:
			return 0
		case a.allow:
			return -1
		}
		return 1
	})
	return g, found
}

// Allowed reports whether a URL's path and query (with the leading "/") may be
// fetched, and the line that decided, as "Disallow: /private"; the line is empty
// where no rule matched. It allocates nothing when pathQuery is in canonical
// form; time is at most proportional to rules x length of pathQuery.
func (g *Group) Allowed(pathQuery string) (ok bool, line string) {
	if g == nil || len(g.rules) == 0 {
		return true, ""
	}
	if pathQuery == "" {
		pathQuery = "/"
	}
	if pathQuery == "/robots.txt" {
		return true, ""
	}
	decoded, nonASCII := pathQuery, false
	if !canonical(pathQuery) {
		decoded, nonASCII = normalise(pathQuery)
	}
	same := decoded == pathQuery
	for i := range g.rules {
		r := &g.rules[i]
		if r.matches(pathQuery) || !same && !(r.allow && nonASCII) && r.matches(decoded) {
			return r.allow, r.line
		}
	}
	return true, ""
}

// CrawlDelay is the pause between requests the group asks for, the longest where
// it asks more than once, and whether it asks at all. It is not capped to what a
// crawler is ready to honour.
func (g *Group) CrawlDelay() (time.Duration, bool) {
	if g == nil {
		return 0, false
	}
	return g.delay, g.hasDelay
}

// size estimates the bytes the group holds.
func (g *Group) size() int64 {
	if g == nil {
		return 0
	}
	n := int64(64)
	for i := range g.rules {
		n += 48 + int64(len(g.rules[i].pattern)+len(g.rules[i].line))
	}
	return n
}
