package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"deepcrawl/storage"
)

// What names may hold; the words are the same everywhere they are refused.
var (
	tenantName = nameRule{"tenant", regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`), "1 to 64 letters, digits and - _ ."}
	tariffName = nameRule{"tariff", regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`), "1 to 32 letters, digits and - _"}
)

type nameRule struct {
	what    string
	pattern *regexp.Regexp
	allowed string
}

func (r nameRule) check(where, name string) error {
	if !r.pattern.MatchString(name) {
		return usagef("%s: %q is not a name of a %s; allowed: %s", where, name, r.what, r.allowed)
	}
	return nil
}

// oneName is the only argument of a command.
func (r nameRule) oneName(c *cli.Context) (string, error) {
	switch c.NArg() {
	case 0:
		return "", usagef("%s: which %s? give its name", c.Command.Name, r.what)
	case 1:
		return c.Args().First(), r.check(c.Command.Name, c.Args().First())
	}
	return "", usagef("%s: unexpected argument; %s takes one %s", c.Args().Get(1), c.Command.Name, r.what)
}

func (p *program) tenantCommand() *cli.Command {
	tariff := func(usage string) cli.Flag { return &cli.StringFlag{Name: "tariff", Usage: usage} }
	return &cli.Command{
		Name: "tenant", Usage: "list and change tenants",
		Subcommands: []*cli.Command{
			{Name: "list", Usage: "list tenants with what they have", Flags: listFlags(), Action: p.tenantList},
			{Name: "add", Usage: "add a tenant", ArgsUsage: "NAME", Flags: listFlags(tariff("limits of the tenant: the `NAME` of a tariff (small)")), Action: p.tenantAdd},
			{Name: "set", Usage: "give a tenant another tariff; it takes effect on running crawls", ArgsUsage: "NAME",
				Flags: listFlags(tariff("the `NAME` of a tariff")), Action: p.tenantSet},
			{Name: "suspend", Usage: "stop serving a tenant's runs, within seconds", ArgsUsage: "NAME", Flags: listFlags(),
				Action: func(c *cli.Context) error { return p.tenantSuspend(c, true) }},
			{Name: "resume", Usage: "serve a suspended tenant's runs again", ArgsUsage: "NAME", Flags: listFlags(),
				Action: func(c *cli.Context) error { return p.tenantSuspend(c, false) }},
			{Name: "delete", Usage: "delete a tenant with its runs, schedules and all that was stored of them", ArgsUsage: "NAME", Flags: listFlags(),
				Action: p.tenantDelete},
		},
	}
}

// tenantRow is a tenant in JSON.
type tenantRow struct {
	Tenant      string  `json:"tenant"`
	Tariff      string  `json:"tariff"`
	State       string  `json:"state"` // active, suspended, deleting
	Active      int     `json:"active"`
	Waiting     int     `json:"waiting"`
	StoredPages int64   `json:"stored_pages"`
	Created     *string `json:"created"`
}

func newTenantRow(t storage.Tenant) tenantRow {
	r := tenantRow{Tenant: t.Name, Tariff: t.Tariff, State: "active", Created: isoTime(t.Created)}
	switch {
	case t.Deleting:
		r.State = "deleting"
	case t.Suspended:
		r.State = "suspended"
	}
	return r
}

func (p *program) tenantList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return p.withStore(c, mustExist, func(st storage.Store) error {
		list, err := st.Tenants(c.Context)
		if err != nil {
			return err
		}
		waiting, err := st.Unfinished(c.Context, 0)
		if err != nil {
			return err
		}
		rows := make([]tenantRow, 0, len(list))
		for _, t := range list {
			r := newTenantRow(t)
			if r.StoredPages, err = st.StoredPages(c.Context, t.Name); err != nil && !errors.Is(err, storage.ErrNotFound) { // deleted meanwhile
				return err
			}
			for _, w := range waiting {
				switch {
				case w.Run.Tenant != t.Name:
				case w.Run.State.Active():
					r.Active++
				default:
					r.Waiting++
				}
			}
			rows = append(rows, r)
		}
		if c.Bool("json") {
			return p.printJSON(rows)
		}
		w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "TENANT\tTARIFF\tSTATE\tACTIVE\tWAITING\tSTORED PAGES\tCREATED")
		for i, r := range rows {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", r.Tenant, r.Tariff, r.State, r.Active, r.Waiting, count(r.StoredPages), stamp(list[i].Created))
		}
		return w.Flush()
	})
}

// sayTenant tells what became of a tenant.
func (p *program) sayTenant(c *cli.Context, t storage.Tenant, words string) error {
	if c.Bool("json") {
		return p.printJSON(newTenantRow(t))
	}
	_, err := fmt.Fprintf(p.stdout, "tenant %s: %s\n", t.Name, words)
	return err
}

// putTenant stores a tenant; an unknown tariff is told with those there are.
func putTenant(ctx context.Context, st storage.Store, t storage.Tenant) error {
	err := st.PutTenant(ctx, t)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		list, lerr := st.Tariffs(ctx)
		if lerr != nil {
			return lerr
		}
		var names []string
		for _, f := range list {
			names = append(names, f.Name)
		}
		return usagef("--tariff: there is no tariff %q; allowed: %s", t.Tariff, strings.Join(names, ", "))
	case errors.Is(err, storage.ErrState):
		return usagef("tenant %s is being deleted; run deepcrawl tenant delete %s to its end first", t.Name, t.Name)
	}
	return err
}

// defaultTariff is what a tenant gets whose tariff is not named.
const defaultTariff = "small"

func (p *program) tenantAdd(c *cli.Context) error {
	name, err := tenantName.oneName(c)
	if err != nil {
		return err
	}
	tariff := defaultTariff
	if c.IsSet("tariff") {
		tariff = c.String("tariff")
	}
	return p.withStore(c, mustExist, func(st storage.Store) error {
		_, _, err := st.Tenant(c.Context, name)
		if err == nil {
			return usagef("add: there is a tenant %s already; deepcrawl tenant set changes it", name)
		}
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if err := putTenant(c.Context, st, storage.Tenant{Name: name, Tariff: tariff}); err != nil {
			return err
		}
		t, _, err := st.Tenant(c.Context, name)
		if err != nil {
			return err
		}
		return p.sayTenant(c, t, "added with tariff "+t.Tariff)
	})
}

// changeTenant reads a tenant, changes it and stores it.
func (p *program) changeTenant(c *cli.Context, change func(*storage.Tenant) string) error {
	name, err := tenantName.oneName(c)
	if err != nil {
		return err
	}
	return p.withStore(c, mustExist, func(st storage.Store) error {
		t, _, err := st.Tenant(c.Context, name)
		if err != nil {
			return ofTenant(name, err)
		}
		words := change(&t)
		if err := putTenant(c.Context, st, t); err != nil {
			return err
		}
		return p.sayTenant(c, t, words)
	})
}

func ofTenant(name string, err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return usagef("there is no tenant %q; deepcrawl tenant list shows them", name)
	}
	return err
}

func (p *program) tenantSet(c *cli.Context) error {
	if !c.IsSet("tariff") {
		return usagef("set: nothing to change; give --tariff NAME")
	}
	return p.changeTenant(c, func(t *storage.Tenant) string {
		t.Tariff = c.String("tariff")
		return "tariff " + t.Tariff
	})
}

func (p *program) tenantSuspend(c *cli.Context, suspend bool) error {
	return p.changeTenant(c, func(t *storage.Tenant) string {
		t.Suspended = suspend
		if suspend {
			return "suspended; its runs stop within seconds"
		}
		return "served again"
	})
}

func (p *program) tenantDelete(c *cli.Context) error {
	name, err := tenantName.oneName(c)
	if err != nil {
		return err
	}
	if name == storage.DefaultTenant {
		return usagef("delete: %s cannot be deleted, one-shot crawls belong to it; deepcrawl run delete deletes runs", name)
	}
	return p.withStore(c, mustExist, func(st storage.Store) error {
		begun := false
		for done := false; !done; begun = true {
			if c.Context.Err() != nil {
				return fmt.Errorf("tenant %s is deleted in part; the leading node goes on, and so does deepcrawl tenant delete %s: %w", name, name, c.Context.Err())
			}
			var err error
			done, err = st.DeleteTenant(c.Context, name, deleteBatch)
			if begun && errors.Is(err, storage.ErrNotFound) {
				break // a leading node was through first
			}
			if err != nil && c.Context.Err() == nil {
				return ofTenant(name, err)
			}
		}
		if c.Bool("json") {
			return p.printJSON(tenantRow{Tenant: name, State: "deleted"})
		}
		_, err := fmt.Fprintf(p.stdout, "tenant %s: deleted\n", name)
		return err
	})
}

// Flags of a tariff's limits.
const (
	flagParallel    = "deep-parallel"
	flagSeats       = "deep-workers"
	flagRunPages    = "run-pages"
	flagStoredPages = "stored-pages"
)

func (p *program) tariffCommand() *cli.Command {
	limits := []cli.Flag{
		&cli.IntFlag{Name: flagParallel, Usage: "at most `N` active runs of a tenant; the rest wait, oldest first (0: no limit)"},
		&cli.IntFlag{Name: flagSeats, Usage: "at most `N` workers on one run (0: no limit)"},
		&cli.IntFlag{Name: flagRunPages, Usage: "at most `N` pages of a run (0: no limit)"},
		&cli.IntFlag{Name: flagStoredPages, Usage: "at most `N` pages stored of a tenant (0: no limit)"},
	}
	return &cli.Command{
		Name: "tariff", Usage: "list and change the limits that tenants have by name",
		Subcommands: []*cli.Command{
			{Name: "list", Usage: "list tariffs", Flags: listFlags(), Action: p.tariffList},
			{Name: "set", Usage: "make a tariff, or change what is named of one; it takes effect on running crawls", ArgsUsage: "NAME",
				Flags: listFlags(limits...), Action: p.tariffSet},
		},
	}
}

// tariffRow is a tariff in JSON; 0 is no limit.
type tariffRow struct {
	Tariff      string `json:"tariff"`
	Parallel    int    `json:"deep_parallel"`
	Workers     int    `json:"deep_workers"`
	RunPages    int    `json:"run_pages"`
	StoredPages int64  `json:"stored_pages"`
}

func newTariffRow(t storage.Tariff) tariffRow {
	return tariffRow{t.Name, t.Parallel, t.Workers, t.RunPages, t.StoredPages}
}

func limitWord(n int64) string {
	if n == 0 {
		return "no limit"
	}
	return count(n)
}

func (p *program) tariffList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return p.withStore(c, mustExist, func(st storage.Store) error {
		list, err := st.Tariffs(c.Context)
		if err != nil {
			return err
		}
		rows := make([]tariffRow, 0, len(list))
		for _, t := range list {
			rows = append(rows, newTariffRow(t))
		}
		if c.Bool("json") {
			return p.printJSON(rows)
		}
		w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "TARIFF\tACTIVE RUNS\tWORKERS A RUN\tPAGES A RUN\tSTORED PAGES")
		for _, r := range rows {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Tariff, limitWord(int64(r.Parallel)), limitWord(int64(r.Workers)), limitWord(int64(r.RunPages)), limitWord(r.StoredPages))
		}
		return w.Flush()
	})
}

// maxLimit keeps limits in what every database holds in an integer column.
const maxLimit = 1_000_000_000

func (p *program) tariffSet(c *cli.Context) error {
	name, err := tariffName.oneName(c)
	if err != nil {
		return err
	}
	set := false
	for _, f := range []string{flagParallel, flagSeats, flagRunPages, flagStoredPages} {
		if n := c.Int(f); n < 0 || n > maxLimit {
			return usagef("--%s: %d is not allowed; allowed: a number from 0 (no limit) to %d", f, n, maxLimit)
		}
		set = set || c.IsSet(f)
	}
	if !set {
		return usagef("set: nothing to change; give --%s, --%s, --%s or --%s", flagParallel, flagSeats, flagRunPages, flagStoredPages)
	}
	return p.withStore(c, mustExist, func(st storage.Store) error {
		list, err := st.Tariffs(c.Context)
		if err != nil {
			return err
		}
		t := storage.Tariff{Name: name}
		if i := slices.IndexFunc(list, func(f storage.Tariff) bool { return f.Name == name }); i >= 0 {
			t = list[i]
		}
		if c.IsSet(flagParallel) {
			t.Parallel = c.Int(flagParallel)
		}
		if c.IsSet(flagSeats) {
			t.Workers = c.Int(flagSeats)
		}
		if c.IsSet(flagRunPages) {
			t.RunPages = c.Int(flagRunPages)
		}
		if c.IsSet(flagStoredPages) {
			t.StoredPages = int64(c.Int(flagStoredPages))
		}
		if err := st.PutTariff(c.Context, t); err != nil {
			return err
		}
		if c.Bool("json") {
			return p.printJSON(newTariffRow(t))
		}
		_, err = fmt.Fprintf(p.stdout, "tariff %s: active runs %s, workers a run %s, pages a run %s, stored pages %s\n", name,
			limitWord(int64(t.Parallel)), limitWord(int64(t.Workers)), limitWord(int64(t.RunPages)), limitWord(t.StoredPages))
		return err
	})
}
