package coord

import (
	"errors"
	"fmt"
	"time"
)

// Sentinels. Test with errors.Is; what is returned wraps them with what was being done.
var (
	// ErrNodeID: the node id is not letters, digits and hyphens, 1 to 16 of them.
	ErrNodeID = errors.New("node id not allowed")
	// ErrKey: the key is not "kind:name" or is too long.
	ErrKey = errors.New("key not allowed")
	// ErrArgument: a cap, rate, duration or count that cannot mean anything (cap 0, a negative time).
	ErrArgument = errors.New("argument not allowed")
	// ErrTiming: constants under which the promises would not hold; the text has the smallest allowed value.
	ErrTiming = errors.New("timing not allowed")

	// ErrNodeBusy: another live session of role node has this node id.
	ErrNodeBusy = errors.New("node id is in use by a live session")
	// ErrFenced: this session is over (marked dead, its row gone, too long without a beat). It does nothing more; join
	// again once its own requests have ended.
	ErrFenced = errors.New("session is fenced")
	// ErrLeft: Leave was called.
	ErrLeft = errors.New("session has left")

	// ErrNoView: the session has no valid view of the authority (no beat succeeded lately, or the clock jumped). It passes
	// by itself when the authority answers again; nothing may start until then.
	ErrNoView = errors.New("no valid view of the authority")
	// ErrGated: a gate is closed for one of the keys; errors.As gives *GateError.
	ErrGated = errors.New("gate is closed")
	// ErrVoid: the permit may not start a request any more (released, of a past epoch, or its rate grant older than
	// Timing.RateVoid). Release it and acquire another.
	ErrVoid = errors.New("permit is void")

	// ErrHeld: another session holds the lease.
	ErrHeld = errors.New("lease is held by another")
	// ErrLost: the lease is no longer held by this acquisition.
	ErrLost = errors.New("lease is lost")

	// ErrStale: the authority refused because the epoch, mode, identity or view of the request is not today's.
	ErrStale = errors.New("request is of another epoch")
	// ErrWaiting: the drain cannot end yet, a live session has not acked or the hold is not over.
	ErrWaiting = errors.New("barrier is not passed")
	// ErrUnknown: no answer, so the call may or may not have taken effect. Never read it as "no".
	ErrUnknown = errors.New("outcome is unknown")
	// ErrUnavailable: the backend was not reached; the call certainly had no effect.
	ErrUnavailable = errors.New("coordination backend is unavailable")
)

// GateError tells which gate refused a start. It is ErrGated.
type GateError struct {
	Key    Key
	Until  time.Time
	Reason string
}

// Error names key, end and reason.
func (e *GateError) Error() string {
	return fmt.Sprintf("%s is paused until %s: %s", e.Key, e.Until.Format(time.RFC3339), e.Reason)
}

// Is makes a GateError an ErrGated.
func (e *GateError) Is(target error) bool { return target == ErrGated }
