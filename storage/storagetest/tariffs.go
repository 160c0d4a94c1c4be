package storagetest

import (
	"slices"
	"testing"
	"time"

	"deepcrawl/storage"
)

// shown returns the candidates a worker without a seat sees.
func shown(t testing.TB, s storage.Store, maxSeats int) []storage.Candidate {
	t.Helper()
	var list []storage.Candidate
	_, _, ok, err := s.Pick(t.Context(), "looks", maxSeats, nil, func(all []storage.Candidate) int { list = slices.Clone(all); return -1 })
	if ok || err != nil {
		t.Fatalf("choosing none: got %v %v", ok, err)
	}
	return list
}

func wantShown(t testing.TB, s storage.Store, want ...storage.RunID) {
	t.Helper()
	var got []storage.RunID
	for _, c := range shown(t, s, 0) {
		got = append(got, c.Run)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got runs %v shown, want %v", got, want)
	}
}

// take picks a run for an owner, or fails the test.
func take(t testing.TB, s storage.Store, owner storage.Owner, run storage.RunID) storage.Seat {
	t.Helper()
	seat, _, ok, err := s.Pick(t.Context(), owner, 0, nil, func(all []storage.Candidate) int {
		return slices.IndexFunc(all, func(c storage.Candidate) bool { return c.Run == run })
	})
	if !ok || err != nil || seat.Run != run {
		t.Fatalf("pick run %d: got %+v %v %v", run, seat, ok, err)
	}
	return seat
}

func setState(t testing.TB, s storage.Store, run storage.RunID, to storage.RunState) storage.Run {
	t.Helper()
	return must(s.SetRunState(t.Context(), run, storage.RunStates(), to, "", time.Time{}))(t)
}

func testParallel(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	addTenant(t, s, "acme", storage.Tariff{Parallel: 2})
	var runs []storage.RunID
	for range 5 {
		runs = append(runs, queued(t, s, "acme"))
	}
	t.Run("as many of the oldest queued runs are shown as may be active", func(t *testing.T) {
		wantShown(t, s, runs[0], runs[1])
		take(t, s, "a", runs[1])
		wantShown(t, s, runs[0])
		take(t, s, "a", runs[0])
		wantShown(t, s)
	})
	t.Run("crawling and finishing runs are active", func(t *testing.T) {
		setState(t, s, runs[0], storage.RunCrawling)
		wantShown(t, s, runs[0])
		setState(t, s, runs[0], storage.RunFinishing)
		wantShown(t, s)
	})
	t.Run("a run that is over, paused or queued again makes room for the next", func(t *testing.T) {
		setState(t, s, runs[0], storage.RunDone)
		wantShown(t, s, runs[2])
		take(t, s, "a", runs[2])
		setState(t, s, runs[2], storage.RunCrawling)
		setState(t, s, runs[2], storage.RunPaused)
		wantShown(t, s, runs[3])
		setState(t, s, runs[1], storage.RunQueued)
		check(t, s.Leave(ctx, "a", storage.Seat{Run: runs[1], N: 1}))
		wantShown(t, s, runs[1], runs[3])
	})
	t.Run("a run resumed while there is room goes on at once", func(t *testing.T) {
		if run := setState(t, s, runs[2], storage.RunCrawling); run.State != storage.RunCrawling {
			t.Errorf("got %+v", run)
		}
		wantShown(t, s, runs[1], runs[2])
	})
	t.Run("a run resumed without room waits and goes on where it was", func(t *testing.T) {
		setState(t, s, runs[2], storage.RunPaused)
		check(t, s.Leave(ctx, "a", storage.Seat{Run: runs[2], N: 1}))
		take(t, s, "a", runs[1])
		take(t, s, "a", runs[3])
		run := setState(t, s, runs[2], storage.RunCrawling)
		if run.State != storage.RunQueued || run.Resume != storage.RunCrawling {
			t.Errorf("got %+v", run)
		}
		wantShown(t, s)
		setState(t, s, runs[1], storage.RunDone)
		wantShown(t, s, runs[2])
		take(t, s, "b", runs[2])
		if run := must(s.Run(ctx, runs[2]))(t); run.State != storage.RunCrawling || run.Resume == storage.RunCrawling {
			t.Errorf("got %+v", run)
		}
	})
	t.Run("a changed tariff counts from the next pick on, and ends nothing", func(t *testing.T) {
		check(t, s.PutTariff(ctx, storage.Tariff{Name: "of-acme", Parallel: 3}))
		wantShown(t, s, runs[2], runs[4]) // run 3 prepares on its one seat
		check(t, s.PutTariff(ctx, storage.Tariff{Name: "of-acme", Parallel: 1}))
		wantShown(t, s, runs[2])
		setState(t, s, runs[3], storage.RunDone)
		wantShown(t, s, runs[2])
		setState(t, s, runs[2], storage.RunDone)
		wantShown(t, s, runs[4])
		check(t, s.PutTenant(ctx, storage.Tenant{Name: "acme", Tariff: "unlimited"}))
		wantShown(t, s, runs[4])
	})
	t.Run("a tariff without limit shows all", func(t *testing.T) {
		more := []storage.RunID{runs[4], queued(t, s, "acme"), queued(t, s, "acme"), queued(t, s, "acme")}
		wantShown(t, s, more...)
		for _, run := range more {
			take(t, s, "a", run)
		}
		wantShown(t, s)
	})
	t.Run("a run reserved for a node holds up only that node's", func(t *testing.T) {
		addTenant(t, s, "home", storage.Tariff{Parallel: 1})
		reserve := func(home string) storage.RunID {
			return must(s.CreateRun(ctx, storage.NewRun{Tenant: "home", Site: host, Home: home}))(t).ID
		}
		dead, second, free, other := reserve("n1"), reserve("n1"), queued(t, s, "home"), reserve("n2")
		wantShown(t, s, dead, free)
		take(t, s, "a", free)
		wantShown(t, s)
		setState(t, s, free, storage.RunDone)
		wantShown(t, s, dead, other)
		setState(t, s, dead, storage.RunCancelled)
		wantShown(t, s, second, other)
	})
}

func testWorkers(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	addTenant(t, s, "acme", storage.Tariff{Workers: 3})
	run := func(concurrency int) storage.RunID {
		id := must(s.CreateRun(ctx, storage.NewRun{Tenant: "acme", Site: host, Concurrency: concurrency}))(t).ID
		setState(t, s, id, storage.RunCrawling)
		return id
	}
	free, narrow, wide := run(0), run(2), run(9)
	allowed := func(t *testing.T, maxSeats int, want map[storage.RunID]int) {
		t.Helper()
		for _, c := range shown(t, s, maxSeats) {
			if c.Allowed != want[c.Run] {
				t.Errorf("run %d: got %d allowed, want %d", c.Run, c.Allowed, want[c.Run])
			}
		}
	}
	t.Run("the smallest of tariff, profile and node wins", func(t *testing.T) {
		allowed(t, 0, map[storage.RunID]int{free: 3, narrow: 2, wide: 3})
		allowed(t, 1, map[storage.RunID]int{free: 1, narrow: 1, wide: 1})
		allowed(t, 8, map[storage.RunID]int{free: 3, narrow: 2, wide: 3})
	})
	t.Run("changes count at the next pick", func(t *testing.T) {
		check(t, s.PutTariff(ctx, storage.Tariff{Name: "of-acme", Workers: 0}))
		allowed(t, 0, map[storage.RunID]int{free: 0, narrow: 2, wide: 9})
		allowed(t, 4, map[storage.RunID]int{free: 4, narrow: 2, wide: 4})
		for range 4 {
			take(t, s, "a", wide)
		}
		check(t, s.PutTariff(ctx, storage.Tariff{Name: "of-acme", Workers: 2}))
		wantShown(t, s, free, narrow)
		for n := range 3 {
			check(t, s.Leave(ctx, "a", storage.Seat{Run: wide, N: n + 1}))
		}
		wantShown(t, s, free, narrow, wide)
		if seat := take(t, s, "a", wide); seat.N != 1 {
			t.Errorf("got seat %d", seat.N)
		}
		wantShown(t, s, free, narrow)
	})
	t.Run("runs of a suspended tenant are not shown, and are again", func(t *testing.T) {
		check(t, s.PutTenant(ctx, storage.Tenant{Name: "acme", Tariff: "of-acme", Suspended: true}))
		queued(t, s, "acme")
		wantShown(t, s)
		held := storage.Seat{Run: wide, N: 1}
		_, _, ok, err := s.Pick(ctx, "a", 0, &held, func(all []storage.Candidate) int { return len(all) - 1 })
		if ok || err != nil {
			t.Errorf("its worker goes on: got %v %v", ok, err)
		}
		check(t, s.PutTenant(ctx, storage.Tenant{Name: "acme", Tariff: "of-acme"}))
		if got := shown(t, s, 0); len(got) != 3 {
			t.Errorf("got %+v", got)
		}
	})
}
