package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"deepcrawl/coord/sqlcoord"
	"deepcrawl/internal/config"
	"deepcrawl/storage/sqlstore"
)

func (p *program) migrateCommand() *cli.Command {
	return &cli.Command{
		Name: "migrate", Usage: "bring the database's schema up to date",
		Description: "Makes a missing SQLite file. Running it again changes nothing; nodes may go on working meanwhile.",
		Flags:       append(settingFlags(sharedKeys()...), jsonFlag()),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			cfg, err := p.settings(c)
			if err != nil {
				return err
			}
			done, err := sqlstore.Migrate(c.Context, cfg.DB)
			if err != nil {
				return explain(cfg, err)
			}
			if _, err := sqlcoord.Migrate(c.Context, cfg.DB); err != nil {
				return explain(cfg, err)
			}
			st, err := p.open(c.Context, cfg, mustExist) // a newer schema needs no migration, and cannot be used all the same
			if err != nil {
				return err
			}
			if err := st.Close(); err != nil {
				return explain(cfg, err)
			}
			if c.Bool("json") {
				return p.printJSON(struct {
					DB   string `json:"db"`
					From int64  `json:"from"`
					To   int64  `json:"to"`
				}{config.Mask(cfg.DB), done.From, done.To})
			}
			line := fmt.Sprintf("schema %d: nothing to do", done.To)
			if done.From != done.To {
				line = fmt.Sprintf("schema brought from %d to %d", done.From, done.To)
			}
			_, err = fmt.Fprintf(p.stdout, "%s: %s\n", config.Mask(cfg.DB), line)
			return err
		},
	}
}
