package crawl_test

import (
	"testing"
	"time"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

func TestNextTimeOfASchedule(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		s    storage.Schedule
		now  time.Time
		want time.Time
	}{
		{"an interval goes on from when it was due", storage.Schedule{Every: time.Hour, Next: at}, at.Add(time.Minute), at.Add(time.Hour)},
		{"missed times run once", storage.Schedule{Every: time.Hour, Next: at}, at.Add(5*time.Hour + time.Minute), at.Add(6 * time.Hour)},
		{"a new interval", storage.Schedule{Every: time.Hour}, at, at.Add(time.Hour)},
		{"cron in its zone", storage.Schedule{Cron: "30 6 * * *", Zone: "Europe/Berlin"}, at, time.Date(2026, 3, 29, 6, 30, 0, 0, berlin)},
		{"cron over a change of the clocks", storage.Schedule{Cron: "0 12 * * *", Zone: "Europe/Berlin"}, at, time.Date(2026, 3, 29, 12, 0, 0, 0, berlin)},
		{"cron missed", storage.Schedule{Cron: "0 * * * *", Zone: "UTC", Next: at.Add(-48 * time.Hour)}, at.Add(time.Second), at.Add(time.Hour)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := crawl.NextTime(c.s, c.now)
			if err != nil || !got.Equal(c.want) {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
	for name, s := range map[string]storage.Schedule{
		"neither":      {},
		"unknown zone": {Cron: "0 0 * * *", Zone: "Mars/Olympus"},
		"bad cron":     {Cron: "61 0 * * *", Zone: "UTC"},
		"never due":    {Cron: "0 0 30 2 *", Zone: "UTC"},
	} {
		if _, err := crawl.NextTime(s, at); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
