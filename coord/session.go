package coord

import (
	"context"
	"log/slog"
	"time"
)

// Session is one incarnation of a process in the cluster, as the engine uses it. It beats, keeps its view of the
// authority, reconciles and gives back surplus slots in the background. All methods are safe for concurrent use.
//
// A session never comes back to life: once Done is closed, the engine drops the claims of this ID, ends its requests, calls
// Leave, and joins again, which gives a new incarnation.
type Session interface {
	Identity
	Permits
	Gates
	Rates
	Leases
}

// Identity is who the session is and whether it is still alive.
type Identity interface {
	// ID is the session's name; what a store's Owner is built from. Constant.
	ID() Member
	// Timing is what the session runs under. Requests MUST be aborted at Timing().Abort().
	Timing() Timing
	// Done is closed when the session is fenced or has left. Permits then refuse every start.
	Done() <-chan struct{}
	// Err is nil until Done is closed, then ErrFenced or ErrLeft, wrapped with the reason.
	Err() error
	// Watching reports that another session is silent: this one should stay until it is heard of or found dead (rule 9).
	Watching() bool
	// Status is a snapshot for people.
	Status() Status
	// Leave ends the session and gives everything back: slots, leases, the session itself. It MUST be called after the last
	// request has ended; permits still out are treated as ended. Idempotent. It returns an error when the authority could not be
	// told, in which case what the session held returns after Timing.Death.
	Leave(ctx context.Context) error
}

// Status of a session.
type Status struct {
	Authority  Authority // as read last
	Permits    int       // out
	Slots      int       // held, idle ones included
	RoundTrips uint64    // calls made to the authority so far
}

// CappedKey is a key and the cap this session declares for it. A cap is a cluster fact: the smallest value any live session
// declares holds.
type CappedKey struct {
	Key Key
	Cap int
}

// Need is a wish for up to N permits, each covering all of Keys together (what one request needs: its host and its run).
type Need struct {
	Keys []CappedKey
	N    int
}

// Permits hands out the right to have a request in flight.
type Permits interface {
	// Acquire takes up to need.N permits, each all or nothing over need.Keys. It never waits for a permit: kept slots are
	// given without I/O, for the rest one call is made to the authority, and what is granted now is returned, perhaps nothing
	// (nil, nil). After a refusal for a key the session does not ask again before a short while; Changed tells when. A key
	// under a closed gate gives nothing.
	//
	// The order of use is: take Changed, then Acquire, and wait on the channel when there was too little.
	//
	// Never call it to wait for a key while holding a permit of another (rule 15).
	//
	// Errors: ErrArgument and ErrKey for a wish that means nothing, ErrFenced, ErrLeft, ctx.Err(). Trouble with the authority
	// is not an error: nothing is granted, and the view says why.
	Acquire(ctx context.Context, need Need) ([]Permit, error)
	// Yield says that there is no work for key now. Where other sessions are live, its idle slots go back KeepYielded after their
	// last use instead of Timing.KeepIdle, and those in use as soon after their request, until the next Acquire of key. No I/O.
	Yield(key Key)
	// Changed returns a channel that is closed at the next moment when an Acquire that gave too little might give more: a slot
	// came back, a gate opened, a retry is due, the view is valid again, the session ended.
	Changed() <-chan struct{}
	// MayWork reports nil when the session could start requests at all (a valid view), otherwise why not: ErrNoView, ErrFenced
	// or ErrLeft, with the reason. For status lines and for backing off.
	MayWork() error
}

// KeepYielded is how long a slot of a yielded key is kept after its last use: a page that is being read may have links, and a
// slot given back for each page would be asked for again for each.
const KeepYielded = 100 * time.Millisecond

// Permit is the right to have one request in flight on each of its keys.
type Permit interface {
	// MayStart is the start guard, without I/O: nil when a request may be written to the wire now. It MUST be called right
	// before each request, and again after dialling, right before writing. Errors: ErrNoView, ErrGated (*GateError), ErrVoid,
	// ErrFenced, ErrLeft.
	MayStart() error
	// Take takes one request from the shared rate of key; see Rates.Take. A grant is remembered by the permit: MayStart returns
	// ErrVoid once it is older than Timing.RateVoid, until Take grants again.
	Take(ctx context.Context, key Key, limit RateLimit) (wait time.Duration, err error)
	// Release says that the request has ended: its response was read to the end, or it never started. The session keeps the slot
	// for the next request while there is work for it, and gives it back otherwise. Idempotent; it does no I/O.
	Release()
	// Abort says that the request was cut off, so that it may still be in flight at the site. The slot is free again
	// Timing.AbortGrace later. Idempotent; instead of Release.
	Abort()
}

// Gates are cluster-wide pauses, one for each key.
type Gates interface {
	// Gate reports from memory whether key is paused, until when (this machine's wall clock, for people) and why. No I/O.
	Gate(key Key) (until time.Time, reason string, closed bool)
	// Pause closes the gate of key for d from now, for everybody. A pause only ever lengthens what is there, and d above MaxPause
	// counts as MaxPause. It is in force here when the call starts, whatever becomes of the call; the session goes on telling the
	// authority until it has heard it. Errors: ErrArgument, ErrKey, ErrUnknown or ErrUnavailable when the authority has not
	// confirmed yet.
	Pause(ctx context.Context, key Key, d time.Duration, reason string) error
	// Clear opens the gate of key for everybody: an operator's decision. Pauses set before it are void, later ones hold.
	Clear(ctx context.Context, key Key) error
}

// MaxPause is the longest pause that can be asked for at a time.
const MaxPause = 24 * time.Hour

// RateLimit is requests a second, and how many may come at once (at least 1).
type RateLimit struct {
	PerSecond float64
	Burst     int
}

// Rates are shared request budgets.
type Rates interface {
	// Take takes one request from the budget of key. A wait of 0 is a grant, good for Timing.RateVoid; otherwise nothing was
	// taken, and it is worth asking again after wait. Over any window w, grants are at most Burst + PerSecond x w, over all
	// sessions; a missing bucket counts as empty. Errors: ErrArgument, ErrKey, ErrNoView, ErrUnknown (count it as taken and not
	// granted), ErrUnavailable, ErrFenced, ErrLeft.
	Take(ctx context.Context, key Key, limit RateLimit) (wait time.Duration, err error)
}

// Leases are expiring exclusive rights.
type Leases interface {
	// Lease takes the lease of this name for ttl and renews it every ttl/6 until Release, Leave or loss. ErrHeld when another
	// session has it, ErrArgument for a ttl below a second, ErrUnknown, ErrUnavailable, ErrFenced, ErrLeft.
	Lease(ctx context.Context, name string, ttl time.Duration) (Lease, error)
}

// Lease is one acquisition of a lease.
type Lease interface {
	// Held reports whether this acquisition may be relied on: within 5/6 of the ttl since the start of the last renewal that
	// succeeded, and not released, on the monotonic clock. Another holder may exist as soon as it is false; what was begun before
	// is stopped by the fence, not by Held.
	Held() bool
	// Fence is this acquisition's. Constant.
	Fence() Fence
	// Lost is closed once Held is false for good.
	Lost() <-chan struct{}
	// Release gives the lease back at once. Idempotent.
	Release(ctx context.Context) error
}

// Role says what a session is. The rule "one live session a node id" is for RoleNode.
type Role string

// The roles.
const (
	RoleNode  Role = "node"
	RoleCrawl Role = "crawl"
	RoleTool  Role = "tool"
)

// Options say who joins. The zero value of each field but Node is a default.
type Options struct {
	Node   NodeID
	Role   Role         // default RoleTool
	Timing Timing       // default DefaultTiming
	Clock  Clock        // default SystemClock
	Log    *slog.Logger // default: discard

	// Machine identifies this boot of this machine, LockFile the device and inode of the file whose lock this process holds, as
	// "dev:inode"; both empty when there is none. They allow proof of death (rule 9).
	Machine  string
	LockFile string

	// Facts is called at each beat, must not block, and returns what listings show: version, workers, in flight. At most
	// MaxFacts bytes in all.
	Facts func() map[string]string
}

// MaxFacts bounds the facts of a session, keys and values together, in bytes.
const MaxFacts = 4096
