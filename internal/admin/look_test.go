package admin_test

import (
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
	"deepcrawl/storage"
)

// queuedKeys are the keys of the queued URLs that a run's list shows.
func (p *person) queuedKeys(run storage.RunID) (keys []string) {
	p.f.t.Helper()
	var got struct{ Pages []struct{ Key, State string } }
	p.f.must(json.Unmarshal([]byte(p.get(fmt.Sprintf("/api/v1/runs/%d/pages?state=queued", run)).body), &got))
	for _, row := range got.Pages {
		keys = append(keys, row.Key)
	}
	return keys
}

func TestWhatSomebodyLooksAtIsClaimedFirst(t *testing.T) {
	f := setUp(t)
	ctx := t.Context()
	run, err := f.st.CreateRun(ctx, storage.NewRun{Tenant: "acme", Site: "a.example", Spec: []byte(`{"seeds":["https://a.example/"]}`)})
	f.must(err)
	_, err = f.st.SetRunState(ctx, run.ID, []storage.RunState{storage.RunQueued}, storage.RunCrawling, "", time.Time{})
	f.must(err)
	var found []storage.Discovery
	for i := range 120 {
		found = append(found, storage.Discovery{Key: storage.Key{byte(i), 1}, URL: fmt.Sprintf("https://a.example/%d", i), Host: "a.example", Priority: 10 + i})
	}
	_, err = f.st.Discover(ctx, run.ID, found, nil)
	f.must(err)
	claim := func(n int) []storage.Claim {
		t.Helper()
		claims, err := f.st.Claim(ctx, "n/1", []storage.ClaimRequest{{Run: run.ID, Host: "a.example", N: n}})
		f.must(err)
		return claims
	}
	at := fmt.Sprintf("/runs/%d", run.ID)
	eve, bob := f.user("eve", storage.RoleViewer, "acme"), f.user("bob", storage.RoleMember, "beta")
	keys := eve.queuedKeys(run.ID)
	if len(keys) != 50 {
		t.Fatalf("got %d keys", len(keys))
	}
	last := keys[40:42]
	form := []string{"key", last[0], "key", last[1]}
	t.Run("a list of pages says what is on the screen", func(t *testing.T) {
		page := eve.get(at + "/pages?state=queued")
		f.want(page, http.StatusOK, fmt.Sprintf(`hx-post="%s/look?state=queued"`, at), `<input type="hidden" name="key" value="`+last[0]+`">`)
		if strings.Count(page.body, `name="key"`) != 50 {
			t.Errorf("got %d keys", strings.Count(page.body, `name="key"`))
		}
	})
	t.Run("looking does it, whoever may see the run", func(t *testing.T) {
		f.want(bob.post(at+"/look", form...), http.StatusNotFound)
		if got := claim(1); got[0].URL != "https://a.example/0" || got[0].Boosted {
			t.Errorf("got %+v", got)
		}
		got := eve.post(at+"/look?state=queued", form...)
		f.want(got, http.StatusOK, "https://a.example/40")
		if strings.Contains(got.body, "<html") {
			t.Error("a whole page was sent")
		}
		claims := claim(3)
		if len(claims) != 3 || claims[0].URL != "https://a.example/40" || claims[1].URL != "https://a.example/41" || claims[2].URL != "https://a.example/1" || !claims[0].Boosted {
			t.Errorf("got %+v", claims)
		}
		f.want(eve.post("/api/v1"+at+"/look", "key", keys[45]), http.StatusOK, `"boosted":1`, `"seconds":30`)
		f.want(eve.post("/api/v1"+at+"/look", form...), http.StatusOK, `"boosted":0`)
	})
	t.Run("the record of a page is loaded anew once it is finished", func(t *testing.T) {
		f.want(eve.get(at+"/pages/"+last[0]), http.StatusOK, "claimed before others", `hx-post="`+at+`/look"`)
		got := eve.post(at+"/look", "record", "1", "key", keys[45])
		f.want(got, http.StatusNoContent)
		if got.header.Get("HX-Refresh") != "" {
			t.Error("loaded anew while it is queued")
		}
		c := claim(1)[0]
		_, err := f.st.Finish(ctx, "n/1", []storage.Result{{Run: c.Run, ID: c.ID, Token: c.Token, Page: &storage.PageResult{State: storage.Fetched, Status: 200}}})
		f.must(err)
		got = eve.post(at+"/look", "record", "1", "key", keys[45])
		if f.want(got, http.StatusNoContent); c.URL != "https://a.example/45" || got.header.Get("HX-Refresh") != "true" {
			t.Errorf("%s is finished, got %v", c.URL, got.header)
		}
	})
	t.Run("a search is not done again and again", func(t *testing.T) {
		f.want(eve.post(at+"/look?q=a", form...), http.StatusNoContent)
	})
	t.Run("what is no key is refused", func(t *testing.T) {
		f.want(eve.post(at+"/look", "key", "zz"), http.StatusBadRequest)
		var many []string
		for range 101 {
			many = append(many, "key", last[0])
		}
		f.want(eve.post("/api/v1"+at+"/look", many...), http.StatusBadRequest, "at most 100")
	})
	t.Run("nothing is looked at in a run that is over", func(t *testing.T) {
		_, err := f.st.SetRunState(ctx, run.ID, []storage.RunState{storage.RunCrawling}, storage.RunCancelled, "", time.Time{})
		f.must(err)
		f.want(eve.post("/api/v1"+at+"/look", "key", keys[49]), http.StatusOK, `"boosted":0`)
		if page := eve.get(at + "/pages"); strings.Contains(page.body, "hx-post") {
			t.Error("the list still looks")
		}
	})
}

func TestCoordinationIsSwitchedByOperators(t *testing.T) {
	f := setUp(t)
	f.hostileCluster()
	boss, ann := f.user("boss", storage.RoleOperator, ""), f.user("ann", storage.RoleMember, "acme")
	f.want(ann.post("/cluster/coordination", "mode", "db"), http.StatusForbidden)
	f.want(boss.get("/cluster"), http.StatusOK, `action="/cluster/coordination"`)
	f.want(boss.post("/cluster/coordination", "mode", "both"), http.StatusBadRequest, "allowed: db or redis")
	got := boss.post("/cluster/coordination", "mode", "db")
	if f.want(got, http.StatusSeeOther); !strings.HasPrefix(got.header.Get("Location"), "/cluster?said=coordination+moves+to+db") {
		t.Errorf("leads to %s", got.header.Get("Location"))
	}
	f.want(boss.post("/api/v1/cluster/coordination", "mode", "redis"), http.StatusOK, `"state":"coordination moves to redis"`)
	if fmt.Sprint(f.ops.moved) != fmt.Sprint([]coord.Mode{coord.ModeDB, coord.ModeRedis}) {
		t.Errorf("got %v", f.ops.moved)
	}
	t.Run("Redis away is told once, with mode, time and reason", func(t *testing.T) {
		since := "2026-01-02T03:00:00Z"
		f.ops.cluster.Coordination.Away, f.ops.cluster.Coordination.AwaySince = "Redis is not reached by 3 of 3 nodes", &since
		f.ops.cluster.Warnings[0].Text = f.ops.cluster.Coordination.Away
		f.want(boss.post("/cluster/coordination", "mode", "db"), http.StatusSeeOther) // the next look is a new one
		page := boss.get("/cluster")
		f.want(page, http.StatusOK, "Redis is unavailable since 2026-01-02", "mode db", "epoch 4")
		if n := strings.Count(page.body, "Redis is not reached by 3 of 3 nodes"); n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

// TestVendored: what is not ours has a version and a licence, is what it says it is, and is served with an ETag.
func TestVendored(t *testing.T) {
	f := setUp(t)
	dirs, err := filepath.Glob("static/vendor/*")
	if err != nil || len(dirs) < 3 {
		t.Fatal(dirs, err)
	}
	for _, dir := range dirs {
		version, err := os.ReadFile(dir + "/VERSION")
		f.must(err)
		if !regexp.MustCompile(`^\d+\.\d+\.\d+\n$`).Match(version) {
			t.Errorf("%s has version %q", dir, version)
		}
		licence, err := os.ReadFile(dir + "/LICENSE")
		if err != nil || len(licence) < 300 {
			t.Errorf("%s has the licence %q, %v", dir, licence, err)
		}
		scripts, err := filepath.Glob(dir + "/*.js")
		if err != nil || len(scripts) != 1 {
			t.Fatal(scripts, err)
		}
		body, err := os.ReadFile(scripts[0])
		f.must(err)
		if !strings.Contains(string(body), strings.TrimSpace(string(version))) && !strings.Contains(dir, "sse") { // the extension does not say
			t.Errorf("%s is not %s", scripts[0], version)
		}
		got := f.stranger().get("/" + scripts[0])
		if f.want(got, http.StatusOK); got.body != string(body) || got.header.Get("ETag") == "" {
			t.Errorf("%s is served as %d bytes with %v", scripts[0], len(got.body), got.header)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.http.URL+"/"+scripts[0], nil)
		f.must(err)
		req.Header.Set("If-None-Match", got.header.Get("ETag"))
		res, err := f.http.Client().Do(req)
		f.must(err)
		if res.Body.Close(); res.StatusCode != http.StatusNotModified {
			t.Errorf("%s is sent again: %d", scripts[0], res.StatusCode)
		}
	}
	f.want(f.stranger().get("/sign-in"), http.StatusOK, `"allowEval":false`, `"includeIndicatorStyles":false`)
}
