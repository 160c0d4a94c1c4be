// Package core is the pure core of coordination: every decision of the protocol, without clock, network, randomness or
// goroutines. The simulator, the coordinator in memory and the real backends run this code; SQL and Lua, where they decide by
// themselves, are tested against it.
//
// Two machines stand here. [Session] is a client: events go in with the time they happen at (a tick, an answer, a wish of the
// engine), calls to the authority come out. [DB] and [Redis] are authorities in memory: each method one transaction.
// The decisions of a transaction are functions of rows (Decide...), so that a backend with other rows can use them.
package core

// Rule is a safety rule of the protocol that can be turned off, to show what it prevents. Production never does.
type Rule uint8

// The rules, by the numbers of the protocol.
const (
	// R1Drain: an epoch rises by entering drain. Off: the authority changes from Redis to the database and back in one step.
	R1Drain Rule = iota
	// R2ViewEnds: a view ends. Off: once read it is good for ever.
	R2ViewEnds
	// R2FromStart: the view counts from the start of the beat. Off: from its answer.
	R2FromStart
	// R3View: a start needs a valid view. Off: a token is enough.
	R3View
	// R3Gate: a start needs open gates. Off: only asking does.
	R3Gate
	// R3Wall: a start needs a wall clock that has not run ahead. Off: a suspended machine goes on.
	R3Wall
	// R3Again: the guard is asked again after dialling. Off: once, before.
	R3Again
	// R4Epoch: Redis checks the epoch. Off: it grants under any it has.
	R4Epoch
	// R4Stamp: Redis checks the stamp of the seed.
	R4Stamp
	// R4RunID: Redis checks run_id and master_replid.
	R4RunID
	// R4Until: a grant checks the view's end on the authority's clock.
	R4Until
	// R4Session: a grant in the database needs a live session that has acked.
	R4Session
	// R4Ident: a grant in the database checks the server's identity.
	R4Ident
	// R4Together: what a request needs is granted all or nothing. Off: what there is.
	R4Together
	// R4Cap: a grant counts all rows of the key. Off: a free number is enough.
	R4Cap
	// R5Upto: reconcile touches no token above the highest when it was sent.
	R5Upto
	// R5Reconcile: sessions reconcile. Off: what an unanswered call left behind stays.
	R5Reconcile
	// R5Asked: reconcile names what was asked and not answered.
	R5Asked
	// R5Reap: what dead sessions had in Redis is freed.
	R5Reap
	// R6Drop: answers of another epoch are dropped.
	R6Drop
	// R7Tokens: the ack carries all tokens. Off: only those in use.
	R7Tokens
	// R7Silence: nothing is asked or accepted under an older epoch once a higher is known.
	R7Silence
	// R7Once: an ack counts once an epoch. Off: a delayed one replaces the slots again.
	R7Once
	// R8NoGrant: nobody grants during a drain.
	R8NoGrant
	// R9Barrier: a drain ends when all sessions have acked, left or died.
	R9Barrier
	// R9Death: a session is dead after T. Off: after the view's end.
	R9Death
	// R9Gap: silence counts over the observer's own beats only. Off: any time counts.
	R9Gap
	// R9Seq: a session is buried only if its seq is the one observed.
	R9Seq
	// R10Guard: a seed is refused where the guard is not below its epoch.
	R10Guard
	// R10Again: the transaction that opens Redis checks the barrier and the epoch again.
	R10Again
	// R10Delete: opening Redis deletes the recorded slots.
	R10Delete
	// R10Carry: Redis is seeded with the recorded slots.
	R10Carry
	// R13Ident: a change of the database's identity starts a new epoch.
	R13Ident
	// R13Seen: the new epoch is above every epoch seen.
	R13Seen
	// R13Hold: after losing commits the barrier lasts T.
	R13Hold
	// R14Fence: a session whose row is gone or that was silent too long stops.
	R14Fence
	// R14Wait: a fenced session joins again only after its requests have ended.
	R14Wait
	// R16Cap: a token granted under a higher cap is returned when its request ends.
	R16Cap
	// R16Share: surplus is returned when others wait.
	R16Share
	// RGateMax: a gate is the later of old and new.
	RGateMax
	// RGateAck: an ack rewrites the gates the session knows.
	RGateAck
	// RGateLocal: a pause is in force at once where it was set.
	RGateLocal
	// RGateClear: a pause that was set before the gate was cleared, and is told after, is void.
	RGateClear
	// RRateEpoch: a bucket of another epoch is missing.
	RRateEpoch
	// RRateEmpty: a missing bucket is empty. Off: full.
	RRateEmpty
	// RRateVoid: a rate grant is void after a second.
	RRateVoid
	// RRateBound: a clock that ran ahead of what it can show is not believed.
	RRateBound
	// RFence: each acquisition of a lease has a greater fence.
	RFence
	// RFenceEpoch: the fence begins with the epoch.
	RFenceEpoch
	// RTrust: a holder trusts its lease for 5/6 of the ttl from the start of the renewing call.
	RTrust
	// RAbortGrace: the slot of an aborted request is free a second later.
	RAbortGrace
	// RRegister: a registration locks the authority. Off: it may not see a switch, nor be seen by it.
	RRegister
	numRules
)

// NumRules is how many there are.
const NumRules = int(numRules)

// Off is the set of rules turned off. The zero value is the protocol.
type Off uint64

// Without returns the set with r turned off too.
func (o Off) Without(r Rule) Off { return o | 1<<r }

// on reports whether the rule is in force.
func (o Off) on(r Rule) bool { return o&(1<<r) == 0 }

// Lacks reports whether the rule is turned off, for harnesses that play the parts of the engine (R3Again, R14Wait).
func (o Off) Lacks(r Rule) bool { return !o.on(r) }

var ruleNames = [numRules]string{
	"R1Drain", "R2ViewEnds", "R2FromStart", "R3View", "R3Gate", "R3Wall", "R3Again", "R4Epoch", "R4Stamp", "R4RunID",
	"R4Until", "R4Session", "R4Ident", "R4Together", "R4Cap", "R5Upto", "R5Reconcile", "R5Asked", "R5Reap", "R6Drop",
	"R7Tokens", "R7Silence", "R7Once", "R8NoGrant", "R9Barrier", "R9Death", "R9Gap", "R9Seq", "R10Guard", "R10Again",
	"R10Delete", "R10Carry", "R13Ident", "R13Seen", "R13Hold", "R14Fence", "R14Wait", "R16Cap", "R16Share", "RGateMax",
	"RGateAck", "RGateLocal", "RGateClear", "RRateEpoch", "RRateEmpty", "RRateVoid", "RRateBound", "RFence", "RFenceEpoch", "RTrust",
	"RAbortGrace", "RRegister",
}

// String is the rule's name.
func (r Rule) String() string {
	if int(r) < len(ruleNames) {
		return ruleNames[r]
	}
	return "unknown rule"
}

// RuleNamed finds a rule by its name.
func RuleNamed(name string) (Rule, bool) {
	for i, n := range ruleNames {
		if n == name {
			return Rule(i), true
		}
	}
	return 0, false
}
