package fair_test

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"deepcrawl/fair"
)

// simRun is a run in the simulation.
type simRun struct {
	fair.Run
	endless bool            // backlogged for ever
	queue   []time.Duration // when the queued pages were discovered, oldest first, of runs with an end
	links   int             // pages found on each, until total are known
	known   int
	total   int

	gated time.Duration // until then
	born  time.Duration

	service time.Duration   // time of workers, since the last reset
	dwell   []time.Duration // of pages: discovered to fetched
	lastAt  time.Duration   // when a worker last came or went
	gap     time.Duration   // longest time without a worker while it could have had one
}

func (r *simRun) hasWork() bool { return r.endless || len(r.queue) > 0 }
func (r *simRun) over() bool {
	return !r.endless && r.Occupied == 0 && r.known == r.total && len(r.queue) == 0
}

// simWorker serves a run until its turn ends.
type simWorker struct {
	run   *simRun
	since time.Duration // of the page
	until time.Duration // of the turn
}

// sim is a cluster of workers in virtual time. A page takes 40 to 60 ms. The order of runs is the policy's.
type sim struct {
	rng    *rand.Rand
	now    time.Duration
	turn   time.Duration
	runs   []*simRun
	idle   []*simWorker
	events simEvents
	lastID int64
	policy func([]fair.Run) int
}

type simEvent struct {
	at time.Duration
	do func()
}

type simEvents []simEvent

func (h simEvents) Len() int           { return len(h) }
func (h simEvents) Less(i, j int) bool { return h[i].at < h[j].at }
func (h simEvents) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *simEvents) Push(x any)        { *h = append(*h, x.(simEvent)) }
func (h *simEvents) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func newSim(seed uint64, workers int, turn time.Duration) *sim {
	s := &sim{rng: rand.New(rand.NewPCG(seed, 1)), turn: turn, policy: fair.Next}
	for range workers {
		s.idle = append(s.idle, &simWorker{})
	}
	return s
}

func (s *sim) at(t time.Duration, do func()) { heap.Push(&s.events, simEvent{t, do}) }

func (s *sim) stamp() time.Time { return time.Unix(0, int64(s.now)) }

// add starts a run: without end, or with total pages of which each links to some.
func (s *sim) add(allowed, total, links int) *simRun {
	s.lastID++
	r := &simRun{Run: fair.Run{ID: s.lastID, Allowed: allowed, Served: s.stamp()}, endless: total == 0, total: total, links: links, born: s.now, lastAt: s.now}
	if total > 0 {
		r.known, r.queue = 1, []time.Duration{s.now}
	}
	s.runs = append(s.runs, r)
	s.wake()
	return r
}

// gate keeps workers from a run for a while.
func (s *sim) gate(r *simRun, d time.Duration) {
	r.gated = s.now + d
	s.at(r.gated, func() { r.lastAt = s.now; s.wake() })
}

// wake lets idle workers pick.
func (s *sim) wake() {
	idle := s.idle
	s.idle = nil
	for _, w := range idle {
		s.pick(w)
	}
}

func (s *sim) pick(w *simWorker) {
	var shown []fair.Run
	var index []*simRun
	for _, r := range s.runs {
		if r.hasWork() && s.now >= r.gated {
			shown = append(shown, r.Run)
			index = append(index, r)
		}
	}
	i := s.policy(shown)
	if i < 0 {
		s.idle = append(s.idle, w)
		return
	}
	r := index[i]
	if r.Occupied == 0 {
		r.gap = max(r.gap, s.now-r.lastAt)
	}
	r.Occupied++
	r.Served = s.stamp()
	w.run, w.until = r, s.now+s.turn
	s.fetch(w)
}

// fetch takes the next page of the worker's run.
func (s *sim) fetch(w *simWorker) {
	r := w.run
	if !r.endless {
		r.dwell = append(r.dwell, s.now-r.queue[0])
		r.queue = r.queue[1:]
	}
	w.since = s.now
	s.at(s.now+40*time.Millisecond+time.Duration(s.rng.Int64N(int64(20*time.Millisecond))), func() { s.fetched(w) })
}

func (s *sim) fetched(w *simWorker) {
	r := w.run
	r.service += s.now - w.since
	for range min(r.links, r.total-r.known) {
		r.known++
		r.queue = append(r.queue, s.now)
	}
	if s.now < w.until && r.hasWork() && s.now >= r.gated {
		s.fetch(w)
	} else {
		r.Occupied--
		r.lastAt = s.now
		s.pick(w)
	}
	if len(r.queue) > 0 {
		s.wake()
	}
	if r.over() {
		s.runs = slices.DeleteFunc(s.runs, func(x *simRun) bool { return x == r })
	}
}

// runFor lets time pass.
func (s *sim) runFor(d time.Duration) {
	end := s.now + d
	for len(s.events) > 0 && s.events[0].at <= end {
		e := heap.Pop(&s.events).(simEvent)
		s.now = e.at
		e.do()
	}
	s.now = end
}

// jain is Jain's index of fairness: 1 where all are equal, 1/n where one has all.
func jain(x []float64) float64 {
	var sum, squares float64
	for _, v := range x {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(x)) * squares)
}

// window lets a time pass and returns the service of each run in it, in workers. A page counts when it ends.
func (s *sim) window(runs []*simRun, length time.Duration) []float64 {
	for _, r := range runs {
		r.service, r.gap = 0, 0
	}
	s.runFor(length)
	out := make([]float64, len(runs))
	for i, r := range runs {
		out[i] = float64(r.service) / float64(length)
	}
	return out
}

const (
	turn    = 2 * time.Second
	wantJ   = 0.98
	windows = 3
)

func TestEqualRunsAreServedEqually(t *testing.T) {
	for _, c := range []struct{ runs, workers, allowed int }{{200, 50, 4}, {10, 12, 12}, {7, 3, 1}, {50, 50, 0}, {3, 8, 4}} {
		s := newSim(uint64(c.runs), c.workers, turn)
		var runs []*simRun
		for range c.runs {
			runs = append(runs, s.add(c.allowed, 0, 0))
		}
		s.runFor(10 * time.Second)
		for range windows {
			got := s.window(runs, time.Minute)
			if j := jain(got); j < wantJ {
				t.Errorf("%d runs, %d workers: Jain %.4f, want at least %v", c.runs, c.workers, j, wantJ)
			}
			// R-1 picks, of which the workers make one a turn each.
			most := turn*time.Duration(c.runs/c.workers+2) + time.Second
			for _, r := range runs {
				if r.gap > most {
					t.Errorf("%d runs, %d workers: run %d waited %v, want at most %v", c.runs, c.workers, r.ID, r.gap, most)
				}
			}
		}
	}
}

func TestAnUnfairOrderIsTold(t *testing.T) {
	t.Run("ties by id starve", func(t *testing.T) {
		s := newSim(1, 50, turn)
		s.policy = func(list []fair.Run) int {
			for i := range list {
				list[i].Served = time.Time{}
			}
			return fair.Next(list)
		}
		var runs []*simRun
		for range 200 {
			runs = append(runs, s.add(4, 0, 0))
		}
		s.runFor(10 * time.Second)
		got := s.window(runs, time.Minute)
		none := 0
		for _, v := range got {
			if v == 0 {
				none++
			}
		}
		if j := jain(got); none < 100 || j > 0.5 {
			t.Errorf("%d of 200 runs got nothing, Jain %.3f: the simulation does not see starvation", none, j)
		}
	})
}

func TestMixedTariffs(t *testing.T) {
	classes := []int{1, 4, 12}
	for _, workers := range []int{5, 30, 60, 100, 200, 400} {
		s := newSim(uint64(workers), workers, turn)
		var runs []*simRun
		for range 20 {
			for _, allowed := range classes {
				runs = append(runs, s.add(allowed, 0, 0))
			}
		}
		s.runFor(10 * time.Second)
		got := s.window(runs, max(time.Minute, 10*turn*time.Duration(len(runs)/workers)))
		mean := map[int]float64{}
		for _, allowed := range classes {
			var of []float64
			for i, r := range runs {
				if r.Allowed == allowed {
					of = append(of, got[i])
					mean[allowed] += got[i] / 20
				}
			}
			if j := jain(of); j < wantJ {
				t.Errorf("%d workers: Jain %.4f among runs with %d seats, want at least %v", workers, j, allowed, wantJ)
			}
		}
		if workers < len(runs) {
			if j := jain(got); j < wantJ {
				t.Errorf("%d workers: Jain %.4f of all runs, fewer workers than runs: want at least %v", workers, j, wantJ)
			}
		}
		for i, a := range runs {
			for k, b := range runs {
				// Nobody gives a run its next seat while another has the lower share: less that seat, no run has more of its quota.
				if share, other := (got[i]-1)/float64(a.Allowed), got[k]/float64(b.Allowed); share > other+0.05 {
					t.Fatalf("%d workers: run with %d seats has %.2f, run with %d has %.2f", workers, a.Allowed, got[i], b.Allowed, got[k])
				}
			}
			if got[i] > float64(a.Allowed)*1.002 {
				t.Errorf("%d workers: run with %d seats has %.3f", workers, a.Allowed, got[i])
			}
		}
		if mean[1] > mean[4]*1.02 || mean[4] > mean[12]*1.02 {
			t.Errorf("%d workers: the smaller tariff gets more: %v", workers, mean)
		}
	}
}

func TestGatedRunsLoseNothingOnceTheirGateEnds(t *testing.T) {
	s := newSim(4, 20, turn)
	var free, gated []*simRun
	for i := range 60 {
		if r := s.add(4, 0, 0); i%3 == 0 {
			gated = append(gated, r)
		} else {
			free = append(free, r)
		}
	}
	s.runFor(10 * time.Second)
	for range windows {
		for _, r := range gated {
			s.gate(r, 10*time.Second+time.Duration(s.rng.Int64N(int64(40*time.Second))))
		}
		var ungated []time.Duration
		for _, r := range gated {
			ungated = append(ungated, time.Minute-(r.gated-s.now))
			r.service = 0
		}
		got := s.window(free, time.Minute)
		if j := jain(got); j < wantJ {
			t.Errorf("Jain %.4f among runs without gates, want at least %v", j, wantJ)
		}
		for i, r := range gated {
			// At most the pages under way when the gate came, and then no less than most of a free run's least share.
			share := float64(r.service) / float64(ungated[i])
			if share < 0.5*slices.Min(got) {
				t.Errorf("run %d: %.3f workers while it had no gate, others %.3f", r.ID, share, slices.Min(got))
			}
			if most := turn*(60/20+2) + time.Second; r.gap > most {
				t.Errorf("run %d waited %v without a gate, want at most %v", r.ID, r.gap, most)
			}
		}
	}
}

func TestArrivalsAndDepartures(t *testing.T) {
	s := newSim(5, 24, turn)
	var stay []*simRun
	for range 30 {
		stay = append(stay, s.add(4, 0, 0))
	}
	var came []*simRun
	var arrive func()
	arrive = func() {
		came = append(came, s.add([]int{1, 4, 12, 0}[s.rng.IntN(4)], 20+s.rng.IntN(400), 5))
		s.at(s.now+time.Duration(s.rng.ExpFloat64()*float64(3*time.Second)), arrive)
	}
	s.at(time.Second, arrive)
	s.runFor(30 * time.Second)
	for range windows {
		if j := jain(s.window(stay, time.Minute)); j < wantJ {
			t.Errorf("Jain %.4f among runs that stay, want at least %v", j, wantJ)
		}
	}
	var worst time.Duration
	ended := 0
	for _, r := range came {
		if len(r.dwell) > 0 {
			worst = max(worst, r.dwell[0]) // its seed
		}
		if len(r.dwell) == r.total {
			ended++
		}
	}
	t.Logf("%d runs came, %d ended, the longest wait for the first page was %v", len(came), ended, worst)
	if worst > 10*time.Second || ended < len(came)/2 || len(came) < 40 {
		t.Errorf("%d runs came, %d ended, and one waited %v to begin", len(came), ended, worst)
	}
}

// A 100-page run beside one of a million pages: its pages wait at most twice as long as alone, and a turn.
func TestNoisyNeighbour(t *testing.T) {
	p95 := func(workers, allowed int, beside bool) time.Duration {
		var all []time.Duration
		for seed := range uint64(40) {
			s := newSim(seed, workers, turn)
			if beside {
				s.add(allowed, 1_000_000, 20)
			}
			s.runFor(20*time.Second + time.Duration(s.rng.Int64N(int64(turn)))) // any moment of the neighbour's turns
			small := s.add(allowed, 100, 3)
			s.runFor(time.Minute)
			if len(small.dwell) != 100 {
				t.Fatalf("%d workers: %d of 100 pages fetched in a minute", workers, len(small.dwell))
			}
			all = append(all, small.dwell...)
		}
		slices.SortFunc(all, cmp.Compare[time.Duration])
		return all[len(all)*95/100]
	}
	for _, c := range []struct{ workers, allowed int }{{1, 1}, {2, 0}, {4, 0}, {4, 4}, {8, 4}, {12, 12}, {24, 0}} {
		alone, beside := p95(c.workers, c.allowed, false), p95(c.workers, c.allowed, true)
		t.Logf("%d workers, %d allowed: p95 of a page's wait %v alone, %v beside", c.workers, c.allowed, alone, beside)
		if most := 2*alone + turn; beside > most {
			t.Errorf("%d workers, %d allowed: p95 %v beside a large run, %v alone: want at most %v", c.workers, c.allowed, beside, alone, most)
		}
	}
}
