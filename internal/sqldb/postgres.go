package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// oldestPostgres is PostgreSQL 14 as server_version_num has it.
const oldestPostgres = 140000

// grace is how long a transaction may go on after its context has ended: pgx closes a connection whose context ends in the
// middle of a statement, and a COMMIT cut off is an unknown outcome. The server's own timeouts come first.
const grace = 5 * time.Second

type postgresDB struct {
	rw, ro *pgxpool.Pool
	limit  time.Duration
}

func openPostgres(ctx context.Context, a address, opt *Options) (backend, error) {
	u, err := url.Parse(a.dsn)
	if err != nil {
		return nil, badDSN("it does not parse")
	}
	q := u.Query()
	bouncer, _ := strconv.ParseBool(q.Get("pgbouncer"))
	q.Del("pgbouncer")
	u.RawQuery = q.Encode()
	db := &postgresDB{limit: opt.StatementTimeout + 5*time.Second}
	open := func(conns int) (*pgxpool.Pool, error) {
		cfg, err := pgxpool.ParseConfig(u.String())
		if err != nil {
			return nil, badDSN("a parameter of the PostgreSQL address is wrong (%s)", parseFault(err))
		}
		cfg.MaxConns = int32(conns)
		cfg.ConnConfig.ConnectTimeout = 10 * time.Second
		cfg.ConnConfig.RuntimeParams["application_name"] = opt.Name
		if bouncer {
			// Behind PgBouncer in transaction mode a session's settings and prepared statements belong to nobody.
			cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		} else {
			p := cfg.ConnConfig.RuntimeParams
			p["statement_timeout"] = millis(opt.StatementTimeout)
			p["lock_timeout"] = millis(min(10*time.Second, opt.StatementTimeout))
			p["idle_in_transaction_session_timeout"] = millis(opt.IdleTimeout)
			p["timezone"] = "UTC"
		}
		if opt.RoundTrip != nil {
			dial := cfg.ConnConfig.DialFunc
			cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := dial(ctx, network, addr)
				return countTrips(c, opt.RoundTrip), err
			}
		}
		cfg.ShouldPing = shouldPing
		return pgxpool.NewWithConfig(ctx, cfg)
	}
	if db.rw, err = open(opt.Writers); err != nil {
		return nil, err
	}
	if db.ro, err = open(opt.Readers); err != nil {
		db.rw.Close()
		return nil, err
	}
	if err := db.check(ctx); err != nil {
		db.close()
		return nil, translate(err)
	}
	return db, nil
}

// shouldPing says whether a connection from the pool is to be tried with an empty statement. pgx does so after a second without use,
// which for a node without work doubles what it asks of the server; what the kernel knows of the connection is enough, and when
// it knows of an end or of a word not asked for, the statement finds out. TLS may have said something of its own.
func shouldPing(_ context.Context, p pgxpool.ShouldPingParams) bool {
	if p.IdleDuration < time.Second {
		return false
	}
	ok, known := alive(p.Conn.PgConn().Conn())
	return !known || !ok
}

// parseFault is pgx's message without the address it repeats.
func parseFault(err error) string {
	if u := errors.Unwrap(err); u != nil {
		return u.Error()
	}
	return "not parsed"
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

func (db *postgresDB) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var num int
	var standby bool
	err := db.rw.QueryRow(ctx, "SELECT current_setting('server_version_num')::int, pg_is_in_recovery()").Scan(&num, &standby)
	switch {
	case err != nil:
		return err
	case num < oldestPostgres:
		return &fault{kind: ErrTooOld, cause: fmt.Errorf("PostgreSQL %d.%d, 14 or newer is needed", num/10000, num%10000)}
	case standby:
		return &fault{kind: ErrReadOnly, cause: errors.New("the server is a standby, the primary is needed")}
	}
	return nil
}

func (db *postgresDB) write(ctx context.Context) (session, error) {
	c, err := db.rw.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &postgresSession{c: c, limit: db.limit}, nil
}

func (db *postgresDB) read(ctx context.Context) (session, error) {
	c, err := db.ro.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &postgresSession{c: c, limit: db.limit, view: true}, nil
}

func (db *postgresDB) migrator(context.Context) (*sql.DB, func(), error) {
	cfg := db.rw.Config().ConnConfig.Copy()
	delete(cfg.RuntimeParams, "statement_timeout") // building an index may take long
	h := stdlib.OpenDB(*cfg)
	return h, func() { h.Close() }, nil
}

func (db *postgresDB) identity(ctx context.Context) (durable, life string, err error) {
	// pg_control_system() is for everyone since it was added; the timeline comes from the checkpoint's record.
	err = db.ro.QueryRow(ctx, `SELECT s.system_identifier || '/' || c.timeline_id || '/' || current_database(),
		(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text
		FROM pg_control_system() s, pg_control_checkpoint() c`).Scan(&durable, &life)
	return durable, life, err
}

func (db *postgresDB) compact(context.Context) error { return nil }

func (db *postgresDB) close() error {
	db.rw.Close()
	db.ro.Close()
	return nil
}

type postgresSession struct {
	c     *pgxpool.Conn
	limit time.Duration
	view  bool
	begun bool
	row   Row
}

func (s *postgresSession) eager() bool { return false }

func (s *postgresSession) flush(ctx context.Context, ops []op, last bool) (unknown bool, err error) {
	if len(ops) == 0 && !s.begun {
		return false, nil
	}
	ctx, cancel := detach(ctx, s.limit)
	defer cancel()
	var b pgx.Batch
	// What is pipelined up to one Sync is one transaction by itself, so a single write flush needs no BEGIN.
	explicit := s.begun || !last || s.view
	first := explicit && !s.begun
	if first && s.view {
		b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	} else if first {
		b.Queue("BEGIN")
	}
	for i := range ops {
		queuePostgres(&b, &ops[i])
	}
	if last && explicit {
		b.Queue("COMMIT")
	}
	s.begun = s.begun || explicit
	br := s.c.SendBatch(ctx, &b)
	err = s.results(br, ops, first, last && explicit)
	if e := br.Close(); err == nil {
		err = e
	}
	if err == nil {
		s.begun = s.begun && !last
		return false, nil
	}
	var pe *pgconn.PgError
	unknown = last && !s.view && !errors.As(err, &pe) && isNetwork(err) && !pgconn.SafeToRetry(err)
	return unknown, err
}

func queuePostgres(b *pgx.Batch, o *op) {
	exact := o.exact
	if exact >= 0 && o.tab != nil && !o.st.bulk {
		exact = 1 // for each row
	}
	for i := range o.results() {
		args := make([]any, len(o.st.refs), len(o.st.refs)+1)
		for k, r := range o.st.refs {
			switch r.kind {
			case refIn:
				args[k] = o.args[r.i]
			case refCol:
				args[k] = o.tab.row(i, len(o.st.rows))[r.i]
			case refArray:
				args[k] = o.tab.array(r.i, len(o.st.rows), o.st.rows[r.i].typ)
			}
		}
		if exact >= 0 {
			b.Queue(o.st.exact, append(args, exact)...)
		} else {
			b.Queue(o.st.text, args...)
		}
	}
}

func (s *postgresSession) results(br pgx.BatchResults, ops []op, first, commit bool) error {
	if first {
		if _, err := br.Exec(); err != nil {
			return err
		}
	}
	for i := range ops {
		o := &ops[i]
		for range o.results() {
			var err error
			if o.each != nil {
				err = s.query(br, o.each)
			} else {
				var tag pgconn.CommandTag
				tag, err = br.Exec()
				o.count.N += tag.RowsAffected()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", o.st.name, err)
			}
		}
	}
	if commit {
		_, err := br.Exec()
		return err
	}
	return nil
}

func (s *postgresSession) query(br pgx.BatchResults, each func(*Row) error) error {
	rows, err := br.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	s.row.text = s.row.text[:0]
	for _, f := range rows.FieldDescriptions() {
		s.row.text = append(s.row.text, f.Format == pgx.TextFormatCode)
	}
	for rows.Next() {
		s.row.raw = rows.RawValues()
		if err := each(&s.row); err != nil {
			return err
		}
		if err := s.row.err; err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *postgresSession) close(ok bool) {
	if !ok && s.begun {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if !s.c.Conn().IsClosed() {
			_, _ = s.c.Exec(ctx, "ROLLBACK") // where this fails the pool drops the connection, and the server rolls back
		}
	}
	s.c.Release()
}

// detach returns a context that lives on for a while after its parent has ended, and ends after limit at the latest.
func detach(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(grace, cancel)
		context.AfterFunc(out, func() { t.Stop() })
	})
	return out, func() { stop(); cancel() }
}

// tripConn tells each time its user begins to read after it has written: that is when it waits for the other side.
type tripConn struct {
	net.Conn
	wrote atomic.Bool // drivers read ahead of their own writes, in another goroutine
	trip  func()
}

func countTrips(c net.Conn, trip func()) net.Conn {
	if c == nil {
		return nil
	}
	return &tripConn{Conn: c, trip: trip}
}

// SyscallConn lets the drivers look whether an idle connection has ended.
func (c *tripConn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

func (c *tripConn) Write(b []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(b)
}

func (c *tripConn) Read(b []byte) (int, error) {
	if c.wrote.Swap(false) {
		c.trip()
	}
	return c.Conn.Read(b)
}
