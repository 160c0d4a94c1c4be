package main

import (
	"flag"
	"net"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	// Most tests wait for processes: more of them run side by side than there are processors. -parallel has its way.
	if n := flag.Lookup("test.parallel"); n.Value.String() == n.DefValue {
		_ = n.Value.Set("4")
	}
	testscript.Main(m, map[string]func(){"deepcrawl": func() {
		if v := os.Getenv(versionVariable); v != "" {
			version = v
		}
		main()
	}})
}

// versionVariable gives a process of a test another version.
const versionVariable = "TEST_DEEPCRAWL_VERSION"

// TestScripts runs testdata/*.txt. Each script has a site of its own at $SITE (private, so DEEPCRAWL_ALLOW_PRIVATE is set), one
// with a certificate nobody trusts at $TLSSITE, and a port that refuses at $REFUSED.
//
// Commands of ours: "hit PATH [N]" waits until the site was asked for PATH N times (1), "hits PATH N" compares, "release" lets
// /hold answer.
func TestScripts(t *testing.T) {
	type siteKey struct{}
	site := func(ts *testscript.TestScript) *testSite { return ts.Value(siteKey{}).(*testSite) }
	number := func(ts *testscript.TestScript, s string) int {
		n, err := strconv.Atoi(s)
		ts.Check(err)
		return n
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			s := newTestSite()
			env.Defer(s.close)
			trusted := httptest.NewTLSServer(s.Config.Handler)
			trusted.Config.ErrorLog = nil
			env.Defer(trusted.Close)
			closed, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			env.Setenv("REFUSED", "http://"+closed.Addr().String())
			if err := closed.Close(); err != nil {
				return err
			}
			env.Values[siteKey{}] = s
			env.Setenv("SITE", s.URL)
			env.Setenv("TLSSITE", trusted.URL)
			env.Setenv("DEEPCRAWL_ALLOW_PRIVATE", "true")
			env.Setenv("TZ", "UTC")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"hit": func(ts *testscript.TestScript, _ bool, args []string) {
				want := 1
				if len(args) == 2 {
					want = number(ts, args[1])
				}
				await(fatal{ts}, "a request for "+args[0], func() bool { return site(ts).count(args[0]) >= want })
			},
			"hits": func(ts *testscript.TestScript, _ bool, args []string) {
				if got := site(ts).count(args[0]); got != number(ts, args[1]) {
					ts.Fatalf("%s was requested %d times, want %s", args[0], got, args[1])
				}
			},
			"release": func(ts *testscript.TestScript, _ bool, _ []string) { site(ts).release() },
			"code": func(ts *testscript.TestScript, _ bool, args []string) {
				// code N cmd args...: the command must end with this exit code
				err := ts.Exec(args[1], args[2:]...)
				got := 0
				if ee, ok := err.(interface{ ExitCode() int }); ok {
					got = ee.ExitCode()
				} else {
					ts.Check(err)
				}
				if got != number(ts, args[0]) {
					ts.Fatalf("exit code %d, want %s", got, args[0])
				}
			},
			"oneline": func(ts *testscript.TestScript, _ bool, args []string) {
				text := strings.TrimSuffix(ts.ReadFile(args[0]), "\n")
				if text == "" || strings.Contains(text, "\n") {
					ts.Fatalf("%s is not one line: %q", args[0], text)
				}
			},
		},
	})
}

type fatal struct{ ts *testscript.TestScript }

func (f fatal) Helper()                           {}
func (f fatal) Fatalf(format string, args ...any) { f.ts.Fatalf(format, args...) }
