package storagetest

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"deepcrawl/storage"
)

func testRuns(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	spec := []byte{0, 1, 0xff, '\''}
	for _, name := range []string{"acme", "other"} {
		check(t, s.PutTenant(ctx, storage.Tenant{Name: name, Tariff: "unlimited"}))
	}
	made := must(s.CreateRun(ctx, storage.NewRun{Tenant: "acme", Site: "a.example", Spec: spec, Home: "n1", Concurrency: 3}))(t)

	t.Run("a run is stored as it was described", func(t *testing.T) {
		got := must(open(t).Run(ctx, made.ID))(t)
		if got.Tenant != "acme" || got.Site != "a.example" || !bytes.Equal(got.Spec, spec) || got.Home != "n1" || got.Concurrency != 3 ||
			got.State != storage.RunQueued || got.Previous != 0 || !got.Started.IsZero() || !got.Finished.IsZero() {
			t.Errorf("got %+v", got)
		}
		if age := time.Since(got.Created); age < -time.Minute || age > time.Minute {
			t.Errorf("created %v ago", age)
		}
	})
	t.Run("an unknown run is not found", func(t *testing.T) {
		_, err := s.Run(ctx, made.ID+100)
		wantErr(t, err, storage.ErrNotFound)
		_, err = s.Ledger(ctx, made.ID+100)
		wantErr(t, err, storage.ErrNotFound)
		_, err = s.SetRunState(ctx, made.ID+100, storage.RunStates(), storage.RunPaused, "", time.Time{})
		wantErr(t, err, storage.ErrNotFound)
		wantErr(t, s.UpdateRun(ctx, made.ID+100, storage.RunUpdate{}), storage.ErrNotFound)
		_, err = s.Discover(ctx, made.ID+100, finds(0, 1), nil)
		wantErr(t, err, storage.ErrNotFound)
	})
	t.Run("states move only from where they are said to be", func(t *testing.T) {
		_, err := s.SetRunState(ctx, made.ID, []storage.RunState{storage.RunCrawling}, storage.RunFinishing, "", time.Time{})
		wantErr(t, err, storage.ErrState)
		run := must(s.SetRunState(ctx, made.ID, []storage.RunState{storage.RunQueued}, storage.RunPreparing, "", time.Time{}))(t)
		if run.State != storage.RunPreparing || run.Started.IsZero() || !run.Finished.IsZero() {
			t.Errorf("got %+v", run)
		}
		started := run.Started
		soon := time.Now().Add(time.Hour).Truncate(time.Microsecond)
		run = must(s.SetRunState(ctx, made.ID, []storage.RunState{storage.RunPreparing, storage.RunCrawling}, storage.RunPaused, "asked to wait", soon))(t)
		if run.State != storage.RunPaused || run.Resume != storage.RunPreparing || run.Reason != "asked to wait" || !run.Until.Equal(soon) {
			t.Errorf("got %+v", run)
		}
		run = must(s.SetRunState(ctx, made.ID, []storage.RunState{storage.RunPaused}, storage.RunPaused, "still", time.Time{}))(t)
		if run.Resume != storage.RunPreparing || !run.Until.IsZero() {
			t.Errorf("pausing a paused run: got %+v", run)
		}
		run = must(s.SetRunState(ctx, made.ID, []storage.RunState{storage.RunPaused}, run.Resume, "", time.Time{}))(t)
		if run.State != storage.RunPreparing || !run.Started.Equal(started) {
			t.Errorf("got %+v", run)
		}
		run = must(s.SetRunState(ctx, made.ID, []storage.RunState{storage.RunPreparing}, storage.RunDone, "", time.Time{}))(t)
		if run.Finished.IsZero() {
			t.Errorf("got %+v", run)
		}
	})
	t.Run("updates change what they name", func(t *testing.T) {
		home, reason, soon := "n2", "no free worker", time.Now().Add(time.Minute).Truncate(time.Microsecond)
		check(t, s.UpdateRun(ctx, made.ID, storage.RunUpdate{Home: &home, Worked: 3 * time.Second}))
		check(t, s.UpdateRun(ctx, made.ID, storage.RunUpdate{Reason: &reason, Until: &soon, Worked: 2 * time.Second}))
		got := must(s.Run(ctx, made.ID))(t)
		if got.Home != home || got.Reason != reason || !got.Until.Equal(soon) || got.WorkedFor != 5*time.Second || !bytes.Equal(got.Spec, spec) {
			t.Errorf("got %+v", got)
		}
		check(t, s.UpdateRun(ctx, made.ID, storage.RunUpdate{Spec: []byte("new")}))
		if got := must(s.Run(ctx, made.ID))(t); string(got.Spec) != "new" || got.Home != home {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a run knows the last done one of its tenant and site", func(t *testing.T) {
		same := must(s.CreateRun(ctx, storage.NewRun{Tenant: "acme", Site: "a.example"}))(t)
		other := must(s.CreateRun(ctx, storage.NewRun{Tenant: "other", Site: "a.example"}))(t)
		if same.Previous != made.ID || other.Previous != 0 || same.ID <= made.ID || other.ID <= same.ID {
			t.Errorf("got %+v and %+v", same, other)
		}
	})
	t.Run("lists are newest first, filtered and paged", func(t *testing.T) {
		list := must(s.ListRuns(ctx, storage.RunFilter{}))(t)
		if len(list) != 3 || list[2].ID != made.ID || !slices.IsSortedFunc(list, func(a, b storage.Run) int { return int(b.ID - a.ID) }) {
			t.Errorf("got %+v", list)
		}
		if got := must(s.ListRuns(ctx, storage.RunFilter{Before: list[0].ID, Limit: 1}))(t); len(got) != 1 || got[0].ID != list[1].ID {
			t.Errorf("a page: got %+v", got)
		}
		if got := must(s.ListRuns(ctx, storage.RunFilter{Tenant: "other"}))(t); len(got) != 1 {
			t.Errorf("by tenant: got %+v", got)
		}
		if got := must(s.ListRuns(ctx, storage.RunFilter{States: []storage.RunState{storage.RunDone, storage.RunFailed}}))(t); len(got) != 1 || got[0].ID != made.ID {
			t.Errorf("by state: got %+v", got)
		}
		if got := must(s.ListRuns(ctx, storage.RunFilter{Site: "A.example"}))(t); len(got) != 0 {
			t.Errorf("by site: got %+v", got)
		}
	})
	t.Run("the store answers", func(t *testing.T) { check(t, s.Ping(ctx)) })
}

func testSteps(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	run := crawling(t, s)
	old := storage.Fence{Name: "lease", Epoch: 1, Number: 9}
	newer := storage.Fence{Name: "lease", Epoch: 2, Number: 1}
	t.Run("a step never saved is empty", func(t *testing.T) {
		if got := must(s.Step(ctx, run, "prepare.robots"))(t); got.Done || got.Cursor != nil {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("a step keeps its cursor", func(t *testing.T) {
		cursor := []byte{0, 0xff, '\\'}
		check(t, s.SaveStep(ctx, run, storage.Step{Name: "finish.links", Cursor: cursor}, old))
		check(t, s.SaveStep(ctx, run, storage.Step{Name: "finish.audit", Cursor: cursor}, old))
		check(t, s.SaveStep(ctx, run, storage.Step{Name: "finish.audit", Done: true}, old))
		a, b := must(open(t).Step(ctx, run, "finish.links"))(t), must(s.Step(ctx, run, "finish.audit"))(t)
		if !bytes.Equal(a.Cursor, cursor) || a.Done || a.Updated.IsZero() || !b.Done || b.Cursor != nil {
			t.Errorf("got %+v and %+v", a, b)
		}
	})
	t.Run("a newer fence shuts an older one out, everywhere", func(t *testing.T) {
		check(t, s.SaveStep(ctx, run, storage.Step{Name: "finish.links", Cursor: []byte("new")}, newer))
		wantErr(t, s.SaveStep(ctx, run, storage.Step{Name: "finish.links", Cursor: []byte("late")}, old), storage.ErrFenced)
		_, err := s.Discover(ctx, run, finds(0, 3), &old)
		wantErr(t, err, storage.ErrFenced)
		wantErr(t, s.SaveInlinks(ctx, run, nil, old), storage.ErrFenced)
		if got := must(s.Step(ctx, run, "finish.links"))(t); string(got.Cursor) != "new" {
			t.Errorf("got %q", got.Cursor)
		}
		wantLedger(t, s, run, 0, 0, 0, 0, 0, 0, 0)
		if n := must(s.Discover(ctx, run, finds(0, 3), &newer))(t); n != 3 {
			t.Errorf("got %d added, want 3", n)
		}
		other := storage.Fence{Name: "other", Epoch: 1, Number: 1}
		check(t, s.SaveStep(ctx, run, storage.Step{Name: "finish.links"}, other))
	})
	t.Run("steps are forgotten by prefix", func(t *testing.T) {
		check(t, s.SaveStep(ctx, run, storage.Step{Name: "prepare.robots", Done: true}, newer))
		check(t, s.ResetSteps(ctx, run, "finish."))
		if a, b := must(s.Step(ctx, run, "finish.audit"))(t), must(s.Step(ctx, run, "prepare.robots"))(t); a.Done || !b.Done {
			t.Errorf("got %+v and %+v", a, b)
		}
	})
}

func testSeats(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	only := func(id storage.RunID) func([]storage.Candidate) int {
		return func(list []storage.Candidate) int {
			return slices.IndexFunc(list, func(c storage.Candidate) bool { return c.Run == id })
		}
	}
	check(t, s.PutTenant(ctx, storage.Tenant{Name: "acme", Tariff: "unlimited"}))
	run := must(s.CreateRun(ctx, storage.NewRun{Tenant: "acme", Site: host, Concurrency: 2, Home: "n1"}))(t)
	var first storage.Seat
	t.Run("a queued run that is picked begins", func(t *testing.T) {
		seat, got, ok, err := s.Pick(ctx, "a", 0, nil, func(list []storage.Candidate) int {
			if len(list) != 1 || list[0].Run != run.ID || list[0].Tenant != "acme" || list[0].Home != "n1" || list[0].State != storage.RunQueued || list[0].Allowed != 1 ||
				list[0].Occupied != 0 || list[0].Served.IsZero() {
				t.Errorf("got %+v", list)
			}
			return 0
		})
		if err != nil || !ok || seat != (storage.Seat{Run: run.ID, N: 1}) || got.State != storage.RunPreparing || got.Started.IsZero() {
			t.Errorf("got %+v %+v %v %v", seat, got, ok, err)
		}
		first = seat
	})
	t.Run("a run that prepares has one seat", func(t *testing.T) {
		_, _, ok, err := s.Pick(ctx, "b", 0, nil, only(run.ID))
		if ok || err != nil {
			t.Errorf("got %v %v", ok, err)
		}
		seat, _, ok, err := s.Pick(ctx, "a", 0, &first, only(run.ID))
		if !ok || err != nil || seat != first {
			t.Errorf("its holder picks again: got %+v %v %v", seat, ok, err)
		}
	})
	must(s.SetRunState(ctx, run.ID, []storage.RunState{storage.RunPreparing}, storage.RunCrawling, "", time.Time{}))(t)
	t.Run("seats are as many as allowed, by the profile and by the node", func(t *testing.T) {
		_, _, ok, _ := s.Pick(ctx, "b", 1, nil, only(run.ID))
		if ok {
			t.Error("a second seat was taken where one was allowed")
		}
		seat, _, ok, err := s.Pick(ctx, "b", 5, nil, only(run.ID))
		if err != nil || !ok || seat.N != 2 {
			t.Errorf("got %+v %v %v", seat, ok, err)
		}
		if _, _, ok, _ := s.Pick(ctx, "c", 0, nil, only(run.ID)); ok {
			t.Error("a third seat was taken where two were allowed")
		}
	})
	t.Run("a seat that is left is taken again, by its owner's hand only", func(t *testing.T) {
		check(t, s.Leave(ctx, "b", first))
		if _, _, ok, _ := s.Pick(ctx, "c", 0, nil, only(run.ID)); ok {
			t.Error("a seat was given back by another")
		}
		check(t, s.Leave(ctx, "a", first))
		seat, _, ok, err := s.Pick(ctx, "c", 0, nil, only(run.ID))
		if err != nil || !ok || seat != first {
			t.Errorf("got %+v %v %v", seat, ok, err)
		}
	})
	t.Run("choosing none takes none", func(t *testing.T) {
		_, _, ok, err := s.Pick(ctx, "d", 0, nil, func([]storage.Candidate) int { return -1 })
		if ok || err != nil {
			t.Errorf("got %v %v", ok, err)
		}
	})
	t.Run("the run picked is stamped", func(t *testing.T) {
		other := crawling(t, s)
		served := map[storage.RunID]time.Time{}
		note := func(list []storage.Candidate) int {
			for _, c := range list {
				served[c.Run] = c.Served
			}
			return only(other)(list)
		}
		held, _, _, err := s.Pick(ctx, "d", 0, nil, note)
		check(t, err)
		before := served[other]
		until(t, "the clock moves", func() bool {
			seat, _, ok, err := s.Pick(ctx, "d", 0, &held, note)
			if err != nil || !ok || seat != held {
				t.Fatalf("got %+v %v %v", seat, ok, err)
			}
			return served[other].After(before)
		})
		check(t, s.Leave(ctx, "d", held))
	})
	t.Run("owners of seats are listed and reclaimed", func(t *testing.T) {
		owners := must(s.Owners(ctx))(t)
		slices.Sort(owners)
		if !slices.Equal(owners, []storage.Owner{"b", "c"}) {
			t.Errorf("got %q", owners)
		}
		_, _, err := s.Reclaim(ctx, "b", 10)
		check(t, err)
		if _, _, ok, _ := s.Pick(ctx, "e", 0, nil, only(run.ID)); !ok {
			t.Error("the seat of a dead owner was not free")
		}
	})
	t.Run("a run that is over has no seats", func(t *testing.T) {
		must(s.SetRunState(ctx, run.ID, []storage.RunState{storage.RunCrawling}, storage.RunCancelled, "", time.Time{}))(t)
		if owners := must(s.Owners(ctx))(t); len(owners) != 0 {
			t.Errorf("got %q", owners)
		}
	})
}
