package main

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/crawl"
	"deepcrawl/internal/config"
	"deepcrawl/storage"
)

func (p *program) scheduleCommand() *cli.Command {
	return &cli.Command{
		Name: "schedule", Usage: "crawl sites again and again",
		Subcommands: []*cli.Command{
			{Name: "list", Usage: "list schedules", Flags: listFlags(&cli.StringFlag{Name: "tenant", Usage: "only those of `TENANT`"}), Action: p.scheduleList},
			{
				Name: "add", Usage: "crawl a site at intervals, or at the times of a cron expression", ArgsUsage: "URL...",
				Description: "A crawl that is due while the one before is still at work is left out; times missed while no node ran are made up for once.",
				Flags: append(append(specFlags(),
					&cli.StringFlag{Name: "every", Usage: "crawl each `TIME`, such as 6h or 7d"},
					&cli.StringFlag{Name: "cron", Usage: "crawl at the times of `EXPRESSION`: minute, hour, day of month, month, day of week"},
					&cli.StringFlag{Name: "zone", Usage: "time `ZONE` of --cron, such as Europe/Berlin", DefaultText: defaultZone},
					&cli.StringFlag{Name: "name", Usage: "what people call it, up to 100 bytes"},
					&cli.StringFlag{Name: "tenant", Usage: "whose runs it makes", Value: storage.DefaultTenant},
					jsonFlag(),
				), settingFlags(append(sharedKeys(), config.KeyUserAgent)...)...),
				Action: p.scheduleAdd,
			},
			{Name: "remove", Usage: "remove schedules; their runs stay", ArgsUsage: "ID...", Flags: listFlags(), Action: p.scheduleRemove},
		},
	}
}

const (
	defaultZone     = "UTC"
	leastEvery      = time.Minute
	mostEvery       = 366 * 24 * time.Hour
	maxScheduleName = 100
	maxCron         = 1000
)

// scheduleRow is a schedule in JSON.
type scheduleRow struct {
	Schedule int64         `json:"schedule"`
	Tenant   string        `json:"tenant"`
	Name     string        `json:"name"`
	URL      string        `json:"url"`
	Every    string        `json:"every"`
	Cron     string        `json:"cron"`
	Zone     string        `json:"zone"`
	Next     *string       `json:"next"`
	LastRun  storage.RunID `json:"last_run"`
	Created  *string       `json:"created"`
	// Note says why the last run was made or not; empty: nothing to say.
	Note string `json:"note"`
}

func newScheduleRow(s storage.Schedule) scheduleRow {
	r := scheduleRow{
		Schedule: s.ID, Tenant: s.Tenant, Name: s.Name, URL: s.Site, Cron: s.Cron, Zone: s.Zone, Next: isoTime(s.Next), LastRun: s.LastRun,
		Created: isoTime(s.Created),
	}
	if s.Every > 0 {
		r.Every = everyWords(s.Every)
	}
	if spec, err := crawl.DecodeSpec(s.Spec); err == nil && len(spec.Seeds) > 0 {
		r.URL = spec.Seeds[0]
	}
	return r
}

func everyWords(d time.Duration) string {
	if day := 24 * time.Hour; d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := strings.TrimSuffix(d.String(), "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// when says in words when a schedule is due.
func (r scheduleRow) when() string {
	if r.Every != "" {
		return "every " + r.Every
	}
	return r.Cron + " " + r.Zone
}

func (p *program) scheduleList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return p.withStore(c, mustExist, func(st storage.Store) error {
		tenant := c.String("tenant")
		if tenant != "" {
			if _, _, err := st.Tenant(c.Context, tenant); err != nil {
				return ofTenant(tenant, err)
			}
		}
		list, err := st.Schedules(c.Context, tenant)
		if err != nil {
			return err
		}
		rows := make([]scheduleRow, 0, len(list))
		for _, s := range list {
			r := newScheduleRow(s)
			if r.Note, err = lastNote(c, st, s.LastRun); err != nil {
				return err
			}
			rows = append(rows, r)
		}
		if c.Bool("json") {
			return p.printJSON(rows)
		}
		if len(rows) == 0 {
			p.note("no schedules; add one with: deepcrawl schedule add URL --every 7d")
			return nil
		}
		w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "ID\tTENANT\tNAME\tWHEN\tNEXT\tLAST RUN\tURL\tNOTE")
		for i, r := range rows {
			last := "-"
			if r.LastRun != 0 {
				last = r.LastRun.String()
			}
			_, _ = fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Schedule, r.Tenant, clean(cmp.Or(r.Name, "-")), clean(r.when()), stamp(list[i].Next), last,
				clip(clean(r.URL), 60), r.Note)
		}
		return w.Flush()
	})
}

// lastNote says that the last run is still at work, so that the next one may be left out.
func lastNote(c *cli.Context, st storage.Store, id storage.RunID) (string, error) {
	if id == 0 {
		return "", nil
	}
	r, err := st.Run(c.Context, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "last run was deleted", nil
	case err != nil:
		return "", err
	case !r.State.Terminal():
		return "last run is " + string(r.State), nil
	}
	return "", nil
}

// parseEvery reads an interval: a duration as Go writes it, or whole days.
func parseEvery(s string) (time.Duration, error) {
	bad := usagef("--every: %q is not allowed; allowed: a time from 1m to 366d, such as 90m, 6h or 7d", s)
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok && err != nil {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 16); err == nil {
			d = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || d < leastEvery || d > mostEvery {
		return 0, bad
	}
	return d, nil
}

// timesOf reads when a schedule is due from the flags.
func timesOf(c *cli.Context, now time.Time) (s storage.Schedule, err error) {
	switch {
	case c.IsSet("every") == c.IsSet("cron"):
		return s, usagef("add: when? give either --every, such as 7d, or --cron, such as \"30 3 * * 1\"")
	case c.IsSet("every"):
		if c.IsSet("zone") {
			return s, usagef("--zone: goes with --cron only")
		}
		if s.Every, err = parseEvery(c.String("every")); err != nil {
			return s, err
		}
	default:
		s.Cron, s.Zone = strings.Join(strings.Fields(c.String("cron")), " "), defaultZone
		if c.IsSet("zone") {
			s.Zone = c.String("zone")
		}
		if _, err := time.LoadLocation(s.Zone); err != nil || s.Zone == "" || s.Zone == "Local" {
			return s, usagef("--zone: %q is not a time zone; allowed: a name such as UTC or Europe/Berlin", s.Zone)
		}
	}
	s.Next, err = crawl.NextTime(s, now)
	if err != nil || len(s.Cron) > maxCron || strings.HasPrefix(s.Cron, "TZ=") || strings.HasPrefix(s.Cron, "CRON_TZ=") {
		return s, usagef("--cron: %q is not allowed; allowed: five fields for minute, hour, day of month, month and day of week that are due at some time, such as \"30 3 * * 1\"", c.String("cron"))
	}
	return s, nil
}

func (p *program) scheduleAdd(c *cli.Context) error {
	spec, err := specOf(c)
	if err != nil {
		return err
	}
	if flag := setting(config.KeyUserAgent).Flag(); c.IsSet(flag) {
		spec.UserAgent = c.String(flag)
	}
	s, err := timesOf(c, p.now())
	if err != nil {
		return err
	}
	if s.Name = c.String("name"); len(s.Name) > maxScheduleName || clean(s.Name) != s.Name {
		return usagef("--name: allowed are up to %d bytes of text", maxScheduleName)
	}
	s.Tenant, s.Site, s.Spec = c.String("tenant"), spec.Site(), spec.Encode()
	return p.withStore(c, mustExist, func(st storage.Store) error {
		added, err := st.AddSchedule(c.Context, s)
		if errors.Is(err, storage.ErrNotFound) {
			return usagef("--tenant: there is no tenant %q; deepcrawl tenant list shows them", s.Tenant)
		}
		if err != nil {
			return err
		}
		row := newScheduleRow(added)
		if c.Bool("json") {
			return p.printJSON(row)
		}
		_, err = fmt.Fprintf(p.stdout, "schedule %d added: %s, %s, next at %s\n", added.ID, clean(row.URL), row.when(), stamp(added.Next))
		return err
	})
}

func (p *program) scheduleRemove(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("remove: which schedule? give its number; deepcrawl schedule list shows them")
	}
	var ids []int64
	for _, arg := range c.Args().Slice() {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id < 1 {
			return usagef("remove: %q is not a schedule; allowed: its number, as deepcrawl schedule list shows it", arg)
		}
		ids = append(ids, id)
	}
	return p.withStore(c, mustExist, func(st storage.Store) error {
		list, err := st.Schedules(c.Context, "")
		if err != nil {
			return err
		}
		known := map[int64]bool{}
		for _, s := range list {
			known[s.ID] = true
		}
		for _, id := range ids {
			if !known[id] {
				return usagef("remove: there is no schedule %d; deepcrawl schedule list shows them", id)
			}
		}
		type row struct {
			Schedule int64  `json:"schedule"`
			State    string `json:"state"`
		}
		rows := []row{}
		for _, id := range ids {
			if err := st.RemoveSchedule(c.Context, id); err != nil && !errors.Is(err, storage.ErrNotFound) { // removed by another just now
				return err
			}
			rows = append(rows, row{id, "removed"})
			if !c.Bool("json") {
				_, _ = fmt.Fprintf(p.stdout, "schedule %d: removed\n", id)
			}
		}
		if c.Bool("json") {
			return p.printJSON(rows)
		}
		return nil
	})
}
