package judge

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"deepcrawl/soak/web"
)

// Evidence is all a judge gets to see of a soak.
type Evidence struct {
	Hits     []web.Hit
	Expected func() iter.Seq[web.Expectation]
	Stored   map[int64]*StoredRun
	Ordered  []Ordered
	Tariffs  map[string]Tariff
	Samples  []Sample
	Lives    []Life
	Log      []LogLine
	Acts     []Act    // of who led, in the order in which they were recorded
	Outages  []Outage // of the database
	Switches []Span   // faults of Redis, or of the way there, which may move coordination
	Shakes   []Span   // further faults that take a node away for a while
}

// Terms are what the cluster had promised.
type Terms struct {
	Cap      int           // requests in flight to a host
	Death    time.Duration // T: silence after which a session is dead
	Beat     time.Duration
	Deadline time.Duration // M: of a request
	// Commit is how long a result may wait to be stored.
	Commit time.Duration
	Bounds Bounds
	// Late is added where a busy machine may be late without anybody's fault.
	Late time.Duration
	// LeastShare of its throughput that the site must see from the nodes left, see Starved.
	LeastShare float64
}

// Recovery is the longest that what a dead node had may wait: T, three beats and 2 s.
func (t Terms) Recovery() time.Duration { return t.Death + 3*t.Beat + 2*time.Second }

// Figures are what a judge measured.
type Figures struct {
	Pages      int            // answered, over all runs
	Requests   int            // seen by the site
	Peak       map[string]int // most in flight at one instant, by host
	Repeats    int            // requests beyond the first that nothing at the site asked for
	Explained  int            // of these, by what a dead node had in flight
	Refused    int            // late results that were refused
	Leaders    int            // times a node took the lead
	Recoveries []Recovery
	Slowest    time.Duration // of the recoveries
	Seconds    float64       // from the first request to the last end
	PerSecond  float64       // requests
	Silence    time.Duration // the longest without a start, see Evidence.Silence
	PeakMemory int64         // bytes resident, of any node
	PeakSeats  int
	Worst      float64 // share of its throughput that the site saw least, see Starved; 0 when not measured
}

// Verdict is what a judge says.
type Verdict struct {
	Violations []Violation
	Figures    Figures
}

// AllRules are the rules that Judge applies.
func AllRules() []Rule {
	return []Rule{
		RuleRun, RuleMissed, RuleLedger, RuleRepeated, RuleUnexpected, RuleCap, RuleDisallowed, RuleGate, RuleRate, RuleTariff, RuleLeaders,
		RuleLog, RuleRecovery, RuleStall, RuleMemory, RuleLeak, RuleExit,
	}
}

// Judge applies every rule.
func Judge(e Evidence, t Terms) Verdict {
	var vs []Violation
	explained := ExplainLosses(e.Hits, e.Lives, e.Outages, t.Death, t.Commit)
	var whole []string // runs that had to see everything
	for _, o := range e.Ordered {
		if o.MaxPages == 0 {
			whole = append(whole, o.Agent)
		}
	}
	vs = append(vs, Missed(e.Hits, e.Expected(), whole)...)
	vs = append(vs, Repeated(e.Hits, e.Expected(), Repeats{Explained: explained, Retries: 2})...)
	vs = append(vs, Unexpected(e.Hits)...)
	vs = append(vs, Disallowed(e.Hits, e.Expected())...)
	vs = append(vs, OverCapFrozen(e.Hits, e.Lives, t.Cap, t.Deadline)...)
	vs = append(vs, InGate(e.Hits, Gate{
		Same: t.Late, Other: t.Beat + time.Second + t.Late, Lost: func(h web.Hit) bool { return nobodyKnew(h, e.Lives) },
		Deaf: func(told, h web.Hit) bool { return e.deaf(told, h, t) }, Fast: e.fast,
	})...)
	for _, o := range e.Ordered {
		if o.PerSecond > 0 {
			own := ofAgent(e.Hits, o.Agent)
			for _, v := range OverRate(own, Rate{PerSecond: o.PerSecond, Burst: 1, Slack: time.Second}) {
				v.Agent = o.Agent
				vs = append(vs, v)
			}
		}
	}
	vs = append(vs, Ledger(e.Stored, e.Ordered, e.Expected(), e.Hits)...)
	vs = append(vs, OverTariff(e.Samples, e.Tariffs, e.Ordered)...)
	recoveries := e.Recoveries(t.Death, t.Commit)
	vs = append(vs, SlowRecovery(recoveries, t.Recovery()+t.Late)...)
	vs = append(vs, OverBounds(e.Lives, e.Outages, t)...)
	vs = append(vs, BadLines(e.Log, e.Lives, e.Outages, e.Switches, t.Recovery())...)
	vs = append(vs, Leaks(e.Log, t.Bounds.Goroutines)...)
	vs = append(vs, TwoLeaders(e.Acts)...)
	worst, starved := Starved(e.Hits, e.Lives, e.Samples, e.shaken(t), t)
	silence, silent := e.Silence(t)
	vs = append(append(vs, starved...), silent...)
	f := e.figures(explained, recoveries, worst)
	f.Silence = silence
	return Verdict{vs, f}
}

// telling is how long it may take that an answer arrives, is read, and a transaction says so.
const telling = 2 * time.Second

// nobodyKnew says whether the answer's reader was killed or frozen before it can be sure to have told the others.
func nobodyKnew(h web.Hit, lives []Life) bool {
	for _, l := range lives {
		if l.Source != h.Source {
			continue
		}
		if l.End == EndKilled && !h.Arrival.After(l.To) && h.End.After(l.To.Add(-telling)) {
			return true
		}
		for _, f := range l.Frozen {
			if h.End.After(f.From.Add(-telling)) && h.End.Before(f.To) {
				return true
			}
		}
	}
	return false
}

func ofAgent(hits []web.Hit, agent string) []web.Hit {
	var own []web.Hit
	for _, h := range hits {
		if h.Agent == agent && h.Kind != web.KindRobots && h.Kind != web.KindSitemap && h.Path != "/sitemap.xml" {
			own = append(own, h)
		}
	}
	return own
}

func (e Evidence) figures(explained map[Request]int, recoveries []Recovery, worst float64) Figures {
	f := Figures{Peak: map[string]int{}, Requests: len(e.Hits), Recoveries: recoveries, Leaders: len(Leadings(e.Log)), Worst: worst}
	needed := map[Request]int{}
	for x := range e.Expected() {
		needed[Request{"", x.Host, x.Path}] = x.Requests
	}
	asked := map[Request]int{}
	var first, last time.Time
	for _, h := range e.Hits {
		if first.IsZero() || h.Arrival.Before(first) {
			first = h.Arrival
		}
		if h.End.After(last) {
			last = h.End
		}
		switch h.Kind {
		case web.KindRobots, web.KindSitemap, web.KindAsset, web.KindUnknown:
			continue
		}
		asked[requestOf(h)]++
	}
	f.Pages = len(asked)
	for q, n := range asked {
		if more := n - max(needed[Request{"", q.Host, q.Path}], 1); more > 0 {
			f.Repeats += more
			f.Explained += min(more, explained[q])
		}
	}
	for host := range byHost(e.Hits) {
		f.Peak[host] = web.MaxInFlight(e.Hits, host)
	}
	for _, l := range e.Log {
		if l.Msg == "late result refused" {
			f.Refused++
		}
	}
	if len(recoveries) > 0 {
		f.Slowest = slices.MaxFunc(recoveries, func(a, b Recovery) int { return cmp.Compare(a.Took, b.Took) }).Took
	}
	if f.Seconds = last.Sub(first).Seconds(); f.Seconds > 0 {
		f.PerSecond = float64(f.Requests) / f.Seconds
	}
	for _, l := range e.Lives {
		f.PeakMemory = max(f.PeakMemory, l.PeakMemory)
	}
	for _, s := range e.Samples {
		for _, n := range s.Seats {
			f.PeakSeats = max(f.PeakSeats, n)
		}
	}
	return f
}
