package admin

import (
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"deepcrawl/crawl"
	"deepcrawl/crawl/extract"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

const (
	pagesShown = 50
	// searchMost bounds the URLs one request looks through; the next one goes on behind them.
	searchMost  = 20_000
	searchBatch = 1000
)

// pageRow is a URL of a run in lists.
type pageRow struct {
	Key     string         `json:"key"`
	URL     string         `json:"url"`
	State   string         `json:"state"`
	Reason  storage.Reason `json:"reason"`
	Status  int            `json:"status"`
	Depth   int            `json:"depth"`
	Bytes   int64          `json:"bytes"`
	Title   string         `json:"title"`
	Inlinks *int64         `json:"inlinks"`
	Fetched *string        `json:"fetched_at"`
}

func newPageRow(r storage.PageRow) pageRow {
	p := pageRow{
		Key: hex.EncodeToString(r.Key[:]), URL: r.URL, State: r.State.String(), Reason: r.Reason, Status: r.Status, Depth: r.Depth, Bytes: r.Bytes,
		Title: r.Title, Fetched: show.ISO(r.FetchedAt),
	}
	if r.Inlinks >= 0 {
		p.Inlinks = &r.Inlinks
	}
	return p
}

type pagesPage struct {
	Run   storage.RunID `json:"run"`
	Pages []pageRow     `json:"pages"`
	Next  string        `json:"next,omitempty"` // query of the next page
	// Partial: the search has not been through all URLs yet; Next goes on.
	Partial bool `json:"partial,omitempty"`

	Search, State, Status, Reason string   `json:"-"`
	States                        []string `json:"-"`
	Here                          string   `json:"-"` // query of this page
	Paged                         bool     `json:"-"`
	Over                          bool     `json:"-"` // nothing changes any more
}

func (p pagesPage) title() string { return say("pages.title", int64(p.Run)) }

func (s *Server) pageList(q *request) error {
	r, err := q.run()
	if err != nil {
		return err
	}
	p, err := q.pagesPage(r, q.r.URL.Query())
	if err != nil {
		return err
	}
	return q.show("pages", p)
}

// pagesPage lists URLs of a run as a query asks for them.
func (q *request) pagesPage(r storage.Run, v url.Values) (p pagesPage, err error) {
	p = pagesPage{
		Run: r.ID, Pages: []pageRow{}, Search: strings.TrimSpace(v.Get("q")), State: v.Get("state"), Status: v.Get("status"), Reason: v.Get("reason"), Paged: v.Has("after"),
		Over: r.State.Terminal(),
	}
	for st := storage.Queued; st <= storage.Excluded; st++ {
		p.States = append(p.States, st.String())
	}
	query := storage.PageQuery{Reason: storage.Reason(p.Reason), Unfinished: true}
	if p.State != "" {
		st, ok := storage.ParseState(p.State)
		if !ok {
			return p, mistakef("%s", say("error.pagestate", strings.Join(p.States, ", ")))
		}
		query.States, query.Unfinished = []storage.State{st}, !st.Terminal()
	}
	if p.Status != "" {
		if query.Status, err = strconv.Atoi(strings.TrimSuffix(strings.ToLower(p.Status), "xx")); err != nil || query.Status < 1 || query.Status > 999 {
			return p, mistakef("%s", say("error.status"))
		}
		query.Unfinished = false // what is not finished has no status
	}
	if after := v.Get("after"); after != "" {
		n, err := strconv.ParseInt(after, 10, 64)
		if err != nil || n < 0 {
			return p, mistakef("%s", say("error.before"))
		}
		query.After = storage.URLID(n)
	}
	first := query.After
	last, more, err := q.search(r, &p, query)
	if err != nil {
		return p, err
	}
	p.Here = p.query(first)
	if more {
		p.Next = p.query(last)
	}
	return p, nil
}

// query leads to the list behind a URL.
func (p pagesPage) query(after storage.URLID) string {
	v := url.Values{}
	if after > 0 {
		v.Set("after", strconv.FormatInt(int64(after), 10))
	}
	for _, f := range []struct{ name, value string }{{"q", p.Search}, {"state", p.State}, {"status", p.Status}, {"reason", p.Reason}} {
		if f.value != "" {
			v.Set(f.name, f.value)
		}
	}
	return v.Encode()
}

// search fills in a page of URLs; more says that there may be others behind last.
func (q *request) search(r storage.Run, p *pagesPage, query storage.PageQuery) (last storage.URLID, more bool, err error) {
	needle := strings.ToLower(p.Search)
	batch := pagesShown + 1
	if needle != "" {
		batch = searchBatch
	}
	for seen := 0; ; {
		query.Limit = batch
		rows, err := q.s.Store.ListPages(q.r.Context(), r.ID, query)
		if err != nil {
			return 0, false, err
		}
		for _, row := range rows {
			if needle != "" && !strings.Contains(strings.ToLower(row.URL), needle) && !strings.Contains(strings.ToLower(row.Title), needle) {
				query.After = row.ID
				continue
			}
			if len(p.Pages) == pagesShown {
				return query.After, true, nil
			}
			query.After = row.ID
			p.Pages = append(p.Pages, newPageRow(row))
		}
		if len(rows) < batch {
			return 0, false, nil
		}
		if seen += len(rows); seen >= searchMost {
			p.Partial = true
			return query.After, true, nil
		}
	}
}

// linksShown bounds the links of a page record.
const linksShown = 500

type recordLink struct {
	URL      string `json:"url"`
	Key      string `json:"key,omitempty"` // of a URL of the run
	Kind     string `json:"kind"`
	Nofollow bool   `json:"nofollow"`
	State    string `json:"state,omitempty"`
	Status   int    `json:"status,omitempty"`
}

// recordPage is all that is stored of one URL.
type recordPage struct {
	Run         storage.RunID  `json:"run"`
	Page        pageRow        `json:"page"`
	Via         string         `json:"via"`
	Host        string         `json:"host"`
	ContentType string         `json:"content_type"`
	WireBytes   int64          `json:"wire_bytes"`
	TTFB        int64          `json:"ttfb_ms"`
	Total       int64          `json:"total_ms"`
	Attempts    int            `json:"attempts"`
	Priority    int            `json:"priority"`
	RedirectTo  string         `json:"redirect_to"`
	Discovered  *string        `json:"discovered"`
	Outlinks    int            `json:"outlinks"`
	Facts       *extract.Facts `json:"facts"` // null where nothing was extracted
	Links       []recordLink   `json:"links"` // at most 500
	LinkCount   int            `json:"link_count"`

	Why string `json:"-"` // the reason in words

	live bool // the run is not over
}

// All is everything extracted from the page, as in the API.
func (p recordPage) All() string {
	b, err := json.MarshalIndent(p.Facts, "", "  ")
	if err != nil {
		return err.Error()
	}
	return show.Escape(string(b))
}

// Waits says that the page may still be claimed sooner or later.
func (p recordPage) Waits() bool {
	return p.live && (p.Page.State == "queued" || p.Page.State == "claimed")
}

func (p recordPage) title() string { return say("record.title", int64(p.Run)) }

// Indexable says what the page tells search engines.
func (p recordPage) Indexable() bool {
	return p.Facts != nil && !p.Facts.NoIndex && p.Page.Status == 200
}

func (s *Server) pageRecord(q *request) error {
	r, err := q.run()
	if err != nil {
		return err
	}
	var key storage.Key
	raw, err := hex.DecodeString(q.r.PathValue("key"))
	if err != nil || len(raw) != len(key) {
		return storage.ErrNotFound
	}
	copy(key[:], raw)
	ctx := q.r.Context()
	row, err := s.Store.PageByKey(ctx, r.ID, key)
	if err != nil {
		return err
	}
	p := recordPage{
		Run: r.ID, Page: newPageRow(row), Host: row.Host, ContentType: row.ContentType, WireBytes: row.WireBytes, TTFB: row.TTFB.Milliseconds(),
		Total: row.Total.Milliseconds(), Attempts: row.Attempts, Priority: row.Priority, RedirectTo: row.RedirectTo, Discovered: show.ISO(row.Discovered),
		Outlinks: row.Outlinks, Links: []recordLink{}, Why: crawl.ReasonWords(row.Reason), live: !r.State.Terminal(),
	}
	if row.Via != 0 {
		via, err := s.Store.URLs(ctx, r.ID, []storage.URLID{row.Via})
		if err != nil {
			return err
		}
		p.Via = via[row.Via]
	}
	if len(row.Facts) > 0 {
		p.Facts = new(extract.Facts)
		if err := p.Facts.UnmarshalBinary(row.Facts); err != nil {
			s.Log.Error("facts of a page", "run", int64(r.ID), "url", row.URL, "err", err)
			p.Facts = nil // the rest of the record is good
		}
	}
	if err := q.links(r, row, &p); err != nil {
		return err
	}
	return q.show("record", p)
}

// links resolves the outgoing links of a page.
func (q *request) links(r storage.Run, row storage.PageRow, p *recordPage) error {
	var prefixes [][8]byte
	var edges []crawl.Edge
	if len(row.Links) > 0 {
		err := crawl.EachEdge(row.Links, func(e crawl.Edge) {
			if p.LinkCount++; len(edges) == linksShown {
				return
			}
			e.URL = slices.Clone(e.URL)
			edges = append(edges, e)
			if len(e.URL) == 0 {
				prefixes = append(prefixes, e.Prefix)
			}
		})
		if err != nil {
			q.s.Log.Error("links of a page", "run", int64(r.ID), "url", row.URL, "err", err)
		}
	}
	targets, err := q.s.Store.URLsByPrefix(q.r.Context(), r.ID, prefixes)
	if err != nil {
		return err
	}
	spec, _ := crawl.DecodeSpec(r.Spec) // of another release: links are shown without a way to their record
	for _, e := range edges {
		l := recordLink{URL: string(e.URL), Kind: crawl.KindName(e.Kind), Nofollow: e.Nofollow}
		if l.URL == "" {
			ref := targets[e.Prefix]
			if ref.URL == "" {
				continue // not stored yet
			}
			l.URL, l.Status = ref.URL, ref.Status
			if ref.State != 0 {
				l.State = ref.State.String()
			}
			if place, err := spec.Find(ref.URL); err == nil && string(place.Key[:8]) == string(e.Prefix[:]) {
				l.Key = hex.EncodeToString(place.Key[:])
			}
		}
		p.Links = append(p.Links, l)
	}
	return nil
}
