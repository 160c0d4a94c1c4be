package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deepcrawl/internal/testenv"
	"deepcrawl/soak/web"
)

// manual is docs/operations.md as an operator follows it: the commands of each section, in order.
type manual struct {
	t     *testing.T
	parts map[string][]string // by heading: lines of blocks, and commands in the running text
	all   map[string]bool     // commands that nobody has followed yet
	words *strings.Replacer   // names of the document to those of the test
	dirs  []string            // of the three servers, each with its settings file
	env   []string
	home  string
	nodes []*proc
}

var (
	inline   = regexp.MustCompile("`([^`]+)`")
	followed = regexp.MustCompile(`^(DEEPCRAWL_DB=mysql|deepcrawl|psql|mariadb|mariadb-dump|pg_dump|pg_restore|sqlite3|systemctl|kill)[ :]`)
)

// readManual splits the document.
func readManual(t *testing.T) *manual {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	m := &manual{t: t, parts: map[string][]string{}, all: map[string]bool{}}
	heading, block := "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			block = !block
			continue
		case block:
			m.parts[heading] = append(m.parts[heading], line)
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimLeft(line, "# ")
		default:
			for _, c := range inline.FindAllStringSubmatch(line, -1) {
				if followed.MatchString(c[1]) {
					m.parts[heading] = append(m.parts[heading], c[1])
				}
			}
		}
	}
	for _, part := range m.parts {
		for _, c := range part {
			if followed.MatchString(c) {
				m.all[c] = true
			}
		}
	}
	return m
}

// has takes a line of the document, which must be there, as followed.
func (m *manual) has(part, line string) string {
	m.t.Helper()
	if !slices.Contains(m.parts[part], line) {
		m.t.Fatalf("docs/operations.md, %s: no line %q", part, line)
	}
	delete(m.all, line)
	return m.words.Replace(line)
}

// follow runs a line of the document in a shell, on one of the servers, and returns what it printed.
func (m *manual) follow(server int, part, line string) string {
	m.t.Helper()
	return m.shell(server, m.has(part, line))
}

func (m *manual) shell(server int, command string) string {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), "/bin/sh", "-c", command)
	cmd.Dir, cmd.Env = m.dirs[server], m.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		m.t.Fatalf("%s: %v\n%s%s", command, err, out.String(), errs.String())
	}
	return out.String()
}

// cron starts the cron line of the document on a server, as cron does.
func (m *manual) cron(server int) *proc {
	m.t.Helper()
	line := m.has("Three nodes from nothing", "* * * * * deepcrawl node")
	_, command, _ := strings.Cut(line, "* * * * * ")
	p := &proc{Cmd: exec.CommandContext(m.t.Context(), "/bin/sh", "-c", "exec "+command)}
	p.Dir, p.Stdout, p.Stderr, p.Env = m.dirs[server], &p.out, &p.err, m.env
	if err := p.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// settings writes the settings of the document on each server, with its node id.
func (m *manual) settings(part string) {
	m.t.Helper()
	var lines []string
	for _, line := range m.parts[part] {
		if strings.HasPrefix(line, "DEEPCRAWL_") {
			lines = append(lines, m.words.Replace(line))
		}
	}
	for i, dir := range m.dirs {
		file := filepath.Join(dir, "deepcrawl.env") // one of the places it is read from; the document's is for root
		before, _ := os.ReadFile(file)
		text := string(before) + strings.Join(lines, "\n") + "\n"
		text = strings.ReplaceAll(text, "DEEPCRAWL_NODE_ID=n1", fmt.Sprintf("DEEPCRAWL_NODE_ID=n%d", i+1))
		if len(before) == 0 {
			text += "DEEPCRAWL_ALLOW_PRIVATE=true\n" // the site of the test is on loopback
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
}

// startNodes starts the cron line everywhere and waits for the nodes.
func (m *manual) startNodes() {
	m.t.Helper()
	m.nodes = nil
	for i := range m.dirs {
		m.nodes = append(m.nodes, m.cron(i))
	}
	await(m.t, "three nodes", func() bool {
		out := m.follow(1, "Three nodes from nothing", "deepcrawl cluster status")
		return strings.Contains(out, "n1") && strings.Contains(out, "n2") && strings.Contains(out, "n3")
	})
}

// stopNodes ends the processes that cluster status shows, as the document says.
func (m *manual) stopNodes() {
	m.t.Helper()
	line := m.has("Adding and removing nodes", "kill PID")
	for _, p := range m.nodes {
		m.shell(0, strings.ReplaceAll(line, "PID", strconv.Itoa(p.Process.Pid)))
	}
	for _, p := range m.nodes {
		if code := p.end(m.t); code != exitOK || p.err.String() != "" {
			m.t.Errorf("a node ended with %d: %s", code, p.err.String())
		}
	}
	m.nodes = nil
}

// done waits for a run's end.
func (m *manual) done(run string) {
	m.t.Helper()
	await(m.t, "the end of run "+run, func() bool { return strings.Contains(m.shell(0, "deepcrawl run show "+run), "done") })
}

func newManual(t *testing.T, words ...string) *manual {
	t.Helper()
	m := readManual(t)
	bin := t.TempDir()
	binaryOf(t, filepath.Join(bin, "deepcrawl"), time.Now().Add(-time.Hour))
	m.home = t.TempDir()
	m.words = strings.NewReplacer(append(words, "/var/log/deepcrawl.log", filepath.Join(m.home, "deepcrawl.log"))...)
	for range 3 {
		m.dirs = append(m.dirs, t.TempDir())
	}
	m.env = []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=" + m.home}
	return m
}

// check follows cluster check on every server.
func (m *manual) check(part string) {
	m.t.Helper()
	for i := range m.dirs {
		if out := m.follow(i, part, "deepcrawl cluster check"); strings.Contains(out, "failed ") || !strings.Contains(out, "ok ") {
			m.t.Errorf("got %s", out)
		}
	}
}

func TestOperationsOnPostgreSQLAndRedis(t *testing.T) {
	t.Parallel()
	site, urls, _ := webSite(t, web.Config{Seed: 71, Pages: 400, PageBytes: 1000, Latency: 10 * time.Millisecond, Hosts: 2})
	server := testenv.PrivatePostgres(t)
	memory := testenv.PrivateRedis(t, "maxmemory-policy=noeviction")
	home := "https://acme.example"
	m := newManual(t,
		"db.example.com:5432", fmt.Sprintf("127.0.0.1:%d", server.Port()), "redis.example.com:6379", fmt.Sprintf("127.0.0.1:%d", memory.Port()),
		"https://example.com/bot", "https://example.com/bot", "https://example.com", urls[0], home+"/page", urls[1]+"none", home, urls[1], "acme.example", siteHost(t, urls[1]))
	m.env = append(m.env, "PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", server.Port()))
	m.shell(0, fmt.Sprintf("redis-cli -p %d config set requirepass change-me", memory.Port()))
	const first = "Three nodes from nothing"

	m.follow(0, first, `psql -U postgres -c "CREATE ROLE deepcrawl LOGIN PASSWORD 'change-me'"`)
	m.follow(0, first, `psql -U postgres -c "CREATE DATABASE deepcrawl OWNER deepcrawl"`)
	m.settings(first)
	if out := m.follow(0, first, "deepcrawl config"); !strings.Contains(out, "deepcrawl.env") || strings.Contains(out, "change-me") {
		t.Errorf("got %s", out)
	}
	m.follow(2, first, "deepcrawl migrate")
	m.check(first)
	m.settings("With Redis")
	m.check("With Redis")
	m.startNodes()
	await(t, "coordination through Redis and a leader", func() bool {
		out := m.follow(0, "With Redis", "deepcrawl cluster status")
		return strings.Contains(out, "redis") && !strings.Contains(out, "warning: ")
	})

	one := m.id(m.follow(0, first, "deepcrawl run add https://example.com"))
	watching := m.has(first, "deepcrawl cluster status --watch")
	if out := m.shell(1, "timeout -s INT 3 "+watching+" || test $? = 130 -o $? = 124"); !strings.Contains(out, "run "+one) {
		t.Errorf("got %s", out)
	}
	m.done(one)
	if out := m.follow(2, first, "deepcrawl run list"); !strings.Contains(out, "done") {
		t.Errorf("got %s", out)
	}
	if out := m.follow(2, first, "deepcrawl export last --what pages --format csv"); strings.Count(out, "\n") < 400 {
		t.Errorf("got %d lines of CSV", strings.Count(out, "\n"))
	}
	if n := site.Requests(); n < 400 {
		t.Errorf("%d requests", n)
	}

	m.daily()
	m.backUp("pg_dump -U postgres -Fc -f deepcrawl.dump deepcrawl", `psql -U postgres -c "DROP DATABASE deepcrawl"`,
		`psql -U postgres -c "CREATE DATABASE deepcrawl OWNER deepcrawl"`, "pg_restore -U postgres -d deepcrawl deepcrawl.dump")
	m.unit()
	m.stopNodes()

	// What other tests follow: the upgrade (TestRollingUpgrade), MariaDB below, a process that answers metrics (TestNodeMetrics), the soak (TestSoak), the pages (TestServe).
	for _, other := range []string{
		"deepcrawl node", "deepcrawl node --metrics-addr 127.0.0.1:9090", "systemctl restart deepcrawl", "systemctl enable --now deepcrawl", "systemctl stop",
		"systemctl disable --now", "systemctl status", "deepcrawl crawl", "deepcrawl serve", "deepcrawl cluster status --json", `sqlite3 deepcrawl.db ".backup copy.db"`,
	} {
		delete(m.all, other)
	}
	for line := range m.all {
		elsewhere := strings.HasPrefix(line, "deepcrawl cluster soak ") // TestSoak
		if !elsewhere && !strings.HasPrefix(line, "mariadb") && !strings.Contains(line, "mysql://") {
			t.Errorf("docs/operations.md: nothing follows %q", line)
		}
	}
}

// daily follows the table of what operators want.
func (m *manual) daily() {
	m.t.Helper()
	const part = "Day to day"
	m.follow(0, part, "deepcrawl tenant add acme --tariff medium")
	m.follow(0, part, "deepcrawl tariff list")
	m.follow(0, part, "deepcrawl tariff set medium --deep-parallel 5")
	m.follow(0, part, "deepcrawl schedule add https://acme.example --tenant acme --cron \"30 3 * * 1\" --zone Europe/Berlin")
	m.follow(0, part, "deepcrawl tenant suspend acme")
	two := m.id(m.follow(0, part, "deepcrawl run add https://acme.example --tenant acme"))
	run := func(line string) string { return strings.Replace(m.has(part, line), " 12", " "+two, 1) }
	if out := m.shell(1, run("deepcrawl run why 12")); !strings.Contains(out, "tenant acme is suspended") {
		m.t.Errorf("got %s", out)
	}
	m.shell(1, "deepcrawl tenant resume acme")
	m.done(two)
	if out := m.shell(1, run("deepcrawl run why 12 https://acme.example/page")); !strings.Contains(out, "> url") {
		m.t.Errorf("got %s", out)
	}
	m.follow(0, part, "deepcrawl host ban acme.example --reason \"asked us by mail\"")
	m.shell(0, m.words.Replace("deepcrawl host unban acme.example"))
	m.follow(0, part, "deepcrawl host clear acme.example")
	m.follow(0, part, "deepcrawl tenant delete acme")
	if out := m.shell(0, "deepcrawl tenant list"); strings.Contains(out, "acme") {
		m.t.Errorf("got %s", out)
	}
}

// backUp follows the backup while nodes work, and the restore.
func (m *manual) backUp(dump string, restore ...string) {
	m.t.Helper()
	const part = "Backups"
	m.shell(0, m.words.Replace("deepcrawl run add https://example.com/ --profile gentle"))
	await(m.t, "requests", func() bool { return m.fetched() > 0 && strings.Contains(m.shell(0, "deepcrawl run list"), "crawling") })
	m.follow(0, part, dump)
	m.stopNodes()
	for _, line := range restore {
		m.follow(0, part, line)
	}
	m.follow(0, part, "deepcrawl migrate")
	m.check(part)
	m.startNodes()
	before := m.fetched()
	await(m.t, "the run to go on", func() bool { return m.fetched() > before })
}

// id is the number of the run that was added: cluster check has used some.
func (m *manual) id(said string) string {
	m.t.Helper()
	f := regexp.MustCompile(`^run (\d+) queued`).FindStringSubmatch(said)
	if f == nil {
		m.t.Fatalf("got %q", said)
	}
	return f[1]
}

// fetched is how many pages of all runs are fetched.
func (m *manual) fetched() int {
	m.t.Helper()
	total := 0
	for _, f := range regexp.MustCompile(`"fetched": (\d+)`).FindAllStringSubmatch(m.shell(0, "deepcrawl run list --json"), -1) {
		n, _ := strconv.Atoi(f[1])
		total += n
	}
	return total
}

// unit has systemd check the unit of the document, and starts its command.
func (m *manual) unit() {
	m.t.Helper()
	const part = "systemd instead of cron"
	at := slices.Index(m.parts[part], "[Unit]")
	if at < 0 {
		m.t.Fatal("docs/operations.md has no unit")
	}
	binary := filepath.Join(strings.TrimPrefix(strings.Split(m.env[0], ":")[0], "PATH="), "deepcrawl")
	var lines []string
	for _, line := range m.parts[part][at:] {
		if strings.HasPrefix(line, "[") || strings.Contains(line, "=") || line == "" {
			lines = append(lines, strings.ReplaceAll(line, "/usr/local/bin/deepcrawl", binary))
		}
	}
	file := filepath.Join(m.t.TempDir(), "deepcrawl.service")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		m.t.Fatal(err)
	}
	m.t.Run("systemd understands the unit", func(t *testing.T) {
		if _, err := exec.LookPath("systemd-analyze"); err != nil {
			testenv.Missing(t, "systemd", err)
		}
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("deepcrawl.service")) {
			t.Errorf("systemd-analyze: %v: %s", err, out)
		}
	})
}

func TestOperationsOnMariaDB(t *testing.T) {
	t.Parallel()
	site, urls, _ := webSite(t, web.Config{Seed: 72, Pages: 400, PageBytes: 1000, Latency: 10 * time.Millisecond})
	server := testenv.PrivateMariaDB(t)
	m := newManual(t, "db.example.com:3306", fmt.Sprintf("127.0.0.1:%d", server.Port()), "https://example.com/bot", "https://example.com/bot", "https://example.com", urls[0])
	writeFile(t, filepath.Join(m.home, ".my.cnf"), "[client]", "host=127.0.0.1", fmt.Sprintf("port=%d", server.Port()))
	const first, notes = "Three nodes from nothing", "Notes on databases"
	for _, line := range []string{
		`mariadb -u root -e "CREATE DATABASE deepcrawl CHARACTER SET utf8mb4"`,
		`mariadb -u root -e "CREATE USER deepcrawl@'%' IDENTIFIED BY 'change-me'"`, `mariadb -u root -e "GRANT ALL ON deepcrawl.* TO deepcrawl@'%'"`,
	} {
		m.follow(0, notes, line)
	}
	setting := m.has(notes, "DEEPCRAWL_DB=mysql://deepcrawl:change-me@db.example.com:3306/deepcrawl")
	for i, line := range m.parts[first] {
		if strings.HasPrefix(line, "DEEPCRAWL_DB=") {
			m.parts[first][i] = setting
		}
	}
	m.settings(first)
	m.follow(2, first, "deepcrawl migrate")
	m.check(first)
	m.startNodes()
	m.done(m.id(m.follow(0, first, "deepcrawl run add https://example.com")))
	if n := site.Requests(); n < 400 {
		t.Errorf("%d requests", n)
	}
	m.backUp("mariadb-dump -u root --single-transaction --databases deepcrawl -r deepcrawl.sql",
		`mariadb -u root -e "DROP DATABASE deepcrawl"`, `mariadb -u root -e "SOURCE deepcrawl.sql"`)
	m.stopNodes()
	for line := range m.all {
		if strings.HasPrefix(line, "mariadb") {
			t.Errorf("docs/operations.md: nothing follows %q", line)
		}
	}
}

func siteHost(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}
