package show

import (
	"strconv"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

// Run is a run in lists.
type Run struct {
	Run        storage.RunID    `json:"run"`
	State      storage.RunState `json:"state"`
	Tenant     string           `json:"tenant"`
	URL        string           `json:"url"`
	Discovered int64            `json:"discovered"`
	Fetched    int64            `json:"fetched"`
	Failed     int64            `json:"failed"`
	Excluded   int64            `json:"excluded"`
	Reason     string           `json:"reason"`
	Until      *string          `json:"until"`
	Created    *string          `json:"created"`
	Started    *string          `json:"started"`
	Finished   *string          `json:"finished"`
}

// NewRun shows a run.
func NewRun(r storage.Run, l storage.Ledger) Run {
	url := r.Site
	if spec, err := crawl.DecodeSpec(r.Spec); err == nil && len(spec.Seeds) > 0 {
		url = spec.Seeds[0]
	}
	return Run{
		Run: r.ID, State: r.State, Tenant: r.Tenant, URL: url,
		Discovered: l.Discovered, Fetched: l.Fetched, Failed: l.Failed, Excluded: l.Excluded,
		Reason: r.Reason, Until: ISO(r.Until), Created: ISO(r.Created), Started: ISO(r.Started), Finished: ISO(r.Finished),
	}
}

// RunDetail is one run whole.
type RunDetail struct {
	Run
	Queued      int64                    `json:"queued"`
	Claimed     int64                    `json:"claimed"`
	Delayed     int64                    `json:"delayed"`
	Seconds     float64                  `json:"seconds"`
	Bytes       int64                    `json:"bytes"`
	ByStatus    map[string]int64         `json:"by_status"`
	ByReason    map[storage.Reason]int64 `json:"by_reason"`
	LateRefused int64                    `json:"late_refused"`
	Spec        crawl.Spec               `json:"spec"`
}

// NewRunDetail shows a run whole.
func NewRunDetail(r storage.Run, l storage.Ledger, spec crawl.Spec) RunDetail {
	return RunDetail{
		Run: NewRun(r, l), Queued: l.Queued, Claimed: l.Claimed, Delayed: l.Delayed, Seconds: r.WorkedFor.Seconds(),
		Bytes: l.Bytes, ByStatus: StatusWords(l.ByStatus), ByReason: Reasons(l.ByReason), LateRefused: l.LateRefused, Spec: spec,
	}
}

// StatusWords turns the keys of by_status into text, which JSON wants; 0 stands for no answer and is left to by_reason.
func StatusWords(m map[int]int64) map[string]int64 {
	out := map[string]int64{}
	for k, n := range m {
		if k != 0 {
			out[strconv.Itoa(k)] = n
		}
	}
	return out
}

// Reasons is never null in JSON.
func Reasons(m map[storage.Reason]int64) map[storage.Reason]int64 {
	if m == nil {
		m = map[storage.Reason]int64{}
	}
	return m
}
