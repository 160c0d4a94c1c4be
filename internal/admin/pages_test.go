package admin_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/internal/admin"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

func (f *fixture) hostileCluster() {
	at := "2026-01-02T03:04:05Z"
	f.ops.cluster = show.Cluster{
		At: &at, Leader: "n1/3", LeaderSince: &at, Coordination: show.Coordination{Mode: coord.ModeDB, Epoch: 4, Since: &at, Reason: hostile},
		Nodes:    []show.Session{{Session: "n1/3", Node: "n1", Version: hostile, Host: hostile, Workers: 4, Paused: hostile, Late: 2}},
		Active:   []show.ClusterRun{{Run: 1, State: storage.RunCrawling, Tenant: "acme", Site: hostile, Seats: 2, Allowed: 4}},
		Waiting:  []show.ClusterRun{{Run: 2, State: storage.RunQueued, Tenant: "acme", Site: "w.example", Reason: hostile}},
		Hosts:    []show.HostSlots{{Host: hostile, Slots: 3, Cap: 24}},
		Fairness: show.Fairness{Jain: 0.98, Runs: 3, Dwell: show.Dwell{N: 3, P50: 1}, GapRun: 2, LongestGap: 4},
		Warnings: []show.Warning{{Code: "x", Text: hostile}},
	}
}

func TestSetUpAndSignIn(t *testing.T) {
	f := setUp(t)
	path, err := f.server.OfferSetUp(t.Context())
	if err != nil || !strings.HasPrefix(path, "/set-up?secret=") {
		t.Fatalf("got %q, %v", path, err)
	}
	secret := strings.TrimPrefix(path, "/set-up?secret=")
	p := f.stranger()
	f.want(p.get("/set-up?secret=wrong"), http.StatusNotFound)
	f.want(p.get(path), http.StatusOK, `name="password"`)
	f.want(p.post("/set-up", "secret", secret, "name", "boss", "password", "short"), http.StatusBadRequest, "A password has")
	f.want(p.post("/set-up", "secret", secret, "name", "bo ss", "password", password), http.StatusBadRequest, "A name has")
	f.want(p.post("/set-up", "secret", "wrong", "name", "boss", "password", password), http.StatusNotFound)
	got := p.post("/set-up", "secret", secret, "name", "Boss", "password", password)
	f.want(got, http.StatusSeeOther)
	cookie := got.header.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Lax", "Path=/", "Max-Age="} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %q is without %s", cookie, part)
		}
	}
	f.want(p.get("/cluster"), http.StatusOK)
	f.want(p.post("/set-up", "secret", secret, "name", "second", "password", password), http.StatusNotFound)
	if path, err := f.server.OfferSetUp(t.Context()); path != "" || err != nil {
		t.Errorf("offered again: %q, %v", path, err)
	}

	q := f.stranger()
	f.want(q.post("/sign-in", "name", "boss", "password", "not the password"), http.StatusUnauthorized, "Name or password is wrong")
	f.want(q.post("/sign-in", "name", "nobody", "password", password), http.StatusUnauthorized, "Name or password is wrong")
	got = q.post("/sign-in", "name", " BOSS ", "password", password, "next", "/runs?state=done")
	if f.want(got, http.StatusSeeOther); got.header.Get("Location") != "/runs?state=done" {
		t.Errorf("leads to %q", got.header.Get("Location"))
	}
	f.want(q.get("/runs"), http.StatusOK)
	f.want(q.post("/sign-out"), http.StatusSeeOther)
	f.want(q.get("/runs"), http.StatusSeeOther)
	f.want(p.get("/runs"), http.StatusOK) // another session of the same user

	got = p.post("/account/password", "old", "wrong", "password", "another long one")
	f.want(got, http.StatusBadRequest, "present password is wrong")
	f.want(p.post("/account/password", "old", password, "password", "another long one"), http.StatusSeeOther)
	f.want(p.get("/runs"), http.StatusOK)
	f.want(q.post("/sign-in", "name", "boss", "password", password), http.StatusUnauthorized)
}

func TestGuessingIsSlowedDown(t *testing.T) {
	f := setUp(t)
	now := time.Now()
	f.now = func() time.Time { return now }
	f.user("ann", storage.RoleMember, "acme")
	p := f.stranger()
	tries := 0
	for ; tries < 50; tries++ {
		got := p.post("/sign-in", "name", "ann", "password", strings.Repeat("x", 300)) // too long to be hashed: quick
		if got.status == http.StatusTooManyRequests {
			if got.header.Get("Retry-After") == "" {
				t.Error("it is not said when to try again")
			}
			break
		}
	}
	if tries < 3 || tries > 10 {
		t.Errorf("slowed down after %d attempts", tries)
	}
	f.want(p.post("/sign-in", "name", "ann", "password", password), http.StatusTooManyRequests)
	// Behind a proxy on this machine, the last address of the header counts: what a visitor puts before it does not.
	q := f.stranger()
	q.through = "192.0.2.1, 127.0.0.1"
	f.want(q.post("/sign-in", "name", "ann", "password", password), http.StatusTooManyRequests)
	q.through = "127.0.0.1, 192.0.2.1"
	f.want(q.post("/sign-in", "name", "ann", "password", password), http.StatusSeeOther)
	now = now.Add(20 * time.Minute)
	f.want(p.post("/sign-in", "name", "ann", "password", password), http.StatusSeeOther)
}

func TestPasswordHashes(t *testing.T) {
	h := admin.HashPassword(password)
	if h == admin.HashPassword(password) || !strings.HasPrefix(h, "$argon2id$v=19$m=19456,t=2,p=1$") || !admin.PasswordIs(h, password) || admin.PasswordIs(h, password+"x") {
		t.Errorf("got %s", h)
	}
	for _, bad := range []string{"", "x", "$argon2id$", "$argon2id$v=19$m=99999999999,t=1,p=1$AAAA$AAAA", "$argon2id$v=19$m=8,t=0,p=0$AAAA$AAAAAAAAAAAAAAAAAAAAAAAA", "$2b$10$abc"} {
		if admin.PasswordIs(bad, "") {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestOnlyPathsOfThisServerAreFollowed(t *testing.T) {
	for in, want := range map[string]string{
		"/runs?x=1": "/runs?x=1", "": "/", "//evil.example": "/", "https://evil.example": "/", "/\\evil.example": "/", "/a\r\nb": "/", "javascript:x": "/",
	} {
		if got := admin.LocalPath(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestTokens(t *testing.T) {
	f := setUp(t)
	f.crawled("acme", "a.example", 3)
	ann := f.user("ann", storage.RoleMember, "acme")
	var made struct{ ID, Token string }
	f.must(json.Unmarshal([]byte(ann.post("/api/v1/tokens", "label", "nightly").body), &made))
	program := f.stranger()
	program.bearer = made.Token
	f.want(program.get("/api/v1/runs"), http.StatusOK, `"url":"https://a.example/"`)
	got := ann.get("/account")
	f.want(got, http.StatusOK, "nightly", made.ID)
	if strings.Contains(got.body, made.Token) {
		t.Error("the secret is shown again")
	}
	f.want(ann.post("/tokens/"+made.ID+"/revoke"), http.StatusSeeOther)
	f.want(program.get("/api/v1/runs"), http.StatusUnauthorized)
}

func TestUsersAreAddedAndRemoved(t *testing.T) {
	f := setUp(t)
	boss := f.user("boss", storage.RoleOperator, "")
	f.want(boss.post("/users", "name", "ann", "password", password, "role", "member", "tenant", "acme"), http.StatusSeeOther)
	f.want(boss.post("/users", "name", "ann", "password", password, "role", "member", "tenant", "acme"), http.StatusBadRequest, "already")
	f.want(boss.post("/users", "name", "x", "password", password, "role", "king", "tenant", "acme"), http.StatusBadRequest, "Roles are")
	f.want(boss.get("/users"), http.StatusOK, "ann", "acme")
	f.want(boss.post("/users/ann/remove"), http.StatusSeeOther)
	f.want(boss.post("/users/boss/remove"), http.StatusConflict, "last operator")
}

func TestRunsAreStartedAndSteered(t *testing.T) {
	f := setUp(t)
	ann := f.user("ann", storage.RoleMember, "acme")
	f.want(ann.get("/runs"), http.StatusOK, "No crawl here yet")
	f.want(ann.get("/runs/new"), http.StatusOK)
	for form, want := range map[[2]string]string{
		{"url", ""}: "Give a URL", {"url", "ftp://x"}: "ftp", {"max_pages", "-1"}: "Most pages: allowed", {"max_time", "soon"}: "duration such as",
		{"include", "("}: "include", {"profile", "mad"}: "allowed are gentle", {"scope", "all"}: "scope",
	} {
		pairs := []string{form[0], form[1]}
		if form[0] != "url" {
			pairs = append(pairs, "url", "https://kept.example/")
		}
		parts := []string{want}
		if form[0] != "url" {
			parts = append(parts, "kept.example") // what was entered is there still
		}
		f.want(ann.post("/runs", pairs...), http.StatusBadRequest, parts...)
	}
	got := ann.post("/runs", "url", "https://a.example/\nhttps://a.example/b", "max_pages", "100", "max_time", "30m", "no_sitemaps", "1")
	f.want(got, http.StatusSeeOther)
	at := got.header.Get("Location")
	page := ann.get(at)
	f.want(page, http.StatusOK, "a.example", "waits:", "tariff: 3 of 3 runs active", "/pause")
	if strings.Contains(page.body, `class="badge bad"`) || strings.Contains(page.body, `"mistake"`) {
		t.Error("waiting looks like a failure")
	}
	f.want(ann.post(at+"/resume"), http.StatusConflict, "Not possible now")
	f.want(ann.post(at+"/pause"), http.StatusSeeOther)
	f.want(ann.get(at), http.StatusOK, "paused", "/resume", "/delete")
	f.want(ann.post(at+"/resume"), http.StatusSeeOther)
	f.want(ann.post(at+"/explode"), http.StatusNotFound)
	f.want(ann.post("/api/v1"+at+"/cancel"), http.StatusOK, `"state":"cancelled"`)
	f.want(ann.post(at+"/delete"), http.StatusSeeOther)
	f.want(ann.get(at), http.StatusNotFound)
	f.want(ann.do(http.MethodGet, "/runs/x", nil), http.StatusNotFound)
}

func TestListsArePagedByKeys(t *testing.T) {
	f := setUp(t)
	ann := f.user("ann", storage.RoleMember, "acme")
	for range 120 {
		f.want(ann.post("/api/v1/runs", "url", "https://a.example/"), http.StatusCreated)
	}
	run := f.crawled("acme", "p.example", 130)
	walk := func(path, list string) (seen map[string]bool, pages int) {
		seen = map[string]bool{}
		for query := ""; pages < 10; pages++ {
			var got map[string]json.RawMessage
			f.must(json.Unmarshal([]byte(ann.get("/api/v1"+path+"?"+query).body), &got))
			var rows []struct {
				Run json.Number
				Key string
			}
			f.must(json.Unmarshal(got[list], &rows))
			for _, r := range rows {
				id := string(r.Run) + r.Key
				if seen[id] {
					t.Errorf("%s came twice", id)
				}
				seen[id] = true
			}
			if got["next"] == nil {
				return seen, pages + 1
			}
			f.must(json.Unmarshal(got["next"], &query))
		}
		return seen, pages
	}
	if seen, pages := walk("/runs", "runs"); len(seen) != 121 || pages != 3 {
		t.Errorf("got %d runs on %d pages", len(seen), pages)
	}
	if seen, pages := walk(fmt.Sprintf("/runs/%d/pages", run), "pages"); len(seen) != 130 || pages != 3 {
		t.Errorf("got %d URLs on %d pages", len(seen), pages)
	}
	f.want(ann.get("/runs?state=queued"), http.StatusOK, `href="/runs?before=`, `&amp;state=queued"`)
	f.want(ann.get(fmt.Sprintf("/runs/%d/pages?q=page", run)), http.StatusOK, fmt.Sprintf(`href="/runs/%d/pages?after=`, run), `&amp;q=page"`)
	for query, want := range map[string]int{"q=/PAGE/12": 11, "state=failed": 1, "state=claimed": 1, "status=2xx&q=page": 50, "reason=timeout": 1, "q=nosuch": 0, "status=404": 0} {
		var got struct{ Pages []struct{ URL string } }
		f.must(json.Unmarshal([]byte(ann.get(fmt.Sprintf("/api/v1/runs/%d/pages?%s", run, query)).body), &got))
		if len(got.Pages) != want {
			t.Errorf("%s: got %d, want %d", query, len(got.Pages), want)
		}
	}
	for _, query := range []string{"state=x", "status=abc", "after=x"} {
		f.want(ann.get(fmt.Sprintf("/runs/%d/pages?%s", run, query)), http.StatusBadRequest)
	}
	f.want(ann.get("/runs?before=x"), http.StatusBadRequest)
}

func TestOnePageAndExports(t *testing.T) {
	f := setUp(t)
	run := f.crawled("acme", "a.example", 4)
	ann := f.user("ann", storage.RoleMember, "acme")
	at := fmt.Sprintf("/runs/%d", run)
	f.want(ann.get("/api/v1"+at+"/pages/"+firstKey), http.StatusOK, `"status":200`, `"Robots":"noindex"`)
	f.want(ann.get(at+"/pages/ff"), http.StatusNotFound)
	f.want(ann.get("/api/v1"+at+"/timeline"), http.StatusOK, `"fetched":2`, `"failed":1`)
	f.want(ann.get(at), http.StatusOK, fmt.Sprintf(`data-from="/api/v1%s/timeline"`, at), "3 pages from ")
	got := ann.get(at + "/export?what=links&format=jsonl")
	f.want(got, http.StatusOK, fmt.Sprintf("links of run %d as jsonl", run))
	if d := got.header.Get("Content-Disposition"); d != fmt.Sprintf(`attachment; filename="run-%d-links.jsonl"`, run) {
		t.Errorf("got %s", d)
	}
	f.want(ann.get(at+"/export?what=users"), http.StatusBadRequest)
	f.want(ann.get(at+"/export?what=sitemap&format=csv"), http.StatusBadRequest)
}

// listen opens a live stream; next returns the data of its next event with any, "" when it has ended.
func (p *person) listen(path string) (next func() string, closeIt func()) {
	p.f.t.Helper()
	req, err := http.NewRequestWithContext(p.f.t.Context(), http.MethodGet, p.f.http.URL+path, nil)
	p.f.must(err)
	res, err := p.c.Do(req)
	p.f.must(err)
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		p.f.t.Fatalf("got %d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return func() string {
		var b strings.Builder
		for lines.Scan() {
			if line := lines.Text(); line != "" {
				b.WriteString(line + "\n")
			} else if text := b.String(); text != "" && !strings.HasPrefix(text, ":") {
				return text
			} else {
				b.Reset()
			}
		}
		return ""
	}, func() { res.Body.Close() }
}

func TestLivePages(t *testing.T) {
	f := setUp(t)
	f.hostileCluster()
	run := f.crawled("acme", "a.example", 4)
	at := fmt.Sprintf("/runs/%d", run)
	ann, boss := f.user("ann", storage.RoleMember, "acme"), f.user("boss", storage.RoleOperator, "")
	t.Run("a run's part is sent again when it changes, and ends with it", func(t *testing.T) {
		next, done := ann.listen(at + "/live")
		defer done()
		if got := next(); !strings.Contains(got, "crawling") || !strings.HasPrefix(got, "event: run-head\ndata: ") || !strings.Contains(got, "event: run-rest") && !strings.Contains(next(), "event: run-rest") {
			t.Errorf("got %.300s", got)
		}
		f.want(ann.post(at+"/pause"), http.StatusSeeOther)
		if got := next(); !strings.Contains(got, "paused") {
			t.Errorf("got %.300s", got)
		}
		f.want(boss.post(at+"/delete"), http.StatusSeeOther)
		all := ""
		for got := next(); got != ""; got = next() {
			all += got
		}
		if !strings.Contains(all, "has been deleted") || !strings.HasSuffix(strings.TrimSpace(all), "event: end\ndata: .") {
			t.Errorf("ends with %.600s", all)
		}
	})
	t.Run("a stream ends with its session", func(t *testing.T) {
		next, done := boss.listen("/cluster/live")
		defer done()
		if got := next() + next(); !strings.Contains(got, "<strong>n1</strong>") || strings.Contains(got, "<script>alert") {
			t.Errorf("got %.300s", got)
		}
		f.want(boss.post("/sign-out"), http.StatusSeeOther)
		for i := 0; i < 50; i++ {
			if next() == "" {
				return
			}
		}
		t.Error("it goes on")
	})
	t.Run("a check's lines are shown as they come", func(t *testing.T) {
		boss := f.user("boss", storage.RoleOperator, "")
		f.want(boss.post("/cluster/check"), http.StatusSeeOther)
		next, done := boss.listen("/cluster/check/live")
		defer done()
		if got := next(); !strings.Contains(got, "schema") || strings.Contains(got, "gate") {
			if got = next(); !strings.Contains(got, "schema") {
				t.Errorf("got %.300s", got)
			}
		}
		close(f.ops.hold)
		if got := next(); !strings.Contains(got, "gate") || !strings.Contains(got, "1 failed") {
			if got = next(); !strings.Contains(got, "1 failed") {
				t.Errorf("got %.500s", got)
			}
		}
		if got := next(); !strings.Contains(got, "event: end") {
			t.Errorf("got %.300s", got)
		}
	})
}

func TestHealth(t *testing.T) {
	f := setUp(t)
	f.hostileCluster()
	p := f.stranger()
	f.want(p.get("/healthz"), http.StatusOK, "ok")
	f.want(p.get("/readyz"), http.StatusOK, "ready")
	boss := f.user("boss", storage.RoleOperator, "")
	got := boss.get("/metrics")
	f.want(got, http.StatusOK, "deepcrawl_cluster_nodes 1", "deepcrawl_cluster_slots_used 3", `deepcrawl_serve_answers_total{status="200"}`, `deepcrawl_build_info{version="v1"} 1`)
	if strings.Contains(got.body, "acme") || strings.Contains(got.body, "example") {
		t.Error("a label names a tenant or host")
	}
	f.want(p.get("/nothing"), http.StatusNotFound)
	f.want(p.get("/static/style.css"), http.StatusOK)
	f.want(p.get("/static/"), http.StatusNotFound)
	f.want(boss.do(http.MethodPost, "/runs/1", nil), http.StatusNotFound)
}

func TestCatalogueIsWholeAndUsed(t *testing.T) {
	used := regexp.MustCompile(`(?:\bt|say\() ?"([a-z0-9_.]+)"`)
	made := regexp.MustCompile(`(?:print|say\() ?"([a-z]+\.)"`) // the start of keys made of a word
	keys, starts := map[string]bool{}, []string{}
	for _, pattern := range []string{"*.go", "template/*.html"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range used.FindAllStringSubmatch(string(b), -1) {
				keys[m[1]] = true
			}
			for _, m := range made.FindAllStringSubmatch(string(b), -1) {
				starts = append(starts, m[1])
				delete(keys, m[1])
			}
		}
	}
	english := admin.English()
	for k := range keys {
		if _, ok := english[k]; !ok {
			t.Errorf("%s is used and not in the catalogue", k)
		}
	}
	for k := range english {
		ok := keys[k]
		for _, s := range starts {
			ok = ok || strings.HasPrefix(k, s)
		}
		if !ok {
			t.Errorf("%s is in the catalogue and not used", k)
		}
	}
}
