package sim_test

import (
	"flag"
	"testing"
	"time"

	"deepcrawl/coord/sim"
)

var (
	simTime = flag.Duration("sim.time", 5*time.Second, "how long TestSim runs")
	simSeed = flag.Uint64("sim.seed", 0, "run this seed only, with a trace")
	simFrom = flag.Uint64("sim.from", 1, "first seed")
)

func TestSim(t *testing.T) {
	if *simSeed != 0 {
		_, v := sim.Run(sim.Config{Seed: *simSeed, Trace: func(s string) { t.Log(s) }})
		if v != nil {
			t.Fatal(v)
		}
		return
	}
	var sum sim.Stats
	begin := time.Now()
	seed := *simFrom
	for ; time.Since(begin) < *simTime; seed++ {
		stats, v := sim.Run(sim.Config{Seed: seed})
		sum = sum.Add(stats)
		if v != nil {
			t.Fatalf("%v\nreplay: go test ./coord/sim -run TestSim -sim.seed=%d -v", v, seed)
		}
	}
	t.Logf("seeds %d to %d: %+v", *simFrom, seed-1, sum)
}
