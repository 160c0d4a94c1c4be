package storage

import (
	"context"
	"time"
)

// Store is everything the crawler asks of a database.
type Store interface {
	Runs
	Tallies
	Frontier
	Steps
	Pages
	Graph
	Seats
	Tenants
	Queue
	Bans
	Schedules
	Acts
	// Ping reports whether the database answers and its schema is the one this binary serves.
	// It returns ErrUnavailable or ErrSchema.
	Ping(ctx context.Context) error
	// Close waits for calls under way and releases everything. It is idempotent.
	Close() error
}

// Runs keeps what is to be crawled and how far it is.
type Runs interface {
	// CreateRun stores a new run in state RunQueued. ErrNotFound names a tenant that is unknown or being deleted.
	CreateRun(ctx context.Context, r NewRun) (Run, error)
	// Run returns one run, or ErrNotFound.
	Run(ctx context.Context, id RunID) (Run, error)
	// ListRuns returns runs, newest first.
	ListRuns(ctx context.Context, f RunFilter) ([]Run, error)
	// SetRunState moves a run to state to, when its present state is one of from, else it returns ErrState (ErrNotFound when
	// there is none). Reason and until say what it waits for. Entering RunPaused keeps the state left in Resume; entering the
	// first active state stamps Started; entering a terminal one stamps Finished and frees its seats.
	//
	// An active state needs one of the places of the tenant's tariff (Tariff.Parallel). Where a run that is not active is to become
	// so and none is free, it becomes RunQueued instead, keeps to in Resume, and goes on there when Pick finds a place for it.
	SetRunState(ctx context.Context, id RunID, from []RunState, to RunState, reason string, until time.Time) (Run, error)
	// UpdateRun changes Home and what a run waits for (Reason, Until) without touching its state; it adds worked to WorkedFor.
	UpdateRun(ctx context.Context, id RunID, u RunUpdate) error
	// DeleteRun removes at most about limit rows of a terminal or paused run, and the run itself last; done says that nothing is
	// left. It MUST be called until done; a run being deleted is not listed and not served. It never blocks claims of other
	// runs for longer than one small batch. ErrState when the run is active.
	DeleteRun(ctx context.Context, id RunID, limit int) (done bool, err error)
	// Ledger counts the URLs of a run.
	Ledger(ctx context.Context, id RunID) (Ledger, error)
}

// Tallies counts many runs at once, for lists.
type Tallies interface {
	// Tallies returns the ledgers of runs without Queued, Claimed, Delayed, ByStatus and ByReason, which cost more. One that is not
	// there has an empty one.
	Tallies(ctx context.Context, runs []RunID) (map[RunID]Ledger, error)
}

// RunUpdate changes a run; nil fields stay.
type RunUpdate struct {
	Home   *string
	Spec   []byte
	Reason *string
	Until  *time.Time
	Worked time.Duration
}

// Frontier hands out the unfinished URLs of runs and takes results.
//
// Calls carry the work of many workers and many runs; one call is one transaction.
type Frontier interface {
	// Discover stores unseen URLs of a run (seeds, sitemaps) and returns how many were new. Where fence is not nil it is
	// checked first: ErrFenced.
	Discover(ctx context.Context, run RunID, found []Discovery, fence *Fence) (added int, err error)
	// Claim takes the next URLs for each request: in each host boosted URLs first, of them those that were requested before, else by
	// (Priority, Depth, id), only rows that are Queued or Delayed and due. Two claims never return the same row. Fewer than N may come back, also none. Runs that
	// are not RunCrawling give none.
	Claim(ctx context.Context, owner Owner, reqs []ClaimRequest) ([]Claim, error)
	// Boost lets those of the URLs that are queued leave before all others of their hosts, by whichever store claims next, until d has
	// passed, also those that are claimed and returned meanwhile. Boosting again begins d anew. It returns how many
	// are boosted now. URLs that are not queued, or of another run, are left alone; at most 1,000 keys count. While URLs are claimed
	// a boost ends at most about two seconds late; while none are, nothing depends on it.
	Boost(ctx context.Context, run RunID, keys []Key, d time.Duration) (n int, err error)
	// Finish writes results: the page or the delay, the discovered URLs and the ledger, for each Result whose token still holds;
	// outcomes are parallel to results. A stale result writes nothing, its discovered URLs neither, and is counted.
	Finish(ctx context.Context, owner Owner, results []Result) ([]Outcome, error)
	// Return puts claimed URLs back as Queued, unchanged, where the token still holds.
	Return(ctx context.Context, owner Owner, claims []Claim) error
	// Reclaim puts back at most limit claims of a dead owner and frees its seats; more says to call again.
	// Attempts of a reclaimed row is at least 1: its request may have been made. It does not grow with each death: a page is not to
	// blame for the nodes that died with its claim.
	Reclaim(ctx context.Context, owner Owner, limit int) (n int, more bool, err error)
	// Owners returns the owners that hold claims or seats now, so that those of dead sessions can be reclaimed.
	Owners(ctx context.Context) ([]Owner, error)
	// Ready returns, for each run, its hosts that have claimable URLs now (at most limit a run), and when the next delayed URL
	// becomes due. A run with neither and without claims is Empty.
	Ready(ctx context.Context, runs []RunID, limit int) ([]RunReady, error)
	// CloseFrontier finishes at most limit Queued or Delayed URLs of a run as Excluded with the reason; more says to call again.
	// It does not touch claimed rows.
	CloseFrontier(ctx context.Context, run RunID, reason Reason, limit int) (n int, more bool, err error)
}

// RunReady is what a run's frontier holds now.
type RunReady struct {
	Run     RunID
	Hosts   []string      // with claimable URLs
	NextDue time.Duration // until the earliest delayed URL is due; 0 none is delayed
	Claimed bool          // some URL is claimed
	Empty   bool          // no unfinished URL at all
}

// Steps keeps the cursors of named steps.
type Steps interface {
	// Step returns a step's record; a step never saved is returned empty, without error.
	Step(ctx context.Context, run RunID, name string) (Step, error)
	// SaveStep stores a step's cursor, where the fence still holds: ErrFenced.
	SaveStep(ctx context.Context, run RunID, s Step, fence Fence) error
	// ResetSteps forgets the run's steps whose names have the prefix (finishing a stopped run again).
	ResetSteps(ctx context.Context, run RunID, prefix string) error
}

// PageQuery selects URLs of a run, in id order.
type PageQuery struct {
	After  URLID // exclusive
	Limit  int   // 0: 1,000; at most 10,000
	States []State
	Reason Reason
	Status int // 0 any; 1..5 a class; else exact
	// Unfinished also returns queued, claimed and delayed URLs.
	Unfinished bool
	// WithFacts and WithLinks also load those columns.
	WithFacts, WithLinks bool
}

// PageRow is one URL of a run with what is known of it.
type PageRow struct {
	ID         URLID
	URL        string
	Key        Key
	Host       string
	Depth      int
	Via        URLID
	Priority   int
	Discovered time.Time
	FetchedAt  time.Time // when the result was stored; zero for unfinished URLs
	Inlinks    int64     // -1 until computed by finishing
	PageResult           // State is set for unfinished rows too
}

// Pages reads what was stored. Reading never blocks claims.
type Pages interface {
	// ListPages returns URLs in id order: stable under inserts.
	ListPages(ctx context.Context, run RunID, q PageQuery) ([]PageRow, error)
	// PageByKey returns one URL with facts and links, or ErrNotFound.
	PageByKey(ctx context.Context, run RunID, key Key) (PageRow, error)
	// URLs returns the URLs of ids (missing ones are left out).
	URLs(ctx context.Context, run RunID, ids []URLID) (map[URLID]string, error)
	// URLsByPrefix resolves the first eight bytes of keys, as edges store them.
	URLsByPrefix(ctx context.Context, run RunID, prefixes [][8]byte) (map[[8]byte]URLRef, error)
	// Known returns, of keys, those discovered in that run, with their LastMod.
	Known(ctx context.Context, run RunID, keys []Key) (map[Key]int64, error)
	// TopPages returns the run's finished pages with the largest values of a column: "bytes" or "total".
	TopPages(ctx context.Context, run RunID, by string, n int) ([]PageRow, error)
}

// URLRef is a URL found by the prefix of its key, with what became of it.
type URLRef struct {
	ID     URLID
	URL    string
	State  State // zero while unfinished
	Status int
	Reason Reason
}

// Inlinks is what finishing computes for the target of links.
type Inlinks struct {
	Prefix [8]byte // of the target's key
	Count  int64   // pages that link to it
	Source URLID   // one of them
}

// Graph keeps what finishing computes from links.
type Graph interface {
	// Links returns the link rows of pages after an id, in id order; bounded by limit rows and about 4 MB.
	Links(ctx context.Context, run RunID, after URLID, limit int) ([]PageLinks, error)
	// SaveInlinks stores counts for the run's URLs that have these prefixes (replacing earlier ones), where the fence holds.
	SaveInlinks(ctx context.Context, run RunID, counts []Inlinks, fence Fence) error
	// BrokenLinks returns URLs with a status of 400 or more, and failed ones without a good status (a page that is only too large
	// works for visitors), that some page links to, most inlinks first.
	BrokenLinks(ctx context.Context, run RunID, n int) ([]BrokenLink, error)
}

// PageLinks is one page's outgoing links as stored.
type PageLinks struct {
	ID    URLID
	Links []byte
}

// BrokenLink is a URL that cannot be used, with a page that links to it.
type BrokenLink struct {
	ID      URLID
	URL     string
	Status  int
	Reason  Reason
	Inlinks int64
	Source  string // URL of a page with the link
}

// Candidate is a run that a worker could serve now.
type Candidate struct {
	Run      RunID
	Tenant   string
	State    RunState
	Home     string
	Occupied int       // seats taken
	Allowed  int       // seats allowed by tariff and profile; 0 unlimited
	Served   time.Time // when it was last picked; its creation at first
}

// Seat is a worker's place on a run.
type Seat struct {
	Run RunID
	N   int // numbered from 1; a primary key with the run
}

// Seats says which worker serves which run.
type Seats interface {
	// Pick shows choose the runs in an active state (and those queued that may start), and takes a seat on the one it returns the
	// index of, in one transaction; -1 takes none. The one picked is stamped Served. Where Allowed seats are taken already the run
	// is not shown. Allowed is the smallest of the tariff's Workers, the run's Concurrency and maxSeats, 0 not counting. A run that
	// is preparing or finishing has one seat. A queued run that is picked becomes RunPreparing, or what Resume names.
	//
	// Of a tenant's queued runs only the oldest are shown, as many as its tariff's Parallel leaves room for; one with a Home stands
	// behind those of all and of its home, and holds up only its home's. Runs of suspended tenants are not shown. However many
	// nodes pick at once, neither Parallel nor Allowed is exceeded; where a limit is lowered, what is over it ends by itself.
	//
	// held, when not nil, is the seat the worker serves now: its run is shown with that seat not counted, and choosing it again
	// returns the same seat. Choosing another run leaves the held seat alone (requests may still be under way on it).
	//
	// ok is false when none was taken. choose may be called again when the transaction is retried: it MUST be pure.
	Pick(ctx context.Context, owner Owner, maxSeats int, held *Seat, choose func([]Candidate) int) (seat Seat, run Run, ok bool, err error)
	// Leave gives a seat back; a seat that is no longer the owner's is left alone.
	Leave(ctx context.Context, owner Owner, seat Seat) error
}
