//go:build unix && !linux

package scratch

import (
	"os/exec"
	"syscall"
)

// DiesWithParent says that a server cannot outlive the process that started it; only Linux can promise that.
const DiesWithParent = false

// Process is a running child.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and is reaped
}

// StartProcess starts cmd in a process group of its own. cred may be nil.
func StartProcess(cmd *exec.Cmd, cred *syscall.Credential) (*Process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended does not matter, that it did does
		close(p.done)
	}()
	return p, nil
}

// Kill ends the process and what it forked, at once, and waits for its end.
func (p *Process) Kill() {
	p.SignalTree(syscall.SIGKILL)
	<-p.done
}

// SignalTree signals the process and what it forked.
func (p *Process) SignalTree(sig syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, sig) // it may have ended by itself
}
