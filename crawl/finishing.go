package crawl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"deepcrawl/crawl/extract"
	"deepcrawl/storage"
)

const (
	closeBatch    = 1000
	linkRows      = 1000
	inlinksBatch  = 2000
	targetsAtOnce = 500_000 // targets whose links are counted in one pass, about 40 MB
)

// finishRun runs the named steps that end a run, each from its cursor; then the run is done.
func (l *life) finishRun(ctx context.Context, j *job) error {
	fence, release, err := l.lease(ctx, j)
	if err != nil {
		return err
	}
	defer release()
	for _, step := range []struct {
		name, words string
		run         func(context.Context, *job, []byte, func([]byte) error) error
	}{
		{stepClose, "closing the frontier", l.closeFrontier},
		{stepInlinks, "counting links", func(ctx context.Context, j *job, cursor []byte, save func([]byte) error) error {
			return countInlinks(ctx, l.store, j.run.ID, fence, cursor, save)
		}},
	} {
		j.progress.setStep(storage.RunFinishing, step.words)
		var at storage.Step
		err := retryStore(ctx, l.log, "load step", func() (err error) {
			at, err = l.store.Step(ctx, j.run.ID, step.name)
			return err
		})
		if err != nil {
			return err
		}
		if at.Done {
			continue
		}
		save := func(cursor []byte) error {
			return j.saveStep(ctx, storage.Step{Name: step.name, Cursor: cursor}, fence)
		}
		if err := retryStore(ctx, l.log, step.name, func() error { return step.run(ctx, j, at.Cursor, save) }); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := j.saveStep(ctx, storage.Step{Name: step.name, Done: true}, fence); err != nil {
			return err
		}
		l.log.Debug("step done", "run", j.run.ID, "step", step.name)
	}
	err = retryStore(ctx, l.log, "end run", func() error {
		run, err := l.store.Run(ctx, j.run.ID)
		if err != nil {
			return err
		}
		_, err = l.store.SetRunState(ctx, j.run.ID, []storage.RunState{storage.RunFinishing}, storage.RunDone, run.Reason, time.Time{})
		return err
	})
	if err == nil {
		j.progress.setStep(storage.RunDone, "")
		l.refreshProgress(j)
	}
	return err
}

// closeFrontier ends what a limit left in the frontier, after every claim on it has ended.
func (l *life) closeFrontier(ctx context.Context, j *job, _ []byte, _ func([]byte) error) error {
	for {
		for more := true; more; {
			var err error
			if _, more, err = l.store.CloseFrontier(ctx, j.run.ID, ReasonLimit, closeBatch); err != nil {
				return err
			}
		}
		ready, err := l.store.Ready(ctx, []storage.RunID{j.run.ID}, 1)
		if err != nil {
			return err
		}
		if len(ready) == 0 || ready[0].Empty {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(slotRetry):
		}
	}
}

// errCursor: a stored cursor that this binary did not write.
var errCursor = errors.New("damaged cursor")

// countInlinks counts, for every URL of the run, the pages that link to it. One pass over the links counts the targets of
// one part of the key space, so memory is bounded whatever the size of the site; the cursor is the next part.
func countInlinks(ctx context.Context, store storage.Store, run storage.RunID, fence storage.Fence, cursor []byte, save func([]byte) error) error {
	ledger, err := store.Ledger(ctx, run)
	if err != nil {
		return err
	}
	parts := uint64(ledger.Discovered/targetsAtOnce + 1)
	next := uint64(0)
	if len(cursor) > 0 {
		n, w := binary.Uvarint(cursor)
		m, w2 := binary.Uvarint(cursor[max(w, 0):])
		if w <= 0 || w2 <= 0 || m == 0 {
			return errCursor
		}
		next, parts = n, m
	}
	for ; next < parts; next++ {
		if err := countPart(ctx, store, run, fence, next, parts); err != nil {
			return err
		}
		at := binary.AppendUvarint(binary.AppendUvarint(nil, next+1), parts)
		if err := save(at); err != nil {
			return err
		}
	}
	return nil
}

type tally struct {
	count  int64
	source storage.URLID
}

func countPart(ctx context.Context, store storage.Store, run storage.RunID, fence storage.Fence, part, parts uint64) error {
	counts := make(map[uint64]tally) // by the prefix of the target's key
	for after := storage.URLID(0); ; {
		rows, err := store.Links(ctx, run, after, linkRows)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			after = row.ID
			err := EachEdge(row.Links, func(e Edge) {
				if len(e.URL) > 0 || e.Self || e.Kind == extract.Canonical {
					return
				}
				prefix := binary.BigEndian.Uint64(e.Prefix[:])
				if prefix%parts != part {
					return
				}
				t := counts[prefix]
				t.count++
				if t.source == 0 {
					t.source = row.ID
				}
				counts[prefix] = t
			})
			if err != nil {
				return fmt.Errorf("links of page %d: %w", row.ID, err)
			}
		}
	}
	list := make([]storage.Inlinks, 0, len(counts))
	for prefix, t := range counts {
		in := storage.Inlinks{Count: t.count, Source: t.source}
		binary.BigEndian.PutUint64(in.Prefix[:], prefix)
		list = append(list, in)
	}
	clear(counts)
	slices.SortFunc(list, func(a, b storage.Inlinks) int {
		return cmp.Or(bytes.Compare(a.Prefix[:], b.Prefix[:]), cmp.Compare(a.Source, b.Source))
	})
	for batch := range slices.Chunk(list, inlinksBatch) {
		if err := store.SaveInlinks(ctx, run, batch, fence); err != nil {
			return err
		}
	}
	return nil
}
