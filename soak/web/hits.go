package web

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Hit is one request the site saw.
type Hit struct {
	Seq     uint64    // 1 for the first request, without gaps
	Arrival time.Time // header read
	End     time.Time // before the last piece of the answer was written, or when the peer closed; zero while in flight
	Host    string    // host the client named, without port
	Method  string
	Path    string // as sent, with its query
	Status  int    // 0 when no status was sent
	Kind    Kind   // what the site meant by the answer
	Bytes   int64  // of the body, as sent
	Agent   string // User-Agent
	Source  string // client's address, without port
	// Aborted tells that the peer was seen to close before the answer was
	// complete. It may close unseen while the last piece is on its way.
	Aborted bool
	// Gate is the time before which the answer asked the client not to come
	// back (Retry-After, RFC 9110 section 10.2.3); zero if it did not ask.
	Gate time.Time
}

// hitLine is a hit as a line of the log. Times are Unix nanoseconds.
type hitLine struct {
	Seq     uint64 `json:"seq"`
	Arrival int64  `json:"arrival"`
	End     int64  `json:"end,omitempty"`
	Host    string `json:"host"`
	Method  string `json:"method"`
	Path    string `json:"path"`
	Status  int    `json:"status,omitempty"`
	Kind    Kind   `json:"kind"`
	Bytes   int64  `json:"bytes,omitempty"`
	Agent   string `json:"agent,omitempty"`
	Source  string `json:"source,omitempty"`
	Aborted bool   `json:"aborted,omitempty"`
	Gate    int64  `json:"gate,omitempty"`
}

// record is a hit while it is kept: times are nanoseconds since the log's
// start by the monotonic clock, and strings that repeat are numbers.
type record struct {
	seq                 uint64
	arrival, end, gate  int64
	bytes               int64
	path, method        string
	kind                Kind
	host, agent, source uint32
	status              int16
	ended, aborted      bool
}

const (
	hitShards = 8
	hitChunk  = 2048
)

// hitLog is written by every request and read seldom.
type hitLog struct {
	start  time.Time
	seq    atomic.Uint64
	ended  atomic.Uint64
	names  names
	shards [hitShards]hitShard
}

type hitShard struct {
	mu     sync.Mutex
	chunks [][]record // all but the last are full; records never move
	_      [64]byte   // shards on cache lines of their own
}

func newHitLog() *hitLog {
	return &hitLog{start: time.Now(), names: names{ids: map[string]uint32{}}}
}

func (l *hitLog) now() int64 { return int64(time.Since(l.start)) }

// begin logs an arrival. The record is the caller's to change through end only.
func (l *hitLog) begin(r record) (*hitShard, *record) {
	r.arrival = l.now()
	r.seq = l.seq.Add(1)
	sh := &l.shards[r.seq%hitShards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if n := len(sh.chunks); n == 0 || len(sh.chunks[n-1]) == hitChunk {
		sh.chunks = append(sh.chunks, make([]record, 0, hitChunk))
	}
	last := &sh.chunks[len(sh.chunks)-1]
	*last = append(*last, r)
	return sh, &(*last)[len(*last)-1]
}

// hits returns a copy of the log in order of Seq.
func (l *hitLog) hits() []Hit {
	var recs []record
	for i := range l.shards {
		sh := &l.shards[i]
		sh.mu.Lock()
		for _, c := range sh.chunks {
			recs = append(recs, c...)
		}
		sh.mu.Unlock()
	}
	slices.SortFunc(recs, func(a, b record) int { return int(int64(a.seq) - int64(b.seq)) })
	names := l.names.all()
	hits := make([]Hit, len(recs))
	for i, r := range recs {
		h := Hit{
			Seq: r.seq, Arrival: l.start.Add(time.Duration(r.arrival)), Host: names[r.host], Method: r.method, Path: r.path,
			Status: int(r.status), Kind: r.kind, Bytes: r.bytes, Agent: names[r.agent], Source: names[r.source], Aborted: r.aborted,
		}
		if r.ended {
			h.End = l.start.Add(time.Duration(r.end))
		}
		if r.gate != 0 {
			h.Gate = l.start.Add(time.Duration(r.gate))
		}
		hits[i] = h
	}
	return hits
}

// names numbers strings that repeat.
type names struct {
	mu   sync.RWMutex
	ids  map[string]uint32
	list []string
}

func (n *names) id(s string) uint32 {
	n.mu.RLock()
	id, ok := n.ids[s]
	n.mu.RUnlock()
	if ok {
		return id
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, ok = n.ids[s]; !ok {
		s = strings.Clone(s) // s may be a piece of a whole request header
		id = uint32(len(n.list))
		n.ids[s], n.list = id, append(n.list, s)
	}
	return id
}

func (n *names) all() []string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return slices.Clone(n.list)
}

// Hits returns every request seen so far, in the order of arrival, requests in
// flight included.
func (s *Site) Hits() []Hit { return s.log.hits() }

// Requests is the number of requests seen so far.
func (s *Site) Requests() int { return int(s.log.seq.Load()) }

// InFlight is the number of requests being answered.
func (s *Site) InFlight() int { return int(s.log.seq.Load() - s.log.ended.Load()) }

// MaxInFlight is the largest number of requests that were in flight to a host
// at one instant; host is without port, "" counts all hosts together.
func (s *Site) MaxInFlight(host string) int { return MaxInFlight(s.Hits(), host) }

// MaxInFlight is Site.MaxInFlight over a log. A request that ends at the
// instant another arrives does not count beside it.
func MaxInFlight(hits []Hit, host string) int {
	type event struct {
		at    time.Time
		delta int
	}
	var events []event
	for _, h := range hits {
		if host != "" && h.Host != host {
			continue
		}
		events = append(events, event{h.Arrival, 1})
		if !h.End.IsZero() {
			events = append(events, event{h.End, -1})
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.delta - b.delta
	})
	now, most := 0, 0
	for _, e := range events {
		now += e.delta
		most = max(most, now)
	}
	return most
}

// WriteLog writes every hit as a line of JSON. Times are Unix nanoseconds.
func (s *Site) WriteLog(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	for _, h := range s.Hits() {
		line := hitLine{
			Seq: h.Seq, Arrival: h.Arrival.UnixNano(), Host: h.Host, Method: h.Method, Path: h.Path, Status: h.Status,
			Kind: h.Kind, Bytes: h.Bytes, Agent: h.Agent, Source: h.Source, Aborted: h.Aborted,
		}
		if !h.End.IsZero() {
			line.End = h.End.UnixNano()
		}
		if !h.Gate.IsZero() {
			line.Gate = h.Gate.UnixNano()
		}
		if err := enc.Encode(line); err != nil {
			return fmt.Errorf("write hit log: %w", err)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write hit log: %w", err)
	}
	return nil
}

// ReadLog reads what WriteLog wrote.
func ReadLog(r io.Reader) ([]Hit, error) {
	var hits []Hit
	dec := json.NewDecoder(bufio.NewReaderSize(r, 1<<16))
	for {
		var l hitLine
		err := dec.Decode(&l)
		if errors.Is(err, io.EOF) {
			return hits, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read hit log after %d hits: %w", len(hits), err)
		}
		h := Hit{
			Seq: l.Seq, Arrival: time.Unix(0, l.Arrival), Host: l.Host, Method: l.Method, Path: l.Path, Status: l.Status,
			Kind: l.Kind, Bytes: l.Bytes, Agent: l.Agent, Source: l.Source, Aborted: l.Aborted,
		}
		if l.End != 0 {
			h.End = time.Unix(0, l.End)
		}
		if l.Gate != 0 {
			h.Gate = time.Unix(0, l.Gate)
		}
		hits = append(hits, h)
	}
}

// hostOnly cuts the port off an address.
func hostOnly(addr string) string {
	if h, _, err := net.SplitHostPort(addr); err == nil {
		return h
	}
	return addr
}
