package admin

import (
	"fmt"
	"strings"
	"time"

	"deepcrawl/internal/show"
)

const (
	maxSamples   = 360
	minSample    = 4 * time.Second // between two samples
	sampledHosts = shownRows
	sparkWidth   = 120
)

// history is how many slots were in use over the last time, oldest first.
type history []sample

type sample struct {
	at    time.Time
	used  int
	hosts map[string]int
}

// add takes in what was seen now.
func (h *history) add(now time.Time, hosts []show.HostSlots) {
	list := *h
	if n := len(list); n > 0 && now.Sub(list[n-1].at) < minSample {
		return
	}
	one := sample{at: now, hosts: map[string]int{}}
	for i, s := range hosts {
		if one.used += s.Slots; i < sampledHosts {
			one.hosts[s.Host] = s.Slots
		}
	}
	if len(list) >= maxSamples {
		list = append(history(nil), list[len(list)-maxSamples+1:]...)
	}
	*h = append(list, one)
}

// of is the picture of one host against its cap.
func (h history) of(s show.HostSlots) sparkLine {
	values := make([]int, 0, sparkWidth/2)
	for _, one := range h[max(0, len(h)-sparkWidth/2):] {
		values = append(values, one.hosts[s.Host])
	}
	return sparkline(values, s.Cap)
}

type slotsPage struct {
	Slots []slotSample `json:"slots"`
}

type slotSample struct {
	At   *string `json:"at"`
	Used int     `json:"used"`
}

func (slotsPage) title() string { return say("cluster.slots") }

func (h history) page() slotsPage {
	p := slotsPage{Slots: make([]slotSample, 0, len(h))}
	for _, one := range h {
		p.Slots = append(p.Slots, slotSample{show.ISO(one.at), one.used})
	}
	return p
}

// sparkLine is a small picture of how a number changed, 120 by 24.
type sparkLine struct {
	Points string
	Max    int
}

// sparkline draws values on a scale that reaches to full, or to the largest where that is more.
func sparkline(values []int, full int) sparkLine {
	var l sparkLine
	for _, v := range values {
		l.Max = max(l.Max, v)
	}
	if len(values) < 2 {
		return l
	}
	var b strings.Builder
	for i, v := range values {
		x := sparkWidth * float64(i) / float64(len(values)-1)
		y := 23 - 22*float64(v)/float64(max(l.Max, full, 1))
		fmt.Fprintf(&b, "%.1f,%.1f ", x, y)
	}
	l.Points = strings.TrimSpace(b.String())
	return l
}
