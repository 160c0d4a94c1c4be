package scope

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"time"
)

// Limits configure a Traps; zero values mean the defaults.
type Limits struct {
	// Now tells the day that calendars are judged by; nil means time.Now.
	Now func() time.Time
}

// Traps notices, from the URLs of one run alone, families of URLs that never
// end. Beyond what Trap sees in one URL these are
//
//   - session ids in parameters: the same page under ever new values;
//   - endless calendars;
//   - paths made of the same few names in ever new orders.
//
// It errs on the side of crawling: a family has to show itself before a URL of
// it is refused, and big sites do not look like one. What it cannot tell from
// the pages of a big site, such as facets or random numbers that link to each
// other, it lets pass; the limits of the run hold for these.
//
// It is safe for concurrent use, and remembers at most about 2 MB. What it
// remembers is not stored: each process of a run, and each resumption, learns
// anew from what it discovers.
type Traps struct {
	now  func() time.Time
	seed maphash.Seed

	mu       sync.Mutex
	sessions sessions
	dates    map[uint64]*dateFamily
	echoes   map[uint64]*echoHost
}

// NewTraps returns a detector for one run.
func NewTraps(l Limits) *Traps {
	if l.Now == nil {
		l.Now = time.Now
	}
	return &Traps{now: l.Now, seed: maphash.MakeSeed(), dates: make(map[uint64]*dateFamily), echoes: make(map[uint64]*echoHost)}
}

// Check says whether a newly discovered canonical URL, depth links from a
// seed, belongs to a trap, and why. It is meant to be called once for each
// URL, not for each link: what it counts is distinct URLs.
func (t *Traps) Check(url []byte, pathAt, depth int) (reason string, trap bool) {
	if reason, trap := Trap(url, pathAt, depth); trap {
		return reason, true
	}
	if reason, trap := t.checkSession(url, pathAt, depth); trap {
		return reason, true
	}
	if d, ok := findDate(url, pathAt); ok {
		return t.checkDate(url, d, depth)
	}
	return t.checkEcho(url, pathAt, depth)
}

func (t *Traps) hash(parts ...[]byte) uint64 {
	var h uint64
	for _, p := range parts {
		h = bits.RotateLeft64(h, 17)*0x9e3779b97f4a7c15 + maphash.Bytes(t.seed, p)
	}
	return h
}

// sketch counts distinct hashes: linear counting over 1<<13 bits.
type sketch struct {
	bits [128]uint64
	ones int
}

// add says whether the hash is new to the sketch.
func (s *sketch) add(h uint64) bool {
	w, b := h>>6&127, uint64(1)<<(h&63)
	if s.bits[w]&b != 0 {
		return false
	}
	s.bits[w] |= b
	s.ones++
	return true
}

func (s *sketch) has(h uint64) bool { return s.bits[h>>6&127]&(1<<(h&63)) != 0 }
