package storagetest

import (
	"sync"
	"testing"
	"time"

	"deepcrawl/storage"
)

func testActs(t *testing.T, open Open) {
	s, ctx := open(t), t.Context()
	old, young := storage.Fence{Name: "leader", Epoch: 2, Number: 9}, storage.Fence{Name: "leader", Epoch: 3, Number: 1}
	t.Run("acts are listed in their order with what they were done under", func(t *testing.T) {
		check(t, s.RecordAct(ctx, old, "a/1", "reap"))
		check(t, s.RecordAct(ctx, storage.Fence{Name: "other", Epoch: 9}, "c/1", "prune"))
		check(t, s.RecordAct(ctx, old, "a/1", "schedules"))
		check(t, s.RecordAct(ctx, young, "b/7", "reap"))
		list := must(open(t).Acts(ctx, "leader", 10))(t)
		want := []storage.Act{{Fence: old, Owner: "a/1", Duty: "reap"}, {Fence: old, Owner: "a/1", Duty: "schedules"}, {Fence: young, Owner: "b/7", Duty: "reap"}}
		if len(list) != len(want) {
			t.Fatalf("got %+v, want %+v", list, want)
		}
		for i := range want {
			if age := time.Since(list[i].At); age < -time.Minute || age > time.Minute {
				t.Errorf("recorded %v ago", age)
			}
			if list[i].At = (time.Time{}); list[i] != want[i] {
				t.Errorf("got %+v, want %+v", list[i], want[i])
			}
		}
	})
	t.Run("whom a newer holder has followed is refused, and leaves nothing", func(t *testing.T) {
		wantErr(t, s.RecordAct(ctx, old, "a/1", "reap"), storage.ErrFenced)
		if list := must(s.Acts(ctx, "leader", 10))(t); len(list) != 3 {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("the latest are listed", func(t *testing.T) {
		if list := must(s.Acts(ctx, "leader", 1))(t); len(list) != 1 || list[0].Owner != "b/7" {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("of many at once fences never fall", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 5 {
					_ = s.RecordAct(ctx, storage.Fence{Name: "leader", Epoch: 4, Number: uint64(i)}, "x/1", "reap") // most are refused
				}
			})
		}
		wg.Wait()
		high := storage.Fence{}
		list := must(s.Acts(ctx, "leader", 100))(t)
		for _, a := range list {
			if a.Fence.Epoch < high.Epoch || a.Fence.Epoch == high.Epoch && a.Fence.Number < high.Number {
				t.Errorf("%v was recorded after %v", a.Fence, high)
			}
			high = a.Fence
		}
		if high.Epoch != 4 || high.Number != 7 {
			t.Errorf("the last is %v, want 4.7", high)
		}
	})
}
