package crawl

import (
	"context"
	"fmt"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl/fetch"
	"deepcrawl/crawl/robots"
	"deepcrawl/storage"
)

// robotsAllow says whether robots.txt allows the claim now. A claim it refuses for good is finished here, one it refuses
// for now goes back to its buffer.
func (j *job) robotsAllow(ctx context.Context, s start) bool {
	claim, q := s.claim, s.queue
	origin, path := splitURL(claim.URL)
	policy := j.robots.Peek(origin)
	if policy == nil {
		j.setAsking(q, true)
		var err error
		policy, err = j.robots.Get(ctx, origin)
		j.setAsking(q, false)
		if err != nil {
			j.putBack(s, time.Time{}, "")
			return false
		}
		j.heedPause(ctx, q.key, policy)
	}
	now := j.life.cfg.Now()
	switch policy.Outcome {
	case robots.Found, robots.AllowAll:
		if ok, _ := policy.Allowed(path); !ok {
			j.giveUp(claim, ReasonRobots)
			return false
		}
		return true
	case robots.Unreachable:
		if j.life.cfg.Only != 0 && q.host == j.run.Site && j.lastReason(origin) == fetch.ReasonPrivate {
			// No wait mends a setting: the only run of this process would do nothing until all of it is given up.
			j.putBack(s, time.Time{}, "")
			j.life.fail(fmt.Errorf("%s: %s", origin, j.explain(origin, policy.Err)))
			return false
		}
		if j.progress.robotsUnreachable(origin, now) > maxUnreachable {
			j.giveUp(claim, ReasonUnreachable)
			return false
		}
	}
	until := latest(policy.RetryAt, policy.PauseUntil, now.Add(slotRetry))
	j.putBack(s, until, "robots.txt cannot be had ("+policy.Err+")")
	return false
}

// setAsking marks a host whose robots.txt is being asked for.
func (j *job) setAsking(q *queue, on bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q.asking = on
	if !on {
		j.notifyLocked()
	}
}

// maxUnreachable is how long a robots.txt that cannot be had keeps its host waiting before its URLs are given up.
const maxUnreachable = 20 * time.Minute

func latest(times ...time.Time) time.Time {
	var t time.Time
	for _, u := range times {
		if u.After(t) {
			t = u
		}
	}
	return t
}

// heedPause gates the host where robots.txt asked to wait.
func (j *job) heedPause(ctx context.Context, key coord.Key, p *robots.Policy) {
	if d := p.PauseUntil.Sub(j.life.cfg.Now()); d > 0 {
		j.life.pause(ctx, key, d, "robots.txt asked to wait")
	}
}

// giveUpAll finishes a claim without a request, and all that are buffered of its host.
func (j *job) giveUpAll(s start, why storage.Reason) {
	j.mu.Lock()
	rest := j.takeBuffered(s.queue)
	j.mu.Unlock()
	j.unstored.Add(int64(len(rest))) // as if each had been taken from the buffer by a lane
	for _, c := range append(rest, s.claim) {
		j.giveUp(c, why)
	}
}

// giveUp finishes a claim without a request.
func (j *job) giveUp(claim storage.Claim, why storage.Reason) {
	state := storage.Excluded
	if why == ReasonHostDown {
		state = storage.Failed
	}
	j.life.finisher.submit(&outcome{job: j, result: storage.Result{
		Run: claim.Run, ID: claim.ID, Token: claim.Token,
		Page: &storage.PageResult{State: state, Reason: why, Attempts: claim.Attempts},
	}})
}
