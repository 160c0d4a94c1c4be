package soak

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"deepcrawl/soak/chaos"
)

// Fault is one that was injected.
type Fault struct {
	Kind chaos.Kind `json:"kind"`
	Node string     `json:"node,omitempty"` // "" for a server
	At   time.Time  `json:"at"`
	To   time.Time  `json:"to"` // when it was over
	Note string     `json:"note,omitempty"`
}

// restartAfter is how long a killed node stays dead.
const restartAfter = time.Second

// inject harms the cluster until ctx ends or enough was done, and mends everything before it returns.
func (t *trial) inject(ctx context.Context) {
	kinds := t.o.Chaos
	interval := t.o.Kill
	if t.o.ChaosAll {
		kinds = injected()
	}
	if interval > 0 && !slices.Contains(kinds, chaos.Kill) {
		kinds = append([]chaos.Kind{chaos.Kill}, kinds...)
	}
	if len(kinds) == 0 {
		return
	}
	if interval == 0 {
		interval = chaosInterval
	}
	if !t.await(ctx, t.allWork) {
		return
	}
	var mending sync.WaitGroup
	defer mending.Wait()
	for i := 0; ; i++ {
		if !pause(ctx, interval) || i > 0 && t.mostDone() {
			return
		}
		kind := kinds[i%len(kinds)] // each in turn at first, then at random
		if i >= len(kinds) {
			kind = kinds[t.rand.IntN(len(kinds))]
		}
		t.harm(ctx, kind, &mending)
	}
}

// chaosInterval is the pause between faults of --chaos.
const chaosInterval = 4 * time.Second

// allWork says whether every node has made requests.
func (t *trial) allWork() bool {
	seen := map[string]bool{}
	for _, h := range t.site.Hits() {
		seen[h.Source] = true
	}
	for _, n := range t.nodes {
		if !seen[n.source] {
			return false
		}
	}
	return true
}

// mostDone says whether half of the pages have been asked for: from then on the cluster is left to recover and to end.
func (t *trial) mostDone() bool { return t.site.Requests() > t.wanted*t.o.Runs/2 }

// await polls until cond holds; false when ctx ended first.
func (t *trial) await(ctx context.Context, cond func() bool) bool {
	for !cond() {
		if !pause(ctx, 100*time.Millisecond) {
			return false
		}
	}
	return true
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// harm injects one fault. What lasts is mended in the background, also when ctx has ended.
func (t *trial) harm(ctx context.Context, kind chaos.Kind, mending *sync.WaitGroup) {
	note := t.noteFault
	switch kind {
	case chaos.Kill:
		n := t.someRunning()
		if n == nil || t.o.NoRestart && t.countRunning() < 2 {
			return
		}
		n.mu.Lock()
		n.dead = t.o.NoRestart
		n.mu.Unlock()
		at := time.Now()
		n.kill()
		if t.o.NoRestart {
			note(Fault{Kind: kind, Node: n.name, At: at, To: at, Note: "stays dead"})
			return
		}
		mending.Go(func() {
			pause(ctx, restartAfter)
			t.restart(n)
			note(Fault{Kind: kind, Node: n.name, At: at, To: time.Now()})
		})
	case chaos.Stop:
		n := t.someRunning()
		if n == nil || t.o.Nodes > 1 && t.countRunning() <= (t.o.Nodes+1)/2 || !n.freeze() {
			return // someone must be left to do the work
		}
		at := time.Now()
		mending.Go(func() {
			pause(ctx, t.o.Times.Death+3*t.o.Times.Beat)
			n.thaw()
			note(Fault{Kind: kind, Node: n.name, At: at, To: time.Now()})
		})
	case chaos.Term:
		n := t.someRunning()
		if n == nil {
			return
		}
		at := time.Now()
		end := n.term()
		mending.Go(func() {
			select {
			case <-end:
			case <-time.After(t.o.Times.Deadline + 10*time.Second):
				n.overdue()
			}
			t.restart(n)
			note(Fault{Kind: kind, Node: n.name, At: at, To: time.Now()})
		})
	}
}

func (t *trial) noteFault(f Fault) {
	t.mu.Lock()
	t.faults = append(t.faults, f)
	t.mu.Unlock()
	line := "fault: " + string(f.Kind)
	if f.Node != "" {
		line += " " + f.Node
	}
	if d := f.To.Sub(f.At); d > 0 {
		line += fmt.Sprintf(", over after %v", d.Round(100*time.Millisecond))
	}
	t.o.Say(line)
}

// restart starts a node again; that it runs already is no trouble.
func (t *trial) restart(n *node) {
	if n.running() {
		return
	}
	if err := n.start(); err != nil {
		t.o.Say(err.Error())
	}
}

func (t *trial) someRunning() *node {
	var up []*node
	for _, n := range t.nodes {
		if n.running() {
			up = append(up, n)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[t.rand.IntN(len(up))]
}

func (t *trial) countRunning() (up int) {
	for _, n := range t.nodes {
		if n.running() {
			up++
		}
	}
	return up
}

// injected lists the faults that harm knows: what is added there is added here.
func injected() []chaos.Kind { return []chaos.Kind{chaos.Kill, chaos.Stop, chaos.Term} }
