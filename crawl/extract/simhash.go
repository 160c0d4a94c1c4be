package extract

import "math/bits"

// simhash counts, for each of 64 bit positions, how many features have it set (Charikar, 2002). The 64 counters are bit-sliced:
// plane[k] holds bit k of every counter, so adding a feature is a ripple-carry addition over all counters at once, and features
// are first folded eight to one with carry-save adders.
type simhash struct {
	n                 int
	ones, twos, fours uint64
	waiting           [8]uint64
	plane             [32]uint64 // from 8s up
}

func (s *simhash) add(h uint64) {
	s.waiting[s.n&7] = h
	s.n++
	if s.n&7 == 0 {
		s.fold()
	}
}

func carrySave(a, b, c uint64) (sum, carry uint64) {
	u := a ^ b
	return u ^ c, a&b | u&c
}

// fold adds the eight waiting features.
func (s *simhash) fold() {
	w := &s.waiting
	var t1, t2, f1, f2, e uint64
	s.ones, t1 = carrySave(s.ones, w[0], w[1])
	s.ones, t2 = carrySave(s.ones, w[2], w[3])
	s.twos, f1 = carrySave(s.twos, t1, t2)
	s.ones, t1 = carrySave(s.ones, w[4], w[5])
	s.ones, t2 = carrySave(s.ones, w[6], w[7])
	s.twos, f2 = carrySave(s.twos, t1, t2)
	s.fours, e = carrySave(s.fours, f1, f2)
	for k := 0; e != 0; k++ {
		s.plane[k], e = s.plane[k]^e, s.plane[k]&e
	}
}

// sum is the simhash: bit i is set where more than half of the features set it.
func (s *simhash) sum() uint64 {
	if s.n == 0 {
		return 0
	}
	for i := s.n & 7; i != 0 && i < 8; i++ {
		s.waiting[i] = 0
	}
	if s.n&7 != 0 {
		s.fold()
	}
	// Compare every counter with n/2 at once, from the top plane down.
	half := uint64(s.n / 2)
	greater, equal := uint64(0), ^uint64(0)
	for k := max(bits.Len64(half), bits.Len(uint(s.n))) - 1; k >= 0; k-- {
		var p uint64
		switch k {
		case 0:
			p = s.ones
		case 1:
			p = s.twos
		case 2:
			p = s.fours
		default:
			p = s.plane[k-3]
		}
		if half>>k&1 != 0 {
			equal &= p
		} else {
			greater |= equal & p
			equal &^= p
		}
	}
	return greater
}

// Distance is the number of bits in which two simhashes differ: about 32 for unrelated pages, a few for near-duplicates.
func Distance(a, b uint64) int { return bits.OnesCount64(a ^ b) }
