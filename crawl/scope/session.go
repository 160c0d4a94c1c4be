package scope

import (
	"bytes"
	"math/bits"
)

// The thresholds of a session id. A rest is a URL without the parameter.
const (
	// maxParams bounds the parameters remembered, over all hosts.
	maxParams = 256
	// slots is how many rests of a parameter are counted, and probes where one
	// may stand.
	slots, probes = 128, 8
	// A parameter with a session's name is one when so many rests had some
	// values each. Fewer rests may be the pages of a story or of a session of
	// a conference; these are not found ever deeper.
	namedRests, someValues  = 8, 4
	deepValues, deepDepth   = 100, 8
	chainValues, chainDepth = 20, 20
	// With numbers as values it takes this many of them.
	numberValues = 20
	// One with any name and random values may be the id of documents; it takes
	// many paths that had some values each.
	otherRests, otherValues = 20, 20
)

// sessions is what Traps knows of parameters that may carry session ids.
type sessions struct {
	params map[uint64]*sessionParam
	// seen is a Bloom filter of the rests seen with such parameters. A known
	// session parameter keeps only those rests from being crawled again: each
	// page is still crawled once, whatever id it is first found with.
	seen []uint64
}

type sessionParam struct {
	rests   [slots]rest
	values  sketch256
	session bool
}

type rest struct {
	tag    uint32 // of its hash
	last   uint32 // of the value last seen
	values int
}

// valueKind is how much a value looks like a session id.
type valueKind int

const (
	valueOther  valueKind = iota
	valueNumber           // eight or more digits
	valueRandom
)

// checkSession looks at each parameter of the query and at `;name=value`
// parameters and ASP.NET's (S(...)) in the path.
func (t *Traps) checkSession(url []byte, pathAt, depth int) (reason string, trap bool) {
	for at := pathAt; ; {
		name, value, from, to, ok := nextParam(url, at)
		if !ok {
			return "", false
		}
		at = to
		named := sessionName(name)
		kind := classify(value)
		if kind == valueOther || kind == valueNumber && !named {
			continue
		}
		p := param{name: name, value: value, from: from, to: to, named: named, kind: kind}
		if t.countSession(url, pathAt, depth, p) {
			return "session id in parameter " + string(name), true
		}
	}
}

// param is a parameter that may be a session id, and where it stands.
type param struct {
	name, value []byte
	from, to    int
	named       bool
	kind        valueKind
}

func (t *Traps) countSession(url []byte, pathAt, depth int, found param) bool {
	key := t.hash(url[:pathAt], found.name)
	whole := t.hash(url[:found.from], url[found.to:])
	valueHash := t.hash(found.value)
	counted := whole
	if !found.named {
		path, _, _ := bytes.Cut(url, []byte("?"))
		counted = t.hash(path)
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.sessions.params[key]
	if p == nil {
		if len(t.sessions.params) >= maxParams {
			return false
		}
		if t.sessions.params == nil {
			t.sessions.params = make(map[uint64]*sessionParam)
			t.sessions.seen = make([]uint64, 1<<17) // 1 MiB
		}
		p = new(sessionParam)
		t.sessions.params[key] = p
	}
	again := t.sessions.addRest(key ^ whole)
	p.values.add(valueHash)
	p.count(counted, uint32(valueHash))
	if !p.session {
		p.session = p.isSession(found.named, found.kind, depth)
	}
	return p.session && again
}

// count adds a value to a rest. Where the places for the rest are taken, it
// takes one whose rest had a single value.
func (p *sessionParam) count(h uint64, value uint32) {
	tag := uint32(h>>32) | 1
	free := -1
	for i := range uint64(probes) {
		at := int((h + i) % slots)
		r := &p.rests[at]
		if r.tag == tag {
			if r.last != value {
				r.last = value
				r.values++
			}
			return
		}
		if free < 0 && r.values == 0 {
			free = at
		}
	}
	for i := uint64(0); free < 0 && i < probes; i++ {
		if at := int((h + i) % slots); p.rests[at].values == 1 {
			free = at
		}
	}
	if free >= 0 {
		p.rests[free] = rest{tag: tag, last: value, values: 1}
	}
}

func (p *sessionParam) isSession(named bool, kind valueKind, depth int) bool {
	some, most := 0, 0
	for i := range p.rests {
		if p.rests[i].values >= someValues {
			some++
		}
		most = max(most, p.rests[i].values)
	}
	switch {
	case !named:
		return some >= otherRests && p.values.count() >= otherValues
	case kind == valueNumber:
		return some >= namedRests && p.values.count() >= numberValues
	default:
		return some >= namedRests || most >= deepValues && depth >= deepDepth || most >= chainValues && depth >= chainDepth
	}
}

// addRest says whether the rest was there before.
func (s *sessions) addRest(h uint64) bool {
	again := true
	mask := uint64(len(s.seen)*64 - 1)
	for range 4 {
		i := h & mask
		if s.seen[i>>6]&(1<<(i&63)) == 0 {
			s.seen[i>>6] |= 1 << (i & 63)
			again = false
		}
		h = bits.RotateLeft64(h, 23) * 0x9e3779b97f4a7c15
	}
	return again
}

// nextParam returns the next parameter at or behind at, and where it stands.
func nextParam(url []byte, at int) (name, value []byte, from, to int, ok bool) {
	for i := at; i < len(url); i++ {
		switch c := url[i]; {
		case c == '?' || c == '&' || c == ';':
			end := i + 1
			equals := -1
			for end < len(url) && url[end] != '&' && url[end] != ';' && url[end] != '?' && (c != ';' || url[end] != '/') {
				if url[end] == '=' && equals < 0 {
					equals = end
				}
				end++
			}
			if equals > i+1 && equals < end-1 {
				return url[i+1 : equals], url[equals+1 : end], i, end, true
			}
			i = end - 1
		case c == '(' && bytes.HasPrefix(url[i:], []byte("(S(")) && url[i-1] == '/':
			if n := bytes.Index(url[i:], []byte("))")); n > 3 && bytes.IndexByte(url[i:i+n], '/') < 0 {
				return []byte("(S)"), url[i+3 : i+n], i, i + n + 2, true
			}
		}
	}
	return nil, nil, 0, 0, false
}

// sessionName says that frameworks and shops give session ids this name.
func sessionName(name []byte) bool {
	const longest = 32
	if len(name) > longest {
		return false
	}
	var buf [longest]byte
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		buf[i] = c
	}
	lower := buf[:len(name)]
	switch string(lower) {
	case "sid", "_sid", "s_id", "sess", "oscsid", "xtcsid", "zenid", "cfid", "cftoken", "(s)":
		return true
	}
	return bytes.Contains(lower, []byte("session")) || bytes.Contains(lower, []byte("sessid"))
}

// classify tells random strings from words and slugs: at least 12 letters and
// digits that change places often. Dashes are for UUIDs.
func classify(value []byte) valueKind {
	letters, digits, changes, dashes := 0, 0, 0, 0
	var last byte
	for _, c := range value {
		var kind byte
		switch {
		case isDigit(c):
			digits++
			kind = 'd'
		case isLetter(c):
			letters++
			kind = 'l'
		case c == '-':
			dashes++
			continue
		default:
			return valueOther
		}
		if last != 0 && last != kind {
			changes++
		}
		last = kind
	}
	switch n := letters + digits; {
	case dashes != 0 && (dashes != 4 || n != 32):
		return valueOther
	case letters == 0 && dashes == 0 && n >= 8:
		return valueNumber
	case n >= 12 && letters >= 2 && digits >= 2 && 6*changes >= n:
		return valueRandom
	}
	return valueOther
}

// sketch256 counts up to some hundred distinct hashes.
type sketch256 [4]uint64

func (s *sketch256) add(h uint64) { s[h>>6&3] |= 1 << (h & 63) }

func (s *sketch256) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}
