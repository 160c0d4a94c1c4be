// Package sqlcoord coordinates through a database: SQLite, PostgreSQL, MySQL or MariaDB. Decisions are those of coord/core; this
// package locks the rows they are made of, reads them, and writes what was decided, in one transaction each.
//
// Locks: whoever registers or changes the authority locks its row; a beat, an ack or a burial locks the session's row, a grant
// shares it. A grant takes no lock on the key: it inserts the smallest free number, and the primary key (slot_key, n) refuses
// one that another has taken meanwhile, which is then decided anew. Since every grant takes the smallest free number, rows
// never outnumber the cap: the reader that took the highest number saw all below it taken and room left.
//
// Round trips: a beat, a return and a burial 1; a grant, a rate, a lease or a reconcile 2; an ack 3.
package sqlcoord

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
	"deepcrawl/internal/sqldb"
)

//go:embed query migration
var files embed.FS

// Schema describes the tables to sqldb, for migrations.
func Schema() sqldb.Schema {
	m, err := fs.Sub(files, "migration")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sqldb.Schema{Name: "coord", Migrations: m, Oldest: 1, Tables: []string{"coord_session", "coord_slot"}}
}

// Coord is an authority in a database.
type Coord struct {
	db  *sqldb.DB
	set *sqldb.Set
	own bool // db is ours to close
}

var _ coord.Coord = (*Coord)(nil)

// Options of Open.
type Options struct {
	// Create makes a missing SQLite file and migrates an empty or older one.
	Create bool
	// Connections bounds the connections that write. 0: 4.
	Connections int
	// RoundTrip, when set, is called for each wait for the server.
	RoundTrip func()
}

// Open opens the database a DSN names (see sqldb.Open) for coordination alone. Errors are sqldb's.
func Open(ctx context.Context, dsn string, o Options) (*Coord, error) {
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{
		Create: o.Create, Writers: o.Connections, Readers: 1, Name: "deepcrawl coordination", RoundTrip: o.RoundTrip,
		// A stopped process must not keep a row locked (rule 1).
		StatementTimeout: 5 * time.Second, IdleTimeout: 2 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	if o.Create && db.Dialect() == sqldb.SQLite {
		if _, err := db.Migrate(ctx, Schema()); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	c, err := New(ctx, db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	c.own = true
	return c, nil
}

// Migrate brings the schema of the database a DSN names up to date.
func Migrate(ctx context.Context, dsn string) (sqldb.Report, error) {
	db, err := sqldb.Open(ctx, dsn, sqldb.Options{Create: true, Writers: 1, Readers: 1})
	if err != nil {
		return sqldb.Report{}, err
	}
	rep, err := db.Migrate(ctx, Schema())
	return rep, errors.Join(err, db.Close())
}

// New coordinates through a database that is open. It returns sqldb.ErrSchema where deepcrawl migrate is needed.
func New(ctx context.Context, db *sqldb.DB) (*Coord, error) {
	if err := db.Check(ctx, Schema()); err != nil {
		return nil, err
	}
	queries, err := fs.Sub(files, "query")
	if err != nil {
		return nil, err
	}
	set, err := sqldb.Load(queries, db.Dialect())
	if err != nil {
		return nil, err
	}
	return &Coord{db: db, set: set}, nil
}

// Close closes the database if Open opened it.
func (c *Coord) Close() error {
	if !c.own {
		return nil
	}
	return c.db.Close()
}

// errNoLife: the server was restarted and has no life yet.
var errNoLife = errors.New("server has no life")

const maxAttempts = 30

// do runs a transaction, again where others took the same number first.
func (c *Coord) do(ctx context.Context, fn func(tx *sqldb.Tx, inode string) error) error {
	return c.try(ctx, fn, true)
}

// try is do; what must not be done again is not, where it may have been: ErrUnknown. That a server has no life shows in answers
// that may come after the COMMIT.
func (c *Coord) try(ctx context.Context, fn func(tx *sqldb.Tx, inode string) error, again bool) error {
	inode := ""
	for attempt := 1; ; attempt++ {
		if c.db.Dialect() == sqldb.SQLite {
			id, _, err := c.db.Identity(ctx)
			if err != nil {
				return translate(ctx, err)
			}
			inode = id
		}
		err := c.db.Do(ctx, func(tx *sqldb.Tx) error { return fn(tx, inode) })
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errNoLife) && attempt < maxAttempts:
			if err := c.live(ctx); err != nil {
				return translate(ctx, err)
			}
			if !again {
				return &coordError{kind: coord.ErrUnknown, cause: err}
			}
		case errors.Is(err, sqldb.ErrUnique) && attempt < maxAttempts:
		default:
			return translate(ctx, err)
		}
	}
}

// live gives the server a life; who comes first wins.
func (c *Coord) live(ctx context.Context) error {
	return c.db.Do(ctx, func(tx *sqldb.Tx) error {
		tx.Exec(c.set.Get("life_set"), rand.Text())
		return nil
	})
}

// translate makes the contract's sentinels of sqldb's.
func translate(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, coord.ErrStale), errors.Is(err, coord.ErrFenced), errors.Is(err, coord.ErrNoView), errors.Is(err, coord.ErrWaiting),
		errors.Is(err, coord.ErrHeld), errors.Is(err, coord.ErrLost), errors.Is(err, coord.ErrNodeBusy), errors.Is(err, coord.ErrArgument):
		return err
	case errors.Is(err, sqldb.ErrUnknown), ctx.Err() != nil:
		return &coordError{kind: coord.ErrUnknown, cause: err}
	default:
		return &coordError{kind: coord.ErrUnavailable, cause: err}
	}
}

// coordError adds a sentinel to a database's error.
type coordError struct{ kind, cause error }

func (e *coordError) Error() string   { return e.kind.Error() + ": " + e.cause.Error() }
func (e *coordError) Unwrap() []error { return []error{e.kind, e.cause} }

// head is what most transactions look at first.
type head struct {
	c      *Coord
	inode  string
	row    core.SessionRow
	known  bool // the session has a row
	auth   coord.Authority
	server coord.Ident
	now    coord.Micros
}

// session queues the lock and the reading of a session's row, under the statement's name.
func (h *head) session(tx *sqldb.Tx, lock string, m coord.Member) {
	tx.Query(h.c.set.Get(lock), func(r *sqldb.Row) error {
		h.known = true
		h.row = core.SessionRow{Seq: uint64(r.Int(0)), Acked: coord.Epoch(r.Int(1)), State: coord.State(r.Text(2))}
		return nil
	}, string(m.Node), int64(m.Incarnation))
}

// authority queues the reading of the authority, of who answers, and of the time, which is thus after every lock queued before.
func (h *head) authority(tx *sqldb.Tx, lock string) {
	tx.Query(h.c.set.Get(lock), func(r *sqldb.Row) error { h.auth = readAuthority(r); return nil })
	tx.Query(h.c.set.Get("ident"), func(r *sqldb.Row) error {
		h.server = coord.Ident{System: r.Text(0), Start: r.Text(1), Lossy: r.Int(2) != 0}
		switch h.c.db.Dialect() {
		case sqldb.SQLite:
			if h.server.System == "" {
				return errNoLife
			}
			h.server.System += "/" + h.inode
		case sqldb.MySQL:
			if h.server.Start == "" {
				return errNoLife
			}
		}
		return nil
	})
	tx.Query(h.c.set.Get("now"), func(r *sqldb.Row) error { h.now = coord.Micros(r.Int(0)); return nil })
}

// check is what every grant checks, after Flush.
func (h *head) check(v coord.View) error {
	if err := core.CheckSession(0, h.row, h.known, h.auth.Epoch); err != nil {
		return err
	}
	return core.CheckView(0, h.auth, h.server, v, h.now)
}

func readAuthority(r *sqldb.Row) coord.Authority {
	return coord.Authority{
		Epoch: coord.Epoch(r.Int(0)), Mode: coord.Mode(r.Text(1)), Target: coord.Mode(r.Text(2)),
		Redis: coord.RedisIdent{RunID: r.Text(3), ReplID: r.Text(4), Stamp: uint64(r.Int(5))},
		DB:    coord.ParseIdent(r.Text(6)), HoldUntil: coord.Micros(r.Int(7)), ChangedAt: coord.Micros(r.Int(8)), Reason: r.Text(9),
		Falls: int(r.Int(10)), FellAt: coord.Micros(r.Int(11)), Pin: coord.Mode(r.Text(12)),
	}
}

// setAuthority queues the writing of the row.
func (c *Coord) setAuthority(tx *sqldb.Tx, a coord.Authority) {
	tx.ExecExactly(1, c.set.Get("authority_set"), nil, int64(a.Epoch), string(a.Mode), string(a.Target), a.Redis.RunID, a.Redis.ReplID, int64(a.Redis.Stamp),
		a.DB.String(), int64(a.HoldUntil), int64(a.ChangedAt), cut(a.Reason, maxReason), int64(a.Falls), int64(a.FellAt), string(a.Pin))
}

// maxReason is the longest reason kept, in bytes.
const maxReason = 400

// cut shortens a text to n bytes at a character's end.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

func readSlot(r *sqldb.Row) coord.Slot {
	return coord.Slot{
		Key: coord.Key(r.Text(0)), N: int(r.Int(1)), Member: coord.Member{Node: coord.NodeID(r.Text(2)), Incarnation: coord.Incarnation(r.Int(3))},
		Token: coord.Token(r.Int(4)), Epoch: coord.Epoch(r.Int(5)), Cap: int(r.Int(6)),
	}
}

func readWant(r *sqldb.Row) core.Want {
	return core.Want{
		Key: coord.Key(r.Text(0)), Member: coord.Member{Node: coord.NodeID(r.Text(1)), Incarnation: coord.Incarnation(r.Int(2))},
		Cap: int(r.Int(3)), Since: coord.Micros(r.Int(4)), Seen: coord.Micros(r.Int(5)),
	}
}

func encodeHealth(h coord.Health) string {
	b, _ := json.Marshal(h) // it holds nothing that could not be encoded
	return string(b)
}

func decodeHealth(s string) (h coord.Health) {
	_ = json.Unmarshal([]byte(s), &h) // another release's health is as good as none
	return h
}

// encodeFacts keeps facts within what the column takes.
func encodeFacts(f map[string]string) []byte {
	if f == nil {
		f = map[string]string{}
	}
	b, _ := json.Marshal(f)
	if len(b) > coord.MaxFacts {
		b, _ = json.Marshal(map[string]string{"facts": fmt.Sprintf("%d bytes are too many", len(b))})
	}
	return b
}

func decodeFacts(b []byte) (f map[string]string) {
	_ = json.Unmarshal(b, &f)
	return f
}
