package admin_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/crawl/extract"
	"deepcrawl/internal/admin"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

const (
	password = "correct horse battery"
	hostile  = `</title><script>alert(1)</script>"'><img src=x onerror=alert(2)>`
	hostURL  = `https://a.example/?q="><script>alert(3)</script>`
)

// hash is made once: it is slow on purpose.
var hash = sync.OnceValue(func() string { return admin.HashPassword(password) })

// operations are those of commands, as far as the pages need them to be true.
type operations struct {
	st      *sqlstore.Store
	mu      sync.Mutex
	cluster show.Cluster
	banned  []show.Host
	moved   []coord.Mode
	hold    chan struct{} // a check goes on when it is closed
}

func (o *operations) Cluster(context.Context) (show.Cluster, error) { return o.cluster, nil }

func (o *operations) Hosts(context.Context) ([]show.Host, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.banned, nil
}

func (o *operations) SteerHost(_ context.Context, action, host, reason string) (string, error) {
	if host == "" {
		return "", &admin.Mistake{Text: "host: which one?"}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.banned = nil; action == "ban" {
		o.banned = []show.Host{{Host: host, Banned: true, Reason: reason}}
	}
	return host + ": " + action, nil
}

func (o *operations) Coordinate(_ context.Context, to coord.Mode) (string, error) {
	if to != coord.ModeDB && to != coord.ModeRedis {
		return "", &admin.Mistake{Text: "coordination: allowed: db or redis"}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moved = append(o.moved, to)
	return "coordination moves to " + string(to), nil
}

func (o *operations) HasRedis() bool { return true }

func (o *operations) Check(ctx context.Context, say func(show.CheckLine)) error {
	say(show.CheckLine{Check: "schema", State: "ok", Detail: "SQLite"})
	select {
	case <-o.hold:
	case <-ctx.Done():
		return ctx.Err()
	}
	say(show.CheckLine{Check: "gate", State: "failed", Detail: hostile, Advice: "see to it"})
	return nil
}

func (o *operations) Start(ctx context.Context, tenant string, spec crawl.Spec) (storage.Run, error) {
	if err := spec.Check(); err != nil {
		return storage.Run{}, &admin.Mistake{Text: err.Error()}
	}
	return o.st.CreateRun(ctx, storage.NewRun{Tenant: tenant, Site: spec.Site(), Spec: spec.Encode()})
}

func (o *operations) SteerRun(ctx context.Context, action string, id storage.RunID) (string, error) {
	if action == "delete" {
		for {
			if done, err := o.st.DeleteRun(ctx, id, 1000); done || err != nil {
				return "deleted", err
			}
		}
	}
	to := map[string]storage.RunState{"pause": storage.RunPaused, "resume": storage.RunQueued, "cancel": storage.RunCancelled}[action]
	from := []storage.RunState{storage.RunQueued, storage.RunCrawling}
	if action == "resume" {
		from = []storage.RunState{storage.RunPaused}
	}
	r, err := o.st.SetRunState(ctx, id, from, to, "by hand", time.Time{})
	return string(r.State), err
}

func (o *operations) Waits(_ context.Context, runs []storage.Run) error {
	for i := range runs {
		if runs[i].State == storage.RunQueued {
			runs[i].Reason, runs[i].Until = "tariff: 3 of 3 runs active", time.Now().Add(time.Minute)
		}
	}
	return nil
}

func (o *operations) Export(_ context.Context, run storage.Run, what, format string, w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s of run %d as %s\n", what, run.ID, format)
	return err
}

// fixture is a server on a database with two tenants and a user of each kind.
type fixture struct {
	t      *testing.T
	st     *sqlstore.Store
	ops    *operations
	server *admin.Server
	http   *httptest.Server
	now    func() time.Time
	logs   *bytes.Buffer
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "a.db")
	st, err := sqlstore.Open(t.Context(), dsn, sqlstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, st: st, ops: &operations{st: st, hold: make(chan struct{})}, logs: new(bytes.Buffer)}
	f.server, err = admin.New(admin.Config{
		Store: st, Operations: f.ops, Version: "v1", Every: 20 * time.Millisecond, Now: func() time.Time {
			if f.now != nil {
				return f.now()
			}
			return time.Now()
		},
		Log: slog.New(slog.NewTextHandler(&lockedWriter{w: f.logs}, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.http = httptest.NewServer(f.server)
	t.Cleanup(func() {
		f.server.Close()
		f.http.Close()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"acme", "beta"} {
		f.must(st.PutTenant(t.Context(), storage.Tenant{Name: name, Tariff: "unlimited"}))
	}
	return f
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// person is a signed-in browser.
type person struct {
	f *fixture
	c *http.Client
	// bearer is used instead of a cookie where it is set.
	bearer string
	// through is what a proxy says of where it comes from.
	through string
	// site is how a browser says that a page was asked for from another.
	site string
}

func (f *fixture) stranger() *person {
	jar, err := cookiejar.New(nil)
	f.must(err)
	return &person{f: f, c: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// user makes a user and signs it in without hashing.
func (f *fixture) user(name string, role storage.Role, tenant string) *person {
	f.t.Helper()
	ctx := f.t.Context()
	f.must(f.st.PutUser(ctx, storage.User{Name: name, Role: role, Tenant: tenant, Hash: hash()}))
	p := f.stranger()
	secret, sum := admin.NewSecret("")
	f.must(f.st.AddSession(ctx, sum, name, time.Hour))
	u, err := url.Parse(f.http.URL)
	f.must(err)
	p.c.Jar.SetCookies(u, []*http.Cookie{{Name: "deepcrawl_session", Value: secret}})
	return p
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (p *person) do(method, path string, form url.Values) reply {
	p.f.t.Helper()
	return p.send(method, path, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

func (p *person) send(method, path, media string, sent io.Reader) reply {
	p.f.t.Helper()
	req, err := http.NewRequestWithContext(p.f.t.Context(), method, p.f.http.URL+path, sent)
	p.f.must(err)
	if method != http.MethodGet {
		req.Header.Set("Content-Type", media)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if p.site != "" {
		req.Header.Set("Sec-Fetch-Site", p.site)
	}
	if p.through != "" {
		req.Header.Set("X-Forwarded-For", p.through)
	}
	if p.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+p.bearer)
	}
	res, err := p.c.Do(req)
	p.f.must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	p.f.must(err)
	return reply{res.StatusCode, res.Header, string(body)}
}

func (p *person) get(path string) reply { p.f.t.Helper(); return p.do(http.MethodGet, path, nil) }

func (p *person) post(path string, pairs ...string) reply {
	p.f.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		form.Add(pairs[i], pairs[i+1])
	}
	return p.do(http.MethodPost, path, form)
}

func (f *fixture) want(r reply, status int, parts ...string) {
	f.t.Helper()
	if r.status != status {
		f.t.Errorf("got status %d, want %d: %.300s", r.status, status, r.body)
	}
	for _, part := range parts {
		if !strings.Contains(r.body, part) {
			f.t.Errorf("%q is missing in %.3000s", part, r.body)
		}
	}
}

// crawled makes a run of a tenant with hostile pages.
func (f *fixture) crawled(tenant, site string, pages int) storage.RunID {
	f.t.Helper()
	ctx := f.t.Context()
	spec := crawl.Spec{Seeds: []string{"https://" + site + "/"}}
	run, err := f.st.CreateRun(ctx, storage.NewRun{Tenant: tenant, Site: site, Spec: spec.Encode()})
	f.must(err)
	_, err = f.st.SetRunState(ctx, run.ID, []storage.RunState{storage.RunQueued}, storage.RunCrawling, "", time.Time{})
	f.must(err)
	var found []storage.Discovery
	for i := range pages {
		u := fmt.Sprintf("https://%s/page/%d", site, i)
		if i == 0 {
			u = strings.Replace(hostURL, "a.example", site, 1)
		}
		found = append(found, storage.Discovery{Key: storage.Key{byte(i), byte(i >> 8), 7, 7, 7, 7, 7, 7, 7}, URL: u, Host: site, Priority: 1})
	}
	_, err = f.st.Discover(ctx, run.ID, found, nil)
	f.must(err)
	claims, err := f.st.Claim(ctx, "n/1", []storage.ClaimRequest{{Run: run.ID, Host: site, N: pages}})
	f.must(err)
	facts, err := (&extract.Facts{Title: hostile, Description: hostile, Robots: "noindex", H1: []string{hostile}, Lang: hostile, Canonical: "javascript:alert(4)"}).MarshalBinary()
	f.must(err)
	var results []storage.Result
	for i, c := range claims[:max(len(claims)-1, 1)] { // one stays claimed
		page := &storage.PageResult{State: storage.Fetched, Status: 200, Title: hostile, ContentType: "text/html" + hostile, Bytes: 2000, Attempts: 1, Facts: facts, RedirectTo: "javascript:alert(5)"}
		if i == 1 {
			page = &storage.PageResult{State: storage.Failed, Reason: "timeout", Attempts: 3}
		}
		results = append(results, storage.Result{Run: run.ID, ID: c.ID, Token: c.Token, Page: page})
	}
	_, err = f.st.Finish(ctx, "n/1", results)
	f.must(err)
	return run.ID
}
