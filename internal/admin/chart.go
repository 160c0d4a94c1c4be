package admin

import (
	"context"
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

// chart is what is said of a timeline beside its picture, which the browser draws from the JSON.
type chart struct {
	Max      string // of the scale
	Per      string // what a bar stands for
	From, To string
	Label    string // for who cannot see it
	Rows     []bucketRow
}

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
	var most, total int64
	for _, b := range p.list {
		sum := b.Fetched + b.Failed + b.Excluded
		most = max(most, sum)
		total += sum
	}
	const form = "2006-01-02 15:04:05 MST"
	c.Rows, c.Max, c.Per = p.Buckets, show.Count(most), perWords(p.width)
	c.From, c.To = p.from.Local().Format(form), p.list[len(p.list)-1].From.Add(p.width).Local().Format(form)
	c.Label = say("chart.label", show.Count(total), c.From, c.To, c.Max, c.Per)
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
