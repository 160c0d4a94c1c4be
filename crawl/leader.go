package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"deepcrawl/coord"
	"deepcrawl/storage"
)

// LeaderLease is the name of the lease whose holder leads.
const LeaderLease = "leader"

const (
	watchEvery   = 2 * time.Second
	leadEvery    = 6 * time.Second // between attempts to lead while another does: short beside the lease a dead leader leaves
	reclaimBatch = 1000
	pruneBatch   = 2000
	pruneRuns    = 10          // runs looked at in one turn of pruning
	pruneLongest = time.Second // of one turn of pruning, so that other duties are not kept waiting
	dueAtOnce    = 20
	defaultHung  = 12 * time.Hour
)

// duty is something one node of the cluster does for all. To add one, add a row to duties.
type duty struct {
	name  string
	every time.Duration
	do    func(*leader, context.Context) error
}

// errMore ends a turn of a duty that has more to do: it goes on at the next look.
var errMore = errors.New("more to do")

func duties() []duty {
	return []duty{
		{"reap", 5 * time.Second, (*leader).reap},
		{"schedules", 10 * time.Second, (*leader).schedules},
		{"hung runs", time.Minute, (*leader).closeHung},
		{"prune", 30 * time.Second, (*leader).prune},
		{"deletions", time.Minute, (*leader).deletions},
		{"fairness", fairWindow, (*leader).fairness},
	}
}

// leader runs the duties while it holds the lease. Every write of a duty carries the lease's fence or re-checks what it read in
// the statement that writes, so a past leader does no harm.
type leader struct {
	life  *life
	fence storage.Fence
	last  map[string]time.Time
	seen  map[storage.RunID]progressAt
	// worked is how long the runs that had work at the last look had been served.
	worked map[storage.RunID]time.Duration
}

// progressAt is when a run's finished URLs last grew.
type progressAt struct {
	finished int64
	at       time.Time
}

// clusterStore is what the duties ask of a store.
type clusterStore interface {
	storage.Bans
	storage.Queue
	storage.Schedules
	storage.Tenants
	storage.Acts
}

// watch reads what operators changed and, on nodes, tries to lead. It never runs on a worker.
func (l *life) watch(ctx context.Context) {
	var lease coord.Lease
	var lead *leader
	var tried time.Time
	if l.cluster == nil {
		return
	}
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		if l.busy() {
			if err := l.bans.refresh(ctx, l.cluster, l.cfg.Now()); err != nil && ctx.Err() == nil {
				l.log.Warn("read banned hosts", "err", err)
			}
			l.refreshJobs(ctx)
		}
		if now := l.cfg.Now(); l.cfg.Lead && (lead != nil || now.Sub(tried) >= leadEvery) {
			tried = now
			lease, lead = l.lead(ctx, lease, lead)
			l.leading.Store(lead != nil)
		}
		select {
		case <-ctx.Done():
			if lease != nil {
				release, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
				defer cancel()
				_ = lease.Release(release) // it ends with its TTL otherwise
			}
			return
		case <-ticker.C:
		}
	}
}

// busy says whether this node works on some run.
func (l *life) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.jobs) > 0
}

// lead takes the lease where nobody has it, and does what is due while it is held.
func (l *life) lead(ctx context.Context, lease coord.Lease, lead *leader) (coord.Lease, *leader) {
	if lease == nil || !lease.Held() {
		var err error
		if lease, err = l.sess.Lease(ctx, LeaderLease, l.sess.Timing().LeaseTTL); err != nil {
			if !errors.Is(err, coord.ErrHeld) && ctx.Err() == nil {
				l.log.Debug("no leader lease", "err", err)
			}
			return nil, nil
		}
		l.log.Info("leading", "lease", LeaderLease, "fence", lease.Fence().String())
		lead = &leader{
			life: l, fence: l.fence(LeaderLease, lease.Fence()),
			last: make(map[string]time.Time), seen: make(map[storage.RunID]progressAt),
		}
	}
	for _, d := range duties() {
		now := l.cfg.Now()
		if now.Sub(lead.last[d.name]) < d.every || !lease.Held() {
			continue
		}
		lead.last[d.name] = now
		err := lead.act(ctx, d)
		if errors.Is(err, errMore) {
			delete(lead.last, d.name)
			continue
		}
		if err != nil && ctx.Err() == nil {
			if errors.Is(err, storage.ErrFenced) {
				l.log.Warn("another node leads", "duty", d.name, "err", err)
				return nil, nil
			}
			l.log.Warn("leader duty", "duty", d.name, "err", err)
		}
	}
	return lease, lead
}

// act does a duty once that is recorded under the fence, which a past leader fails at.
func (d *leader) act(ctx context.Context, du duty) error {
	if err := d.life.cluster.RecordAct(ctx, d.fence, d.life.owner, du.name); err != nil {
		return err
	}
	return du.do(d, ctx)
}

// reap returns what dead sessions held.
func (d *leader) reap(ctx context.Context) error { return d.life.reclaimOthers(ctx) }

// schedules starts the crawls that are due.
func (d *leader) schedules(ctx context.Context) error {
	due, err := d.life.cluster.DueSchedules(ctx, dueAtOnce)
	if err != nil {
		return err
	}
	for _, s := range due {
		next, err := NextTime(s, d.life.cfg.Now())
		if err != nil {
			d.life.log.Warn("schedule cannot be read", "tenant", s.Tenant, "schedule", s.ID, "err", err)
			continue
		}
		run, merged, err := d.life.cluster.StartScheduled(ctx, s.ID, next, storage.NewRun{
			Tenant: s.Tenant, Site: s.Site, Spec: s.Spec, Concurrency: specConcurrency(s.Spec),
		}, d.fence)
		switch {
		case errors.Is(err, storage.ErrState), errors.Is(err, storage.ErrNotFound):
			continue // moved or removed meanwhile
		case err != nil:
			return fmt.Errorf("schedule %d: %w", s.ID, err)
		}
		d.life.log.Info("scheduled crawl", "tenant", s.Tenant, "schedule", s.ID, "run", run.ID, "merged", merged, "next", next)
		d.life.wakeWorkers()
	}
	return nil
}

func specConcurrency(spec []byte) int {
	s, err := DecodeSpec(spec)
	if err != nil {
		return 0
	}
	p, err := ParseProfile(s.Profile)
	if err != nil {
		return 0
	}
	return p.Concurrency
}

// NextTime is the first time after now when a schedule is due. A time that was missed is not made up for: the schedule runs
// once, and goes on from now.
func NextTime(s storage.Schedule, now time.Time) (time.Time, error) {
	if s.Cron == "" {
		if s.Every <= 0 {
			return time.Time{}, errors.New("schedule has neither an interval nor a cron expression")
		}
		if s.Next.IsZero() {
			return now.Add(s.Every), nil
		}
		missed := max(now.Sub(s.Next), 0) / s.Every
		return s.Next.Add((missed + 1) * s.Every), nil
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("time zone %q: %w", s.Zone, err)
	}
	c, err := cron.ParseStandard(s.Cron)
	if err != nil {
		return time.Time{}, fmt.Errorf("cron expression %q: %w", s.Cron, err)
	}
	next := c.Next(now.In(zone))
	if next.IsZero() {
		return time.Time{}, fmt.Errorf("cron expression %q is never due", s.Cron)
	}
	return next, nil
}

// closeHung fails active runs that have finished nothing for a long time although they wait for nothing.
func (d *leader) closeHung(ctx context.Context) error {
	waiting, err := d.life.cluster.Unfinished(ctx, 1000)
	if err != nil {
		return err
	}
	now := d.life.cfg.Now()
	alive := make(map[storage.RunID]progressAt, len(waiting))
	for _, w := range waiting {
		if !w.Run.State.Active() || w.Suspended || w.Run.Home != "" {
			continue // one that is reserved may be resumed by hand, whenever that is
		}
		ledger, err := d.life.store.Ledger(ctx, w.Run.ID)
		if err != nil {
			return err
		}
		at := progressAt{finished: ledger.Fetched + ledger.Failed + ledger.Excluded + ledger.Discovered, at: now}
		if old, ok := d.seen[w.Run.ID]; ok && old.finished == at.finished && d.life.mayStore() == nil {
			at.at = old.at
		}
		alive[w.Run.ID] = at
		_, _, gated := d.life.sess.Gate(coord.HostKey(w.Run.Site))
		if idle := now.Sub(at.at); idle > d.life.cfg.HungAfter && !gated && ledger.Delayed == 0 {
			reason := fmt.Sprintf("closed by the leader: nothing finished for %s", idle.Round(time.Minute))
			_, err := d.life.store.SetRunState(ctx, w.Run.ID, []storage.RunState{w.Run.State}, storage.RunFailed, reason, time.Time{})
			if err != nil && !errors.Is(err, storage.ErrState) {
				return err
			}
			d.life.log.Warn("run closed", "run", w.Run.ID, "reason", reason)
		}
	}
	d.seen = alive
	return nil
}

// fairness compares how long runs were served that had work for their workers at both ends of a window.
func (d *leader) fairness(ctx context.Context) error {
	waiting, err := d.life.cluster.Unfinished(ctx, fairLooked)
	if err != nil {
		return err
	}
	var ids []storage.RunID
	worked := make(map[storage.RunID]time.Duration)
	for _, w := range waiting {
		_, _, gated := d.life.sess.Gate(coord.HostKey(w.Run.Site))
		if w.Run.State == storage.RunCrawling && !w.Suspended && !gated && w.Run.Home == "" {
			ids = append(ids, w.Run.ID)
			worked[w.Run.ID] = w.Run.WorkedFor
		}
	}
	if len(ids) > 0 {
		ready, err := d.life.store.Ready(ctx, ids, 1)
		if err != nil {
			return err
		}
		for _, r := range ready {
			if len(r.Hosts) == 0 {
				delete(worked, r.Run)
			}
		}
	}
	served := make(map[storage.RunID]time.Duration)
	for id, at := range worked {
		if before, ok := d.worked[id]; ok {
			served[id] = at - before
		}
	}
	d.worked = worked
	f := fairnessOf(d.life.cfg.Now(), served)
	d.life.fairness.Store(f)
	if len(f.Starved) > 0 {
		d.life.log.Warn("runs got less than half of their share", "runs", f.Starved, "jain", f.Jain)
	}
	return nil
}

// deletions goes on with tenants whose deletion was interrupted, in small pieces.
func (d *leader) deletions(ctx context.Context) error {
	list, err := d.life.cluster.Tenants(ctx)
	if err != nil {
		return err
	}
	began := d.life.cfg.Now()
	for _, t := range list {
		if !t.Deleting {
			continue
		}
		for done := false; !done; {
			if done, err = d.life.cluster.DeleteTenant(ctx, t.Name, pruneBatch); err != nil && !errors.Is(err, storage.ErrNotFound) {
				return fmt.Errorf("delete tenant %s: %w", t.Name, err)
			}
			done = done || err != nil // who began it was through first
			if !done && d.life.cfg.Now().Sub(began) > pruneLongest {
				return errMore
			}
		}
		d.life.log.Info("deleted", "tenant", t.Name)
	}
	return nil
}

// fairLooked bounds the runs that are compared.
const fairLooked = 1000

// prune removes runs that ended longer ago than the retention, oldest first, in small pieces.
func (d *leader) prune(ctx context.Context) error {
	if d.life.cfg.Retention <= 0 {
		return nil
	}
	old, err := d.life.store.ListRuns(ctx, storage.RunFilter{
		States: []storage.RunState{storage.RunDone, storage.RunCancelled, storage.RunFailed}, FinishedFor: d.life.cfg.Retention, Limit: pruneRuns,
	})
	if err != nil {
		return err
	}
	began := d.life.cfg.Now()
	for _, run := range old {
		for done := false; !done; {
			if done, err = d.life.store.DeleteRun(ctx, run.ID, pruneBatch); err != nil {
				return fmt.Errorf("prune run %d: %w", run.ID, err)
			}
			if !done && d.life.cfg.Now().Sub(began) > pruneLongest {
				return errMore
			}
		}
		d.life.log.Info("pruned", "run", run.ID, "tenant", run.Tenant)
	}
	if len(old) == pruneRuns {
		return errMore
	}
	return nil
}
