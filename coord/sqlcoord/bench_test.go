package sqlcoord_test

import (
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
)

// BenchmarkGrant grants and returns one slot of a host and one of a run, beside the least a transaction of as many round trips can cost.
func BenchmarkGrant(b *testing.B) {
	for _, on := range []struct {
		name string
		dsn  func(testing.TB) string
	}{{"SQLite", sqliteDSN}, {"PostgreSQL", testenv.Postgres}, {"MariaDB", testenv.MySQL}} {
		b.Run(on.name, func(b *testing.B) {
			dsn := on.dsn(b)
			if _, err := sqlcoord.Migrate(b.Context(), dsn); err != nil {
				b.Fatal(err)
			}
			trips := 0
			c := open(b, dsn, sqlcoord.Options{Connections: 1, RoundTrip: func() { trips++ }})
			r, err := c.Register(b.Context(), coord.Registration{Node: "a"})
			if err != nil {
				b.Fatal(err)
			}
			beat, err := c.Beat(b.Context(), coord.Beat{Member: r.Member, Seq: 1})
			if err != nil {
				b.Fatal(err)
			}
			v := coord.View{Epoch: 1, Mode: coord.ModeDB, DB: beat.DB, Until: beat.Now + coord.Micros(time.Hour/time.Microsecond)}
			tok := coord.Token(0)
			var grants, returns []time.Duration
			b.Run("grant and return", func(b *testing.B) {
				grants, returns, trips = grants[:0], returns[:0], 0
				for b.Loop() {
					tok += 2
					begin := time.Now()
					g, err := c.Grant(b.Context(), coord.Ask{Member: r.Member, View: v, Groups: [][]coord.AskKey{{
						{Key: "host:example.com", Cap: 24, Token: tok - 1}, {Key: "run:1", Cap: 8, Token: tok},
					}}})
					if err != nil || len(g.Groups[0].N) != 2 {
						b.Fatal(g, err)
					}
					middle := time.Now()
					if err := c.Return(b.Context(), coord.Return{Member: r.Member, View: v, Tokens: []coord.Token{tok - 1, tok}}); err != nil {
						b.Fatal(err)
					}
					grants, returns = append(grants, middle.Sub(begin)), append(returns, time.Since(middle))
				}
				report(b, "grant", grants)
				report(b, "return", returns)
				b.ReportMetric(float64(trips)/float64(len(grants)), "trips/op")
			})
			b.Run("least", func(b *testing.B) { least(b, dsn) })
		})
	}
}

func report(b *testing.B, what string, d []time.Duration) {
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)/2].Microseconds()), what+"_p50_us")
	b.ReportMetric(float64(d[len(d)*99/100].Microseconds()), what+"_p99_us")
}

// least is a transaction that reads a row, inserts another, and one that deletes it: what a hand-written limiter would do.
func least(b *testing.B, dsn string) {
	db, err := sqldb.Open(b.Context(), dsn, sqldb.Options{Writers: 1, Readers: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	set, err := sqldb.Load(leastQueries, db.Dialect())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := db.Do(b.Context(), func(tx *sqldb.Tx) error {
			tx.Query(set.Get("read"), func(*sqldb.Row) error { return nil })
			if err := tx.Flush(); err != nil {
				return err
			}
			tx.Exec(set.Get("add"))
			return nil
		}); err != nil {
			b.Fatal(err)
		}
		if err := db.Do(b.Context(), func(tx *sqldb.Tx) error { tx.Exec(set.Get("delete")); return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

var leastQueries = fstest.MapFS{"least.sql": {Data: []byte(`
-- name: read
SELECT COUNT(*) FROM coord_slot s WHERE s.slot_key = 'host:least'

-- name: add
INSERT INTO coord_slot (slot_key, n, node_id, incarnation, token, epoch, cap) VALUES ('host:least', 1, 'least', 1, 1, 1, 1)

-- name: delete
DELETE FROM coord_slot WHERE slot_key = 'host:least'
`)}}
