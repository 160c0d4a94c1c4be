package crawl

import (
	"context"
	"strings"
	"time"

	"deepcrawl/coord"
	"deepcrawl/storage"
)

// start is a URL that may be requested now: a claim with everything it needs.
type start struct {
	claim  storage.Claim
	queue  *queue
	need   []coord.CappedKey // slots it needs
	permit coord.Permit
}

// next waits for a URL that may be requested now; ok is false when the crew is to stop.
//
// It holds no permit while it waits for anything (PROTOCOL rule 15).
func (j *job) next(c *crew) (s start, ok bool) {
	var lacking time.Time // since when there is no slot
	for c.ctx.Err() == nil {
		changed := j.life.sess.Changed()
		now := j.life.cfg.Now()
		if j.life.mayStore() != nil {
			j.sleep(c.ctx, storeLooked)
			continue
		}
		s, wake, until := j.take(now)
		if s.queue == nil {
			if !j.wait(c.ctx, wake, changed, until.Sub(now)) {
				return start{}, false
			}
			continue
		}
		if j.life.bans.has(s.queue.host) {
			j.giveUpAll(s, ReasonBanned)
			continue
		}
		if !j.robotsAllow(c.ctx, s) {
			continue
		}
		if s.queue.state.resting(now) {
			if end, why, closed := j.life.sess.Gate(s.queue.key); closed {
				j.putBack(s, end, why)
				continue
			}
		}
		entered, gone := s.queue.state.enter(now)
		if gone {
			j.giveUp(s.claim, ReasonHostDown)
			continue
		}
		if lacking.IsZero() {
			lacking = now // until it proves otherwise
		}
		if !entered {
			j.putBackFull(s, now)
			continue
		}
		again, why, err := j.permit(c.ctx, &s)
		if s.permit != nil {
			j.inflight.Add(1)
			j.starts.Add(1)
			if !lacking.IsZero() {
				j.life.cfg.Metrics.SlotWaited(j.life.cfg.Now().Sub(lacking))
			}
			return s, true
		}
		s.queue.state.leave()
		if !again.IsZero() {
			lacking = time.Time{} // it was not a slot that was missing
		}
		if again.IsZero() {
			j.putBackFull(s, now)
		} else {
			j.putBack(s, again, why)
		}
		if err != nil {
			return start{}, false // the session is over or the crew stops
		}
	}
	return start{}, false
}

// take pops the most urgent claim of the hosts that may be asked now, and asks for more claims where they run low. With
// none to give it returns a channel that is closed when there may be one, and the time when waiting does it.
func (j *job) take(now time.Time) (s start, wake <-chan struct{}, until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	until = now.Add(frontierPoll)
	if j.risksEnough() {
		j.waiting++
		return start{}, j.wake, until
	}
	var best *queue
	buffered := 0
	for _, q := range j.queues {
		if now.Before(q.until) {
			until = earlier(until, q.until)
			buffered += q.left()
			continue
		}
		if q.asking {
			buffered += q.left() // one lane asks for robots.txt; the others serve other hosts
			continue
		}
		q.why = ""
		j.refill(q)
		buffered += q.left()
		if q.left() == 0 {
			if q.dry && !q.asked {
				j.yield(q)
			}
			continue
		}
		if now.Before(q.full) {
			until = earlier(until, q.full)
			continue
		}
		if best == nil || before(q.buf[q.at], best.buf[best.at]) {
			best = q
		}
	}
	if best != nil {
		if end, why, closed := j.life.sess.Gate(best.key); closed {
			best.until, best.why = end, why
			j.hold(best, now)
			best = nil
			until = now // look at the next host at once
		}
	}
	if best != nil {
		if c := best.state.declared(); c != best.need[0].Cap {
			best.need = []coord.CappedKey{{Key: best.key, Cap: c}, j.runKey}
		}
		best.note(now)
		j.unstored.Add(1)
		best.done, j.done = false, false
		return start{claim: best.pop(), queue: best, need: best.need}, nil, now
	}
	if buffered == 0 {
		until = earlier(until, j.lookSoon(now))
	}
	j.waiting++
	return start{}, j.wake, until
}

// before is the order claims leave in.
func before(a, b storage.Claim) bool {
	if a.Boosted != b.Boosted {
		return a.Boosted
	}
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	if a.Depth != b.Depth {
		return a.Depth < b.Depth
	}
	return a.ID < b.ID
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// note counts a start for the rate that decides how far ahead is claimed: starts a second over windows of rateWindow.
func (q *queue) note(now time.Time) {
	q.count++
	if q.window.IsZero() {
		q.window = now
	}
	if d := now.Sub(q.window); d >= rateWindow {
		q.rate = (q.rate + float64(q.count)/d.Seconds()) / 2
		q.window, q.count = now, 0
	}
}

// refill asks for claims of a host where they run low. The caller holds j.mu.
func (j *job) refill(q *queue) {
	if q.asked || q.dry || j.users == 0 || j.empty.Load() {
		return
	}
	if j.pageLimit().none {
		q.dry = true
		return
	}
	target := 8 * j.runKey.Cap // while the rate is not known
	if q.rate > 0 {
		target = max(int(q.rate*claimAhead.Seconds()), 2*j.runKey.Cap)
	}
	target = min(max(target, minAhead), maxAhead)
	if j.life.bans.has(q.host) {
		target = maxBannedAhead // they need no request
	}
	if q.left() > target/2 {
		return
	}
	q.asked, q.askGen = true, q.gen
	j.life.claimer.ask(j, q, target-q.left())
}

// claimed takes the answer to a claim of n URLs. With nobody left to serve them it counts them as held and says so: the
// caller returns them.
func (j *job) claimed(q *queue, n int, claims []storage.Claim) (unwanted bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q.asked = false
	j.open += len(claims)
	if j.users == 0 {
		q.dry = false
		return true
	}
	q.dry = len(claims) < n && q.gen == q.askGen
	if q.at > 0 {
		q.buf = append(q.buf[:0], q.buf[q.at:]...)
		q.at = 0
	}
	for _, c := range claims {
		// A URL discovered meanwhile may be more urgent than some of those waiting.
		at := len(q.buf)
		for at > 0 && before(c, q.buf[at-1]) {
			at--
		}
		q.buf = append(q.buf, storage.Claim{})
		copy(q.buf[at+1:], q.buf[at:])
		q.buf[at] = c
	}
	j.notifyLocked()
	return false
}

// discovered says that URLs of a host were committed.
func (j *job) discovered(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q, ok := j.queues[name]
	if !ok {
		if !j.roomForHost() {
			return // a later look at the frontier finds it
		}
		q = j.queueOf(name)
	}
	q.gen++
	if q.dry {
		q.dry = false
		j.notifyLocked()
	}
}

// roomForHost says whether another host's claims may be held, letting go of a host with nothing to do.
func (j *job) roomForHost() bool {
	if len(j.queues) < maxOpenHosts {
		return true
	}
	for name, q := range j.queues {
		if q.dry && !q.asked && q.left() == 0 {
			delete(j.queues, name)
			return true
		}
	}
	return false
}

// lookSoon looks at the store's frontier when nothing is buffered: other nodes may have discovered URLs, delayed ones may
// be due, or it may be empty. It returns when to look again. The caller holds j.mu.
func (j *job) lookSoon(now time.Time) time.Time {
	next := now.Add(frontierPoll)
	for _, q := range j.queues {
		if q.asked || !q.dry {
			return next
		}
	}
	j.yieldRun()
	pause := frontierPoll
	if j.open == 0 {
		pause = slotRetry
		if j.ends != j.endsSeen {
			pause = 0 // the last claim has ended since the last look: this may be the end
		}
	}
	if j.asking {
		return next
	}
	if wait := j.asked.Add(pause); now.Before(wait) {
		return wait
	}
	j.asking, j.endsSeen = true, j.ends
	go j.look()
	return next
}

func (j *job) look() {
	ctx := j.life.hard
	var found []storage.RunReady
	err := retryStore(ctx, j.life.log, "look at the frontier", func() (err error) {
		found, err = j.life.store.Ready(ctx, []storage.RunID{j.run.ID}, maxOpenHosts)
		return err
	})
	limited := false
	if p := j.pageLimit(); err == nil && (p.none || p.most > 0) {
		limited, err = j.pagesUsedUp(ctx, p)
	}
	if err != nil {
		if ctx.Err() == nil {
			j.life.fail(err)
		}
		return
	}
	now := j.life.cfg.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asking, j.asked = false, now
	defer j.notifyLocked()
	if len(found) == 0 {
		return
	}
	r := found[0]
	for _, name := range r.Hosts {
		if q, ok := j.queues[name]; ok {
			q.dry = false
		} else if j.roomForHost() {
			j.queueOf(name)
		}
	}
	j.due = time.Time{}
	if r.NextDue > 0 && len(r.Hosts) == 0 {
		j.due = now.Add(r.NextDue)
	}
	if j.open > 0 || r.Claimed {
		return
	}
	switch {
	case r.Empty:
		j.empty.Store(true)
		go j.finish("")
	case limited:
		j.empty.Store(true)
		go j.finish(ReasonLimit)
	}
}

// pagesUsedUp says whether the run has requested as many pages as it may.
func (j *job) pagesUsedUp(ctx context.Context, p pageLimit) (bool, error) {
	var ledger storage.Ledger
	err := retryStore(ctx, j.life.log, "read ledger", func() (err error) {
		ledger, err = j.life.store.Ledger(ctx, j.run.ID)
		return err
	})
	return p.reached(ledger.Fetched + ledger.Failed), err
}

// putBack returns a popped claim to its buffer; nothing of the host starts before until.
func (j *job) putBack(s start, until time.Time, why string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.home(s.queue)
	q.unpop(s.claim)
	j.unstored.Add(-1)
	if until.After(q.until) {
		q.until, q.why = until, why
		j.hold(q, j.life.cfg.Now())
	}
}

// putBackFull returns a popped claim whose host or run has no free slot now: another host may have one.
func (j *job) putBackFull(s start, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	q := j.home(s.queue)
	q.unpop(s.claim)
	j.unstored.Add(-1)
	q.full = now.Add(slotRetry)
}

// home returns the queue of q's host that the job looks at: q, unless it made room for another host meanwhile.
func (j *job) home(q *queue) *queue {
	if now, ok := j.queues[q.host]; ok {
		return now
	}
	j.queues[q.host] = q
	return q
}

// slotFree says that a slot of the host came back; with nil, that some slot may have.
func (j *job) slotFree(q *queue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if q != nil {
		q.full = time.Time{}
	} else {
		for _, q := range j.queues {
			q.full = time.Time{}
		}
	}
	j.notifyLocked()
}

// hold gives the claims of a host that waits long back to the store. The caller holds j.mu.
func (j *job) hold(q *queue, now time.Time) {
	if q.until.Sub(now) < longWait {
		return
	}
	j.yield(q)
	if back := j.takeBuffered(q); len(back) > 0 {
		j.life.crews.Go(func() { j.life.returnClaims(j, back) })
	}
}

// waitsFor says what keeps the run from going on now, for people; empty while it goes on.
func (j *job) waitsFor(now time.Time) (why string, until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.inflight.Load() > 0 {
		return "", time.Time{}
	}
	for _, q := range j.queues {
		switch {
		case !now.Before(q.until) && q.left() > 0:
			return "", time.Time{}
		case now.Before(q.until) && q.why != "" && (until.IsZero() || q.until.Before(until)):
			why, until = q.host+": "+q.why, q.until
		}
	}
	if why == "" && now.Before(j.due) {
		return "URLs that met trouble are tried again", j.due
	}
	return why, until
}

// sleep waits a while, or until the crew is to stop.
func (j *job) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// wait returns false when the crew is to stop.
func (j *job) wait(ctx context.Context, wake, changed <-chan struct{}, most time.Duration) bool {
	if most <= 0 {
		return true
	}
	j.life.finisher.hurry(1)
	defer j.life.finisher.hurry(-1)
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-changed:
		j.slotFree(nil)
	case <-timer.C:
	}
	return true
}

// permit takes what one request needs: a slot of the host and the run together, then the rates. Without success it says
// when to try again and why; zero means when a slot is free.
func (j *job) permit(ctx context.Context, s *start) (again time.Time, why string, err error) {
	permits, err := j.life.sess.Acquire(ctx, coord.Need{Keys: s.need, N: 1})
	if err != nil {
		return j.life.cfg.Now().Add(slotRetry), "", err
	}
	if len(permits) == 0 {
		return time.Time{}, "", nil
	}
	wait, why, err := j.takeRates(ctx, permits[0], s.queue.key, s.claim.URL)
	if wait > 0 || err != nil {
		permits[0].Release()
		return j.life.cfg.Now().Add(max(wait, time.Millisecond)), why, ignoreTrouble(err)
	}
	s.permit = permits[0]
	return time.Time{}, "", nil
}

// ignoreTrouble keeps the errors that end a crew; trouble with the authority is waited for.
func ignoreTrouble(err error) error {
	if endsSession(err) {
		return err
	}
	return nil
}

// takeRates takes one request from the crawl-delay of the host and from the run's rate.
func (j *job) takeRates(ctx context.Context, p coord.Permit, host coord.Key, url string) (wait time.Duration, why string, err error) {
	if origin, _ := splitURL(url); origin != "" {
		if policy := j.robots.Peek(origin); policy != nil && policy.Delay > 0 {
			limit := coord.RateLimit{PerSecond: 1 / policy.Delay.Seconds(), Burst: 1}
			if wait, err := p.Take(ctx, host, limit); wait > 0 || err != nil {
				return max(wait, time.Millisecond), "crawl-delay", err
			}
		}
	}
	if j.rate.PerSecond > 0 {
		if wait, err := p.Take(ctx, j.runKey.Key, j.rate); wait > 0 || err != nil {
			return max(wait, time.Millisecond), "rate of the profile", err
		}
	}
	return 0, "", nil
}

// splitURL cuts a canonical URL into its origin and its path with query.
func splitURL(url string) (origin, path string) {
	i := strings.Index(url, "://")
	if i < 0 {
		return "", url
	}
	n := strings.IndexByte(url[i+3:], '/')
	if n < 0 {
		return url, "/"
	}
	return url[:i+3+n], url[i+3+n:]
}
