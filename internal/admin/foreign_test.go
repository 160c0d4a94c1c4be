package admin_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"deepcrawl/internal/admin"
	"deepcrawl/storage"
)

const firstKey = "00000707070707070700000000000000"

// fill puts values for the parts of a path that vary.
func fill(path string, run storage.RunID, action, token string) string {
	return strings.NewReplacer("{$}", "", "{run}", run.String(), "{key}", firstKey, "{action}", action, "{id}", token, "{name}", "ann").Replace(path)
}

func paths(r admin.Route) []string {
	if r.API {
		return []string{r.Path, "/api/v1" + r.Path}
	}
	return []string{r.Path}
}

// TestForeignSession walks every route as somebody of another tenant.
func TestForeignSession(t *testing.T) {
	f := setUp(t)
	run := f.crawled("acme", "secret-site.example", 4)
	_, sum := admin.NewSecret("")
	f.user("ann", storage.RoleMember, "acme")
	f.must(f.st.AddToken(t.Context(), sum, storage.Token{ID: "anns", User: "ann", Label: "secret-label"}))
	for _, role := range []storage.Role{storage.RoleMember, storage.RoleViewer} {
		bob := f.user("bob-"+string(role), role, "beta")
		for _, r := range f.server.Routes() {
			if r.Path == "/sign-out" || r.Path == "/cluster/check" && r.Method == http.MethodPost {
				continue // says nothing of runs; the check is tried below
			}
			for _, p := range paths(r) {
				for _, action := range []string{"pause", "resume", "cancel", "delete", "ban"} {
					if action != "pause" && !strings.Contains(p, "{action}") {
						continue
					}
					path := fill(p, run, action, "anns")
					got := bob.do(r.Method, path, nil)
					if strings.Contains(got.body, "secret-") || strings.Contains(got.body, "acme") || strings.Contains(got.body, "anns") {
						t.Errorf("%s %s as %s shows what is another tenant's: %.500s", r.Method, path, role, got.body)
					}
					switch {
					case r.Access == "operator", r.Access == "member" && role == storage.RoleViewer:
						if got.status != http.StatusForbidden {
							t.Errorf("%s %s as %s: got %d", r.Method, path, role, got.status)
						}
					case strings.Contains(p, "{run}"), strings.Contains(p, "{id}"):
						nothing := bob.do(r.Method, fill(p, 999_999, action, "none"), nil)
						if got.status != http.StatusNotFound || nothing.status != got.status || nothing.body != got.body {
							t.Errorf("%s %s as %s: got %d, of nothing %d; the answers differ or it is found", r.Method, path, role, got.status, nothing.status)
						}
					}
				}
			}
		}
	}
	r, err := f.st.Run(t.Context(), run)
	if err != nil || r.State != storage.RunCrawling {
		t.Errorf("the run is %s, %v", r.State, err)
	}
	if tokens, err := f.st.Tokens(t.Context(), "ann"); err != nil || len(tokens) != 1 {
		t.Errorf("got tokens %v, %v", tokens, err)
	}
	t.Run("a run is started for one's own tenant whatever is asked for", func(t *testing.T) {
		bob := f.user("bob", storage.RoleMember, "beta")
		f.want(bob.post("/api/v1/runs", "url", "https://x.example/", "tenant", "acme"), http.StatusCreated, `"tenant":"beta"`)
	})
	t.Run("filters do not reach over tenants", func(t *testing.T) {
		bob := f.user("bob", storage.RoleMember, "beta")
		got := bob.get("/api/v1/runs?tenant=acme")
		if strings.Contains(got.body, "secret-site") {
			t.Errorf("got %s", got.body)
		}
	})
}

func TestNobodySeesAnythingWithoutSigningIn(t *testing.T) {
	f := setUp(t)
	run := f.crawled("acme", "secret-site.example", 3)
	nobody := f.stranger()
	for _, r := range f.server.Routes() {
		if r.Access == "anyone" {
			continue
		}
		for _, p := range paths(r) {
			got := nobody.do(r.Method, fill(p, run, "pause", "x"), nil)
			want := http.StatusUnauthorized
			if r.Method == http.MethodGet && !strings.HasPrefix(p, "/api/") {
				want = http.StatusSeeOther
				if to := got.header.Get("Location"); !strings.HasPrefix(to, "/sign-in?next=") {
					t.Errorf("%s %s leads to %s", r.Method, p, to)
				}
			}
			if got.status != want || strings.Contains(got.body, "secret-site") {
				t.Errorf("%s %s: got %d: %.200s", r.Method, p, got.status, got.body)
			}
		}
	}
	nobody.bearer = "dct_wrong"
	f.want(nobody.get("/api/v1/runs"), http.StatusUnauthorized)
}

func TestViewerChangesNothing(t *testing.T) {
	f := setUp(t)
	run := f.crawled("acme", "a.example", 3)
	eve := f.user("eve", storage.RoleViewer, "acme")
	f.want(eve.get(fmt.Sprintf("/runs/%d", run)), http.StatusOK, "a.example")
	for _, action := range []string{"pause", "cancel", "delete"} {
		f.want(eve.post(fmt.Sprintf("/runs/%d/%s", run, action)), http.StatusForbidden)
	}
	f.want(eve.post("/api/v1/runs", "url", "https://x.example/"), http.StatusForbidden)
	if r, err := f.st.Run(t.Context(), run); err != nil || r.State != storage.RunCrawling {
		t.Errorf("the run is %s, %v", r.State, err)
	}
}

func TestOtherSitesCannotPost(t *testing.T) {
	f := setUp(t)
	run := f.crawled("acme", "a.example", 3)
	ann := f.user("ann", storage.RoleMember, "acme")
	for _, r := range f.server.Routes() {
		if r.Method == http.MethodGet {
			continue
		}
		req, err := http.NewRequestWithContext(t.Context(), r.Method, f.http.URL+fill(r.Path, run, "pause", "x"), nil)
		f.must(err)
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		req.Header.Set("Origin", "https://evil.example")
		res, err := ann.c.Do(req)
		f.must(err)
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: got %d", r.Method, r.Path, res.StatusCode)
		}
	}
	if r, err := f.st.Run(t.Context(), run); err != nil || r.State != storage.RunCrawling {
		t.Errorf("the run is %s, %v", r.State, err)
	}
}

var inline = regexp.MustCompile(`(?i)<script(?:[^>]*>[^<]|>)|<style|\son[a-z]+\s*=\s*["']|\sstyle\s*=|href="javascript:|src="javascript:`)

// TestHostileText looks at every page an operator can open with text that sites and people chose.
func TestHostileText(t *testing.T) {
	f := setUp(t)
	f.hostileCluster()
	run := f.crawled("acme", "a.example", 4)
	boss := f.user("boss", storage.RoleOperator, "")
	f.want(boss.post("/hosts/ban", "host", "h.example", "reason", hostile), http.StatusSeeOther)
	f.want(boss.post("/tokens", "label", hostile), http.StatusCreated)
	close(f.ops.hold)
	f.want(boss.post("/cluster/check"), http.StatusSeeOther)
	pages := 0
	for _, r := range f.server.Routes() {
		if r.Method != http.MethodGet || strings.HasSuffix(r.Path, "/live") {
			continue
		}
		for _, p := range paths(r) {
			path := fill(p, run, "", "")
			got := boss.get(path + "?q=" + "&said=%3Cscript%3E&secret=%22%3E%3Cscript%3E&next=%22%3E%3Cscript%3E")
			if got.header.Get("Content-Security-Policy") == "" || strings.Contains(got.header.Get("Content-Security-Policy"), "unsafe") {
				t.Errorf("%s has the policy %q", path, got.header.Get("Content-Security-Policy"))
			}
			if strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
				pages++
				for _, found := range inline.FindAllString(got.body, -1) {
					t.Errorf("%s holds %q", path, found)
				}
			}
		}
	}
	if pages < 10 {
		t.Errorf("only %d pages were looked at", pages)
	}
	record := boss.get(fmt.Sprintf("/runs/%d/pages/%s", run, firstKey))
	f.want(record, http.StatusOK, "&lt;script&gt;alert(1)", "&lt;script&gt;alert(3)", "javascript:alert(4)")
	f.want(boss.get(fmt.Sprintf("/runs/%d/pages", run)), http.StatusOK, "&lt;script&gt;alert(3)")
	f.want(boss.get("/cluster"), http.StatusOK, "&lt;script&gt;")
	if f.logs.Len() > 0 {
		t.Errorf("the log has errors: %s", f.logs)
	}
}
