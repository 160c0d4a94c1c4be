package admin

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"deepcrawl/internal/show"
)

// checking is the check of coordination that runs, or the last one.
type checking struct {
	mu      sync.Mutex
	running bool
	began   time.Time
	lines   []show.CheckLine
	failure string // why it could not be tried to its end
}

// checkFor ends a check whose database does not answer.
const checkFor = 2 * time.Minute

type checkPage struct {
	Running bool             `json:"running"`
	Began   *string          `json:"began"`
	Lines   []show.CheckLine `json:"lines"`
	Failed  int              `json:"failed"`
	Failure string           `json:"failure,omitempty"`
}

func (checkPage) title() string { return say("check.title") }

func (s *Server) checkPage() checkPage {
	c := &s.checking
	c.mu.Lock()
	defer c.mu.Unlock()
	p := checkPage{Running: c.running, Began: show.ISO(c.began), Lines: slices.Clone(c.lines), Failure: c.failure}
	if p.Lines == nil {
		p.Lines = []show.CheckLine{}
	}
	for _, l := range p.Lines {
		if l.State == "failed" {
			p.Failed++
		}
	}
	return p
}

func (s *Server) checkShow(q *request) error { return q.show("check", s.checkPage()) }

// checkStart begins a check; where one runs, it is shown instead.
func (s *Server) checkStart(q *request) error {
	c := &s.checking
	c.mu.Lock()
	if !c.running && s.ctx.Err() == nil {
		c.running, c.began, c.lines, c.failure = true, s.Now(), nil, ""
		s.work.Add(1)
		go s.check()
	}
	c.mu.Unlock()
	return q.done(http.StatusAccepted, s.checkPage(), "/cluster/check")
}

func (s *Server) check() {
	defer s.work.Done()
	ctx, cancel := context.WithTimeout(s.ctx, checkFor)
	defer cancel()
	c := &s.checking
	err := s.Operations.Check(ctx, func(l show.CheckLine) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lines = append(c.lines, l)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running = false; err != nil {
		s.Log.Error("check coordination", "err", err)
		c.failure = say("check.broken")
	}
}

func (s *Server) checkLive(q *request) error {
	return q.liveEvery(min(s.Every, 500*time.Millisecond), []string{"check-live"}, func(context.Context) (any, bool, error) {
		p := s.checkPage()
		return p, !p.Running, nil
	})
}
