package browsertest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deepcrawl/internal/scratch"
)

// password of everybody here.
const password = "a few good words"

// heard is what a process has said.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.String()
}

// place is where the processes of a test work: a folder with a database of its own.
type place struct {
	t    *testing.T
	dir  string
	args []string // settings that all of them have
	all  []*process
}

func newPlace(t *testing.T, args ...string) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{t: t, dir: dir, args: append([]string{"--db", "sqlite:" + dir + "/deepcrawl.db"}, args...)}
	p.run("migrate", "--db", "sqlite:"+dir+"/deepcrawl.db")
	t.Cleanup(p.end)
	return p
}

func (p *place) command(args ...string) (*exec.Cmd, *heard) {
	p.t.Helper()
	file, err := binary()
	if err != nil {
		p.t.Fatal(err)
	}
	c, said := exec.Command(file, args...), &heard{}
	c.Dir, c.Stdout, c.Stderr = p.dir, said, said
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DEEPCRAWL_") && !strings.HasPrefix(v, "SEOMASTER_") && !strings.HasPrefix(v, "TZ=") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "DEEPCRAWL_ALLOW_PRIVATE=true", "TZ=UTC")
	return c, said
}

// run runs a command to its end.
func (p *place) run(args ...string) {
	p.t.Helper()
	c, said := p.command(args...)
	if err := c.Run(); err != nil {
		p.t.Fatalf("deepcrawl %s: %v\n%s", strings.Join(args, " "), err, said)
	}
}

// process is one that goes on until the test ends it.
type process struct {
	*scratch.Process
	said *heard
}

// start starts a command with the settings of the place.
func (p *place) start(name string, args ...string) *process {
	p.t.Helper()
	c, said := p.command(append(append([]string{name}, args...), p.args...)...)
	in, err := scratch.StartProcess(c, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	out := &process{in, said}
	p.all = append(p.all, out)
	return out
}

// end asks all processes to end, and waits for them.
func (p *place) end() {
	for _, in := range p.all {
		in.SignalTree(syscall.SIGTERM)
	}
	late := time.After(within)
	for _, in := range p.all {
		select {
		case <-in.Done():
		case <-late:
			p.t.Errorf("a process does not end: %s", in.said)
			in.Kill()
		}
		if p.t.Failed() {
			p.t.Logf("a process said:\n%s", in.said)
		}
	}
}

// node starts a node that stays.
func (p *place) node(id string, args ...string) *process {
	p.t.Helper()
	return p.start("node", append([]string{"--forever", "--node-id", id}, args...)...)
}

var (
	pagesAt = regexp.MustCompile(`pages at (http://[^/\s]+)/`)
	setUpAt = regexp.MustCompile(`http://[^/\s]+(/set-up\?secret=\S+)`)
)

// serve starts the pages and returns their address, and the path of the set-up link.
func (p *place) serve() (base, setUp string) {
	p.t.Helper()
	in := p.start("serve", "--listen", "127.0.0.1:0")
	await(p.t, "the set-up link", func() bool { return setUpAt.MatchString(in.said.String()) })
	return pagesAt.FindStringSubmatch(in.said.String())[1], setUpAt.FindStringSubmatch(in.said.String())[1]
}

// operator opens a tab at a new server and makes the operator "boss", who is at the cluster page then.
func (p *place) operator() *tab {
	p.t.Helper()
	chromium(p.t) // skips where there is none, before anything is built
	base, setUp := p.serve()
	b := newTab(p.t, base)
	b.look(looks[0])
	b.visit(setUp)
	b.fill("Name", "boss")
	b.fill("Password", password)
	b.click("button", "Make the operator")
	b.at("/cluster")
	return b
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("waited %v for %s", within, what)
		case <-tick.C:
		}
	}
}

// number is the count that the tile of a page with this heading shows.
func (p *tab) number(heading string) string {
	return fmt.Sprintf(`(() => {
		const h = [...document.querySelectorAll("h2")].find((h) => h.textContent === %q);
		return h ? Number(h.nextElementSibling.textContent.replace(/[^0-9]/g, "")) : -1;
	})()`, heading)
}
