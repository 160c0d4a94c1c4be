//go:build unix

package sqldb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// LockFile takes the exclusive right to work on the database file at path, held as a lock of the operating system on
// path+".lock", which holds the process's id as text. The kernel frees it however the process ends, so after a kill -9 the next
// one gets it at once. It never waits: a *LockedError names the process that has it. The lock file itself stays.
// Locks do not reach over machines.
func LockFile(path string) (release func() error, err error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
			err = &fault{kind: ErrReadOnly, cause: err}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		b, _ := io.ReadAll(io.LimitReader(f, 32))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b))) // being written just now: 0
		return nil, &LockedError{Path: path, PID: pid}
	}
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: write the process id: %w", path, err)
	}
	return f.Close, nil
}

// LockedError says that another process works on a database file.
type LockedError struct {
	Path string
	PID  int // 0 when it is not known
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another deepcrawl process", e.Path)
	}
	return fmt.Sprintf("%s is in use by another deepcrawl process (pid %d)", e.Path, e.PID)
}
