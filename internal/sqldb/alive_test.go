package sqldb_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
)

// beyondPing is an idle time after which pgx, left to itself, would try a connection before it uses it.
const beyondPing = 1100 * time.Millisecond

func TestIdleConnections(t *testing.T) {
	servers := map[string]func(testing.TB, ...string) *testenv.Server{"postgres": testenv.PrivatePostgres, "mysql": testenv.PrivateMariaDB}
	for name, private := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := private(t)
			var trips, retries atomic.Int64
			db, set := prepare(t, s.DSN(), sqldb.Options{
				Writers: 1, Readers: 1, RoundTrip: func() { trips.Add(1) }, Retry: func(error) { retries.Add(1) },
			})
			id := int64(0)
			add := func() error {
				id++
				return db.Do(t.Context(), func(tx *sqldb.Tx) error {
					tx.Exec(set.Get("add"), id, fmt.Sprint("thing ", id), nil)
					return nil
				})
			}
			for range 2 { // statements are prepared
				if err := add(); err != nil {
					t.Fatal(err)
				}
			}
			t.Run("one that was idle is not tried before it is used", func(t *testing.T) {
				time.Sleep(beyondPing) // the pool reads the real clock
				trips.Store(0)
				if err := add(); err != nil || trips.Load() != 1 {
					t.Errorf("got %d round trips (%v), want 1", trips.Load(), err)
				}
			})
			for _, c := range []struct {
				name string
				end  func()
			}{
				{"one of a server that was stopped is replaced before anything is sent on it", func() { s.Stop(testenv.Fast) }},
				{"one of a server that was killed is replaced before anything is sent on it", s.Kill},
			} {
				t.Run(c.name, func(t *testing.T) {
					c.end()
					s.Start()
					time.Sleep(beyondPing)
					retries.Store(0)
					if err := add(); err != nil || retries.Load() != 0 {
						t.Errorf("got %v after %d retries, want none", err, retries.Load())
					}
				})
			}
			if got := len(list(t, db, set)); int64(got) != id {
				t.Errorf("got %d rows, want %d", got, id)
			}
		})
	}
}
