package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deepcrawl/bench/nullcrawl"
	"deepcrawl/bench/proc"
	"deepcrawl/soak/web"
)

// TestMain makes the test binary a stand-in for deepcrawl: it crawls as the
// null crawler does, and ends with the summary BENCH_TEST_CRAWL asks for.
func TestMain(m *testing.M) {
	summary := os.Getenv("BENCH_TEST_CRAWL")
	if summary == "" {
		os.Exit(m.Run())
	}
	if err := standIn(os.Args[1:], summary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func standIn(args []string, summary string) error {
	if len(args) == 10 && args[0] == "export" {
		return standInExport(args[9])
	}
	want := []string{"crawl", "URL", "--db", "DSN", "--profile", "fast", "--allow-private", "--quiet", "--json"}
	if len(args) != len(want) || args[0] != want[0] || args[6] != want[6] || !strings.HasPrefix(args[3], "sqlite:/") {
		return fmt.Errorf("got arguments %q, want %q", args, want)
	}
	if os.Getenv("DEEPCRAWL_HOST_INFLIGHT") != "24" {
		return fmt.Errorf("DEEPCRAWL_HOST_INFLIGHT is %q", os.Getenv("DEEPCRAWL_HOST_INFLIGHT"))
	}
	stats, err := nullcrawl.Crawl(context.Background(), args[1], 24, nullcrawl.Workers)
	if err != nil {
		return err
	}
	if err := os.WriteFile("home", []byte(args[1]), 0o600); err != nil {
		return err
	}
	_, err = fmt.Println(strings.ReplaceAll(summary, "N", fmt.Sprint(stats.Pages)))
	return err
}

// standInExport writes what the export of a crawl without fault would give.
func standInExport(file string) error {
	home, err := os.ReadFile("home")
	if err != nil {
		return err
	}
	c := scenarios()[0].Site
	c.Pages = 300
	site, err := web.New(c)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(exported(string(home), site)), 0o600)
}

func exported(home string, site *web.Site) string {
	var b strings.Builder
	for e := range site.Expected() {
		u := strings.TrimSuffix(home, "/") + e.Path
		fmt.Fprintf(&b, `{"url":%q,"state":"fetched","status":200,"title":"T","canonical":%q,"outlinks":20,"inlinks":3,"bytes":9}`+"\n", u, u)
	}
	return b.String()
}

const goodSummary = `{"run":"1","state":"done","discovered":N,"fetched":N,"failed":0,"excluded":0}`

// root is the checkout, two folders above this module's commands.
const root = "../../.."

func TestBench(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Fatal("the bench builds its site server with the go command:", err)
	}
	bench := func(t *testing.T, summary string, args ...string) (bool, string, report) {
		t.Helper()
		t.Setenv("BENCH_TEST_CRAWL", summary)
		t.Setenv("DEEPCRAWL_DB", "postgres://must-not-be-seen")
		file := filepath.Join(t.TempDir(), "out.json")
		o, err := parse(append([]string{"-root", root, "-deepcrawl", os.Args[0], "-json", file, "-pages", "300"}, args...), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		met, err := run(t.Context(), o, &out)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var rep report
		if err := json.Unmarshal(b, &rep); err != nil {
			t.Fatal(err)
		}
		return met, out.String(), rep
	}

	t.Run("measures both crawls in each round", func(t *testing.T) {
		_, out, rep := bench(t, goodSummary, "-scenario", "base", "-rounds", "2")
		if len(rep.Scenarios) != 1 || len(rep.Scenarios[0].Rounds) != 2 {
			t.Fatalf("got %+v, want two rounds of one scenario", rep)
		}
		for _, r := range rep.Scenarios[0].Rounds {
			for _, s := range []*side{r.Null, r.Deep} {
				if s.Pages != 300 || s.PagesPerSecond < 10 || s.CPUMicros < 10 || s.PeakMB < 1 || s.MaxInFlight < 1 || s.MaxInFlight > 24 ||
					s.Violations != 0 || len(s.Tenths) != 10 {
					t.Errorf("got %+v", s)
				}
			}
		}
		if n := len(rep.Scenarios[0].Goals); n != 3 || !strings.Contains(out, "median") || !strings.Contains(out, ">= 1.1 (aim 1.6)") {
			t.Errorf("got %d goals and the table %s", n, out)
		}
	})
	t.Run("fails where the crawl is not what it says", func(t *testing.T) {
		met, out, rep := bench(t, strings.Replace(goodSummary, `"fetched":N`, `"fetched":7`, 1), "-scenario", "large", "-rounds", "1")
		if met || rep.Met || !strings.Contains(out, "NOT MET") || !strings.Contains(out, "want done with 300 pages") {
			t.Errorf("got met %v and\n%s", met, out)
		}
	})
}

func TestMeasure(t *testing.T) {
	s, err := choose("slow")
	if err != nil {
		t.Fatal(err)
	}
	slow := s[0]
	slow.Site.Pages = 100
	site, err := web.New(slow.Site)
	if err != nil {
		t.Fatal(err)
	}
	// 24 requests in flight without a gap, 100 ms each; the last ten pages come at half the pace.
	start := time.Unix(1000, 0)
	var hits []web.Hit
	for e := range site.Expected() {
		at := start.Add(time.Duration(len(hits)/24) * 100 * time.Millisecond)
		end := at.Add(100 * time.Millisecond)
		hits = append(hits, web.Hit{
			Seq: uint64(len(hits) + 1), Host: e.Host, Path: e.Path, Kind: web.KindPage, Status: 200, Arrival: at, End: end,
		})
	}
	u := proc.Usage{Wall: time.Second, CPU: 50 * time.Millisecond, Peak: 80e6}
	got, err := measure(slow, u, 10*time.Millisecond, hits)
	if err != nil {
		t.Fatal(err)
	}
	if got.Pages != 100 || got.PagesPerSecond != 100 || got.CPUMicros != 500 || got.PeakMB != 80 || got.MaxInFlight != 24 || got.SiteMicros != 100 {
		t.Errorf("got %+v", got)
	}
	if d := got.IdealPagesPerSecond - 240; d > 1e-6 || d < -1e-6 || got.Violations != 0 {
		t.Errorf("got an ideal of %v pages/s and %d violations (%v), want 24 / 100 ms and none", got.IdealPagesPerSecond, got.Violations, got.Evidence)
	}

	got, err = measure(slow, u, 0, append(hits[:90:90], hits[0]))
	if err != nil {
		t.Fatal(err)
	}
	if got.Violations != 12 { // ten missed, one repeated, one over the cap
		t.Errorf("got %d violations, want 12: %v", got.Violations, got.Evidence)
	}
	if _, err := measure(slow, u, 0, nil); err == nil {
		t.Error("a crawl of no pages: got no error")
	}
}

func TestTenths(t *testing.T) {
	at := time.Unix(1000, 0)
	var pages []web.Hit
	for i := range 200 {
		step := 10 * time.Millisecond
		if i >= 180 {
			step = 20 * time.Millisecond
		}
		at = at.Add(step)
		pages = append(pages, web.Hit{End: at})
	}
	got := tenths(pages)
	if len(got) != 10 || fmt.Sprintf("%.3f %.3f", got[0], got[9]) != "100.000 50.000" {
		t.Errorf("got %v pages/s, want 100 first and 50 last", got)
	}
	if got := tenths(pages[:19]); got != nil {
		t.Errorf("of 19 pages: got %v, want nothing", got)
	}
}

func TestGoals(t *testing.T) {
	rounds := func(ratios ...float64) []round {
		var rs []round
		for _, r := range ratios {
			rs = append(rs, round{Null: &side{PagesPerSecond: 100, CPUMicros: 100}, Deep: &side{PagesPerSecond: 100 * r, CPUMicros: 100 / r}})
		}
		return rs
	}
	dirty := rounds(1, 1, 1)
	dirty[1].Deep.Violations = 1
	for _, c := range []struct {
		name   string
		goal   goal
		rounds []round
		want   verdict
	}{
		{"the median counts", goal{Metric: speedRatio, Min: 1.1}, rounds(0.5, 1.2, 3), verdict{Value: 1.2, Known: true, Met: true}},
		{"an even number has a median too", goal{Metric: speedRatio, Min: 1.1}, rounds(1, 1.5), verdict{Value: 1.25, Known: true, Met: true}},
		{"too slow", goal{Metric: speedRatio, Min: 1.1}, rounds(0.5, 1, 3), verdict{Value: 1, Known: true}},
		{"at most", goal{Metric: cpuRatio, Max: 0.9}, rounds(2), verdict{Value: 0.5, Known: true, Met: true}},
		{"too much", goal{Metric: cpuRatio, Max: 0.9}, rounds(1), verdict{Value: 1, Known: true}},
		{"one bad round is enough", clean, dirty, verdict{Value: 1, Known: true}},
		{"all rounds good", clean, rounds(1, 1), verdict{Known: true, Met: true}},
		{"nothing is known", goal{Metric: speedRatio, Min: 1.1}, []round{{Deep: &side{}}}, verdict{}},
	} {
		got := c.goal.judge(c.rounds)
		if got.Goal == "" {
			t.Errorf("%s: the goal has no name", c.name)
		}
		got.Goal = ""
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{
		{"-scenario", "nope"}, {"-slice", "-1s"}, {"-snapshot-for", "0s"}, {"-side", "left"}, {"-null", "x"}, {"-rounds", "-1"}, {"extra"}, {"-nope"}, {"-profile", "x", "-deepcrawl", "y"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q: got no error", args)
		}
	}
	o, err := parse([]string{"-scenario", "all", "-pages", "50", "-rounds", "3", "-inflight", "8"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.scenarios) != len(scenarios()) {
		t.Errorf("got %d scenarios, want all", len(o.scenarios))
	}
	for _, s := range o.scenarios {
		if s.Site.Pages != 50 || s.Rounds != 3 || s.InFlight != 8 || len(s.Goals) == 0 || s.DB == "" || s.Store != nil && s.Queued != 50 {
			t.Errorf("got %+v", s)
		}
	}
	for name, n := range map[string]int{"crawls": 4, "stores": 8} {
		if got, err := choose(name); err != nil || len(got) != n {
			t.Errorf("%s: got %d scenarios, %v, want %d", name, len(got), err, n)
		}
	}
}

func TestSummary(t *testing.T) {
	good := strings.ReplaceAll(goodSummary, "N", "5")
	for _, c := range []struct {
		name, out string
		ok        bool
	}{
		{"one line", good, true},
		{"after other lines", "hello\n" + good + "\n", true},
		{"over several lines", strings.ReplaceAll(good, ",", ",\n"), true},
		{"not done", strings.Replace(good, "done", "paused", 1), false},
		{"a ledger that does not balance", strings.Replace(good, `"failed":0`, `"failed":1`, 1), false},
		{"nothing", "", false},
	} {
		if err := checkSummary([]byte(c.out), 5); (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func TestStored(t *testing.T) {
	site, err := web.New(web.Config{Pages: 40})
	if err != nil {
		t.Fatal(err)
	}
	good := exported("http://127.0.0.1:8080/", site)
	lines := strings.SplitAfter(good, "\n")
	for _, c := range []struct{ name, export, want string }{
		{"all there", good, ""},
		{"one missing", strings.Join(lines[1:], ""), "1 pages are not stored"},
		{"one twice", good + lines[3], "stored twice"},
		{"without a title", strings.Replace(good, `"title":"T"`, `"title":""`, 1), "without all its facts"},
		{"not fetched", strings.Replace(good, "fetched", "queued", 1), "without all its facts"},
		{"not JSON", "url,state\n", "read the export"},
	} {
		err := checkStored(strings.NewReader(c.export), site.Expected())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestProfilerIsCompiledIn(t *testing.T) {
	// The overlay must not need anything from the program it is added to.
	dir, main := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n", "cmd/deepcrawl/main.go": "package main\n\nimport \"time\"\n\nfunc main() { time.Sleep(1200 * time.Millisecond) }\n",
	} {
		file := filepath.Join(main, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := profileOverlay(dir, main)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "deepcrawl")
	if err := goBuild(t.Context(), main, binary, overlay, "./cmd/deepcrawl"); err != nil {
		t.Fatal(err)
	}
	profile := filepath.Join(dir, "cpu.pprof")
	env := append(os.Environ(), "BENCH_CPUPROFILE="+profile, "BENCH_CPUPROFILE_FOR=50ms")
	if _, err := proc.Run(t.Context(), dir, env, binary); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(profile); err != nil || info.Size() == 0 {
		t.Errorf("got %v, %v, want a profile", info, err)
	}
}
