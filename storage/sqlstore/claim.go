package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// Places in the frontier, see the package comment.
const (
	again   = 1 << 26 // above every weight: 999*65536 + 65535
	boost   = 1 << 27
	delayed = 1 << 40 // below every time in unix microseconds since 1970-01-13, above every other place
)

func weight(priority, depth int) int64 { return int64(priority)<<16 + int64(depth) }

// picked is a row of the frontier that may be claimed.
type picked struct {
	pos, weight int64
	claim       storage.Claim
}

func (p *picked) fresh() bool { return p.pos < again }

// before is the order within a host: boosted ones have the smallest places, the others go by weight wherever they stand.
func (p *picked) before(o *picked) int {
	return cmp.Or(cmp.Compare(ordered(p.pos, p.weight), ordered(o.pos, o.weight)), cmp.Compare(p.claim.ID, o.claim.ID))
}

// ask is what is asked of one host of one run, requests for the same added up.
type ask struct {
	run      storage.RunID
	host     string
	hostID   int64
	n        int
	maxPages int
	rows     []picked
}

// call is one call of Claim.
type call struct {
	owner storage.Owner
	base  int64 // every token is this plus the id
	asks  []*ask
	runs  sqldb.Table // distinct
	pairs sqldb.Table // run and host, distinct
	limit sqldb.Table // runs with a page limit, as limited
	// limited is those runs, sorted.
	limited []storage.RunID

	place, insert sqldb.Table
	cuts          sqldb.Table // the same as ranges of places
	claims        []storage.Claim
	allotted      map[storage.RunID]int64 // of runs that may be claimed from; negative: not counted yet
}

// collect empties the rows and returns what adds one.
func (a *ask) collect(base int64) func(r *sqldb.Row) error {
	a.rows = a.rows[:0]
	return func(r *sqldb.Row) error {
		p := picked{pos: r.Int(1), weight: r.Int(2)}
		p.claim = storage.Claim{
			Run: a.run, ID: storage.URLID(r.Int(0)), URL: r.Text(5), Host: a.host, Priority: int(p.weight >> 16), Depth: int(p.weight & 0xffff),
			Via: storage.URLID(r.Int(3)), Attempts: int(r.Int(4)), Boosted: boosted(p.pos),
		}
		p.claim.Token = storage.ClaimToken(base + int64(p.claim.ID))
		a.rows = append(a.rows, p)
		return nil
	}
}

// Claim implements [storage.Frontier].
func (s *Store) Claim(ctx context.Context, owner storage.Owner, reqs []storage.ClaimRequest) ([]storage.Claim, error) {
	s.returnLost(ctx)
	s.endBoosts(ctx)
	c, err := s.newCall(ctx, owner, reqs)
	if err != nil || len(c.asks) == 0 {
		return nil, doing(err, "claim")
	}
	if take := s.set.Find("claim_take"); take != nil {
		err = s.claimAtOnce(ctx, take, c)
	} else {
		err = s.db.Do(ctx, func(tx *sqldb.Tx) error { return s.claim(tx, c) })
	}
	if errors.Is(err, sqldb.ErrUnknown) {
		return s.recoverCall(ctx, c, err)
	}
	if err != nil {
		return nil, doing(err, "claim")
	}
	return c.claims, nil
}

func (s *Store) newCall(ctx context.Context, owner storage.Owner, reqs []storage.ClaimRequest) (*call, error) {
	names := make([]string, len(reqs))
	for i := range reqs {
		names[i] = reqs[i].Host
	}
	hosts, err := s.findHosts(ctx, names, false)
	if err != nil {
		return nil, err
	}
	c := &call{owner: owner, base: int64(storage.NewClaimToken()) >> 2, allotted: map[storage.RunID]int64{}}
	for _, r := range reqs {
		id := hosts[r.Host]
		if id == 0 || r.N <= 0 {
			continue
		}
		i := slices.IndexFunc(c.asks, func(a *ask) bool { return a.run == r.Run && a.hostID == id })
		if i < 0 {
			i = len(c.asks)
			c.asks = append(c.asks, &ask{run: r.Run, host: r.Host, hostID: id, maxPages: r.MaxPages})
		}
		c.asks[i].n += r.N
	}
	// Rows are locked in one order by all callers.
	slices.SortFunc(c.asks, func(a, b *ask) int {
		return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.hostID, b.hostID))
	})
	var last storage.RunID
	for _, a := range c.asks {
		if a.run != last {
			c.runs.Add(int64(a.run))
			last = a.run
		}
		if a.maxPages > 0 && !slices.Contains(c.limited, a.run) {
			c.limit.Add(int64(a.run))
			c.limited = append(c.limited, a.run)
		}
		c.pairs.Add(int64(a.run), a.hostID)
	}
	return c, nil
}

// readAllotted takes in runs that may be claimed from.
func (c *call) readAllotted() func(r *sqldb.Row) error {
	return func(r *sqldb.Row) error {
		n := int64(-1)
		if !r.Null(1) {
			n = r.Int(1)
		}
		c.allotted[storage.RunID(r.Int(0))] = n
		return nil
	}
}

// claim picks rows, locked where others could pick them too, and moves them from the frontier to the claims.
func (s *Store) claim(tx *sqldb.Tx, c *call) error {
	clear(c.allotted)
	tx.QueryRows(s.set.Get("claim_runs"), c.readAllotted(), &c.runs)
	tx.QueryRows(s.set.Get("budget_lock"), c.readAllotted(), &c.limit)
	tx.ExecRows(s.set.Get("frontier_promote"), &c.pairs, int64(delayed), int64(again))
	pick := s.set.Get("claim_pick")
	for _, a := range c.asks {
		each := a.collect(c.base)
		tx.Query(pick, each, int64(a.run), a.hostID, int64(math.MinInt64), int64(again), int64(a.n))
		tx.Query(pick, each, int64(a.run), a.hostID, int64(again), int64(delayed), int64(a.n))
	}
	if err := tx.Flush(); err != nil {
		return err
	}
	if err := s.choose(tx, c); err != nil {
		return err
	}
	if len(c.claims) == 0 {
		return nil
	}
	if cut := s.set.Find("frontier_cut"); cut != nil {
		tx.ExecRows(s.set.Get("claim_range"), &c.cuts, string(c.owner), c.base)
		tx.ExecRows(cut, &c.cuts)
	} else {
		tx.ExecExactly(len(c.claims), s.set.Get("frontier_delete"), &c.place)
		tx.ExecRows(s.set.Get("claim_insert"), &c.insert, string(c.owner))
	}
	for _, run := range c.limited {
		if n, active := c.allotted[run]; active && n >= 0 {
			tx.Exec(s.set.Get("budget_set"), int64(run), n)
		}
	}
	return nil
}

// choose fills in the claims from what was picked, within the page limits.
func (s *Store) choose(tx *sqldb.Tx, c *call) error {
	c.place.Reset()
	c.insert.Reset()
	c.cuts.Reset()
	c.claims = nil
	left := map[storage.RunID]int{} // places of runs with a page limit
	for _, a := range c.asks {
		n, active := c.allotted[a.run]
		if !active {
			a.rows = a.rows[:0]
			continue
		}
		if a.maxPages <= 0 {
			continue
		}
		if _, done := left[a.run]; done {
			continue
		}
		if n < 0 {
			var err error
			if n, err = s.countAllotted(tx, a.run); err != nil {
				return err
			}
			c.allotted[a.run] = n
		}
		left[a.run] = max(0, a.maxPages-int(n))
	}
	ranges := s.set.Find("frontier_cut") != nil
	for _, a := range c.asks {
		slices.SortFunc(a.rows, func(x, y picked) int { return x.before(&y) })
		taken := 0
		var fresh, held *picked // the last one taken of each queued range
		for i := range a.rows {
			p := &a.rows[i]
			if taken == a.n {
				break
			}
			if a.maxPages > 0 && p.fresh() {
				if left[a.run] == 0 {
					continue
				}
				left[a.run]--
				c.allotted[a.run]++
			}
			taken++
			c.claims = append(c.claims, p.claim)
			if p.fresh() {
				fresh = p
			} else {
				held = p
			}
			if !ranges {
				c.place.Add(int64(a.run), a.hostID, p.pos, int64(p.claim.ID))
				c.insert.Add(int64(a.run), int64(p.claim.ID), int64(p.claim.Token), int64(p.claim.Attempts))
			}
		}
		if fresh != nil && ranges {
			c.cuts.Add(int64(a.run), a.hostID, int64(math.MinInt64), fresh.pos, int64(fresh.claim.ID))
		}
		if held != nil && ranges {
			c.cuts.Add(int64(a.run), a.hostID, int64(again), held.pos, int64(held.claim.ID))
		}
	}
	return nil
}

// countAllotted counts the places a run's page limit has given out: at the first claim under a limit, and after the run's
// definition has changed.
func (s *Store) countAllotted(tx *sqldb.Tx, run storage.RunID) (n int64, err error) {
	tx.Query(s.set.Get("count_claimed"), func(r *sqldb.Row) error { n += r.Int(0); return nil }, int64(run))
	tx.Query(s.set.Get("tally_all"), func(r *sqldb.Row) error {
		if name := r.Text(0); name == tallyFetched || name == tallyFailed {
			n += r.Int(1)
		}
		return nil
	}, int64(run))
	if err := tx.Flush(); err != nil {
		return 0, err
	}
	held, err := s.countFrom(tx, run, again)
	return n + held, err
}

// recoverCall finds out what a call of Claim has claimed whose commit got no answer.
func (s *Store) recoverCall(ctx context.Context, c *call, cause error) ([]storage.Claim, error) {
	claims, err := s.claimsOf(ctx, c)
	if err != nil {
		s.lost.add(c)
		return nil, doing(cause, "claim")
	}
	return claims, nil
}

func (s *Store) claimsOf(ctx context.Context, c *call) (claims []storage.Claim, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		claims = nil
		tx.QueryRows(s.set.Get("claim_of_call"), func(r *sqldb.Row) error {
			w := r.Int(4)
			claims = append(claims, storage.Claim{
				Run: storage.RunID(r.Int(0)), ID: storage.URLID(r.Int(1)), Token: storage.ClaimToken(r.Int(2)), Attempts: int(r.Int(3)),
				Priority: int(w >> 16), Depth: int(w & 0xffff), Via: storage.URLID(r.Int(5)), URL: r.Text(6), Host: r.Text(7),
			})
			return nil
		}, &c.runs, string(c.owner), c.base)
		return nil
	})
	return claims, err
}

// lostCalls are calls of Claim that may have claimed something nobody knows of.
type lostCalls struct {
	mu    sync.Mutex
	calls []*call
}

func (l *lostCalls) add(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

func (l *lostCalls) take() []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := l.calls
	l.calls = nil
	return calls
}

// returnLost puts back what lost calls have claimed; what fails is tried again at the next claim.
func (s *Store) returnLost(ctx context.Context) {
	for _, c := range s.lost.take() {
		claims, err := s.claimsOf(ctx, c)
		if err == nil {
			err = s.Return(ctx, c.owner, claims)
		}
		if err != nil {
			s.lost.add(c)
		}
	}
}

// held is a claim as its row has it.
type held struct{ run, id, token, attempts int64 }

func scanHeld(r *sqldb.Row) held { return held{r.Int(0), r.Int(1), r.Int(2), r.Int(3)} }

// Return implements [storage.Frontier].
func (s *Store) Return(ctx context.Context, _ storage.Owner, claims []storage.Claim) error {
	var ask sqldb.Table
	for _, c := range claims {
		ask.Add(int64(c.Run), int64(c.ID), int64(c.Token))
	}
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		var rows []held
		tx.QueryRows(s.set.Get("claim_match"), func(r *sqldb.Row) error { rows = append(rows, scanHeld(r)); return nil }, &ask)
		if err := tx.Flush(); err != nil {
			return err
		}
		return s.putBack(tx, rows, 0)
	})
	s.heads.forget()
	return doing(err, "return claims")
}

// putBack moves claims, which the transaction has locked, to the frontier. What was never requested gives its place under the page limit
// back. least is the number of attempts they are recorded with at least.
func (s *Store) putBack(tx *sqldb.Tx, rows []held, least int64) error {
	rows = slices.CompactFunc(sortHeld(rows), func(a, b held) bool { return a == b })
	var put, drop, give sqldb.Table
	free := map[int64]int64{}
	for _, h := range rows {
		shift := int64(again)
		attempts := max(h.attempts, least)
		if attempts == 0 {
			shift = 0
			free[h.run]++
		}
		put.Add(h.run, h.id, shift, attempts)
		drop.Add(h.run, h.id, h.token)
	}
	for i, h := range rows {
		if n := free[h.run]; n > 0 && (i == 0 || rows[i-1].run != h.run) {
			give.Add(h.run, n)
		}
	}
	tx.ExecRows(s.set.Get("frontier_put"), &put, int64(again), int64(boost))
	if drop.Len() > 0 {
		tx.ExecExactly(drop.Len(), s.set.Get("claim_delete"), &drop)
	}
	tx.ExecRows(s.set.Get("budget_give"), &give)
	return nil
}

func sortHeld(rows []held) []held {
	slices.SortFunc(rows, func(a, b held) int { return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.id, b.id)) })
	return rows
}

// Reclaim implements [storage.Frontier].
func (s *Store) Reclaim(ctx context.Context, owner storage.Owner, limit int) (n int, more bool, err error) {
	err = s.db.Do(ctx, func(tx *sqldb.Tx) error {
		var rows []held
		tx.Query(s.set.Get("claim_of_owner"), func(r *sqldb.Row) error { rows = append(rows, scanHeld(r)); return nil }, string(owner), int64(limit))
		if err := tx.Flush(); err != nil {
			return err
		}
		n, more = len(rows), len(rows) == limit
		tx.Exec(s.set.Get("seats_of_owner"), string(owner))
		return s.putBack(tx, rows, 1)
	})
	s.heads.forget()
	return n, more, doing(err, "reclaim claims of %s", owner)
}

// Owners implements [storage.Frontier].
func (s *Store) Owners(ctx context.Context) (list []storage.Owner, err error) {
	err = s.db.View(ctx, func(tx *sqldb.Tx) error {
		list = nil
		tx.Query(s.set.Get("owners"), func(r *sqldb.Row) error { list = append(list, storage.Owner(r.Text(0))); return nil })
		return nil
	})
	return list, doing(err, "list owners")
}

// Ready implements [storage.Frontier].
func (s *Store) Ready(ctx context.Context, runs []storage.RunID, limit int) ([]storage.RunReady, error) {
	var all sqldb.Table
	at := map[int64]int{}
	for i, r := range runs {
		all.Add(int64(r))
		at[int64(r)] = i
	}
	var out []storage.RunReady
	w := walk{s: s, all: "ready_hosts", one: "walk_ready", host: 5, args: []any{int64(delayed)}}
	err := s.db.View(ctx, func(tx *sqldb.Tx) error {
		out = make([]storage.RunReady, len(runs))
		for i, r := range runs {
			out[i] = storage.RunReady{Run: r, Empty: true}
		}
		tx.QueryRows(s.set.Get("ready_claimed"), func(r *sqldb.Row) error {
			ready := &out[at[r.Int(0)]]
			ready.Claimed, ready.Empty = true, false
			return nil
		}, &all)
		return w.over(tx, runs, func(run int, r *sqldb.Row) { addReady(&out[run], limit, r) })
	})
	for i := range out {
		slices.SortFunc(out[i].Hosts, strings.Compare)
	}
	return out, doing(err, "look for claimable URLs")
}

// addReady takes in one host of a run.
func addReady(ready *storage.RunReady, limit int, r *sqldb.Row) {
	first, next, now := r.Int(2), r.Int(3), r.Int(4)
	ready.Empty = false
	if (first < delayed || first <= now) && len(ready.Hosts) < limit {
		ready.Hosts = append(ready.Hosts, r.Text(1))
	}
	if next != 0 {
		due := max(micros(next-now), 1)
		if ready.NextDue == 0 || due < ready.NextDue {
			ready.NextDue = due
		}
	}
}
