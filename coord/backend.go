package coord

import (
	"context"
	"time"
)

// Coord is what a backend implements: each method one atomic transaction on the shared authority, on the authority's own
// clock. All are safe for concurrent use and for execution more than once (a client that hears nothing sends again), at any
// time later.
//
// Every method may return ErrUnavailable (certainly no effect) or ErrUnknown (perhaps), and treats a context that ended
// while the call was out as ErrUnknown.
type Coord interface {
	Roster
	Slots
	Gatekeeper
	Rate
	Leaser
	Switch
}

// Roster keeps the sessions.
type Roster interface {
	// Register adds a session with the next incarnation of its node, live, having acked today's epoch. It locks the authority, so
	// that a switch sees it or it sees the switch; it creates the authority in ModeDB, epoch 1, where there is none. It never
	// alters the row of another session. ErrNodeBusy when r.Role is RoleNode and the node has a live session of that role.
	Register(ctx context.Context, r Registration) (Registered, error)
	// Beat writes b.Seq to the session's own live row, with facts, health and gates, and reads the authority. With b.Ack it also
	// acks, if that epoch is today's and above what the row has acked: the session's slots become exactly b.Ack.Slots.
	// ErrFenced when the row is gone, not live, or has a Seq not below b.Seq: a beat, like Register, MUST NOT be sent again by
	// what lies between the session and the authority.
	Beat(ctx context.Context, b Beat) (BeatReply, error)
	// Bury marks a session dead and frees what it owns: if it is live and its Seq is b.Seq, or in any case with b.Proof. It
	// reports whether the session is dead now.
	Bury(ctx context.Context, b Burial) (bool, error)
	// Leave marks the session left and frees what it owns. A session that is not live any more is no error.
	Leave(ctx context.Context, m Member) error
	// Sessions lists the live ones and those that ended within the last hour, by member.
	Sessions(ctx context.Context) ([]SessionInfo, error)
}

// Slots grants and records slots.
type Slots interface {
	// Grant decides a.Groups in order, each all or nothing: a key has room while fewer slots than the smallest cap declared for
	// it (by the ask, by recorded slots, by recorded wants) are recorded, and takes the smallest free number. A token that is
	// recorded already is granted as it is. A refused group records a want for each of its keys that was full. ErrStale when
	// the view is not today's or the session has not acked it, ErrNoView when it has ended, ErrFenced when the session is not
	// live.
	Grant(ctx context.Context, a Ask) (Granted, error)
	// Return removes the slots of these tokens, whatever the epoch: their requests have ended. Unknown tokens are no error.
	Return(ctx context.Context, r Return) error
	// Reconcile removes the session's slots whose token is at most r.Upto and not among r.Tokens; it never touches one above.
	// It reports which of r.Tokens are not recorded, and where others wait for what this session has. ErrStale, ErrFenced.
	Reconcile(ctx context.Context, r Reconcile) (Reconciled, error)
	// Occupied lists the recorded slots, of one key or of all when it is empty, by key and number. For people.
	Occupied(ctx context.Context, key Key) ([]Slot, error)
}

// Gatekeeper keeps the gates.
type Gatekeeper interface {
	// Pause sets the gate's end to the later of what it is and now + w.For.
	Pause(ctx context.Context, w GateWrite) (Gate, error)
	// Clear opens the gate and voids what was written under earlier generations.
	Clear(ctx context.Context, key Key) (Gate, error)
	// Gates lists the closed ones by key.
	Gates(ctx context.Context) ([]Gate, error)
}

// Rate keeps the buckets.
type Rate interface {
	// Take takes one request by GCRA. A bucket that is missing or of another epoch is empty, and is stored so. ErrStale,
	// ErrFenced.
	Take(ctx context.Context, t Take) (Taken, error)
}

// Leaser keeps the leases.
type Leaser interface {
	// Hold takes the lease if it is free, past its end, of a session that is not live, or of this session; with the token of the
	// holding acquisition it renews. Each new acquisition has a greater fence. ErrHeld, ErrLost (this acquisition is over),
	// ErrStale (the database is not the one of the authority row, so fences might repeat), ErrWaiting (commits were lost, their
	// holders may still trust them), ErrNoView (the view has ended), ErrFenced.
	Hold(ctx context.Context, h Hold) (Held, error)
	// Drop ends the acquisition with this token; it is no error if it has ended.
	Drop(ctx context.Context, h Hold) error
	// Holder reports who has the lease; the zero Held when nobody.
	Holder(ctx context.Context, name string) (Held, error)
}

// Switch changes the authority. Every method locks its row.
type Switch interface {
	// Authority reads the row and the identity of the server that answered.
	Authority(ctx context.Context) (Authority, Ident, error)
	// Drain enters ModeDrain if today's epoch is d.From. ErrStale otherwise.
	Drain(ctx context.Context, d Drain) (Authority, error)
	// Carried returns the recorded slots once every live session has acked e and the hold is over. ErrStale when the authority
	// is not draining in e, ErrWaiting while the barrier stands.
	Carried(ctx context.Context, e Epoch) ([]Slot, error)
	// Open ends the drain of o.Epoch if the barrier is passed, in the transaction that checks it; for Redis it deletes the
	// recorded slots, which were seeded. ErrStale, ErrWaiting.
	Open(ctx context.Context, o Open) (Authority, error)
}

// Second is what a Coord has beside when its slots and rates can move to a Redis: the calls that go there whatever the mode.
// Grant, Return, Reconcile and Take go where the request's View says.
type Second interface {
	// Probe reads the clock and identity of Redis, the stamp of its last seed, and whether it may be used.
	Probe(ctx context.Context) (Probed, error)
	// Seed starts an epoch with the carried slots, in one script. ErrStale where the guard is not below e; Seeded.Guard then has
	// it.
	Seed(ctx context.Context, e Epoch, carried []Slot) (Seeded, error)
	// Reap frees what ended sessions had there, and reports how many slots: of every member that is not among live and whose
	// incarnation is below before. Incarnations are times of the database's clock, so one that registered since is above.
	Reap(ctx context.Context, v View, live []Member, before Incarnation) (int, error)
}

// Probed is a Redis that answered.
type Probed struct {
	Ident    RedisIdent
	Now      Micros
	Eligible bool
}

// Seeded is the outcome of a seed.
type Seeded struct {
	Ident RedisIdent
	Guard Epoch
}

// Registration is who wants to join.
type Registration struct {
	Node     NodeID
	Role     Role
	Machine  string
	LockFile string
	Facts    map[string]string
}

// Registered is the new session.
type Registered struct {
	Member    Member
	Authority Authority
	Now       Micros
}

// State of a session's row.
type State string

// The states.
const (
	Live State = "live"
	Left State = "left"
	Dead State = "dead"
)

// Token names a slot of a session: its Nth ask. With the Member it is unique for ever.
type Token uint64

// Slot is a recorded slot.
type Slot struct {
	Key    Key
	N      int // 1 to cap
	Member Member
	Token  Token
	Epoch  Epoch // it was granted in
	Cap    int   // its session declared
}

// Health is what a session reports of Redis.
type Health struct {
	Configured bool
	Ident      RedisIdent    // seen last
	Usable     bool          // now
	For        time.Duration // it has been so
}

// Beat is a sign of life, and the ack of an epoch with it.
type Beat struct {
	Member Member
	Seq    uint64 // number of this attempt
	Seen   Epoch  // the highest epoch this session has read
	Facts  map[string]string
	Redis  Health
	Gates  []GateWrite // the authority has not confirmed yet; all known ones with an ack
	Since  Micros      // gates changed since then are wanted
	Ack    *Ack
}

// Ack tells all that a session has, when the epoch changed.
type Ack struct {
	Epoch Epoch
	Slots []Slot
}

// BeatReply is what a beat reads.
type BeatReply struct {
	Authority Authority
	DB        Ident // of the server that answered
	Now       Micros
	Acked     Epoch  // in the session's row, after the beat
	Prev      uint64 // the row's Seq before the beat; below what was confirmed, commits were lost
	Sessions  []SessionState
	Gates     []Gate // changed since Beat.Since, with some overlap
}

// SessionState is what sessions need to know of each other.
type SessionState struct {
	Member Member
	State  State // ended ones are listed for ten minutes
	Seq    uint64
	Acked  Epoch
	Redis  Health
}

// SessionInfo is a session for people.
type SessionInfo struct {
	SessionState
	Role     Role
	Machine  string
	LockFile string
	Facts    map[string]string
	Age      time.Duration // since its last beat, on the authority's clock
	Slots    int
}

// Burial is the observation that a session is dead.
type Burial struct {
	By     Member // empty before joining
	Member Member
	Seq    uint64
	Proof  bool // the lock of its file was obtained
	Reason string
}

// AskKey is one slot asked for.
type AskKey struct {
	Key   Key
	Cap   int
	Token Token
}

// Ask is a wish for groups of slots.
type Ask struct {
	Member Member
	View   View
	Groups [][]AskKey
}

// GroupGrant answers one group: the numbers in the order of its keys, or nil, the first key that was full, and how many sessions
// wait for that, this one included.
type GroupGrant struct {
	N       []int
	Full    Key
	Waiting int
}

// Granted answers an Ask.
type Granted struct {
	Epoch  Epoch
	Groups []GroupGrant
	Caps   map[Key]int // the caps that were applied
}

// Return gives slots back.
type Return struct {
	Member Member
	View   View // says where they are recorded
	Tokens []Token
}

// Reconcile tells every token a session holds or has asked for.
type Reconcile struct {
	Member Member
	View   View
	Upto   Token
	Tokens []Token
}

// Reconciled answers a Reconcile.
type Reconciled struct {
	Epoch    Epoch
	Freed    int
	Missing  []Token
	Pressure []Pressure
	Caps     map[Key]int // today's cap of the keys this session has slots of
}

// Pressure says that others have waited two seconds for a key this session has slots of.
type Pressure struct {
	Key   Key
	Share int // equal share of this session, perhaps 0
	Cap   int // smallest declared
}

// GateWrite asks for a pause. Gen 0 is a new pause; a rewrite of a known one has its generation, and is void after a Clear.
type GateWrite struct {
	Key    Key
	For    time.Duration // from the time the authority executes it
	Reason string
	Gen    uint64
	// Set is the latest time the authority's clock can have shown when a new pause was set (0: not known). One that is told late
	// is void where the gate was cleared since.
	Set Micros
}

// Gate is a gate as the authority has it.
type Gate struct {
	Key    Key
	Gen    uint64        // rises with each Clear
	At     Micros        // not before, on the authority's clock
	For    time.Duration // what was left when read, at most 0 when open
	Reason string
}

// Take asks for one request of a budget.
type Take struct {
	Member Member
	View   View
	Key    Key
	Limit  RateLimit
	// ClockBound is the latest time the authority's clock can show if it did not step (0: not known); a clock that shows more is
	// not believed.
	ClockBound Micros
}

// Taken answers a Take.
type Taken struct {
	Epoch Epoch
	Wait  time.Duration // 0: granted
}

// Hold takes or renews a lease.
type Hold struct {
	Member Member
	View   View
	Name   string
	Token  Token // of the acquisition
	TTL    time.Duration
}

// Held is a held lease.
type Held struct {
	Name   string
	Member Member
	Token  Token
	Fence  Fence
	For    time.Duration // until it ends
}

// Since is when the lease was taken, by the backend's clock: the number of a fence is that time, moved up where it would not grow.
func (h Held) Since() time.Time {
	if h.Fence.Number == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(h.Fence.Number))
}

// Drain asks for a drain.
type Drain struct {
	By     Member
	From   Epoch // what the asker takes for today's
	Seen   Epoch // the new epoch is above this, and above every epoch a session has acked
	Target Mode
	Reason string
	// NewIdent says that the database is another than the row's: the row takes the server's own identity. If commits may be lost
	// with that, or Lost says that some are, the drain lasts at least Hold.
	NewIdent bool
	Lost     bool
	Hold     time.Duration
	Fall     bool // count as a fallback from Redis
	// Pin is the operator's word: ModeDB stays in the database, ModeRedis lets the cluster go to Redis by itself again; empty
	// leaves what was said before.
	Pin Mode
}

// Open asks for the end of a drain.
type Open struct {
	Epoch Epoch
	Mode  Mode
	Redis RedisIdent // of the seed, for ModeRedis
}
