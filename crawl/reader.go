package crawl

import (
	"errors"
	"fmt"
	"runtime/debug"

	"deepcrawl/crawl/extract"
	"deepcrawl/crawl/fetch"
	"deepcrawl/crawl/urlkey"
	"deepcrawl/storage"
)

// readPages turns responses into results. As many run as there are processors: reading is their work alone, so that a free
// place is never kept from the next request by a page that is being read.
func (l *life) readPages() {
	for p := range l.pages {
		j := p.job
		rd, _ := j.readers.Get().(*reader)
		if rd == nil {
			rd = newReader(j)
		}
		out := &outcome{job: j, result: storage.Result{Run: p.claim.Run, ID: p.claim.ID, Token: p.claim.Token}}
		if rd.page(out, p.claim, p.res, p.attempts) {
			j.readers.Put(rd)
		}
		p.res.Release()
		l.finisher.submit(out)
		j.reading.done()
	}
}

// reader extracts one page after the other. Its buffers are reused.
type reader struct {
	job    *job
	base   *urlkey.Base
	pageAt *urlkey.Base // for links of HTTP headers
	buf    []byte
	edges  []byte
	seen   map[urlkey.Key]struct{} // targets of this page
}

func newReader(j *job) *reader { return &reader{job: j, seen: make(map[urlkey.Key]struct{}, 64)} }

// page turns a response into what is stored of it. A panic in here is this page's failure, and the reader is not sound.
func (rd *reader) page(out *outcome, claim storage.Claim, res *fetch.Result, attempts int) (sound bool) {
	p := &storage.PageResult{
		State: storage.Fetched, Reason: reasonOf(res), Status: res.Status, ContentType: res.ContentType,
		Bytes: res.Bytes, WireBytes: res.WireBytes, TTFB: res.TTFB, Total: res.Total, Attempts: attempts,
	}
	switch {
	case p.Reason != "":
		p.State = storage.Failed
	case res.Truncated:
		p.Reason = ReasonTruncated
	}
	out.result.Page = p
	defer func() {
		if v := recover(); v != nil {
			rd.job.life.log.Error("panic while reading a page", "run", claim.Run, "url", claim.URL, "err", v, "stack", string(debug.Stack()))
			*p = storage.PageResult{State: storage.Failed, Reason: ReasonPanic, Status: res.Status, Attempts: attempts}
			out.result.Discovered = nil
			sound = false
		}
	}()
	clear(rd.seen)
	rd.edges = rd.edges[:0]
	switch {
	case res.Status >= 300 && res.Status < 400 && res.Location != "":
		rd.redirect(out, claim, res)
	case len(res.Body) > 0 && extract.IsHTML(res.ContentType, res.Body):
		rd.html(out, claim, res)
	}
	if len(rd.seen) > 4096 {
		rd.seen = make(map[urlkey.Key]struct{}, 64)
	}
	return true
}

// html extracts facts and, from a page that is one, links.
func (rd *reader) html(out *outcome, claim storage.Claim, res *fetch.Result) {
	p := rd.job.life.node.extract.HTML(extract.Input{
		Body: res.Body, ContentType: res.ContentType, Header: res.Header, Product: rd.job.product,
	})
	defer p.Release()
	page := out.result.Page
	page.Title = p.Facts.Title
	if facts, err := p.Facts.AppendBinary(nil); err == nil {
		page.Facts = facts
	}
	if res.Status >= 200 && res.Status < 300 {
		rd.links(out, claim, p)
		if p.Facts.Notes&extract.NoteLinksCut != 0 {
			rd.job.leftOut(fmt.Sprintf("links of a page beyond %d", extract.DefaultMaxLinks), claim.URL)
		}
	}
}

// redirect discovers the target of a 3xx.
func (rd *reader) redirect(out *outcome, claim storage.Claim, res *fetch.Result) {
	if err := rd.setBase(claim.URL, ""); err != nil {
		return
	}
	u, buf, err := rd.base.Resolve(rd.buf[:0], []byte(res.Location))
	rd.buf = buf
	page := out.result.Page
	if err != nil && !errors.Is(err, urlkey.ErrTooLong) {
		page.RedirectTo = truncate(res.Location, storage.MaxURL)
		return
	}
	page.RedirectTo = truncate(string(u.Raw), storage.MaxURL)
	if rd.job.rules.scope.Check(u.Host, u.Raw, u.PathAt).In && claim.Depth >= maxRedirects && rd.job.longChain(claim) {
		page.State, page.Reason = storage.Failed, ReasonChain
		return
	}
	rd.discover(out, claim, u, err != nil, KindRedirect, false, true)
	rd.store(out)
}

// longChain walks back over the redirects that led to a claim. Each hop adds one to the depth, so only a deep URL can be at
// the end of a long chain.
func (j *job) longChain(claim storage.Claim) bool {
	via := claim.Via
	for range maxRedirects - 1 {
		if via == 0 {
			return false
		}
		rows, err := j.life.store.ListPages(j.life.hard, j.run.ID, storage.PageQuery{After: via - 1, Limit: 1})
		if err != nil || len(rows) == 0 || rows[0].ID != via || rows[0].RedirectTo == "" {
			return false
		}
		via = rows[0].Via
	}
	return true
}

func (rd *reader) setBase(pageURL, base string) error {
	if rd.base == nil {
		b, err := rd.job.rules.canon.NewBase(pageURL)
		if err != nil {
			return err
		}
		rd.base = b
	} else if err := rd.base.Reset(pageURL); err != nil {
		return err
	}
	if base == "" {
		return nil
	}
	u, buf, err := rd.base.Resolve(rd.buf[:0], []byte(base))
	rd.buf = buf
	if err != nil {
		return nil // a base that cannot be used is none
	}
	return rd.base.Reset(string(u.Raw))
}

// links resolves the links of a page: edges for all, discoveries for those in scope that are not known yet.
func (rd *reader) links(out *outcome, claim storage.Claim, p *extract.Page) {
	if err := rd.setBase(claim.URL, p.Facts.Base); err != nil {
		return
	}
	follow := rd.job.rules.spec.FollowNofollow || !p.Facts.NoFollow
	for i := range p.Links {
		link := &p.Links[i]
		if !link.Kind.Follow() {
			continue
		}
		base := rd.base
		if link.FromHeader && p.Facts.Base != "" {
			if base = rd.headerBase(claim.URL); base == nil {
				continue
			}
		}
		u, buf, err := base.Resolve(rd.buf[:0], link.Href)
		rd.buf = buf
		if err != nil && !errors.Is(err, urlkey.ErrTooLong) {
			continue
		}
		if _, again := rd.seen[u.Key]; again {
			continue
		}
		rd.seen[u.Key] = struct{}{}
		nofollow := link.Nofollow || link.UGC || link.Sponsored
		rd.discover(out, claim, u, err != nil, link.Kind, nofollow, follow && (!nofollow || rd.job.rules.spec.FollowNofollow))
	}
	rd.store(out)
}

func (rd *reader) headerBase(pageURL string) *urlkey.Base {
	if rd.pageAt == nil {
		b, err := rd.job.rules.canon.NewBase(pageURL)
		if err != nil {
			return nil
		}
		rd.pageAt = b
		return b
	}
	if rd.pageAt.Reset(pageURL) != nil {
		return nil
	}
	return rd.pageAt
}

// discover adds the edge to a URL, and the URL itself where it belongs to the run and is to be followed.
func (rd *reader) discover(out *outcome, claim storage.Claim, u urlkey.URL, tooLong bool, kind extract.LinkKind, nofollow, follow bool) {
	j := rd.job
	out.result.Page.Outlinks++
	if !follow || !j.rules.scope.Check(u.Host, u.Raw, u.PathAt).In {
		if !tooLong {
			rd.edges = appendEdgeURL(rd.edges, kind, nofollow, u.Raw)
		}
		return
	}
	rd.edges = appendEdgeKey(rd.edges, kind, nofollow, string(u.Raw) == claim.URL, u.Key.Prefix())
	if j.seen.Has(u.Key) {
		return
	}
	d := storage.Discovery{
		Key: storage.Key(u.Key), URL: truncate(string(u.Raw), storage.MaxURL), Host: u.Host,
		Priority: newPriority, Depth: min(claim.Depth+1, storage.MaxDepth), Via: claim.ID,
	}
	switch most := j.rules.spec.MaxDepth; {
	case tooLong:
		d.Exclude = ReasonTooLong
	case most > 0 && d.Depth > most:
		d.Exclude = ReasonDepth
	default:
		if why, trap := j.traps.Check(u.Raw, u.PathAt, d.Depth); trap {
			d.Exclude = ReasonTrap
			j.trapped(d.URL, why)
		}
	}
	out.result.Discovered = append(out.result.Discovered, d)
}

// store copies the edges into the result.
func (rd *reader) store(out *outcome) {
	if len(rd.edges) > 0 {
		out.result.Page.Links = append([]byte(nil), rd.edges...)
	}
}

// leftOut tells the first time that something is left out for a limit of a kind: nothing is lost without a reason shown.
func (j *job) leftOut(what, url string) {
	if j.progress.cut(what, url) {
		j.life.log.Warn("left out for a limit", "run", j.run.ID, "reason", what, "url", url)
	}
}

// trapped tells the first time that a kind of trap is met.
func (j *job) trapped(url, why string) {
	if j.progress.trap(why, url) {
		j.life.log.Info("crawler trap: such URLs are not crawled", "run", j.run.ID, "reason", why, "url", url)
	}
}

func truncate(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
