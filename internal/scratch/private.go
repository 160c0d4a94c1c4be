package scratch

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// StopMode says how a server is stopped.
type StopMode int

// Stop modes, named as PostgreSQL does.
const (
	Fast      StopMode = iota // end connections, shut down cleanly
	Smart                     // wait for connections to end (PostgreSQL; elsewhere as Fast)
	Immediate                 // no clean-up: recovery at the next start
)

// kind knows how to make, run and reach one sort of server.
type kind struct {
	name    string
	account string // to run under when this process runs as root; empty: any
	dsn     func(port int) string
	// prepare makes the data folder.
	prepare func(dir string, cred *syscall.Credential) error
	command func(dir string, port int, settings []string) (*exec.Cmd, error)
	probe   func(ctx context.Context, dsn string) error
	stop    map[StopMode]syscall.Signal
}

// Server is a private server: a process that can be started more than once on the same data and port.
type Server struct {
	kind     kind
	dir, dsn string
	port     int
	settings []string
	cred     *syscall.Credential

	mu   sync.Mutex
	proc *Process // nil while stopped
}

// startTimeout bounds a start, recovery after a kill included.
const startTimeout = 60 * time.Second

func newServer(k kind, settings []string) (*Server, error) {
	sweep()
	in := &Server{kind: k, settings: settings}
	if os.Geteuid() == 0 && k.account != "" {
		cred, err := credential(k.account)
		if err != nil {
			return nil, err
		}
		in.cred = cred
	}
	dir, err := os.MkdirTemp("", dirPrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil, err
	}
	in.dir = dir
	if in.cred != nil {
		if err := os.Chown(dir, int(in.cred.Uid), int(in.cred.Gid)); err != nil {
			return nil, err
		}
	}
	if err := k.prepare(dir, in.cred); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("make a private %s: %w", k.name, err)
	}
	if in.port, err = FreePort(); err != nil {
		return nil, err
	}
	in.dsn = k.dsn(in.port)
	return in, nil
}

// Start returns when the server answers. A server killed a moment ago may hold its files for a while: a start that ends early is
// tried again.
func (in *Server) Start() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.proc != nil {
		return fmt.Errorf("%s runs already", in.kind.name)
	}
	deadline := time.Now().Add(startTimeout)
	var last error
	for time.Now().Before(deadline) {
		cmd, err := in.kind.command(in.dir, in.port, in.settings)
		if err != nil {
			return err
		}
		log, err := os.OpenFile(filepath.Join(in.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, in.dir
		p, err := StartProcess(cmd, in.cred)
		_ = log.Close()
		if err != nil {
			return err
		}
		if last = in.await(p, deadline); last == nil {
			in.proc = p
			return nil
		}
		p.Kill()
	}
	return fmt.Errorf("start a private %s: %w; its log ends: %s", in.kind.name, last, in.logTail())
}

// pollEvery is the pause between two questions to a starting or ending server.
const pollEvery = 20 * time.Millisecond

// await returns nil once the server answers, an error when its process ended or the deadline passed.
func (in *Server) await(p *Process, deadline time.Time) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		err := in.kind.probe(ctx, in.dsn)
		cancel()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return err
		}
		select {
		case <-p.done:
			return fmt.Errorf("it ended: %w", err)
		case <-tick.C:
		}
	}
}

// end sends the signal and returns when the process is gone.
func (in *Server) end(sig syscall.Signal) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.proc == nil {
		return
	}
	if sig == syscall.SIGKILL {
		in.proc.Kill()
	} else {
		in.proc.SignalTree(syscall.SIGCONT)
		_ = in.proc.cmd.Process.Signal(sig)
		select {
		case <-in.proc.done:
		case <-time.After(startTimeout):
			in.proc.Kill()
		}
	}
	in.proc = nil
}

func (in *Server) logTail() string {
	text, _ := os.ReadFile(filepath.Join(in.dir, "server.log"))
	return strings.TrimSpace(string(text[max(0, len(text)-1500):]))
}

// DSN reaches the server: its database "test" (PostgreSQL, MariaDB), or database 0 (Redis). It stays the same over restarts.
func (in *Server) DSN() string { return in.dsn }

// Dir is the folder of its data.
func (in *Server) Dir() string { return in.dir }

// Port is the TCP port on 127.0.0.1; it stays the same over restarts.
func (in *Server) Port() int { return in.port }

// Stop returns when the server is gone. Stopping a stopped server does nothing.
func (in *Server) Stop(mode StopMode) { in.end(in.kind.stop[mode]) }

// Kill is kill -9 of the server's process and what it forked.
func (in *Server) Kill() { in.end(syscall.SIGKILL) }

// Remove kills the server and removes its data.
func (in *Server) Remove() {
	in.Kill()
	_ = os.RemoveAll(in.dir)
}

// Signal sends a signal (SIGSTOP, SIGCONT) to the server's process and all that it forked.
func (in *Server) Signal(sig syscall.Signal) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.proc == nil {
		return fmt.Errorf("signal %v: the server is stopped", sig)
	}
	in.proc.SignalTree(sig)
	return nil
}

// NewPostgres makes a PostgreSQL, not started yet; settings are "name=value" as in postgresql.conf. The user is postgres, without
// password. fsync is off: the operating system outlives every signal sent here. An error says that it cannot be made here.
func NewPostgres(settings ...string) (*Server, error) { return newServer(postgresKind, settings) }

// NewMariaDB makes a MariaDB, not started yet; settings are "name=value" as options of mariadbd. The user is root, without password.
func NewMariaDB(settings ...string) (*Server, error) { return newServer(mariadbKind, settings) }

// NewRedis makes a Redis, not started yet, that keeps nothing on disk unless settings ("name=value" as in redis.conf) say so.
func NewRedis(settings ...string) (*Server, error) { return newServer(redisKind, settings) }

func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func credential(account string) (*syscall.Credential, error) {
	u, err := user.Lookup(account)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// binary finds a program on the PATH or in folders given by patterns, the last match first (the newest version).
func binary(name string, patterns ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, p := range patterns {
		found, _ := filepath.Glob(filepath.Join(p, name))
		if len(found) > 0 {
			return slices.Max(found), nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

const dirPrefix = "deepcrawl-scratch-"

// sweep removes the folders of private servers whose process is gone.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, d := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(d), dirPrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && syscall.Kill(n, 0) == syscall.ESRCH {
			_ = os.RemoveAll(d)
		}
	}
}
