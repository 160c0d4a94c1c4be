package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"deepcrawl/coord"
	"deepcrawl/coord/session"
	"deepcrawl/internal/config"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

func (p *program) clusterCheckCommand() *cli.Command {
	return &cli.Command{
		Name: "check", Usage: "try database and coordination for real, on keys made for it; takes some 10 seconds",
		Description: "Each line says ok, or failed with what to do. Everything made for it is removed. Nodes may be at work meanwhile.",
		Flags:       append(settingFlags(append(sharedKeys(), config.KeyCoord, config.KeyRedisURL, config.KeyRedisPrefix, config.KeyReclaim)...), jsonFlag()),
		Action:      p.clusterCheck,
	}
}

// checkLine is the outcome of one check.
type checkLine = show.CheckLine

const (
	checkOK      = "ok"
	checkFailed  = "failed"
	checkSkipped = "skipped"
	checkNote    = "note"
)

// checker tries one thing after the other. Later checks use what earlier ones made, and are skipped where it is missing.
type checker struct {
	opened
	p      *program
	ctx    context.Context
	json   bool
	told   func(checkLine) // gets each line instead of stdout
	name   string          // of the tenant and start of the nodes' names
	timing coord.Timing
	key    coord.Key // a host that nobody asks
	a, b   *session.Session
	silent coord.Registered // a session that never beats
	lines  []checkLine
	failed int
}

// check tries one thing. needs says what must have gone well before; empty: nothing.
func (k *checker) check(name, advice string, possible bool, do func() (detail string, err error)) bool {
	line := checkLine{Check: name, State: checkOK}
	if !possible {
		line.State, line.Detail = checkSkipped, "what it builds on failed"
		k.say(line)
		return false
	}
	detail, err := do()
	if err != nil {
		line.State, line.Detail, line.Advice = checkFailed, strings.Join(strings.Fields(config.Mask(err.Error())), " "), advice
		k.failed++
	} else {
		line.Detail = detail
	}
	k.say(line)
	return err == nil
}

func (k *checker) say(line checkLine) {
	k.lines = append(k.lines, line)
	if k.told != nil {
		k.told(line)
		return
	}
	if k.json {
		return
	}
	text := fmt.Sprintf("%-7s  %-34s %s", line.State, line.Check, clean(line.Detail))
	if line.Advice != "" {
		text += "; " + line.Advice
	}
	_, _ = fmt.Fprintln(k.p.stdout, strings.TrimRight(text, " "))
}

func (p *program) clusterCheck(c *cli.Context) error {
	if err := noArgs(c); err != nil {
		return err
	}
	reached := false
	err := p.withCluster(c, func(o opened) error {
		reached = true
		k := p.newChecker(c.Context, o)
		k.json = c.Bool("json")
		k.all()
		if k.json {
			if err := p.printJSON(k.lines); err != nil {
				return err
			}
		}
		if c.Context.Err() != nil {
			return c.Context.Err()
		}
		if k.failed > 0 {
			return fmt.Errorf("%s failed", plural(int64(k.failed), "check"))
		}
		return nil
	})
	if err == nil || reached || exitCode(err) != exitFailed || c.Context.Err() != nil {
		return err
	}
	k := &checker{p: p, ctx: c.Context, json: c.Bool("json")}
	k.check("database", adviseOpen, true, func() (string, error) { return "", err })
	if k.json {
		if err := p.printJSON(k.lines); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s failed", plural(int64(k.failed), "check"))
}

func (p *program) newChecker(ctx context.Context, o opened) *checker {
	timing := coord.DefaultTiming()
	timing.Death = o.cfg.Reclaim
	name := string(randomName("check"))
	return &checker{opened: o, p: p, ctx: ctx, name: name, timing: timing, key: coord.HostKey(name + ".invalid")}
}

// Advice that several checks share.
const (
	adviseOpen    = "see that the address is right, the server answers and its schema is that of this version (deepcrawl migrate)"
	adviseDB      = "see that the database answers and its user may write"
	adviseMigrate = "run deepcrawl migrate with this version"
	adviseReport  = "this is not how it must be: stop the nodes and report it with the output of deepcrawl cluster status --json"
	adviseClock   = "set the clocks by NTP on both machines"
)

func (k *checker) all() {
	ok := k.check("schema", adviseMigrate, true, func() (string, error) {
		return databaseWords(k.cfg.DB), k.store.Ping(k.ctx)
	})
	registered := k.check("clock", adviseClock, ok, k.clock)
	joined := k.check("sessions", adviseDB, registered, k.join)
	k.check("beat", adviseDB, joined, k.beat)
	taken := k.check("lease: taken", adviseDB, joined, func() (string, error) {
		l, err := k.a.Lease(k.ctx, k.name+"-kept", time.Second)
		if err != nil {
			return "", err
		}
		return "fence " + l.Fence().String(), nil
	})
	k.check("lease: refused to a second", adviseReport, taken, func() (string, error) {
		_, err := k.b.Lease(k.ctx, k.name+"-kept", time.Second)
		if err == nil {
			return "", errors.New("two sessions hold one lease")
		}
		if !errors.Is(err, coord.ErrHeld) {
			return "", err
		}
		return "", nil
	})
	k.lapse(joined)
	k.slots(joined)
	k.check("gate", adviseReport, joined, k.gate)
	k.check("rate", adviseReport, joined, k.rate)
	k.claims(joined)
	k.redis()
	k.nodes()
	k.check("clean-up", "run it again: what is left over is removed by the next check an hour later", true, k.cleanUp)
}

// databaseWords names the kind of database.
func databaseWords(dsn string) string {
	kind, _, _ := strings.Cut(dsn, ":")
	switch kind {
	case "sqlite":
		return "SQLite"
	case "postgres", "postgresql", "pg":
		return "PostgreSQL"
	}
	return "MySQL or MariaDB"
}

// clockMost is the difference between clocks that is not told: times are shown to people in whole seconds.
const clockMost = 2 * time.Second

// clock registers the session that will be silent, and compares the server's clock with this machine's.
func (k *checker) clock() (string, error) {
	began := k.p.now()
	var err error
	k.silent, err = k.coord.Register(k.ctx, coord.Registration{Node: coord.NodeID(k.name + "s"), Role: coord.RoleTool})
	if err != nil {
		return "", err
	}
	ended := k.p.now()
	// The server's time lies within the call; the second call has nothing to set up.
	middle := began.Add(ended.Sub(began) / 2)
	d := time.UnixMicro(int64(k.silent.Now)).Sub(middle)
	words := fmt.Sprintf("server is %s from this machine's clock (give or take %s)", signed(d), (ended.Sub(began) / 2).Round(time.Millisecond/10))
	if d.Abs() > clockMost+ended.Sub(began)/2 {
		return "", errors.New(words)
	}
	return words, nil
}

func signed(d time.Duration) string {
	d = d.Round(time.Millisecond / 10)
	if d >= 0 {
		return "+" + d.String()
	}
	return d.String()
}

func (k *checker) join() (string, error) {
	for _, s := range []struct {
		suffix string
		to     **session.Session
	}{{"a", &k.a}, {"b", &k.b}} {
		got, err := session.Join(k.ctx, k.coord, coord.Options{
			Node: coord.NodeID(k.name + s.suffix), Role: coord.RoleTool, Timing: k.timing, Log: slog.New(slog.DiscardHandler),
			Facts: func() map[string]string { return map[string]string{factVersion: k.p.version} },
		})
		if err != nil {
			return "", err
		}
		*s.to = got
	}
	a := k.a.Status().Authority
	return fmt.Sprintf("two joined; coordination is %s, epoch %d", a.Mode, a.Epoch), nil
}

// until asks again until done says so, for at most this long.
func (k *checker) until(most time.Duration, done func() (bool, error)) (took time.Duration, err error) {
	began := k.p.now()
	for {
		ok, err := done()
		took = k.p.now().Sub(began)
		if ok || err != nil {
			return took, err
		}
		if took > most {
			return took, fmt.Errorf("not within %s", most)
		}
		if !pause(k.ctx, 50*time.Millisecond) {
			return took, k.ctx.Err()
		}
	}
}

func (k *checker) beat() (string, error) {
	first := uint64(0)
	took, err := k.until(3*k.timing.Beat, func() (bool, error) {
		all, err := k.coord.Sessions(k.ctx)
		if err != nil {
			return false, err
		}
		for _, i := range all {
			if i.Member != k.a.ID() {
				continue
			}
			if first == 0 {
				first = i.Seq
			}
			return i.Seq > first && i.Age < k.timing.Beat, nil
		}
		return false, errors.New("the session is not listed")
	})
	return "seen by others within " + took.Round(10*time.Millisecond).String(), err
}

// lapse lets a session take a lease and never renew it.
func (k *checker) lapse(joined bool) {
	name := k.name + "-lapsed"
	a := k.silent.Authority
	hold := coord.Hold{
		Member: k.silent.Member, Name: name, Token: 1, TTL: time.Second,
		View: coord.View{Epoch: a.Epoch, Mode: a.Mode, DB: a.DB, Until: k.silent.Now + coord.Micros(k.timing.View.Microseconds())},
	}
	var old, next coord.Fence
	expired := k.check("lease: expires", adviseReport, joined, func() (string, error) {
		held, err := k.coord.Hold(k.ctx, hold)
		if err != nil {
			return "", err
		}
		old = held.Fence
		took, err := k.until(4*hold.TTL, func() (bool, error) {
			l, err := k.b.Lease(k.ctx, name, time.Second)
			if errors.Is(err, coord.ErrHeld) {
				return false, nil
			}
			if err == nil {
				next = l.Fence()
			}
			return err == nil, err
		})
		if err == nil && took < hold.TTL/2 {
			err = fmt.Errorf("a lease of %s went to another after %s", hold.TTL, took)
		}
		return "after " + took.Round(10*time.Millisecond).String(), err
	})
	k.check("lease: past holder is fenced", adviseReport, expired, func() (string, error) {
		if !old.Less(next) {
			return "", fmt.Errorf("fence %s came after %s", next, old)
		}
		_, err := k.coord.Hold(k.ctx, hold)
		if err == nil {
			return "", errors.New("it could renew a lease that another holds")
		}
		if !errors.Is(err, coord.ErrLost) && !errors.Is(err, coord.ErrHeld) && !errors.Is(err, coord.ErrNoView) {
			return "", err
		}
		return fmt.Sprintf("fence %s, then %s", old, next), nil
	})
}

// checkCap is the cap of the key that slots are tried on.
const checkCap = 3

func (k *checker) slots(joined bool) {
	need := coord.Need{Keys: []coord.CappedKey{{Key: k.key, Cap: checkCap}}, N: 2}
	var mine []coord.Permit
	toCap := k.check("slots: to the cap", adviseReport, joined, func() (string, error) {
		for _, s := range []*session.Session{k.a, k.b} {
			got, err := s.Acquire(k.ctx, need)
			if err != nil {
				return "", err
			}
			mine = append(mine, got...)
		}
		// Two and two are asked for: all or nothing is for the keys of one permit, not for the number.
		if len(mine) < checkCap {
			return "", fmt.Errorf("%d of %d granted", len(mine), checkCap)
		}
		return fmt.Sprintf("%d of %d over two sessions", checkCap, checkCap), nil
	})
	k.check("slots: not beyond", adviseReport, toCap, func() (string, error) {
		if len(mine) > checkCap {
			return "", fmt.Errorf("%d granted of a cap of %d", len(mine), checkCap)
		}
		for _, s := range []*session.Session{k.a, k.b} {
			got, err := s.Acquire(k.ctx, coord.Need{Keys: need.Keys, N: 1})
			if err != nil {
				return "", err
			}
			if len(got) > 0 {
				mine = append(mine, got...)
				return "", fmt.Errorf("%d granted of a cap of %d", len(mine), checkCap)
			}
		}
		recorded, err := k.coord.Occupied(k.ctx, k.key)
		if err == nil && len(recorded) != checkCap {
			err = fmt.Errorf("%d recorded, %d granted", len(recorded), checkCap)
		}
		return "", err
	})
	for _, permit := range mine {
		permit.Release()
	}
}

func (k *checker) gate() (string, error) {
	const long = time.Minute
	if err := k.a.Pause(k.ctx, k.key, long, "cluster check"); err != nil {
		return "", err
	}
	if _, _, closed := k.a.Gate(k.key); !closed {
		return "", errors.New("it is open for the session that closed it")
	}
	limit := k.timing.Beat + time.Second
	closed, err := k.until(limit+time.Second, func() (bool, error) { _, _, c := k.b.Gate(k.key); return c, nil })
	if err != nil {
		return "", fmt.Errorf("another session does not see it: %w", err)
	}
	got, err := k.b.Acquire(k.ctx, coord.Need{Keys: []coord.CappedKey{{Key: k.key, Cap: checkCap}}, N: 1})
	if err != nil || len(got) > 0 {
		return "", errors.Join(err, fmt.Errorf("%d slots granted behind a closed gate", len(got)))
	}
	if _, err := k.coord.Clear(k.ctx, k.key); err != nil {
		return "", err
	}
	opened, err := k.until(limit+time.Second, func() (bool, error) { _, _, c := k.b.Gate(k.key); return !c, nil })
	if err != nil {
		return "", fmt.Errorf("another session does not see it cleared: %w", err)
	}
	return fmt.Sprintf("closed for another session after %s, cleared after %s", closed.Round(10*time.Millisecond), opened.Round(10*time.Millisecond)), nil
}

func (k *checker) rate() (string, error) {
	const window = 2 * time.Second
	limit := coord.RateLimit{PerSecond: 5, Burst: 1}
	key := coord.Key("check:" + k.name)
	granted := 0
	began := k.p.now()
	for k.p.now().Sub(began) < window {
		for _, s := range []*session.Session{k.a, k.b} {
			wait, err := s.Take(k.ctx, key, limit)
			if err != nil && !errors.Is(err, coord.ErrUnknown) {
				return "", err
			}
			if err == nil && wait == 0 {
				granted++
			}
		}
		if !pause(k.ctx, 20*time.Millisecond) {
			return "", k.ctx.Err()
		}
	}
	took := k.p.now().Sub(began)
	most := int(limit.PerSecond*took.Seconds()) + limit.Burst
	words := fmt.Sprintf("%d granted in %s at %g a second", granted, took.Round(10*time.Millisecond), limit.PerSecond)
	if granted > most || granted < most/3 {
		return "", fmt.Errorf("%s: allowed are at most %d", words, most)
	}
	return words, nil
}

// nodes notes what of the settings of live nodes is not as it should be; nothing is changed by it.
func (k *checker) nodes() {
	s, err := k.p.look(k.ctx, k.opened)
	if err != nil {
		k.check("nodes", adviseDB, true, func() (string, error) { return "", err })
		return
	}
	s.runs = slices.DeleteFunc(s.runs, func(w storage.Waiting) bool { return w.Run.Tenant == k.name })
	nodes := s.liveNodes()
	k.say(checkLine{Check: "nodes", State: checkOK, Detail: plural(int64(len(nodes)), "node") + " running"})
	for _, w := range s.warnings(s.status(false)) {
		if w.Code != warnRunWorkers {
			k.say(checkLine{Check: "nodes: " + w.Code, State: checkNote, Detail: w.Text})
		}
	}
	if text := runWorkersIdle(nodes, 1); text != "" {
		k.say(checkLine{Check: "nodes: " + warnRunWorkers, State: checkNote, Detail: text})
	}
}

// redis tries the server that slots and rates can move to.
func (k *checker) redis() {
	if k.cfg.Coord != "redis" {
		return
	}
	second, ok := k.coord.(coord.Second)
	k.check("redis: reachable", "see that "+config.KeyRedisURL+" is right and the server answers", true, func() (string, error) {
		if !ok {
			return "", errors.New("coordination goes through the database only")
		}
		began := k.p.now()
		got, err := second.Probe(k.ctx)
		if err != nil {
			return "", err
		}
		took := k.p.now().Sub(began)
		d := time.UnixMicro(int64(got.Now)).Sub(began.Add(took / 2))
		if !got.Eligible {
			return "", errors.New("it may evict keys or is no master; set maxmemory-policy to noeviction")
		}
		return fmt.Sprintf("run %.8s, answers in %s, clock %s from this machine's", got.Ident.RunID, took.Round(time.Millisecond/10), signed(d)), nil
	})
}

// checkLeft is how old the leftovers of a check that was killed are when the next one removes them.
const checkLeft = time.Hour

// cleanUp removes all that was made, and what checks left over that were killed.
func (k *checker) cleanUp() (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), 30*time.Second)
	defer cancel()
	var errs []error
	if k.a != nil {
		_, err := k.coord.Clear(ctx, k.key)
		errs = append(errs, err, k.a.Leave(ctx))
	}
	if k.b != nil {
		errs = append(errs, k.b.Leave(ctx))
	}
	if k.silent.Member.Node != "" {
		errs = append(errs, k.coord.Leave(ctx, k.silent.Member))
	}
	tenants, err := k.store.Tenants(ctx)
	errs = append(errs, err)
	names := []string{k.name}
	for _, t := range tenants {
		if strings.HasPrefix(t.Name, "check-") && len(t.Name) == len(k.name) && k.p.now().Sub(t.Created) > checkLeft {
			names = append(names, t.Name)
		}
	}
	for _, name := range names {
		for done := false; !done; {
			done, err = k.store.DeleteTenant(ctx, name, deleteBatch)
			if errors.Is(err, storage.ErrNotFound) {
				break
			}
			if err != nil {
				errs = append(errs, err)
				break
			}
		}
	}
	return "everything made for the check is removed", errors.Join(errs...)
}
