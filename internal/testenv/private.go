package testenv

import (
	"syscall"
	"testing"

	"deepcrawl/internal/scratch"
)

// StopMode says how a server is stopped.
type StopMode = scratch.StopMode

// Stop modes, named as PostgreSQL does.
const (
	Fast      = scratch.Fast      // end connections, shut down cleanly
	Smart     = scratch.Smart     // wait for connections to end (PostgreSQL; elsewhere as Fast)
	Immediate = scratch.Immediate // no clean-up: recovery at the next start
)

// Server is a private server of one test, ended and removed with it. Its methods fail the test.
type Server struct {
	t  testing.TB
	in *scratch.Server
}

func private(t testing.TB, word, variable string, create func(...string) (*scratch.Server, error), settings []string) *Server {
	t.Helper()
	in, err := create(settings...)
	if err == nil {
		t.Cleanup(in.Remove)
		err = in.Start()
	}
	if err != nil {
		skip(t, word, variable, err)
	}
	return &Server{t, in}
}

// DSN reaches the server: its database "test" (PostgreSQL, MariaDB), or database 0 (Redis). It stays the same over restarts.
func (s *Server) DSN() string { return s.in.DSN() }

// Port is the TCP port on 127.0.0.1; it stays the same over restarts.
func (s *Server) Port() int { return s.in.Port() }

// Start starts a stopped or killed server and returns when it answers.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.in.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// Stop returns when the server is gone. Stopping a stopped server does nothing.
func (s *Server) Stop(mode StopMode) { s.in.Stop(mode) }

// Kill is kill -9 of the server's process and what it forked.
func (s *Server) Kill() { s.in.Kill() }

// Signal sends a signal (SIGSTOP, SIGCONT) to the server's process and all that it forked.
func (s *Server) Signal(sig syscall.Signal) {
	if err := s.in.Signal(sig); err != nil {
		s.t.Helper()
		s.t.Fatal(err)
	}
}

// PrivatePostgres starts a PostgreSQL of the test's own; settings are "name=value" as in postgresql.conf. The user is postgres,
// without password. fsync is off: the operating system outlives every signal a test sends.
func PrivatePostgres(t testing.TB, settings ...string) *Server {
	t.Helper()
	return private(t, kindPostgres, VarPostgres, scratch.NewPostgres, settings)
}

// PrivateMariaDB starts a MariaDB of the test's own; settings are "name=value" as options of mariadbd. The user is root, without
// password.
func PrivateMariaDB(t testing.TB, settings ...string) *Server {
	t.Helper()
	return private(t, kindMySQL, VarMySQL, scratch.NewMariaDB, settings)
}

// PrivateRedis starts a Redis of the test's own that keeps nothing on disk unless settings ("name=value" as in redis.conf) say so.
func PrivateRedis(t testing.TB, settings ...string) *Server {
	t.Helper()
	return private(t, kindRedis, VarRedis, scratch.NewRedis, settings)
}
