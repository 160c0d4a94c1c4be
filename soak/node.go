package soak

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"deepcrawl/internal/scratch"
	"deepcrawl/soak/judge"
)

// node is one node of the cluster: a process at a time, started again after its deaths.
type node struct {
	name   string
	source string // of its requests
	binary string
	args   []string
	env    []string
	dir    string // its working directory
	log    string // file that every process of it appends to
	ways   ways   // to the servers

	clockFlag string

	mu    sync.Mutex
	clock string           // OFFSET/DRIFT of the next process; "" is right
	cut   bool             // off from the database
	proc  *scratch.Process // nil while none runs
	lives []*judge.Life
	asked bool // to end
	dead  bool // killed, and not to be started again
}

// start starts the node's process.
func (n *node) start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil {
		return fmt.Errorf("node %s runs already", n.name)
	}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("log of node %s: %w", n.name, err)
	}
	defer log.Close()
	args := n.args
	if n.clock != "" {
		args = append(slices.Clone(args), n.clockFlag, n.clock)
	}
	cmd := exec.Command(n.binary, args...)
	cmd.Args[0] = "deepcrawl" // whatever the file is called
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = n.dir, n.env, log, log
	life := &judge.Life{Node: n.name, Source: n.source, From: time.Now(), Sockets: -1}
	if _, drift, ok := strings.Cut(n.clock, "/"); ok {
		life.Drift, _ = strconv.ParseFloat(drift, 64) // written by this program
	}
	p, err := scratch.StartProcess(cmd, nil)
	if err != nil {
		return fmt.Errorf("start node %s: %w", n.name, err)
	}
	n.proc, n.asked = p, false
	n.lives = append(n.lives, life)
	go n.await(p, life)
	return nil
}

// await notes the end of a process.
func (n *node) await(p *scratch.Process, life *judge.Life) {
	<-p.Done()
	n.mu.Lock()
	defer n.mu.Unlock()
	if life.End == "" { // else it was killed, and when was noted then
		life.To, life.End = time.Now(), judge.EndItself
		if n.asked {
			life.End = judge.EndAsked
		}
	}
	life.Exit = p.ExitCode()
	if n.proc == p {
		n.proc = nil
	}
}

// current returns the process that runs. The caller holds mu.
func (n *node) current() (*scratch.Process, *judge.Life) {
	if n.proc == nil {
		return nil, nil
	}
	return n.proc, n.lives[len(n.lives)-1]
}

// kill is kill -9. It reports whether a process ran.
func (n *node) kill() bool {
	n.mu.Lock()
	p, life := n.current()
	if p != nil && life.End == "" {
		life.To, life.End = time.Now(), judge.EndKilled
		thawed(life)
	}
	n.mu.Unlock()
	if p == nil {
		return false
	}
	p.Kill()
	return true
}

// term asks the process to drain; the channel is closed when it has ended.
func (n *node) term() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, _ := n.current()
	if p == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	n.asked = true
	p.SignalTree(syscall.SIGTERM)
	return p.Done()
}

// freeze is SIGSTOP, thaw SIGCONT.
func (n *node) freeze() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, life := n.current()
	if p == nil || life.End != "" {
		return false
	}
	life.Frozen = append(life.Frozen, judge.Span{From: time.Now()})
	p.SignalTree(syscall.SIGSTOP)
	return true
}

func (n *node) thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, life := n.current()
	if p == nil {
		return
	}
	thawed(life)
	p.SignalTree(syscall.SIGCONT)
}

// thawed ends a freeze that is not over.
func thawed(life *judge.Life) {
	if k := len(life.Frozen) - 1; k >= 0 && life.Frozen[k].To.IsZero() {
		life.Frozen[k].To = time.Now()
	}
}

// running reports whether a process runs, awake and not asked to end.
func (n *node) running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, life := n.current()
	if p == nil || n.asked || life.End != "" {
		return false
	}
	k := len(life.Frozen) - 1
	return k < 0 || !life.Frozen[k].To.IsZero()
}

func (n *node) setCut(cut bool) {
	n.mu.Lock()
	n.cut = cut
	n.mu.Unlock()
}

func (n *node) isCut() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut
}

// gaveUp says whether the last process ended by itself, and that a while ago.
func (n *node) gaveUp() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil || n.dead || len(n.lives) == 0 {
		return false
	}
	last := n.lives[len(n.lives)-1]
	return last.End == judge.EndItself && time.Since(last.To) > restartAfter
}

// measure notes how much memory the process has had; with sockets, how many it has open now.
func (n *node) measure(sockets bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, life := n.current()
	if p == nil {
		return
	}
	life.PeakMemory = max(life.PeakMemory, peakMemory(p.PID()))
	if sockets {
		life.Sockets = openSockets(p.PID())
	}
}

// endings are the lives so far.
func (n *node) endings() []judge.Life {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := make([]judge.Life, len(n.lives))
	for i, l := range n.lives {
		all[i] = *l
	}
	return all
}

// peakMemory is the most a process ever had resident, in bytes; 0 where the system does not say.
func peakMemory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}

// openSockets counts a process's sockets; -1 where the system does not say.
func openSockets(pid int) int {
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		return -1
	}
	count := 0
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, "socket:") {
			count++
		}
	}
	return count
}
