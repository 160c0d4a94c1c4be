//go:build unix

package proclock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"deepcrawl/internal/proclock"
)

func TestOneHolderAtATimeWhoIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	first, err := proclock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Describe(proclock.Holder{PID: os.Getpid(), Node: "n1", Version: "1.2"}); err != nil {
		t.Fatal(err)
	}
	var held *proclock.HeldError
	if _, err := proclock.Take(path); !errors.As(err, &held) || held.Holder.Node != "n1" || held.Holder.PID != os.Getpid() {
		t.Fatalf("got %v, want held by n1", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := proclock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = second.Release() }()
	if second.ID != first.ID || second.Last.Node != "n1" {
		t.Errorf("second has file %s after %q, want %s after n1", second.ID, second.Last.Node, first.ID)
	}
}

func TestTheKernelFreesTheLockOfAKilledProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	child := exec.Command(os.Args[0], "-test.run=^TestHold$")
	child.Env = append(os.Environ(), "DEEPCRAWL_TEST_HOLD="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	var held *proclock.HeldError
	if _, err := proclock.Take(path); !errors.As(err, &held) {
		t.Fatalf("got %v while the child holds it", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	l, err := proclock.Take(path)
	if err != nil {
		t.Fatalf("after the child was killed: %v", err)
	}
	_ = l.Release()
}

// TestHold is the child of the test above: it holds the lock until it is killed.
func TestHold(t *testing.T) {
	path := os.Getenv("DEEPCRAWL_TEST_HOLD")
	if path == "" {
		return
	}
	l, err := proclock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Release() }()
	_, _ = os.Stdout.WriteString("x")
	_, _ = os.Stdin.Read(make([]byte, 1)) // the pipe ends with the parent
}
