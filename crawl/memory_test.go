//go:build !race

package crawl_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"deepcrawl/crawl"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
)

// TestMemoryGrowsLittleWithURLs measures the heap after garbage collection when 100,000 and when 300,000 URLs are known: what is
// kept of a URL is its key, once: the store's own cache is as small as the program makes it.
func TestMemoryGrowsLittleWithURLs(t *testing.T) {
	if testing.Short() {
		t.Skip("crawls until 300,000 URLs are known: left out by -short")
	}
	const most = 48 // bytes a URL
	perPage := 500
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.URL.Path[1:])
		if r.URL.Path != "/" && err != nil {
			http.NotFound(w, r)
			return
		}
		// Page n links to the pages from n*perPage+1 on.
		var b bytes.Buffer
		b.WriteString("<!doctype html><title>page</title>")
		for i := range perPage {
			fmt.Fprintf(&b, "<a href=/%d>x</a>", n*perPage+i+1)
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(b.Bytes())
	}))
	defer site.Close()
	st, err := sqlstore.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "memory.db"), sqlstore.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	r := newRig(t)
	r.cfg.Store = st
	spec := crawl.Spec{Seeds: []string{site.URL}, Profile: "fast", NoSitemaps: true}
	run, err := st.CreateRun(t.Context(), storage.NewRun{Tenant: storage.DefaultTenant, Site: spec.Site(), Spec: spec.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	cfg := r.cfg
	cfg.Only = run.ID
	node, err := crawl.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	// Measured while it runs, so that nothing is given back at an end; what is in flight is a few hundred KB both times.
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	done := make(chan error, 1)
	go func() { done <- node.Run(t.Context()) }()
	var at [2]uint64
	var known [2]int64
	for i, mark := range []int64{100_000, 300_000} {
		deadline := time.Now().Add(2 * time.Minute)
		for s, _ := node.Progress(run.ID); known[i] < mark; s, _ = node.Progress(run.ID) {
			if l, err := st.Ledger(t.Context(), run.ID); err != nil {
				t.Fatal(err)
			} else {
				known[i] = l.Discovered
			}
			select {
			case err := <-done:
				t.Fatalf("over at %d URLs: %v", s.Discovered, err)
			case <-time.After(5 * time.Millisecond):
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d URLs after two minutes", known[i])
			}
		}
		at[i] = heap()
	}
	grown := (float64(at[1]) - float64(at[0])) / float64(known[1]-known[0])
	t.Logf("heap %d KB at %d URLs, %d KB at %d: %.1f bytes a URL", at[0]>>10, known[0], at[1]>>10, known[1], grown)
	if grown > most {
		t.Errorf("the heap grew by %.1f bytes a URL, want at most %d", grown, most)
	}
}
