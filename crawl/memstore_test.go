package crawl_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"deepcrawl/storage"
)

// memStore is a store in memory, for tests of the engine that need no database. Errors can be injected.
type memStore struct {
	storage.Store // what is not here is not called

	mu    sync.Mutex
	runs  map[storage.RunID]*memRun
	last  storage.URLID
	seats map[storage.Seat]storage.Owner
	fail  func(op string) error
	bans  []storage.Ban

	tariff    storage.Tariff // of every tenant
	suspended bool
	stored    int64 // pages of other runs
}

type memRun struct {
	storage.Run
	served   time.Time
	rows     map[storage.URLID]*memRow
	keys     map[storage.Key]storage.URLID
	steps    map[string]storage.Step
	allotted int
	late     int64
	inlinks  map[[8]byte]storage.Inlinks
}

type memRow struct {
	storage.PageRow
	owner storage.Owner
	token storage.ClaimToken
	due   time.Time
	first bool // allotted
	mod   int64
	tried int
}

func newMemStore() *memStore {
	return &memStore{runs: map[storage.RunID]*memRun{}, seats: map[storage.Seat]storage.Owner{}}
}

func (m *memStore) enter(op string) (func(), error) {
	m.mu.Lock()
	if m.fail != nil {
		if err := m.fail(op); err != nil {
			m.mu.Unlock()
			return nil, err
		}
	}
	return m.mu.Unlock, nil
}

func (m *memStore) CreateRun(_ context.Context, n storage.NewRun) (storage.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &memRun{
		Run: storage.Run{
			ID: storage.RunID(len(m.runs) + 1), Tenant: n.Tenant, Site: n.Site, Spec: n.Spec, Home: n.Home,
			State: storage.RunQueued, Created: time.Now(),
		},
		rows: map[storage.URLID]*memRow{}, keys: map[storage.Key]storage.URLID{}, steps: map[string]storage.Step{},
		inlinks: map[[8]byte]storage.Inlinks{},
	}
	for id, o := range m.runs {
		if o.State == storage.RunDone && o.Site == n.Site && id > r.Previous {
			r.Previous = id
		}
	}
	r.served = r.Created
	m.runs[r.ID] = r
	return r.Run, nil
}

func (m *memStore) Run(_ context.Context, id storage.RunID) (storage.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.runs[id]
	if !ok {
		return storage.Run{}, storage.ErrNotFound
	}
	return r.Run, nil
}

func (m *memStore) SetRunState(_ context.Context, id storage.RunID, from []storage.RunState, to storage.RunState, reason string, until time.Time) (storage.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[id]
	if !slices.Contains(from, r.State) {
		return r.Run, storage.ErrState
	}
	if to == storage.RunPaused {
		r.Resume = r.State
	}
	r.State, r.Reason, r.Until = to, reason, until
	return r.Run, nil
}

func (m *memStore) UpdateRun(_ context.Context, id storage.RunID, u storage.RunUpdate) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[id].WorkedFor += u.Worked
	return nil
}

func (m *memStore) Ledger(_ context.Context, id storage.RunID) (storage.Ledger, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := storage.Ledger{ByStatus: map[int]int64{}, ByReason: map[storage.Reason]int64{}, LateRefused: m.runs[id].late}
	for _, row := range m.runs[id].rows {
		l.Discovered++
		switch row.State {
		case storage.Fetched:
			l.Fetched++
		case storage.Failed:
			l.Failed++
		case storage.Excluded:
			l.Excluded++
		case storage.Claimed:
			l.Claimed++
		case storage.Delayed:
			l.Delayed++
		default:
			l.Queued++
		}
		if row.State.Terminal() {
			l.ByStatus[row.Status]++
			l.ByReason[row.Reason]++
		}
	}
	return l, nil
}

func (m *memStore) discover(r *memRun, found []storage.Discovery) (n int) {
	for _, d := range found {
		if _, ok := r.keys[d.Key]; ok {
			continue
		}
		m.last++
		n++
		row := &memRow{PageRow: storage.PageRow{ID: m.last, URL: d.URL, Key: d.Key, Host: d.Host, Depth: d.Depth, Via: d.Via, Priority: d.Priority}, mod: d.LastMod}
		row.State = storage.Queued
		if d.Exclude != "" {
			row.State, row.Reason = storage.Excluded, d.Exclude
		}
		r.rows[row.ID], r.keys[d.Key] = row, row.ID
	}
	return n
}

func (m *memStore) Discover(_ context.Context, run storage.RunID, found []storage.Discovery, _ *storage.Fence) (int, error) {
	leave, err := m.enter("discover")
	if err != nil {
		return 0, err
	}
	defer leave()
	return m.discover(m.runs[run], found), nil
}

func (m *memStore) Claim(_ context.Context, owner storage.Owner, reqs []storage.ClaimRequest) (out []storage.Claim, err error) {
	leave, err := m.enter("claim")
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, q := range reqs {
		r := m.runs[q.Run]
		if r.State != storage.RunCrawling {
			continue
		}
		var ready []*memRow
		for _, row := range r.rows {
			if row.Host == q.Host && (row.State == storage.Queued || row.State == storage.Delayed && !time.Now().Before(row.due)) {
				ready = append(ready, row)
			}
		}
		slices.SortFunc(ready, func(a, b *memRow) int {
			if a.Priority != b.Priority {
				return a.Priority - b.Priority
			}
			if a.Depth != b.Depth {
				return a.Depth - b.Depth
			}
			return int(a.ID - b.ID)
		})
		n := 0
		for _, row := range ready {
			if n == q.N {
				break
			}
			if q.MaxPages > 0 && !row.first {
				if r.allotted >= q.MaxPages {
					continue
				}
				r.allotted++
			}
			row.first = true
			n++
			row.State, row.owner, row.token = storage.Claimed, owner, storage.NewClaimToken()
			out = append(out, storage.Claim{
				Run: q.Run, ID: row.ID, Token: row.token, URL: row.URL, Host: row.Host, Priority: row.Priority,
				Depth: row.Depth, Via: row.Via, Attempts: row.tried,
			})
		}
	}
	return out, nil
}

func (m *memStore) Finish(_ context.Context, _ storage.Owner, results []storage.Result) ([]storage.Outcome, error) {
	leave, err := m.enter("finish")
	if err != nil {
		return nil, err
	}
	defer leave()
	outs := make([]storage.Outcome, len(results))
	for i, res := range results {
		r := m.runs[res.Run]
		row := r.rows[res.ID]
		if row.token != res.Token {
			outs[i] = storage.OutcomeStale
			r.late++
			continue
		}
		outs[i] = storage.OutcomeDone
		if row.State.Terminal() {
			continue
		}
		if d := res.Delay; d != nil {
			row.State, row.Reason, row.due, row.tried = storage.Delayed, d.Reason, time.Now().Add(d.For), d.Attempts
			row.token = 0
			continue
		}
		row.PageResult = *res.Page
		row.FetchedAt = time.Now()
		if row.State == storage.Excluded && row.first {
			r.allotted--
		}
		m.discover(r, res.Discovered)
	}
	return outs, nil
}

func (m *memStore) Return(_ context.Context, _ storage.Owner, claims []storage.Claim) error {
	leave, err := m.enter("return")
	if err != nil {
		return err
	}
	defer leave()
	for _, c := range claims {
		r := m.runs[c.Run]
		if row := r.rows[c.ID]; row.token == c.Token && row.State == storage.Claimed {
			row.State, row.token = storage.Queued, 0
			if row.first && row.tried == 0 {
				row.first = false
				r.allotted--
			}
		}
	}
	return nil
}

func (m *memStore) Owners(context.Context) (out []storage.Owner, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range m.seats {
		out = append(out, o)
	}
	for _, r := range m.runs {
		for _, row := range r.rows {
			if row.State == storage.Claimed && !slices.Contains(out, row.owner) {
				out = append(out, row.owner)
			}
		}
	}
	return out, nil
}

func (m *memStore) Reclaim(_ context.Context, owner storage.Owner, _ int) (n int, more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for seat, o := range m.seats {
		if o == owner {
			delete(m.seats, seat)
		}
	}
	for _, r := range m.runs {
		for _, row := range r.rows {
			if row.State == storage.Claimed && row.owner == owner {
				row.State, row.token = storage.Queued, 0
				row.tried = max(row.tried, 1)
				n++
			}
		}
	}
	return n, false, nil
}

func (m *memStore) Ready(_ context.Context, runs []storage.RunID, limit int) (out []storage.RunReady, err error) {
	leave, err := m.enter("ready")
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, id := range runs {
		ready := storage.RunReady{Run: id, Empty: true}
		for _, row := range m.runs[id].rows {
			if row.State.Terminal() {
				continue
			}
			ready.Empty = false
			wait := time.Until(row.due)
			switch {
			case row.State == storage.Claimed:
				ready.Claimed = true
			case row.State == storage.Delayed && wait > 0:
				if ready.NextDue == 0 || wait < ready.NextDue {
					ready.NextDue = wait
				}
			case !slices.Contains(ready.Hosts, row.Host) && len(ready.Hosts) < limit:
				ready.Hosts = append(ready.Hosts, row.Host)
			}
		}
		out = append(out, ready)
	}
	return out, nil
}

func (m *memStore) CloseFrontier(_ context.Context, run storage.RunID, reason storage.Reason, limit int) (n int, more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range m.runs[run].rows {
		if row.State == storage.Queued || row.State == storage.Delayed {
			if n == limit {
				return n, true, nil
			}
			row.State, row.Reason = storage.Excluded, reason
			n++
		}
	}
	return n, false, nil
}

func (m *memStore) Step(_ context.Context, run storage.RunID, name string) (storage.Step, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[run].steps[name], nil
}

func (m *memStore) SaveStep(_ context.Context, run storage.RunID, s storage.Step, _ storage.Fence) error {
	leave, err := m.enter("step")
	if err != nil {
		return err
	}
	defer leave()
	m.runs[run].steps[s.Name] = s
	return nil
}

// pages returns the rows of a run by id.
func (m *memStore) pages(run storage.RunID) []*memRow {
	rows := make([]*memRow, 0, len(m.runs[run].rows))
	for _, row := range m.runs[run].rows {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *memRow) int { return int(a.ID - b.ID) })
	return rows
}

func (m *memStore) ListPages(_ context.Context, run storage.RunID, q storage.PageQuery) (out []storage.PageRow, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range m.pages(run) {
		if row.ID > q.After && len(out) < max(q.Limit, 1) {
			out = append(out, row.PageRow)
		}
	}
	return out, nil
}

func (m *memStore) Known(_ context.Context, run storage.RunID, keys []storage.Key) (map[storage.Key]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[storage.Key]int64{}
	for _, k := range keys {
		if id, ok := m.runs[run].keys[k]; ok {
			out[k] = m.runs[run].rows[id].mod
		}
	}
	return out, nil
}

func (m *memStore) Links(_ context.Context, run storage.RunID, after storage.URLID, limit int) (out []storage.PageLinks, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range m.pages(run) {
		if row.ID > after && len(out) < limit && len(row.Links) > 0 {
			out = append(out, storage.PageLinks{ID: row.ID, Links: row.Links})
		}
	}
	return out, nil
}

func (m *memStore) SaveInlinks(_ context.Context, run storage.RunID, counts []storage.Inlinks, _ storage.Fence) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range counts {
		m.runs[run].inlinks[c.Prefix] = c
	}
	return nil
}

func (m *memStore) Pick(_ context.Context, owner storage.Owner, maxSeats int, held *storage.Seat, choose func([]storage.Candidate) int) (storage.Seat, storage.Run, bool, error) {
	leave, err := m.enter("pick")
	if err != nil {
		return storage.Seat{}, storage.Run{}, false, err
	}
	defer leave()
	var all []storage.Candidate
	for id, r := range m.runs {
		if !r.State.Active() && r.State != storage.RunQueued {
			continue
		}
		allowed := maxSeats
		if r.State != storage.RunCrawling {
			allowed = 1
		}
		occupied := 0
		for s := range m.seats {
			if s.Run == id && (held == nil || s != *held) {
				occupied++
			}
		}
		if allowed == 0 || occupied < allowed {
			all = append(all, storage.Candidate{Run: id, Tenant: r.Tenant, State: r.State, Home: r.Home, Occupied: occupied, Allowed: allowed, Served: r.served})
		}
	}
	i := choose(all)
	if i < 0 {
		return storage.Seat{}, storage.Run{}, false, nil
	}
	r := m.runs[all[i].Run]
	r.served = time.Now()
	if r.State == storage.RunQueued {
		r.State, r.Started = storage.RunPreparing, time.Now()
	}
	if held != nil && held.Run == r.ID {
		return *held, r.Run, true, nil
	}
	for n := 1; ; n++ {
		seat := storage.Seat{Run: r.ID, N: n}
		if _, taken := m.seats[seat]; !taken {
			m.seats[seat] = owner
			return seat, r.Run, true, nil
		}
	}
}

func (m *memStore) Bans(context.Context) ([]storage.Ban, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.bans), nil
}

func (m *memStore) Leave(_ context.Context, owner storage.Owner, seat storage.Seat) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seats[seat] == owner {
		delete(m.seats, seat)
	}
	return nil
}

func (m *memStore) Tenant(_ context.Context, name string) (storage.Tenant, storage.Tariff, error) {
	done, err := m.enter("tenant")
	if err != nil {
		return storage.Tenant{}, storage.Tariff{}, err
	}
	defer done()
	t := m.tariff
	return storage.Tenant{Name: name, Tariff: t.Name, Suspended: m.suspended}, t, nil
}

func (m *memStore) StoredPages(context.Context, string) (int64, error) {
	done, err := m.enter("stored")
	if err != nil {
		return 0, err
	}
	defer done()
	n := m.stored
	for _, run := range m.runs {
		for _, row := range run.rows {
			if row.State == storage.Fetched || row.State == storage.Failed {
				n++
			}
		}
	}
	return n, nil
}

// Unfinished tells the runs that are not over, and nothing else of them.
func (s *memStore) Unfinished(context.Context, int) (list []storage.Waiting, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if !r.State.Terminal() {
			list = append(list, storage.Waiting{Run: r.Run})
		}
	}
	return list, nil
}
