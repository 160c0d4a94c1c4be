package judge

import (
	"slices"
	"time"

	"deepcrawl/soak/web"
)

// Outage is a time during which a node, or where Node is empty every node, could not reach the database.
type Outage struct {
	Span
	Node string
}

func (o Outage) of(node string) bool { return o.Node == "" || o.Node == node }

// settle is how long after its servers are well again a cluster may need to grant as before (docs/guarantees.md, L1).
const settle = 12 * time.Second

// overlaps says whether a span and the time between two moments have something in common.
func (s Span) overlaps(from, to time.Time) bool { return !s.From.After(to) && !s.To.Before(from) }

// lastStored is the moment before which a node's results were stored when it was lost at a moment: it may wait for a commit, and
// for longer when it could not reach the database.
func lastStored(node string, lost time.Time, outages []Outage, commit time.Duration) time.Time {
	since := lost.Add(-commit)
	for again := true; again; {
		again = false
		for _, o := range outages {
			if before := o.From.Add(-commit); o.of(node) && o.overlaps(since, lost) && before.Before(since) {
				since, again = before, true
			}
		}
	}
	return since
}

// nodeOf is the node of an address.
func nodeOf(source string, lives []Life) string {
	for _, l := range lives {
		if l.Source == source {
			return l.Node
		}
	}
	return ""
}

// fast is by what share the clock of a request's maker runs too fast.
func (e Evidence) fast(h web.Hit) float64 {
	for _, l := range e.Lives {
		if l.Source == h.Source && !h.Arrival.Before(l.From) && (l.To.IsZero() || !h.Arrival.After(l.To.Add(time.Second))) && l.Drift > 0 {
			return l.Drift
		}
	}
	return 0
}

// deaf says whether the maker of a request could not know that another had been told to stay away: one of the two was off the
// database, or it was frozen with the request past its guard.
func (e Evidence) deaf(told, h web.Hit, t Terms) bool {
	from, late := told.End.Add(-telling), t.Beat+time.Second+t.Late
	for _, o := range e.Outages {
		if (o.of(nodeOf(told.Source, e.Lives)) || o.of(nodeOf(h.Source, e.Lives))) && o.From.Before(h.Arrival) && o.To.Add(late).After(from) && h.Arrival.Before(o.To.Add(late)) {
			return true
		}
	}
	for _, l := range e.Lives {
		if l.Source == h.Source && slices.ContainsFunc(l.Frozen, func(f Span) bool {
			return f.To.After(from) && f.From.Before(h.Arrival) && h.Arrival.Before(f.To.Add(t.Deadline))
		}) {
			return true
		}
	}
	return false
}

// disturbed are the times that a recovery of a node need not count: others were off the database, or coordination moved.
func (e Evidence) disturbed(node string) []Span {
	var spans []Span
	for _, o := range e.Outages {
		if o.Node != node || node == "" {
			spans = append(spans, Span{o.From, o.To.Add(settle)})
		}
	}
	for _, s := range e.Switches {
		spans = append(spans, Span{s.From, s.To.Add(settle)})
	}
	return spans
}

// shaken are the times of which nothing is asked but that the cluster comes back: see Starved.
func (e Evidence) shaken(t Terms) []Span {
	var spans []Span
	for _, o := range e.Outages {
		spans = append(spans, Span{o.From, o.To.Add(t.Recovery())})
	}
	for _, s := range slices.Concat(e.Switches, e.Shakes) {
		spans = append(spans, Span{s.From, s.To.Add(t.Recovery())})
	}
	return spans
}

// covered is how much of the time between two moments the spans cover together.
func covered(spans []Span, from, to time.Time) time.Duration {
	var inside []Span
	for _, s := range spans {
		if s.To.After(from) && s.From.Before(to) {
			inside = append(inside, Span{later(s.From, from), earlier(s.To, to)})
		}
	}
	slices.SortFunc(inside, func(a, b Span) int { return a.From.Compare(b.From) })
	total, at := time.Duration(0), from
	for _, s := range inside {
		s.From = later(s.From, at)
		if s.To.After(s.From) {
			total += s.To.Sub(s.From)
			at = s.To
		}
	}
	return total
}
