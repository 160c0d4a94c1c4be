package config

import (
	"fmt"
	"strings"
)

// Markdown is docs/configuration.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Settings

<!-- Generated from internal/config/table.go by "make docs"; a test compares. -->

A setting is taken from the first of: its flag, its environment variable, the settings file. The settings file is the first of
` + "`--config FILE`, `./deepcrawl.env` and `/etc/deepcrawl/deepcrawl.env`" + ` that there is; only that one is read. It holds KEY=VALUE lines;
empty lines and lines starting with ` + "`#`" + ` are skipped. cron has no environment, so nodes started by it take their settings from the file,
which can be the same on every node, the node id apart.

` + "`deepcrawl config`" + ` shows each value in force and where it came from, passwords masked.

| variable | flag | default | meaning | allowed |
|---|---|---|---|---|
`)
	for _, s := range Table() {
		fmt.Fprintf(&b, "| `%s` | `--%s` | %s | %s | %s |\n", s.Key, s.Flag(), s.ShownDefault(), s.Meaning, s.Allowed)
	}
	b.WriteString(`
## Secrets

These may hold a password. They can be given in a file of their own, whose path is the setting with ` + "`_FILE`" + ` behind its name; their
passwords are masked wherever they are shown or logged.

`)
	for _, s := range Table() {
		if s.Secret {
			fmt.Fprintf(&b, "- `%s`, `%s_FILE`\n", s.Key, s.Key)
		}
	}
	b.WriteString(`
## Older names

Read where the new name is set nowhere.

| older name | now |
|---|---|
`)
	for _, s := range Table() {
		if s.Older != "" {
			fmt.Fprintf(&b, "| `%s` | `%s` |\n", s.Older, s.Key)
		}
	}
	b.WriteString("\n`SEOMASTER_DB_*` is no longer read: set without `" + KeyDB + "` it is an error that says what to set.\n")
	return b.String()
}
