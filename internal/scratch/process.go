package scratch

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ExitCode is the code it ended with, -1 when a signal ended it. Done MUST be closed.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }
