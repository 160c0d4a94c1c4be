package storage

import "time"

// RunState is the state of a run.
type RunState string

// Run states. Done, Cancelled and Failed are terminal.
const (
	RunQueued    RunState = "queued"
	RunPreparing RunState = "preparing"
	RunCrawling  RunState = "crawling"
	RunFinishing RunState = "finishing"
	RunDone      RunState = "done"
	RunPaused    RunState = "paused"
	RunCancelled RunState = "cancelled"
	RunFailed    RunState = "failed"
)

// RunStates lists all states in life-cycle order.
func RunStates() []RunState {
	return []RunState{RunQueued, RunPreparing, RunCrawling, RunFinishing, RunDone, RunPaused, RunCancelled, RunFailed}
}

// Terminal reports whether the run is over.
func (s RunState) Terminal() bool { return s == RunDone || s == RunCancelled || s == RunFailed }

// Active reports whether workers may serve a run in this state.
func (s RunState) Active() bool { return s == RunPreparing || s == RunCrawling || s == RunFinishing }

// DefaultTenant owns one-shot crawls; it has no limits and exists in every database.
const DefaultTenant = "local"

// NewRun describes a run to create.
type NewRun struct {
	Tenant string
	Site   string // host of the first seed: names the site in lists and finds the run before this one
	Spec   []byte // opaque definition (seeds, scope, profile, limits), JSON
	// Home, when not empty, reserves the run for the node of that name; others leave it alone.
	Home string
	// Concurrency is the profile's limit of workers, 0 none. It bounds the seats.
	Concurrency int
}

// Run is one execution of a crawl.
type Run struct {
	ID       RunID
	Tenant   string
	Site     string
	Spec     []byte
	Home     string
	State    RunState
	Resume   RunState  // the state to return to from RunPaused
	Reason   string    // why it waits, failed or was paused; plain words
	Until    time.Time // earliest time it goes on, zero unknown
	Previous RunID     // the latest done run of the same tenant and site when this one was created, 0 none
	Created  time.Time
	Started  time.Time // zero: not yet
	Finished time.Time // zero: not yet
	// WorkedFor is the time it was preparing, crawling or finishing under a seat, over all stops: what a time limit counts.
	WorkedFor   time.Duration
	Concurrency int
}

// RunFilter selects runs; zero fields do not restrict.
type RunFilter struct {
	Tenant string
	States []RunState
	Site   string
	Before RunID // only runs with a smaller id (paging, newest first)
	// FinishedFor selects runs that ended at least this long ago.
	FinishedFor time.Duration
	Limit       int // 0: 100; at most 1,000
}

// Ledger counts a run's URLs. It balances at every moment (see the package comment).
type Ledger struct {
	Discovered, Fetched, Failed, Excluded int64
	Queued, Claimed, Delayed              int64
	Bytes, WireBytes                      int64 // of finished pages
	ByStatus                              map[int]int64
	ByReason                              map[Reason]int64 // of failed and excluded URLs
	LateRefused                           int64            // results refused because their claim was no longer theirs
}

// Step is a named, resumable piece of work of a run (preparation, finishing).
type Step struct {
	Name    string
	Cursor  []byte // opaque; nil at the start
	Done    bool
	Updated time.Time
}
