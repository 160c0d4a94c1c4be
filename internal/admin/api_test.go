package admin_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/crawl/extract"
	"deepcrawl/internal/admin"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

var update = flag.Bool("update", false, "write the examples of docs/api.md anew")

const apiDoc = "../../docs/api.md"

// example is what the document says of a route, in the order of the document.
type example struct {
	route string // method and path
	json  string // "" where there is none
}

var heading = regexp.MustCompile(`^# ((?:GET|POST) /api/v1\S+)\n`)

func examples(doc string) (out []example) {
	for _, section := range strings.Split(doc, "\n##") {
		m := heading.FindStringSubmatch(section)
		if m == nil {
			continue
		}
		e := example{route: m[1]}
		if _, rest, ok := strings.Cut(section, "```json\n"); ok {
			e.json, _, _ = strings.Cut(rest, "```")
		}
		out = append(out, e)
	}
	return out
}

// documented is a database as the examples show it.
func documented(t *testing.T) (f *fixture, boss, ann *person, run storage.RunID, key string) {
	f = setUp(t)
	ctx := t.Context()
	at, later := "2026-03-02T08:00:00Z", "2026-03-02T08:10:00Z"
	f.ops.cluster = show.Cluster{
		At: &at, Leader: "n1/3", LeaderSince: &at, Coordination: show.Coordination{Mode: coord.ModeDB, Epoch: 4, Since: &at, Reason: "most sessions do not reach redis",
			Away: "Redis is not reached by 2 of 3 nodes (n1, n2): the database coordinates meanwhile", AwaySince: &at},
		Nodes: []show.Session{{Session: "n1/3", Node: "n1", Role: coord.RoleNode, State: coord.Live, AgeSeconds: 0.8, Version: "1.0.0", Host: "web1", PID: 4242, Workers: 4,
			InFlight: 7, Seats: 2, Claims: 40, Slots: 8}},
		Active:   []show.ClusterRun{{Run: 1, State: storage.RunCrawling, Tenant: "acme", Site: "shop.example", Seats: 2, Allowed: 4, Slots: 8}},
		Waiting:  []show.ClusterRun{{Run: 2, State: storage.RunQueued, Tenant: "acme", Site: "blog.example", Reason: "tariff: 1 of 1 runs active"}},
		Hosts:    []show.HostSlots{{Host: "shop.example", Slots: 8, Cap: 24}},
		Gates:    []show.Host{{Host: "forum.example", Pause: "answered 429 and asked to wait", Until: &later}},
		Fairness: show.Fairness{Jain: 0.98, Runs: 3, Dwell: show.Dwell{N: 3, P50: 0.2, P95: 0.4, Max: 0.5}},
		Warnings: []show.Warning{{Code: "redis-away", Text: "Redis is not reached by 2 of 3 nodes (n1, n2): the database coordinates meanwhile"}},
	}
	f.ops.banned = []show.Host{{Host: "partner.example", Banned: true, Reason: "asked us to stay away", Since: &at}}
	close(f.ops.hold)
	boss, ann = f.user("boss", storage.RoleOperator, ""), f.user("ann", storage.RoleMember, "acme")
	spec := crawl.Spec{Seeds: []string{"https://shop.example/"}}
	r, err := f.st.CreateRun(ctx, storage.NewRun{Tenant: "acme", Site: "shop.example", Spec: spec.Encode()})
	f.must(err)
	_, err = f.st.SetRunState(ctx, r.ID, []storage.RunState{storage.RunQueued}, storage.RunCrawling, "", time.Time{})
	f.must(err)
	var found []storage.Discovery
	for _, p := range []string{"", "lamps", "chairs"} {
		place, err := spec.Find("https://shop.example/" + p)
		f.must(err)
		found = append(found, storage.Discovery{Key: place.Key, URL: place.URL, Host: "shop.example", Priority: 100})
	}
	_, err = f.st.Discover(ctx, r.ID, found, nil)
	f.must(err)
	claims, err := f.st.Claim(ctx, "n1/3", []storage.ClaimRequest{{Run: r.ID, Host: "shop.example", N: 2}})
	f.must(err)
	facts, err := (&extract.Facts{Title: "Shop", Description: "Things for the home", H1: []string{"Shop"}, Lang: "en", Words: 240}).MarshalBinary()
	f.must(err)
	links := append([]byte{1, 0}, found[1].Key[:8]...) // the codec and one link, see package crawl
	_, err = f.st.Finish(ctx, "n1/3", []storage.Result{
		{Run: r.ID, ID: claims[0].ID, Token: claims[0].Token, Page: &storage.PageResult{State: storage.Fetched, Status: 200, ContentType: "text/html", Bytes: 21000, WireBytes: 6000,
			TTFB: 80 * time.Millisecond, Total: 120 * time.Millisecond, Attempts: 1, Title: "Shop", Outlinks: 1, Facts: facts, Links: links}},
		{Run: r.ID, ID: claims[1].ID, Token: claims[1].Token, Page: &storage.PageResult{State: storage.Failed, Status: 503, Reason: "http", Attempts: 3}},
	})
	f.must(err)
	return f, boss, ann, r.ID, fmt.Sprintf("%x", found[0].Key)
}

// TestTheAPIIsAsDocumented asks for everything the document has an example of, and for every route whether it is there.
func TestTheAPIIsAsDocumented(t *testing.T) {
	raw, err := os.ReadFile(apiDoc)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(raw)
	var routes, told []string
	f, boss, ann, run, key := documented(t)
	for _, r := range f.server.Routes() {
		if r.API {
			routes = append(routes, r.Method+" /api/v1"+r.Path)
		}
	}
	list := examples(doc)
	for _, e := range list {
		told = append(told, e.route)
	}
	slices.Sort(routes)
	slices.Sort(told)
	if !slices.Equal(routes, told) {
		t.Errorf("documented are\n%s\nbut there are\n%s", strings.Join(told, "\n"), strings.Join(routes, "\n"))
	}
	_, hash := admin.NewSecret("")
	f.must(f.st.AddToken(t.Context(), hash, storage.Token{ID: "q7x2k9m4ap", User: "ann", Label: "nightly report"}))
	bodies := map[string]url.Values{
		"POST /api/v1/runs":                 {"url": {"https://blog.example/"}, "max_pages": {"1000"}},
		"POST /api/v1/runs/{run}/look":      {"key": {fmt.Sprintf("%x", mustKey(f, "https://shop.example/chairs"))}},
		"POST /api/v1/cluster/coordination": {"mode": {"redis"}},
		"POST /api/v1/hosts/{action}":       {"host": {"forum.example"}, "reason": {"asked us to"}},
		"POST /api/v1/tokens":               {"label": {"nightly report"}},
		"POST /api/v1/users":                {"name": {"eve"}, "password": {password}, "role": {"viewer"}, "tenant": {"acme"}},
	}
	for _, e := range list {
		t.Run(e.route, func(t *testing.T) {
			method, path, _ := strings.Cut(e.route, " ")
			who := ann
			if strings.Contains(path, "/cluster") || strings.Contains(path, "/hosts") || strings.Contains(path, "/users") {
				who = boss
			}
			action := "pause"
			if strings.Contains(path, "/hosts") {
				action = "ban"
			}
			path = strings.NewReplacer("{run}", run.String(), "{key}", key, "{action}", action, "{id}", "q7x2k9m4ap", "{name}", "eve").Replace(path)
			got := who.do(method, path, bodies[e.route])
			if got.status >= 300 {
				t.Fatalf("got %d: %s", got.status, got.body)
			}
			if strings.HasSuffix(path, "/export") {
				if e.json != "" || got.header.Get("Content-Type") != "text/csv; charset=utf-8" {
					t.Errorf("got %v", got.header)
				}
				return
			}
			if *update {
				var b bytes.Buffer
				f.must(json.Indent(&b, []byte(got.body), "", "  "))
				head, rest, ok := strings.Cut(doc, "\n### "+e.route+"\n")
				text, after, ok2 := strings.Cut(rest, "```json\n")
				_, after, ok3 := strings.Cut(after, "```")
				if !ok || !ok2 || !ok3 {
					t.Fatal("no room for the example")
				}
				doc = head + "\n### " + e.route + "\n" + text + "```json\n" + strings.TrimSpace(b.String()) + "\n```" + after
				return
			}
			var want, is any
			if err := json.Unmarshal([]byte(e.json), &want); err != nil {
				t.Fatalf("the example is no JSON: %v", err)
			}
			f.must(json.Unmarshal([]byte(got.body), &is))
			for _, d := range differences("", want, is) {
				t.Error(d)
			}
		})
	}
	if *update {
		f.must(os.WriteFile(apiDoc, []byte(doc), 0o644))
	}
}

func mustKey(f *fixture, u string) storage.Key {
	f.t.Helper()
	place, err := (&crawl.Spec{Seeds: []string{u}}).Find(u)
	f.must(err)
	return place.Key
}

// byWord are objects whose keys are data.
var byWord = []string{".by_status", ".by_reason"}

// differences compares what an example and an answer are made of: fields and types, not values.
func differences(at string, want, got any) (out []string) {
	if want == nil || got == nil {
		return nil // may be null, or is here
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %T, documented as an object", at, got)}
		}
		if slices.Contains(byWord, at) {
			return nil
		}
		for k, x := range w {
			if y, ok := g[k]; !ok {
				out = append(out, fmt.Sprintf("%s.%s is documented and not there", at, k))
			} else {
				out = append(out, differences(at+"."+k, x, y)...)
			}
		}
		for k := range g {
			if _, ok := w[k]; !ok {
				out = append(out, fmt.Sprintf("%s.%s is there and not documented", at, k))
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %T, documented as a list", at, got)}
		}
		if len(g) > 0 && len(w) == 0 {
			return []string{at + " has no example of what is in it"}
		}
		if len(w) > 0 && len(g) > 0 {
			out = differences(at+"[]", w[0], g[0])
		}
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
			out = append(out, fmt.Sprintf("%s is %T, documented as %T", at, got, want))
		}
	}
	return out
}

// TestDifferences shows that the comparison finds what it is for.
func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		want, got string
		n         int
	}{
		{`{"a":1,"b":[{"c":"x"}]}`, `{"a":2,"b":[{"c":"y"}]}`, 0},
		{`{"a":1}`, `{"a":null}`, 0},
		{`{"a":1}`, `{"a":"1"}`, 1},
		{`{"a":1}`, `{"a":1,"b":2}`, 1},
		{`{"a":1,"b":2}`, `{"a":1}`, 1},
		{`{"b":[{"c":"x"}]}`, `{"b":[{"d":"x"}]}`, 2},
		{`{"b":[]}`, `{"b":[1]}`, 1},
		{`{"by_status":{"200":1}}`, `{"by_status":{"404":1}}`, 0},
	} {
		var w, g any
		if json.Unmarshal([]byte(c.want), &w) != nil || json.Unmarshal([]byte(c.got), &g) != nil {
			t.Fatal("bad case")
		}
		if d := differences("", w, g); len(d) != c.n {
			t.Errorf("%s and %s: got %q, want %d", c.want, c.got, d, c.n)
		}
	}
}
