package sqlstore

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"deepcrawl/storage"
)

// seenKeys caches keys known to be stored, so that the links every page repeats do not reach the database. It is exact: it holds whole
// keys of committed rows only, and forgetting one costs a look at the database. Up to its limit it takes 21 to 43 bytes a key.
type seenKeys struct {
	limit int64 // bytes, over all runs
	used  atomic.Int64
	clock atomic.Int64

	mu   sync.RWMutex
	runs map[storage.RunID]*seenRun
}

// seenRun is the keys of one run, in segments that grow one by one: a doubling moves a small part of them.
type seenRun struct {
	touched atomic.Int64
	mu      sync.Mutex
	dropped bool
	seg     [seenSegments]seenSegment
}

// seenSegment is a hash table with linear probing; keys are hashes already. The zero key marks a free slot and is never cached.
type seenSegment struct {
	slots []storage.Key
	n     int
}

const (
	seenSegments = 64
	firstSlots   = 8
	// probes is how many slots a key that replaces another is spread over.
	probes  = 16
	keySize = 16
)

func (s *seenKeys) run(id storage.RunID) *seenRun {
	s.mu.RLock()
	r := s.runs[id]
	s.mu.RUnlock()
	if r == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r = s.runs[id]; r == nil {
			if s.runs == nil {
				s.runs = map[storage.RunID]*seenRun{}
			}
			r = new(seenRun)
			s.runs[id] = r
		}
	}
	r.touched.Store(s.clock.Add(1))
	return r
}

// drop forgets a run's keys.
func (s *seenKeys) drop(id storage.RunID) {
	s.mu.Lock()
	r := s.runs[id]
	delete(s.runs, id)
	s.mu.Unlock()
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped = true
	for i := range r.seg {
		s.used.Add(-int64(len(r.seg[i].slots)) * keySize)
		r.seg[i] = seenSegment{}
	}
}

// idleTouches is how often other runs must have been asked for since a run was, for its keys to make room for others'.
const idleTouches = 1000

// dropIdle forgets the run that was not asked for the longest, if that is long enough.
func (s *seenKeys) dropIdle() {
	s.mu.RLock()
	var oldest storage.RunID
	var at int64
	for id, r := range s.runs {
		if t := r.touched.Load(); oldest == 0 || t < at {
			oldest, at = id, t
		}
	}
	s.mu.RUnlock()
	if oldest != 0 && at < s.clock.Load()-idleTouches {
		s.drop(oldest)
	}
}

// has reports whether a key is known to be stored.
func (r *seenRun) has(k *storage.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seg[k[15]%seenSegments].has(k)
}

func (g *seenSegment) has(k *storage.Key) bool {
	if len(g.slots) == 0 || *k == (storage.Key{}) {
		return false
	}
	mask := uint64(len(g.slots) - 1)
	for i := binary.LittleEndian.Uint64(k[:8]) & mask; ; i = (i + 1) & mask {
		if g.slots[i] == *k {
			return true
		}
		if g.slots[i] == (storage.Key{}) {
			return false
		}
	}
}

// add remembers a key that is stored.
func (s *seenKeys) add(r *seenRun, k *storage.Key) {
	if *k == (storage.Key{}) {
		return
	}
	r.mu.Lock()
	full := !r.addLocked(s, k)
	r.mu.Unlock()
	if full {
		// Runs not served for long make room for this one; the key itself has replaced another.
		s.dropIdle()
	}
}

// addLocked reports whether the table could grow as it wanted.
func (r *seenRun) addLocked(s *seenKeys, k *storage.Key) bool {
	g := &r.seg[k[15]%seenSegments]
	if r.dropped || g.has(k) {
		return true
	}
	grown := true
	if 4*(g.n+1) > 3*len(g.slots) {
		grown = g.grow(s)
		if !grown {
			g.replace(k)
			return false
		}
	}
	g.put(k)
	return grown
}

func (g *seenSegment) put(k *storage.Key) {
	mask := uint64(len(g.slots) - 1)
	i := binary.LittleEndian.Uint64(k[:8]) & mask
	for g.slots[i] != (storage.Key{}) {
		i = (i + 1) & mask
	}
	g.slots[i] = *k
	g.n++
}

func (g *seenSegment) grow(s *seenKeys) bool {
	size := max(2*len(g.slots), firstSlots)
	more := int64(size-len(g.slots)) * keySize
	if s.used.Add(more) > s.limit {
		s.used.Add(-more)
		return false
	}
	old := g.slots
	g.slots, g.n = make([]storage.Key, size), 0
	for i := range old {
		if old[i] != (storage.Key{}) {
			g.put(&old[i])
		}
	}
	return true
}

// replace puts a key in the place of another near its own. Occupied slots stay occupied, so the chains of others hold; one
// that would stand too far from its slot to replace anything is not kept.
func (g *seenSegment) replace(k *storage.Key) {
	if len(g.slots) == 0 {
		return
	}
	mask := uint64(len(g.slots) - 1)
	h := binary.LittleEndian.Uint64(k[:8])
	for p := range uint64(probes) {
		if g.slots[(h+p)&mask] == (storage.Key{}) {
			break // the chain must not grow: the table is as full as it may be
		}
		if p == h>>60 {
			g.slots[(h+p)&mask] = *k
			return
		}
	}
	if i := h & mask; g.slots[i] != (storage.Key{}) {
		g.slots[i] = *k
	}
}
