package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// Names of counters.
const (
	tallyDiscovered = "discovered"
	tallyFetched    = "fetched"
	tallyFailed     = "failed"
	tallyExcluded   = "excluded"
	tallyBytes      = "bytes"
	tallyWire       = "wire"
	tallyLate       = "late"
	tallyStatus     = "status:" // and the number
	tallyReason     = "reason:" // and the word
)

// found is a discovered URL.
type found struct {
	result int // index of the result it came with, -1 none
	run    storage.RunID
	host   int64
	d      *storage.Discovery
}

// batch is what one call of Finish or Discover writes. prepare fills found and spans before the transaction; build, which may be
// called again, the tables.
type batch struct {
	found []found
	spans map[storage.RunID][]span // ids to use

	claims, pages, links, delays     sqldb.Table
	urls, fills, ranges              sqldb.Table
	excluded, exclTally, tally, give sqldb.Table

	counts map[counter]int64
	keys   map[runKey]struct{}
	order  []int // of found, as stored
}

type counter struct {
	run  storage.RunID
	name string
}

type runKey struct {
	run storage.RunID
	key storage.Key
}

// prepare gets what the discoveries need: host ids and ids of their own. Which are stored already the database decides; who asks keeps
// the links that every page repeats from coming here.
func (s *Store) prepare(ctx context.Context, b *batch, run func(i int) storage.RunID, groups [][]storage.Discovery) error {
	need := map[storage.RunID]int64{}
	var hosts []string
	var lastHost string
	for i, group := range groups {
		if len(group) == 0 {
			continue
		}
		id := run(i)
		for k := range group {
			d := &group[k]
			b.found = append(b.found, found{result: i, run: id, d: d})
			need[id]++
			if d.Host != lastHost {
				hosts = append(hosts, d.Host)
				lastHost = d.Host
			}
		}
	}
	if len(b.found) == 0 {
		return nil
	}
	ids, err := s.findHosts(ctx, hosts, true)
	if err != nil {
		return err
	}
	for i := range b.found {
		b.found[i].host = ids[b.found[i].d.Host]
	}
	b.spans = make(map[storage.RunID][]span, len(need))
	for id, n := range need {
		if b.spans[id], err = s.takeIDs(ctx, id, n); err != nil {
			return err
		}
	}
	return nil
}

// addFound fills the tables of discovered URLs: of those results that keep says, each key once. Queued ones get the first ids, so
// that ranges of ids tell them from excluded ones.
func (s *Store) addFound(b *batch, keep func(result int) bool) {
	if len(b.found) == 0 {
		return
	}
	if b.keys == nil {
		b.keys = make(map[runKey]struct{}, len(b.found))
	}
	clear(b.keys)
	b.order = b.order[:0]
	for i := range b.found {
		f := &b.found[i]
		if !keep(f.result) {
			continue
		}
		k := runKey{f.run, f.d.Key}
		if _, dup := b.keys[k]; dup {
			continue
		}
		b.keys[k] = struct{}{}
		b.order = append(b.order, i)
	}
	next := make(map[storage.RunID]*idCursor, len(b.spans))
	for run, spans := range b.spans {
		next[run] = &idCursor{spans: spans}
	}
	ids := make([]int64, len(b.found))
	give := func(excluded bool) {
		for _, i := range b.order {
			if (b.found[i].d.Exclude != "") == excluded {
				ids[i] = next[b.found[i].run].take()
			}
		}
	}
	give(false)
	queued := map[storage.RunID][]span{}
	for run, c := range next {
		queued[run] = c.used()
	}
	give(true)
	b.addRanges(next, queued)
	if s.db.Dialect() != sqldb.SQLite {
		// Writers that meet at the same new keys wait for each other in one order.
		slices.SortFunc(b.order, func(x, y int) int {
			fx, fy := &b.found[x], &b.found[y]
			return cmp.Or(cmp.Compare(fx.run, fy.run), bytes.Compare(fx.d.Key[:], fy.d.Key[:]))
		})
	}
	for _, i := range b.order {
		f := &b.found[i]
		d := f.d
		b.urls.Add(int64(f.run), ids[i], d.Key[:], f.host, int64(min(max(d.Priority, storage.MinPriority), storage.MaxPriority)),
			int64(min(max(d.Depth, 0), storage.MaxDepth)), int64(d.Via), d.LastMod, clean(d.URL, storage.MaxURL))
		if d.Exclude != "" {
			reason := clean(string(d.Exclude), maxReason)
			b.excluded.Add(int64(f.run), ids[i], int64(storage.Excluded), reason)
			b.exclTally.Add(int64(f.run), ids[i], tallyExcluded)
			b.exclTally.Add(int64(f.run), ids[i], tallyReason+reason)
		}
	}
}

// addRanges fills the tables of ranges: what of them is new is queued, and counted with what is excluded.
func (b *batch) addRanges(all map[storage.RunID]*idCursor, queued map[storage.RunID][]span) {
	runs := make([]storage.RunID, 0, len(all))
	for run := range all {
		runs = append(runs, run)
	}
	slices.Sort(runs)
	for _, run := range runs {
		for _, sp := range queued[run] {
			b.fills.Add(int64(run), sp.low, sp.high)
		}
		for _, sp := range all[run].used() {
			b.ranges.Add(int64(run), sp.low, sp.high)
		}
	}
}

// idCursor walks over spans.
type idCursor struct {
	spans []span
	i     int
	off   int64
}

func (c *idCursor) take() int64 {
	id := c.spans[c.i].low + c.off
	c.off++
	if id == c.spans[c.i].high {
		c.i, c.off = c.i+1, 0
	}
	return id
}

func (c *idCursor) used() (out []span) {
	out = append(out, c.spans[:c.i]...)
	if c.off > 0 {
		out = append(out, span{c.spans[c.i].low, c.spans[c.i].low + c.off - 1})
	}
	return out
}
