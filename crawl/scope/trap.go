package scope

import (
	"bytes"
	"strconv"
)

const (
	// maxSegments is the most path segments a URL may have. Heritrix draws
	// the line at 20; deep file trees get some room.
	maxSegments = 32
	// maxChain is the most links between a seed and a URL. A list whose pages
	// only link to the next one is that deep; a blog of 20,000 posts, ten a
	// page, has 2,000 pages.
	maxChain = 10_000
	// maxSameParam is how often one name=value pair may stand in a query.
	maxSameParam = 3
)

// Trap looks at a canonical URL alone, depth links from a seed, and says
// whether it belongs to a trap, and why. What seeds and sitemaps name (depth
// 0 and 1) is only refused for its number of segments.
//
//   - More than 32 path segments.
//   - Segments that repeat in a row: one at least four times, a sequence of
//     two to four at least three times, as relative links of a page that
//     answers to any path make. Sequences of numbers alone (dates,
//     coordinates) do not count.
//   - Eight or more segments of which at least half occurred before: the same
//     in any order.
//   - The same name=value pair four times in the query, as links make that add
//     a parameter to the page's own URL.
//   - More than 10,000 links from a seed.
func Trap(url []byte, pathAt int, depth int) (reason string, is bool) {
	path, query, _ := bytes.Cut(url[pathAt:], []byte("?"))
	var buf [maxSegments][]byte
	segments, ok := split(buf[:0], path)
	if !ok {
		return "more than " + strconv.Itoa(maxSegments) + " path segments", true
	}
	if depth < 2 {
		return "", false
	}
	if depth > maxChain {
		return "more than " + strconv.Itoa(maxChain) + " links from a seed", true
	}
	if at, period, times := repeated(segments); times > 0 {
		return "repeating path /" + string(bytes.Join(segments[at:at+period], []byte("/"))) + " x" + strconv.Itoa(times), true
	}
	if n := len(segments); n >= 8 && 2*echoes(segments) >= n {
		return "repeating path segments", true
	}
	if name := sameParam(query); name != nil {
		return "repeating parameter " + string(name), true
	}
	return "", false
}

// split appends the segments of a path that are not empty. It is not ok when
// there are more than dst has room for.
func split(dst [][]byte, path []byte) (segments [][]byte, ok bool) {
	for len(path) > 0 {
		n := bytes.IndexByte(path, '/')
		segment := path
		if n >= 0 {
			segment, path = path[:n], path[n+1:]
		} else {
			path = nil
		}
		if len(segment) == 0 {
			continue
		}
		if len(dst) == cap(dst) {
			return dst, false
		}
		dst = append(dst, segment)
	}
	return dst, true
}

// repeated looks for a sequence of segments that stands several times in a
// row, and returns where, how long it is and how often; 0 times for none.
func repeated(segments [][]byte) (at, period, times int) {
	for period = 1; period <= 4; period++ {
		least := 3
		if period == 1 {
			least = 4
		}
		run := 0 // segments that equal the one a period before
		for i := period; i < len(segments); i++ {
			if !bytes.Equal(segments[i], segments[i-period]) {
				run = 0
				continue
			}
			run++
			if run < period*(least-1) {
				continue
			}
			at = i - run - period + 1
			if numbersOnly(segments[at : at+period]) {
				continue
			}
			for i++; i < len(segments) && bytes.Equal(segments[i], segments[i-period]); i++ {
				run++
			}
			return at, period, 1 + run/period
		}
	}
	return 0, 0, 0
}

// echoes counts the segments that occurred before in the path, numbers apart.
func echoes(segments [][]byte) (n int) {
	for i, s := range segments {
		if isNumber(s) {
			continue
		}
		for _, earlier := range segments[:i] {
			if bytes.Equal(s, earlier) {
				n++
				break
			}
		}
	}
	return n
}

// sameParam returns the name of a parameter that stands too often with the
// same value. Parameters without a value are not looked at.
func sameParam(query []byte) []byte {
	if bytes.Count(query, []byte("&")) < maxSameParam {
		return nil
	}
	for len(query) > 0 {
		var param []byte
		param, query, _ = bytes.Cut(query, []byte("&"))
		name, value, ok := bytes.Cut(param, []byte("="))
		if !ok || len(value) == 0 {
			continue
		}
		times := 1
		for rest := query; len(rest) > 0; {
			var other []byte
			other, rest, _ = bytes.Cut(rest, []byte("&"))
			if bytes.Equal(other, param) {
				times++
			}
		}
		if times > maxSameParam {
			return name
		}
	}
	return nil
}

func numbersOnly(segments [][]byte) bool {
	for _, s := range segments {
		if !isNumber(s) {
			return false
		}
	}
	return true
}

func isNumber(s []byte) bool {
	for _, c := range s {
		if !isDigit(c) {
			return false
		}
	}
	return len(s) > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
