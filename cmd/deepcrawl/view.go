package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

// view shows a run's progress on stderr. Log lines are written to it, so that they do not tear a bar apart.
type view interface {
	io.Writer
	every() time.Duration // between calls of show
	show(s crawl.Snapshot)
	say(line string)
	close() // takes a bar away; Write works on
}

func (p *program) newView(quiet bool, run storage.Run, spec crawl.Spec) view {
	title := fmt.Sprintf("run %d", run.ID)
	if len(spec.Seeds) > 0 {
		title += "  " + clean(spec.Seeds[0])
	}
	switch {
	case quiet:
		return quietView{p.stderr}
	case p.terminal:
		return newBarView(p, title)
	}
	v := &lineView{w: p.stderr, speed: speed{now: p.now}}
	v.say(title)
	return v
}

// speed is pages a second over the last seconds.
type speed struct {
	now     func() time.Time
	samples []sample
}

type sample struct {
	at   time.Time
	done int64
}

// speedWindow is what pages a second are counted over: long enough not to jump, short enough to show that a site slows.
const speedWindow = 15 * time.Second

func (v *speed) add(done int64) float64 {
	now := v.now()
	v.samples = append(v.samples, sample{now, done})
	for len(v.samples) > 2 && now.Sub(v.samples[0].at) > speedWindow {
		v.samples = v.samples[1:]
	}
	first := v.samples[0]
	d := now.Sub(first.at).Seconds()
	if d < 0.2 {
		return 0
	}
	return float64(done-first.done) / d
}

// figures is one line of counts.
func figures(s crawl.Snapshot, perSecond float64) string {
	parts := []string{
		count(s.Fetched) + " fetched", count(s.Queued()) + " queued", fmt.Sprintf("%.1f pages/s", perSecond),
		plural(s.Failed, "error"), fmt.Sprintf("%d in flight", s.InFlight),
	}
	return strings.Join(parts, ", ")
}

// shortWait is a wait not worth telling: the pace of a rate limit looks like one.
const shortWait = 2 * time.Second

// waitingFor says what the run waits for and until when; empty while it goes on.
func waitingFor(s crawl.Snapshot, now time.Time) string {
	if s.Waiting == "" || !s.Until.IsZero() && s.Until.Sub(now) < shortWait {
		return ""
	}
	line := "waiting: " + clean(s.Waiting)
	if !s.Until.IsZero() {
		line += ", until " + s.Until.Local().Format("15:04:05 MST")
	}
	return line
}

// stage is the state with what is being done in it.
func stage(s crawl.Snapshot) string {
	if s.Step == "" {
		return string(s.State)
	}
	return string(s.State) + " (" + clean(s.Step) + ")"
}

// quietView shows nothing but log lines.
type quietView struct{ w io.Writer }

func (v quietView) Write(b []byte) (int, error) { return v.w.Write(b) }
func (quietView) every() time.Duration          { return time.Hour }
func (quietView) show(crawl.Snapshot)           {}
func (quietView) say(string)                    {}
func (quietView) close()                        {}

// lineView prints a line every few seconds: for files and pipes.
type lineView struct {
	w     io.Writer
	speed speed
}

func (v *lineView) Write(b []byte) (int, error) { return v.w.Write(b) }
func (*lineView) every() time.Duration          { return 5 * time.Second }
func (v *lineView) say(line string)             { _, _ = fmt.Fprintln(v.w, line) }
func (*lineView) close()                        {}

func (v *lineView) show(s crawl.Snapshot) {
	line := stage(s) + ": " + figures(s, v.speed.add(s.Fetched+s.Failed))
	if w := waitingFor(s, v.speed.now()); w != "" {
		line += "; " + w
	}
	v.say(line)
}

// barView is a progress bar on a terminal with the figures below it.
type barView struct {
	p     *program
	bars  *mpb.Progress
	bar   *mpb.Bar
	speed speed

	mu     sync.Mutex
	lines  [2]string
	closed bool
}

// barWidth is that of bar and percentage on the line with the run's name.
const barWidth = 50

func newBarView(p *program, title string) *barView {
	v := &barView{p: p, speed: speed{now: p.now}}
	v.bars = mpb.New(mpb.WithOutput(p.stderr), mpb.WithAutoRefresh(), mpb.WithWidth(barWidth), mpb.WithRefreshRate(v.every()))
	line := func(i int) mpb.BarFiller {
		return mpb.BarFillerFunc(func(w io.Writer, st decor.Statistics) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			_, err := fmt.Fprintln(w, clip(v.lines[i], max(st.AvailableWidth-1, 10)))
			return err
		})
	}
	v.bar = v.bars.New(0, mpb.BarStyle().Rbound("] "),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Any(func(st decor.Statistics) string { return clip(title, max(p.width()-barWidth-8, 12)) + " " })),
		mpb.AppendDecorators(decor.Percentage()),
		mpb.BarBtmExtender(line(0), line(1)),
	)
	return v
}

func (*barView) every() time.Duration { return 150 * time.Millisecond }

func (v *barView) show(s crawl.Snapshot) {
	v.mu.Lock()
	v.lines[0] = stage(s) + ": " + figures(s, v.speed.add(s.Fetched+s.Failed))
	v.lines[1] = waitingFor(s, v.speed.now())
	v.mu.Unlock()
	v.bar.SetTotal(max(s.Discovered, 1), false)
	v.bar.SetCurrent(s.Discovered - s.Queued())
}

func (v *barView) say(line string) { _, _ = fmt.Fprintln(v, line) }

// Write prints above the bar.
func (v *barView) Write(b []byte) (int, error) {
	v.mu.Lock()
	closed := v.closed
	v.mu.Unlock()
	if closed {
		return v.p.stderr.Write(b)
	}
	return v.bars.Write(b)
}

func (v *barView) close() {
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	v.bar.Abort(true)
	v.bars.Wait()
}
