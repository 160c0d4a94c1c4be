//go:build unix && !linux

package scratch

import (
	"os/exec"
	"syscall"
)

// DiesWithParent says that a server cannot outlive the process that started it; only Linux can promise that.
const DiesWithParent = false

// process is a running child.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and is reaped
}

func startProcess(cmd *exec.Cmd, cred *syscall.Credential) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended does not matter, that it did does
		close(p.done)
	}()
	return p, nil
}

func (p *process) kill() {
	p.signalTree(syscall.SIGKILL)
	<-p.done
}

func (p *process) signalTree(sig syscall.Signal) {
	_ = syscall.Kill(-p.cmd.Process.Pid, sig) // it may have ended by itself
}
