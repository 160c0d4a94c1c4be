package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"deepcrawl/internal/config"
)

func (p *program) configCommand() *cli.Command {
	var keys []string
	for _, s := range config.Table() {
		keys = append(keys, s.Key)
	}
	return &cli.Command{
		Name: "config", Usage: "show each setting in force and where it came from", Flags: append(settingFlags(keys...), jsonFlag()),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			cfg, err := p.settings(c)
			if err != nil {
				return err
			}
			if c.Bool("json") {
				type row struct {
					Key    string `json:"key"`
					Value  string `json:"value"`
					Source string `json:"source"`
				}
				rows := []row{}
				for _, v := range cfg.Values {
					rows = append(rows, row{v.Key, v.Shown(), v.Source})
				}
				return p.printJSON(rows)
			}
			w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
			_, _ = fmt.Fprintln(w, "SETTING\tVALUE\tFROM")
			for _, v := range cfg.Values {
				shown := v.Shown()
				if shown == "" {
					shown = "-"
				}
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", v.Key, shown, v.Source)
			}
			return w.Flush()
		},
	}
}
