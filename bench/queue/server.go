package queue

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"deepcrawl/internal/scratch"
)

// Postgres makes a database on the server that dsn reaches, and returns its own DSN. A schema would not do: a snapshot keeps the dead
// rows of every table of its database.
func Postgres(ctx context.Context, dsn string) (own string, drop func() error, err error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", nil, err
	}
	name := scratch.NewName()
	if err := execPostgres(ctx, dsn, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return execPostgres(ctx, dsn, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	}, nil
}

func execPostgres(ctx context.Context, dsn, statement string) error {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// MySQL makes a database on the server that dsn reaches, and returns its own DSN.
func MySQL(ctx context.Context, dsn string) (own string, drop func() error, err error) {
	own, dropIt, err := scratch.MySQL(ctx, dsn)
	return own, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return dropIt(ctx)
	}, err
}

// Hold opens a snapshot in the database, as a dump does, and keeps it open until release.
func Hold(ctx context.Context, dsn string) (release func() error, err error) {
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	tx, err := c.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err == nil {
		var n int64
		err = tx.QueryRow(ctx, "SELECT COUNT(*) FROM claim").Scan(&n)
	}
	if err != nil {
		_ = c.Close(ctx) // the first error says more
		return nil, err
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		// Asked once more: a snapshot the server has ended meanwhile has measured nothing.
		var n int64
		err := tx.QueryRow(ctx, "SELECT COUNT(*) FROM claim").Scan(&n)
		if e := c.Close(ctx); err == nil {
			err = e
		}
		if err != nil {
			return fmt.Errorf("the snapshot was not held to the end: %w", err)
		}
		return nil
	}, nil
}
