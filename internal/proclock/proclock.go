//go:build unix

// Package proclock keeps one process at a time doing a thing on a machine, by a lock of the operating system on a small file.
// The kernel frees the lock however the process ends, so whoever obtains it knows that the last holder is dead: the proof of
// death of PROTOCOL rule 9.
package proclock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Holder is what the holder of a lock wrote about itself.
type Holder struct {
	PID     int       `json:"pid"`
	Node    string    `json:"node,omitempty"`
	Version string    `json:"version,omitempty"`
	Built   time.Time `json:"built,omitzero"` // modification time of its executable when it started
	Since   time.Time `json:"since,omitzero"`
}

// Lock is a held lock.
type Lock struct {
	f *os.File
	// ID is device and inode of the file, "dev:inode": two containers that share a boot do not share it.
	ID string
	// Last is what the holder before wrote; zero when there was none.
	Last Holder
}

// HeldError says that another process has the lock.
type HeldError struct {
	Path   string
	Holder Holder // zero where it has not written yet
}

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("%s is held by another process", e.Path)
	}
	return fmt.Sprintf("%s is held by process %d", e.Path, e.Holder.PID)
}

// Take obtains the lock of the file at path, made where it is missing. It never waits: a *HeldError names the holder. The file
// stays when the lock is released: removing it could let two processes lock two files of one name.
func Take(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock file: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, &HeldError{Path: path, Holder: read(f)}
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{f: f, ID: fmt.Sprintf("%d:%d", st.Dev, st.Ino), Last: read(f)}, nil
}

func read(f *os.File) (h Holder) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err != nil || json.Unmarshal(bytes.TrimSpace(b), &h) != nil {
		return Holder{}
	}
	return h
}

// Describe writes who holds the lock.
func (l *Lock) Describe(h Holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := l.f.Truncate(0); err != nil {
		return err
	}
	_, err = l.f.WriteAt(append(b, '\n'), 0)
	return err
}

// Release gives the lock back. Idempotent.
func (l *Lock) Release() error {
	err := l.f.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Machine names this boot of this machine; empty where the system does not tell. Two machines never share it.
func Machine() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Dir is where lock files of things that are not files themselves are kept: the same for every process of this user on this
// machine, also under cron, which has no environment to speak of.
func Dir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("deepcrawl-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("folder of lock files: %w", err)
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("folder of lock files: %w", err)
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !st.IsDir() || ok && int(sys.Uid) != os.Getuid() {
		return "", fmt.Errorf("folder of lock files: %s belongs to somebody else", dir)
	}
	return dir, nil
}
