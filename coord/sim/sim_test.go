package sim_test

import (
	"flag"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deepcrawl/coord/core"
	"deepcrawl/coord/sim"
)

var (
	simTime   = flag.Duration("sim.time", time.Minute, "how long TestSim runs")
	simProcs  = flag.Int("sim.procs", 1, "worlds at a time; 0: one a processor")
	simSeed   = flag.Uint64("sim.seed", 0, "run this seed only, with a trace")
	simRule   = flag.String("sim.rule", "", "rule that TestHunt turns off")
	simFaults = flag.String("sim.faults", "", "faults of TestHunt, separated by commas; empty: by the seed")
	simFrom   = flag.Uint64("sim.from", 1, "first seed")
)

// rules turns off the rules of a list separated by +.
func rules(t testing.TB, list string) core.Off {
	t.Helper()
	var off core.Off
	for name := range strings.SplitSeq(list, "+") {
		r, ok := core.RuleNamed(name)
		if !ok {
			t.Fatalf("no rule %s", name)
		}
		off = off.Without(r)
	}
	return off
}

func faultList() (faults []sim.Fault) {
	if *simFaults != "" {
		for f := range strings.SplitSeq(*simFaults, ",") {
			faults = append(faults, sim.Fault(f))
		}
	}
	return faults
}

// TestHunt looks for a seed at which the world breaks without a rule: go test -run TestHunt -sim.rule=R4Cap -sim.time=1m.
func TestHunt(t *testing.T) {
	if *simRule == "" {
		t.Skip("-sim.rule names the rule to turn off")
	}
	off := rules(t, *simRule)
	begin := time.Now()
	for seed := *simFrom; time.Since(begin) < *simTime; seed++ {
		if _, v := sim.Run(sim.Config{Seed: seed, Off: off, Faults: faultList()}); v != nil {
			t.Logf("FOUND %s %v", *simRule, v)
			return
		}
	}
	t.Logf("NOTHING %s", *simRule)
}

func TestSim(t *testing.T) {
	if *simSeed != 0 {
		cfg := sim.Config{Seed: *simSeed, Faults: faultList(), Trace: func(s string) { t.Log(s) }}
		if *simRule != "" {
			cfg.Off = rules(t, *simRule)
		}
		if _, v := sim.Run(cfg); v != nil {
			t.Fatal(v)
		}
		return
	}
	t.Parallel() // it takes its time, not the machine
	procs := *simProcs
	if procs == 0 {
		procs = runtime.GOMAXPROCS(0)
	}
	var (
		mu    sync.Mutex
		sum   sim.Stats
		next  atomic.Uint64
		wg    sync.WaitGroup
		begin = time.Now()
	)
	next.Store(*simFrom)
	for range procs {
		wg.Go(func() {
			for time.Since(begin) < *simTime && !t.Failed() {
				seed := next.Add(1) - 1
				stats, v := sim.Run(sim.Config{Seed: seed})
				mu.Lock()
				sum = sum.Add(stats)
				mu.Unlock()
				if v != nil {
					t.Errorf("%v\nreplay: make sim SEED=%d", v, seed)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("seeds %d to %d: %+v", *simFrom, next.Load()-1, sum)
}
