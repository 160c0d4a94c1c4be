package sqlcoord_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/coordtest"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/internal/testenv"
)

// disturbed crawls through what a test does to a private server, and requires that it goes on afterwards.
func disturbed(t *testing.T, dsn string, length time.Duration, disturb func(ctx context.Context)) {
	t.Helper()
	if _, err := sqlcoord.Migrate(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var after atomic.Int64
	watch := open(t, dsn, sqlcoord.Options{})
	coordtest.Disturbed(t, func(t testing.TB, _ int) coord.Coord { return open(t, dsn, sqlcoord.Options{}) }, length, true, func(ctx context.Context) {
		disturb(ctx)
		done.Store(true)
		for ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond) // sample the slots
			if s, err := watch.Occupied(ctx, ""); err == nil && len(s) > 0 {
				after.Add(1)
			}
		}
	})
	if !done.Load() || after.Load() == 0 {
		t.Errorf("nothing was granted after the fault (done: %v)", done.Load())
	}
	a, id, err := watch.Authority(t.Context())
	if err != nil || a.DB != id {
		t.Errorf("authority %+v, answered by %+v, %v", a, id, err)
	}
	t.Logf("ends in %s, epoch %d: %s", a.Mode, a.Epoch, a.Reason)
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// TestServerFaults stops, kills and freezes private servers under four sessions.
func TestServerFaults(t *testing.T) {
	t.Parallel() // they mostly wait
	for _, kind := range []struct {
		name   string
		server func(t testing.TB, settings ...string) *testenv.Server
	}{{"PostgreSQL", testenv.PrivatePostgres}, {"MariaDB", testenv.PrivateMariaDB}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			s := kind.server(t)
			for _, f := range []struct {
				name    string
				length  time.Duration
				disturb func(ctx context.Context, s *testenv.Server)
			}{
				{"restarted", 14 * time.Second, func(ctx context.Context, s *testenv.Server) {
					sleep(ctx, 1500*time.Millisecond)
					s.Stop(testenv.Fast)
					sleep(ctx, 300*time.Millisecond)
					s.Start()
				}},
				{"killed", 16 * time.Second, func(ctx context.Context, s *testenv.Server) {
					sleep(ctx, 1500*time.Millisecond)
					s.Kill()
					s.Start()
				}},
				{"frozen past the view", 12 * time.Second, func(ctx context.Context, s *testenv.Server) {
					sleep(ctx, 1500*time.Millisecond)
					s.Signal(syscall.SIGSTOP)
					sleep(ctx, 3*time.Second)
					s.Signal(syscall.SIGCONT)
				}},
				{"frozen past death", 18 * time.Second, func(ctx context.Context, s *testenv.Server) {
					sleep(ctx, 1500*time.Millisecond)
					s.Signal(syscall.SIGSTOP)
					sleep(ctx, coordtest.Timing().Death+time.Second)
					s.Signal(syscall.SIGCONT)
				}},
			} {
				t.Run(f.name, func(t *testing.T) {
					if f.length > 16*time.Second {
						testenv.Large(t)
					}
					disturbed(t, s.DSN(), f.length, func(ctx context.Context) { f.disturb(ctx, s) })
				})
			}
		})
	}
}
