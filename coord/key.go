package coord

import (
	"fmt"
	"strconv"
	"strings"
)

// NodeID names a server: letters, digits and hyphens, at most 16. Two live nodes never share one.
type NodeID string

// MaxNodeID is the greatest length of a NodeID.
const MaxNodeID = 16

// Check returns ErrNodeID, saying what is allowed, for an id that is empty, too long or has other characters.
func (n NodeID) Check() error {
	if len(n) == 0 || len(n) > MaxNodeID {
		return fmt.Errorf("%w: %q has %d characters, allowed are 1 to %d", ErrNodeID, string(n), len(n), MaxNodeID)
	}
	for i := 0; i < len(n); i++ {
		c := n[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' {
			continue
		}
		return fmt.Errorf("%w: %q has %q, allowed are letters, digits and hyphens", ErrNodeID, string(n), c)
	}
	return nil
}

// Incarnation numbers the sessions of a node, rising; a restarted process has a greater one. 0 is no session.
type Incarnation uint64

// Epoch is the generation of the authority. It never falls in the eyes of any session.
type Epoch uint64

// Member names a session: everything it owns hangs on this pair and dies with it.
type Member struct {
	Node        NodeID
	Incarnation Incarnation
}

// String gives "node/incarnation".
func (m Member) String() string {
	return string(m.Node) + "/" + strconv.FormatUint(uint64(m.Incarnation), 10)
}

// Less orders members by node, then incarnation.
func (m Member) Less(o Member) bool {
	if m.Node != o.Node {
		return m.Node < o.Node
	}
	return m.Incarnation < o.Incarnation
}

// Key names a thing that is limited, with its kind before the first colon: "host:example.com", "run:12". At most MaxKey
// bytes.
type Key string

// MaxKey is the greatest length of a Key in bytes: a DNS name (253) and a kind.
const MaxKey = 280

// HostKey is the key of a host, which must already be in the crawler's form (lower case, A-labels, www folded).
func HostKey(host string) Key { return Key("host:" + host) }

// RunKey is the key of a run's concurrency.
func RunKey(id int64) Key { return Key("run:" + strconv.FormatInt(id, 10)) }

// Kind is the part before the first colon, empty when there is none.
func (k Key) Kind() string {
	kind, _, ok := strings.Cut(string(k), ":")
	if !ok {
		return ""
	}
	return kind
}

// Name is the part after the first colon, the whole key when there is none.
func (k Key) Name() string {
	_, name, ok := strings.Cut(string(k), ":")
	if !ok {
		return string(k)
	}
	return name
}

// Check returns ErrKey for a key without kind or name, or longer than MaxKey.
func (k Key) Check() error {
	if k.Kind() == "" || k.Name() == "" {
		return fmt.Errorf("%w: %q, allowed is kind:name", ErrKey, string(k))
	}
	if len(k) > MaxKey {
		return fmt.Errorf("%w: %d bytes, allowed are %d", ErrKey, len(k), MaxKey)
	}
	return nil
}

// Fence grows with every acquisition of a lease, over releases, expiries, restarts and changes of the authority. A store
// that remembers the greatest one it has seen can refuse a past holder in the statement that writes.
type Fence struct {
	Epoch  uint64
	Number uint64
}

// Less orders fences by epoch, then number.
func (f Fence) Less(o Fence) bool {
	if f.Epoch != o.Epoch {
		return f.Epoch < o.Epoch
	}
	return f.Number < o.Number
}

// IsZero reports the zero Fence, which no acquisition ever returns.
func (f Fence) IsZero() bool { return f == Fence{} }

// String gives "epoch.number".
func (f Fence) String() string {
	return strconv.FormatUint(f.Epoch, 10) + "." + strconv.FormatUint(f.Number, 10)
}
