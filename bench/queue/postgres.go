package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The statements of the store, see storage/sqlstore/query, as one would write them for pgx.
const (
	pgPromote = `UPDATE frontier SET pos = weight + 67108864 WHERE run_id = $1 AND host_id = $2 AND pos >= 1099511627776
		AND pos <= (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
	pgClaim = `WITH active AS MATERIALIZED (
		SELECT $3::bigint AS fresh FROM run WHERE id = $1 AND state = 'crawling' AND deleting = 0
	), queued AS MATERIALIZED (
		SELECT f.ctid AS tid, f.pos, f.id, f.weight FROM frontier f WHERE f.run_id = $1 AND f.host_id = $2 AND f.pos < 67108864
		ORDER BY f.pos, f.id LIMIT COALESCE((SELECT fresh FROM active), 0) FOR UPDATE SKIP LOCKED
	), held AS MATERIALIZED (
		SELECT f.ctid AS tid, f.pos, f.id, f.weight FROM frontier f WHERE f.run_id = $1 AND f.host_id = $2 AND f.pos >= 67108864 AND f.pos < 1099511627776
		ORDER BY f.pos, f.id LIMIT (SELECT CASE WHEN EXISTS (SELECT 1 FROM active) THEN $3::bigint ELSE 0 END) FOR UPDATE SKIP LOCKED
	), picked AS MATERIALIZED (
		SELECT x.tid FROM (SELECT * FROM queued UNION ALL SELECT * FROM held) x
		ORDER BY CASE WHEN x.pos < 0 THEN x.pos ELSE x.weight END, x.id LIMIT $3::bigint
	), gone AS (
		DELETE FROM frontier f WHERE f.ctid = ANY (ARRAY(SELECT p.tid FROM picked p)) RETURNING f.id, f.pos, f.weight, f.via, f.attempts, f.url
	), taken AS (
		INSERT INTO claim (run_id, id, token, owner, attempts) SELECT $1, g.id, $4::bigint + g.id, $5, g.attempts FROM gone g
	)
	SELECT g.id, g.weight, g.url FROM gone g`
	pgUnclaim = `WITH checked AS (
		DELETE FROM claim c USING (SELECT * FROM unnest($2::bigint[], $3::bigint[]) AS input(id, token)) r
		WHERE c.run_id = $1 AND c.id = r.id AND c.token = r.token RETURNING 1
	) SELECT 1 / (CASE WHEN count(*) = $4::bigint THEN 1 ELSE 0 END) FROM checked`
	pgPage = `INSERT INTO page (run_id, id, token, fetched, state, status, attempts, outlinks, bytes, wire_bytes, ttfb_us, total_us, reason, content_type, title, redirect_to, facts)
		SELECT $1, r.id, r.token, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, r.state, r.status, r.attempts, r.outlinks, r.bytes, r.wire, r.ttfb, r.total,
		r.reason, r.ctype, r.title, r.redirect, r.facts
		FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[],
		$12::text[], $13::text[], $14::text[], $15::text[], $16::bytea[])
		AS r(id, token, state, status, attempts, outlinks, bytes, wire, ttfb, total, reason, ctype, title, redirect, facts)`
	pgLink = `INSERT INTO page_link (run_id, id, links) SELECT $1, * FROM unnest($2::bigint[], $3::bytea[])`
	pgURL  = `INSERT INTO url (run_id, id, ukey, host_id, priority, depth, via, lastmod, discovered, url)
		SELECT $1, r.id, r.ukey, $2, r.priority, r.depth, r.via, r.lastmod, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, r.url
		FROM unnest($3::bigint[], $4::bytea[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[]) AS r(id, ukey, priority, depth, via, lastmod, url)
		ON CONFLICT (run_id, ukey) DO NOTHING`
	pgFill = `INSERT INTO frontier (run_id, host_id, pos, id, weight, via, attempts, token, reason, url)
		SELECT u.run_id, u.host_id, u.priority * 65536 + u.depth, u.id, u.priority * 65536 + u.depth, u.via, 0, 0, '', u.url
		FROM url u WHERE u.run_id = $1 AND u.id >= $2 AND u.id <= $3`
	pgFound = `INSERT INTO tally (run_id, shard, name, n)
		SELECT $1, $4, 'discovered', COUNT(*) FROM url u WHERE u.run_id = $1 AND u.id >= $2 AND u.id <= $3
		ON CONFLICT (run_id, shard, name) DO UPDATE SET n = tally.n + excluded.n`
	pgTally = `INSERT INTO tally (run_id, shard, name, n) SELECT $1, $2, r.name, r.n FROM unnest($3::text[], $4::bigint[]) AS r(name, n)
		ON CONFLICT (run_id, shard, name) DO UPDATE SET n = tally.n + excluded.n`
)

// byHand works a queue with statements of its own.
type byHand struct {
	q      *Queue
	run    int64
	host   int64
	nextID func(n int64) (low int64)
}

// PostgresByHand returns turns that work the queue, whose database dsn names, with a hand-written loop of the store's statements through pgx.
func PostgresByHand(ctx context.Context, q *Queue, dsn string, workers int) (turns []Turn, done func(), err error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, nil, err
	}
	cfg.MaxConns = int32(workers)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	h := byHand{q: q, run: int64(q.run), nextID: q.idsByHand()}
	if err := pool.QueryRow(ctx, "SELECT id FROM host WHERE name = $1", host).Scan(&h.host); err != nil {
		pool.Close()
		return nil, nil, err
	}
	for w := range workers {
		owner := fmt.Sprintf("hand.%d", w+1)
		turns = append(turns, func(ctx context.Context) (int, error) { return h.postgresTurn(ctx, pool, owner) })
	}
	return turns, pool.Close, nil
}

func (h byHand) postgresTurn(ctx context.Context, pool *pgxpool.Pool, owner string) (int, error) {
	base := rand.Int64() >> 2
	var b pgx.Batch
	b.Queue(pgPromote, h.run, h.host)
	b.Queue(pgClaim, h.run, h.host, Batch, base, owner)
	br := pool.SendBatch(ctx, &b)
	var f finished
	_, err := br.Exec()
	if err == nil {
		var rows pgx.Rows
		if rows, err = br.Query(); err == nil {
			var id, weight int64
			var url string
			_, err = pgx.ForEachRow(rows, []any{&id, &weight, &url}, func() error { f.add(h.q, id, base+id, int(weight&0xffff)); return nil })
		}
	}
	if err := errors.Join(err, br.Close()); err != nil {
		return 0, fmt.Errorf("claim: %w", err)
	}
	n := int64(len(f.id))
	low := h.nextID(n)
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = low + int64(i)
	}
	shard := rand.Int64N(16)
	b = pgx.Batch{}
	b.Queue(pgUnclaim, h.run, f.id, f.token, n)
	b.Queue(pgPage, h.run, f.id, f.token, f.state, f.status, f.attempts, f.outlinks, f.bytes, f.wire, f.ttfb, f.total, f.reason, f.ctype, f.title, f.redirect, f.facts)
	b.Queue(pgLink, h.run, f.id, f.links)
	b.Queue(pgURL, h.run, h.host, ids, f.key, f.priority, f.depth, f.id, f.lastmod, f.url)
	b.Queue(pgFill, h.run, low, low+n-1)
	b.Queue(pgFound, h.run, low, low+n-1, shard)
	names, counts := f.tally()
	b.Queue(pgTally, h.run, shard, names, counts)
	if err := pool.SendBatch(ctx, &b).Close(); err != nil {
		return 0, fmt.Errorf("finish: %w", err)
	}
	return int(n), nil
}

// finished is the results of a claim, by columns.
type finished struct {
	id, token, state, status, attempts, outlinks, bytes, wire, ttfb, total []int64
	reason, ctype, title, redirect                                         []string
	facts, links                                                           [][]byte

	key             [][]byte // of the new URL found on each
	priority, depth []int64
	lastmod         []int64
	url             []string
}

func (f *finished) add(q *Queue, id, token int64, depth int) {
	p, d := q.page(), q.new(depth)
	for _, c := range []struct {
		to *[]int64
		v  int64
	}{
		{&f.id, id}, {&f.token, token}, {&f.state, int64(p.State)}, {&f.status, int64(p.Status)}, {&f.attempts, int64(p.Attempts)},
		{&f.outlinks, int64(p.Outlinks)}, {&f.bytes, p.Bytes}, {&f.wire, p.WireBytes}, {&f.ttfb, p.TTFB.Microseconds()}, {&f.total, p.Total.Microseconds()},
		{&f.priority, int64(d.Priority)}, {&f.depth, int64(d.Depth)}, {&f.lastmod, 0},
	} {
		*c.to = append(*c.to, c.v)
	}
	f.reason, f.redirect = append(f.reason, ""), append(f.redirect, "")
	f.ctype, f.title = append(f.ctype, p.ContentType), append(f.title, p.Title)
	f.facts, f.links = append(f.facts, p.Facts), append(f.links, p.Links)
	f.key, f.url = append(f.key, d.Key[:]), append(f.url, d.URL)
}

// tally is what the results add to the run's counters.
func (f *finished) tally() (names []string, counts []int64) {
	n := int64(len(f.id))
	return []string{"bytes", "fetched", "status:200", "wire"}, []int64{11000 * n, n, n, 3000 * n}
}

// idsByHand hands out ids beyond those of the store.
func (q *Queue) idsByHand() func(n int64) int64 {
	low := int64(q.run)<<32 + 1<<30
	ids := make(chan int64, 1)
	ids <- low
	return func(n int64) int64 {
		low := <-ids
		ids <- low + n
		return low
	}
}
