package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"deepcrawl/internal/testenv"
)

// server is the address of the server a database of the test's own is on; the account is the same.
func server(t *testing.T, dsn, path string) string {
	t.Helper()
	i := strings.Index(dsn, "://")
	j := strings.IndexByte(dsn[i+3:], '/')
	if i < 0 || j < 0 {
		t.Fatalf("unexpected address %q", dsn)
	}
	return dsn[:i+3+j] + path
}

func TestStoreScenarios(t *testing.T) {
	for name, args := range map[string][]string{
		"queue-sqlite":      nil,
		"queue-postgres":    {"-postgres", ""},
		"claimers-postgres": {"-postgres", ""},
		"snapshot":          {"-postgres", "", "-snapshot-for", "1s"},
		"queue-mysql":       {"-mysql", ""},
		"claimers-mysql":    {"-mysql", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for i, a := range args {
				switch a {
				case "-postgres":
					args[i+1] = server(t, testenv.Postgres(t), "/postgres")
				case "-mysql":
					args[i+1] = server(t, testenv.MySQL(t), "/")
				}
			}
			o, err := parse(append([]string{"-scenario", name, "-pages", "2000", "-rounds", "2", "-slice", "50ms"}, args...), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			r := runner{dir: t.TempDir(), say: io.Discard}
			s := o.scenarios[0]
			rounds, err := r.store(t.Context(), s, o)
			if err != nil || len(rounds) != 2 {
				t.Fatalf("got %d rounds, %v", len(rounds), err)
			}
			for _, r := range rounds {
				if r.Null.Pages == 0 || r.Deep.Pages == 0 || r.Null.PagesPerSecond < 1 || r.Deep.PagesPerSecond < 1 {
					t.Errorf("got %+v and %+v", r.Null, r.Deep)
				}
			}
			sr := scenarioReport{About: s.String(), Heads: s.Heads, Rounds: rounds}
			sr.finish(s, true)
			if err := sr.print(&out); err != nil {
				t.Fatal(err)
			}
			if len(sr.Goals) != 1 || !sr.Goals[0].Known || !strings.Contains(out.String(), s.Heads[0]+" p/s") || !strings.Contains(out.String(), "2000 URLs queued") {
				t.Errorf("got %+v and\n%s", sr.Goals, &out)
			}
		})
	}
}

func TestASnapshotThatIsLostFailsTheRun(t *testing.T) {
	o, err := parse([]string{"-scenario", "snapshot", "-pages", "100", "-rounds", "1", "-snapshot-for", "1s", "-postgres",
		server(t, testenv.Postgres(t), "/postgres") + "?idle_in_transaction_session_timeout=100"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r := runner{dir: t.TempDir(), say: io.Discard}
	if _, err := r.store(t.Context(), o.scenarios[0], o); err == nil || !strings.Contains(err.Error(), "not held to the end") {
		t.Errorf("got %v", err)
	}
}
