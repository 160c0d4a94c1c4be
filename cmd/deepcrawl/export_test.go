package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

func TestSitemapWriter(t *testing.T) {
	t.Run("more than one file's worth becomes several with an index", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "map.xml")
		w := &sitemapWriter{file: file}
		defer w.discard()
		for i := range 2*sitemapURLs + 1 {
			if err := w.add(fmt.Sprintf("https://a.example/?a=1&b=%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		names, err := w.close("https://a.example")
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for i, n := range []int{3, sitemapURLs, sitemapURLs, 1} {
			text, err := os.ReadFile(names[i])
			if err != nil {
				t.Fatal(err)
			}
			var doc struct {
				Locs []string `xml:"url>loc"`
				Maps []string `xml:"sitemap>loc"`
			}
			if err := xml.Unmarshal(text, &doc); err != nil {
				t.Fatal(err)
			}
			if len(doc.Locs)+len(doc.Maps) != n {
				t.Errorf("%s has %d entries, want %d", names[i], len(doc.Locs)+len(doc.Maps), n)
			}
			for _, l := range doc.Locs {
				if l != fmt.Sprintf("https://a.example/?a=1&b=%d", want) {
					t.Fatalf("got %s for URL %d", l, want)
				}
				want++
			}
			for j, m := range doc.Maps {
				if m != fmt.Sprintf("https://a.example/map-%d.xml", j+1) {
					t.Errorf("the index names %s", m)
				}
			}
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	t.Run("on standard output there is room for one file only, and the error says what to do", func(t *testing.T) {
		w := &sitemapWriter{stdout: &strings.Builder{}}
		var err error
		for i := 0; i <= sitemapURLs && err == nil; i++ {
			err = w.add(fmt.Sprintf("https://a.example/%d", i))
		}
		if err == nil || !strings.Contains(err.Error(), "give -o FILE") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no URL at all is a sitemap too", func(t *testing.T) {
		var out strings.Builder
		w := &sitemapWriter{stdout: &out}
		if _, err := w.close(""); err != nil || out.String() != urlsetHead+urlsetFoot {
			t.Errorf("got %q, %v", out.String(), err)
		}
	})
}

// brokenStore loses its database after the first batch.
type brokenStore struct {
	storage.Store
	calls int
}

func (s *brokenStore) ListPages(context.Context, storage.RunID, storage.PageQuery) ([]storage.PageRow, error) {
	if s.calls++; s.calls > 1 {
		return nil, storage.ErrUnavailable
	}
	return []storage.PageRow{{ID: 1, URL: "https://a.example/"}}, nil
}

func (s *brokenStore) URLs(context.Context, storage.RunID, []storage.URLID) (map[storage.URLID]string, error) {
	return nil, nil
}

func TestExportFails(t *testing.T) {
	t.Run("a file that was there stays as it was, and no half one is left", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "pages.csv")
		if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		x := &exporter{ctx: t.Context(), store: &brokenStore{}, format: "csv", file: file, spec: crawl.Spec{}}
		if err := x.pages(); !errors.Is(err, storage.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		text, err := os.ReadFile(file)
		if err != nil || string(text) != "old" {
			t.Errorf("got %q, %v", text, err)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("got %v, %v", all, err)
		}
	})
}
