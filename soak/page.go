package soak

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"deepcrawl/soak/chaos"
	"deepcrawl/soak/web"
)

//go:embed page.html
var pageText string

// WritePage writes the report as one self-contained HTML page with a picture of the time.
func (r *Result) WritePage(w io.Writer) error {
	page, err := template.New("page").Parse(pageText)
	if err != nil {
		return fmt.Errorf("report page: %w", err)
	}
	return page.Execute(w, struct {
		*Result
		Picture template.HTML
	}{r, template.HTML(r.picture())}) //nolint:gosec // made of numbers and of names the soak gave
}

// Measures of the picture, in its own units.
const (
	picWidth   = 1000
	picLeft    = 90
	laneHeight = 110
	laneGap    = 34
)

// picture is an SVG: for each host the requests in flight against the cap, below throughput, faults and the mode of coordination.
func (r *Result) picture() string {
	if len(r.hits) == 0 {
		return ""
	}
	from, to := r.hits[0].Arrival, r.hits[0].Arrival
	for _, h := range r.hits {
		if h.Arrival.Before(from) {
			from = h.Arrival
		}
		if h.End.After(to) {
			to = h.End
		}
	}
	if n := len(r.samples); n > 0 && r.samples[n-1].At.After(to) {
		to = r.samples[n-1].At
	}
	p := &picture{from: from, span: max(to.Sub(from), time.Second)}
	hosts := make([]string, 0, len(r.Figures.PeakInFlight))
	for host := range r.Figures.PeakInFlight {
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	for _, host := range hosts {
		p.inFlight(host, r.hits, r.Figures.Cap)
	}
	p.throughput(r.hits)
	p.faults(r.Faults)
	p.modes(r)
	p.axis()
	return fmt.Sprintf(`<svg viewBox="0 0 %d %d" role="img" aria-label="timeline">%s</svg>`, picWidth+10, p.y+10, p.b.String())
}

type picture struct {
	b    strings.Builder
	from time.Time
	span time.Duration
	y    int // top of the next lane
}

func (p *picture) x(at time.Time) float64 {
	share := float64(at.Sub(p.from)) / float64(p.span)
	return picLeft + min(max(share, 0), 1)*(picWidth-picLeft)
}

func (p *picture) label(y int, text string) {
	fmt.Fprintf(&p.b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, picLeft-8, y, template.HTMLEscapeString(text))
}

// inFlight draws a host: the most in flight in each slice of time, and the cap.
func (p *picture) inFlight(host string, hits []web.Hit, limit int) {
	const slices = 450
	peak := make([]int, slices)
	type event struct {
		at    time.Time
		delta int
	}
	var events []event
	for _, h := range hits {
		if h.Host != host {
			continue
		}
		events = append(events, event{h.Arrival, 1})
		if !h.End.IsZero() {
			events = append(events, event{h.End, -1})
		}
	}
	sortEvents(events, func(e event) (time.Time, int) { return e.at, e.delta })
	slot := func(at time.Time) int { return min(int(int64(slices)*int64(at.Sub(p.from))/int64(p.span)), slices-1) }
	now, last := 0, 0
	for _, e := range events {
		k := max(slot(e.at), 0)
		for i := last; i <= k; i++ {
			peak[i] = max(peak[i], now)
		}
		now += e.delta
		peak[k] = max(peak[k], now)
		last = k
	}
	most := limit
	for _, n := range peak {
		most = max(most, n)
	}
	top := p.y + 16
	scale := float64(laneHeight) / (float64(most) * 1.1)
	fmt.Fprintf(&p.b, `<path class="flight" d="M%d %d`, picLeft, top+laneHeight)
	for i, n := range peak {
		x := picLeft + float64(i)*(picWidth-picLeft)/slices
		fmt.Fprintf(&p.b, "L%.1f %.1f", x, float64(top+laneHeight)-float64(n)*scale)
	}
	fmt.Fprintf(&p.b, `L%d %dZ"/>`, picWidth, top+laneHeight)
	y := float64(top+laneHeight) - float64(limit)*scale
	fmt.Fprintf(&p.b, `<line class="cap" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, picLeft, picWidth, y, y)
	fmt.Fprintf(&p.b, `<text class="head" x="%d" y="%d">in flight to %s</text>`, picLeft, p.y+10, template.HTMLEscapeString(host))
	p.label(int(y)+4, fmt.Sprintf("cap %d", limit))
	p.label(top+laneHeight, "0")
	p.y = top + laneHeight + laneGap
}

func sortEvents[E any](all []E, of func(E) (time.Time, int)) {
	slices.SortFunc(all, func(a, b E) int {
		at, da := of(a)
		bt, db := of(b)
		if c := at.Compare(bt); c != 0 {
			return c
		}
		return da - db
	})
}

// throughput draws the starts of each second, those of dead-end kinds included.
func (p *picture) throughput(hits []web.Hit) {
	n := int(p.span/time.Second) + 1
	starts := make([]int, n)
	for _, h := range hits {
		starts[min(int(h.Arrival.Sub(p.from)/time.Second), n-1)]++
	}
	most := slices.Max(starts)
	top := p.y + 16
	fmt.Fprintf(&p.b, `<text class="head" x="%d" y="%d">requests a second</text>`, picLeft, p.y+10)
	for i, s := range starts {
		x := p.x(p.from.Add(time.Duration(i) * time.Second))
		w := max(p.x(p.from.Add(time.Duration(i+1)*time.Second))-x-0.5, 0.5)
		h := float64(laneHeight) * float64(s) / float64(max(most, 1))
		fmt.Fprintf(&p.b, `<rect class="rate" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x, float64(top+laneHeight)-h, w, h)
	}
	p.label(top+8, fmt.Sprint(most))
	p.label(top+laneHeight, "0")
	p.y = top + laneHeight + laneGap
}

// laneOf names the lane of a fault: its node, or the server that was harmed.
func laneOf(f Fault) string {
	switch {
	case f.Node != "":
		return f.Node
	case f.Kind == chaos.DBRestart:
		return "database"
	}
	return "Redis"
}

// faults draws each fault as a bar on its lane, with its name where there is room until the next.
func (p *picture) faults(all []Fault) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(&p.b, `<text class="head" x="%d" y="%d">faults</text>`, picLeft, p.y+10)
	p.y += 18
	lanes := map[string][]Fault{}
	for _, f := range all {
		lanes[laneOf(f)] = append(lanes[laneOf(f)], f)
	}
	names := slices.Sorted(maps.Keys(lanes))
	for _, name := range names {
		lane := lanes[name]
		slices.SortFunc(lane, func(a, b Fault) int { return a.At.Compare(b.At) })
		p.label(p.y+12, name)
		for i, f := range lane {
			x, room := p.x(f.At), float64(picWidth)
			if i+1 < len(lane) {
				room = p.x(lane[i+1].At)
			}
			fmt.Fprintf(&p.b, `<rect class="fault" x="%.1f" y="%d" width="%.1f" height="15"><title>%s %s</title></rect>`,
				x, p.y, max(p.x(f.To)-x, 3), template.HTMLEscapeString(string(f.Kind)), template.HTMLEscapeString(f.Note))
			p.small(x, room, string(f.Kind))
		}
		p.y += 20
	}
	p.y += laneGap / 2
}

// letter is about the width of one of the small text.
const letter = 5.6

// small writes a word on the present lane if it ends before room.
func (p *picture) small(x, room float64, word string) {
	if x+4+letter*float64(len(word)) < room {
		fmt.Fprintf(&p.b, `<text class="small" x="%.1f" y="%d">%s</text>`, x+4, p.y+11, template.HTMLEscapeString(word))
	}
}

// modes draws the mode of coordination over the time.
func (p *picture) modes(r *Result) {
	if len(r.samples) == 0 {
		return
	}
	fmt.Fprintf(&p.b, `<text class="head" x="%d" y="%d">coordination</text>`, picLeft, p.y+10)
	p.y += 18
	for i := 0; i < len(r.samples); {
		j := i
		for j+1 < len(r.samples) && r.samples[j+1].Mode == r.samples[i].Mode && r.samples[j+1].Epoch == r.samples[i].Epoch {
			j++
		}
		x, end := p.x(r.samples[i].At), p.x(r.samples[min(j+1, len(r.samples)-1)].At)
		mode := r.samples[i].Mode
		fmt.Fprintf(&p.b, `<rect class="mode mode-%[1]s" x="%.1[2]f" y="%[3]d" width="%.1[4]f" height="15"><title>%[1]s, epoch %[5]d</title></rect>`,
			template.HTMLEscapeString(mode), x, p.y, max(end-x, 1), r.samples[i].Epoch)
		p.small(x, end, mode)
		i = j + 1
	}
	p.y += 20 + laneGap/2
}

// axis draws the seconds.
func (p *picture) axis() {
	step := time.Second
	for _, s := range []time.Duration{2, 5, 10, 30, 60, 300, 600, 1800, 3600} {
		if p.span/step > 12 {
			step = s * time.Second
		}
	}
	for d := time.Duration(0); d <= p.span; d += step {
		x := p.x(p.from.Add(d))
		fmt.Fprintf(&p.b, `<line class="tick" x1="%.1f" x2="%.1f" y1="0" y2="%d"/><text class="small" x="%.1f" y="%d" text-anchor="middle">%v</text>`, x, x, p.y, x, p.y+8, d)
	}
	p.y += 12
}
