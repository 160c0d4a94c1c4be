package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deepcrawl/internal/testenv"
	"deepcrawl/soak/judge"
	"deepcrawl/soak/web"
	"deepcrawl/storage/sqlstore"
)

// cronStart runs a command as cron does: a shell's few variables at most, and the home directory as working directory.
func cronStart(t *testing.T, home, binary string, args ...string) *proc {
	t.Helper()
	p := &proc{Cmd: exec.CommandContext(t.Context(), binary, args...)}
	p.Dir, p.Stdout, p.Stderr = home, &p.out, &p.err
	p.Env = []string{"HOME=" + home, "LOGNAME=crawler", "SHELL=/bin/sh", "PATH=/usr/bin:/bin"}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// binaryOf copies this program to a file of a release.
func binaryOf(t *testing.T, file string, built time.Time) {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(out, in); err == nil {
		err = out.Close()
	}
	if err == nil {
		err = os.Chtimes(file, built, built)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, file string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNodeUnderCron(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	binary := filepath.Join(home, "deepcrawl")
	binaryOf(t, binary, time.Now().Add(-time.Hour))
	db := testenv.Postgres(t)
	t.Run("without settings nothing is made, and one line says what is missing", func(t *testing.T) {
		p := cronStart(t, home, binary, "node")
		if code := p.end(t); code != exitFailed {
			t.Errorf("got exit code %d, want %d", code, exitFailed)
		}
		oneLine(t, p.err.String(), "deepcrawl.db")
		if _, err := os.Stat(filepath.Join(home, "deepcrawl.db")); !os.IsNotExist(err) {
			t.Errorf("the database was made (%v)", err)
		}
	})
	settings := filepath.Join(home, "deepcrawl.env")
	log := filepath.Join(home, "node.log")
	writeFile(t, settings, "DEEPCRAWL_DB="+db, "DEEPCRAWL_NODE_ID=cron1", "DEEPCRAWL_ALLOW_PRIVATE=true", "DEEPCRAWL_WORKERS=2",
		"DEEPCRAWL_LOG_FILE="+log, "DEEPCRAWL_LOG=debug", "DEEPCRAWL_LOG_FORMAT=json")
	t.Run("a database without tables is left alone, in one line", func(t *testing.T) {
		p := cronStart(t, home, binary, "node")
		if code := p.end(t); code != exitFailed {
			t.Errorf("got exit code %d, want %d", code, exitFailed)
		}
		oneLine(t, p.err.String(), "deepcrawl migrate")
	})
	if p := cronStart(t, home, binary, "migrate"); p.end(t) != exitOK {
		t.Fatal(p.err.String())
	}
	site, urls, _ := webSite(t, web.Config{Seed: 61, Pages: 300, PageBytes: 1000, Latency: 10 * time.Millisecond})
	if p := cronStart(t, home, binary, "run", "add", urls[0]); p.end(t) != exitOK {
		t.Fatal(p.err.String())
	}
	first := cronStart(t, home, binary, "node", "--idle-exit", "3s")
	await(t, "requests", func() bool { return site.Requests() > 10 })
	t.Run("a start while it runs says nothing and ends well, at once", func(t *testing.T) {
		began := time.Now()
		p := cronStart(t, home, binary, "node")
		if code := p.end(t); code != exitOK || p.out.String()+p.err.String() != "" {
			t.Errorf("got exit code %d, %q, %q", code, p.out.String(), p.err.String())
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
	t.Run("another server with the same id refuses to work, loudly", func(t *testing.T) {
		p := &proc{Cmd: exec.CommandContext(t.Context(), binary, "node")}
		p.Dir, p.Stdout, p.Stderr = home, &p.out, &p.err
		p.Env = []string{"TMPDIR=" + t.TempDir()} // no lock of this machine is seen
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if code := p.end(t); code != exitFailed {
			t.Errorf("got exit code %d, want %d", code, exitFailed)
		}
		oneLine(t, p.err.String(), "node id cron1 is in use by a live node on another machine", "DEEPCRAWL_NODE_ID")
	})
	t.Run("it leaves when there is no more work, and has said nothing but in its log", func(t *testing.T) {
		if code := first.end(t); code != exitOK || first.out.String()+first.err.String() != "" {
			t.Errorf("got exit code %d, %q, %q", code, first.out.String(), first.err.String())
		}
		if n := site.Requests(); n < 300 {
			t.Errorf("it left after %d requests", n)
		}
		text, err := os.ReadFile(log)
		if err != nil || !strings.Contains(string(text), `"level":"DEBUG"`) || !strings.Contains(string(text), `"msg":"node ends"`) {
			t.Errorf("the log has no lines of its level and form (%v)", err)
		}
	})
	t.Run("without an id one is generated, and a second node on this machine is still one too many", func(t *testing.T) {
		other := t.TempDir()
		writeFile(t, filepath.Join(other, "deepcrawl.env"), "DEEPCRAWL_DB="+db, "DEEPCRAWL_LOG=warn")
		p := cronStart(t, other, binary, "node", "--forever")
		var id string
		await(t, "the node", func() bool {
			for _, n := range clusterOf(t, db).Nodes {
				id = n.Session
			}
			return id != ""
		})
		if !strings.HasPrefix(id, "n-") {
			t.Errorf("got id %q", id)
		}
		if q := cronStart(t, other, binary, "node"); q.end(t) != exitOK || q.err.String() != "" {
			t.Errorf("got %d, %q", q.ProcessState.ExitCode(), q.err.String())
		}
		send(t, p, syscall.SIGTERM)
		if code := p.end(t); code != exitOK {
			t.Errorf("got exit code %d: %s", code, p.err.String())
		}
	})
}

// TestRollingUpgrade replaces the binary of three nodes under load, one after the other, as cron's next start finds it.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	const pages = 4000
	site, urls, sink := webSite(t, web.Config{Seed: 62, Pages: pages, PageBytes: 1000, Latency: 30 * time.Millisecond})
	db, dir := testenv.Postgres(t), t.TempDir()
	deepcrawl(t, dir, exitOK, "migrate", "--db", db)
	deepcrawl(t, dir, exitOK, "run", "add", urls[0], "--db", db, "--profile", "fast")
	address, prefix := testenv.Redis(t)
	old, fresh := time.Now().Add(-48*time.Hour), time.Now().Add(-time.Hour)
	cron := func(home, release string) *proc {
		p := &proc{Cmd: exec.CommandContext(t.Context(), filepath.Join(home, "deepcrawl"), "node", "--idle-exit", "10s")}
		p.Dir, p.Stdout, p.Stderr = home, &p.out, &p.err
		p.Env = []string{"PATH=/usr/bin:/bin", versionVariable + "=" + release}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Process.Kill() })
		return p
	}
	var homes []string
	var before, after []*proc
	for _, id := range []string{"up1", "up2", "up3"} {
		home := t.TempDir()
		binaryOf(t, filepath.Join(home, "deepcrawl"), old)
		writeFile(t, filepath.Join(home, "deepcrawl.env"), "DEEPCRAWL_DB="+db, "DEEPCRAWL_NODE_ID="+id, "DEEPCRAWL_ALLOW_PRIVATE=true", "DEEPCRAWL_WORKERS=4",
			"DEEPCRAWL_RUN_WORKERS=12", "DEEPCRAWL_COORD=redis", "DEEPCRAWL_REDIS_URL="+address, "DEEPCRAWL_REDIS_PREFIX="+prefix, "DEEPCRAWL_LOG_FILE="+filepath.Join(home, "log"),
			"DEEPCRAWL_USER_AGENT=TestBot/1") // the judge tells runs apart by it
		homes = append(homes, home)
		before = append(before, cron(home, "1.0.0"))
	}
	versions := func() map[string]int {
		m := map[string]int{}
		for _, n := range clusterOf(t, db).Nodes {
			m[n.Version]++
		}
		return m
	}
	await(t, "three nodes of the old release", func() bool { return versions()["1.0.0"] == 3 && site.Requests() > 50 })
	for i, home := range homes {
		next := filepath.Join(home, "next")
		binaryOf(t, next, fresh)
		if err := os.Rename(next, filepath.Join(home, "deepcrawl")); err != nil {
			t.Fatal(err)
		}
		after = append(after, cron(home, "1.1.0"))
		if code := before[i].end(t); code != exitOK || before[i].err.String() != "" {
			t.Errorf("the old node %d ended with %d: %s", i+1, code, before[i].err.String())
		}
		await(t, "the new node", func() bool { return versions()["1.1.0"] == i+1 })
	}
	if n := site.Requests(); n >= pages {
		t.Fatalf("the run was over before the nodes were replaced (%d requests)", n)
	}
	for _, p := range after {
		if code := p.end(t); code != exitOK || p.err.String() != "" {
			t.Errorf("a new node ended with %d: %s", code, p.err.String())
		}
	}
	if out := deepcrawl(t, dir, exitOK, "run", "list", "--db", db).out.String(); !strings.Contains(out, "done") {
		t.Errorf("got %s", out)
	}
	sink()
	for _, v := range judge.Check(site.Hits(), site.Expected(), judge.Rules{Cap: 24}) {
		t.Error(v)
	}
}

func TestInterruptedDeletionOfATenant(t *testing.T) {
	t.Parallel()
	_, urls, _ := webSite(t, web.Config{Seed: 63, Pages: 300, PageBytes: 500})
	dir := t.TempDir()
	db := "sqlite:" + filepath.Join(dir, "deepcrawl.db")
	deepcrawl(t, dir, exitOK, "migrate")
	deepcrawl(t, dir, exitOK, "tenant", "add", "acme", "--tariff", "large")
	deepcrawl(t, dir, exitOK, "run", "add", urls[0], "--tenant", "acme")
	deepcrawl(t, dir, exitOK, "node", "--idle-exit", "1s")
	st, err := sqlstore.Open(t.Context(), db, sqlstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	done, err := st.DeleteTenant(t.Context(), "acme", 20) // what a command does again and again
	if err = errors.Join(err, st.Close()); err != nil || done {
		t.Fatal(done, err)
	}
	list := func() string { return deepcrawl(t, dir, exitOK, "tenant", "list", "--json").out.String() }
	if out := list(); !strings.Contains(out, `"tenant": "acme"`) || !strings.Contains(out, `"state": "deleting"`) {
		t.Errorf("got %s", out)
	}
	oneLine(t, deepcrawl(t, dir, exitUsage, "tenant", "set", "acme", "--tariff", "small").err.String(), "is being deleted", "deepcrawl tenant delete acme")
	node := start(t, dir, "node", "--forever")
	await(t, "the leading node to go on", func() bool { return !strings.Contains(list(), "acme") })
	send(t, node, syscall.SIGTERM)
	if code := node.end(t); code != exitOK {
		t.Errorf("got exit code %d: %s", code, node.err.String())
	}
	if n := askOne(t, filepath.Join(dir, "deepcrawl.db"), "SELECT (SELECT count(*) FROM url) + (SELECT count(*) FROM page) + (SELECT count(*) FROM run)"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
