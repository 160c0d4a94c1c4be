package sitemap_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deepcrawl/crawl/sitemap"
)

// corpus returns a folder of the shared test data, or skips with the variable to set.
func corpus(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("DEEPCRAWL_CORPORA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "corpora")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		if strings.Contains(os.Getenv("DEEPCRAWL_TEST_REQUIRE"), "corpora") {
			t.Fatalf("corpora are required: %v", err)
		}
		t.Skipf("no corpora at %s; set DEEPCRAWL_CORPORA", root)
	}
	return dir
}

func decode(t testing.TB, body []byte, l sitemap.Limits) ([]sitemap.Entry, sitemap.Info, error) {
	t.Helper()
	var out []sitemap.Entry
	info, err := sitemap.Decode(t.Context(), bytes.NewReader(body), l, func(e sitemap.Entry) error {
		out = append(out, e)
		return nil
	})
	if info.Entries != len(out) {
		t.Errorf("Info.Entries %d, yielded %d", info.Entries, len(out))
	}
	return out, info, err
}

func TestCrawlerCommonsSitemaps(t *testing.T) {
	dir := corpus(t, "sitemaps-crawler-commons")
	tests := []struct {
		file  string
		kind  sitemap.Kind
		n     int
		first string
	}{
		{"sitemaps/sitemap.ns.xml", sitemap.URLSet, 2, "http://www.example.com/1"},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(dir, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			got, info, err := decode(t, body, sitemap.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if info.Kind != tt.kind || len(got) != tt.n || got[0].Loc != tt.first {
				t.Errorf("got %v %d %+v", info.Kind, len(got), got)
			}
		})
	}
	filepath.WalkDir(dir, func(p string, e os.DirEntry, _ error) error {
		if e.IsDir() {
			return nil
		}
		body, _ := os.ReadFile(p)
		got, info, err := decode(t, body, sitemap.Limits{})
		t.Logf("%s %v %d %v %v", p, info.Kind, len(got), info.Warnings, err)
		for i, g := range got {
			if i < 3 {
				t.Logf("   %+v", g)
			}
		}
		_ = errors.Is
		return nil
	})
}
