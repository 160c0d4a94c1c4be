package sim_test

import (
	"strings"
	"testing"

	"deepcrawl/coord/core"
	"deepcrawl/coord/sim"
)

// recorded are seeds at which the world breaks without a rule. docs/guarantees.md has the same table in words. Where a rule
// alone is covered by another, both are turned off.
var recorded = []struct {
	rules     string // turned off, joined by +
	faults    string // directed ones, empty: by the seed
	seed      uint64
	invariant string
}{
	{"R1Drain", "", 4, "I3"},
	{"R2ViewEnds", "cut-db,deaf", 14, "I5"},
	{"R3View", "cut-db,deaf", 716, "I5"},
	{"R3Gate", "", 16, "I7"},
	{"R3Wall", "suspend", 1, "lease"},
	{"R3Again", "", 1, "I7"},
	{"R4Stamp", "redis-flush,operator", 149, "I1"},
	{"R4RunID", "redis-promote", 6, "I1"},
	{"R4Ident", "db-failover", 14, "I1"},
	{"R4Together", "", 1, "I4"},
	{"R4Cap", "caps", 3, "I4"},
	{"R5Upto", "", 3, "I5"},
	{"R5Reconcile", "", 3, "leak"},
	{"R5Asked", "", 4, "I5"},
	{"R5Reap", "kill,redis-promote", 11, "leak"},
	{"R6Drop", "", 341, "cap"},
	{"R7Tokens", "operator", 3, "I5"},
	{"R8NoGrant", "", 3, "I3"},
	{"R9Barrier", "operator", 3, "I3"},
	{"R9Death", "freeze", 3, "lease"},
	{"R10Again", "operator,redis-down", 213, "I1"},
	{"R10Carry", "operator,redis-down", 1, "cap"},
	{"R13Ident", "db-failover", 1, "I1"},
	{"R13Seen", "db-failover,operator", 147, "I1"},
	{"R13Hold", "db-failover", 1, "lease"},
	{"R14Fence", "freeze,deaf,cut-db,kill", 4, "I6"},
	{"R14Wait", "freeze,db-failover", 364, "cap"},
	{"R16Cap", "caps", 28, "cap"},
	{"RGateMax", "", 1, "I7"},
	{"RGateAck", "db-failover,join,leave", 100, "I7"},
	{"RGateLocal", "cut-db", 16, "I7"},
	{"RRateEpoch", "operator,redis-down", 301, "I8"},
	{"RRateEmpty", "operator", 36, "I8"},
	{"RRateVoid", "", 11, "I8"},
	{"RRateBound", "redis-clock", 587, "I8"},
	{"RFence", "", 1, "lease"},
	{"RTrust", "", 3, "lease"},
	{"RAbortGrace", "", 3, "cap"},
	{"R4Epoch+R4Stamp", "redis-flush,operator,redis-down", 76, "I1"},
	{"R4Until+R4Session", "slow,freeze,cut-db,deaf", 27, "leak"},
	{"R10Guard+R4Stamp", "operator,redis-down,redis-flush", 14, "I1"},
	{"R7Once+R14Fence", "operator,slow,double-control", 5, "I5"},
	{"R7Silence+R6Drop", "operator,slow,double-control", 56, "cap"},
	{"R9Seq+R14Fence", "deaf,cut-db,freeze", 9, "I6"},
}

// notFound are rules for which no violation was found, alone or with another; docs/guarantees.md says why each is kept.
var notFound = []core.Rule{core.R2FromStart, core.R9Gap, core.R10Delete, core.RFenceEpoch, core.RRegister}

// directed are rules with a test of their own.
var directed = []core.Rule{core.R16Share}

func split(list string) (faults []sim.Fault) {
	if list == "" {
		return nil
	}
	for f := range strings.SplitSeq(list, ",") {
		faults = append(faults, sim.Fault(f))
	}
	return faults
}

func TestRules(t *testing.T) {
	t.Run("every rule is in a table", func(t *testing.T) {
		seen := map[core.Rule]bool{}
		for _, r := range recorded {
			for name := range strings.SplitSeq(r.rules, "+") {
				rule, ok := core.RuleNamed(name)
				if !ok {
					t.Errorf("no rule is named %s", name)
				}
				seen[rule] = true
			}
		}
		for _, r := range append(notFound, directed...) {
			seen[r] = true
		}
		for r := range core.Rule(core.NumRules) {
			if !seen[r] {
				t.Errorf("%s is in no table", r)
			}
		}
	})
	for _, r := range recorded {
		t.Run("without "+r.rules, func(t *testing.T) {
			t.Parallel()
			off := rules(t, r.rules)
			_, v := sim.Run(sim.Config{Seed: r.seed, Off: off, Faults: split(r.faults)})
			if v == nil || v.Invariant != r.invariant {
				t.Errorf("seed %d gives %v, recorded is %s: the decision code or the world changed, look for another with "+
					"-run TestHunt -sim.rule=%s -sim.faults=%s", r.seed, v, r.invariant, r.rules, r.faults)
			}
			if _, v := sim.Run(sim.Config{Seed: r.seed, Faults: split(r.faults)}); v != nil {
				t.Errorf("the same world with the rule in force: %v", v)
			}
		})
	}
}
