package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"deepcrawl/internal/sqldb"
	"deepcrawl/storage"
)

// A URL's id is its run's id times 2^32 plus its number in the run.
const urlBits = 32

const maxRun = 1<<(62-urlBits) - 1 // so that a token, a 61-bit number plus an id, stays positive

// firstURL and endURL bound the ids of a run's URLs; the end is no id.
func firstURL(run storage.RunID) int64 { return int64(run) << urlBits }
func endURL(run storage.RunID) int64   { return (int64(run) + 1) << urlBits }

// span is a range of ids, both ends included.
type span struct{ low, high int64 }

// idBlocks hands out ids from blocks taken in the database. Ids of a block that is not used up are lost with the process.
type idBlocks struct {
	mu   sync.Mutex
	runs map[storage.RunID]*idBlock
}

type idBlock struct {
	mu        sync.Mutex
	next, end int64 // numbers within the run
	size      int64 // of the next block
}

const (
	firstBlock = 128
	largeBlock = 8192
)

func (b *idBlocks) of(run storage.RunID) *idBlock {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs == nil {
		b.runs = map[storage.RunID]*idBlock{}
	}
	blk, ok := b.runs[run]
	if !ok {
		blk = &idBlock{size: firstBlock}
		b.runs[run] = blk
	}
	return blk
}

func (b *idBlocks) drop(run storage.RunID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.runs, run)
}

// takeIDs returns n ids of a run, in one span or two.
func (s *Store) takeIDs(ctx context.Context, run storage.RunID, n int64) ([]span, error) {
	blk := s.ids.of(run)
	blk.mu.Lock()
	defer blk.mu.Unlock()
	var out []span
	if have := min(blk.end-blk.next, n); have > 0 {
		out = append(out, span{firstURL(run) + blk.next, firstURL(run) + blk.next + have - 1})
		blk.next += have
		n -= have
	}
	if n == 0 {
		return out, nil
	}
	take := max(n, blk.size)
	var end int64
	err := s.db.Do(ctx, func(tx *sqldb.Tx) error {
		end = 0
		tx.ExecExactly(1, s.set.Get("ids_take"), nil, int64(run), take)
		tx.Query(s.set.Get("ids_taken"), func(r *sqldb.Row) error { end = r.Int(0); return nil }, int64(run))
		return nil
	})
	if errors.Is(err, sqldb.ErrMismatch) {
		return nil, fmt.Errorf("run %d: %w", run, storage.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("take ids: %w", err)
	}
	if end > math.MaxUint32 || run > maxRun {
		return nil, fmt.Errorf("run %d has used up its ids", run)
	}
	blk.next, blk.end = end-take, end
	blk.size = min(2*blk.size, largeBlock)
	out = append(out, span{firstURL(run) + blk.next, firstURL(run) + blk.next + n - 1})
	blk.next += n
	return out, nil
}
