package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"deepcrawl/crawl"
	"deepcrawl/internal/admin"
	"deepcrawl/storage"
)

// away is a store that does not answer, and does not mind that nobody waits.
type away struct {
	admin.Store
	until chan struct{}
}

func (a away) Ping(context.Context) error { <-a.until; return nil }

func (a away) Session(context.Context, storage.SecretHash) (storage.User, error) {
	<-a.until
	return storage.User{}, storage.ErrUnavailable
}

// TestProbesWhileTheDatabaseIsSilent: the process answers, whoever asks, and readiness is told within its time.
func TestProbesWhileTheDatabaseIsSilent(t *testing.T) {
	f := setUp(t)
	silent := away{f.st, make(chan struct{})}
	defer close(silent.until)
	s, err := admin.New(admin.Config{Store: silent, Operations: f.ops})
	f.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		r.AddCookie(&http.Cookie{Name: "deepcrawl_session", Value: "of somebody"})
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: got %d %s", path, w.Code, w.Body)
		}
	}
}

// TestWhoHasGoneIsNoFault: an answer nobody waits for is not in the log.
func TestWhoHasGoneIsNoFault(t *testing.T) {
	f := setUp(t)
	p := f.user("boss", storage.RoleOperator, "")
	f.want(p.get("/runs"), http.StatusOK)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/runs", nil)
	r.AddCookie(&http.Cookie{Name: "deepcrawl_session", Value: "of somebody"})
	w := httptest.NewRecorder()
	f.server.ServeHTTP(w, r)
	if w.Code < 500 || f.logs.Len() > 0 {
		t.Errorf("got %d, and the log has %s", w.Code, f.logs)
	}
}

// TestWhatIsNoText: servers' databases take neither NUL nor broken UTF-8, so it must not come so far.
func TestWhatIsNoText(t *testing.T) {
	f := setUp(t)
	boss := f.user("boss", storage.RoleOperator, "")
	for _, bad := range []string{"%00", "%ff", "a%00b"} {
		f.want(boss.get("/runs?tenant="+bad), http.StatusBadRequest, "no text")
		f.want(boss.get("/api/v1/runs?tenant="+bad), http.StatusBadRequest, `"error"`)
		f.want(boss.post("/tokens/"+bad+"/revoke"), http.StatusNotFound)
		f.want(boss.post("/users/"+bad+"/remove"), http.StatusNotFound)
	}
	for _, bad := range []string{"\x00", "\xff"} {
		f.want(f.stranger().post("/sign-in", "name", bad, "password", "x"), http.StatusBadRequest, "no text")
		f.want(boss.post("/runs", "url", "https://a.example/"+bad), http.StatusBadRequest, "no text")
		f.want(boss.post("/users", "name", "eve", "password", password, "role", "member", "tenant", bad), http.StatusBadRequest, "no text")
	}
	f.want(boss.json("/api/v1/runs", `{"url": "https://a.example/\u0000"}`), http.StatusBadRequest, "no text")
	for _, name := range []string{".", ".."} { // could never be removed with a browser
		f.want(boss.post("/users", "name", name, "password", password, "role", "operator"), http.StatusBadRequest, "A name has")
	}
}

func (p *person) json(path, body string) reply {
	p.f.t.Helper()
	return p.send(http.MethodPost, path, "application/json", strings.NewReader(body))
}

func TestBodiesOfPrograms(t *testing.T) {
	f := setUp(t)
	ann := f.user("ann", storage.RoleMember, "acme")
	for body, want := range map[string]string{
		"": "no JSON object", "[]": "no JSON object", `{"url": "https://a.example/"} {}`: "no JSON object", `{"url": "https://a.example/"} x`: "no JSON object",
		`{"url": null}`: "Give a URL", `{"url": {"a": 1}}`: "url: allowed are", `{"url": [["https://a.example/"]]}`: "url: allowed are",
	} {
		f.want(ann.json("/api/v1/runs", body), http.StatusBadRequest, want)
	}
	f.want(ann.json("/api/v1/runs", `{"url": "https://a.example/`+strings.Repeat("a", 1<<20)+`"}`), http.StatusRequestEntityTooLarge)
	got := ann.json("/api/v1/runs", `{"url": ["https://a.example/"], "max_pages": 1e3, "no_sitemaps": null, "follow_nofollow": true, "max_time": null}`)
	f.want(got, http.StatusCreated)
	got = ann.get("/api/v1/runs/1")
	f.want(got, http.StatusOK, `"max_pages":1000`, `"follow_nofollow":true`)
	if strings.Contains(got.body, "no_sitemaps") || strings.Contains(got.body, "max_time") {
		t.Errorf("null is taken for something: %s", got.body)
	}
}

// TestAMistakeIsShownWhereItBelongs, with what was entered.
func TestAMistakeIsShownWhereItBelongs(t *testing.T) {
	f := setUp(t)
	ann := f.user("ann", storage.RoleMember, "acme")
	got := ann.post("/tokens", "label", strings.Repeat("ü", 90))
	f.want(got, http.StatusBadRequest, "up to 100 bytes", `value="`+strings.Repeat("ü", 90)+`"`, `action="/account/password"`)
	if strings.Count(got.body, `class="mistake"`) != 1 {
		t.Error("it is not shown once")
	}
}

// TestAnotherSitePutsNoWordsOnThePage: what a change came to is said after a change only.
func TestAnotherSitePutsNoWordsOnThePage(t *testing.T) {
	f := setUp(t)
	f.hostileCluster()
	boss := f.user("boss", storage.RoleOperator, "")
	for site, shown := range map[string]bool{"same-origin": true, "cross-site": false, "none": false} {
		boss.site = site
		if got := boss.get("/cluster?said=call+this+number"); got.status != http.StatusOK || strings.Contains(got.body, "call this number") != shown {
			t.Errorf("from %s: got %d, shown: %v", site, got.status, !shown)
		}
	}
}

// TestOneUserCannotWatchForAll: the streams of others stay free.
func TestOneUserCannotWatchForAll(t *testing.T) {
	f := setUp(t)
	at := fmt.Sprintf("/runs/%d/live", f.crawled("acme", "a.example", 3))
	ann, eve := f.user("ann", storage.RoleMember, "acme"), f.user("eve", storage.RoleViewer, "acme")
	for range 40 {
		_, done := ann.listen(at)
		defer done()
	}
	f.want(ann.get(at), http.StatusServiceUnavailable, "Too many are watching")
	_, done := eve.listen(at)
	done()
}

// TestAFailedRunIsTriedAgain with what it was started with; others are not offered that.
func TestAFailedRunIsTriedAgain(t *testing.T) {
	f := setUp(t)
	ann, eve := f.user("ann", storage.RoleMember, "acme"), f.user("eve", storage.RoleViewer, "acme")
	spec := crawl.Spec{Seeds: []string{"https://a.example/", "https://a.example/b?x=1&y=2"}, MaxPages: 70, Exclude: []string{`\.pdf$`}, NoSitemaps: true, MaxTime: crawl.Duration(90 * time.Minute)}
	r, err := f.st.CreateRun(t.Context(), storage.NewRun{Tenant: "acme", Site: "a.example", Spec: spec.Encode()})
	f.must(err)
	at := "/runs/" + r.ID.String()
	if strings.Contains(ann.get(at).body, "Start it again") {
		t.Error("a queued run is offered to be started again")
	}
	_, err = f.st.SetRunState(t.Context(), r.ID, []storage.RunState{storage.RunQueued}, storage.RunFailed, "unknown host", time.Time{})
	f.must(err)
	if strings.Contains(eve.get(at).body, "Start it again") {
		t.Error("a viewer is offered what it may not do")
	}
	page := ann.get(at)
	f.want(page, http.StatusOK, "Start it again")
	_, link, _ := strings.Cut(page.body, `href="/runs/new?`)
	link, _, _ = strings.Cut(link, `"`)
	form := ann.get("/runs/new?" + strings.ReplaceAll(link, "&amp;", "&"))
	f.want(form, http.StatusOK, "https://a.example/\nhttps://a.example/b?x=1&amp;y=2", `value="70"`, `\.pdf$`, `value="1h30m0s"`, `name="no_sitemaps" value="1" checked`)
	if strings.Contains(form.body, `name="follow_nofollow" value="1" checked`) {
		t.Error("what was not chosen is chosen")
	}
}
