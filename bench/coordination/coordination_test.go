// Package coordination_test measures what coordination costs, beside the least that the same servers can do. It needs the servers the
// tests need (README.md of the checkout) and redis-benchmark.
//
//	go test -v -count=1 ./coordination
package coordination_test

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/redis/go-redis/v9"

	"deepcrawl/coord"
	"deepcrawl/coord/failover"
	"deepcrawl/coord/rediscoord"
	"deepcrawl/coord/session"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
)

// length of each measurement.
const length = 2 * time.Second

// most is how many times slower than the least a grant and return may be.
const most = 3

// figures of calls made one after the other by some clients at once.
type figures struct {
	perSecond float64
	p50, p99  time.Duration
}

func (f figures) String() string {
	return fmt.Sprintf("%7.0f/s  p50 %7v  p99 %7v", f.perSecond, f.p50.Round(time.Microsecond), f.p99.Round(time.Microsecond))
}

// measure has clients call for a while.
func measure(t *testing.T, clients int, call func(client int) error) figures {
	t.Helper()
	all := make([][]time.Duration, clients)
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range clients {
		wg.Go(func() {
			for time.Since(begin) < length {
				from := time.Now()
				if err := call(i); err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				all[i] = append(all[i], time.Since(from))
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	d := slices.Concat(all...)
	if len(d) == 0 {
		t.Fatal("nothing was measured")
	}
	slices.Sort(d)
	return figures{float64(len(d)) / took.Seconds(), d[len(d)/2], d[len(d)*99/100]}
}

// client grants and returns a slot of a host of its own and of a run.
type client struct {
	c   coord.Coord
	m   coord.Member
	v   coord.View
	key coord.Key
	tok coord.Token
}

func newClient(t *testing.T, c coord.Coord, i int) *client {
	t.Helper()
	name := fmt.Sprintf("n%d", i)
	r, err := c.Register(t.Context(), coord.Registration{Node: coord.NodeID(name)})
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Beat(t.Context(), coord.Beat{Member: r.Member, Seq: 1})
	if err != nil {
		t.Fatal(err)
	}
	v := coord.View{Epoch: b.Authority.Epoch, Mode: coord.ModeDB, DB: b.DB, Until: b.Now + coord.Micros(time.Hour/time.Microsecond)}
	return &client{c: c, m: r.Member, v: v, key: coord.HostKey(name)}
}

func (c *client) once(ctx context.Context) error {
	c.tok += 2
	keys := []coord.AskKey{{Key: c.key, Cap: 24, Token: c.tok - 1}, {Key: "run:1", Cap: 64, Token: c.tok}}
	g, err := c.c.Grant(ctx, coord.Ask{Member: c.m, View: c.v, Groups: [][]coord.AskKey{keys}})
	if err != nil {
		return err
	}
	if len(g.Groups[0].N) != 2 {
		return fmt.Errorf("granted %+v", g)
	}
	return c.c.Return(ctx, coord.Return{Member: c.m, View: c.v, Tokens: []coord.Token{c.tok - 1, c.tok}})
}

// granting measures a grant and return, one client a node.
func granting(t *testing.T, clients int, open func(i int) coord.Coord) figures {
	t.Helper()
	var all []*client
	for i := range clients {
		all = append(all, newClient(t, open(i), i))
	}
	return measure(t, clients, func(i int) error { return all[i].once(t.Context()) })
}

func verdict(t *testing.T, what string, clients int, got, least figures) {
	t.Helper()
	ratio, word := least.perSecond/got.perSecond, "met"
	if ratio > most {
		word = "NOT MET"
	}
	t.Logf("%-11s %d at once: grant and return %v | least %v | %.2f times, at most %d: %s", what, clients, got, least, ratio, most, word)
	if ratio > most {
		t.Errorf("%s, %d at once: %.2f times slower than the least", what, clients, ratio)
	}
}

var clients = []int{1, 8}

func TestGrantsInDatabases(t *testing.T) {
	for _, on := range []struct {
		name string
		dsn  func(testing.TB) string
	}{
		{"SQLite", func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "coord.db") }},
		{"PostgreSQL", testenv.Postgres}, {"MariaDB", testenv.MySQL},
	} {
		t.Run(on.name, func(t *testing.T) {
			for _, n := range clients {
				dsn := on.dsn(t)
				if _, err := sqlcoord.Migrate(t.Context(), dsn); err != nil {
					t.Fatal(err)
				}
				got := granting(t, n, func(int) coord.Coord {
					c, err := sqlcoord.Open(t.Context(), dsn, sqlcoord.Options{Connections: 1})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = c.Close() }) // it is measured
					return c
				})
				verdict(t, on.name, n, got, least(t, n, dsn))
			}
		})
	}
}

// least is what a hand-written limiter does: a transaction that counts rows and inserts one for each of two keys, and one that deletes
// them.
func least(t *testing.T, n int, dsn string) figures {
	t.Helper()
	var calls []func() error
	for i := range n {
		db, err := sqldb.Open(t.Context(), dsn, sqldb.Options{Writers: 1, Readers: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() }) // it is measured
		set, err := sqldb.Load(leastQueries, db.Dialect())
		if err != nil {
			t.Fatal(err)
		}
		host, run := fmt.Sprintf("host:least%d", i), "run:least"
		calls = append(calls, func() error {
			err := db.Do(t.Context(), func(tx *sqldb.Tx) error {
				tx.Query(set.Get("read"), func(*sqldb.Row) error { return nil }, host, run)
				if err := tx.Flush(); err != nil {
					return err
				}
				tx.Exec(set.Get("add"), host, int64(1), int64(2*i))
				tx.Exec(set.Get("add"), run, int64(i+1), int64(2*i+1))
				return nil
			})
			if err != nil {
				return err
			}
			return db.Do(t.Context(), func(tx *sqldb.Tx) error {
				tx.Exec(set.Get("delete"), host, int64(1))
				tx.Exec(set.Get("delete"), run, int64(i+1))
				return nil
			})
		})
	}
	return measure(t, n, func(i int) error { return calls[i]() })
}

var leastQueries = fstest.MapFS{"least.sql": {Data: []byte(`
-- name: read
-- in: a text, b text
SELECT s.slot_key, s.n FROM coord_slot s WHERE s.slot_key IN (:a, :b)

-- name: add
-- in: key text, n int, token int
INSERT INTO coord_slot (slot_key, n, node_id, incarnation, token, epoch, cap) VALUES (:key, :n, 'least', 1, :token, 1, 1)

-- name: delete
-- in: key text, n int
DELETE FROM coord_slot WHERE slot_key = :key AND n = :n
`)}}

// What makes as many calls as a grant of two keys and as its return, and decides nothing.
const (
	likeGrant = `
redis.call('TIME')
redis.call('INFO', 'server')
redis.call('INFO', 'replication')
redis.call('HMGET', KEYS[1] .. 'g', 'epoch', 'stamp')
for i = 1, 2 do
  redis.call('HGETALL', KEYS[1] .. 's')
  redis.call('HGETALL', KEYS[1] .. 'w')
  redis.call('HSET', KEYS[1] .. 's', i, ARGV[1])
  redis.call('HSET', KEYS[1] .. 'm', i, ARGV[1])
  redis.call('SADD', KEYS[1] .. 'a', 'n')
end
return {'ok', {{1, 1}}, {'host:example.com', 24, 'run:1', 64}}`
	likeReturn = `
for i = 1, 2 do
  redis.call('HGET', KEYS[1] .. 'm', i)
  redis.call('HDEL', KEYS[1] .. 's', i)
  redis.call('HDEL', KEYS[1] .. 'm', i)
end
return {'ok', 2}`
)

func TestGrantsInRedis(t *testing.T) {
	bench, err := exec.LookPath("redis-benchmark")
	if err != nil {
		testenv.Missing(t, "redis", err)
	}
	url, prefix := testenv.Redis(t)
	opt, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(opt)
	defer admin.Close()
	for _, n := range clients {
		got := granting(t, n, func(int) coord.Coord {
			c, err := rediscoord.Open(t.Context(), url, rediscoord.Options{Prefix: fmt.Sprintf("%s%d:", prefix, n), Connections: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() }) // it is measured
			return c
		})
		host, port, _ := strings.Cut(opt.Addr, ":")
		run := func(script string, argument int) figures {
			sha, err := admin.ScriptLoad(t.Context(), script).Result()
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"-h", host, "-p", port, "-c", fmt.Sprint(n), "-n", "20000", "--csv"}
			if opt.Password != "" {
				args = append(args, "-a", opt.Password)
			}
			args = append(args, "EVALSHA", sha, "2", prefix+"b", prefix+"b", strings.Repeat("x", argument))
			out, err := exec.CommandContext(t.Context(), bench, args...).Output()
			if err != nil {
				t.Fatalf("redis-benchmark: %v", err)
			}
			return fromCSV(t, string(out))
		}
		g, r := run(likeGrant, 300), run(likeReturn, 60) // one after the other, as long as the real ones
		both := figures{1 / (1/g.perSecond + 1/r.perSecond), g.p50 + r.p50, g.p99 + r.p99}
		verdict(t, "Redis", n, got, both)
	}
}

// fromCSV reads what redis-benchmark --csv prints: a head, then test, rps, avg, min, p50, p95, p99, max in milliseconds.
func fromCSV(t *testing.T, out string) figures {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) < 2 || len(rows[1]) < 8 {
		t.Fatalf("redis-benchmark printed %q: %v", out, err)
	}
	number := func(i int) float64 {
		v, err := strconv.ParseFloat(rows[1][i], 64)
		if err != nil {
			t.Fatalf("redis-benchmark printed %q: %v", out, err)
		}
		return v
	}
	ms := func(i int) time.Duration { return time.Duration(number(i) * float64(time.Millisecond)) }
	return figures{number(1), ms(4), ms(6)}
}

// TestSwitch moves a cluster with production's times from Redis to the database, three times: an active host's requests never stop, a
// new host waits at most 12 s.
func TestSwitch(t *testing.T) {
	dsn := testenv.Postgres(t)
	if _, err := sqlcoord.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	url, prefix := testenv.Redis(t)
	open := func() *failover.Coord {
		db, err := sqlcoord.Open(t.Context(), dsn, sqlcoord.Options{})
		if err != nil {
			t.Fatal(err)
		}
		second, err := rediscoord.OpenSecond(url, rediscoord.Options{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = second.Close(), db.Close() })
		return failover.New(db, second, nil)
	}
	var all []coord.Session
	for i := range 3 {
		s, err := session.Join(t.Context(), open(), coord.Options{Node: coord.NodeID(fmt.Sprintf("n%d", i)), Role: coord.RoleNode})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Leave(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}()
		all = append(all, s)
	}
	op := open()
	move := func(to coord.Mode) (took time.Duration) {
		a, _, err := op.Authority(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if a.Mode != to {
			if _, err := op.Drain(t.Context(), coord.Drain{From: a.Epoch, Target: to, Pin: to, Reason: "bench"}); err != nil {
				t.Fatal(err)
			}
		}
		for {
			if a, _, err = op.Authority(t.Context()); err == nil && a.Mode == to {
				return time.Since(begin)
			}
			if time.Since(begin) > time.Minute {
				t.Fatalf("not in %s: %+v, %v", to, a, err)
			}
			time.Sleep(20 * time.Millisecond) // poll the row
		}
	}
	var waits []time.Duration
	for round := range 3 {
		move(coord.ModeRedis)
		var wg sync.WaitGroup
		var mu sync.Mutex
		stop := make(chan struct{})
		for i, s := range all {
			wg.Go(func() { // an active host
				need := coord.Need{Keys: []coord.CappedKey{{Key: coord.HostKey(fmt.Sprintf("active%d", i)), Cap: 1}}, N: 1}
				last, running, worst := time.Now(), false, time.Duration(0)
				for {
					select {
					case <-stop:
						t.Logf("active host of node %d: longest pause %v", i, worst.Round(time.Millisecond))
						if worst > time.Second {
							t.Errorf("requests to an active host stopped for %v", worst)
						}
						return
					default:
					}
					if got, err := s.Acquire(t.Context(), need); err == nil && len(got) == 1 && got[0].MayStart() == nil {
						if running {
							worst = max(worst, time.Since(last))
						}
						running, last = true, time.Now()
						time.Sleep(10 * time.Millisecond) // the exchange
						got[0].Release()
					} else {
						time.Sleep(5 * time.Millisecond) // until it has the first slot
					}
				}
			})
		}
		time.Sleep(5 * time.Second) // every host is active, every node has seen the mode
		for i, s := range all {
			wg.Go(func() { // new hosts, one after the other
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					default:
					}
					need := coord.Need{Keys: []coord.CappedKey{{Key: coord.HostKey(fmt.Sprintf("new%d-%d-%d", round, i, n)), Cap: 1}}, N: 1}
					begin := time.Now()
					for {
						got, err := s.Acquire(t.Context(), need)
						if err == nil && len(got) == 1 {
							got[0].Release()
							break
						}
						time.Sleep(20 * time.Millisecond) // until it is granted
					}
					mu.Lock()
					waits = append(waits, time.Since(begin))
					mu.Unlock()
					time.Sleep(50 * time.Millisecond) // a new host every so often
				}
			})
		}
		took := move(coord.ModeDB)
		time.Sleep(3 * time.Second) // every node sees it and is granted by the database
		close(stop)
		wg.Wait()
		t.Logf("switch %d: %v", round+1, took.Round(10*time.Millisecond))
	}
	slices.SortFunc(waits, cmp.Compare)
	worst := waits[len(waits)-1]
	t.Logf("%d new hosts waited: p50 %v, p99 %v, worst %v, at most 12s", len(waits), waits[len(waits)/2].Round(time.Microsecond), waits[len(waits)*99/100].Round(time.Millisecond), worst.Round(time.Millisecond))
	if worst > 12*time.Second {
		t.Errorf("a new host waited %v", worst)
	}
}
