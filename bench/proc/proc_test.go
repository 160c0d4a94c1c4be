package proc_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"deepcrawl/bench/proc"
)

// TestMain makes the test binary the process that is measured.
func TestMain(m *testing.M) {
	switch os.Getenv("PROC_TEST") {
	case "work":
		b := make([]byte, 32<<20)
		for start := time.Now(); time.Since(start) < 300*time.Millisecond; {
			for i := range b {
				b[i]++
			}
		}
		os.Stdout.WriteString("done\n")
	case "fail":
		os.Stderr.WriteString("out of luck\n")
		os.Exit(3)
	case "hang":
		time.Sleep(time.Hour)
	default:
		os.Exit(m.Run())
	}
}

func TestRun(t *testing.T) {
	run := func(ctx context.Context, what string) (proc.Usage, error) {
		return proc.Run(ctx, t.TempDir(), append(os.Environ(), "PROC_TEST="+what), os.Args[0])
	}
	t.Run("measures a process", func(t *testing.T) {
		ballast := make([]byte, 256<<20) // must not count as the child's
		for i := range ballast {
			ballast[i] = 1
		}
		u, err := run(t.Context(), "work")
		if err != nil {
			t.Fatal(err)
		}
		if ballast[len(ballast)-1] != 1 || string(u.Stdout) != "done\n" {
			t.Errorf("got output %q, want done", u.Stdout)
		}
		if u.Wall < 300*time.Millisecond || u.CPU < 50*time.Millisecond || u.CPU > 2*u.Wall {
			t.Errorf("got wall %v and CPU %v, want at least 300 ms and a good part of it", u.Wall, u.CPU)
		}
		if u.Peak < 32<<20 || u.Peak > 200<<20 { // the race detector triples it
			t.Errorf("got a peak of %d MiB, want 32 and a little, and not the 256 of this process", u.Peak>>20)
		}
	})
	t.Run("tells why a process failed", func(t *testing.T) {
		if _, err := run(t.Context(), "fail"); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "out of luck") {
			t.Errorf("got %v, want the exit status and what it said", err)
		}
	})
	t.Run("ends a process with its context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if u, err := run(ctx, "hang"); err == nil || u.Wall > 5*time.Second {
			t.Errorf("got %v after %v, want an error at once", err, u.Wall)
		}
	})
}
