package scope

// Limits bound what a Traps remembers; zero values mean the defaults.
type Limits struct{}

// Traps notices families of URLs that never end. It is safe for concurrent use.
type Traps struct{}

// NewTraps returns a detector for one run.
func NewTraps(Limits) *Traps { return &Traps{} }

// Check says whether the newly discovered URL, depth hops from a seed, belongs to a trap.
func (t *Traps) Check(url []byte, pathAt, depth int) (reason string, trap bool) { return "", false }

// Trap looks at the URL alone: repeating path segments, too many segments.
func Trap(url []byte, pathAt int, depth int) (reason string, is bool) { return "", false }
