package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deepcrawl/internal/show"
)

// heard is what a program has said so far.
type heard struct {
	mu sync.Mutex
	b  strings.Builder
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(b)
}

func (h *heard) find(re *regexp.Regexp) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := re.FindStringSubmatch(h.b.String()); m != nil {
		return m[1]
	}
	return ""
}

// TestServe sets up, starts and steers a crawl, bans a host and checks coordination, all through the pages of a real server.
func TestServe(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "serve.db")
	program := func(out io.Writer) *program {
		return &program{stdout: io.Discard, stderr: out, now: time.Now, version: "test", width: func() int { return 80 }}
	}
	if err := program(io.Discard).run(t.Context(), []string{"deepcrawl", "migrate", "--db", db}); err != nil {
		t.Fatal(err)
	}
	said := &heard{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- program(said).run(ctx, []string{"deepcrawl", "serve", "--db", db, "--listen", "127.0.0.1:0"})
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve ended with %v", err)
		}
	}()
	link := regexp.MustCompile(`(http://\S+/set-up\?secret=\S+)`)
	await(t, "the set-up link", func() bool { return said.find(link) != "" })
	at, err := url.Parse(said.find(link))
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + at.Host
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, Timeout: time.Minute}
	read := func(res *http.Response, err error) (int, string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	post := func(want int, path string, form url.Values) string {
		t.Helper()
		status, body := read(client.PostForm(base+path, form))
		if status != want {
			t.Fatalf("%s: got %d: %.500s", path, status, body)
		}
		return body
	}
	get := func(path string) string {
		t.Helper()
		status, body := read(client.Get(base + path))
		if status != http.StatusOK {
			t.Fatalf("%s: got %d: %.500s", path, status, body)
		}
		return body
	}
	post(http.StatusOK, "/set-up", url.Values{"secret": {at.Query().Get("secret")}, "name": {"boss"}, "password": {"a few good words"}})

	post(http.StatusCreated, "/api/v1/runs", url.Values{"url": {"example.com"}, "max_pages": {"10"}})
	if body := get("/runs/1"); !strings.Contains(body, "https://example.com") || !strings.Contains(body, "no free worker: no node is running") {
		t.Errorf("the run's page is %.3000s", body)
	}
	if body := post(http.StatusBadRequest, "/api/v1/runs", url.Values{"url": {"https://example.com"}, "tenant": {"nosuch"}}); !strings.Contains(body, "nosuch") {
		t.Errorf("got %s", body)
	}
	if body := post(http.StatusOK, "/api/v1/runs/1/pause", nil); !strings.Contains(body, "paused") {
		t.Errorf("got %s", body)
	}
	post(http.StatusConflict, "/api/v1/runs/1/pause", nil)
	if body := get("/api/v1/runs/1/export?what=pages&format=csv"); !strings.HasPrefix(body, "url,state,reason") {
		t.Errorf("got %.200s", body)
	}
	post(http.StatusOK, "/api/v1/hosts/ban", url.Values{"host": {"https://WWW.Example.com/x"}, "reason": {"asked"}})
	if body := get("/cluster"); !strings.Contains(body, "example.com") || !strings.Contains(body, "asked") {
		t.Errorf("the ban is not shown: %.3000s", body)
	}
	post(http.StatusOK, "/api/v1/hosts/unban", url.Values{"host": {"example.com"}})
	post(http.StatusBadRequest, "/api/v1/hosts/unban", url.Values{"host": {"example.com"}})
	post(http.StatusOK, "/api/v1/runs/1/delete", nil)

	post(http.StatusAccepted, "/api/v1/cluster/check", nil)
	var check struct {
		Running bool
		Failed  int
		Lines   []show.CheckLine
	}
	await(t, "the check", func() bool {
		if err := json.Unmarshal([]byte(get("/api/v1/cluster/check")), &check); err != nil {
			t.Fatal(err)
		}
		return !check.Running
	})
	if check.Failed > 0 || len(check.Lines) < 10 || !slices.ContainsFunc(check.Lines, func(l show.CheckLine) bool { return l.Check == "clean-up" && l.State == "ok" }) {
		t.Errorf("got %+v", check)
	}
}
