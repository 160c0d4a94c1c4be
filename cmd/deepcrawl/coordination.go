package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"deepcrawl/coord"
	"deepcrawl/coord/failover"
	"deepcrawl/coord/rediscoord"
	"deepcrawl/coord/session"
	"deepcrawl/coord/sqlcoord"
	"deepcrawl/crawl"
	"deepcrawl/internal/config"
	"deepcrawl/internal/proclock"
	"deepcrawl/storage"
)

// cluster is this process's way to the coordination that all processes on a database share.
type cluster struct {
	coord  coord.Coord
	close  func() error
	timing coord.Timing
	lock   *proclock.Lock // nil: no proof of death
	node   coord.NodeID
	role   coord.Role
	facts  func() map[string]string
}

// openCluster opens the coordination of the database of the settings.
func (p *program) openCluster(ctx context.Context, cfg *config.Config, mode openMode) (*cluster, error) {
	c, err := sqlcoord.Open(ctx, cfg.DB, sqlcoord.Options{Create: bool(mode)})
	if err != nil {
		return nil, explain(cfg, err)
	}
	t := coord.DefaultTiming()
	t.Death = cfg.Reclaim
	cl := &cluster{coord: c, close: c.Close, timing: t}
	if cfg.Coord == string(coord.ModeRedis) {
		if err := p.addRedis(ctx, cfg, cl); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return cl, nil
}

// redisProbe is how long the start waits to say whether Redis is there; it is used or not whatever this finds.
const redisProbe = 2 * time.Second

// addRedis puts the Redis of the settings beside the database. One that may not be used, or is not there, is told and no error: the
// database serves until it is.
func (p *program) addRedis(ctx context.Context, cfg *config.Config, cl *cluster) error {
	second, err := rediscoord.OpenSecond(cfg.RedisURL, rediscoord.Options{Prefix: cfg.RedisPrefix})
	if err != nil {
		return usagef("%s: %s: %v; allowed: %s", config.KeyRedisURL, config.Mask(cfg.RedisURL), err, setting(config.KeyRedisURL).Allowed)
	}
	both := failover.New(cl.coord, second, nil)
	short, cancel := context.WithTimeout(ctx, redisProbe)
	defer cancel()
	if _, err := both.Probe(short); err != nil && ctx.Err() == nil {
		if p.log != nil {
			p.log.Warn("coordination goes through the database until Redis can be used", "redis", config.Mask(cfg.RedisURL), "err", err)
		} else {
			_, _ = fmt.Fprintf(p.stderr, "coordination goes through the database until Redis at %s can be used: %v\n", config.Mask(cfg.RedisURL), err)
		}
	}
	closeDB := cl.close
	cl.coord, cl.close = both, func() error { return errors.Join(second.Close(), closeDB()) }
	return nil
}

// join is crawl.Config.Join.
func (p *program) join(c *cluster, o coord.Options) func(context.Context) (coord.Session, error) {
	o.Node, o.Role, o.Timing, o.Facts = c.node, c.role, c.timing, c.facts
	if c.lock != nil {
		o.Machine, o.LockFile = proclock.Machine(), c.lock.ID
	}
	return func(ctx context.Context) (coord.Session, error) {
		return session.Join(ctx, c.coord, o)
	}
}

// gone is crawl.Config.Gone: an owner is over when its session is not among the live ones.
func (c *cluster) gone(ctx context.Context) (func(storage.Owner) bool, error) {
	all, err := c.coord.Sessions(ctx)
	if err != nil {
		if errors.Is(err, coord.ErrUnavailable) || errors.Is(err, coord.ErrUnknown) {
			err = fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
		}
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	live := make(map[storage.Owner]bool, len(all))
	for _, s := range all {
		if s.State == coord.Live {
			live[storage.Owner(s.Member.String())] = true
		}
	}
	return func(o storage.Owner) bool { return !live[o] }, nil
}

// lockPath is the lock file of a thing that one process of a machine does on a database, in the folder of this user's lock files;
// the name tells databases apart.
func lockPath(cfg *config.Config, thing string) (string, error) {
	db := config.Mask(cfg.DB) // without the password, which may be changed while a node runs
	if path, ok := sqliteFile(cfg.DB); ok {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
		db = abs
	}
	dir, err := proclock.Dir()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(db))
	return filepath.Join(dir, hex.EncodeToString(sum[:6])+"."+thing+".lock"), nil
}

func randomName(prefix string) coord.NodeID {
	var b [4]byte
	_, _ = rand.Read(b[:])
	return coord.NodeID(prefix + "-" + hex.EncodeToString(b[:]))
}

// built is the time of this executable's file, which says which of two builds is the newer.
func built() time.Time {
	name, err := os.Executable()
	if err != nil {
		return time.Time{}
	}
	st, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime().UTC()
}

func (p *program) holder(node coord.NodeID) proclock.Holder {
	return proclock.Holder{PID: os.Getpid(), Node: string(node), Version: p.version, Built: built(), Since: p.now().UTC()}
}

// nodeFacts are what listings show of a session.
func (p *program) nodeFacts(cfg *config.Config, workers, runWorkers int, stats func() crawl.Stats) func() map[string]string {
	host, _ := os.Hostname() // empty where there is none
	return func() map[string]string {
		s := stats()
		f := map[string]string{
			factVersion: p.version, factHost: host, factPID: strconv.Itoa(os.Getpid()), factWorkers: strconv.Itoa(workers),
			factCap: strconv.Itoa(cfg.HostInflight), factInFlight: strconv.Itoa(s.InFlight),
		}
		if runWorkers > 0 {
			f[factRunWorkers] = strconv.Itoa(runWorkers)
		}
		if s.Paused != "" {
			f[factPaused] = s.Paused
		}
		if s.Late > 0 {
			f[factLate] = strconv.FormatInt(s.Late, 10)
		}
		if d := s.Dwell; d.N > 0 {
			f[factDwell] = fmt.Sprintf("%d %d %d %d", d.N, d.P50.Milliseconds(), d.P95.Milliseconds(), d.Max.Milliseconds())
		}
		if x := s.Fairness; x != nil && x.Runs > 0 && s.Leading {
			var starved []string
			for _, id := range x.Starved {
				starved = append(starved, id.String())
			}
			f[factFair] = fmt.Sprintf("%.3f %d %s", x.Jain, x.Runs, strings.Join(starved, ","))
		}
		return f
	}
}
