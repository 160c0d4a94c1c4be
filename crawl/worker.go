package crawl

import (
	"context"
	"errors"
	"sync"
	"time"

	"deepcrawl/coord"
	"deepcrawl/storage"
)

// crew is the lanes of one worker on one run. Each lane takes a URL, fetches it and takes the next: a slow page holds up
// its own lane only. Reading a page is not a lane's work: see readers.
type crew struct {
	job   *job
	ctx   context.Context // ends when no more requests are to be started
	stop  context.CancelFunc
	lanes sync.WaitGroup
}

func (l *life) newCrew(ctx context.Context, j *job, occupied int) *crew {
	c := &crew{job: j}
	c.ctx, c.stop = context.WithCancel(ctx)
	for range (j.runKey.Cap + occupied - 1) / max(occupied, 1) {
		c.lanes.Go(func() {
			for {
				s, ok := j.next(c)
				if !ok {
					return
				}
				j.fetch(c.ctx, s)
			}
		})
	}
	return c
}

// serve works on a run for a turn, or as long as fairness names the same run again. It returns the seat taken for the next
// run, if any.
func (l *life) serve(ctx context.Context, seat storage.Seat, run storage.Run, occupied int) (storage.Seat, storage.Run, int, bool) {
	none := func() (storage.Seat, storage.Run, int, bool) { return storage.Seat{}, storage.Run{}, 0, false }
	j, err := l.openJob(run)
	if err != nil {
		l.failRun(ctx, run, err)
		l.leaveSeat(seat)
		return none()
	}
	switch run.State {
	case storage.RunPreparing, storage.RunFinishing:
		work := l.prepare
		if run.State == storage.RunFinishing {
			work = l.finishRun
		}
		step, done := j.stoppable(ctx)
		if err = work(step, j); err != nil && step.Err() == nil {
			l.stepFailed(ctx, j, err)
		}
		done()
		l.closeJob(j)
		l.leaveSeat(seat)
		if err == nil && run.State == storage.RunFinishing && ctx.Err() == nil {
			l.forget(j)
		}
		return none()
	}

	c := l.newCrew(ctx, j, occupied)
	began := l.cfg.Now()
	over, starts := false, int64(-1)
	for !over {
		timer := time.NewTimer(j.turn())
		select {
		case <-timer.C:
		case <-j.ended:
			over = true
		case <-ctx.Done():
			over = true
		}
		timer.Stop()
		began = l.countTime(j, seat, began)
		l.refreshProgress(j)
		if !over && j.timeUp() {
			j.finish(ReasonLimit)
			over = true
		}
		if over {
			break
		}
		if n := j.starts.Load(); n == starts && j.inflight.Load() == 0 {
			// Nothing to do here now: another run goes first, if there is one.
			l.wasted.Add(1)
			l.backOff(j.run.ID, l.cfg.Now().Add(l.cfg.Turn))
		} else {
			starts = n
		}
		next, nextRun, nextOccupied, ok, err := l.pick(ctx, &seat)
		if err == nil && !ok && l.comeBack(j.run.ID) {
			next, nextRun, nextOccupied, ok, err = l.pick(ctx, &seat)
		}
		if err != nil {
			if ctx.Err() == nil {
				l.fail(err)
			}
			break
		}
		if ok && next == seat && nextRun.State == storage.RunCrawling {
			continue
		}
		// Another run, or none: this seat is kept until its requests have ended.
		c.stop()
		l.crews.Go(func() {
			c.lanes.Wait()
			l.closeJob(j)
			if !ok || next != seat {
				l.leaveSeat(seat)
			}
		})
		return next, nextRun, nextOccupied, ok
	}
	c.stop()
	c.lanes.Wait()
	j.reading.wait()
	l.finisher.flush()
	l.closeJob(j)
	select {
	case <-j.ended:
		if ctx.Err() == nil {
			l.endCrawling(ctx, j)
		}
	default:
	}
	l.leaveSeat(seat)
	return none()
}

// endCrawling moves the run on when its frontier is empty or a limit is reached.
func (l *life) endCrawling(ctx context.Context, j *job) {
	l.log.Debug("crawling ended", "run", j.run.ID)
	reason := ""
	j.mu.Lock()
	limit := j.limit
	j.mu.Unlock()
	if limit != "" {
		reason = limitReached(limit, j)
	}
	err := retryStore(ctx, l.log, "end crawling", func() error {
		_, err := l.store.SetRunState(ctx, j.run.ID, []storage.RunState{storage.RunCrawling}, storage.RunFinishing, reason, time.Time{})
		return err
	})
	if err != nil && !errors.Is(err, storage.ErrState) && ctx.Err() == nil {
		l.fail(err)
	}
	l.wakeWorkers()
}

func limitReached(_ storage.Reason, j *job) string {
	if j.timeUp() {
		return "time limit reached"
	}
	return j.pageLimit().why
}

// countTime adds the time since began to what the run was worked on; the first seat counts for all.
func (l *life) countTime(j *job, seat storage.Seat, began time.Time) time.Time {
	now := l.cfg.Now()
	if seat.N != 1 {
		return now
	}
	worked := now.Sub(began)
	j.progress.worked.Add(int64(worked))
	ctx, cancel := context.WithTimeout(l.hard, 5*time.Second)
	defer cancel()
	if err := l.store.UpdateRun(ctx, j.run.ID, storage.RunUpdate{Worked: worked}); err != nil && l.hard.Err() == nil && !errors.Is(err, storage.ErrFull) {
		l.log.Warn("count time", "run", j.run.ID, "err", err)
	}
	return now
}

// turn is how long a worker serves the run before it looks around: not beyond the run's time limit.
func (j *job) turn() time.Duration {
	turn := j.life.cfg.Turn
	if most := time.Duration(j.rules.spec.MaxTime); most > 0 {
		turn = max(min(turn, most-time.Duration(j.progress.worked.Load())), time.Millisecond)
	}
	return turn
}

// timeUp says whether the run's time limit has passed.
func (j *job) timeUp() bool {
	most := time.Duration(j.rules.spec.MaxTime)
	return most > 0 && time.Duration(j.progress.worked.Load()) >= most
}

// failRun ends a run that cannot be worked, with the reason.
func (l *life) failRun(ctx context.Context, run storage.Run, cause error) {
	l.log.Error("run failed", "run", run.ID, "err", cause)
	err := retryStore(ctx, l.log, "fail run", func() error {
		_, err := l.store.SetRunState(ctx, run.ID,
			[]storage.RunState{storage.RunQueued, storage.RunPreparing, storage.RunCrawling, storage.RunFinishing},
			storage.RunFailed, cause.Error(), time.Time{})
		return err
	})
	if err != nil && !errors.Is(err, storage.ErrState) && ctx.Err() == nil {
		l.fail(err)
	}
}

// errRunFailed marks an error that is the run's, not the node's.
type errRunFailed struct{ error }

// stepFailed decides what an error of a step means: the run's end, another try later, or the node's end.
func (l *life) stepFailed(ctx context.Context, j *job, err error) {
	var own errRunFailed
	switch {
	case errors.As(err, &own):
		l.failRun(ctx, j.run, own.error)
	case errors.Is(err, coord.ErrHeld), errors.Is(err, coord.ErrLost), errors.Is(err, storage.ErrFenced), errors.Is(err, storage.ErrState):
		// Another node works on it.
		l.backOff(j.run.ID, l.cfg.Now().Add(jitter(2*time.Second)))
	case errors.Is(err, coord.ErrUnavailable), errors.Is(err, coord.ErrUnknown), errors.Is(err, coord.ErrNoView), errors.Is(err, coord.ErrWaiting):
		l.backOff(j.run.ID, l.cfg.Now().Add(jitter(2*time.Second)))
	case endsSession(err):
	default:
		l.fail(err)
	}
}

// endsSession says whether the session is over.
func endsSession(err error) bool {
	return errors.Is(err, coord.ErrFenced) || errors.Is(err, coord.ErrLeft) || errors.Is(err, context.Canceled)
}

// pause closes a host's gate for everybody.
func (l *life) pause(ctx context.Context, key coord.Key, d time.Duration, why string) {
	l.log.Info("host asked to wait", "host", key.Name(), "for", d, "reason", why)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := l.sess.Pause(ctx, key, d, why); err != nil {
		l.log.Warn("pause host", "host", key.Name(), "err", err)
	}
}
