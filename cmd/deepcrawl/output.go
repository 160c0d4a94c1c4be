package main

import (
	"encoding/json"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/internal/show"
)

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print JSON instead of text"}
}

// printJSON prints one value as indented JSON.
func (p *program) printJSON(v any) error {
	e := json.NewEncoder(p.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func noArgs(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("%s: unexpected argument; %s takes none", c.Args().First(), c.Command.Name)
	}
	return nil
}

// How things are written for people is decided in package show.

func count(n int64) string              { return show.Count(n) }
func plural(n int64, one string) string { return show.Plural(n, one) }
func size(n int64) string               { return show.Size(n) }
func span(d time.Duration) string       { return show.Span(d) }
func stamp(t time.Time) string          { return show.Stamp(t) }
func isoTime(t time.Time) *string       { return show.ISO(t) }
func clip(s string, width int) string   { return show.Clip(s, width) }
func clean(s string) string             { return show.Clean(s) }
