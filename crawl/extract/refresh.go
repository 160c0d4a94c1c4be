package extract

import "bytes"

// maxRefreshDelay bounds a refresh delay, in seconds, so that a row of digits does not overflow.
const maxRefreshDelay = 1 << 30

// parseRefresh reads a refresh value by the HTML standard's shared declarative refresh steps (section 4.2.5.3). target is nil for
// a refresh of the page itself, and ok false for a value that does nothing.
func parseRefresh(b []byte) (delay int, target []byte, ok bool) {
	i := skipSpace(b, 0)
	start := i
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		delay = min(delay*10+int(b[i]-'0'), maxRefreshDelay)
		i++
	}
	if i == start && (i >= len(b) || b[i] != '.') {
		return 0, nil, false
	}
	for i < len(b) && ('0' <= b[i] && b[i] <= '9' || b[i] == '.') {
		i++
	}
	if i >= len(b) {
		return delay, nil, true
	}
	if b[i] != ';' && b[i] != ',' && !isSpace(b[i]) {
		return 0, nil, false
	}
	i = skipSpace(b, i)
	if i < len(b) && (b[i] == ';' || b[i] == ',') {
		i++
	}
	i = skipSpace(b, i)
	if i >= len(b) {
		return delay, nil, true
	}
	return delay, refreshTarget(b[i:]), true
}

func refreshTarget(b []byte) []byte {
	whole := b
	if lowerTable[b[0]] == 'u' {
		if !hasPrefixFold(b, "url") {
			return trimURL(whole)
		}
		i := skipSpace(b, len("url"))
		if i >= len(b) || b[i] != '=' {
			return trimURL(whole)
		}
		b = b[skipSpace(b, i+1):]
	}
	if len(b) > 0 && (b[0] == '"' || b[0] == '\'') {
		q := b[0]
		b = b[1:]
		if end := bytes.IndexByte(b, q); end >= 0 {
			b = b[:end]
		}
	}
	return trimURL(b)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}
