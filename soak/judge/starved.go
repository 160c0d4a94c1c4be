package judge

import (
	"fmt"
	"slices"
	"time"

	"deepcrawl/soak/web"
)

// starveWindow is the time over which throughput is taken.
const starveWindow = 5 * time.Second

// Starved finds windows of 5 s in which the site saw less than Terms.LeastShare of the starts that the nodes left should make: the
// median of windows without a fault, times the share of nodes that were awake in the whole window. Looked at are windows from
// Terms.Recovery after a fault on, so that what a dead node held is back, and before nine tenths of all requests were made, so
// that there was work; neither with a pause asked for by a host, nor within stalls. It returns the least share seen, 0 for none.
func Starved(hits []web.Hit, lives []Life, stalls []Span, t Terms) (least float64, vs []Violation) {
	if t.LeastShare <= 0 || len(hits) < 100 {
		return 0, nil
	}
	nodes := map[string]bool{}
	var faults []time.Time
	for _, l := range lives {
		nodes[l.Node] = true
		if l.End == EndKilled {
			faults = append(faults, l.To)
		}
		for _, f := range l.Frozen {
			faults = append(faults, f.From, f.To)
		}
	}
	first := hits[0].Arrival
	last := hits[len(hits)*9/10].Arrival
	type window struct {
		from, to time.Time
		starts   int
		gated    bool
		shaken   bool // a fault was in it or shortly before
		alive    int
	}
	var all []window
	for from := first.Add(2 * time.Second); from.Add(starveWindow).Before(last); from = from.Add(time.Second) {
		w := window{from: from, to: from.Add(starveWindow)}
		for _, h := range hits {
			if !h.Arrival.Before(w.from) && h.Arrival.Before(w.to) {
				w.starts++
			}
			w.gated = w.gated || !h.Gate.IsZero() && h.Gate.After(w.from) && h.End.Before(w.to)
		}
		for _, f := range faults {
			w.shaken = w.shaken || f.Before(w.to) && f.Add(t.Recovery()).After(w.from)
		}
		for _, s := range stalls {
			w.shaken = w.shaken || s.From.Before(w.to) && s.To.After(w.from)
		}
		for name := range nodes {
			if awake(name, lives, w.from, w.to) {
				w.alive++
			}
		}
		if !w.gated {
			all = append(all, w)
		}
	}
	var calm []int
	for _, w := range all {
		if !w.shaken && w.alive == len(nodes) {
			calm = append(calm, w.starts)
		}
	}
	if len(calm) == 0 {
		return 0, nil
	}
	slices.Sort(calm)
	usual := calm[len(calm)/2]
	for _, w := range all {
		if w.shaken || w.alive == 0 {
			continue
		}
		should := float64(usual) * float64(w.alive) / float64(len(nodes))
		share := float64(w.starts) / max(should, 1)
		if least == 0 || share < least {
			least = share
		}
		if share < t.LeastShare && len(vs) == 0 {
			vs = append(vs, Violation{Rule: RuleStall, At: w.from, Detail: fmt.Sprintf(
				"%d starts within %v with %d of %d nodes awake, %d are usual", w.starts, starveWindow, w.alive, len(nodes), usual)})
		}
	}
	return least, vs
}

// awake says whether a node had one process that ran through the whole time.
func awake(node string, lives []Life, from, to time.Time) bool {
	return slices.ContainsFunc(lives, func(l Life) bool {
		if l.Node != node || l.From.After(from) || !l.To.IsZero() && l.To.Before(to) {
			return false
		}
		return !slices.ContainsFunc(l.Frozen, func(f Span) bool { return f.From.Before(to) && f.To.After(from) })
	})
}
