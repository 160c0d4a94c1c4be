package coordtest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deepcrawl/coord"
)

// testRaces lets many clients grant and return at once on two keys, and counts who has a slot.
func testRaces(t *testing.T, authority Authority) {
	const (
		clients, turns = 6, 40
		hostCap        = 4
		runCap         = 3
	)
	open := authority(t)
	var inHost, inRun, most, granted atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		m := register(t, open(t), coord.NodeID([]string{"a", "b", "c", "d", "e", "f"}[i]))
		wg.Go(func() {
			for n := range turns {
				keys := []coord.AskKey{m.key("host:x", hostCap), m.key("run:1", runCap)}
				if n%3 == 0 { // the other order must not wait in a circle
					keys[0], keys[1] = keys[1], keys[0]
				}
				r, err := m.c.Grant(t.Context(), coord.Ask{Member: m.id, View: m.v, Groups: [][]coord.AskKey{keys, {m.key("host:x", hostCap)}}})
				if err != nil {
					t.Errorf("grant: %v", err)
					return
				}
				var back []coord.Token
				hosts, runs := int64(0), int64(0)
				if r.Groups[0].N != nil {
					hosts, runs = hosts+1, runs+1
					back = append(back, keys[0].Token, keys[1].Token)
				}
				if r.Groups[1].N != nil {
					hosts++
					back = append(back, m.tok)
				}
				if len(back) == 0 {
					continue
				}
				granted.Add(hosts)
				if now := inHost.Add(hosts); now > hostCap {
					t.Errorf("%d slots of the host at once, cap %d", now, hostCap)
				} else if now > most.Load() {
					most.Store(now)
				}
				if now := inRun.Add(runs); now > runCap {
					t.Errorf("%d slots of the run at once, cap %d", now, runCap)
				}
				inHost.Add(-hosts)
				inRun.Add(-runs)
				if err := m.c.Return(t.Context(), coord.Return{Member: m.id, View: m.v, Tokens: back}); err != nil {
					t.Errorf("return: %v", err)
					return
				}
			}
		})
	}
	begin := time.Now()
	wg.Wait()
	if s := occupied(t, open(t), ""); len(s) != 0 {
		t.Errorf("left %v", s)
	}
	if granted.Load() < clients {
		t.Errorf("only %d grants", granted.Load())
	}
	t.Logf("%d grants by %d clients in %v, at most %d at once", granted.Load(), clients, time.Since(begin).Round(time.Millisecond), most.Load())
}
