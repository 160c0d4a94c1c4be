// Package proc runs a process and measures what it took. Linux only: peak
// memory is read from /proc.
package proc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process took.
type Usage struct {
	Wall time.Duration // from start to exit
	CPU  time.Duration // user and system, of all threads, from wait4
	// Peak is the largest resident set in bytes. It is read while the process
	// runs: ru_maxrss of wait4 would start with that of the parent.
	Peak   int64
	Stdout []byte
}

// peakEvery is how often the peak is read; it only ever grows, so growth
// within the last interval before the exit is all that can be missed.
const peakEvery = 25 * time.Millisecond

// Run runs a command to its end. A command that fails, or that ctx ends, gives
// an error with the last lines of its standard error.
func Run(ctx context.Context, dir string, env []string, name string, args ...string) (Usage, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &tail{w: &errs}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return Usage{}, fmt.Errorf("start %s: %w", name, err)
	}
	peak := make(chan int64)
	exited := make(chan struct{})
	go func() {
		most := int64(0)
		tick := time.NewTicker(peakEvery)
		defer tick.Stop()
		for {
			most = max(most, residentPeak(cmd.Process.Pid))
			select {
			case <-tick.C:
			case <-exited:
				peak <- most
				return
			}
		}
	}()
	err := cmd.Wait()
	u := Usage{Wall: time.Since(start), Stdout: out.Bytes()}
	close(exited)
	u.Peak = <-peak
	if s := cmd.ProcessState; s != nil {
		u.CPU = s.UserTime() + s.SystemTime()
	}
	if err != nil {
		return u, fmt.Errorf("run %s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return u, nil
}

// residentPeak is VmHWM of a process in bytes, 0 when it cannot be read.
func residentPeak(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" && f[2] == "kB" {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}

// tail keeps about the last 4 KiB written to it.
type tail struct{ w *bytes.Buffer }

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(p []byte) (int, error) {
	t.w.Write(p)
	if t.w.Len() > 8<<10 {
		t.w.Next(t.w.Len() - 4<<10)
	}
	return len(p), nil
}
