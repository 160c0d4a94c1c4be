package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl/fetch"
	"deepcrawl/crawl/frontier"
	"deepcrawl/crawl/robots"
	"deepcrawl/crawl/sitemap"
	"deepcrawl/crawl/urlkey"
	"deepcrawl/storage"
)

// Names of steps, as stored.
const (
	stepSitemaps = "prepare:sitemaps"
	stepClose    = "finish:close"
	stepInlinks  = "finish:inlinks"
)

const (
	sitemapBytes    = 50 << 20 // sitemaps.org
	sitemapTries    = 3
	sitemapRedirect = 5
	discoverBatch   = 1000
	auxLongest      = 10 * time.Minute // a sitemap is not waited for longer than this
	reachTries      = 3
)

// prepare makes a run ready: its seeds are queued, robots.txt of their hosts is read, sitemaps are read to their end. It can
// be cut off anywhere and goes on at the sitemap where it stopped.
func (l *life) prepare(ctx context.Context, j *job) error {
	fence, release, err := l.lease(ctx, j)
	if err != nil {
		return err
	}
	defer release()
	j.progress.setStep(storage.RunPreparing, "robots.txt")
	if err := j.queueSeeds(ctx, fence); err != nil {
		return err
	}
	maps, err := j.reachSeeds(ctx)
	if err != nil {
		return err
	}
	if !j.rules.spec.NoSitemaps {
		if err := j.readSitemaps(ctx, maps, fence); err != nil {
			return err
		}
	}
	j.progress.setStep(storage.RunCrawling, "")
	return retryStore(ctx, l.log, "begin crawling", func() error {
		_, err := l.store.SetRunState(ctx, j.run.ID, []storage.RunState{storage.RunPreparing}, storage.RunCrawling, "", time.Time{})
		return err
	})
}

// lease takes the right to run the steps of a run.
func (l *life) lease(ctx context.Context, j *job) (storage.Fence, func(), error) {
	name := "run:" + strconv.FormatInt(int64(j.run.ID), 10)
	lease, err := l.sess.Lease(ctx, name, l.sess.Timing().LeaseTTL)
	if err != nil {
		return storage.Fence{}, nil, fmt.Errorf("lease of run %d: %w", j.run.ID, err)
	}
	release := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := lease.Release(ctx); err != nil {
			l.log.Warn("release lease", "lease", name, "err", err)
		}
	}
	return l.fence(name, lease.Fence()), release, nil
}

func (j *job) queueSeeds(ctx context.Context, fence storage.Fence) error {
	found := make([]storage.Discovery, 0, len(j.rules.seeds))
	for _, u := range j.rules.seeds {
		d := storage.Discovery{Key: storage.Key(u.Key), URL: string(u.Raw), Host: u.Host, Priority: newPriority}
		if !j.rules.scope.Check(u.Host, u.Raw, u.PathAt).In {
			d.Exclude = ReasonScope
		}
		found = append(found, d)
	}
	_, err := j.discoverAll(ctx, found, fence)
	return err
}

// discoverAll stores URLs found outside of pages.
func (j *job) discoverAll(ctx context.Context, found []storage.Discovery, fence storage.Fence) (added int, err error) {
	if len(found) == 0 {
		return 0, nil
	}
	err = retryStore(ctx, j.life.log, "discover", func() (err error) {
		added, err = j.life.store.Discover(ctx, j.run.ID, found, &fence)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("discover: %w", err)
	}
	for i := range found {
		j.seen.Add(found[i].Key)
	}
	j.progress.discovered.Add(int64(added))
	return added, nil
}

// reachSeeds reads robots.txt of the seeds' origins and returns the sitemaps to read. Where no seed can be reached at all, the
// run has failed, and the error says why in a line.
func (j *job) reachSeeds(ctx context.Context) (maps []string, err error) {
	var trouble error
	reached := false
	done := make(map[string]bool)
	for _, u := range j.rules.seeds {
		if done[u.Origin] {
			continue
		}
		done[u.Origin] = true
		policy, err := j.reach(ctx, u)
		if err != nil {
			return nil, err
		}
		if policy.Outcome == robots.Unreachable && policy.Status == 0 {
			trouble = fmt.Errorf("%s: %s", u.Origin, j.explain(u.Origin, policy.Err))
			continue
		}
		reached = true
		maps = append(maps, policy.Sitemaps...)
		if len(policy.Sitemaps) == 0 && policy.Outcome != robots.Pause {
			maps = append(maps, u.Origin+"/sitemap.xml")
		}
	}
	if !reached {
		return nil, errRunFailed{trouble}
	}
	return maps, nil
}

// reach asks for robots.txt, again after a moment where the network failed: a run should not die of one lost packet.
func (j *job) reach(ctx context.Context, u urlkey.URL) (*robots.Policy, error) {
	for try := 1; ; try++ {
		policy, err := j.robots.Get(ctx, u.Origin)
		if err != nil {
			return nil, err
		}
		j.heedPause(ctx, coord.HostKey(u.Host), policy)
		if policy.Outcome != robots.Unreachable || policy.Status != 0 || try == reachTries || !j.mayPass(u.Origin) {
			return policy, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(jitter(time.Duration(try) * time.Second)):
		}
		j.robots.Forget(u.Origin)
	}
}

// mayPass says whether the last trouble with an origin's robots.txt can be over in a moment.
func (j *job) mayPass(origin string) bool {
	switch j.lastReason(origin) {
	case fetch.ReasonTimeout, fetch.ReasonReset, fetch.ReasonRefused, fetch.ReasonCanceled, fetch.ReasonGuard:
		return true
	}
	return false
}

// explain puts a network trouble into words that say what to do.
func (j *job) explain(origin, detail string) string {
	switch j.lastReason(origin) {
	case fetch.ReasonPrivate:
		return "private, loopback and link-local addresses are not crawled (--allow-private or DEEPCRAWL_ALLOW_PRIVATE=true allows them)"
	case fetch.ReasonDNS:
		return "unknown host (" + detail + ")"
	case fetch.ReasonRefused:
		return "connection refused (" + detail + ")"
	case fetch.ReasonReset:
		return "connection closed without an answer (" + detail + ")"
	case fetch.ReasonTLS:
		return "certificate or TLS handshake not accepted (" + detail + ")"
	case fetch.ReasonTimeout:
		return "no answer in time (" + detail + ")"
	}
	return detail
}

func (j *job) lastReason(origin string) fetch.Reason {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.reasons[origin]
}

func (j *job) noteReason(origin string, r fetch.Reason) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.reasons) > maxIdleHosts {
		clear(j.reasons)
	}
	j.reasons[origin] = r
}

// fetchRobots is the robots cache's way to the network: one hop, through the host's slots like any other request.
func (j *job) fetchRobots(ctx context.Context, url string) robots.Response {
	res, err := j.fetchAside(ctx, url, "text/plain,*/*;q=0.8", robots.MaxBytes, false)
	if err != nil {
		return robots.Response{Err: err}
	}
	defer res.Release()
	origin, _ := splitURL(url)
	j.noteReason(origin, res.Reason)
	if res.Reason != "" && !res.TooLarge {
		return robots.Response{Err: res.Err}
	}
	return robots.Response{
		Status: res.Status, Body: bytes.Clone(res.Body), Location: res.Location, RetryAfter: res.RetryAfter, MaxAge: maxAge(res.Header.Get("Cache-Control")),
	}
}

// maxAge reads Cache-Control: max-age (RFC 9111 section 5.2.2.1); 0 when there is none.
func maxAge(header string) time.Duration {
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(name, "max-age") {
			if n, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 32); err == nil && n > 0 {
				return time.Duration(n) * time.Second
			}
		}
	}
	return 0
}

var (
	errLongWait = errors.New("its host asked to wait too long")
	errBanned   = errors.New("its host is banned")
)

// fetchAside makes a request that is no claim: robots.txt, a sitemap. It waits for gate, place, slots and rate, holding
// nothing while it waits. The error is ctx's, the session's, or errLongWait.
func (j *job) fetchAside(ctx context.Context, url, accept string, maxBody int64, impatient bool) (*fetch.Result, error) {
	u, err := j.rules.canon.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	key := coord.HostKey(u.Host)
	state := j.life.hosts.get(u.Host)
	for {
		changed := j.life.sess.Changed()
		need := coord.Need{Keys: []coord.CappedKey{{Key: key, Cap: state.declared()}, j.runKey}, N: 1}
		permit, again, err := j.asideStart(ctx, state, key, need, url)
		if err != nil {
			return nil, err
		}
		if permit != nil {
			j.inflight.Add(1)
			res := j.client.Do(j.life.hard, fetch.Request{URL: url, Accept: accept, MaxBody: maxBody, Guard: permit.MayStart})
			endPermit(permit, res)
			j.inflight.Add(-1)
			if res.Reason == fetch.ReasonGuard {
				state.leave()
				res.Release()
				continue
			}
			t, _ := judge(res)
			if state.report(t, j.life.cfg.Now()) {
				state.acquit() // one request beside the crawl is no row of failures
			}
			j.life.heedGate(key, t, res)
			return res, nil
		}
		if impatient && again > auxLongest {
			return nil, errLongWait
		}
		timer := time.NewTimer(max(again, slotRetry/10))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-j.life.hard.Done():
			timer.Stop()
			return nil, context.Cause(j.life.hard)
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// asideStart tries to take everything one request needs, or says how long to wait.
func (j *job) asideStart(ctx context.Context, state *host, key coord.Key, need coord.Need, url string) (coord.Permit, time.Duration, error) {
	now := j.life.cfg.Now()
	if j.life.mayStore() != nil {
		return nil, storeLooked, nil
	}
	if until, _, closed := j.life.sess.Gate(key); closed {
		return nil, until.Sub(now), nil
	}
	if j.life.bans.has(key.Name()) {
		return nil, 0, errBanned
	}
	ok, gone := state.enter(now)
	switch {
	case gone:
		return nil, 0, errLongWait
	case !ok:
		return nil, slotRetry, nil
	}
	permits, err := j.life.sess.Acquire(ctx, need)
	if err != nil || len(permits) == 0 {
		state.leave()
		return nil, slotRetry, err
	}
	wait, _, err := j.takeRates(ctx, permits[0], key, url)
	if wait > 0 || err != nil {
		permits[0].Release()
		state.leave()
		return nil, max(wait, time.Millisecond), ignoreTrouble(err)
	}
	return permits[0], 0, nil
}

// readSitemaps reads sitemaps one after the other; the plan is saved after each.
func (j *job) readSitemaps(ctx context.Context, roots []string, fence storage.Fence) error {
	l := j.life
	var step storage.Step
	err := retryStore(ctx, l.log, "load step", func() (err error) {
		step, err = l.store.Step(ctx, j.run.ID, stepSitemaps)
		return err
	})
	if err != nil || step.Done {
		return err
	}
	limits := sitemap.PlanLimits{}
	if n := j.pageLimit().most; n > 0 {
		limits.MaxURLs = max(20*n, 10_000) // the most urgent of these are crawled
	}
	plan := sitemap.NewPlan(limits)
	if len(step.Cursor) > 0 {
		if err := plan.UnmarshalJSON(step.Cursor); err != nil {
			return errRunFailed{fmt.Errorf("stored plan of sitemaps: %w", err)}
		}
	} else {
		plan.Add(roots...)
	}
	save := func(ctx context.Context, done bool) error {
		cursor, err := plan.MarshalJSON()
		if err != nil {
			return fmt.Errorf("plan of sitemaps: %w", err)
		}
		return j.saveStep(ctx, storage.Step{Name: stepSitemaps, Cursor: cursor, Done: done}, fence)
	}
	saved := l.cfg.Now()
	for {
		node, ok := plan.Next()
		if !ok {
			return save(ctx, true)
		}
		j.progress.setStep(storage.RunPreparing, "sitemap "+node.URL)
		if err := j.readSitemap(ctx, plan, node, fence); err != nil {
			if ctx.Err() != nil {
				_ = save(l.hard, false) // this sitemap is read again, those before it are not
			}
			return err
		}
		// A plan of many files is large: it is not stored after each.
		if now := l.cfg.Now(); plan.Stats().Pending < smallPlan || now.Sub(saved) > planSaved {
			if err := save(ctx, false); err != nil {
				return err
			}
			saved = now
		}
	}
}

const (
	smallPlan = 100             // files still to read of a plan that is stored after each
	planSaved = 2 * time.Second // between stores of a larger one
)

func (j *job) saveStep(ctx context.Context, s storage.Step, fence storage.Fence) error {
	return retryStore(ctx, j.life.log, "save step", func() error { return j.life.store.SaveStep(ctx, j.run.ID, s, fence) })
}

// readSitemap reads one file. Its own trouble is noted in the plan; an error is the engine's.
func (j *job) readSitemap(ctx context.Context, plan *sitemap.Plan, node sitemap.Node, fence storage.Fence) error {
	res, why, err := j.fetchSitemap(ctx, node.URL)
	if err != nil {
		return err
	}
	if why != "" {
		j.life.log.Info("sitemap not read", "run", j.run.ID, "url", node.URL, "reason", why)
		plan.Failed(node.URL, why)
		j.sitemapTrouble("sitemaps that could not be read, the first", node.URL, why)
		return nil
	}
	defer res.Release()
	var children []string
	in := &intake{job: j, ctx: ctx, fence: fence, room: plan.Remaining(), base: node.URL}
	info, err := sitemap.Decode(ctx, bytes.NewReader(res.Body), sitemap.Limits{MaxEntries: max(min(50_000, plan.Remaining()), 1)}, func(e sitemap.Entry) error {
		in.entry(e)
		return in.flush(discoverBatch)
	})
	if info.Kind == sitemap.Index {
		children = in.locs
		in.found = nil
	} else if in.err == nil {
		_ = in.flush(1)
	}
	if info.Truncated {
		j.leftOut("URLs of a sitemap beyond its limits (50,000 entries, 50 MB, and as many as the run can use)", node.URL)
	}
	switch {
	case in.err != nil:
		return in.err
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		plan.Done(node.URL, children, in.taken, err.Error())
		j.sitemapTrouble("sitemaps read in part, the first", node.URL, err.Error())
	default:
		plan.Done(node.URL, children, in.taken, "")
	}
	return nil
}

// sitemapTrouble tells the first time of a kind that a sitemap was of no use, unless nobody said that there is one.
func (j *job) sitemapTrouble(what, url, why string) {
	origin, path := splitURL(url)
	if known := j.robots.Peek(origin); path == "/sitemap.xml" && known != nil && len(known.Sitemaps) == 0 {
		return
	}
	if j.progress.cut(what, url+" ("+why+")") {
		j.life.log.Warn("left out", "what", what, "run", j.run.ID, "url", url, "reason", why)
	}
}

// fetchSitemap gets one file over redirects, trying again after transient trouble. why is set when it cannot be had.
func (j *job) fetchSitemap(ctx context.Context, url string) (res *fetch.Result, why string, err error) {
	hops := 0
	for try := 1; ; try++ {
		res, err := j.fetchAside(ctx, url, "application/xml,text/xml,text/plain;q=0.8,*/*;q=0.5", sitemapBytes, true)
		switch {
		case errors.Is(err, errLongWait), errors.Is(err, errBanned), errors.Is(err, urlkey.ErrInvalid), errors.Is(err, urlkey.ErrScheme), errors.Is(err, urlkey.ErrTooLong):
			return nil, err.Error(), nil
		case err != nil:
			return nil, "", err
		case res.Reason == "" && res.Status >= 200 && res.Status < 300, res.TooLarge:
			return res, "", nil
		case res.Reason == "" && res.Status >= 300 && res.Status < 400 && res.Location != "":
			base, err := j.rules.canon.NewBase(url)
			if err != nil {
				return nil, err.Error(), nil
			}
			u, _, err := base.Resolve(nil, []byte(res.Location))
			res.Release()
			if hops++; err != nil || hops > sitemapRedirect {
				return nil, "redirects without end or to nowhere", nil
			}
			url, try = string(u.Raw), try-1
			continue
		}
		_, again := judge(res)
		why = fmt.Sprintf("status %d", res.Status)
		if res.Reason != "" {
			why = fmt.Sprint(res.Reason)
		}
		res.Release()
		if !again || try == sitemapTries {
			return nil, why, nil
		}
		select {
		case <-ctx.Done():
			return nil, "", ctx.Err()
		case <-time.After(jitter(2 * time.Second)):
		}
	}
}

// intake turns sitemap entries into discoveries.
type intake struct {
	job   *job
	ctx   context.Context
	fence storage.Fence
	base  string
	room  int
	taken int
	found []storage.Discovery
	mods  []sitemap.Entry // parallel to found
	locs  []string        // entries of an index
	err   error
}

func (in *intake) entry(e sitemap.Entry) {
	j := in.job
	u, err := j.rules.canon.Parse(e.Loc)
	if err != nil && !errors.Is(err, urlkey.ErrTooLong) {
		base, e2 := j.rules.canon.NewBase(in.base)
		if e2 != nil {
			return
		}
		if u, _, err = base.Resolve(nil, []byte(e.Loc)); err != nil {
			return
		}
	}
	if len(in.locs) < maxChildren {
		in.locs = append(in.locs, string(u.Raw))
	}
	if err != nil || !j.rules.scope.Check(u.Host, u.Raw, u.PathAt).In {
		return
	}
	d := storage.Discovery{Key: storage.Key(u.Key), URL: string(u.Raw), Host: u.Host, Depth: 1}
	if !e.LastMod.IsZero() {
		d.LastMod = e.LastMod.UnixMicro()
	}
	in.found = append(in.found, d)
	in.mods = append(in.mods, e)
}

// maxChildren bounds the files one index can name.
const maxChildren = 50_000

// flush stores what was found once there are n of them.
func (in *intake) flush(n int) error {
	if len(in.found) < n || in.err != nil {
		return in.err
	}
	known := map[storage.Key]int64{}
	if before := in.job.run.Previous; before != 0 {
		keys := make([]storage.Key, len(in.found))
		for i := range in.found {
			keys[i] = in.found[i].Key
		}
		in.err = retryStore(in.ctx, in.job.life.log, "look up known URLs", func() (err error) {
			known, err = in.job.life.store.Known(in.ctx, before, keys)
			return err
		})
		if in.err != nil {
			return in.err
		}
	}
	now := in.job.life.cfg.Now()
	for i := range in.found {
		d, e := &in.found[i], in.mods[i]
		s := frontier.Signals{Sitemap: e.Priority, HasSitemap: e.HasPriority, LastMod: e.LastMod}
		if mod, ok := known[d.Key]; ok {
			s.Known = true
			if mod != 0 {
				s.KnownMod = time.UnixMicro(mod)
			}
		}
		d.Priority = frontier.Priority(s, now)
	}
	if _, in.err = in.job.discoverAll(in.ctx, in.found, in.fence); in.err != nil {
		return in.err
	}
	in.taken += len(in.found)
	in.found, in.mods = in.found[:0], in.mods[:0]
	return nil
}
