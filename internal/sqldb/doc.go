// Package sqldb opens the three databases deepcrawl runs on and runs transactions on them in as few waits as each allows.
//
// It is the only package that imports SQL drivers. Everything above it writes its SQL in files (see [Load]), once for all
// dialects with overrides where a dialect needs them, and runs it in transactions:
//
//	db, err := sqldb.Open(ctx, "postgres://...", sqldb.Options{})
//	set, err := sqldb.Load(queries, db.Dialect())
//	err = db.Do(ctx, func(tx *sqldb.Tx) error {
//		n := tx.Exec(set.Get("seat_take"), run, owner)   // queued, not sent
//		tx.Query(set.Get("run_get"), func(r *sqldb.Row) error { state = r.Text(0); return nil }, run)
//		return nil                                        // all of it and the COMMIT in one round trip
//	})
//
// # Round trips
//
// Exec and Query only queue. [Tx.Flush] sends what is queued and waits; results and callbacks are there after it. When the
// function given to [DB.Do] returns nil, what is still queued is sent with the COMMIT behind it, and a transaction that was
// never flushed is one round trip in all, BEGIN included. PostgreSQL pipelines prepared statements, MySQL and MariaDB get one
// text of many statements, SQLite runs each statement at once, prepared, on its single writer connection. So code MUST NOT
// read a result before Flush (or before Do has returned), and MUST be ready for callbacks to run at once.
//
// # What is guaranteed
//
//   - Do is one transaction, READ COMMITTED on servers (each statement sees what was committed before it), serial on SQLite.
//     [DB.View] is one read-only snapshot and never blocks or is blocked by writers.
//   - Serialization failures, deadlocks, lock timeouts and busy files are retried inside, as whole transactions: the function
//     is called again, so it MUST be pure but for what it assigns.
//   - Errors carry one of this package's sentinels where one applies; the driver's error stays in the chain.
//
// # What is not
//
//   - That an error of Do means "nothing happened": [ErrUnknown] says that the answer to a COMMIT was lost.
//   - That statements queued together see each other's results on the client. [Tx.ExecExactly] makes the server check a
//     count and fail the transaction, so that what follows in the same round trip is not executed.
package sqldb
