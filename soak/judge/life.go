package judge

import (
	"fmt"
	"slices"
	"time"

	"deepcrawl/soak/web"
)

// Rules checked with what the soak knows of the nodes' processes.
const (
	RuleRecovery Rule = "recovery" // what a dead node had in flight was requested again too late
	RuleLeak     Rule = "leak"     // a node that has ended its work still had goroutines or connections
	RuleMemory   Rule = "memory"   // a node used more memory than the bound
	RuleExit     Rule = "exit"     // a node that was asked to end did not end well
	RuleStall    Rule = "stall"    // the site saw too few requests while there was work and a node to do it
)

// Ending is how a process ended.
type Ending string

// How a process ends.
const (
	EndKilled Ending = "killed" // by the soak, with SIGKILL
	EndAsked  Ending = "asked"  // by the soak, with SIGTERM
	EndItself Ending = "itself" // nobody had asked
)

// Span is a time from and to.
type Span struct{ From, To time.Time }

// Life is one process of a node.
type Life struct {
	Node   string
	Source string // address of its requests
	From   time.Time
	To     time.Time // when it was gone; for a killed one when the signal was sent
	End    Ending
	Exit   int // code; -1 by a signal
	// Drift is the share by which its clock runs too fast.
	Drift float64
	// Frozen are the times it was stopped (SIGSTOP).
	Frozen []Span
	// PeakMemory is the most that was resident, in bytes; 0 when it was not seen.
	PeakMemory int64
	// Sockets is the number of open sockets after the work was done and before it was asked to end; -1 when not seen.
	Sockets int
}

// of returns the hits of the process.
func (l Life) of(hits []web.Hit) []web.Hit {
	var own []web.Hit
	for _, h := range hits {
		if h.Source == l.Source && !h.Arrival.Before(l.From) && (l.To.IsZero() || l.End != EndKilled || !h.Arrival.After(l.To.Add(time.Second))) {
			own = append(own, h)
		}
	}
	return own
}

// losses are the moments at which a process may have lost answers it had got: it was killed, drained while it could not reach the
// database, or frozen or off the database for longer than a session lives. A frozen one may, awake, still make the requests that
// had passed its guard, which others were given meanwhile.
func (l Life) losses(outages []Outage, death time.Duration) []Span {
	var all []Span
	if l.End == EndKilled {
		all = append(all, Span{l.To, l.To})
	}
	// It may have been given up before its silence was as long as that.
	long := func(s Span) bool { return s.To.Sub(s.From) >= death/2 }
	for _, f := range l.Frozen {
		if long(f) {
			all = append(all, f)
		}
	}
	for _, o := range outages {
		if !o.of(l.Node) || o.To.Before(l.From) || !l.To.IsZero() && o.From.After(l.To) {
			continue
		}
		if long(o.Span) {
			all = append(all, o.Span)
		} else if l.End == EndAsked && o.overlaps(l.To.Add(-death), l.To) {
			all = append(all, Span{l.To, l.To})
		}
	}
	return all
}

// ExplainLosses counts the repeats that killed, frozen and cut off processes explain. commit is how long a result may wait to be
// stored.
func ExplainLosses(hits []web.Hit, lives []Life, outages []Outage, death, commit time.Duration) map[Request]int {
	explained := map[Request]int{}
	for _, l := range lives {
		own := l.of(hits)
		for _, loss := range l.losses(outages, death) {
			for q, n := range InFlight(own, loss.From, loss.From.Sub(lastStored(l.Node, loss.From, outages, commit))) {
				explained[q] += n
			}
			for _, h := range own {
				if loss.To.After(loss.From) && h.Arrival.After(loss.From) && h.Arrival.Before(loss.To.Add(commit)) {
					explained[requestOf(h)]++
				}
			}
		}
	}
	return explained
}

// Recovery is how long the cluster took to ask again for what a loss had left unfinished.
type Recovery struct {
	Node  string
	At    time.Time // of the loss
	Took  time.Duration
	Again int // requests made again
	Last  web.Hit
}

// Recoveries measures each loss: to the last of the requests made again. Pauses that the host asked for meanwhile do not count, nor
// does time in which the rest of the cluster was disturbed too.
func (e Evidence) Recoveries(death, commit time.Duration) []Recovery {
	byRequest := map[Request][]web.Hit{}
	for _, h := range e.Hits {
		byRequest[requestOf(h)] = append(byRequest[requestOf(h)], h)
	}
	var all []Recovery
	for _, l := range e.Lives {
		own, disturbed := l.of(e.Hits), e.disturbed(l.Node)
		for _, loss := range l.losses(e.Outages, death) {
			r := Recovery{Node: l.Node, At: loss.From}
			for q := range InFlight(own, loss.From, commit) {
				later := byRequest[q]
				i := slices.IndexFunc(later, func(h web.Hit) bool { return h.Arrival.After(loss.From) })
				if i <= 0 {
					continue
				}
				switch later[i-1].Kind {
				case web.KindPage, web.KindRedirect, web.KindNotFound, web.KindGone, web.KindForbidden, web.KindBig:
				default:
					continue // asked for again by itself, later than others
				}
				r.Again++
				took := later[i].Arrival.Sub(loss.From) - covered(append(paused(e.Hits, later[i].Host), disturbed...), loss.From, later[i].Arrival)
				if took > r.Took {
					r.Took, r.Last = took, later[i]
				}
			}
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b Recovery) int { return a.At.Compare(b.At) })
	return all
}

// paused are the times during which a host had asked to be left alone.
func paused(hits []web.Hit, host string) (spans []Span) {
	for _, h := range hits {
		if h.Host == host && !h.Gate.IsZero() && !h.End.IsZero() {
			spans = append(spans, Span{h.End, h.Gate})
		}
	}
	return spans
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// SlowRecovery finds losses that took longer than allowed.
func SlowRecovery(recoveries []Recovery, allowed time.Duration) []Violation {
	var vs []Violation
	for _, r := range recoveries {
		if r.Took > allowed {
			vs = append(vs, Violation{
				Rule: RuleRecovery, Host: r.Last.Host, Path: r.Last.Path, Agent: r.Last.Agent, At: r.At, Hits: []uint64{r.Last.Seq},
				Detail: fmt.Sprintf("what node %s had in flight was requested again after %v, allowed are %v", r.Node, r.Took.Round(time.Millisecond), allowed),
			})
		}
	}
	return vs
}

// Bounds are what a node may use.
type Bounds struct {
	Memory  int64 // resident bytes
	Sockets int   // when there is no work left
	// Goroutines left when a node has ended its work and is about to exit.
	Goroutines int
}

// OverBounds finds processes that used too much, or ended in a way nobody asked for. One that does not reach the database may end
// by itself when it starts, for cron or systemd to start it again, and cannot drain well.
func OverBounds(lives []Life, outages []Outage, t Terms) []Violation {
	var vs []Violation
	b := t.Bounds
	for _, l := range lives {
		off := slices.ContainsFunc(outages, func(o Outage) bool { return o.of(l.Node) && o.overlaps(l.To.Add(-t.Recovery()), l.To) })
		add := func(rule Rule, format string, args ...any) {
			vs = append(vs, Violation{Rule: rule, At: l.To, Detail: "node " + l.Node + " " + fmt.Sprintf(format, args...)})
		}
		if b.Memory > 0 && l.PeakMemory > b.Memory {
			add(RuleMemory, "had %d MB resident, allowed are %d", l.PeakMemory>>20, b.Memory>>20)
		}
		if b.Sockets > 0 && l.Sockets > b.Sockets {
			add(RuleLeak, "had %d sockets open after the work was done, allowed are %d", l.Sockets, b.Sockets)
		}
		switch {
		case off && (l.End == EndAsked || l.End == EndItself && l.Exit == 1):
		case l.End == EndItself:
			add(RuleExit, "ended by itself with exit code %d", l.Exit)
		case l.End == EndAsked && l.Exit != 0:
			add(RuleExit, "was asked to drain and ended with exit code %d", l.Exit)
		}
	}
	return vs
}

// withoutFrozen drops the requests of frozen processes from the start of the freeze until the deadline of a request after its
// end: what such a process can add is bounded by the slots it held, and no protocol can do better (PROTOCOL, I6).
func withoutFrozen(hits []web.Hit, lives []Life, deadline time.Duration) []web.Hit {
	return slices.DeleteFunc(slices.Clone(hits), func(h web.Hit) bool {
		for _, l := range lives {
			if l.Source != h.Source {
				continue
			}
			for _, f := range l.Frozen {
				end := h.End
				if end.IsZero() {
					end = h.Arrival.Add(time.Hour)
				}
				if end.After(f.From) && h.Arrival.Before(f.To.Add(deadline)) {
					return true
				}
			}
		}
		return false
	})
}

// OverCapFrozen is OverCap where processes were frozen: the others together keep to the cap, and with what the frozen ones add the
// host never sees more than the cap twice.
func OverCapFrozen(hits []web.Hit, lives []Life, limit int, deadline time.Duration) []Violation {
	vs := OverCap(withoutFrozen(hits, lives, deadline), limit)
	return append(vs, OverCap(hits, 2*limit)...)
}
