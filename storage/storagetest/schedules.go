package storagetest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deepcrawl/storage"
)

func testBans(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	t.Run("banned hosts are listed with their reasons", func(t *testing.T) {
		check(t, s.Ban(ctx, "b.example", "asked by mail"))
		check(t, s.Ban(ctx, "a.example", ""))
		check(t, s.Ban(ctx, "A.example", "it's \u00e9 '\\%"))
		list := must(open(t).Bans(ctx))(t)
		if len(list) != 3 || list[0].Host != "A.example" || list[0].Reason != "it's \u00e9 '\\%" || list[1].Host != "a.example" || list[2].Reason != "asked by mail" {
			t.Fatalf("got %+v", list)
		}
		if age := time.Since(list[0].Since); age < -time.Minute || age > time.Minute {
			t.Errorf("banned %v ago", age)
		}
	})
	t.Run("banning again changes the reason only", func(t *testing.T) {
		before := must(s.Bans(ctx))(t)
		check(t, s.Ban(ctx, "b.example", strings.Repeat("x", 300)))
		list := must(s.Bans(ctx))(t)
		if len(list) != 3 || list[2].Reason != strings.Repeat("x", 200) || !list[2].Since.Equal(before[2].Since) {
			t.Errorf("got %+v, before %+v", list, before)
		}
	})
	t.Run("a ban ends, once", func(t *testing.T) {
		check(t, s.Unban(ctx, "a.example"))
		wantErr(t, s.Unban(ctx, "a.example"), storage.ErrNotFound)
		if list := must(s.Bans(ctx))(t); len(list) != 2 {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("what is no host is refused", func(t *testing.T) {
		for _, bad := range []string{"", strings.Repeat("h", 256), "a\x00b", "\xff"} {
			if err := s.Ban(ctx, bad, ""); err == nil {
				t.Errorf("%q was banned", bad)
			}
		}
	})
}

func testSchedules(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	addTenant(t, s, "acme", storage.Tariff{})
	hour := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	past := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	fence := storage.Fence{Name: "leader", Epoch: 3, Number: 5}
	spec := []byte{0, 0xff, '{'}
	run := storage.NewRun{Tenant: "acme", Site: host, Spec: spec, Concurrency: 4}
	a := must(s.AddSchedule(ctx, storage.Schedule{Tenant: "acme", Name: "nightly \u00e9", Site: host, Spec: spec, Cron: "5 4 * * *", Zone: "Europe/Berlin", Next: past}))(t)
	b := must(s.AddSchedule(ctx, storage.Schedule{Tenant: storage.DefaultTenant, Site: host, Every: 90 * time.Minute, Next: hour}))(t)
	t.Run("schedules are stored as they were described", func(t *testing.T) {
		list := must(open(t).Schedules(ctx, ""))(t)
		if len(list) != 2 || list[0].ID != a.ID || list[1].ID != b.ID || a.ID >= b.ID {
			t.Fatalf("got %+v", list)
		}
		if got := list[0]; got.Tenant != "acme" || got.Name != "nightly \u00e9" || got.Site != host || !bytes.Equal(got.Spec, spec) || got.Cron != "5 4 * * *" ||
			got.Zone != "Europe/Berlin" || !got.Next.Equal(past) || got.LastRun != 0 || got.Every != 0 || time.Since(got.Created) > time.Minute {
			t.Errorf("got %+v", got)
		}
		if got := list[1]; got.Every != 90*time.Minute || !got.Next.Equal(hour) {
			t.Errorf("got %+v", got)
		}
		if list := must(s.Schedules(ctx, "acme"))(t); len(list) != 1 || list[0].ID != a.ID {
			t.Errorf("of a tenant: got %+v", list)
		}
	})
	t.Run("what makes no sense is refused", func(t *testing.T) {
		_, err := s.AddSchedule(ctx, storage.Schedule{Tenant: "nosuch", Every: time.Hour})
		wantErr(t, err, storage.ErrNotFound)
		for _, bad := range []storage.Schedule{
			{Tenant: "acme"}, {Tenant: "acme", Every: time.Hour, Cron: "* * * * *"}, {Tenant: "acme", Every: -time.Hour},
			{Tenant: "acme", Every: time.Hour, Name: strings.Repeat("n", 101)},
		} {
			if _, err := s.AddSchedule(ctx, bad); err == nil {
				t.Errorf("%+v was taken", bad)
			}
		}
	})
	due := func(t *testing.T) (ids []int64) {
		t.Helper()
		for _, x := range must(s.DueSchedules(ctx, 10))(t) {
			ids = append(ids, x.ID)
		}
		return ids
	}
	var first storage.Run
	t.Run("a due schedule starts a run, and moves", func(t *testing.T) {
		if got := due(t); !slices.Equal(got, []int64{a.ID}) {
			t.Fatalf("got %v due", got)
		}
		var merged bool
		var err error
		first, merged, err = s.StartScheduled(ctx, a.ID, hour, run, fence)
		if err != nil || merged || first.State != storage.RunQueued || first.Tenant != "acme" || !bytes.Equal(first.Spec, spec) || first.Concurrency != 4 {
			t.Fatalf("got %+v %v %v", first, merged, err)
		}
		if got := due(t); len(got) != 0 {
			t.Errorf("got %v due", got)
		}
		list := must(s.Schedules(ctx, "acme"))(t)
		if !list[0].Next.Equal(hour) || list[0].LastRun != first.ID {
			t.Errorf("got %+v", list[0])
		}
		if got := must(s.Run(ctx, first.ID))(t); got.ID != first.ID {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("one that is not due, or unknown, starts nothing", func(t *testing.T) {
		_, _, err := s.StartScheduled(ctx, a.ID, hour, run, fence)
		wantErr(t, err, storage.ErrState)
		_, _, err = s.StartScheduled(ctx, a.ID+100, hour, run, fence)
		wantErr(t, err, storage.ErrNotFound)
	})
	// again makes a schedule due that has run already.
	again := func(t *testing.T) storage.Schedule {
		t.Helper()
		x := must(s.AddSchedule(ctx, storage.Schedule{Tenant: "acme", Site: host, Every: time.Hour, Next: past}))(t)
		return x
	}
	t.Run("while its last run is unfinished it merges into it", func(t *testing.T) {
		x := again(t)
		started, _, err := s.StartScheduled(ctx, x.ID, past, run, fence)
		check(t, err)
		for _, state := range []storage.RunState{storage.RunCrawling, storage.RunPaused} {
			setState(t, s, started.ID, state)
			got, merged, err := s.StartScheduled(ctx, x.ID, past, run, fence)
			if err != nil || !merged || got.ID != started.ID || got.State != state {
				t.Errorf("got %+v %v %v", got, merged, err)
			}
		}
		setState(t, s, started.ID, storage.RunDone)
		next, merged, err := s.StartScheduled(ctx, x.ID, hour, run, fence)
		if err != nil || merged || next.ID == started.ID || next.Previous != started.ID {
			t.Errorf("got %+v %v %v", next, merged, err)
		}
	})
	t.Run("a deleted last run is no hindrance", func(t *testing.T) {
		x := again(t)
		started, _, err := s.StartScheduled(ctx, x.ID, past, run, fence)
		check(t, err)
		setState(t, s, started.ID, storage.RunPaused)
		for done := false; !done; {
			done, err = s.DeleteRun(ctx, started.ID, 100)
			check(t, err)
		}
		next, merged, err := s.StartScheduled(ctx, x.ID, hour, run, fence)
		if err != nil || merged || next.ID <= started.ID {
			t.Errorf("got %+v %v %v", next, merged, err)
		}
	})
	t.Run("a leader of the past starts nothing", func(t *testing.T) {
		x := again(t)
		_, _, err := s.StartScheduled(ctx, x.ID, hour, run, storage.Fence{Name: fence.Name, Epoch: 3, Number: 4})
		wantErr(t, err, storage.ErrFenced)
		if got := due(t); !slices.Equal(got, []int64{x.ID}) {
			t.Errorf("got %v due", got)
		}
		check(t, s.RemoveSchedule(ctx, x.ID))
	})
	t.Run("many leaders start it once", func(t *testing.T) {
		x := again(t)
		before := len(must(s.ListRuns(ctx, storage.RunFilter{}))(t))
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			s := s
			if i%2 == 1 {
				s = open(t)
			}
			wg.Go(func() { _, _, errs[i] = s.StartScheduled(ctx, x.ID, hour, run, fence) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, storage.ErrState) {
				t.Errorf("got %v", err)
			}
		}
		if after := len(must(s.ListRuns(ctx, storage.RunFilter{}))(t)); won != 1 || after != before+1 {
			t.Errorf("%d started it, %d runs more", won, after-before)
		}
	})
	t.Run("a removed schedule is gone", func(t *testing.T) {
		check(t, s.RemoveSchedule(ctx, b.ID))
		wantErr(t, s.RemoveSchedule(ctx, b.ID), storage.ErrNotFound)
		if list := must(s.Schedules(ctx, storage.DefaultTenant))(t); len(list) != 0 {
			t.Errorf("got %+v", list)
		}
	})
}
