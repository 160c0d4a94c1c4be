package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl/extract"
	"deepcrawl/crawl/fetch"
	"deepcrawl/crawl/robots"
	"deepcrawl/storage"
)

// response is a fetched URL on its way to a reader.
type response struct {
	job      *job
	claim    storage.Claim
	res      *fetch.Result
	attempts int
}

// fetch makes the request and gives its place back at once; the response goes to a reader. ctx is the crew's: it ends no request,
// only what could wait after it.
func (j *job) fetch(ctx context.Context, s start) {
	res := j.client.Do(j.life.hard, fetch.Request{URL: s.claim.URL, Guard: s.permit.MayStart, BodyFor: wantsBody})
	endPermit(s.permit, res)
	j.inflight.Add(-1)

	t, again := judge(res)
	now := j.life.cfg.Now()
	switch res.Reason {
	case fetch.ReasonGuard, fetch.ReasonCanceled:
		s.queue.state.leave()
		j.slotFree(s.queue)
		if !res.Wrote {
			j.notStarted(s, res.Err)
		} // else the session is over: its claims are reclaimed with an attempt counted
		res.Release()
		return
	}
	j.heed(ctx, s, t, res, now)
	j.slotFree(s.queue)

	attempts := s.claim.Attempts + 1
	if d := retryDelay(t, again, attempts, res); d > 0 {
		j.life.finisher.submit(&outcome{job: j, result: storage.Result{
			Run: s.claim.Run, ID: s.claim.ID, Token: s.claim.Token,
			Delay: &storage.Delay{For: d, Reason: reasonOf(res), Attempts: attempts},
		}})
		res.Release()
		return
	}
	j.reading.add()
	j.life.pages <- &response{job: j, claim: s.claim, res: res, attempts: attempts}
}

// heed draws the consequences of a response for its host, for everybody: a gate where the host asked for one, a cooldown after
// failures in a row. Before a host is left alone it is asked for its robots.txt once more: one that answers as before is well, and
// what fails is a part of the site, as the last pages of a crawl often are.
func (j *job) heed(ctx context.Context, s start, t trouble, res *fetch.Result, now time.Time) {
	h := s.queue.state
	suspect := h.report(t, now)
	j.life.heedGate(s.queue.key, t, res)
	switch {
	case !suspect:
	case t != rateLimited && j.hostIsWell(ctx, s):
		h.acquit()
	default:
		d := h.coolDown(t, res.RetryAfter, j.life.cfg.Now())
		j.life.pause(j.life.hard, s.queue.key, d, CooldownReason+t.String())
	}
}

// heedGate closes the gate of a host that asked to wait.
func (l *life) heedGate(key coord.Key, t trouble, res *fetch.Result) {
	if t == rateLimited && res.RetryAfter > 0 {
		l.pause(l.hard, key, res.RetryAfter, fmt.Sprintf("answered %d and asked to wait", res.Status))
	}
}

// hostIsWell asks for robots.txt of the host of a URL that failed. Where there is nothing to find out, as the host is left alone
// already or the crew stops, the host has the benefit of the doubt: a gate may be closed for minutes, and Ctrl-C waits for no gate.
func (j *job) hostIsWell(ctx context.Context, s start) bool {
	if _, _, closed := j.life.sess.Gate(s.queue.key); closed {
		return true
	}
	origin, _ := splitURL(s.claim.URL)
	res, err := j.fetchAside(ctx, origin+"/robots.txt", "text/plain,*/*;q=0.8", robots.MaxBytes, true)
	if err != nil {
		return ctx.Err() != nil
	}
	defer res.Release()
	if res.Reason != "" && !res.TooLarge {
		return false
	}
	known := j.robots.Peek(origin)
	return res.Status < 400 || res.Status == 404 || res.Status == 410 || known != nil && known.Status == res.Status
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
	j.putBack(s, until, reason)
	j.notify()
}

// retryDelay is the wait before the next attempt, 0 for none: 2 s, then 10 s, spread over 75 to 125 %; for a host that asks
// to wait 2 s, doubling, or what it asks for.
func retryDelay(t trouble, again bool, attempts int, res *fetch.Result) time.Duration {
	most := maxAttempts
	if t == rateLimited {
		most = maxAsked
	}
	if !again || attempts >= most {
		return 0
	}
	d, grow := 2*time.Second, time.Duration(5)
	if t == rateLimited {
		grow = 2 // the host says itself how long to wait
	}
	for i := 1; i < attempts && d < maxRetryDelay; i++ {
		d *= grow
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
