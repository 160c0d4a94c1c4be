package storage

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strconv"
)

// RunID names one execution of a crawl. IDs grow with time and are never used again.
type RunID int64

func (id RunID) String() string { return strconv.FormatInt(int64(id), 10) }

// URLID names a URL within its run. A URL discovered later has, roughly, a larger one.
type URLID int64

// Key is the fixed-size hash of a canonical URL: its identity within a run.
type Key [16]byte

// Owner names the session (node and incarnation) that holds claims and seats, as the coordinator knows it. It is opaque here:
// up to 64 bytes of printable ASCII, compared byte for byte.
type Owner string

// ClaimToken is opaque and new for each claim; a result is accepted only while its row still carries it. Zero is no token.
type ClaimToken int64

// NewClaimToken returns a fresh random token.
func NewClaimToken() ClaimToken {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // crypto/rand.Read never fails (since Go 1.24)
		if t := ClaimToken(binary.LittleEndian.Uint64(b[:]) >> 1); t != 0 {
			return t
		}
	}
}

// Fence grows with every acquisition of the lease it was granted with. A store that has seen a larger one of the same name
// refuses the smaller ([ErrFenced]) in the transaction that would write.
type Fence struct {
	Name          string // the lease's name
	Epoch, Number uint64 // ordered by Epoch, then Number
}

func (f Fence) String() string { return fmt.Sprintf("%s@%d.%d", f.Name, f.Epoch, f.Number) }
