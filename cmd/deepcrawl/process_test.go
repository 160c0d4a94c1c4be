package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
)

// proc is a deepcrawl process of a test.
type proc struct {
	*exec.Cmd
	out, err lockedBuffer
}

// start runs deepcrawl with a folder of its own as working directory.
func start(t *testing.T, dir string, args ...string) *proc {
	t.Helper()
	p := &proc{Cmd: exec.CommandContext(t.Context(), "deepcrawl", args...)} // testscript.Main puts it on the PATH
	p.Dir, p.Stdout, p.Stderr = dir, &p.out, &p.err
	p.Env = append(os.Environ(), "DEEPCRAWL_ALLOW_PRIVATE=true")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// end waits for the process and returns its exit code; -1 when a signal ended it.
func (p *proc) end(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

func (p *proc) closing(t *testing.T) (c closing) {
	t.Helper()
	if err := json.Unmarshal([]byte(p.out.String()), &c); err != nil {
		t.Fatalf("closing object: %v in %q; stderr: %s", err, p.out.String(), p.err.String())
	}
	return c
}

func oneLine(t *testing.T, text string, words ...string) {
	t.Helper()
	if strings.Count(text, "\n") != 1 {
		t.Errorf("want one line, got %q", text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("want %q in %q", w, text)
		}
	}
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	t.Run("a second Ctrl-C stops at once, and nothing stored is lost", func(t *testing.T) {
		site, dir := newTestSite(), t.TempDir()
		defer site.close()
		p := start(t, dir, "crawl", site.URL+"/list")
		await(t, "the request that is held", func() bool { return site.count("/hold") == 1 && site.count("/list/29") == 1 })
		send(t, p, os.Interrupt)
		await(t, "word of the first signal", func() bool { return strings.Contains(p.err.String(), "Ctrl-C again stops at once") })
		send(t, p, os.Interrupt)
		if code := p.end(t); code != exitInterrupted {
			t.Errorf("got exit code %d, want %d; stderr: %s", code, exitInterrupted, p.err.String())
		}
		site.release()
		again := start(t, dir, "crawl", "--resume", "1", "--json", "--quiet")
		if code := again.end(t); code != exitOK {
			t.Fatalf("got exit code %d: %s", code, again.err.String())
		}
		if c := again.closing(t); c.State != "done" || c.Fetched != 32 || c.Discovered != 32 {
			t.Errorf("got %+v", c)
		}
		if n := site.count("/hold"); n != 2 {
			t.Errorf("the page in flight was requested %d times, want 2", n)
		}
	})
	t.Run("one Ctrl-C drains: what is in flight is finished, nothing is requested twice", func(t *testing.T) {
		site, dir := newTestSite(), t.TempDir()
		defer site.close()
		p := start(t, dir, "crawl", site.URL+"/list", "--json")
		await(t, "the request that is held", func() bool { return site.count("/hold") == 1 && site.count("/list/29") == 1 })

		second := deepcrawl(t, dir, exitFailed, "crawl", "--resume", "last")
		oneLine(t, second.err.String(), "run 1 is being crawled by another process (pid ", "wait for it or stop it")
		if list := deepcrawl(t, dir, exitOK, "run", "list", "--json"); !strings.Contains(list.out.String(), `"state": "crawling"`) {
			t.Errorf("got %s", list.out.String())
		}

		send(t, p, syscall.SIGTERM)
		await(t, "word of the signal", func() bool { return strings.Contains(p.err.String(), "stopping after") })
		site.release()
		if code := p.end(t); code != exitInterrupted {
			t.Errorf("got exit code %d, want %d; stderr: %s", code, exitInterrupted, p.err.String())
		}
		if c := p.closing(t); c.State != "crawling" || c.Reason != "interrupted; go on with crawl --resume" {
			t.Errorf("got %+v", c)
		}

		again := deepcrawl(t, dir, exitOK, "crawl", "--resume", "last", "--json", "--quiet")
		if c := again.closing(t); c.State != "done" || c.Fetched != 32 || c.Reason != "" {
			t.Errorf("got %+v", c)
		}
		for path, n := range site.hits {
			if n != 1 && path != "/robots.txt" && path != "/sitemap.xml" {
				t.Errorf("%s was requested %d times, want 1", path, n)
			}
		}
	})
}

func TestKill(t *testing.T) {
	t.Parallel()
	t.Run("after kill -9 a crawl resumes at once, and only what was in flight is requested again", func(t *testing.T) {
		site, dir := newTestSite(), t.TempDir()
		defer site.close()
		p := start(t, dir, "crawl", site.URL+"/list", "--quiet")
		await(t, "all pages stored but the one in flight", func() bool {
			if site.count("/hold") == 0 {
				return false
			}
			list := deepcrawl(t, dir, exitOK, "run", "list", "--json")
			return strings.Contains(list.out.String(), `"fetched": 31,`)
		})
		send(t, p, syscall.SIGKILL)
		p.end(t)
		site.release()
		began := time.Now()
		again := start(t, dir, "crawl", "--resume", "last", "--json", "--quiet")
		if code := again.end(t); code != exitOK {
			t.Fatalf("got exit code %d: %s", code, again.err.String())
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("resuming took %v: it waited for the dead process", took)
		}
		if c := again.closing(t); c.State != "done" || c.Fetched != 32 {
			t.Errorf("got %+v", c)
		}
		for path, n := range site.hits {
			want := 1
			if path == "/hold" {
				want = 2
			}
			if n != want && path != "/robots.txt" && path != "/sitemap.xml" {
				t.Errorf("%s was requested %d times, want %d", path, n, want)
			}
		}
	})
}

func send(t *testing.T, p *proc, sig os.Signal) {
	t.Helper()
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func TestDisk(t *testing.T) {
	t.Run("a full disk is one clear line, and the crawl goes on when there is room", func(t *testing.T) {
		site, dir := newTestSite(), testenv.SmallDisk(t, 2<<20)
		defer site.close()
		site.release()
		p := start(t, dir, "crawl", site.URL+"/fill", "--quiet", "--profile", "fast")
		if code := p.end(t); code != exitFailed {
			t.Errorf("got exit code %d, want %d", code, exitFailed)
		}
		oneLine(t, p.err.String(), "no space left", "--resume 1")
	})
	t.Run("a read-only folder is one clear line", func(t *testing.T) {
		dir := testenv.SmallDisk(t, 4<<20)
		testenv.ReadOnly(t, dir)
		p := start(t, dir, "crawl", "http://127.0.0.1:1/")
		if code := p.end(t); code != exitFailed {
			t.Errorf("got exit code %d, want %d", code, exitFailed)
		}
		oneLine(t, p.err.String(), "deepcrawl.db", "read-only")
	})
	t.Run("a read-only database is one clear line", func(t *testing.T) {
		dir := testenv.SmallDisk(t, 4<<20)
		deepcrawl(t, dir, exitOK, "migrate")
		testenv.ReadOnly(t, dir)
		p := start(t, dir, "crawl", "http://127.0.0.1:1/")
		if code := p.end(t); code != exitFailed {
			t.Errorf("got exit code %d, want %d", code, exitFailed)
		}
		oneLine(t, p.err.String(), "deepcrawl.db", "read-only")
	})
}

func deepcrawl(t *testing.T, dir string, code int, args ...string) *proc {
	t.Helper()
	p := start(t, dir, args...)
	if got := p.end(t); got != code {
		t.Fatalf("deepcrawl %s: exit code %d, want %d; stderr: %s", strings.Join(args, " "), got, code, p.err.String())
	}
	return p
}

func TestSchema(t *testing.T) {
	dir := t.TempDir()
	deepcrawl(t, dir, exitOK, "migrate")
	t.Run("migrating again changes nothing and says so", func(t *testing.T) {
		if p := deepcrawl(t, dir, exitOK, "migrate"); !strings.Contains(p.out.String(), "nothing to do") {
			t.Errorf("got %s", p.out.String())
		}
	})
	t.Run("a newer database is left alone and told in one line", func(t *testing.T) {
		file := filepath.Join(dir, "deepcrawl.db")
		statement(t, file, "INSERT INTO store_serves (oldest) VALUES (9999)")
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"crawl", "http://127.0.0.1:1/"}, {"run", "list"}, {"migrate"}} {
			p := deepcrawl(t, dir, exitFailed, args...)
			oneLine(t, p.err.String(), "deepcrawl.db", "newer")
		}
		after, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("the file was changed (%v)", err)
		}
	})
}

// statement runs one SQL statement on a file.
func statement(t *testing.T, file, text string) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), "sqlite:"+file, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	set, err := sqldb.Load(fstest.MapFS{"test.sql": {Data: []byte("-- name: test\n" + text)}}, sqldb.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Do(t.Context(), func(tx *sqldb.Tx) error { tx.Exec(set.Get("test")); return nil }); err != nil {
		t.Fatal(err)
	}
}
