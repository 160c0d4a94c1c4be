package sqldb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Count is the number of rows a statement met: inserted, deleted, or matched by an UPDATE, changed or not.
// It is valid after Flush, or after Do has returned nil.
type Count struct{ N int64 }

// op is a queued statement.
type op struct {
	st    *Stmt
	args  []any
	tab   *Table
	each  func(*Row) error
	count *Count
	exact int64 // rows it must meet, -1 any
}

// session is a connection for the length of one transaction.
type session interface {
	// flush runs ops. The first flush begins the transaction, last commits it behind the ops. An error for which
	// unknown is true may come from a commit that has happened.
	flush(ctx context.Context, ops []op, last bool) (unknown bool, err error)
	// eager says that ops should be flushed one by one as they are queued.
	eager() bool
	// close ends the transaction if it is still open, and gives the connection back. ok says that flush(last) succeeded.
	close(ok bool)
}

// Tx is a transaction. It is not safe for concurrent use and not valid after the function it was given to has returned.
type Tx struct {
	ctx  context.Context
	s    session
	ops  []op
	err  error // of an eagerly run statement; sticky
	unkn bool
}

// Query queues a statement whose rows are given to each, in order. An error of each ends the transaction.
func (tx *Tx) Query(st *Stmt, each func(*Row) error, args ...any) {
	tx.queue(op{st: st, args: args, each: each, exact: -1})
}

// Exec queues a statement.
func (tx *Tx) Exec(st *Stmt, args ...any) *Count {
	c := new(Count)
	tx.queue(op{st: st, args: args, count: c, exact: -1})
	return c
}

// ExecExactly queues a statement that MUST meet exactly n rows, with a table input (t is nil where there is none) one for each
// row of the table: else the transaction fails with ErrMismatch and nothing queued behind it is executed. The statement MUST
// NOT have a RETURNING clause.
func (tx *Tx) ExecExactly(n int, st *Stmt, t *Table, args ...any) {
	if t != nil {
		t.check(st)
		if n != t.n {
			panic("sqldb: statement " + st.name + " must meet one row for each row of its table")
		}
	}
	tx.queue(op{st: st, args: args, tab: t, count: new(Count), exact: int64(n)})
}

// ExecRows queues a statement with a table input; with an empty table it is not run. The count is that of all rows together.
// The table MUST NOT change before the next Flush.
func (tx *Tx) ExecRows(st *Stmt, t *Table, args ...any) *Count {
	t.check(st)
	c := new(Count)
	if t.n > 0 {
		tx.queue(op{st: st, args: args, tab: t, count: c, exact: -1})
	}
	return c
}

// QueryRows queues a query with a table input; with an empty table it is not run. Rows of the result come in no order.
func (tx *Tx) QueryRows(st *Stmt, each func(*Row) error, t *Table, args ...any) {
	t.check(st)
	if t.n > 0 {
		tx.queue(op{st: st, args: args, tab: t, each: each, exact: -1})
	}
}

func (tx *Tx) queue(o op) {
	if len(o.args) != len(o.st.in) {
		panic(fmt.Sprintf("sqldb: statement %s takes %d inputs, got %d", o.st.name, len(o.st.in), len(o.args)))
	}
	if tx.err != nil {
		return
	}
	tx.ops = append(tx.ops, o)
	if tx.s.eager() {
		tx.err = tx.send(false)
	}
}

// Flush sends what is queued and waits for all of it. On error the transaction is over: return the error from the function.
func (tx *Tx) Flush() error {
	if tx.err == nil && len(tx.ops) > 0 {
		tx.err = tx.send(false)
	}
	return tx.err
}

func (tx *Tx) send(last bool) error {
	if err := tx.ctx.Err(); err != nil {
		return err
	}
	unknown, err := tx.s.flush(tx.ctx, tx.ops, last)
	tx.unkn = unknown
	clear(tx.ops)
	tx.ops = tx.ops[:0]
	return translate(err)
}

const (
	maxAttempts  = 12
	firstBackoff = 4 * time.Millisecond
	maxBackoff   = 500 * time.Millisecond
)

// Do runs fn in a transaction and commits it when fn returns nil; what fn has queued and not flushed is sent with the COMMIT.
// Where the transaction failed because of others it is run again. Errors of fn are returned unchanged.
func (db *DB) Do(ctx context.Context, fn func(*Tx) error) error {
	return db.run(ctx, db.b.write, fn)
}

// View runs fn in a read-only transaction on one snapshot.
func (db *DB) View(ctx context.Context, fn func(*Tx) error) error {
	return db.run(ctx, db.b.read, fn)
}

func (db *DB) run(ctx context.Context, open func(context.Context) (session, error), fn func(*Tx) error) error {
	backoff := firstBackoff
	reconnected := 0
	for attempt := 1; ; attempt++ {
		unknown, err := attemptOnce(ctx, open, fn)
		if db.dialect == SQLite && db.opt.RoundTrip != nil {
			db.opt.RoundTrip()
		}
		switch {
		case err == nil:
			return nil
		case unknown:
			return &fault{kind: ErrUnknown, cause: err}
		case retryable(err) && attempt < maxAttempts:
		case errors.Is(err, ErrUnavailable) && ctx.Err() == nil && reconnected < 2 && db.dialect != SQLite:
			// A pooled connection may have died while idle: another one tells whether the server is gone.
			reconnected++
		default:
			return err
		}
		db.opt.onRetry(err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(backoff) + backoff/2):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

func attemptOnce(ctx context.Context, open func(context.Context) (session, error), fn func(*Tx) error) (unknown bool, err error) {
	s, err := open(ctx)
	if err != nil {
		return false, translate(err)
	}
	ok := false
	defer func() { s.close(ok) }()
	tx := &Tx{ctx: ctx, s: s}
	if err := fn(tx); err != nil {
		return false, err
	}
	if tx.err != nil {
		return false, tx.err
	}
	if err := tx.send(true); err != nil {
		return tx.unkn, err
	}
	ok = true
	return false, nil
}
