package extract

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode"
	"unicode/utf8"
)

// textSink collects the normalised visible text and, on the way, words and their simhash.
type textSink struct {
	out       []byte
	space     bool // a space is due before the next character
	wordStart int  // offset of the open word in out, -1 when none is open
	words     int
	prev      uint64 // hash of the word before, for pairs
	sim       simhash
}

func (s *textSink) reset() {
	s.out = s.out[:0]
	s.space, s.wordStart, s.words, s.prev = false, -1, 0, 0
	s.sim = simhash{}
}

// wordBreak ends the open word; the next character will follow a space.
func (s *textSink) wordBreak() {
	if s.wordStart >= 0 {
		s.endWord()
	}
	s.space = true
}

// put appends plain bytes to the open word or opens one.
func (s *textSink) put(b []byte) {
	if s.wordStart < 0 {
		s.open()
	}
	s.out = append(s.out, b...)
}

func (s *textSink) open() {
	if s.space && len(s.out) > 0 {
		s.out = append(s.out, ' ')
	}
	s.space = false
	s.wordStart = len(s.out)
}

// write takes character data; references are decoded unless raw.
func (s *textSink) write(b []byte, raw bool) {
	for i := 0; i < len(b); {
		if s.wordStart < 0 {
			if i = s.shortWords(b, i); i >= len(b) {
				return
			}
		}
		c := b[i]
		class := classTable[c]
		if class&classPlain != 0 {
			start := i
			i++
			for i < len(b) && classTable[b[i]]&classPlain != 0 {
				i++
			}
			s.put(b[start:i])
			continue
		}
		if class&classSpace != 0 {
			if s.wordStart >= 0 {
				s.endWord()
			}
			s.space = true
			i++
			continue
		}
		switch {
		case 0xE5 <= c && c <= 0xE9 && i+3 <= len(b): // U+5000 to U+9FFF: ideographs all
			s.ideograph(b[i : i+3])
			i += 3
		case c == '&' && !raw:
			var buf [16]byte
			out, n := reference(buf[:0], b[i:], false)
			if n == 0 {
				s.put(b[i : i+1])
				i++
				continue
			}
			for len(out) > 0 {
				out = out[s.char(out):]
			}
			i += n
		case c == 0 && raw:
			s.put([]byte("\uFFFD")) // raw text and CDATA show NUL, ordinary text drops it
			i++
		default:
			i += s.char(b[i:])
		}
	}
}

const (
	everyByte = 0x0101010101010101
	topBits   = 0x80 * everyByte
)

// marks has the top bit of every byte of x that is not ASCII, below '!', or '&'. A borrow can also set bits above the lowest one.
func marks(x uint64) uint64 {
	amp := x ^ '&'*everyByte
	return (x | (x-'!'*everyByte)&^x | (amp-everyByte)&^amp) & topBits
}

func lowBytes(x uint64, n int) uint64 { return x & (1<<(8*n) - 1) }

// shortWords is the fast path between words: it takes spaces and words of at most 15 plain ASCII bytes that begin with a letter or
// digit and end with one or one byte after it, eight bytes at a time. It stops at the first thing that is neither. No word is open
// before and after.
func (s *textSink) shortWords(b []byte, i int) int {
	out := s.out
	for i+16 <= len(b) {
		class := classTable[b[i]]
		if class&classSpace != 0 {
			s.space = true
			i++
			continue
		}
		if class&classAlnum == 0 {
			break
		}
		x, y := binary.LittleEndian.Uint64(b[i:]), uint64(0)
		n := bits.TrailingZeros64(marks(x)) >> 3
		if n == 8 {
			y = binary.LittleEndian.Uint64(b[i+8:])
			n += bits.TrailingZeros64(marks(y)) >> 3
			if n == 16 {
				break
			}
		}
		if classTable[b[i+n]]&classSpace == 0 {
			break
		}
		end := n
		if classTable[b[i+n-1]]&classAlnum == 0 {
			if end--; classTable[b[i+end-1]]&classAlnum == 0 {
				break
			}
		}
		if cap(out)-len(out) < 20 {
			out = slices.Grow(out, len(b)-i+20)
		}
		at := len(out)
		out = out[:at+17]
		if s.space && at > 0 {
			out[at] = ' '
			at++
		}
		binary.LittleEndian.PutUint64(out[at:], x)
		binary.LittleEndian.PutUint64(out[at+8:], y)
		out = out[:at+n]
		if end <= 8 {
			s.word(hashTail(lowBytes(x, end), end))
		} else {
			s.word(mix(x|caseBits) ^ hashTail(lowBytes(y, end-8), end-8))
		}
		s.space = true
		i += n + 1
	}
	s.out = out
	return i
}

// char takes one character that needs a look and returns its size.
func (s *textSink) char(b []byte) int {
	c := b[0]
	if c < utf8.RuneSelf {
		switch {
		case isSpace(c) || c == '\v':
			s.wordBreak()
		case c < ' ': // controls are not shown
		default:
			s.put(b[:1])
		}
		return 1
	}
	r, n := utf8.DecodeRune(b)
	switch {
	case r == 0xAD, r == 0xFEFF, r == 0x2060: // invisible
	case r == 0x200B || unicode.IsSpace(r):
		s.wordBreak()
	case isIdeograph(r):
		s.ideograph(b[:n])
	case r >= 0x3001 && r <= 0x303F || r >= 0xFF01 && r <= 0xFF0F || r >= 0xFF1A && r <= 0xFF20:
		// CJK punctuation separates words without a space.
		if s.wordStart >= 0 {
			s.endWord()
		}
		s.put(b[:n])
		s.wordStart = -1
	default:
		s.put(b[:n])
	}
	return n
}

// ideograph takes a character that is a word of its own.
func (s *textSink) ideograph(b []byte) {
	if s.wordStart >= 0 {
		s.endWord()
	}
	s.open()
	s.wordStart = -1
	s.out = append(s.out, b...)
	var x uint64
	for _, c := range b {
		x = x<<8 | uint64(c)
	}
	s.word(x * hashFactor)
}

// isIdeograph reports a character of a script written without spaces in which each one counts as a word.
func isIdeograph(r rune) bool {
	switch {
	case r < 0x3005:
		return false
	case r <= 0x3007:
		return true
	case r < 0x3041:
		return false
	case r <= 0x30FF: // Hiragana, Katakana
		return r != 0x30FB // the middle dot
	case r < 0x3400:
		return r >= 0x3105 && r <= 0x312F || r >= 0x31A0 && r <= 0x31BF || r >= 0x31F0 && r <= 0x31FF
	case r <= 0x4DBF, r >= 0x4E00 && r <= 0x9FFF, r >= 0xF900 && r <= 0xFAFF, r >= 0x20000 && r <= 0x323AF:
		return true
	}
	return false
}

// endWord closes the open word and counts it when it holds a letter or digit.
func (s *textSink) endWord() {
	w := s.out[s.wordStart:]
	s.wordStart = -1
	// Cut punctuation, so that "word" and "word," are one feature.
	for len(w) > 0 && w[0] < utf8.RuneSelf && !isAlnum(w[0]) {
		w = w[1:]
	}
	for len(w) > 0 && w[len(w)-1] < utf8.RuneSelf && !isAlnum(w[len(w)-1]) {
		w = w[:len(w)-1]
	}
	if len(w) == 0 || w[0] >= utf8.RuneSelf && !hasLetter(w) {
		return
	}
	s.word(wordHash(w))
}

// word counts a word by its hash.
func (s *textSink) word(h uint64) {
	s.words++
	s.sim.add(mix(h ^ bits.RotateLeft64(s.prev, 23)))
	s.prev = h
}

// hasLetter reports whether a word that does not start in ASCII has a letter or digit.
func hasLetter(w []byte) bool {
	for len(w) > 0 {
		if w[0] < utf8.RuneSelf {
			if isAlnum(w[0]) {
				return true
			}
			w = w[1:]
			continue
		}
		if w[0] > 0xC3 && w[0] < 0xE0 && w[0] != 0xD7 && w[0] != 0xCB && w[0] != 0xCC && w[0] != 0xCD {
			return true // Latin Extended, Greek, Cyrillic, Hebrew, Arabic: letters nearly throughout
		}
		r, n := utf8.DecodeRune(w)
		if unicode.IsLetter(r) || unicode.IsNumber(r) {
			return true
		}
		w = w[n:]
	}
	return false
}

const caseBits = 0x20 * everyByte

// wordHash hashes a word, ASCII letters in any case alike. It need not be strong, only well spread.
func wordHash(w []byte) uint64 {
	var h uint64
	for len(w) > 8 {
		h = mix(h ^ (binary.LittleEndian.Uint64(w) | caseBits))
		w = w[8:]
	}
	var tail uint64
	for i := len(w) - 1; i >= 0; i-- {
		tail = tail<<8 | uint64(w[i])
	}
	return h ^ hashTail(tail, len(w))
}

// hashTail hashes the last n bytes of a word, 1 to 8, the first one lowest.
func hashTail(tail uint64, n int) uint64 {
	return (tail|caseBits)*hashFactor + uint64(n)
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x^0xA0761D6478BD642F, hashFactor)
	return hi ^ lo
}
