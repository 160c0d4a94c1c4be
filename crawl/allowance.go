package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deepcrawl/storage"
)

// pageLimit is how many URLs of a run may be requested, and whose limit that is.
type pageLimit struct {
	most int  // 0: no limit
	none bool // not one more
	why  string
}

// reached says whether requested URLs have used it up.
func (p pageLimit) reached(requested int64) bool {
	return p.none || p.most > 0 && requested >= int64(p.most)
}

// errSuspended ends the steps of a run whose tenant was suspended.
var errSuspended = errors.New("its tenant is suspended")

// errNotActive ends the steps of a run that was paused, cancelled or ended meanwhile.
var errNotActive = errors.New("it is not active any more")

// limitOf is the smallest of what the run, its tariff and the pages stored of its tenant allow. stored and requested were read at
// one moment; several runs of a tenant may together go over StoredPages by what they claim between two looks.
func limitOf(spec Spec, t storage.Tariff, stored, requested int64) pageLimit {
	p := pageLimit{most: spec.MaxPages, why: "page limit reached"}
	if n := t.RunPages; n > 0 && (p.most == 0 || n < p.most) {
		p = pageLimit{most: n, why: fmt.Sprintf("tariff %s: %d pages a run", t.Name, n)}
	}
	if n := t.StoredPages; n > 0 {
		room := max(n-stored, 0)
		if p.most == 0 || requested+room < int64(p.most) {
			p = pageLimit{most: int(requested + room), none: room == 0, why: fmt.Sprintf("tariff %s: %d pages stored", t.Name, n)}
		}
	}
	return p
}

// pageLimit is the limit as last read.
func (j *job) pageLimit() pageLimit {
	if p := j.limits.Load(); p != nil {
		return *p
	}
	return pageLimit{most: j.rules.spec.MaxPages, why: "page limit reached"}
}

// readAllowance reads what the tenant's tariff allows the run now.
func (j *job) readAllowance(ctx context.Context) (suspended bool, err error) {
	if j.life.cluster == nil {
		return false, nil
	}
	store := j.life.cluster
	tenant, tariff, err := store.Tenant(ctx, j.run.Tenant)
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil // deleted
	}
	if err != nil {
		return false, err
	}
	var stored, requested int64
	if tariff.StoredPages > 0 {
		if stored, err = store.StoredPages(ctx, j.run.Tenant); err != nil {
			return false, err
		}
		ledger, err := j.life.store.Ledger(ctx, j.run.ID)
		if errors.Is(err, storage.ErrNotFound) {
			return true, nil // the run is deleted
		}
		if err != nil {
			return false, err
		}
		requested = ledger.Fetched + ledger.Failed
	}
	p := limitOf(j.rules.spec, tariff, stored, requested)
	if old := j.limits.Swap(&p); old != nil && *old != p {
		j.notify()
	}
	return tenant.Suspended || tenant.Deleting, nil
}

// refreshJobs reads what operators changed of the runs this node works on, and stops the steps of those that are not to go on.
// Requests of a crawling run end with the turn of its workers: Pick does not show the run any more.
func (l *life) refreshJobs(ctx context.Context) {
	l.mu.Lock()
	jobs := make([]*job, 0, len(l.jobs))
	for _, j := range l.jobs {
		jobs = append(jobs, j)
	}
	l.mu.Unlock()
	for _, j := range jobs {
		if ctx.Err() != nil {
			return
		}
		suspended, err := j.readAllowance(ctx)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				l.log.Warn("read the tariff", "run", j.run.ID, "tenant", j.run.Tenant, "err", err)
			}
		case suspended:
			j.halt(errSuspended)
		case j.stepping():
			run, err := l.store.Run(ctx, j.run.ID)
			if errors.Is(err, storage.ErrNotFound) || err == nil && !run.State.Active() {
				j.halt(errNotActive)
			}
		}
	}
}

// stoppable is ctx for the steps of a run; halt ends it.
func (j *job) stoppable(ctx context.Context) (context.Context, func()) {
	ctx, stop := context.WithCancelCause(ctx)
	j.mu.Lock()
	j.stopStep = stop
	j.mu.Unlock()
	return ctx, func() {
		j.mu.Lock()
		j.stopStep = nil
		j.mu.Unlock()
		stop(nil)
	}
}

func (j *job) stepping() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stopStep != nil
}

func (j *job) halt(why error) {
	j.mu.Lock()
	stop := j.stopStep
	j.mu.Unlock()
	if stop != nil {
		j.life.log.Info("steps stopped", "run", j.run.ID, "reason", why.Error())
		stop(why)
	}
}

// storeLooked is how long an answer of MayStore is good: a look costs a system call, and a fast crawl writes megabytes a second.
const storeLooked = 250 * time.Millisecond

// mayStore says why nothing new is to be begun, for lack of room; nil when there is.
func (l *life) mayStore() error {
	if l.cfg.MayStore == nil {
		return nil
	}
	now := l.cfg.Now()
	l.roomMu.Lock()
	defer l.roomMu.Unlock()
	if d := now.Sub(l.roomAt); !l.roomAt.IsZero() && d >= 0 && d < storeLooked {
		return l.room
	}
	was := l.room
	l.room, l.roomAt = l.cfg.MayStore(), now
	switch {
	case l.room != nil && was == nil:
		l.log.Warn("work pauses", "reason", l.room.Error())
	case l.room == nil && was != nil:
		l.log.Info("work goes on")
	}
	return l.room
}
