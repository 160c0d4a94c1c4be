package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/crawl/urlkey"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

// listFlags are the flags of every command that shows or changes what is stored.
func listFlags(more ...cli.Flag) []cli.Flag {
	return append(append(settingFlags(sharedKeys()...), jsonFlag()), more...)
}

func (p *program) hostCommand() *cli.Command {
	return &cli.Command{
		Name: "host", Usage: "keep requests from hosts, or let them go on",
		Subcommands: []*cli.Command{
			{
				Name: "list", Usage: "list hosts that are banned, asked to wait or are left alone after trouble",
				Flags: listFlags(), Action: p.hostList,
			},
			{
				Name: "ban", Usage: "let no node request anything from hosts", ArgsUsage: "HOST...",
				Description: "Nodes read the list every 2 seconds; requests in flight end by themselves. URLs of a banned host are excluded: banned.",
				Flags:       listFlags(&cli.StringFlag{Name: "reason", Usage: "why, in `WORDS`, up to 200 bytes"}), Action: p.hostBan,
			},
			{Name: "unban", Usage: "let hosts be requested again", ArgsUsage: "HOST...", Flags: listFlags(), Action: p.hostUnban},
			{
				Name: "clear", Usage: "end the cooldown or the pause of hosts that are known to be well again", ArgsUsage: "HOST...",
				Flags: listFlags(), Action: p.hostClear,
			},
		},
	}
}

// hostRow is a host in JSON.
type hostRow = show.Host

func (p *program) hostList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return p.withCluster(c, func(o opened) error {
		bans, err := o.store.Bans(c.Context)
		if err != nil {
			return fmt.Errorf("list bans: %w", err)
		}
		gates, err := o.coord.Gates(c.Context)
		if err != nil {
			return fmt.Errorf("list gates: %w", err)
		}
		rows := hostRows(bans, gates, p.now())
		if c.Bool("json") {
			return p.printJSON(rows)
		}
		if len(rows) == 0 {
			p.note("no host is banned or paused")
			return nil
		}
		w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "HOST\tBANNED\tPAUSED UNTIL\tWHY")
		for _, r := range rows {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", clean(r.Host), yesNo(r.Banned), localTime(r.Until), clean(cmp.Or(r.Pause, r.Reason)))
		}
		return w.Flush()
	})
}

// hostRows joins bans and closed gates, by host.
func hostRows(bans []storage.Ban, gates []coord.Gate, now time.Time) []hostRow {
	rows := []hostRow{}
	at := map[string]int{}
	row := func(host string) *hostRow {
		i, ok := at[host]
		if !ok {
			i = len(rows)
			at[host] = i
			rows = append(rows, hostRow{Host: host})
		}
		return &rows[i]
	}
	for _, b := range bans {
		r := row(b.Host)
		r.Banned, r.Reason, r.Since = true, b.Reason, isoTime(b.Since)
	}
	for _, g := range gates {
		if g.Key.Kind() == hostKind && g.For > 0 {
			r := row(g.Key.Name())
			r.Pause, r.Until = g.Reason, isoTime(now.Add(g.For))
		}
	}
	slices.SortFunc(rows, func(a, b hostRow) int { return strings.Compare(a.Host, b.Host) })
	return rows
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// localTime shows a time of a JSON row to people.
func localTime(iso *string) string { return show.Local(iso) }

// hostArgs reads hosts in any form people write them into the crawler's; all are checked before the first is changed.
func hostArgs(c *cli.Context) ([]string, error) {
	if !c.Args().Present() {
		return nil, usagef("%s: which host? give a name such as example.com", c.Command.Name)
	}
	var hosts []string
	for _, arg := range c.Args().Slice() {
		host, err := hostOf(c.Command.Name, arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// maxHostName is what a name in the DNS may have, with a port, and what is stored of one.
const maxHostName = 255

// hostOf is a host in the crawler's form; what names who asks in the error.
func hostOf(what, arg string) (string, error) {
	canon, err := urlkey.New(urlkey.Options{})
	if err != nil {
		return "", err
	}
	url := arg
	if !strings.Contains(arg, "://") {
		url = "https://" + arg
	}
	u, err := canon.Parse(url)
	if err != nil || u.Host == "" || strings.ContainsAny(strings.TrimSuffix(arg, "/"), " \t") || len(u.Host) > maxHostName {
		return "", usagef("%s: %q is not a host; allowed: a name such as example.com, with :PORT where it is not the usual one", what, arg)
	}
	return u.Host, nil
}

// hostChange is what was done to a host, in JSON.
type hostChange struct {
	Host  string `json:"host"`
	State string `json:"state"`
}

// changeHosts does one thing to each host named, and says what it came to.
func (p *program) changeHosts(c *cli.Context, do func(o opened, host string) (string, error)) error {
	hosts, err := hostArgs(c)
	if err != nil {
		return err
	}
	return p.withCluster(c, func(o opened) error {
		rows := []hostChange{}
		for _, host := range hosts {
			state, err := do(o, host)
			if err != nil {
				return err
			}
			rows = append(rows, hostChange{host, state})
			if !c.Bool("json") {
				_, _ = fmt.Fprintf(p.stdout, "%s: %s\n", host, state)
			}
		}
		if c.Bool("json") {
			return p.printJSON(rows)
		}
		return nil
	})
}

// maxBanReason is what the store keeps of a reason, in bytes.
const maxBanReason = 200

func checkBanReason(reason string) error {
	if len(reason) > maxBanReason || clean(reason) != reason {
		return usagef("--reason: allowed are up to %d bytes of text", maxBanReason)
	}
	return nil
}

func banHost(ctx context.Context, o opened, host, reason string) (string, error) {
	if err := checkBanReason(reason); err != nil {
		return "", err
	}
	return "banned", o.store.Ban(ctx, host, reason)
}

func unbanHost(ctx context.Context, o opened, host string) (string, error) {
	err := o.store.Unban(ctx, host)
	if errors.Is(err, storage.ErrNotFound) {
		return "", usagef("%s: is not banned; deepcrawl host list shows who is", host)
	}
	return "may be requested", err
}

func (p *program) clearHost(ctx context.Context, o opened, host string) (string, error) {
	gates, err := o.coord.Gates(ctx)
	if err != nil {
		return "", fmt.Errorf("list gates: %w", err)
	}
	key := coord.HostKey(host)
	i := slices.IndexFunc(gates, func(g coord.Gate) bool { return g.Key == key && g.For > 0 })
	if i < 0 {
		return "nothing to clear", nil
	}
	if _, err := o.coord.Clear(ctx, key); err != nil {
		return "", fmt.Errorf("clear %s: %w", host, err)
	}
	was := crawl.Wait{Reason: gates[i].Reason, Until: p.now().Add(gates[i].For)}
	return "cleared (" + was.String() + ")", nil
}

func (p *program) hostBan(c *cli.Context) error {
	reason := c.String("reason")
	if err := checkBanReason(reason); err != nil {
		return err
	}
	return p.changeHosts(c, func(o opened, host string) (string, error) { return banHost(c.Context, o, host, reason) })
}

func (p *program) hostUnban(c *cli.Context) error {
	return p.changeHosts(c, func(o opened, host string) (string, error) { return unbanHost(c.Context, o, host) })
}

func (p *program) hostClear(c *cli.Context) error {
	return p.changeHosts(c, func(o opened, host string) (string, error) { return p.clearHost(c.Context, o, host) })
}
