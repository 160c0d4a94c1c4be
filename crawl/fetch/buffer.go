package fetch

import (
	"math/bits"
	"sync"
)

// buffers pools byte slices by power-of-two size class.
type buffers struct {
	classes [maxClass - minClass + 1]sync.Pool // of *[]byte
}

const (
	minClass = 12 // 4 KiB
	maxClass = 23 // 8 MiB; larger ones are left to the collector
)

var pooled buffers

// get returns an empty slice with room for at least n bytes.
func (p *buffers) get(n int) []byte {
	class := max(bits.Len(uint(max(n, 1)-1)), minClass)
	if class > maxClass {
		return make([]byte, 0, n)
	}
	if b, ok := p.classes[class-minClass].Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return make([]byte, 0, 1<<class)
}

// put gives b back; nobody may use it afterwards.
func (p *buffers) put(b []byte) {
	class := bits.Len(uint(cap(b))) - 1
	if class < minClass || class > maxClass || cap(b) != 1<<class {
		return
	}
	b = b[:0]
	p.classes[class-minClass].Put(&b)
}

// grow returns b with room for at least one more byte, moved to the next size
// class if need be.
func (p *buffers) grow(b []byte) []byte {
	if len(b) < cap(b) {
		return b
	}
	n := append(p.get(2*cap(b)), b...)
	p.put(b)
	return n
}
