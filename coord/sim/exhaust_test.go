package sim_test

import (
	"flag"
	"strings"
	"testing"

	"deepcrawl/coord/core"
	"deepcrawl/coord/sim"
	"deepcrawl/internal/testenv"
)

var exhaustMax = flag.Int("exhaust.max", 25000, "states of each world of TestExhaustive; 0: to the fixed point")

// worlds are what TestExhaustive explores. docs/guarantees.md has the states of each to its fixed point, or as far as was gone.
var worlds = []struct {
	name string
	w    sim.Small
}{
	{"nothing goes wrong", sim.Small{}},
	{"one switch in the database", sim.Small{Switches: 1}},
	{"one switch to Redis", sim.Small{Redis: true}},
	{"to Redis and back", sim.Small{Redis: true, Switches: 1}},
	{"one switch, and one of each fault", sim.Small{Switches: 1, Losses: 1, Delays: 1, Late: 1, Crashes: 1}},
	{"Redis, flushed once", sim.Small{Redis: true, Flushes: 1}},
}

func TestExhaustive(t *testing.T) {
	for _, c := range worlds {
		t.Run(c.name, func(t *testing.T) {
			c.w.Max = *exhaustMax
			e := sim.Exhaust(c.w)
			t.Log(e)
			if e.Violation != "" {
				t.Errorf("%s\n%s", e.Violation, strings.Join(e.Path, "\n"))
			}
			if e.Requests == 0 {
				t.Error("no request was in flight in any state")
			}
		})
	}
	for _, c := range []struct {
		rule core.Rule
		w    sim.Small
	}{
		{core.R7Tokens, sim.Small{Switches: 1}},
		{core.R8NoGrant, sim.Small{Switches: 1}},
		{core.R9Barrier, sim.Small{Switches: 1}},
		{core.R9Death, sim.Small{Losses: 1}},
		{core.R10Carry, sim.Small{Redis: true}},
	} {
		t.Run("without "+c.rule.String(), func(t *testing.T) {
			testenv.Large(t)
			c.w.Off, c.w.Max = core.Off(0).Without(c.rule), withoutMax
			e := sim.Exhaust(c.w)
			t.Logf("%v: %s\n%s", e, e.Violation, strings.Join(e.Path, "\n"))
			if e.Violation == "" {
				t.Error("found nothing")
			}
		})
	}
}

const withoutMax = 400000
