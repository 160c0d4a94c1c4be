package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"deepcrawl/internal/admin"
	"deepcrawl/storage"
)

func (p *program) userCommand() *cli.Command {
	return &cli.Command{
		Name: "user", Usage: "who may sign in at the pages",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "add a user; the password is read from the terminal or from standard input", ArgsUsage: "NAME",
				Flags: listFlags(
					&cli.StringFlag{Name: "role", Usage: "operator (everything), member (starts and steers its tenant's runs) or viewer (sees them)", Value: string(storage.RoleMember)},
					&cli.StringFlag{Name: "tenant", Usage: "whose runs a member or viewer sees"},
				),
				Action: p.userAdd,
			},
			{Name: "passwd", Usage: "set a user's password; sessions end", ArgsUsage: "NAME", Flags: listFlags(), Action: p.userPasswd},
			{Name: "list", Usage: "list users", Flags: listFlags(), Action: p.userList},
			{Name: "remove", Usage: "remove users with their sessions and tokens", ArgsUsage: "NAME...", Flags: listFlags(), Action: p.userRemove},
		},
	}
}

// userRow is a user in JSON.
type userRow struct {
	Name    string       `json:"name"`
	Role    storage.Role `json:"role"`
	Tenant  string       `json:"tenant"`
	Created *string      `json:"created"`
}

func oneUser(c *cli.Context) (string, error) {
	if c.NArg() != 1 {
		return "", usagef("%s: takes one user name", c.Command.Name)
	}
	name := strings.ToLower(c.Args().First())
	if err := admin.CheckUserName(name); err != nil {
		return "", usagef("%s: %v", c.Args().First(), err)
	}
	return name, nil
}

// withUsers opens the database with its users.
func (p *program) withUsers(c *cli.Context, fn func(storage.Users) error) error {
	return p.withStore(c, mustExist, func(st storage.Store) error {
		users, ok := st.(storage.Users)
		if !ok {
			return errors.New("the database keeps no users")
		}
		return fn(users)
	})
}

func (p *program) userAdd(c *cli.Context) error {
	name, err := oneUser(c)
	if err != nil {
		return err
	}
	u := storage.User{Name: name, Role: storage.Role(c.String("role")), Tenant: c.String("tenant")}
	if err := admin.CheckRole(u); err != nil {
		return usagef("--role, --tenant: %v", err)
	}
	return p.withUsers(c, func(users storage.Users) error {
		_, err := users.User(c.Context, name)
		if err == nil {
			return usagef("%s: there is such a user already; deepcrawl user passwd %s sets the password", name, name)
		}
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if u.Hash, err = p.newPassword(); err != nil {
			return err
		}
		err = users.PutUser(c.Context, u)
		if errors.Is(err, storage.ErrNotFound) {
			return usagef("--tenant: there is no tenant %q; deepcrawl tenant list shows them", u.Tenant)
		}
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return p.printJSON(userRow{Name: u.Name, Role: u.Role, Tenant: u.Tenant})
		}
		_, err = fmt.Fprintf(p.stdout, "%s: added, %s\n", u.Name, u.Role)
		return err
	})
}

func (p *program) userPasswd(c *cli.Context) error {
	name, err := oneUser(c)
	if err != nil {
		return err
	}
	return p.withUsers(c, func(users storage.Users) error {
		u, err := users.User(c.Context, name)
		if err != nil {
			return ofUser(name, err)
		}
		if u.Hash, err = p.newPassword(); err != nil {
			return err
		}
		if err := users.PutUser(c.Context, u); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%s: password set, sessions ended\n", name)
		return err
	})
}

func ofUser(name string, err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return usagef("%s: no such user; deepcrawl user list shows them", name)
	}
	return err
}

func (p *program) userList(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	return p.withUsers(c, func(users storage.Users) error {
		list, err := users.Users(c.Context)
		if err != nil {
			return err
		}
		rows := []userRow{}
		for _, u := range list {
			rows = append(rows, userRow{u.Name, u.Role, u.Tenant, isoTime(u.Created)})
		}
		if c.Bool("json") {
			return p.printJSON(rows)
		}
		w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
		_, _ = fmt.Fprintln(w, "NAME\tROLE\tTENANT\tCREATED")
		for _, r := range rows {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, r.Role, r.Tenant, localTime(r.Created))
		}
		return w.Flush()
	})
}

func (p *program) userRemove(c *cli.Context) error {
	if !c.Args().Present() {
		return usagef("remove: which user? deepcrawl user list shows them")
	}
	return p.withUsers(c, func(users storage.Users) error {
		for _, name := range c.Args().Slice() {
			if err := users.DropUser(c.Context, name); err != nil {
				return ofUser(name, err)
			}
			if !c.Bool("json") {
				_, _ = fmt.Fprintf(p.stdout, "%s: removed\n", name)
			}
		}
		return nil
	})
}

// newPassword reads a password, without showing it where it is typed, and returns what is stored of it.
func (p *program) newPassword() (hash string, err error) {
	var password string
	if fd := int(os.Stdin.Fd()); term.IsTerminal(fd) {
		_, _ = fmt.Fprint(p.stderr, "password: ")
		b, err := term.ReadPassword(fd)
		_, _ = fmt.Fprintln(p.stderr)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		password = string(b)
	} else {
		line, err := bufio.NewReader(io.LimitReader(os.Stdin, 4096)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the password: %w", err)
		}
		password = strings.TrimRight(line, "\r\n")
	}
	if err := admin.CheckPassword(password); err != nil {
		return "", usagef("password: %v", err)
	}
	return admin.HashPassword(password), nil
}
