package admin

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

// charts keeps timelines for a while: making one reads a row for each page of the run.
type charts struct {
	mu sync.Mutex
	by map[storage.RunID]*kept
}

type kept struct {
	mu       sync.Mutex
	at       time.Time
	finished time.Time // of the run, when it was made
	line     timelinePage
}

const (
	maxCharts  = 200
	chartFresh = 10 * time.Second
	chartWait  = 20 // a timeline is kept this many times as long as making it took
	bars       = 60
)

type timelinePage struct {
	Run          storage.RunID `json:"run"`
	WidthSeconds float64       `json:"width_seconds"`
	Buckets      []bucketRow   `json:"buckets"`
	from         time.Time     // of the first bar
	width        time.Duration // of a bar
	list         []storage.Bucket
}

type bucketRow struct {
	From     *string `json:"from"`
	Fetched  int64   `json:"fetched"`
	Failed   int64   `json:"failed"`
	Excluded int64   `json:"excluded"`
}

func (timelinePage) title() string { return say("chart.title") }

// widths are the lengths of a bar that people can read.
var widths = []time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
	3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 28 * 24 * time.Hour, 364 * 24 * time.Hour,
}

func (s *Server) timelineOf(ctx context.Context, r storage.Run) (timelinePage, error) {
	s.charts.mu.Lock()
	k := s.charts.by[r.ID]
	if k == nil {
		if s.charts.by == nil || len(s.charts.by) >= maxCharts {
			s.charts.by = map[storage.RunID]*kept{}
		}
		k = &kept{}
		s.charts.by[r.ID] = k
	}
	s.charts.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := s.Now()
	if !k.at.IsZero() && now.Before(k.at) && k.finished.Equal(r.Finished) {
		return k.line, nil
	}
	start, end := r.Started, now
	if start.IsZero() {
		start = r.Created
	}
	if !r.Finished.IsZero() {
		end = r.Finished
	}
	width := widths[len(widths)-1]
	for _, w := range widths {
		if end.Sub(start) <= w*(bars-1) {
			width = w
			break
		}
	}
	list, err := s.Store.Timeline(ctx, r.ID, width)
	if err != nil {
		return timelinePage{}, err
	}
	line := timelinePage{Run: r.ID, WidthSeconds: width.Seconds(), Buckets: []bucketRow{}, width: width, list: list}
	for _, b := range list {
		line.Buckets = append(line.Buckets, bucketRow{show.ISO(b.From), b.Fetched, b.Failed, b.Excluded})
	}
	if len(list) > 0 {
		line.from = list[0].From
	}
	took := s.Now().Sub(now)
	k.line, k.finished, k.at = line, r.Finished, now.Add(max(chartFresh, took*chartWait))
	return line, nil
}

func (s *Server) timeline(q *request) error {
	r, err := q.run()
	if err != nil {
		return err
	}
	line, err := s.timelineOf(q.r.Context(), r)
	if err != nil {
		return err
	}
	if !q.api {
		return storage.ErrNotFound // people see it on the run's page
	}
	return q.show("", line)
}

// chart is a timeline as bars of an SVG image of 600 by 140.
type chart struct {
	Bars       []bar
	Max        string // of the scale
	Per        string // what a bar stands for
	From, To   string
	Label      string // for who cannot see it
	MaxCount   int64
	TotalCount int64
}

type bar struct {
	Class, Title string
	X, Y, W, H   string
}

const (
	chartWidth  = 600.0
	chartHeight = 140.0
)

func (s *Server) chart(ctx context.Context, r storage.Run) (chart, error) {
	line, err := s.timelineOf(ctx, r)
	if err != nil {
		return chart{}, err
	}
	return line.chart(), nil
}

func (p timelinePage) chart() chart {
	var c chart
	if len(p.list) == 0 {
		return c
	}
	last := p.list[len(p.list)-1].From
	n := int(last.Sub(p.from)/p.width) + 1
	for _, b := range p.list {
		sum := b.Fetched + b.Failed + b.Excluded
		c.MaxCount = max(c.MaxCount, sum)
		c.TotalCount += sum
	}
	step := chartWidth / float64(max(n, 12))
	for _, b := range p.list {
		x := float64(b.From.Sub(p.from)/p.width) * step
		y := chartHeight
		title := fmt.Sprintf("%s: %s", b.From.Local().Format("2006-01-02 15:04:05 MST"),
			say("chart.bar", show.Count(b.Fetched), show.Count(b.Failed), show.Count(b.Excluded)))
		for _, part := range []struct {
			class string
			n     int64
		}{{"fetched", b.Fetched}, {"failed", b.Failed}, {"excluded", b.Excluded}} {
			if part.n == 0 {
				continue
			}
			h := max(float64(part.n)/float64(c.MaxCount)*chartHeight, 1)
			y -= h
			c.Bars = append(c.Bars, bar{part.class, title, number(x), number(max(y, 0)), number(max(step-1, 0.5)), number(h)})
		}
	}
	c.Max = show.Count(c.MaxCount)
	c.Per = perWords(p.width)
	c.From, c.To = p.from.Local().Format("2006-01-02 15:04:05 MST"), last.Add(p.width).Local().Format("2006-01-02 15:04:05 MST")
	c.Label = say("chart.label", show.Count(c.TotalCount), c.From, c.To, c.Max, c.Per)
	return c
}

// perWords is a width without its zero parts.
func perWords(d time.Duration) string {
	if d >= 24*time.Hour {
		return show.Plural(int64(d/(24*time.Hour)), "day")
	}
	t := d.String()
	if strings.HasSuffix(t, "m0s") {
		t = t[:len(t)-2]
	}
	if strings.HasSuffix(t, "h0m") {
		t = t[:len(t)-2]
	}
	return t
}

func number(f float64) string { return fmt.Sprintf("%.1f", f) }

// sparkLine is a small picture of how a number changed, 120 by 24.
type sparkLine struct {
	Points string
	Max    int
}

func sparkline(values []int) sparkLine {
	var l sparkLine
	for _, v := range values {
		l.Max = max(l.Max, v)
	}
	if len(values) < 2 {
		return l
	}
	var b strings.Builder
	for i, v := range values {
		x := 120 * float64(i) / float64(len(values)-1)
		y := 23 - 22*float64(v)/float64(max(l.Max, 1))
		fmt.Fprintf(&b, "%.1f,%.1f ", x, y)
	}
	l.Points = strings.TrimSpace(b.String())
	return l
}
