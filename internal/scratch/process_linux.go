package scratch

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// DiesWithParent says that a server cannot outlive the process that started it.
const DiesWithParent = true

// Process is a running child.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and is reaped
}

// StartProcess starts cmd so that the kernel kills it when this process ends. The kernel watches the thread that forked, so a
// goroutine keeps that thread until the child has ended. The child has a process group of its own: Ctrl-C at a terminal is for this
// process alone. cred may be nil.
func StartProcess(cmd *exec.Cmd, cred *syscall.Credential) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended does not matter, that it did does
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Kill ends the process and what it forked, at once, and waits for its end.
func (p *Process) Kill() {
	p.SignalTree(syscall.SIGKILL)
	<-p.done
}

// SignalTree signals the process first, so that it does not replace the children it sees end, then its descendants: PostgreSQL
// puts each into a process group of its own.
func (p *Process) SignalTree(sig syscall.Signal) {
	pids := descendants(p.cmd.Process.Pid)
	_ = p.cmd.Process.Signal(sig)
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig) // it may have ended by itself
	}
}

func descendants(pid int) []int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var all []int
	for _, f := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(f); err == nil {
			all = append(append(all, child), descendants(child)...)
		}
	}
	return all
}
