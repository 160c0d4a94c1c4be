package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/coord"
	"deepcrawl/internal/config"
)

// coordWait is how long the command waits for the switch it asked for; the cluster goes on with it whether or not somebody waits.
const coordWait = 30 * time.Second

func (p *program) clusterCoordCommand() *cli.Command {
	return &cli.Command{
		Name: "coord", Usage: "move coordination to the database, and keep it there, or let it go to Redis again", ArgsUsage: "db|redis",
		Flags:  settingFlags(append(sharedKeys(), config.KeyCoord, config.KeyRedisURL, config.KeyRedisPrefix)...),
		Action: p.clusterCoord,
	}
}

func (p *program) clusterCoord(c *cli.Context) error {
	mode := coord.Mode(c.Args().First())
	if c.NArg() != 1 || mode != coord.ModeDB && mode != coord.ModeRedis {
		return usagef("cluster coord: %q; allowed: db or redis", c.Args().Slice())
	}
	return p.withCluster(c, func(o opened) error {
		from, err := switchTo(c.Context, o.coord, mode)
		if err != nil {
			return err
		}
		a, done, err := p.awaitMode(c.Context, o.coord, mode, from)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("coordination is with %s, epoch %d", a.Mode, a.Epoch)
		switch {
		case !done && a.Mode == coord.ModeDrain:
			text = fmt.Sprintf("coordination moves to %s, epoch %d; it ends when every session has agreed, and with no session when the first starts", a.Target, a.Epoch)
		case !done:
			return fmt.Errorf("coordination is with %s, epoch %d, not %s: Redis could not be used", a.Mode, a.Epoch, mode)
		}
		_, err = fmt.Fprintln(p.stdout, text)
		return err
	})
}

// errNoSession: there is no authority yet that could change.
var errNoSession = errors.New("no session has been on this database yet, so there is nothing to move")

// switchTo begins a switch where there is what it is to lead to, for commands and pages, and returns the epoch it left.
func switchTo(ctx context.Context, co coord.Coord, mode coord.Mode) (coord.Epoch, error) {
	if mode == coord.ModeRedis && !hasRedis(co) {
		return 0, usagef("cluster coord redis: no Redis is configured here; set DEEPCRAWL_COORD=redis and DEEPCRAWL_REDIS_URL")
	}
	return moveTo(ctx, co, mode)
}

// hasRedis says whether this process is to use Redis.
func hasRedis(co coord.Coord) bool {
	_, second := co.(coord.Second)
	return second
}

// moveTo begins the switch and returns the epoch it left.
func moveTo(ctx context.Context, co coord.Coord, mode coord.Mode) (coord.Epoch, error) {
	for {
		a, _, err := co.Authority(ctx)
		if err != nil {
			return 0, err
		}
		if a.Epoch == 0 {
			return 0, errNoSession
		}
		if a.Mode == mode && (mode == coord.ModeRedis || a.Pin == mode) {
			return a.Epoch - 1, nil // it is there already
		}
		_, err = co.Drain(ctx, coord.Drain{From: a.Epoch, Target: mode, Pin: mode, Reason: "operator"})
		if !errors.Is(err, coord.ErrStale) { // else another switch was first
			return a.Epoch, err
		}
	}
}

// awaitMode waits for a mode of a later epoch, or for the other one, which is where a switch to an unusable Redis ends.
func (p *program) awaitMode(ctx context.Context, co coord.Coord, mode coord.Mode, from coord.Epoch) (a coord.Authority, done bool, err error) {
	end := p.now().Add(coordWait)
	for {
		if a, _, err = co.Authority(ctx); err != nil {
			return a, false, err
		}
		if a.Epoch > from && a.Mode != coord.ModeDrain {
			return a, a.Mode == mode, nil
		}
		sessions, err := co.Sessions(ctx)
		if err != nil {
			return a, false, err
		}
		live := false
		for _, s := range sessions {
			live = live || s.State == coord.Live
		}
		if !live || p.now().After(end) {
			return a, false, nil
		}
		select {
		case <-ctx.Done():
			return a, false, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
