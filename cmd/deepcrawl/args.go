package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange puts the flags of a command before its arguments, wherever they stood, because urfave/cli stops reading flags at the
// first argument. Flags that the command does not have and flags without their value are refused here, with the flag's name.
// Arguments after "--" are left alone.
func arrange(commands []*cli.Command, args []string) ([]string, error) {
	a := arranger{level: commands}
	rest := args[1:]
	for i := 0; i < len(rest); i++ {
		arg := rest[i]
		switch {
		case arg == "--":
			a.args = append(a.args, rest[i+1:]...)
			i = len(rest)
		case len(arg) > 1 && arg[0] == '-':
			a.flags = append(a.flags, arg)
			if a.wantsValue(arg, commands) && !strings.Contains(arg, "=") {
				if i+1 == len(rest) {
					return nil, usagef("%s: needs a value", arg)
				}
				i++
				a.flags = append(a.flags, rest[i])
			}
		default:
			if !a.descend(arg) {
				a.args = append(a.args, arg)
			}
		}
	}
	if a.command == nil { // help, nothing, or no command of ours: urfave/cli says what there is to say
		return args, nil
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	out := append([]string{args[0]}, a.path...)
	out = append(out, a.flags...)
	if len(a.args) > 0 {
		out = append(append(out, "--"), a.args...)
	}
	return out, nil
}

type arranger struct {
	level   []*cli.Command // commands that the next argument may name
	command *cli.Command   // the innermost named so far
	path    []string
	flags   []string // with their values
	args    []string
}

func (a *arranger) descend(arg string) bool {
	if len(a.args) > 0 {
		return false
	}
	for _, c := range a.level {
		if c.HasName(arg) {
			a.command, a.level, a.path = c, c.Subcommands, append(a.path, arg)
			return true
		}
	}
	return false
}

// flagName takes dashes and value off.
func flagName(arg string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return name
}

// wantsValue looks in all commands: a flag may stand before the command it belongs to. One name means one kind of flag
// everywhere, which a test sees to.
func (a *arranger) wantsValue(arg string, commands []*cli.Command) bool {
	wants := false
	each(commands, func(c *cli.Command) {
		if f := findFlag(c, flagName(arg)); f != nil {
			_, isBool := f.(*cli.BoolFlag)
			wants = wants || !isBool
		}
	})
	return wants
}

func findFlag(c *cli.Command, name string) cli.Flag {
	for _, f := range c.Flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

// check refuses flags that the command does not have.
func (a *arranger) check() error {
	for i := 0; i < len(a.flags); i++ {
		name := flagName(a.flags[i])
		if name == "h" || name == "help" {
			continue
		}
		f := findFlag(a.command, name)
		if f == nil {
			return usagef("%s: unknown flag; deepcrawl %s --help lists the flags", strings.SplitN(a.flags[i], "=", 2)[0], strings.Join(a.path, " "))
		}
		if _, isBool := f.(*cli.BoolFlag); !isBool && !strings.Contains(a.flags[i], "=") {
			i++ // its value
		}
	}
	return nil
}
