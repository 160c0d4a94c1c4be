package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"deepcrawl/soak"
)

// soakView shows how a soak goes: a line that changes on a terminal, else a line every few seconds.
type soakView struct {
	p     *program
	quiet bool // lines only, for JSON on a terminal

	mu    sync.Mutex
	shown time.Duration // when the last line was written
	live  bool          // a changing line stands
}

// soakLineEvery is the pause between lines where there is no terminal.
const soakLineEvery = 5 * time.Second

func (v *soakView) say(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wipe()
	v.p.note(line)
}

func (v *soakView) progress(s soak.Progress) {
	v.mu.Lock()
	defer v.mu.Unlock()
	live := v.p.terminal && !v.quiet
	if !live && s.Since-v.shown < soakLineEvery {
		return
	}
	v.shown = s.Since
	states := make([]string, 0, len(s.Runs))
	for st, n := range s.Runs {
		states = append(states, fmt.Sprintf("%d %s", n, st))
	}
	slices.Sort(states)
	line := fmt.Sprintf("%s %s: %d of about %d requests, %d in flight, %d nodes, runs: %s, faults: %d, coordination: %s",
		s.Since.Round(time.Second), s.Phase, s.Requests, s.Wanted, s.InFlight, s.Nodes, strings.Join(states, " "), s.Faults, s.Mode)
	if !live {
		v.p.note(line)
		return
	}
	v.wipe()
	_, _ = fmt.Fprint(v.p.stderr, clip(line, max(v.p.width()-1, 20)))
	v.live = true
}

// wipe takes the changing line away. The caller holds mu.
func (v *soakView) wipe() {
	if v.live {
		_, _ = fmt.Fprint(v.p.stderr, "\r\x1b[K")
		v.live = false
	}
}

func (v *soakView) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wipe()
}
