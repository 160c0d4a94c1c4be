package main

import (
	"fmt"
	"slices"
)

// metric is a figure of a round, or of all rounds by its median.
type metric struct {
	Name string
	// Of is false when the round cannot tell, such as a ratio without a null crawl.
	Of func(round) (float64, bool)
}

var (
	speedRatio = metric{"pages/s, deepcrawl / null", func(r round) (float64, bool) {
		if r.Null == nil || r.Deep == nil {
			return 0, false
		}
		return r.Deep.PagesPerSecond / r.Null.PagesPerSecond, true
	}}
	cpuRatio = metric{"CPU a page, deepcrawl / null", func(r round) (float64, bool) {
		if r.Null == nil || r.Deep == nil || r.Null.CPUMicros == 0 {
			return 0, false
		}
		return r.Deep.CPUMicros / r.Null.CPUMicros, true
	}}
	idealShare = metric{"share of the ideal pages/s", func(r round) (float64, bool) {
		if r.Deep == nil || r.Deep.IdealPagesPerSecond == 0 {
			return 0, false
		}
		return r.Deep.PagesPerSecond / r.Deep.IdealPagesPerSecond, true
	}}
	tenthRatio = metric{"pages/s, last tenth / first tenth", func(r round) (float64, bool) {
		if r.Deep == nil || r.Deep.Tenths == nil {
			return 0, false
		}
		return r.Deep.Tenths[9] / r.Deep.Tenths[0], true
	}}
	peakMB = metric{"peak memory of deepcrawl in MB", func(r round) (float64, bool) {
		if r.Deep == nil || r.Deep.PeakMB == 0 {
			return 0, false
		}
		return r.Deep.PeakMB, true
	}}
	violations = metric{"pages missed, requested twice, made up or not stored, or over the cap", func(r round) (float64, bool) {
		if r.Deep == nil {
			return 0, false
		}
		return float64(r.Deep.Violations), true
	}}
)

// speedOver is speedRatio under the names of what is compared.
func speedOver(names string) metric { return metric{"pages/s, " + names, speedRatio.Of} }

// goal is what a scenario asks of a metric: at least Min, or at most Max when
// Min is zero. Aim is told and not checked.
type goal struct {
	Metric   metric
	Min, Max float64
	Aim      float64
	// Every asks it of each round instead of the median.
	Every bool
}

var clean = goal{Metric: violations, Every: true}

// verdict is what became of a goal.
type verdict struct {
	Goal  string  `json:"goal"`
	Value float64 `json:"value"`
	Known bool    `json:"known"`
	Met   bool    `json:"met"`
}

func (g goal) String() string {
	s := g.Metric.Name
	switch {
	case g.Min > 0:
		s += fmt.Sprintf(" >= %.4g", g.Min)
	default:
		s += fmt.Sprintf(" <= %.4g", g.Max)
	}
	if g.Aim > 0 {
		s += fmt.Sprintf(" (aim %.4g)", g.Aim)
	}
	return s
}

// judge says whether the rounds meet the goal. A goal nothing is known about is not met.
func (g goal) judge(rounds []round) verdict {
	values := values(g.Metric, rounds)
	v := verdict{Goal: g.String(), Known: len(values) > 0}
	if !v.Known {
		return v
	}
	v.Value = median(values)
	if g.Every && g.Min > 0 {
		v.Value = slices.Min(values)
	} else if g.Every {
		v.Value = slices.Max(values)
	}
	v.Met = v.Value >= g.Min
	if g.Min == 0 {
		v.Met = v.Value <= g.Max
	}
	return v
}

// values are a metric's figures for the rounds that know it.
func values(m metric, rounds []round) []float64 {
	var vs []float64
	for _, r := range rounds {
		if v, ok := m.Of(r); ok {
			vs = append(vs, v)
		}
	}
	return vs
}

// median of the values; 0 for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}
