package fetch

// chunks follows the chunked coding of a body (RFC 9112 section 7.1) as it
// passes by. It does not take the chunks apart, net/http does; it makes what
// browsers accept acceptable to net/http and knows where the body ends. Line
// ends without CR get one; chunk extensions and trailers, of any shape, go.
type chunks struct {
	state chunkState
	left  int64 // bytes of the chunk still to come
	digit bool  // the size line has had a hex digit
	cr    bool  // the last byte of the framing line was a CR
	empty bool  // the trailer line has nothing in it yet
}

type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkExtension
	chunkData
	chunkDataEnd
	chunkTrailer
	chunkEnd
	chunkBroken // not chunked at all; net/http says so
)

// filter looks at p, the next bytes of the body. It returns how many bytes of
// p itself to hand out or, where something had to change, the text to hand out
// instead, appended to buf. used is how many bytes of p were looked at: fewer
// than all only when the body has ended.
func (k *chunks) filter(p, buf []byte) (n int, out []byte, used int) {
	kept := 0 // p[kept:i] is to be handed out as it is
	changed := false
	out = buf
	i := 0
	for i < len(p) && k.state != chunkEnd && k.state != chunkBroken {
		switch k.state {
		case chunkData:
			skip := min(k.left, int64(len(p)-i))
			i += int(skip)
			if k.left -= skip; k.left == 0 {
				k.state, k.cr = chunkDataEnd, false
			}
		case chunkTrailer:
			if k.empty && !k.cr && len(p)-i >= 2 && p[i] == '\r' && p[i+1] == '\n' {
				i += 2
				k.state = chunkEnd
				continue
			}
			out, changed = append(out, p[kept:i]...), true
			for i < len(p) && k.state == chunkTrailer {
				if k.trailer(p[i]) {
					out = append(out, '\r', '\n')
				}
				i++
			}
			kept = i
		case chunkExtension:
			changed = true
			for i < len(p) && p[i] != '\n' {
				i++
			}
			if kept = i; i < len(p) {
				out = append(out, '\r')
				i++
				k.sized()
			}
		default:
			b := p[i]
			if b == '\n' && !k.cr {
				out, changed = append(append(out, p[kept:i]...), '\r'), true
				kept = i
			}
			k.framing(b)
			if k.state == chunkExtension {
				out, changed = append(out, p[kept:i]...), true
				kept = i + 1 // the byte itself goes, also where it is the last one here
			}
			k.cr = b == '\r'
			i++
		}
	}
	if k.state == chunkBroken {
		i = len(p)
	}
	if !changed {
		return i, out, i
	}
	return 0, append(out, p[kept:i]...), i
}

// framing takes one byte of a size line, up to its extension, or of the line
// end after a chunk.
func (k *chunks) framing(b byte) {
	switch k.state {
	case chunkSize:
		d := hexDigit(b)
		switch {
		case d >= 0 && k.left < 1<<58:
			k.left, k.digit = k.left<<4|int64(d), true
		case d >= 0 || !k.digit:
			k.state = chunkBroken
		case b == '\n':
			k.sized()
		case b != '\r' || k.cr:
			k.state = chunkExtension
		}
	case chunkDataEnd:
		switch {
		case b == '\n':
			k.state, k.left, k.digit = chunkSize, 0, false
		case b != '\r' || k.cr:
			k.state = chunkBroken
		}
	}
}

// sized ends a size line.
func (k *chunks) sized() {
	k.state, k.empty = chunkData, true
	if k.left == 0 {
		k.state = chunkTrailer
		k.cr = false
	}
}

// trailer takes one byte after the last chunk and reports the body's end.
func (k *chunks) trailer(b byte) bool {
	switch {
	case b == '\n' && k.empty:
		k.state = chunkEnd
		return true
	case b == '\n':
		k.empty = true
	case b != '\r':
		k.empty = false
	}
	return false
}

func hexDigit(b byte) int {
	switch {
	case '0' <= b && b <= '9':
		return int(b - '0')
	case 'a' <= b && b <= 'f':
		return int(b-'a') + 10
	case 'A' <= b && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}
