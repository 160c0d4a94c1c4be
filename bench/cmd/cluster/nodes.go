package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"deepcrawl/internal/scratch"
	"deepcrawl/soak/web"
)

// runner starts what scenarios need.
type runner struct {
	options
	dir        string
	binary     string
	siteBinary string
	made       int
}

func build(ctx context.Context, dir string, o options) (*runner, error) {
	r := &runner{options: o, dir: dir, binary: o.deep, siteBinary: o.site}
	bench := filepath.Join(o.root, "bench")
	for _, b := range []struct {
		out      *string
		dir, pkg string
	}{{&r.siteBinary, bench, "./cmd/site"}, {&r.binary, o.root, "./cmd/deepcrawl"}} {
		if *b.out != "" {
			continue
		}
		*b.out = filepath.Join(dir, filepath.Base(b.pkg))
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", *b.out, b.pkg)
		cmd.Dir = b.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", b.pkg, err, out)
		}
	}
	return r, nil
}

// environ is the environment without settings of deepcrawl.
func environ(more ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "DEEPCRAWL_") || strings.HasPrefix(kv, "SEOMASTER_")
	})
	return append(env, more...)
}

// folder makes a folder for one cluster or site.
func (r *runner) folder() (string, error) {
	r.made++
	dir := filepath.Join(r.dir, strconv.Itoa(r.made))
	return dir, os.Mkdir(dir, 0o700)
}

// site is a site server in a process of its own.
type site struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   string
	cfg   web.Config
	homes []string
}

func (r *runner) startSite(ctx context.Context, c web.Config) (*site, error) {
	dir, err := r.folder()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	s := &site{log: filepath.Join(dir, "hits.jsonl"), cfg: c}
	s.cmd = exec.CommandContext(ctx, r.siteBinary, "-config", string(config), "-log", s.log)
	s.cmd.Stderr = os.Stderr
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &s.homes)
	}
	if err != nil {
		_ = s.stdin.Close()
		return nil, errors.Join(fmt.Errorf("read the site's addresses: %w", err), s.cmd.Wait())
	}
	return s, nil
}

// stop ends the site and returns its log.
func (s *site) stop() ([]web.Hit, error) {
	_ = s.stdin.Close()
	if err := s.cmd.Wait(); err != nil {
		return nil, fmt.Errorf("site: %w", err)
	}
	f, err := os.Open(s.log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return web.ReadLog(f)
}

// cluster is nodes on a database of their own.
type cluster struct {
	r     *runner
	dir   string
	env   []string
	nodes []*node
	drop  []func(context.Context) error
	args  []string // of every node
}

// node is a process; its requests come from an address of its own.
type node struct {
	id, source, metrics string
	cmd                 *exec.Cmd
	cpu                 time.Duration
}

// newCluster makes an empty database. With shared false it is a SQLite file.
func (r *runner) newCluster(ctx context.Context, shared bool) (c *cluster, err error) {
	dir, err := r.folder()
	if err != nil {
		return nil, err
	}
	c = &cluster{r: r, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	c.env = environ("DEEPCRAWL_ALLOW_PRIVATE=true", "DEEPCRAWL_DB=sqlite:"+filepath.Join(dir, "crawl.db"), "DEEPCRAWL_LOG=warn")
	if shared {
		dsn, drop, err := scratch.Postgres(ctx, r.db)
		if err != nil {
			return nil, fmt.Errorf("-postgres: %w", err)
		}
		c.drop = append(c.drop, drop)
		c.env = append(c.env, "DEEPCRAWL_DB="+dsn)
		if r.redis != "none" {
			if err := scratch.PingRedis(ctx, r.redis); err != nil {
				return nil, fmt.Errorf("-redis: %w", err)
			}
			prefix, drop := scratch.Redis(r.redis)
			c.drop = append(c.drop, drop)
			c.env = append(c.env, "DEEPCRAWL_COORD=redis", "DEEPCRAWL_REDIS_URL="+r.redis, "DEEPCRAWL_REDIS_PREFIX="+prefix)
		}
	}
	_, err = c.do(ctx, "migrate")
	return c, err
}

// do runs a command of deepcrawl to its end.
func (c *cluster) do(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.r.binary, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.Output()
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		err = fmt.Errorf("deepcrawl %s: %w: %s", strings.Join(args, " "), err, ee.Stderr)
	}
	return out, err
}

// addNode starts one more node.
func (c *cluster) addNode(ctx context.Context) error {
	n := &node{id: fmt.Sprintf("n%d", len(c.nodes)+1), source: fmt.Sprintf("127.0.1.%d", len(c.nodes)+1)}
	if c.r.pprof != "" && len(c.nodes) == 0 {
		n.metrics = "127.0.0.1:19190"
	}
	c.nodes = append(c.nodes, n)
	return c.startNode(ctx, n)
}

func (c *cluster) startNode(ctx context.Context, n *node) error {
	args := append([]string{"node", "--node-id", n.id, "--bind-addr", n.source}, c.args...)
	if n.metrics != "" {
		args = append(args, "--metrics-addr", n.metrics)
	}
	n.cmd = exec.CommandContext(ctx, c.r.binary, args...)
	n.cmd.Dir, n.cmd.Env, n.cmd.Stderr = c.dir, c.env, os.Stderr
	return n.cmd.Start()
}

// kill is kill -9.
func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
	n.count()
}

func (n *node) count() {
	if s := n.cmd.ProcessState; s != nil {
		n.cpu += s.UserTime() + s.SystemTime()
	}
	n.cmd = nil
}

// close drains the nodes and removes what was made.
func (c *cluster) close() error {
	var errs []error
	for _, n := range c.nodes {
		if n.cmd != nil {
			_ = n.cmd.Process.Signal(syscall.SIGTERM)
		}
	}
	for _, n := range c.nodes {
		if n.cmd == nil {
			continue
		}
		if err := n.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", n.id, err))
		}
		n.count()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, drop := range slices.Backward(c.drop) {
		errs = append(errs, drop(ctx))
	}
	c.drop = nil
	return errors.Join(errs...)
}

func (c *cluster) cpu() (d time.Duration) {
	for _, n := range c.nodes {
		d += n.cpu
	}
	return d
}

// runRow is a line of run list --json, as far as it is read here.
type runRow struct {
	Run                                   int64
	State, Reason                         string
	Discovered, Fetched, Failed, Excluded int
}

func (c *cluster) runs(ctx context.Context) (rows []runRow, err error) {
	out, err := c.do(ctx, "run", "list", "--json", "--limit", "1000")
	if err != nil {
		return nil, err
	}
	return rows, json.Unmarshal(out, &rows)
}

// seldom is how often a crawl under way is looked at: each look is a process.
const seldom = 500 * time.Millisecond

// await waits until all runs are done.
func (c *cluster) await(ctx context.Context, runs int) error {
	for {
		rows, err := c.runs(ctx)
		if err != nil {
			return err
		}
		done := 0
		for _, r := range rows {
			switch r.State {
			case "done":
				done++
			case "failed", "cancelled":
				return fmt.Errorf("run %d: %s: %s", r.Run, r.State, r.Reason)
			}
		}
		if done == runs {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d runs are done: %w", done, runs, ctx.Err())
		case <-time.After(seldom):
		}
	}
}

// profile takes a CPU profile of the first node in the background.
func (c *cluster) profile(ctx context.Context, name string, after time.Duration) {
	if c.r.pprof == "" {
		return
	}
	go func() {
		time.Sleep(after)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.nodes[0].metrics+"/debug/pprof/profile?seconds=4", nil)
		if err != nil {
			return
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			fmt.Fprintln(os.Stderr, "cluster: profile:", err)
			return
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err == nil {
			err = os.WriteFile(filepath.Join(c.r.pprof, name+".pprof"), b, 0o600)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "cluster: profile:", err)
		}
	}()
}
