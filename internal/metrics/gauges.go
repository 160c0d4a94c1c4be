package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"deepcrawl/coord"
	"deepcrawl/crawl"
)

// gauges reads a node's figures at each scrape, all from one moment.
type gauges struct {
	source func() Source
	all    []gauge
	queue  *prometheus.Desc
	mode   *prometheus.Desc
}

type gauge struct {
	desc  *prometheus.Desc
	value func(figures) float64
	kind  prometheus.ValueType
}

// figures are those of one scrape.
type figures struct {
	crawl.Stats
	crawl.Holding
	joined bool
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

func newGauges(source func() Source) *gauges {
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	g := &gauges{
		source: source,
		queue:  desc("queue_size", "What waits inside the node: claimed URLs, responses to be read, results to be written.", "queue"),
		mode:   desc("coordination_mode", "1 for the mode of coordination as this node knows it.", "mode"),
	}
	for _, m := range []struct {
		name, help string
		value      func(figures) float64
		kind       prometheus.ValueType
	}{
		{"in_flight", "Requests under way.", func(s figures) float64 { return float64(s.InFlight) }, prometheus.GaugeValue},
		{"runs", "Runs this node works on.", func(s figures) float64 { return float64(s.Runs) }, prometheus.GaugeValue},
		{"slots_held", "Slots the session holds, idle ones included.", func(s figures) float64 { return float64(s.Coord.Slots) }, prometheus.GaugeValue},
		{"coordination_epoch", "Epoch of coordination as this node knows it.", func(s figures) float64 { return float64(s.Coord.Authority.Epoch) }, prometheus.GaugeValue},
		{"coordination_calls_total", "Calls the session made to the authority.", func(s figures) float64 { return float64(s.Coord.RoundTrips) }, prometheus.CounterValue},
		{"joined", "1 while the node has a session that may start requests.", func(s figures) float64 { return flag(s.joined && s.NoWork == nil) }, prometheus.GaugeValue},
		{"leader", "1 while this node leads.", func(s figures) float64 { return flag(s.Leading) }, prometheus.GaugeValue},
		{"paused", "1 while work is not begun for lack of room.", func(s figures) float64 { return flag(s.Paused != "") }, prometheus.GaugeValue},
		{"picks_total", "Turns that workers began, of this session.", func(s figures) float64 { return float64(s.Picks) }, prometheus.CounterValue},
		{"wasted_turns_total", "Turns without a request, of this session.", func(s figures) float64 { return float64(s.Wasted) }, prometheus.CounterValue},
	} {
		g.all = append(g.all, gauge{desc(m.name, m.help), m.value, m.kind})
	}
	return g
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range g.all {
		ch <- m.desc
	}
	ch <- g.queue
	ch <- g.mode
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	src := g.source()
	s := figures{Stats: src.Stats()}
	s.Holding, s.joined = src.Holding()
	for _, m := range g.all {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(s))
	}
	for _, q := range []struct {
		name string
		n    int
	}{{"claimed", s.Claims}, {"unread", s.Unread}, {"unsent", s.Unsent}} {
		ch <- prometheus.MustNewConstMetric(g.queue, prometheus.GaugeValue, float64(q.n), q.name)
	}
	for _, mode := range []coord.Mode{coord.ModeDB, coord.ModeDrain, coord.ModeRedis} {
		v := 0.0
		if s.Coord.Authority.Mode == mode {
			v = 1
		}
		ch <- prometheus.MustNewConstMetric(g.mode, prometheus.GaugeValue, v, string(mode))
	}
}
