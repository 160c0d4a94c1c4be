package crawl

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl/extract"
	"deepcrawl/crawl/fetch"
	"deepcrawl/crawl/urlkey"
	"deepcrawl/storage"
)

// lane fetches and extracts one page after the other. Its buffers are reused.
type lane struct {
	job    *job
	base   *urlkey.Base
	pageAt *urlkey.Base // for links of HTTP headers
	buf    []byte
	edges  []byte
	seen   map[urlkey.Key]struct{} // targets of this page
	header http.Header
}

func newLane(j *job) *lane { return &lane{job: j, seen: make(map[urlkey.Key]struct{}, 64)} }

// serve makes the request, gives the place back, and hands the result to the finisher.
func (ln *lane) serve(s start) {
	j := ln.job
	res := j.client.Do(j.life.hard, fetch.Request{URL: s.claim.URL, Guard: s.permit.MayStart, BodyFor: wantsBody})
	defer res.Release()
	endPermit(s.permit, res)
	j.inflight.Add(-1)
	<-j.places

	t, again := judge(res)
	now := j.life.cfg.Now()
	switch res.Reason {
	case fetch.ReasonGuard, fetch.ReasonCanceled:
		s.queue.state.leave()
		j.slotFree(s.queue)
		if res.Wrote {
			return // the session is over: its claims are reclaimed with an attempt counted
		}
		j.notStarted(s, res.Err)
		return
	}
	if until := s.queue.state.report(t, res.RetryAfter, now); !until.IsZero() {
		j.life.log.Info("host left alone for a while", "run", j.run.ID, "host", s.queue.host, "until", until, "reason", t.String())
	}
	if t == rateLimited && res.HasRetryAfter && res.RetryAfter > 0 {
		j.life.pause(j.life.hard, s.queue.key, res.RetryAfter, fmt.Sprintf("answered %d and asked to wait", res.Status))
	}
	j.slotFree(s.queue)

	out := &outcome{job: j, result: storage.Result{Run: s.claim.Run, ID: s.claim.ID, Token: s.claim.Token}}
	attempts := s.claim.Attempts + 1
	if d := retryDelay(t, again, attempts, res); d > 0 {
		out.result.Delay = &storage.Delay{For: d, Reason: reasonOf(res), Attempts: attempts}
	} else {
		ln.page(out, s.claim, res, attempts)
	}
	j.life.finisher.submit(out)
}

// endPermit says how the request ended: an aborted one may still be at the site for a moment.
func endPermit(p coord.Permit, res *fetch.Result) {
	if res.Wrote && (res.Reason == fetch.ReasonTimeout || res.Reason == fetch.ReasonCanceled || res.TooLarge) {
		p.Abort()
		return
	}
	p.Release()
}

// notStarted puts a claim back whose request was never written.
func (j *job) notStarted(s start, why error) {
	until, reason := j.life.cfg.Now().Add(slotRetry), ""
	var gate *coord.GateError
	if errors.As(why, &gate) {
		until, reason = gate.Until, gate.Reason
	}
	j.putBack(s.queue, s.claim, until, reason)
	j.notify()
}

// retryDelay is the wait before the next attempt, 0 for none: 2 s, then 10 s, spread over 75 to 125 %; longer where the
// host asks for it.
func retryDelay(t trouble, again bool, attempts int, res *fetch.Result) time.Duration {
	most := maxAttempts
	if t == rateLimited {
		most = maxAsked
	}
	if !again || attempts >= most {
		return 0
	}
	d := 2 * time.Second
	for i := 1; i < attempts && d < maxRetryDelay; i++ {
		d *= 5
	}
	return max(jitter(min(d, maxRetryDelay)), res.RetryAfter)
}

func reasonOf(res *fetch.Result) storage.Reason {
	switch {
	case res.Reason == fetch.ReasonHTTP:
		return "malformed"
	case res.Reason != "":
		return storage.Reason(res.Reason)
	case res.Status == 429, res.Status == 503 && res.HasRetryAfter:
		return ReasonRateLimited
	case res.Status >= 500:
		return ReasonHTTP
	}
	return ""
}

// wantsBody keeps to bodies that can be pages.
func wantsBody(status int, contentType string) bool {
	return (status < 300 || status >= 400) && (contentType == "" || extract.IsHTML(contentType, nil))
}

// page turns a response into what is stored of it. A panic in here is this page's failure.
func (ln *lane) page(out *outcome, claim storage.Claim, res *fetch.Result, attempts int) {
	p := &storage.PageResult{
		State: storage.Fetched, Reason: reasonOf(res), Status: res.Status, ContentType: res.ContentType,
		Bytes: res.Bytes, WireBytes: res.WireBytes, TTFB: res.TTFB, Total: res.Total, Attempts: attempts,
	}
	if p.Reason != "" {
		p.State = storage.Failed
	}
	out.result.Page = p
	defer func() {
		if v := recover(); v != nil {
			ln.job.life.log.Error("panic while reading a page", "run", claim.Run, "url", claim.URL, "err", v, "stack", string(debug.Stack()))
			*p = storage.PageResult{State: storage.Failed, Reason: ReasonPanic, Status: res.Status, Attempts: attempts}
			out.result.Discovered = nil
			*ln = *newLane(ln.job)
		}
	}()
	clear(ln.seen)
	ln.edges = ln.edges[:0]
	switch {
	case res.Status >= 300 && res.Status < 400 && res.Location != "":
		ln.redirect(out, claim, res)
	case len(res.Body) > 0 && extract.IsHTML(res.ContentType, res.Body):
		ln.html(out, claim, res)
	}
	if len(ln.seen) > 4096 {
		ln.seen = make(map[urlkey.Key]struct{}, 64)
	}
}

// html extracts facts and, from a page that is one, links.
func (ln *lane) html(out *outcome, claim storage.Claim, res *fetch.Result) {
	p := ln.job.life.node.extract.HTML(extract.Input{
		Body: res.Body, ContentType: res.ContentType, Header: res.Header, Product: ln.job.product,
	})
	defer p.Release()
	page := out.result.Page
	page.Title = p.Facts.Title
	if facts, err := p.Facts.AppendBinary(nil); err == nil {
		page.Facts = facts
	}
	if res.Status >= 200 && res.Status < 300 {
		ln.links(out, claim, p)
	}
}

// redirect discovers the target of a 3xx.
func (ln *lane) redirect(out *outcome, claim storage.Claim, res *fetch.Result) {
	if err := ln.setBase(claim.URL, ""); err != nil {
		return
	}
	u, buf, err := ln.base.Resolve(ln.buf[:0], []byte(res.Location))
	ln.buf = buf
	page := out.result.Page
	if err != nil && !errors.Is(err, urlkey.ErrTooLong) {
		page.RedirectTo = truncate(res.Location, storage.MaxURL)
		return
	}
	page.RedirectTo = truncate(string(u.Raw), storage.MaxURL)
	if ln.job.rules.scope.Check(u.Host, u.Raw, u.PathAt).In && claim.Depth >= maxRedirects && ln.job.longChain(claim) {
		page.State, page.Reason = storage.Failed, ReasonChain
		return
	}
	ln.discover(out, claim, u, err != nil, KindRedirect, false, true)
	ln.store(out)
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

func (ln *lane) setBase(pageURL, base string) error {
	if ln.base == nil {
		b, err := ln.job.rules.canon.NewBase(pageURL)
		if err != nil {
			return err
		}
		ln.base = b
	} else if err := ln.base.Reset(pageURL); err != nil {
		return err
	}
	if base == "" {
		return nil
	}
	u, buf, err := ln.base.Resolve(ln.buf[:0], []byte(base))
	ln.buf = buf
	if err != nil {
		return nil // a base that cannot be used is none
	}
	return ln.base.Reset(string(u.Raw))
}

// links resolves the links of a page: edges for all, discoveries for those in scope that are not known yet.
func (ln *lane) links(out *outcome, claim storage.Claim, p *extract.Page) {
	if err := ln.setBase(claim.URL, p.Facts.Base); err != nil {
		return
	}
	follow := ln.job.rules.spec.FollowNofollow || !p.Facts.NoFollow
	for i := range p.Links {
		link := &p.Links[i]
		if !link.Kind.Follow() {
			continue
		}
		base := ln.base
		if link.FromHeader && p.Facts.Base != "" {
			if base = ln.headerBase(claim.URL); base == nil {
				continue
			}
		}
		u, buf, err := base.Resolve(ln.buf[:0], link.Href)
		ln.buf = buf
		if err != nil && !errors.Is(err, urlkey.ErrTooLong) {
			continue
		}
		if _, again := ln.seen[u.Key]; again {
			continue
		}
		ln.seen[u.Key] = struct{}{}
		nofollow := link.Nofollow || link.UGC || link.Sponsored
		ln.discover(out, claim, u, err != nil, link.Kind, nofollow, follow && (!nofollow || ln.job.rules.spec.FollowNofollow))
	}
	ln.store(out)
}

func (ln *lane) headerBase(pageURL string) *urlkey.Base {
	if ln.pageAt == nil {
		b, err := ln.job.rules.canon.NewBase(pageURL)
		if err != nil {
			return nil
		}
		ln.pageAt = b
		return b
	}
	if ln.pageAt.Reset(pageURL) != nil {
		return nil
	}
	return ln.pageAt
}

// discover adds the edge to a URL, and the URL itself where it belongs to the run and is to be followed.
func (ln *lane) discover(out *outcome, claim storage.Claim, u urlkey.URL, tooLong bool, kind extract.LinkKind, nofollow, follow bool) {
	j := ln.job
	out.result.Page.Outlinks++
	if !follow || !j.rules.scope.Check(u.Host, u.Raw, u.PathAt).In {
		if !tooLong {
			ln.edges = appendEdgeURL(ln.edges, kind, nofollow, u.Raw)
		}
		return
	}
	ln.edges = appendEdgeKey(ln.edges, kind, nofollow, string(u.Raw) == claim.URL, u.Key.Prefix())
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
func (ln *lane) store(out *outcome) {
	if len(ln.edges) > 0 {
		out.result.Page.Links = append([]byte(nil), ln.edges...)
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
