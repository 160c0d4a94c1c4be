package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"deepcrawl/bench/proc"
	"deepcrawl/soak/web"
)

// runner runs crawls of freshly started sites with built binaries.
type runner struct {
	dir        string // for everything it writes
	site, null string // binaries
	deep       string
	// nullWorkers lets the null crawler parse in its workers.
	nullWorkers bool
	profile     string // folder for CPU profiles, "" for none
	profileFor  time.Duration
	say         io.Writer
	runs        int
	servers     map[string]string // by what stands for a database of theirs in a DSN
}

// build compiles what runs. root is the checkout of deepcrawl; where the
// runner has a binary already that is taken, and wantDeep false builds none.
func (r *runner) build(ctx context.Context, root, profile string, wantDeep bool) error {
	r.site, r.null = filepath.Join(r.dir, "site"), filepath.Join(r.dir, "null")
	bench := filepath.Join(root, "bench")
	if err := goBuild(ctx, bench, r.site, "", "./cmd/site"); err != nil {
		return err
	}
	if err := goBuild(ctx, bench, r.null, "", "./cmd/null"); err != nil {
		return err
	}
	if !wantDeep || r.deep != "" {
		return nil
	}
	r.deep = filepath.Join(r.dir, "deepcrawl")
	overlay := ""
	if profile != "" {
		var err error
		if overlay, err = profileOverlay(r.dir, root); err != nil {
			return err
		}
	}
	return goBuild(ctx, root, r.deep, overlay, "./cmd/deepcrawl")
}

func goBuild(ctx context.Context, dir, out, overlay, pkg string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-overlay="+overlay, "-o", out, pkg)
	cmd.Dir = dir
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, strings.TrimSpace(string(b)))
	}
	return nil
}

// profiler is compiled into deepcrawl for -profile only: it writes a CPU
// profile of the seconds after the first one, without a change to the program.
const profiler = `package main

import (
	"os"
	"runtime/pprof"
	"time"
)

func init() {
	name := os.Getenv("BENCH_CPUPROFILE")
	d, err := time.ParseDuration(os.Getenv("BENCH_CPUPROFILE_FOR"))
	if name == "" || err != nil {
		return
	}
	go func() {
		time.Sleep(time.Second)
		f, err := os.Create(name)
		if err != nil {
			return
		}
		defer f.Close()
		if pprof.StartCPUProfile(f) == nil {
			time.Sleep(d)
			pprof.StopCPUProfile()
		}
	}()
}
`

// profileOverlay writes the profiler and the overlay that adds it to cmd/deepcrawl.
func profileOverlay(dir, root string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	source, overlay := filepath.Join(dir, "profile.go"), filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, "cmd/deepcrawl/bench_profile.go"): source}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(source, []byte(profiler), 0o600), os.WriteFile(overlay, b, 0o600))
}

// round runs a scenario once: both crawls if it is paired, in an order that
// changes with the round, so that a drift of the machine harms both alike.
func (r *runner) round(ctx context.Context, s scenario, n int, null, deep bool) (round, error) {
	var out round
	kinds := []bool{true, false} // the baseline first
	if n%2 == 1 {
		slices.Reverse(kinds)
	}
	for _, isNull := range kinds {
		if isNull && !null || !isNull && !deep {
			continue
		}
		got, err := r.crawl(ctx, s, isNull)
		if err != nil {
			return out, fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		name := cmp.Or(s.Heads[1], "deepcrawl")
		if isNull {
			out.Null, name = got, cmp.Or(s.Heads[0], "null")
		} else {
			out.Deep = got
		}
		fmt.Fprintf(r.say, "%s round %d: %s %.0f pages/s, %.0f us CPU a page, peak %.0f MB, %d violations\n",
			s.Name, n+1, name, got.PagesPerSecond, got.CPUMicros, got.PeakMB, got.Violations)
	}
	return out, nil
}

// crawl starts a site, crawls it, stops it, and measures.
func (r *runner) crawl(ctx context.Context, s scenario, null bool) (_ *side, err error) {
	r.runs++
	dir := filepath.Join(r.dir, "run-"+strconv.Itoa(r.runs))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db := s.DB
	if null {
		db = s.BaseDB
	}
	dsn, drop, err := newDatabase(ctx, db, dir, r.servers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if dsn != "" && !strings.HasPrefix(dsn, "sqlite:") {
		if _, err := proc.Run(ctx, dir, environ(), r.deep, "migrate", "--db", dsn); err != nil {
			return nil, err
		}
	}
	site, err := r.startSite(ctx, s.Site, filepath.Join(dir, "hits.jsonl"))
	if err != nil {
		return nil, err
	}
	u, runErr := r.run(ctx, s, dsn, dir, site.home)
	hits, siteCPU, stopErr := site.stop()
	if err := errors.Join(runErr, stopErr); err != nil {
		return nil, err
	}
	got, err := measure(s, u, siteCPU, hits)
	if err != nil {
		return nil, err
	}
	if dsn == "" {
		return got, nil
	}
	for _, err := range []error{checkSummary(u.Stdout, s.Site.Pages), r.checkStore(ctx, s, dsn, dir)} {
		if err != nil {
			got.Violations++
			got.Evidence = append(got.Evidence, err.Error())
		}
	}
	return got, nil
}

// checkStore exports the pages of the last run and compares them with the site.
func (r *runner) checkStore(ctx context.Context, s scenario, dsn, dir string) error {
	site, err := web.New(s.Site)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "pages.jsonl")
	if _, err := proc.Run(ctx, dir, environ(), r.deep, "export", "last",
		"--db", dsn, "--what", "pages", "--format", "jsonl", "-o", file); err != nil {
		return err
	}
	return checkStoredFile(file, site.Expected())
}

// environ is the environment without settings of deepcrawl.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "DEEPCRAWL_") || strings.HasPrefix(kv, "SEOMASTER_")
	})
}

// run crawls into a database, or with the null crawler where there is none.
func (r *runner) run(ctx context.Context, s scenario, dsn, dir, home string) (proc.Usage, error) {
	env := environ()
	if dsn == "" {
		return proc.Run(ctx, dir, env, r.null, "-inflight", strconv.Itoa(s.InFlight), "-workers="+strconv.FormatBool(r.nullWorkers), home)
	}
	env = append(env, "DEEPCRAWL_HOST_INFLIGHT="+strconv.Itoa(s.InFlight))
	env = append(env, s.Env...)
	if r.profile != "" {
		file := filepath.Join(r.profile, fmt.Sprintf("%s-%d.pprof", s.Name, r.runs))
		env = append(env, "BENCH_CPUPROFILE="+file, "BENCH_CPUPROFILE_FOR="+r.profileFor.String())
	}
	return proc.Run(ctx, dir, env, r.deep, "crawl", home,
		"--db", dsn, "--profile", "fast", "--allow-private", "--quiet", "--json")
}

// siteProcess is a running site server.
type siteProcess struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   string
	home  string
}

func (r *runner) startSite(ctx context.Context, c web.Config, log string) (*siteProcess, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, r.site, "-config", string(config), "-log", log)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start site: %w", err)
	}
	p := &siteProcess{cmd: cmd, stdin: stdin, log: log}
	var homes []string
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &homes)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the site's address: %w", err), stdin.Close(), cmd.Wait())
	}
	p.home = homes[0]
	return p, nil
}

// stop ends the site and reads its log. The CPU time is taken before the log
// is written only in so far as writing it is cheap beside serving.
func (p *siteProcess) stop() ([]web.Hit, time.Duration, error) {
	cpu := p.cpu()
	if err := errors.Join(p.stdin.Close(), p.cmd.Wait()); err != nil {
		return nil, 0, fmt.Errorf("stop site: %w", err)
	}
	f, err := os.Open(p.log)
	if err != nil {
		return nil, 0, fmt.Errorf("read the site's log: %w", err)
	}
	hits, err := web.ReadLog(f)
	return hits, cpu, errors.Join(err, f.Close())
}

// cpu is the time the site has taken so far, from /proc/PID/stat; it is read
// before the site writes its log, which is no part of serving.
func (p *siteProcess) cpu() time.Duration {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	// Fields after the name in parentheses; utime and stime are 14 and 15 of
	// all (proc_pid_stat(5)), in ticks, of which Linux has 100 a second.
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	sys, err2 := strconv.ParseInt(f[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(user+sys) * 10 * time.Millisecond
}
