package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"deepcrawl/crawl"
	"deepcrawl/internal/config"
	"deepcrawl/storage"
)

func (p *program) runAddCommand() *cli.Command {
	return &cli.Command{
		Name: "add", Usage: "queue a crawl for the nodes", ArgsUsage: "URL...",
		Flags: append(append(specFlags(),
			&cli.StringFlag{Name: "tenant", Usage: "whose run it is", Value: storage.DefaultTenant},
			jsonFlag(),
		), settingFlags(append(sharedKeys(), config.KeyUserAgent)...)...),
		Action: p.runAdd,
	}
}

func (p *program) runAdd(c *cli.Context) error {
	spec, err := specOf(c)
	if err != nil {
		return err
	}
	if flag := setting(config.KeyUserAgent).Flag(); c.IsSet(flag) {
		spec.UserAgent = c.String(flag)
	}
	profile, err := crawl.ParseProfile(spec.Profile)
	if err != nil {
		return usagef("--%v", err)
	}
	tenant := c.String("tenant")
	return p.withStore(c, mustExist, func(st storage.Store) error {
		run, err := st.CreateRun(c.Context, storage.NewRun{
			Tenant: tenant, Site: spec.Site(), Spec: spec.Encode(), Concurrency: profile.Concurrency,
		})
		if errors.Is(err, storage.ErrNotFound) {
			return usagef("--tenant: there is no tenant %q; deepcrawl tenant list shows them", tenant)
		}
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return p.printJSON(newRunRow(run, storage.Ledger{}))
		}
		_, err = fmt.Fprintf(p.stdout, "run %d queued: %s\n", run.ID, spec.Seeds[0])
		return err
	})
}
