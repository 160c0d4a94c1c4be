//go:build unix

package sqlstore_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"deepcrawl/internal/sqldb"
	"deepcrawl/internal/testenv"
	"deepcrawl/storage"
	"deepcrawl/storage/sqlstore"
	"deepcrawl/storage/storagetest"
)

// startPgBouncer pools a server's connections by transaction, and returns its port.
func startPgBouncer(t *testing.T, server *testenv.Server) int {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if testenv.Required("pgbouncer") {
			t.Fatal("pgbouncer is not installed and DEEPCRAWL_TEST_REQUIRE lists it")
		}
		t.Skip("pgbouncer is not installed (DEEPCRAWL_TEST_REQUIRE=pgbouncer makes this a failure)")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := ln.Addr().(*net.TCPAddr).Port
	ln.Close()
	dir, err := os.MkdirTemp("", "pgbouncer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\n"+
		"auth_type = any\npool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 200\n", server.Port(), port)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	cmd := exec.Command(program, config)
	cmd.Stderr, cmd.Stdout = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() == 0 { // it refuses to be root
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			return port
		}
		select {
		case <-ended:
			t.Fatalf("pgbouncer ended: %s", log.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("pgbouncer does not answer")
		}
	}
}

func TestBehindPgBouncer(t *testing.T) {
	server := testenv.PrivatePostgres(t)
	port := startPgBouncer(t, server)
	direct, err := sqldb.Open(t.Context(), server.DSN(), sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	var names atomic.Int64
	fresh := func(t testing.TB) string {
		name := fmt.Sprint("behind", names.Add(1))
		bulk(t, direct, "CREATE DATABASE "+name)
		return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?pgbouncer=true", port, name)
	}
	t.Run("the suite", func(t *testing.T) {
		storagetest.Run(t, func(t testing.TB) storagetest.Open { return opener(t, fresh(t)) })
	})
	t.Run("no more round trips than without it", func(t *testing.T) {
		dsn := fresh(t)
		opener(t, dsn)
		var trips atomic.Int64
		s := openStore(t, dsn, sqlstore.Options{RoundTrip: func() { trips.Add(1) }})
		run := newRun(t, s)
		list := make([]storage.Discovery, 100)
		for i := range list {
			list[i] = benchDiscovery(i)
		}
		if _, err := s.Discover(t.Context(), run, list, nil); err != nil {
			t.Fatal(err)
		}
		if got := crawlSteadily(t, s, &trips, []storage.ClaimRequest{{Run: run, Host: host, N: 24}}, 100); got > 0.3 {
			t.Errorf("got %.3f round trips a page, want at most 0.3", got)
		}
	})
}
