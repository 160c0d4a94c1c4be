package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Variables read by this package. DSNs are in the forms of DEEPCRAWL_DB and DEEPCRAWL_REDIS_URL.
const (
	VarPostgres = "DEEPCRAWL_TEST_POSTGRES" // postgres://USER[:PASSWORD]@HOST:PORT/DATABASE; schemas are created in it
	VarMySQL    = "DEEPCRAWL_TEST_MYSQL"    // mysql://USER[:PASSWORD]@HOST:PORT/; databases are created on it
	VarRedis    = "DEEPCRAWL_TEST_REDIS"    // redis://HOST:PORT/N
	VarCorpora  = "DEEPCRAWL_CORPORA"       // folder of the corpora; default ../shared/corpora beside the checkout
	VarChromium = "DEEPCRAWL_TEST_CHROMIUM" // program of a Chromium; default chromium or chromium-browser on the PATH
	// VarRequire lists, with commas, what must not be skipped: postgres, mysql, redis, corpora, mount, browser, systemd, galera, soak.
	VarRequire = "DEEPCRAWL_TEST_REQUIRE"
	// VarLarge, when set to anything, runs the tests that take minutes.
	VarLarge = "DEEPCRAWL_TEST_LARGE"
	// VarSoak, when set to anything, runs the tests of faults that are rare or take an hour (make soak).
	VarSoak = "DEEPCRAWL_TEST_SOAK"
)

// Words of VarRequire.
const (
	kindPostgres = "postgres"
	kindMySQL    = "mysql"
	kindRedis    = "redis"
	kindCorpora  = "corpora"
	kindBrowser  = "browser"
)

// Required reports whether VarRequire lists the word.
func Required(word string) bool {
	return slices.ContainsFunc(strings.Split(os.Getenv(VarRequire), ","), func(w string) bool {
		return strings.TrimSpace(w) == word
	})
}

// skip ends the test: as skipped, or as failed where kind is required.
func skip(t testing.TB, kind, variable string, why error) {
	t.Helper()
	if Required(kind) {
		t.Fatalf("%s is required by %s: %v; set %s", kind, VarRequire, why, variable)
	}
	t.Skipf("no %s: %v; set %s to run this test", kind, why, variable)
}

// Missing ends a test that needs something of this machine: as skipped, or as failed where VarRequire lists kind.
func Missing(t testing.TB, kind string, why error) {
	t.Helper()
	if Required(kind) {
		t.Fatalf("%s is required by %s: %v", kind, VarRequire, why)
	}
	t.Skipf("no %s: %v; with it installed this test runs, with %s=%s it must", kind, why, VarRequire, kind)
}

// Soak skips a test that only make soak runs, unless VarSoak is set.
func Soak(t testing.TB) {
	t.Helper()
	if os.Getenv(VarSoak) == "" {
		skip(t, "soak", VarSoak, errors.New("make soak runs this"))
	}
}

// Large skips a test that takes minutes unless VarLarge is set (make verify-large).
func Large(t testing.TB) {
	t.Helper()
	if os.Getenv(VarLarge) == "" {
		t.Skipf("takes minutes; set %s=1 to run this test", VarLarge)
	}
}

// Corpora returns the folder of one corpus (see the README of the corpora), or skips.
func Corpora(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv(VarCorpora)
	if root == "" {
		top, err := moduleRoot()
		if err != nil {
			skip(t, kindCorpora, VarCorpora, err)
		}
		root = filepath.Join(filepath.Dir(top), "shared", "corpora")
	}
	dir := filepath.Join(root, name)
	if st, err := os.Stat(dir); err != nil {
		skip(t, kindCorpora, VarCorpora, err)
	} else if !st.IsDir() {
		skip(t, kindCorpora, VarCorpora, fmt.Errorf("%s is not a folder", dir))
	}
	return dir
}

var moduleLine = regexp.MustCompile(`(?m)^module deepcrawl$`)

// moduleRoot finds the checkout's root above the working directory, which for a test is its package's folder.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && moduleLine.Match(text) {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod of deepcrawl above the test's folder")
		}
		dir = up
	}
}
