package judge

import (
	"fmt"
	"slices"
	"time"

	"deepcrawl/soak/web"
)

// starveWindow is the time over which throughput is taken.
const starveWindow = 5 * time.Second

// Windows are looked at where this many URLs waited for nothing but a worker all the time, and no pause asked for by a host lay in
// them or shortly before, since a host that asked for one is pressed less for a while.
const (
	starveBacklog = 30
	starveAfter   = 5 * time.Second
)

// Starved finds windows of 5 s in which the site saw less than Terms.LeastShare of the starts that the nodes left should make: the
// median of windows without a fault, times the share of nodes that were awake in the whole window. Windows within Terms.Recovery
// after a fault count as those with one, so that what a dead node held is back; neither they nor stalls are looked at. It returns
// the least share seen, 0 when nothing could be measured.
func Starved(hits []web.Hit, lives []Life, samples []Sample, stalls []Span, t Terms) (least float64, vs []Violation) {
	if t.LeastShare <= 0 || len(hits) == 0 {
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
	type window struct {
		from   time.Time
		starts int
		alive  int
	}
	var windows []window
	var calm []int
	last := hits[len(hits)-1].Arrival
	for from := hits[0].Arrival; from.Add(starveWindow).Before(last); from = from.Add(time.Second) {
		w, to := window{from: from}, from.Add(starveWindow)
		if !backlog(samples, from, to) {
			continue
		}
		gated := false
		for _, h := range hits {
			if !h.Arrival.Before(from) && h.Arrival.Before(to) {
				w.starts++
			}
			gated = gated || !h.Gate.IsZero() && h.Gate.Add(starveAfter).After(from) && h.End.Before(to)
		}
		shaken := slices.ContainsFunc(faults, func(f time.Time) bool { return f.Before(to) && f.Add(t.Recovery()).After(from) }) ||
			slices.ContainsFunc(stalls, func(s Span) bool { return s.From.Before(to) && s.To.After(from) })
		for name := range nodes {
			if awake(name, lives, from, to) {
				w.alive++
			}
		}
		if gated || shaken || w.alive == 0 {
			continue
		}
		windows = append(windows, w)
		if w.alive == len(nodes) {
			calm = append(calm, w.starts)
		}
	}
	if len(calm) == 0 {
		return 0, nil
	}
	slices.Sort(calm)
	usual := calm[len(calm)/2]
	for _, w := range windows {
		should := float64(usual) * float64(w.alive) / float64(len(nodes))
		share := float64(w.starts) / max(should, 1)
		if least == 0 || share < least {
			least = share
		}
		if share < t.LeastShare && len(vs) == 0 {
			vs = append(vs, Violation{Rule: RuleStall, At: w.from, Detail: fmt.Sprintf(
				"%d starts within %v with %d of %d nodes awake and work for them, %d are usual", w.starts, starveWindow, w.alive, len(nodes), usual)})
		}
	}
	return least, vs
}

// backlog says whether there was work enough at every moment that was looked at, and that was often enough.
func backlog(samples []Sample, from, to time.Time) bool {
	looked := 0
	for _, s := range samples {
		if s.At.Before(from) || s.At.After(to) {
			continue
		}
		if s.Ready < starveBacklog {
			return false
		}
		looked++
	}
	return looked >= 5
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

// Silence finds times longer than Terms.Recovery in which no request was started although work waited for nothing but a worker,
// whatever was done to nodes meanwhile. Pauses that hosts asked for, and the time in which the whole cluster was off the database or
// coordination moved, do not count. It returns the longest.
func (e Evidence) Silence(t Terms) (longest time.Duration, vs []Violation) {
	excused := e.disturbed("")
	starts := make([]time.Time, 0, len(e.Hits))
	for _, h := range e.Hits {
		starts = append(starts, h.Arrival)
		if !h.Gate.IsZero() && !h.End.IsZero() {
			excused = append(excused, Span{h.End, h.Gate})
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	for i := 1; i < len(starts); i++ {
		from, to := starts[i-1], starts[i]
		if to.Sub(from) < longest || !waited(e.Samples, from, to) {
			continue
		}
		quiet := to.Sub(from) - covered(excused, from, to)
		longest = max(longest, quiet)
		if quiet > t.Recovery()+t.Late {
			vs = append(vs, Violation{Rule: RuleStall, At: from, Detail: fmt.Sprintf("no start within %v, of which %v have no excuse, and there was work", to.Sub(from).Round(time.Millisecond), quiet.Round(time.Millisecond))})
		}
	}
	return longest, vs
}

// waited says whether there was work at every moment that was looked at, and that was looked.
func waited(samples []Sample, from, to time.Time) bool {
	looked := false
	for _, s := range samples {
		if s.At.Before(from) || s.At.After(to) {
			continue
		}
		if s.Ready == 0 {
			return false
		}
		looked = true
	}
	return looked
}
