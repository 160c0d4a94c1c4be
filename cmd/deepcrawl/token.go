package main

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"deepcrawl/internal/admin"
	"deepcrawl/storage"
)

func (p *program) tokenCommand() *cli.Command {
	return &cli.Command{
		Name: "token", Usage: "keys to the API",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "make a token of a user and print it, once", ArgsUsage: "USER",
				Flags: listFlags(&cli.StringFlag{Name: "label", Usage: "what it is for, in `WORDS`"}), Action: p.tokenAdd,
			},
			{Name: "list", Usage: "list tokens", Flags: listFlags(&cli.StringFlag{Name: "user", Usage: "only those of `USER`"}), Action: p.tokenList},
			{Name: "revoke", Usage: "end tokens for good", ArgsUsage: "ID...", Flags: listFlags(), Action: p.tokenRevoke},
		},
	}
}

func (p *program) tokenAdd(c *cli.Context) error {
	name, err := oneUser(c)
	if err != nil {
		return err
	}
	secret, hash, t, err := admin.NewToken(name, c.String("label"))
	if err != nil {
		return usagef("--label: %v", err)
	}
	return p.withUsers(c, func(users storage.Users) error {
		if err := users.AddToken(c.Context, hash, t); err != nil {
			return ofUser(name, err)
		}
		if c.Bool("json") {
			return p.printJSON(map[string]string{"id": t.ID, "user": t.User, "token": secret})
		}
		p.note("token " + t.ID + " of " + name + "; it is not shown again:")
		_, err := fmt.Fprintln(p.stdout, secret)
		return err
	})
}

// tokenRow is a token in JSON.
type tokenRow struct {
	ID      string  `json:"id"`
	User    string  `json:"user"`
	Label   string  `json:"label"`
	Created *string `json:"created"`
	Used    *string `json:"used"`
}

func (p *program) tokenList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return p.withUsers(c, func(users storage.Users) error {
		list, err := users.Tokens(c.Context, c.String("user"))
		if err != nil {
			return err
		}
		rows := []tokenRow{}
		for _, t := range list {
			rows = append(rows, tokenRow{t.ID, t.User, t.Label, isoTime(t.Created), isoTime(t.Used)})
		}
		if c.Bool("json") {
			return p.printJSON(rows)
		}
		w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "TOKEN\tUSER\tCREATED\tLAST USED\tFOR")
		for _, r := range rows {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.User, localTime(r.Created), localTime(r.Used), clean(r.Label))
		}
		return w.Flush()
	})
}

func (p *program) tokenRevoke(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("revoke: which token? deepcrawl token list shows them")
	}
	return p.withUsers(c, func(users storage.Users) error {
		for _, id := range c.Args().Slice() {
			err := users.RevokeToken(c.Context, "", id)
			if errors.Is(err, storage.ErrNotFound) {
				return usagef("%s: no such token; deepcrawl token list shows them", id)
			}
			if err != nil {
				return err
			}
			if !c.Bool("json") {
				_, _ = fmt.Fprintf(p.stdout, "%s: revoked\n", id)
			}
		}
		return nil
	})
}
