// Command deepcrawl crawls sites: on one machine into an embedded file, or on many that share a database.
//
// This is the only place that reads the environment, sees signals and exits.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	_ "time/tzdata" // times are shown with their zone, also where the system has no zone files

	"golang.org/x/term"

	"deepcrawl/internal/config"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // the thing itself failed: a run, a check
	exitUsage       = 2   // wrong flags, arguments or settings; nothing was changed
	exitInterrupted = 130 // by SIGINT or SIGTERM
)

// version is set by the linker (see Makefile); empty for go run and go install.
var version string

func main() {
	os.Exit(run())
}

func run() int {
	soft, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	p := &program{
		environ: os.Environ(), stdout: os.Stdout, stderr: os.Stderr, version: buildVersion(version),
		terminal: term.IsTerminal(int(os.Stderr.Fd())), width: func() int {
			w, _, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil {
				return 80
			}
			return w
		},
		now: time.Now,
	}
	go func() {
		<-signals
		cancel()
		<-signals
		// Everything worth keeping is in the database already; what is in flight is requested again at the next start.
		_, _ = fmt.Fprintln(os.Stderr, "\nstopped at once")
		os.Exit(exitInterrupted)
	}()
	err := p.run(soft, os.Args)
	if err != nil && soft.Err() != nil && errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	if err != nil {
		p.complain(err)
	}
	return exitCode(err)
}

// program is one invocation and what it has of the process.
type program struct {
	environ        []string
	stdout, stderr io.Writer
	terminal       bool // stderr is one
	width          func() int
	version        string
	now            func() time.Time
	log            *slog.Logger // of a node; nil: what is to be told goes to stderr
}

// usageError is a mistake of the person who typed: one line that names the thing and what is allowed.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errInterrupted ends a command that a signal stopped and that has said all there is to say.
var errInterrupted = errors.New("interrupted")

// complain prints an error as one line.
func (p *program) complain(err error) {
	if errors.Is(err, errInterrupted) {
		return
	}
	line := err.Error()
	var conf *config.Error // masked where it was made; what it says is allowed looks like a password
	if !errors.As(err, &conf) {
		line = config.Mask(line)
	}
	line = strings.Join(strings.Fields(line), " ")
	_, _ = fmt.Fprintln(p.stderr, "deepcrawl: "+line)
}

func exitCode(err error) int {
	var usage *usageError
	var conf *config.Error
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &usage), errors.As(err, &conf):
		return exitUsage
	}
	return exitFailed
}
