package storagetest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deepcrawl/storage"
)

// addTenant makes a tenant with a tariff of its own.
func addTenant(t testing.TB, s storage.Store, name string, limits storage.Tariff) {
	t.Helper()
	limits.Name = "of-" + name
	check(t, s.PutTariff(t.Context(), limits))
	check(t, s.PutTenant(t.Context(), storage.Tenant{Name: name, Tariff: limits.Name}))
}

// queued makes a run of a tenant that waits.
func queued(t testing.TB, s storage.Store, tenant string) storage.RunID {
	t.Helper()
	return must(s.CreateRun(t.Context(), storage.NewRun{Tenant: tenant, Site: host}))(t).ID
}

func testTenants(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	t.Run("every database has the built-in tariffs and the default tenant", func(t *testing.T) {
		list := must(s.Tariffs(ctx))(t)
		for _, want := range storage.BuiltinTariffs() {
			if !slices.Contains(list, want) {
				t.Errorf("got %+v, %+v is missing", list, want)
			}
		}
		tenant, tariff, err := s.Tenant(ctx, storage.DefaultTenant)
		if err != nil || tenant.Name != storage.DefaultTenant || tariff != (storage.Tariff{Name: "unlimited"}) || tenant.Suspended || tenant.Deleting {
			t.Errorf("got %+v %+v %v", tenant, tariff, err)
		}
		if age := time.Since(tenant.Created); age < -time.Minute || age > time.Hour {
			t.Errorf("created %v ago", age)
		}
	})
	t.Run("tariffs are created, changed and listed by name", func(t *testing.T) {
		x := storage.Tariff{Name: "x-1_A", Parallel: 2, Workers: 3, RunPages: 4, StoredPages: 1 << 40}
		check(t, s.PutTariff(ctx, x))
		x.Workers = 7
		check(t, s.PutTariff(ctx, x))
		check(t, s.PutTariff(ctx, x))
		list := must(open(t).Tariffs(ctx))(t)
		if !slices.Contains(list, x) || len(list) != len(storage.BuiltinTariffs())+1 ||
			!slices.IsSortedFunc(list, func(a, b storage.Tariff) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("bad names and limits are refused and change nothing", func(t *testing.T) {
		for _, bad := range []string{"", "a b", "a/b", "\u00e4", "a\x00", strings.Repeat("x", 65)} {
			if err := s.PutTariff(ctx, storage.Tariff{Name: bad}); err == nil {
				t.Errorf("tariff %q was taken", bad)
			}
			if err := s.PutTenant(ctx, storage.Tenant{Name: bad, Tariff: "small"}); err == nil {
				t.Errorf("tenant %q was taken", bad)
			}
		}
		for _, bad := range []storage.Tariff{{Name: "n", Parallel: -1}, {Name: "n", Workers: -1}, {Name: "n", RunPages: -1}, {Name: "n", StoredPages: -1}} {
			if err := s.PutTariff(ctx, bad); err == nil {
				t.Errorf("%+v was taken", bad)
			}
		}
		wantErr(t, s.PutTenant(ctx, storage.Tenant{Name: "a.example", Tariff: "nosuch"}), storage.ErrNotFound)
		if list := must(s.Tenants(ctx))(t); len(list) != 1 {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("tenants are created, changed and listed by name", func(t *testing.T) {
		check(t, s.PutTenant(ctx, storage.Tenant{Name: "zeta", Tariff: "small"}))
		check(t, s.PutTenant(ctx, storage.Tenant{Name: "Alpha.1", Tariff: "small"}))
		before, _, err := s.Tenant(ctx, "Alpha.1")
		check(t, err)
		check(t, s.PutTenant(ctx, storage.Tenant{Name: "Alpha.1", Tariff: "large", Suspended: true}))
		tenant, tariff, err := open(t).Tenant(ctx, "Alpha.1")
		check(t, err)
		if tenant != (storage.Tenant{Name: "Alpha.1", Tariff: "large", Suspended: true, Created: before.Created}) || tariff.Workers != 12 {
			t.Errorf("got %+v %+v", tenant, tariff)
		}
		var names []string
		for _, x := range must(s.Tenants(ctx))(t) {
			names = append(names, x.Name)
		}
		if !slices.Equal(names, []string{"Alpha.1", "local", "zeta"}) {
			t.Errorf("got %q", names)
		}
		_, _, err = s.Tenant(ctx, "alpha.1")
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a run needs a tenant", func(t *testing.T) {
		_, err := s.CreateRun(ctx, storage.NewRun{Tenant: "ZETA", Site: host})
		wantErr(t, err, storage.ErrNotFound)
		if err != nil && !strings.Contains(err.Error(), "ZETA") {
			t.Errorf("%q does not name the tenant", err)
		}
	})
}

func testStoredPages(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	addTenant(t, s, "acme", storage.Tariff{})
	want := func(t *testing.T, n int64) {
		t.Helper()
		if got := must(s.StoredPages(ctx, "acme"))(t); got != n {
			t.Errorf("got %d pages stored, want %d", got, n)
		}
	}
	work := func(t *testing.T, pages int) storage.RunID {
		t.Helper()
		run := queued(t, s, "acme")
		must(s.SetRunState(ctx, run, []storage.RunState{storage.RunQueued}, storage.RunCrawling, "", time.Time{}))(t)
		discover(t, s, run, finds(0, pages+3)...)
		got := claim(t, s, "o", run, pages+1)
		var results []storage.Result
		for i, c := range got {
			switch i {
			case 0:
				results = append(results, ended(c, storage.Excluded, "robots", 0))
			case 1:
				results = append(results, ended(c, storage.Failed, "http", 500))
			default:
				results = append(results, fetched(c))
			}
		}
		finish(t, s, "o", results...)
		return run
	}
	want(t, 0)
	a, b := work(t, 10), work(t, 20)
	t.Run("fetched and failed pages of all runs count", func(t *testing.T) { want(t, 30) })
	t.Run("those of runs that are over too", func(t *testing.T) {
		must(s.SetRunState(ctx, a, []storage.RunState{storage.RunCrawling}, storage.RunDone, "", time.Time{}))(t)
		want(t, 30)
		want(t, 30)
	})
	t.Run("those of deleted runs do not", func(t *testing.T) {
		for done := false; !done; {
			var err error
			done, err = s.DeleteRun(ctx, a, 5)
			check(t, err)
			want(t, 20)
		}
	})
	t.Run("nor those of other tenants", func(t *testing.T) {
		if got := must(s.StoredPages(ctx, storage.DefaultTenant))(t); got != 0 {
			t.Errorf("got %d", got)
		}
		_, err := s.StoredPages(ctx, "nosuch")
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("a run that goes on counts on", func(t *testing.T) {
		got := claim(t, s, "o", b, 1)
		must(s.SetRunState(ctx, b, []storage.RunState{storage.RunCrawling}, storage.RunCancelled, "", time.Time{}))(t)
		want(t, 20)
		wantOutcomes(t, finish(t, s, "o", fetched(got[0])), storage.OutcomeDone)
		want(t, 21)
	})
}

func testDeleteTenant(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	addTenant(t, s, "gone", storage.Tariff{Parallel: 1})
	addTenant(t, s, "kept", storage.Tariff{Parallel: 1})
	var runs []storage.RunID
	for _, name := range []string{"gone", "kept", "gone", "gone"} {
		run := queued(t, s, name)
		runs = append(runs, run)
		discover(t, s, run, finds(0, 30)...)
	}
	seat, _, ok, err := s.Pick(ctx, "n", 0, nil, func(list []storage.Candidate) int { return 0 })
	if err != nil || !ok || seat.Run != runs[0] {
		t.Fatalf("got %+v %v %v", seat, ok, err)
	}
	must(s.SetRunState(ctx, runs[0], []storage.RunState{storage.RunPreparing}, storage.RunCrawling, "", time.Time{}))(t)
	held := claim(t, s, "n", runs[0], 3)
	for _, name := range []string{"gone", "kept"} {
		must(s.AddSchedule(ctx, storage.Schedule{Tenant: name, Site: host, Every: time.Hour, Next: time.Now().Add(time.Hour)}))(t)
	}
	t.Run("the default tenant and unknown ones cannot be", func(t *testing.T) {
		_, err := s.DeleteTenant(ctx, storage.DefaultTenant, 10)
		wantErr(t, err, storage.ErrState)
		_, err = s.DeleteTenant(ctx, "nosuch", 10)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("it goes in pieces, and from the first on nothing of it is served", func(t *testing.T) {
		calls, done := 0, false
		for !done {
			var err error
			done, err = s.DeleteTenant(ctx, "gone", 20)
			check(t, err)
			if calls++; calls > 100 {
				t.Fatal("it does not end")
			}
			if calls > 1 {
				continue
			}
			if tenant, _, err := s.Tenant(ctx, "gone"); err != nil || !tenant.Deleting {
				t.Errorf("got %+v %v", tenant, err)
			}
			if list := must(s.Tenants(ctx))(t); !slices.ContainsFunc(list, func(x storage.Tenant) bool { return x.Name == "gone" && x.Deleting }) {
				t.Errorf("it is not listed as being deleted: %+v", list)
			}
			_, err = s.CreateRun(ctx, storage.NewRun{Tenant: "gone", Site: host})
			wantErr(t, err, storage.ErrNotFound)
			_, err = s.AddSchedule(ctx, storage.Schedule{Tenant: "gone", Site: host, Every: time.Hour})
			wantErr(t, err, storage.ErrNotFound)
			wantErr(t, s.PutTenant(ctx, storage.Tenant{Name: "gone", Tariff: "small"}), storage.ErrState)
			_, _, _, err = s.Pick(ctx, "n", 0, nil, func(list []storage.Candidate) int {
				for _, c := range list {
					if c.Tenant == "gone" {
						t.Errorf("it is served: %+v", c)
					}
				}
				return -1
			})
			check(t, err)
		}
		if calls < 5 {
			t.Errorf("got %d calls for some 100 rows, 20 at a time", calls)
		}
	})
	t.Run("nothing of it is left", func(t *testing.T) {
		_, _, err := s.Tenant(ctx, "gone")
		wantErr(t, err, storage.ErrNotFound)
		_, err = s.DeleteTenant(ctx, "gone", 10)
		wantErr(t, err, storage.ErrNotFound)
		for _, i := range []int{0, 2, 3} {
			_, err := s.Run(ctx, runs[i])
			wantErr(t, err, storage.ErrNotFound)
		}
		if owners := must(s.Owners(ctx))(t); len(owners) != 0 {
			t.Errorf("claims or seats are left: %q", owners)
		}
		wantOutcomes(t, finish(t, s, "n", fetched(held[0])), storage.OutcomeStale)
	})
	t.Run("others are left whole", func(t *testing.T) {
		wantLedger(t, s, runs[1], 30, 0, 0, 0, 30, 0, 0)
		if list := must(s.Schedules(ctx, ""))(t); len(list) != 1 || list[0].Tenant != "kept" {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("no run outlives it that was created meanwhile", func(t *testing.T) {
		addTenant(t, s, "busy", storage.Tariff{})
		var wg sync.WaitGroup
		var made atomic.Int64
		other := open(t)
		for range 4 {
			wg.Go(func() {
				for {
					_, err := other.CreateRun(ctx, storage.NewRun{Tenant: "busy", Site: host})
					if errors.Is(err, storage.ErrUnavailable) { // another process had the file for too long
						continue
					}
					if err != nil {
						wantErr(t, err, storage.ErrNotFound)
						return
					}
					made.Add(1)
				}
			})
		}
		until(t, "some runs are created", func() bool { return made.Load() >= 10 })
		for done := false; !done; {
			var err error
			done, err = s.DeleteTenant(ctx, "busy", 100)
			if !errors.Is(err, storage.ErrUnavailable) {
				check(t, err)
			}
		}
		wg.Wait()
		if list := must(s.ListRuns(ctx, storage.RunFilter{Tenant: "busy"}))(t); len(list) != 0 {
			t.Errorf("%d of %d runs are left", len(list), made.Load())
		}
	})
	t.Run("its name can be used again", func(t *testing.T) {
		addTenant(t, s, "gone", storage.Tariff{})
		queued(t, s, "gone")
	})
}
