package frontier

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// Memory is a budget of bytes that the seen sets of a process share.
type Memory struct{ left atomic.Int64 }

// NewMemory returns a budget of n bytes.
func NewMemory(n int64) *Memory {
	m := &Memory{}
	m.left.Store(n)
	return m
}

func (m *Memory) take(n int64) bool {
	for {
		left := m.left.Load()
		if left < n {
			return false
		}
		if m.left.CompareAndSwap(left, left-n) {
			return true
		}
	}
}

func (m *Memory) give(n int64) { m.left.Add(n) }

// Seen is a set of keys known to be stored, so that the links every page repeats never reach the database. It is exact in
// the direction that matters: it never holds a key that was not added. When the memory is used up it takes no more keys,
// and the database decides about the rest.
//
// Keys are hashes already, so they are their own hash: an open table of 16-byte slots, at most 7/8 full, 18 to 37 bytes a
// key. It grows shard by shard, so growing needs little memory beyond its own.
type Seen struct {
	memory *Memory
	shards [64]seenShard
	zero   atomic.Bool // the all-zero key marks an empty slot
}

type seenShard struct {
	mu    sync.RWMutex
	slots [][16]byte
	used  int
	full  bool // growing was refused
}

const (
	seenFirst = 64 // slots of a new shard
	slotBytes = 16
)

// NewSeen returns an empty set that grows within memory.
func NewSeen(memory *Memory) *Seen { return &Seen{memory: memory} }

func shardOf(key *[16]byte) int { return int(key[15] & 63) }

func slotOf(key *[16]byte, n int) int {
	return int(binary.LittleEndian.Uint64(key[:8]) & uint64(n-1))
}

// Has reports whether key was added.
func (s *Seen) Has(key [16]byte) bool {
	if key == ([16]byte{}) {
		return s.zero.Load()
	}
	sh := &s.shards[shardOf(&key)]
	sh.mu.RLock()
	_, found := sh.find(&key)
	sh.mu.RUnlock()
	return found
}

// Add adds key when there is room; it reports whether the set holds it now.
func (s *Seen) Add(key [16]byte) bool {
	if key == ([16]byte{}) {
		s.zero.Store(true)
		return true
	}
	sh := &s.shards[shardOf(&key)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	at, found := sh.find(&key)
	if found {
		return true
	}
	if sh.used >= len(sh.slots)*7/8 {
		if !sh.grow(s.memory) {
			return false
		}
		at, _ = sh.find(&key)
	}
	sh.slots[at] = key
	sh.used++
	return true
}

// Len is the number of keys held.
func (s *Seen) Len() int {
	n := 0
	for i := range s.shards {
		s.shards[i].mu.RLock()
		n += s.shards[i].used
		s.shards[i].mu.RUnlock()
	}
	if s.zero.Load() {
		n++
	}
	return n
}

// Free gives the memory back. The set is empty afterwards.
func (s *Seen) Free() {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		s.memory.give(int64(len(sh.slots)) * slotBytes)
		sh.slots, sh.used, sh.full = nil, 0, false
		sh.mu.Unlock()
	}
	s.zero.Store(false)
}

// find returns the slot of key, or the empty one where it would go.
func (sh *seenShard) find(key *[16]byte) (at int, found bool) {
	n := len(sh.slots)
	if n == 0 {
		return 0, false
	}
	for at = slotOf(key, n); ; at = (at + 1) & (n - 1) {
		switch sh.slots[at] {
		case *key:
			return at, true
		case [16]byte{}:
			return at, false
		}
	}
}

func (sh *seenShard) grow(m *Memory) bool {
	if sh.full {
		return false
	}
	n := max(2*len(sh.slots), seenFirst)
	if !m.take(int64(n) * slotBytes) {
		sh.full = true
		return false
	}
	old := sh.slots
	sh.slots = make([][16]byte, n)
	for i := range old {
		if old[i] != ([16]byte{}) {
			at, _ := sh.find(&old[i])
			sh.slots[at] = old[i]
		}
	}
	m.give(int64(len(old)) * slotBytes)
	return true
}
