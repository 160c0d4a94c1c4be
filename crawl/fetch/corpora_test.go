package fetch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpus is the folder of a corpus. Where it is absent the test is skipped, or
// fails if DEEPCRAWL_TEST_REQUIRE names corpora.
func corpus(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("DEEPCRAWL_CORPORA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "corpora")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		if strings.Contains(os.Getenv("DEEPCRAWL_TEST_REQUIRE"), "corpora") {
			t.Fatalf("corpus %s is missing (DEEPCRAWL_CORPORA) and DEEPCRAWL_TEST_REQUIRE wants it", name)
		}
		t.Skipf("corpus %s is not here; set DEEPCRAWL_CORPORA to the folder of corpora", name)
	}
	return dir
}
