package storage

import (
	"context"
	"time"
)

// Act is something the holder of a lease did for the whole cluster.
type Act struct {
	Fence Fence
	Owner Owner
	Duty  string
	At    time.Time
}

// Acts is the record of what the holders of leases did: from it one can see, afterwards and from outside, that two never acted at
// the same time.
type Acts interface {
	// RecordAct records that the owner begins a duty under a fence, where the fence still holds: ErrFenced, and then the duty MUST
	// NOT be done. The store keeps a bounded number of acts, the latest.
	RecordAct(ctx context.Context, fence Fence, owner Owner, duty string) error
	// Acts returns the latest acts of a lease's holders, at most limit, in the order in which they were recorded.
	Acts(ctx context.Context, lease string, limit int) ([]Act, error)
}
