package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func commands() []*cli.Command { return (&program{}).app().Commands }

func TestArrange(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"flags after arguments move before them", "crawl https://a.example --depth 2 --json", "crawl --depth 2 --json -- https://a.example"},
		{"flags before the command move behind it", "--db sqlite:x crawl https://a.example", "crawl --db sqlite:x -- https://a.example"},
		{"flags between commands move too", "run --json list --limit=3", "run list --json --limit=3"},
		{"a value that looks like a command stays a value", "export --what links last", "export --what links -- last"},
		{"a value that looks like a flag stays a value", "crawl --exclude -x https://a.example", "crawl --exclude -x -- https://a.example"},
		{"one dash is enough", "crawl u -depth 2", "crawl -depth 2 -- u"},
		{"a lone dash is a value", "export last -o -", "export -o - -- last"},
		{"what follows two dashes is an argument", "crawl --json -- --depth", "crawl --json -- --depth"},
		{"an argument named like a command is an argument", "crawl https://a.example run", "crawl -- https://a.example run"},
		{"help is left alone", "help crawl", "help crawl"},
		{"an unknown command is left alone", "frobnicate --x", "frobnicate --x"},
		{"nothing is left alone", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := arrange(commands(), append([]string{"deepcrawl"}, strings.Fields(c.in)...))
			if err != nil {
				t.Fatal(err)
			}
			if s := strings.Join(got[1:], " "); s != c.want {
				t.Errorf("got %s, want %s", s, c.want)
			}
		})
	}
	for in, want := range map[string]string{
		"crawl u --dept 3":       "--dept: unknown flag; deepcrawl crawl --help lists the flags",
		"crawl u --dept=3":       "--dept: unknown flag; deepcrawl crawl --help lists the flags",
		"run list --depth 3":     "--depth: unknown flag; deepcrawl run list --help lists the flags",
		"crawl u --depth":        "--depth: needs a value",
		"run show 1 --max-pages": "--max-pages: needs a value",
	} {
		t.Run("refused: "+in, func(t *testing.T) {
			_, err := arrange(commands(), append([]string{"deepcrawl"}, strings.Fields(in)...))
			var usage *usageError
			if !errors.As(err, &usage) || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	t.Run("a flag name has one kind over all commands", func(t *testing.T) {
		isBool := map[string]bool{}
		each(commands(), func(c *cli.Command) {
			for _, f := range c.Flags {
				_, b := f.(*cli.BoolFlag)
				for _, n := range f.Names() {
					if was, ok := isBool[n]; ok && was != b {
						t.Errorf("--%s of %s is a switch in one command and takes a value in another", n, c.Name)
					}
					isBool[n] = b
				}
			}
		})
	})
	t.Run("every command takes --db and --config, and its flags have no name twice", func(t *testing.T) {
		each(commands(), func(c *cli.Command) {
			if len(c.Subcommands) > 0 {
				return
			}
			if findFlag(c, "db") == nil || findFlag(c, "config") == nil {
				t.Errorf("%s lacks --db or --config", c.Name)
			}
			if findFlag(c, "json") == nil && !slices.Contains([]string{"node", "serve", "coord"}, c.Name) { // they print nothing to read
				t.Errorf("%s lacks --json", c.Name)
			}
			seen := map[string]bool{}
			for _, f := range c.Flags {
				for _, n := range f.Names() {
					if seen[n] {
						t.Errorf("%s has --%s twice", c.Name, n)
					}
					seen[n] = true
				}
			}
		})
	})
}

func FuzzArrange(f *testing.F) {
	f.Add("crawl\nhttps://a.example\n--depth\n2")
	f.Add("--db\nx\nrun\nlist\n--\n-x")
	f.Fuzz(func(t *testing.T, line string) {
		args := append([]string{"deepcrawl"}, strings.Split(line, "\n")...)
		got, err := arrange(commands(), args)
		if err != nil {
			return
		}
		again, err := arrange(commands(), got)
		if err != nil || strings.Join(again, "\n") != strings.Join(got, "\n") {
			t.Errorf("arranging twice differs: %q, then %q (%v)", got, again, err)
		}
	})
}
