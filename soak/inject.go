package soak

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// chaosInterval is the pause between faults of --chaos.
const chaosInterval = 4 * time.Second

// may says whether a fault can be injected in this soak.
func (t *trial) may(k chaos.Kind) bool { return slices.Contains(t.o.kinds(), k) }

// inject harms the cluster until ctx ends or enough was done, and mends everything before it returns.
func (t *trial) inject(ctx context.Context) {
	kinds, interval := t.o.kinds(), t.o.Kill
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
	order := slices.Clone(kinds) // each in turn at first, then at random
	if t.o.ChaosAll {
		t.rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for i := 0; ; i++ {
		if !pause(ctx, interval) || i > 0 && t.mostDone() {
			return
		}
		kind := kinds[t.rand.IntN(len(kinds))]
		if i < len(order) {
			kind = order[i]
		}
		for tries := 0; !t.harm(ctx, kind, &mending) && tries < len(kinds); tries++ { // one that cannot be now makes room for another
			kind = kinds[t.rand.IntN(len(kinds))]
		}
	}
}

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

// mostDone says whether half of the pages have been asked for, four fifths where more than deaths are injected: from then on the
// cluster is left to recover and to end.
func (t *trial) mostDone() bool {
	most := 0.8
	if len(t.o.Chaos) == 0 && !t.o.ChaosAll {
		most = 0.5
	}
	return float64(t.site.Requests()) > most*float64(t.wanted*t.o.Runs)
}

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

// between draws a time.
func (t *trial) between(least, most time.Duration) time.Duration {
	return least + time.Duration(t.rand.Int64N(int64(most-least)+1))
}

// past is longer than a session lives without a word.
func (t *trial) past() time.Duration { return t.o.Times.Death + 3*t.o.Times.Beat }

// harm injects one fault. What lasts is mended in the background, also when ctx has ended. It returns false when the fault cannot
// be injected as things are.
func (t *trial) harm(ctx context.Context, kind chaos.Kind, mending *sync.WaitGroup) bool {
	switch kind {
	case chaos.Kill:
		return t.kill(ctx, mending)
	case chaos.Stop:
		return t.freeze(ctx, mending)
	case chaos.Term, chaos.Clock:
		return t.renew(kind, mending)
	case chaos.DBPartition:
		return t.cutDB(ctx, mending)
	case chaos.RedisPartition:
		return t.cutRedis(ctx, mending)
	case chaos.DBRestart:
		return t.restartDB(ctx, mending)
	default:
		return t.harmRedis(ctx, kind, mending)
	}
}

func (t *trial) kill(ctx context.Context, mending *sync.WaitGroup) bool {
	n := t.someRunning()
	if n == nil || t.o.NoRestart && t.countRunning() < 2 {
		return false
	}
	n.mu.Lock()
	n.dead = t.o.NoRestart
	n.mu.Unlock()
	at := time.Now()
	n.kill()
	if t.o.NoRestart {
		t.noteFault(Fault{Kind: chaos.Kill, Node: n.name, At: at, To: at, Note: "stays dead"})
		return true
	}
	mending.Go(func() {
		pause(ctx, restartAfter)
		t.restart(n)
		t.noteFault(Fault{Kind: chaos.Kill, Node: n.name, At: at, To: time.Now()})
	})
	return true
}

// someoneLeft says whether, with one more node out for long, enough are left to do the work.
func (t *trial) someoneLeft() bool { return t.o.Nodes == 1 || t.countRunning() > (t.o.Nodes+1)/2 }

func (t *trial) freeze(ctx context.Context, mending *sync.WaitGroup) bool {
	n := t.someRunning()
	if n == nil || !t.someoneLeft() || !n.freeze() {
		return false
	}
	at := time.Now()
	mending.Go(func() {
		pause(ctx, t.past())
		n.thaw()
		t.noteFault(Fault{Kind: chaos.Stop, Node: n.name, At: at, To: time.Now()})
	})
	return true
}

// renew drains a node and starts it again, with a clock that is wrong where that is the fault.
func (t *trial) renew(kind chaos.Kind, mending *sync.WaitGroup) bool {
	n := t.someRunning()
	if n == nil {
		return false
	}
	var note string
	if kind == chaos.Clock {
		offset := t.between(-time.Hour, time.Hour)
		if t.rand.IntN(2) == 0 {
			offset /= 600
		}
		offset, drift := offset.Round(time.Millisecond), float64(t.rand.IntN(9)-4)/100 // within what the protocol assumes
		note = fmt.Sprintf("its clock is off by %v and runs %+.0f %%", offset, 100*drift)
		n.mu.Lock()
		n.clock = fmt.Sprintf("%v/%v", offset, drift)
		n.mu.Unlock()
	}
	at := time.Now()
	end := n.term()
	mending.Go(func() {
		select {
		case <-end:
		case <-time.After(t.o.Times.Deadline + drainGrace):
			n.overdue()
			<-end
		}
		t.restart(n)
		t.noteFault(Fault{Kind: kind, Node: n.name, At: at, To: time.Now(), Note: note})
	})
	return true
}

// drainGrace is how much longer than a request a node may take to drain.
const drainGrace = 10 * time.Second

// direction draws what of a way is cut.
func (t *trial) direction() (requests, answers bool, note string) {
	switch t.rand.IntN(3) {
	case 0:
		return true, false, "nothing it sends arrives"
	case 1:
		return false, true, "nothing comes back"
	}
	return true, true, "cut off"
}

// cutDB cuts some nodes off from the database: briefly, or one for longer than a session lives.
func (t *trial) cutDB(ctx context.Context, mending *sync.WaitGroup) bool {
	nodes, d := t.some(func(n *node) bool { return n.running() && !n.isCut() }), t.between(time.Second, 2*t.o.Times.View)
	if len(nodes) == 0 {
		return false
	}
	if t.rand.IntN(3) == 0 && t.someoneLeft() {
		nodes, d = nodes[:1], t.past()
	}
	for _, n := range nodes {
		requests, answers, note := t.direction()
		reset := t.rand.IntN(2) == 0
		n.setCut(true)
		at := time.Now()
		n.ways.db.Cut(requests, answers)
		mending.Go(func() {
			pause(ctx, d)
			n.ways.db.Mend(reset)
			n.setCut(false)
			t.noteFault(Fault{Kind: chaos.DBPartition, Node: n.name, At: at, To: time.Now(), Note: note})
		})
	}
	return true
}

// cutRedis cuts some nodes, or all, off from Redis.
func (t *trial) cutRedis(ctx context.Context, mending *sync.WaitGroup) bool {
	if !t.redisBusy.CompareAndSwap(false, true) {
		return false
	}
	nodes, d := t.some((*node).running), t.between(time.Second, 12*time.Second)
	var each sync.WaitGroup
	for _, n := range nodes {
		requests, answers, note := t.direction()
		reset := t.rand.IntN(2) == 0
		at := time.Now()
		n.ways.redisTo.Cut(requests, answers)
		each.Add(1)
		mending.Go(func() {
			defer each.Done()
			pause(ctx, d)
			n.ways.redisTo.Mend(reset)
			t.noteFault(Fault{Kind: chaos.RedisPartition, Node: n.name, At: at, To: time.Now(), Note: note})
		})
	}
	mending.Go(func() { each.Wait(); t.redisBusy.Store(false) })
	return len(nodes) > 0
}

func (t *trial) noteFault(f Fault) {
	t.mu.Lock()
	t.faults = append(t.faults, f)
	t.mu.Unlock()
	line := "fault: " + string(f.Kind)
	if f.Node != "" {
		line += " " + f.Node
	}
	if f.Note != "" {
		line += ", " + f.Note
	}
	if d := f.To.Sub(f.At); d > 0 {
		line += fmt.Sprintf(", over after %v", d.Round(100*time.Millisecond))
	}
	t.o.Say(line)
}

// restart starts a node again; that it runs already is no trouble.
func (t *trial) restart(n *node) {
	if err := n.start(); err != nil && !strings.Contains(err.Error(), "runs already") {
		t.o.Say(err.Error())
	}
}

// some draws at least one of the nodes that are fit for something; none where none is.
func (t *trial) some(fit func(*node) bool) []*node {
	var nodes []*node
	for _, n := range t.nodes {
		if fit(n) {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	t.rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes[:1+t.rand.IntN(len(nodes))]
}

func (t *trial) someRunning() *node {
	nodes := t.some((*node).running)
	if len(nodes) == 0 {
		return nil
	}
	return nodes[0]
}

// countRunning counts the nodes that are awake and reach the database.
func (t *trial) countRunning() (up int) {
	for _, n := range t.nodes {
		if n.running() && !n.isCut() {
			up++
		}
	}
	return up
}
