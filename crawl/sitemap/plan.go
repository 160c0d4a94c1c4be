package sitemap

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
)

// PlanLimits bound a Plan. Zero values stand for the defaults named.
type PlanLimits struct {
	MaxDepth    int `json:"max_depth"`    // index levels below a root; 3
	MaxURLs     int `json:"max_urls"`     // page URLs of the whole plan; 1,000,000
	MaxSitemaps int `json:"max_sitemaps"` // files of the whole plan; 10,000
}

func (l PlanLimits) withDefaults() PlanLimits {
	if l.MaxDepth <= 0 {
		l.MaxDepth = 3
	}
	if l.MaxURLs <= 0 {
		l.MaxURLs = 1_000_000
	}
	if l.MaxSitemaps <= 0 {
		l.MaxSitemaps = 10_000
	}
	return l
}

// Plan is the list of sitemap files a run has still to read. A file stays first
// until Done or Failed reports it, so a plan that was stored as JSON and loaded
// again goes on at the file where it stopped. Files that are done leave only an
// 8-byte hash. A Plan is not safe for concurrent use.
type Plan struct {
	limits  PlanLimits
	queue   []Node
	seen    map[uint64]struct{}
	urls    int
	done    int
	failed  int
	dropped int
	trouble []Trouble
}

// Node is a sitemap file to read.
type Node struct {
	URL    string
	Depth  int    // 0 for a root
	Parent string // the index it was found in, empty for a root
}

// Trouble is what went wrong with a file.
type Trouble struct {
	URL string `json:"url"`
	Err string `json:"err"`
}

// maxTrouble bounds the list of troubles kept; the counts go on.
const maxTrouble = 100

// NewPlan starts an empty plan.
func NewPlan(l PlanLimits) *Plan {
	return &Plan{limits: l.withDefaults(), seen: map[uint64]struct{}{}}
}

// Add puts root sitemaps at the end, such as those robots.txt names, and returns
// how many were new. URLs are compared byte for byte: give canonical ones.
func (p *Plan) Add(urls ...string) int { return p.add(0, "", urls) }

func (p *Plan) add(depth int, parent string, urls []string) int {
	n := 0
	for _, u := range urls {
		h := hashURL(u)
		if _, ok := p.seen[h]; ok || u == "" {
			continue
		}
		if depth > p.limits.MaxDepth || len(p.seen) >= p.limits.MaxSitemaps {
			p.dropped++
			continue
		}
		p.seen[h] = struct{}{}
		p.queue = append(p.queue, Node{URL: u, Depth: depth, Parent: parent})
		n++
	}
	return n
}

// Next returns the file to read now. It is false when there is none, or when the
// plan's URLs are used up. It changes nothing.
func (p *Plan) Next() (Node, bool) {
	if len(p.queue) == 0 || p.Remaining() == 0 {
		return Node{}, false
	}
	return p.queue[0], true
}

// Done reports that a file was read: the sitemaps it lists, if it is an index,
// the page URLs taken from it, and what was wrong with it, empty if nothing. An
// URL that is not in the queue is ignored, so a repeated report does no harm.
func (p *Plan) Done(url string, children []string, entries int, err string) {
	n, ok := p.take(url)
	if !ok {
		return
	}
	p.done++
	p.urls += max(entries, 0)
	p.note(url, err)
	p.add(n.Depth+1, n.URL, children)
}

// Failed reports that nothing was got from a file; the rest of the plan goes on.
func (p *Plan) Failed(url, err string) {
	if _, ok := p.take(url); !ok {
		return
	}
	p.failed++
	p.note(url, err)
}

func (p *Plan) take(url string) (Node, bool) {
	i := slices.IndexFunc(p.queue, func(n Node) bool { return n.URL == url })
	if i < 0 {
		return Node{}, false
	}
	n := p.queue[i]
	if i == 0 {
		p.queue = p.queue[1:] // the usual case, without moving the rest
	} else {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
	return n, true
}

func (p *Plan) note(url, err string) {
	if err != "" && len(p.trouble) < maxTrouble {
		p.trouble = append(p.trouble, Trouble{url, err})
	}
}

// Remaining is how many page URLs the plan may still take; it is what to give
// Decode as MaxEntries where it is smaller.
func (p *Plan) Remaining() int { return max(p.limits.MaxURLs-p.urls, 0) }

// Stats counts what a plan did.
type Stats struct {
	Pending, Done, Failed int
	Dropped               int // files not queued, for depth or number
	URLs                  int // page URLs taken
}

// Stats reports the plan's counts.
func (p *Plan) Stats() Stats {
	return Stats{Pending: len(p.queue), Done: p.done, Failed: p.failed, Dropped: p.dropped, URLs: p.urls}
}

// Troubles lists the first files that were broken or failed, at most 100.
func (p *Plan) Troubles() []Trouble { return slices.Clone(p.trouble) }

func hashURL(u string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(u))
	return h.Sum64()
}

// planJSON is the stored form. Parents are shared: thousands of files name one.
type planJSON struct {
	Limits  PlanLimits `json:"limits"`
	Queue   []nodeJSON `json:"queue,omitempty"`
	Parents []string   `json:"parents,omitempty"`
	Seen    string     `json:"seen,omitempty"` // hashes, 8 bytes each, base64
	URLs    int        `json:"urls"`
	Done    int        `json:"done"`
	Failed  int        `json:"failed"`
	Dropped int        `json:"dropped"`
	Trouble []Trouble  `json:"trouble,omitempty"`
}

type nodeJSON struct {
	URL    string `json:"u"`
	Depth  int    `json:"d,omitempty"`
	Parent int    `json:"p,omitempty"` // 1-based index into Parents
}

// MarshalJSON stores the plan.
func (p *Plan) MarshalJSON() ([]byte, error) {
	out := planJSON{Limits: p.limits, URLs: p.urls, Done: p.done, Failed: p.failed, Dropped: p.dropped, Trouble: p.trouble}
	index := map[string]int{}
	queued := map[uint64]struct{}{}
	for _, n := range p.queue {
		nj := nodeJSON{URL: n.URL, Depth: n.Depth}
		if n.Parent != "" {
			if index[n.Parent] == 0 {
				out.Parents = append(out.Parents, n.Parent)
				index[n.Parent] = len(out.Parents)
			}
			nj.Parent = index[n.Parent]
		}
		out.Queue = append(out.Queue, nj)
		queued[hashURL(n.URL)] = struct{}{}
	}
	hashes := make([]uint64, 0, len(p.seen))
	for h := range p.seen {
		if _, ok := queued[h]; !ok { // those of the queue are computed again
			hashes = append(hashes, h)
		}
	}
	slices.Sort(hashes)
	raw := make([]byte, 0, 8*len(hashes))
	for _, h := range hashes {
		raw = binary.BigEndian.AppendUint64(raw, h)
	}
	out.Seen = base64.RawStdEncoding.EncodeToString(raw)
	return json.Marshal(out)
}

// UnmarshalJSON loads a stored plan in place of this one.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var in planJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("load sitemap plan: %w", err)
	}
	raw, err := base64.RawStdEncoding.DecodeString(in.Seen)
	if err != nil || len(raw)%8 != 0 {
		return fmt.Errorf("load sitemap plan: bad list of hashes (%d characters)", len(in.Seen))
	}
	q := NewPlan(in.Limits)
	q.urls, q.done, q.failed, q.dropped, q.trouble = in.URLs, in.Done, in.Failed, in.Dropped, in.Trouble
	for ; len(raw) > 0; raw = raw[8:] {
		q.seen[binary.BigEndian.Uint64(raw)] = struct{}{}
	}
	for _, n := range in.Queue {
		if n.Parent < 0 || n.Parent > len(in.Parents) {
			return fmt.Errorf("load sitemap plan: %q has no parent %d", n.URL, n.Parent)
		}
		node := Node{URL: n.URL, Depth: n.Depth}
		if n.Parent > 0 {
			node.Parent = in.Parents[n.Parent-1]
		}
		q.queue = append(q.queue, node)
		q.seen[hashURL(n.URL)] = struct{}{}
	}
	*p = *q
	return nil
}
