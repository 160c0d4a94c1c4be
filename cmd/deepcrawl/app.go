package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"deepcrawl/internal/config"
)

// run parses the arguments and runs one command.
func (p *program) run(ctx context.Context, args []string) error {
	app := p.app()
	args, err := arrange(app.Commands, args)
	if err != nil {
		return err
	}
	return app.RunContext(ctx, args)
}

func (p *program) app() *cli.App {
	app := &cli.App{
		Name:  "deepcrawl",
		Usage: "a polite SEO crawler that many servers run together",
		Description: "Start with:  deepcrawl crawl https://example.com\n" +
			"Settings come from flags, DEEPCRAWL_* variables and a file; deepcrawl config shows them.",
		HideVersion:               true,
		DisableSliceFlagSeparator: true, // patterns may hold commas
		Writer:                    p.stdout,
		ErrWriter:                 p.stderr,
		ExitErrHandler:            func(*cli.Context, error) {}, // main exits
		Commands: []*cli.Command{
			p.crawlCommand(),
			p.nodeCommand(),
			p.runCommand(),
			p.hostCommand(),
			p.tenantCommand(),
			p.tariffCommand(),
			p.scheduleCommand(),
			p.exportCommand(),
			p.clusterCommand(),
			p.serveCommand(),
			p.userCommand(),
			p.tokenCommand(),
			p.migrateCommand(),
			p.configCommand(),
			p.versionCommand(),
		},
	}
	app.Action = func(c *cli.Context) error {
		if c.Args().Present() {
			return unknownCommand(c.Args().First(), app.Commands)
		}
		return cli.ShowAppHelp(c)
	}
	app.OnUsageError = usageOf
	each(app.Commands, func(c *cli.Command) {
		c.OnUsageError = usageOf
		if len(c.Subcommands) > 0 {
			c.Action = func(ctx *cli.Context) error {
				if ctx.Args().Present() {
					return unknownCommand(ctx.Args().First(), c.Subcommands)
				}
				return usagef("%s: which one? allowed: %s", c.Name, strings.Join(names(c.Subcommands), ", "))
			}
		}
	})
	return app
}

func each(all []*cli.Command, fn func(*cli.Command)) {
	for _, c := range all {
		fn(c)
		each(c.Subcommands, fn)
	}
}

func names(all []*cli.Command) []string {
	out := make([]string, 0, len(all))
	for _, c := range all {
		if c.Name != "help" {
			out = append(out, c.Name)
		}
	}
	return out
}

func unknownCommand(name string, all []*cli.Command) error {
	return usagef("%s: unknown command; allowed: %s", name, strings.Join(names(all), ", "))
}

var badValue = regexp.MustCompile(`(?s)^invalid (?:boolean )?value "(.*)" for (?:flag )?-+([a-z-]+): `)

// usageOf turns the flag package's errors into ours.
func usageOf(c *cli.Context, err error, _ bool) error {
	m := badValue.FindStringSubmatch(err.Error())
	if m == nil {
		return usagef("%s", err.Error())
	}
	allowed := "another value"
	switch findFlag(c.Command, m[2]).(type) {
	case *cli.IntFlag:
		allowed = "a number"
	case *cli.DurationFlag:
		allowed = "a duration such as 90s, 30m or 2h"
	case *cli.BoolFlag:
		allowed = "true or false"
	}
	return usagef("--%s: %q is not allowed; allowed: %s", m[2], m[1], allowed)
}

// sharedKeys are the settings that every command takes as flags.
func sharedKeys() []string {
	return []string{config.KeyDB, config.KeyLog, config.KeyLogFormat, config.KeyLogFile}
}

// settingFlags makes the flags of settings, --config with them.
func settingFlags(keys ...string) []cli.Flag {
	flags := []cli.Flag{&cli.StringFlag{Name: "config", Usage: "settings `FILE`", Category: "SETTINGS"}}
	for _, s := range config.Table() {
		if !slices.Contains(keys, s.Key) {
			continue
		}
		usage := fmt.Sprintf("%s (%s)", strings.ReplaceAll(s.Meaning, "`", ""), s.Key)
		def := strings.ReplaceAll(s.ShownDefault(), "`", "")
		if s.Bool {
			flags = append(flags, &cli.BoolFlag{Name: s.Flag(), Usage: usage, Category: "SETTINGS"})
		} else {
			flags = append(flags, &cli.StringFlag{Name: s.Flag(), Usage: usage, DefaultText: def, Category: "SETTINGS"})
		}
	}
	return flags
}

// settings loads the settings with the command's flags on top, and prints their warnings.
func (p *program) settings(c *cli.Context) (*config.Config, error) {
	in := config.Input{
		Flags: map[string]string{}, Environ: p.environ, File: c.String("config"), Files: config.DefaultFiles(),
		ReadFile: os.ReadFile, Version: p.version,
	}
	for _, s := range config.Table() {
		if c.IsSet(s.Flag()) {
			if s.Bool {
				in.Flags[s.Key] = fmt.Sprint(c.Bool(s.Flag()))
			} else {
				in.Flags[s.Key] = c.String(s.Flag())
			}
		}
	}
	cfg, err := config.Load(in)
	if err != nil {
		return nil, err
	}
	for _, w := range cfg.Warnings {
		p.note("warning: " + w)
	}
	return cfg, nil
}

// note prints a line for the person at the terminal.
func (p *program) note(line string) { _, _ = fmt.Fprintln(p.stderr, line) }
