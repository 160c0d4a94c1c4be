package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"modernc.org/sqlite"
)

// applicationID marks deepcrawl's files in the header SQLite keeps for it ("DCRW").
const applicationID = 0x44435257

// sqliteDB is one writer connection and a few readers, used through the driver's own interface: database/sql costs more than
// some of the statements do.
type sqliteDB struct {
	path    string
	writer  chan *sqliteConn // holds the one writer while it is free
	readers chan *sqliteConn
	open    []*sqliteConn
	once    sync.Once
	err     error
}

func openSQLite(_ context.Context, a address, opt *Options) (_ backend, err error) {
	fi, err := os.Stat(a.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if !opt.Create {
			return nil, &fault{kind: ErrMissing, cause: fmt.Errorf("there is no file %s", a.path)}
		}
		if err := checkFolder(a.path); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, &fault{kind: ErrMissing, cause: err}
	case fi.IsDir():
		return nil, &fault{kind: ErrForeign, cause: fmt.Errorf("%s is a folder", a.path)}
	}
	db := &sqliteDB{path: a.path, writer: make(chan *sqliteConn, 1), readers: make(chan *sqliteConn, opt.Readers)}
	defer func() {
		if err != nil {
			_ = db.closeAll() // the first error says more
		}
	}()
	// 64 MiB hold what results of a million URLs touch: with 16 a long queue cost a third of the rate of a short one.
	w, err := db.connect(64 << 10)
	if err != nil {
		return nil, err
	}
	if err := w.prepareFile(opt.Create); err != nil {
		return nil, err
	}
	if err := w.exec("PRAGMA busy_timeout = 0"); err != nil { // see start
		return nil, err
	}
	db.writer <- w
	for range opt.Readers {
		r, err := db.connect(8 << 10)
		if err != nil {
			return nil, err
		}
		db.readers <- r
	}
	return db, nil
}

// checkFolder says in plain words why a file cannot be made; SQLite's own answer is "unable to open".
func checkFolder(path string) error {
	dir := filepath.Dir(path)
	fi, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &fault{kind: ErrMissing, cause: fmt.Errorf("there is no folder %s", dir)}
	case err != nil:
		return &fault{kind: ErrMissing, cause: err}
	case !fi.IsDir():
		return &fault{kind: ErrMissing, cause: fmt.Errorf("%s is no folder", dir)}
	}
	f, err := os.CreateTemp(dir, ".deepcrawl-*")
	if err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return &fault{kind: ErrFull, cause: err}
		}
		return &fault{kind: ErrReadOnly, cause: fmt.Errorf("the folder %s does not allow writing", dir)}
	}
	f.Close()
	return os.Remove(f.Name())
}

func (db *sqliteDB) uri(extra string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(db.path)}
	return u.String() + "?_txlock=immediate&_pragma=busy_timeout(5000)" + extra
}

// connect opens a connection with a page cache of some KiB. It changes nothing in the file: it may not be ours.
func (db *sqliteDB) connect(cacheKiB int) (*sqliteConn, error) {
	connector, err := sqlite.NewConnector(db.uri(fmt.Sprintf(
		"&_pragma=cache_size(-%d)&_pragma=temp_store(memory)&_pragma=synchronous(normal)&_pragma=wal_autocheckpoint(2000)", cacheKiB)))
	if err != nil {
		return nil, err
	}
	dc, err := connector.Connect(context.Background())
	if err != nil {
		return nil, sqliteOpenError(db.path, err)
	}
	c := &sqliteConn{c: dc, prepared: map[*Stmt]*sqliteStmt{}}
	db.open = append(db.open, c)
	return c, nil
}

// sqliteOpenError adds what SQLite does not say.
func sqliteOpenError(path string, err error) error {
	err = translate(err)
	if errors.Is(err, ErrMissing) {
		return &fault{kind: ErrReadOnly, cause: fmt.Errorf("%s or its folder does not allow reading and writing: %w", path, err)}
	}
	return err
}

// prepareFile checks that the file is deepcrawl's, and sets up an empty one when it may.
func (c *sqliteConn) prepareFile(create bool) error {
	tables, err := c.pragma("SELECT count(*) FROM sqlite_master")
	if err != nil {
		return err
	}
	id, err := c.pragma("PRAGMA application_id")
	if err != nil {
		return err
	}
	switch {
	case id == applicationID:
		if mode, err := c.text("PRAGMA journal_mode"); err != nil || mode == "wal" {
			return err
		}
	case tables > 0 || id != 0:
		return &fault{kind: ErrForeign, cause: errors.New("it is another application's SQLite file")}
	case !create:
		return &fault{kind: ErrSchema, cause: errors.New("the file is empty; deepcrawl migrate prepares it")}
	}
	synchronous := "normal"
	if tables == 0 { // nothing a loss of power could take: setting the file up does not wait for the disk
		synchronous = "off"
	}
	// Incremental: the room of deleted rows can be given back in small steps. It cannot be had later without writing the file anew.
	for _, p := range []string{
		"synchronous = " + synchronous, "page_size = 4096", "auto_vacuum = incremental", fmt.Sprintf("application_id = %d", applicationID),
	} {
		if err := c.exec("PRAGMA " + p); err != nil {
			return err
		}
	}
	mode, err := c.text("PRAGMA journal_mode = wal")
	switch {
	case err != nil:
		return err
	case mode != "wal":
		return &fault{kind: ErrUnsupported, cause: fmt.Errorf("the file system allows no write-ahead log (journal mode stays %s)", mode)}
	}
	return c.exec("PRAGMA synchronous = normal")
}

func (db *sqliteDB) write(ctx context.Context) (session, error) {
	select {
	case c, ok := <-db.writer:
		if ok {
			return &sqliteSession{c: c, home: db.writer, begin: stmtBeginImmediate}, nil
		}
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (db *sqliteDB) read(ctx context.Context) (session, error) {
	select {
	case c, ok := <-db.readers:
		if ok {
			return &sqliteSession{c: c, home: db.readers, begin: stmtBegin}, nil
		}
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errClosed = &fault{kind: ErrUnavailable, cause: errors.New("the database is closed")}

func (db *sqliteDB) migrator(context.Context) (*sql.DB, func(), error) {
	// As for all others: in WAL mode synchronous NORMAL cannot damage the file, and a migration is not waited for a dozen times.
	connector, err := sqlite.NewConnector(db.uri("&_pragma=synchronous(normal)"))
	if err != nil {
		return nil, nil, err
	}
	h := sql.OpenDB(connector)
	h.SetMaxOpenConns(1)
	return h, func() { h.Close() }, nil
}

func (db *sqliteDB) identity(ctx context.Context) (durable, life string, err error) {
	fi, err := os.Stat(db.path)
	if err != nil {
		return "", "", &fault{kind: ErrMissing, cause: err}
	}
	return inode(fi), "", nil
}

// compactPages is how many pages a step of compact moves: a write transaction of some milliseconds.
const compactPages = 256

// compact moves pages from the file's end into free ones, and cuts it. Between steps others have as long as a step took.
func (db *sqliteDB) compact(ctx context.Context) error {
	for {
		began := time.Now()
		left, err := db.compactStep(ctx)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-time.After(time.Since(began)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// compactStep returns how many free pages are left to be given back.
func (db *sqliteDB) compactStep(ctx context.Context) (left int64, err error) {
	var c *sqliteConn
	select {
	case w, ok := <-db.writer:
		if !ok {
			return 0, errClosed
		}
		c = w
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	s := &sqliteSession{c: c, home: db.writer, begin: stmtBeginImmediate}
	defer func() { s.close(err == nil) }()
	if mode, err := c.pragma("PRAGMA auto_vacuum"); err != nil || mode != 2 {
		return 0, err // a file of an earlier release
	}
	if err := s.start(ctx); err != nil {
		return 0, translate(err)
	}
	s.begun = true
	if _, err := c.value(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", compactPages)); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if left, err = c.pragma("PRAGMA freelist_count"); err != nil {
		return 0, err
	}
	if _, err := s.run(stmtCommit, nil, nil); err != nil {
		return 0, translate(err)
	}
	s.begun = false
	if left == 0 {
		_, err = c.value("PRAGMA wal_checkpoint(TRUNCATE)") // what others still read is cut later
	}
	return left, err
}

func (db *sqliteDB) close() error {
	db.once.Do(func() {
		for range cap(db.writer) {
			<-db.writer
		}
		for range cap(db.readers) {
			<-db.readers
		}
		close(db.writer)
		close(db.readers)
		db.err = db.closeAll()
	})
	return db.err
}

func (db *sqliteDB) closeAll() error {
	var errs []error
	for i := len(db.open) - 1; i >= 0; i-- { // the writer last: it checkpoints
		errs = append(errs, db.open[i].close())
	}
	return errors.Join(errs...)
}

// sqliteConn is a connection with its prepared statements.
type sqliteConn struct {
	c        driver.Conn
	prepared map[*Stmt]*sqliteStmt
}

type sqliteStmt struct {
	st   driver.Stmt
	exec driver.StmtExecContext
	qry  driver.StmtQueryContext
	refs []ref
	args []driver.NamedValue
	vals []driver.Value
	row  Row
}

var (
	stmtBeginImmediate = &Stmt{name: "begin immediate", dialect: SQLite, text: "BEGIN IMMEDIATE"}
	stmtBegin          = &Stmt{name: "begin", dialect: SQLite, text: "BEGIN"}
	stmtCommit         = &Stmt{name: "commit", dialect: SQLite, text: "COMMIT"}
	stmtRollback       = &Stmt{name: "rollback", dialect: SQLite, text: "ROLLBACK"}
)

func (c *sqliteConn) prepare(st *Stmt) (*sqliteStmt, error) {
	if p, ok := c.prepared[st]; ok {
		return p, nil
	}
	ds, err := c.c.Prepare(st.text)
	if err != nil {
		return nil, err
	}
	p := &sqliteStmt{st: ds, refs: st.refs, args: make([]driver.NamedValue, len(st.refs))}
	p.exec, p.qry = ds.(driver.StmtExecContext), ds.(driver.StmtQueryContext)
	for i := range p.args {
		p.args[i].Ordinal = i + 1
	}
	p.row.owned = true
	c.prepared[st] = p
	return p, nil
}

func (c *sqliteConn) close() error {
	for _, p := range c.prepared {
		p.st.Close()
	}
	return c.c.Close()
}

func (c *sqliteConn) exec(text string) error {
	_, err := c.c.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return translate(err)
}

func (c *sqliteConn) value(text string) (driver.Value, error) {
	rows, err := c.c.(driver.QueryerContext).QueryContext(context.Background(), text, nil)
	if err != nil {
		return nil, translate(err)
	}
	defer rows.Close()
	dest := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(dest); err != nil {
		return nil, translate(err)
	}
	var first driver.Value
	if len(dest) > 0 {
		first = dest[0]
	}
	for err = error(nil); err == nil; { // some work with each row
		err = rows.Next(dest)
	}
	if err != io.EOF {
		return nil, translate(err)
	}
	return first, nil
}

func (c *sqliteConn) pragma(text string) (int64, error) {
	v, err := c.value(text)
	n, _ := v.(int64)
	return n, err
}

func (c *sqliteConn) text(text string) (string, error) {
	v, err := c.value(text)
	s, _ := v.(string)
	return s, err
}

// bind fills in the arguments of one execution.
func (p *sqliteStmt) bind(args, row []any) {
	for i, r := range p.refs {
		switch r.kind {
		case refIn:
			p.args[i].Value = args[r.i]
		case refCol:
			p.args[i].Value = row[r.i]
		case refNow:
			p.args[i].Value = time.Now().UnixMicro()
		}
	}
}

// sqliteSession is one transaction on a connection that goes back to its home.
type sqliteSession struct {
	c     *sqliteConn
	home  chan *sqliteConn
	begin *Stmt
	begun bool
}

func (s *sqliteSession) eager() bool { return true }

func (s *sqliteSession) flush(ctx context.Context, ops []op, last bool) (bool, error) {
	if !s.begun && len(ops) > 0 {
		if err := s.start(ctx); err != nil {
			return false, err
		}
		s.begun = true
	}
	for i := range ops {
		if err := s.op(ctx, &ops[i]); err != nil {
			return false, fmt.Errorf("%s: %w", ops[i].st.name, translate(err))
		}
	}
	if last && s.begun {
		if _, err := s.run(stmtCommit, nil, nil); err != nil {
			return false, err
		}
		s.begun = false
	}
	return false, nil
}

// How long a transaction waits for other processes to let go of the file, and how often it looks.
const (
	lockWait  = 5 * time.Second
	lockLook  = 100 * time.Microsecond
	lockLooks = 2 * lockLook // a random part of it is added, so that two do not look in step
)

// start begins the transaction. SQLite's own waiting grows to 100 ms between looks, and starves beside a process that takes the file
// again right after each commit.
func (s *sqliteSession) start(ctx context.Context) error {
	deadline := time.Now().Add(lockWait)
	for {
		_, err := s.run(s.begin, nil, nil)
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockLook + rand.N(lockLooks)):
		}
	}
}

func isBusy(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == 5
}

func (s *sqliteSession) op(ctx context.Context, o *op) error {
	p, err := s.c.prepare(o.st)
	if err != nil {
		return err
	}
	n := 1
	width := len(o.st.rows)
	if o.tab != nil {
		n = o.tab.n
	}
	for i := range n {
		var row []any
		if o.tab != nil {
			row = o.tab.row(i, width)
		}
		p.bind(o.args, row)
		if o.each != nil {
			err = p.query(ctx, o.each)
		} else {
			var got int64
			got, err = p.run()
			o.count.N += got
		}
		if err != nil {
			return err
		}
	}
	if o.exact >= 0 && o.count.N != o.exact {
		return &fault{kind: ErrMismatch, cause: fmt.Errorf("%d rows, not %d", o.count.N, o.exact)}
	}
	return nil
}

func (s *sqliteSession) run(st *Stmt, args, row []any) (int64, error) {
	p, err := s.c.prepare(st)
	if err != nil {
		return 0, err
	}
	p.bind(args, row)
	return p.run()
}

// run and query give the driver a context that cannot end: watching one costs a goroutine a statement, and statements are short.
func (p *sqliteStmt) run() (int64, error) {
	res, err := p.exec.ExecContext(context.Background(), p.args)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (p *sqliteStmt) query(ctx context.Context, each func(*Row) error) (err error) {
	rows, err := p.qry.QueryContext(context.Background(), p.args)
	if err != nil {
		return err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	if p.vals == nil {
		p.vals = make([]driver.Value, len(rows.Columns()))
		p.row.vals = p.vals
	}
	for i := 0; ; i++ {
		if err := rows.Next(p.vals); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		if err := each(&p.row); err != nil {
			return err
		}
		if p.row.err != nil {
			err, p.row.err = p.row.err, nil
			return err
		}
		if i&255 == 255 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func (s *sqliteSession) close(bool) {
	if s.begun {
		// SQLite may have rolled back by itself already (a full disk): then there is nothing to end.
		_, _ = s.run(stmtRollback, nil, nil)
	}
	s.home <- s.c
}
