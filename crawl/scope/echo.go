package scope

import "bytes"

const (
	// maxEchoHosts bounds the hosts remembered.
	maxEchoHosts = 64
	// echoPaths is how many paths with a repeated segment make a suspicion,
	// and echoRatio how many of them there are to one name in them. On a site
	// that has such paths for a reason most names in them are new ones.
	echoPaths, echoRatio = 400, 10
	// echoFull is where the sketches no longer tell new from known.
	echoFull = 4000
)

// echoHost is what is known of a host's paths in which a segment repeats.
type echoHost struct {
	paths sketch
	names sketch
}

// checkEcho looks for relative links that a page answering to any path
// repeats at every level: /news/about/, /news/about/news/, /about/news/about/.
// The paths multiply, the names in them do not.
func (t *Traps) checkEcho(url []byte, pathAt, depth int) (reason string, trap bool) {
	if depth < 3 {
		return "", false
	}
	path, _, _ := bytes.Cut(url[pathAt:], []byte("?"))
	var buf [maxSegments][]byte
	segments, ok := split(buf[:0], path)
	if !ok || len(segments) < 3 {
		return "", false
	}
	echo := echoes(segments) > 0
	host := t.hash(url[:pathAt])
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.echoes[host]
	if e == nil {
		if !echo {
			return "", false
		}
		if len(t.echoes) >= maxEchoHosts {
			return "", false
		}
		e = new(echoHost)
		t.echoes[host] = e
	}
	if echo && e.paths.ones < echoFull {
		e.paths.add(t.hash(path))
	}
	known := true
	for _, s := range segments {
		if h := t.hash(s); !e.names.has(h) {
			known = false
			if echo {
				e.names.add(h)
			}
		}
	}
	// Once shown, the same names in an order without a repetition belong to
	// it too.
	if known && e.paths.ones >= echoPaths && e.names.ones*echoRatio <= e.paths.ones {
		return "repeating path segments", true
	}
	return "", false
}
