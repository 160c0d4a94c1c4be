package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deepcrawl/soak/web"
)

func TestHardUsage(t *testing.T) {
	t.Run("a wrong value of any flag is one line that names the flag and what is allowed, and changes nothing", func(t *testing.T) {
		dir := t.TempDir()
		for _, c := range []struct {
			args  string
			words []string
		}{
			{"--max-pages x", []string{"--max-pages", `"x"`, "a number"}},
			{"--max-pages -1", []string{"--max-pages", "-1", "0"}},
			{"--depth 1.5", []string{"--depth", `"1.5"`, "a number"}},
			{"--depth -7", []string{"--depth", "-7"}},
			{"--time 10", []string{"--time", `"10"`, "30m"}},
			{"--time -1s", []string{"--time", "-1s"}},
			{"--profile rude", []string{"--profile", "rude", "gentle, normal, fast"}},
			{"--scope galaxy", []string{"--scope", "galaxy", "host, domain, subdomains or prefix"}},
			{"--include (", []string{"--include", "("}},
			{"--exclude [", []string{"--exclude", "["}},
			{"--user-agent deepcrawl/1.0", []string{"--user-agent", "deepcrawl/1.0"}},
			{"--db what.db", []string{"--db", "what.db", "sqlite:PATH"}},
			{"--host-inflight 0", []string{"--host-inflight", `"0"`, "1 to 1000"}},
			{"--seen-memory lots", []string{"--seen-memory", "lots", "256MB"}},
			{"--bind-addr nowhere", []string{"--bind-addr", "nowhere", "IP address"}},
			{"--node-id a_b", []string{"--node-id", "a_b", "letters, digits and hyphens"}},
			{"--log loud", []string{"--log", "loud", "debug, info, warn or error"}},
			{"--log-format yaml", []string{"--log-format", "yaml", "text or json"}},
			{"--log-file /nowhere/at/all.log", []string{"--log-file", "/nowhere/at/all.log"}},
			{"--config /nowhere/at/all", []string{"--config", "/nowhere/at/all"}},
			{"--nonsense", []string{"--nonsense", "unknown flag"}},
			{"--resume 1", []string{"--resume", "URL"}},
			{"--depth", []string{"--depth", "value"}},
			{"ftp://x.example/", []string{"ftp://x.example/", "http"}},
			{"http://a..b:99999/", []string{"http://a..b:99999/"}},
		} {
			args := []string{"crawl"}
			if !strings.HasSuffix(c.args, "--depth") {
				args = append(args, "http://127.0.0.1:1/")
			}
			args = append(args, strings.Fields(c.args)...)
			p := start(t, dir, args...)
			if code := p.end(t); code != exitUsage {
				t.Errorf("%s: exit code %d, want %d", c.args, code, exitUsage)
			}
			oneLine(t, p.err.String(), c.words...)
			if p.out.String() != "" {
				t.Errorf("%s: printed %q", c.args, p.out.String())
			}
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("trouble of the network is one line with exit code 1", func(t *testing.T) {
		tls := httptest.NewUnstartedServer(http.NotFoundHandler())
		tls.Config.ErrorLog = nil
		tls.StartTLS()
		defer tls.Close()
		for url, words := range map[string][]string{
			"http://no-such-host.invalid/": {"no-such-host.invalid", "unknown host"},
			"http://127.0.0.1:1/":          {"127.0.0.1:1", "refused"},
			tls.URL:                        {"127.0.0.1", "certificate"},
		} {
			p := deepcrawl(t, t.TempDir(), exitFailed, "crawl", "--quiet", url)
			oneLine(t, p.err.String(), words...)
		}
	})
	t.Run("a password in a URL is refused, and shown and stored nowhere", func(t *testing.T) {
		dir := t.TempDir()
		for _, url := range []string{"http://user:s3cr3t@127.0.0.1:1/", "http:\\\\user:s3cr3t@127.0.0.1:1\\", "https://s3cr3t@127.0.0.1:1?x=1"} {
			p := deepcrawl(t, dir, exitUsage, "crawl", url)
			oneLine(t, p.err.String(), "127.0.0.1", "leave them out")
			if strings.Contains(p.err.String(), "s3cr3t") {
				t.Errorf("shown: %q", p.err.String())
			}
		}
		p := deepcrawl(t, dir, exitFailed, "crawl", "http://127.0.0.1:1/@home?mail=a@b", "--quiet") // no user here
		oneLine(t, p.err.String(), "refused")
	})
}

func TestHardFiles(t *testing.T) {
	t.Run("foreign, garbage and folder are refused by every command and stay as they were", func(t *testing.T) {
		dir := t.TempDir()
		garbage := filepath.Join(dir, "garbage.db")
		if err := os.WriteFile(garbage, bytes.Repeat([]byte("no database at all\n"), 500), 0o644); err != nil {
			t.Fatal(err)
		}
		foreign := filepath.Join(dir, "foreign.db")
		deepcrawl(t, dir, exitOK, "migrate", "--db", "sqlite:foreign.db")
		statement(t, foreign, "CREATE TABLE other (x INTEGER)")
		statementPragma(t, foreign)
		for _, file := range []string{garbage, foreign} {
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"crawl", "http://127.0.0.1:1/"}, {"crawl", "--resume", "last"}, {"run", "list"}, {"export", "1"}, {"migrate"}} {
				p := deepcrawl(t, dir, exitFailed, append(args, "--db", "sqlite:"+filepath.Base(file))...)
				oneLine(t, p.err.String(), filepath.Base(file))
			}
			if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
				t.Errorf("%s was changed (%v)", file, err)
			}
		}
	})
	t.Run("a kill in the first moments leaves nothing that a new start stumbles over", func(t *testing.T) {
		s, dir := newHandSite(t, func(w http.ResponseWriter, _ *http.Request) { html(w, "") }), t.TempDir()
		for ms := range 12 {
			p := start(t, dir, "crawl", s.URL, "--quiet")
			time.Sleep(time.Duration(8*ms) * time.Millisecond) // the moment of the kill, not a wait for something
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		if c := deepcrawl(t, dir, exitOK, "crawl", s.URL, "--quiet", "--json").closing(t); c.Fetched != 1 {
			t.Errorf("got %+v", c)
		}
	})
}

// statementPragma makes a file of ours another application's.
func statementPragma(t *testing.T, file string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{1, 2, 3, 4}, 68); err != nil { // application_id of the file header, sqlite.org/fileformat2.html 1.3
		t.Fatal(err)
	}
}

func TestHardScope(t *testing.T) {
	t.Parallel()
	_, urls, _ := webSite(t, web.Config{Seed: 4, Hosts: 3, Pages: 40, PageBytes: 1000, CrossHost: true})
	host := func(u string) string { return strings.TrimSuffix(strings.TrimPrefix(u, "http://"), "/") }
	crawled := func(t *testing.T, args ...string) map[string]int {
		dir := t.TempDir()
		crawlTo(t, dir, exitOK, append([]string{"--profile", "fast"}, args...)...)
		by := map[string]int{}
		for _, r := range exported(t, dir) {
			rest := strings.TrimPrefix(r.URL, "http://")
			h, _, _ := strings.Cut(rest, "/")
			by[h]++
		}
		return by
	}
	for _, c := range []struct {
		name string
		args []string
		want []int
	}{
		{"host: one host of three", []string{urls[0]}, []int{40, 0, 0}},
		{"two seeds: two hosts", []string{urls[0], urls[2]}, []int{40, 0, 40}},
		{"domain of an address: that address", []string{urls[1], "--scope", "domain"}, []int{0, 40, 0}},
		{"subdomains of an address: that address", []string{urls[1], "--scope", "subdomains"}, []int{0, 40, 0}},
		{"prefix /: the whole host", []string{urls[0], "--scope", "prefix"}, []int{40, 0, 0}},
		{"--exclude everything but the start", []string{urls[0], "--exclude", "127[.]0[.]0[.]1:[0-9]+/."}, []int{1, 0, 0}},
		{"--depth 1: the start and its links, the rest excluded", []string{urls[0], "--depth", "1"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := crawled(t, c.args...)
			for i, n := range c.want {
				if got[host(urls[i])] != n {
					t.Errorf("%d URLs of %s, want %d (%v)", got[host(urls[i])], urls[i], n, got)
				}
			}
		})
	}
	t.Run("depth bounds what is fetched", func(t *testing.T) {
		dir := t.TempDir()
		crawlTo(t, dir, exitOK, urls[0], "--depth", "1", "--profile", "fast")
		for _, r := range exported(t, dir) {
			if r.State == "fetched" != (r.Depth <= 1) || r.State == "excluded" && r.Reason != "depth" {
				t.Errorf("%+v", r)
			}
		}
	})
	t.Run("--include and --exclude together", func(t *testing.T) {
		dir := t.TempDir()
		crawlTo(t, dir, exitOK, urls[0], "--include", "/(science|cars|money)/|/$", "--exclude", "-1[0-9]$", "--profile", "fast")
		for _, r := range exported(t, dir) {
			in := strings.HasSuffix(r.URL, "/") || strings.Contains(r.URL, "/science/") || strings.Contains(r.URL, "/cars/") || strings.Contains(r.URL, "/money/")
			if !in || len(r.URL) > 3 && r.URL[len(r.URL)-3:len(r.URL)-1] == "-1" {
				t.Errorf("%s was crawled", r.URL)
			}
		}
	})
	t.Run("--time ends a crawl with what it has, and says so", func(t *testing.T) {
		_, slow, _ := webSite(t, web.Config{Seed: 4, Pages: 1000, PageBytes: 1000, Latency: 20 * time.Millisecond})
		began := time.Now()
		c := crawlTo(t, t.TempDir(), exitOK, slow[0], "--time", "1s")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("took %v", took)
		}
		if c.State != "done" || c.Reason != "time limit reached" || c.Fetched == 0 || c.ByReason["limit"] == 0 {
			t.Errorf("got %+v", c)
		}
	})
}

func TestHardSteering(t *testing.T) {
	// The site answers slowly enough for another process to step in.
	_, urls, _ := webSite(t, web.Config{Seed: 9, Pages: 600, PageBytes: 1000, Latency: 30 * time.Millisecond})
	begin := func(t *testing.T, dir string) *proc {
		p := start(t, dir, "crawl", urls[0], "--quiet", "--json")
		await(t, "some pages to be stored", func() bool {
			l := start(t, dir, "run", "list", "--json")
			_ = l.end(t)
			return strings.Contains(l.out.String(), `"crawling"`) && !strings.Contains(l.out.String(), `"fetched": 0,`)
		})
		return p
	}
	t.Run("pause from a second process ends the crawl; run resume and crawl --resume go on", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		p := begin(t, dir)
		oneLine(t, deepcrawl(t, dir, exitOK, "run", "pause", "1").out.String(), "run 1: paused")
		if code := p.endWithin(t, 20*time.Second); code != exitFailed {
			t.Errorf("exit code %d, want %d", code, exitFailed)
		}
		if c := p.closing(t); c.State != "paused" || c.Fetched >= 600 {
			t.Errorf("got %+v", c)
		}
		oneLine(t, p.err.String(), "run 1", "paused")
		wholeLedger(t, dbOf(dir), false)
		deepcrawl(t, dir, exitOK, "run", "resume", "1")
		if c := crawlTo(t, dir, exitOK, "--resume", "1"); c.Fetched != 600 {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("cancel ends it for good", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		p := begin(t, dir)
		deepcrawl(t, dir, exitOK, "run", "cancel", "1")
		if code := p.endWithin(t, 20*time.Second); code != exitFailed {
			t.Errorf("exit code %d, want %d", code, exitFailed)
		}
		oneLine(t, p.err.String(), "run 1", "cancelled")
		wholeLedger(t, dbOf(dir), false)
		oneLine(t, deepcrawl(t, dir, exitUsage, "crawl", "--resume", "1").err.String(), "--resume", "cancelled")
		oneLine(t, deepcrawl(t, dir, exitOK, "run", "delete", "1").out.String(), "deleted")
		for _, table := range []string{"run", "url", "page", "frontier", "claim", "page_link", "inlink", "tally"} {
			if n := askOne(t, dbOf(dir), "SELECT count(*) FROM "+table); n != 0 {
				t.Errorf("%d rows left in %s", n, table)
			}
		}
	})
	t.Run("delete while it is crawled is refused, and does not disturb it", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		p := begin(t, dir)
		oneLine(t, deepcrawl(t, dir, exitFailed, "run", "delete", "1").err.String(), "run 1", "pause or cancel it first")
		if code := p.endWithin(t, time.Minute); code != exitOK {
			t.Errorf("exit code %d: %s", code, p.err.String())
		}
		if c := p.closing(t); c.State != "done" || c.Fetched != 600 {
			t.Errorf("got %+v", c)
		}
	})
}

func TestHardExports(t *testing.T) {
	t.Parallel()
	s := newHandSite(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			var b strings.Builder
			for i, title := range hostileTitles {
				_ = title
				fmt.Fprintf(&b, "<a href='/t/%d'>x</a>", i)
			}
			html(w, b.String()+"<a href=/a%22b,c%0Ad>q</a><a href='/x?a=1&amp;b=<>'>y</a><a href=/gone>g</a><a href=/noindex>n</a>")
		case "/gone":
			w.WriteHeader(http.StatusGone)
		case "/noindex":
			html(w, "<meta name=robots content=noindex>")
		default:
			var i int
			if n, _ := fmt.Sscanf(r.URL.Path, "/t/%d", &i); n == 1 && i < len(hostileTitles) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				_, _ = fmt.Fprintf(w, "<!doctype html><title>%s</title>", hostileTitles[i])
				return
			}
			html(w, "")
		}
	})
	dir := t.TempDir()
	c := crawlTo(t, dir, exitOK, s.URL, "--no-sitemaps")
	t.Run("CSV parses, is complete, and no cell is a formula", func(t *testing.T) {
		for _, what := range []string{"pages", "links"} {
			p := deepcrawl(t, dir, exitOK, "export", "1", "--what", what, "--format", "csv")
			rows, err := csv.NewReader(strings.NewReader(p.out.String())).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			if what == "pages" && int64(len(rows)-1) != c.Discovered {
				t.Errorf("%d rows, want %d", len(rows)-1, c.Discovered)
			}
			for _, row := range rows {
				for _, cell := range row {
					if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
						t.Errorf("a spreadsheet runs %q", cell)
					}
				}
			}
		}
	})
	t.Run("JSONL has the fields of the design, in every line", func(t *testing.T) {
		want := strings.Fields("url state reason status depth via content_type bytes ttfb_ms title canonical robots redirect_to inlinks outlinks priority attempts fetched_at")
		slices.Sort(want)
		n := int64(0)
		for line := range strings.Lines(deepcrawl(t, dir, exitOK, "export", "1", "--format", "jsonl").out.String()) {
			n++
			fields(t, line, want)
		}
		if n != c.Discovered {
			t.Errorf("%d lines, want %d", n, c.Discovered)
		}
	})
	t.Run("the closing object and run list have the fields of the design", func(t *testing.T) {
		b, _ := json.Marshal(c)
		hasFields(t, string(b), strings.Fields("run state discovered fetched failed excluded seconds bytes by_status by_reason"))
		var rows []json.RawMessage
		if err := json.Unmarshal([]byte(deepcrawl(t, dir, exitOK, "run", "list", "--json").out.String()), &rows); err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		hasFields(t, string(rows[0]), strings.Fields("run state tenant url discovered fetched failed excluded reason until"))
	})
	t.Run("the sitemap is XML and lists what may be indexed only", func(t *testing.T) {
		var set struct {
			URL []struct {
				Loc string `xml:"loc"`
			} `xml:"url"`
		}
		out := deepcrawl(t, dir, exitOK, "export", "1", "--what", "sitemap").out.String()
		if err := xml.Unmarshal([]byte(out), &set); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		for _, u := range set.URL {
			if strings.HasSuffix(u.Loc, "/gone") || strings.HasSuffix(u.Loc, "/noindex") {
				t.Errorf("%s is listed", u.Loc)
			}
		}
		if int64(len(set.URL)) != c.Fetched-2 {
			t.Errorf("%d URLs, want %d", len(set.URL), c.Fetched-2)
		}
	})
}

var hostileTitles = []string{
	"=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1", " =1", "a,b\"c", "line\none", "\u202eevil", "&lt;script&gt;", "\x00nul", strings.Repeat("long ", 5000), "\xff\xfe", "\r=1",
}

func fields(t *testing.T, line string, want []string) {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	got := make([]string, 0, len(m))
	for k := range m {
		got = append(got, k)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("fields %v, want %v", got, want)
	}
}

func hasFields(t *testing.T, object string, want []string) {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		t.Fatalf("%q: %v", object, err)
	}
	for _, f := range want {
		if _, ok := m[f]; !ok {
			t.Errorf("no field %q in %s", f, object)
		}
	}
}
