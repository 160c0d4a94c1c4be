package queue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The statements of the store, see storage/sqlstore/query/mysql, as one would write them for the driver: each transaction is one text
// or two, its values interpolated by the driver.
const (
	myBegin   = `START TRANSACTION`
	myActive  = `SELECT id, allotted FROM run WHERE id = ? AND state = 'crawling' AND deleting = 0`
	myPromote = `UPDATE frontier SET pos = weight + 67108864 WHERE run_id = ? AND host_id = ? AND pos >= 1099511627776
		AND pos <= CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)`
	myPick = `SELECT f.id, f.pos, f.weight, f.via, f.attempts, f.url FROM frontier f
		WHERE f.run_id = ? AND f.host_id = ? AND f.pos >= ? AND f.pos < ? ORDER BY f.pos, f.id LIMIT ? FOR UPDATE SKIP LOCKED`
	myTake    = `DELETE f FROM (%s) r STRAIGHT_JOIN frontier f ON f.run_id = r.run AND f.host_id = r.host AND f.pos = r.pos AND f.id = r.id`
	myUnclaim = `DELETE c FROM (%s) r STRAIGHT_JOIN claim c ON c.run_id = r.run AND c.id = r.id AND c.token = r.token`
	// mySure fails, as a subquery of two rows, where the statement before met another number of rows.
	mySure = `SELECT IF(ROW_COUNT() = ?, 1, (SELECT 1 UNION ALL SELECT 2))`
	myFill = `INSERT INTO frontier (run_id, host_id, pos, id, weight, via, attempts, token, reason, url)
		SELECT u.run_id, u.host_id, u.priority * 65536 + u.depth, u.id, u.priority * 65536 + u.depth, u.via, 0, 0, '', u.url
		FROM url u WHERE u.run_id = ? AND u.id >= ? AND u.id <= ?`
	myFound = `INSERT INTO tally (run_id, shard, name, n)
		SELECT ?, ?, 'discovered', COUNT(*) FROM url u WHERE u.run_id = ? AND u.id >= ? AND u.id <= ? ON DUPLICATE KEY UPDATE tally.n = tally.n + VALUES(n)`
	myTally = `INSERT INTO tally (run_id, shard, name, n) VALUES %s ON DUPLICATE KEY UPDATE tally.n = tally.n + VALUES(n)`
)

// MySQLByHand returns turns that work the queue, whose database dsn names, with a hand-written loop of the store's statements through the
// driver.
func MySQLByHand(ctx context.Context, q *Queue, dsn string, workers int) (turns []Turn, done func(), err error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, nil, err
	}
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName = u.User.Username(), "tcp", u.Host, strings.Trim(u.Path, "/")
	cfg.Passwd, _ = u.User.Password()
	cfg.MultiStatements, cfg.InterpolateParams, cfg.ClientFoundRows, cfg.Timeout = true, true, true, 10*time.Second
	cfg.Params = map[string]string{"tx_isolation": "'READ-COMMITTED'", "time_zone": "'+00:00'"}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(workers)
	db.SetMaxIdleConns(workers)
	h := byHand{q: q, run: int64(q.run), nextID: q.idsByHand()}
	if err := db.QueryRowContext(ctx, "SELECT id FROM host WHERE name = ?", host).Scan(&h.host); err != nil {
		_ = db.Close() // the first error says more
		return nil, nil, err
	}
	for w := range workers {
		owner := fmt.Sprintf("hand.%d", w+1)
		turns = append(turns, func(ctx context.Context) (int, error) { return h.mysqlTurn(ctx, db, owner) })
	}
	return turns, func() { _ = db.Close() }, nil
}

// text is statements to be sent at once, with their values.
type text struct {
	b    strings.Builder
	args []any
}

func (t *text) add(statement string, args ...any) {
	if t.b.Len() > 0 {
		t.b.WriteByte(';')
	}
	t.b.WriteString(statement)
	t.args = append(t.args, args...)
}

// rows is n rows of a derived table with the columns; values is n rows of VALUES.
func rows(n int, columns ...string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		b.WriteString("SELECT ")
		for k, c := range columns {
			if k > 0 {
				b.WriteString(", ")
			}
			b.WriteString("? AS " + c)
		}
	}
	return b.String()
}

func values(n, columns int) string {
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", columns), ",") + ")"
	return strings.TrimSuffix(strings.Repeat(row+",", n), ",")
}

// mysqlTurn runs deadlocks again, as the store does.
func (h byHand) mysqlTurn(ctx context.Context, db *sql.DB, owner string) (int, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var f finished
	if err := again(ctx, c, func() error { f = finished{}; return h.mysqlClaim(ctx, c, owner, &f) }); err != nil {
		return 0, fmt.Errorf("claim: %w", err)
	}
	if len(f.id) == 0 {
		return 0, nil
	}
	if err := again(ctx, c, func() error { return h.mysqlFinish(ctx, c, &f) }); err != nil {
		return 0, fmt.Errorf("finish: %w", err)
	}
	return len(f.id), nil
}

func again(ctx context.Context, c *sql.Conn, call func() error) error {
	for {
		err := call()
		if err == nil {
			return nil
		}
		_, _ = c.ExecContext(ctx, "ROLLBACK") // the first error says more
		var me *mysql.MySQLError
		if !errors.As(err, &me) || me.Number != 1213 && me.Number != 1205 {
			return err
		}
	}
}

func (h byHand) mysqlClaim(ctx context.Context, c *sql.Conn, owner string, f *finished) error {
	var t text
	t.add(myBegin)
	t.add(myActive, h.run)
	t.add(myPromote, h.run, h.host)
	t.add(myPick, h.run, h.host, int64(-1<<62), int64(1<<26), Batch)
	t.add(myPick, h.run, h.host, int64(1<<26), int64(1<<40), Batch)
	r, err := c.QueryContext(ctx, t.b.String(), t.args...)
	if err != nil {
		return err
	}
	defer r.Close()
	base := rand.Int64() >> 2
	var places, claims []any
	for r.NextResultSet() { // the first is the run's
		for r.Next() {
			var id, pos, weight, via, attempts int64
			var url string
			if err := r.Scan(&id, &pos, &weight, &via, &attempts, &url); err != nil {
				return err
			}
			if len(f.id) == Batch {
				continue
			}
			f.add(h.q, id, base+id, int(weight&0xffff))
			places = append(places, h.run, h.host, pos, id)
			claims = append(claims, h.run, id, base+id, owner, attempts)
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	n := len(f.id)
	t = text{}
	if n > 0 {
		t.add(fmt.Sprintf(myTake, rows(n, "run", "host", "pos", "id")), places...)
		t.add(mySure, n)
		t.add("INSERT INTO claim (run_id, id, token, owner, attempts) VALUES "+values(n, 5), claims...)
	}
	t.add("COMMIT")
	_, err = c.ExecContext(ctx, t.b.String(), t.args...)
	return err
}

func (h byHand) mysqlFinish(ctx context.Context, c *sql.Conn, f *finished) error {
	n := len(f.id)
	low, shard := h.nextID(int64(n)), rand.Int64N(16)
	var gone, pages, links, urls, counts []any
	for i := range n {
		gone = append(gone, h.run, f.id[i], f.token[i])
		pages = append(pages, h.run, f.id[i], f.token[i], f.state[i], f.status[i], f.attempts[i], f.outlinks[i], f.bytes[i], f.wire[i], f.ttfb[i], f.total[i],
			f.reason[i], f.ctype[i], f.title[i], f.redirect[i], f.facts[i])
		links = append(links, h.run, f.id[i], f.links[i])
		urls = append(urls, h.run, low+int64(i), f.key[i], h.host, f.priority[i], f.depth[i], f.id[i], f.lastmod[i], f.url[i])
	}
	names, sums := f.tally()
	for i := range names {
		counts = append(counts, h.run, shard, names[i], sums[i])
	}
	var t text
	t.add(myBegin)
	t.add(fmt.Sprintf(myUnclaim, rows(n, "run", "id", "token")), gone...)
	t.add(mySure, n)
	t.add("INSERT INTO page (run_id, id, token, state, status, attempts, outlinks, bytes, wire_bytes, ttfb_us, total_us, reason, content_type, title, redirect_to, facts) VALUES "+
		values(n, 16), pages...)
	t.add("INSERT INTO page_link (run_id, id, links) VALUES "+values(n, 3), links...)
	t.add("INSERT IGNORE INTO url (run_id, id, ukey, host_id, priority, depth, via, lastmod, url) VALUES "+values(n, 9), urls...)
	t.add(myFill, h.run, low, low+int64(n)-1)
	t.add(myFound, h.run, shard, h.run, low, low+int64(n)-1)
	t.add(fmt.Sprintf(myTally, values(len(names), 4)), counts...)
	t.add("COMMIT")
	_, err := c.ExecContext(ctx, t.b.String(), t.args...)
	return err
}
