package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"deepcrawl/coord"
)

// TestHostsThatCannotBeStored are mistakes of who asks, not faults.
func TestHostsThatCannotBeStored(t *testing.T) {
	for arg, ok := range map[string]bool{
		"example.com": true, strings.Repeat("a.", 100) + "example.com": true, strings.Repeat("a.", 130) + "example.com": false, strings.Repeat("a", 300) + ".com": false, "": false,
	} {
		_, err := hostOf("host", arg)
		var usage *usageError
		if ok != (err == nil) || err != nil && !errors.As(err, &usage) {
			t.Errorf("%.20q of %d bytes: got %v", arg, len(arg), err)
		}
	}
}

func TestSinceWhenTheLeaderLeads(t *testing.T) {
	began := time.Date(2026, 3, 2, 8, 5, 0, 0, time.UTC)
	s := seen{at: began.Add(time.Hour), leader: coord.Held{Member: coord.Member{Node: "n1", Incarnation: 3}, Fence: coord.Fence{Epoch: 2, Number: uint64(began.UnixMicro())}}}
	st := s.status(false)
	if st.Leader != "n1/3" || st.LeaderSince == nil || *st.LeaderSince != "2026-03-02T08:05:00Z" {
		t.Errorf("got %s since %v", st.Leader, st.LeaderSince)
	}
	var out strings.Builder
	if err := printStatus(&out, &st, &s); err != nil || !strings.Contains(out.String(), "n1/3, since "+localTime(st.LeaderSince)) {
		t.Errorf("got %s, %v", out.String(), err)
	}
	s.leader = coord.Held{}
	if st := s.status(false); st.Leader != "" || st.LeaderSince != nil {
		t.Errorf("without a leader: got %s since %v", st.Leader, st.LeaderSince)
	}
}
