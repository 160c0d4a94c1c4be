package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/soak/web"
)

// varLong makes the hard tests take the full sizes of the issue; without it they are cut to fit an ordinary run of the tests.
const varLong = "DEEPCRAWL_TEST_LARGE"

// long reports whether the full sizes are asked for.
func long() bool { return os.Getenv(varLong) != "" }

// webSite serves a synthetic site and returns its home pages. sink ends the serving; it may be called twice.
func webSite(t *testing.T, c web.Config) (s *web.Site, urls []string, sink func()) {
	t.Helper()
	s, err := web.New(c)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	sink = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(sink)
	return s, l.URLs(), sink
}

// handSite serves a handler and counts requests by path with query.
type handSite struct {
	*httptest.Server
	mu   sync.Mutex
	hits map[string]int
}

func newHandSite(t *testing.T, h http.HandlerFunc) *handSite {
	t.Helper()
	s := &handSite{hits: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.hits[r.RequestURI]++
		s.mu.Unlock()
		h(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func (s *handSite) count(uri string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hits[uri]
}

// asked is the number of requests, robots.txt and the sitemap tried by convention apart.
func (s *handSite) asked() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for uri, hits := range s.hits {
		if uri != "/robots.txt" && uri != "/sitemap.xml" {
			n += hits
		}
	}
	return n
}

func html(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte("<!doctype html><title>t</title>" + body))
}

// ask runs one query of whole numbers on a database file, beside all of the program's own code but the driver.
func ask(t *testing.T, file, text string, columns int) (rows [][]int64) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), "sqlite:"+file, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	set, err := sqldb.Load(fstest.MapFS{"test.sql": {Data: []byte("-- name: test\n" + text)}}, sqldb.SQLite)
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(t.Context(), func(tx *sqldb.Tx) error {
		rows = rows[:0]
		tx.Query(set.Get("test"), func(r *sqldb.Row) error {
			row := make([]int64, columns)
			for i := range row {
				row[i] = r.Int(i)
			}
			rows = append(rows, row)
			return nil
		})
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return rows
}

func askOne(t *testing.T, file, text string) int64 {
	t.Helper()
	rows := ask(t, file, text, 1)
	if len(rows) != 1 {
		t.Fatalf("%s: %d rows, want 1", text, len(rows))
	}
	return rows[0][0]
}

// stateQuery counts what the tables hold, whatever the counters say: every URL is in exactly one of the three places.
const stateQuery = `SELECT
  (SELECT count(*) FROM url), (SELECT count(*) FROM page), (SELECT count(*) FROM frontier), (SELECT count(*) FROM claim),
  (SELECT count(*) FROM page p WHERE NOT EXISTS (SELECT 1 FROM url u WHERE u.id = p.id)),
  (SELECT count(*) FROM (SELECT id FROM (SELECT id FROM page UNION ALL SELECT id FROM frontier UNION ALL SELECT id FROM claim)
    GROUP BY id HAVING count(*) > 1)),
  (SELECT count(*) FROM (SELECT run_id, url FROM url WHERE length(url) < 2048 GROUP BY run_id, url HAVING count(*) > 1))`

// wholeLedger checks by plain SQL that nothing was lost or kept twice, and that the counters tell the same. With left nothing may
// be unfinished.
func wholeLedger(t *testing.T, file string, done bool) (urls, pages int64) {
	t.Helper()
	row := ask(t, file, stateQuery, 7)[0]
	urls, pages = row[0], row[1]
	if row[0] != row[1]+row[2]+row[3] {
		t.Errorf("%d URLs, but %d pages + %d in the frontier + %d claimed", row[0], row[1], row[2], row[3])
	}
	if row[4] != 0 || row[5] != 0 || row[6] != 0 {
		t.Errorf("%d pages without a URL, %d URLs in two places, %d URLs stored twice", row[4], row[5], row[6])
	}
	if done && row[2]+row[3] != 0 {
		t.Errorf("%d in the frontier and %d claimed, though the run is over", row[2], row[3])
	}
	var counted int64
	for _, name := range []string{"fetched", "failed", "excluded"} {
		counted += askOne(t, file, "SELECT coalesce(sum(n), 0) FROM tally WHERE name = '"+name+"'")
	}
	if discovered := askOne(t, file, "SELECT coalesce(sum(n), 0) FROM tally WHERE name = 'discovered'"); discovered != urls || counted != pages {
		t.Errorf("counters: %d discovered and %d finished; tables: %d and %d", discovered, counted, urls, pages)
	}
	if bad := ask(t, file, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'", 1)[0][0]; bad != 0 {
		t.Errorf("integrity check: %d complaints", bad)
	}
	return urls, pages
}

// watchMemory samples the peak resident set of a running process, which it tells in bytes once the process has ended. What the system
// reports of an ended child counts the moment before exec too, when it still shares its parent's memory.
func (p *proc) watchMemory() (peak func() int64) {
	done := make(chan int64, 1)
	status := fmt.Sprintf("/proc/%d/status", p.Process.Pid)
	go func() {
		most := int64(0)
		for {
			b, err := os.ReadFile(status)
			_, rest, ok := strings.Cut(string(b), "VmHWM:")
			if err != nil || !ok { // it has ended
				done <- most
				return
			}
			var kib int64
			if _, err := fmt.Sscanf(strings.TrimSpace(rest), "%d kB", &kib); err == nil {
				most = max(most, kib<<10)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return func() int64 { return <-done }
}

func dbOf(dir string) string { return filepath.Join(dir, "deepcrawl.db") }

// endWithin waits for the process to end by itself.
func (p *proc) endWithin(t *testing.T, most time.Duration) int {
	t.Helper()
	timer := time.AfterFunc(most, func() { _ = p.Process.Kill() })
	code := p.end(t)
	if !timer.Stop() {
		t.Fatalf("not over after %v; stdout: %s stderr: %s", most, p.out.String(), p.err.String())
	}
	return code
}
