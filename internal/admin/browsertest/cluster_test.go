package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deepcrawl/internal/testenv"
)

// endless is a site that is never crawled to its end: page N links to four others, and each takes a while.
func endless(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if r.URL.Path != "/" && err != nil {
			http.NotFound(w, r)
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(200 * time.Millisecond): // the site is slow; nothing waits for it
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = fmt.Fprintf(w, "<!doctype html><title>Page %d</title>", n)
		for i := range 4 {
			_, _ = fmt.Fprintf(w, `<a href="/%d">on</a>`, 4*n+i+1)
		}
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// row is an expression for the row of a node in the table of nodes.
func row(node string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("tr")].find((r) => r.querySelector("td strong")?.textContent === %q)`, node)
}

// age is an expression for the seconds since the node's last beat; NaN where it is longer than a minute.
func age(node string) string {
	return fmt.Sprintf(`parseFloat(%s?.cells[1].textContent)`, row(node))
}

// mode is an expression for who coordinates.
const mode = `[...document.querySelectorAll("h2")].find((h) => h.textContent === "Coordination")?.nextElementSibling.textContent.trim()`

// TestCluster watches three real nodes over an outage of one of them and of Redis.
func TestCluster(t *testing.T) {
	t.Parallel()
	chromium(t)
	redis := testenv.PrivateRedis(t)
	place := newPlace(t, "--coord", "redis", "--redis-url", redis.DSN())
	site := endless(t)
	p := place.operator()
	const short = "--soak=short-times" // deaths within seconds
	place.node("n1", "--workers", "2", "--run-workers", "6", short)
	place.node("n2", "--workers", "2", "--run-workers", "6", short)
	third := place.node("n3", "--workers", "2", "--run-workers", "6", short)

	// fetched reads the run's figure through the pages, without leaving the one that is shown.
	fetched := func() int {
		t.Helper()
		return get[int](p, `fetch("/api/v1/runs/1").then((r) => r.json()).then((r) => r.fetched)`)
	}
	goesOn := func(while string) {
		t.Helper()
		before := fetched()
		p.until("the crawl to go on "+while, func() (bool, error) { return fetched() > before, nil })
	}

	p.step("three nodes are seen at work", func() {
		p.visit("/runs/new")
		p.fill("Start URLs", site.URL)
		p.click("button", "Start")
		p.at("/runs/1")
		p.click("link", "Cluster")
		p.at("/cluster")
		get[bool](p, "window.unchanged = true")
		for _, n := range []string{"n1", "n2", "n3"} {
			p.wait("node "+n, fmt.Sprintf("%s < 6", age(n)))
		}
		p.wait("coordination by Redis", mode+" === 'redis'")
		p.wait("a leader", `/^n[123]$/.test([...document.querySelectorAll("h2")].find((h) => h.textContent === "Leader").nextElementSibling.textContent)`)
		p.wait("the run under way", `[...document.querySelectorAll("a")].some((a) => a.textContent === "run 1")`)
		p.wait("slots of the site", `document.querySelector("meter")?.value > 0`)
		p.wait("no warning", `!document.querySelector(".note, .mistake")`)
		p.audit("cluster at work")
	})

	p.step("a host is banned and the ban lifted", func() {
		p.fill("Host", "https://WWW.Example.org/x")
		p.fill("Why", "asked by <b>mail</b>")
		p.click("button", "Ban a host")
		p.at("/cluster?said=")
		p.says("asked by <b>mail</b>")
		p.wait("the host", `document.querySelector("#hosts").textContent.includes("example.org")`)
		p.audit("cluster with a ban")
		p.click("button", "Unban")
		p.wait("the host to go", `!document.querySelector("#hosts").textContent.includes("example.org")`)
		p.refusing("400", func() {
			p.fill("Host", "not a host")
			p.click("button", "Ban a host")
			p.wait("the mistake", `document.querySelector("[role=alert]") && document.querySelector("[name=host]").value === "not a host"`)
			p.audit("cluster with a mistake")
		})
	})

	p.step("coordination is checked, line by line", func() {
		p.visit("/cluster")
		p.click("button", "Check coordination")
		p.at("/cluster/check")
		get[bool](p, "window.unchanged = true")
		counts := map[int]bool{}
		p.until("the check to end", func() (bool, error) {
			counts[get[int](p, `document.querySelectorAll("ol.checks li:not(.running)").length`)] = true
			return evaluate[bool](p, `!!document.querySelector(".verdict, .mistake")`)
		})
		p.wait("the page not to be loaded anew", "window.unchanged")
		p.says("All went well.")
		if len(counts) < 3 {
			p.t.Errorf("the lines came %d times, not one after another", len(counts))
		}
		p.audit("check of coordination")
	})

	p.step("a node is killed", func() {
		p.visit("/cluster")
		get[bool](p, "window.unchanged = true")
		third.SignalTree(syscall.SIGKILL)
		p.wait("its last beat to be long ago", fmt.Sprintf("%s > 6", age("n3")))
		p.says("node n3/")
		p.says("has not been heard of")
		p.audit("cluster with a silent node")
		goesOn("without the node")
		p.wait("its row to go", "!"+row("n3"))
		p.wait("the others", fmt.Sprintf("%s < 6 && %s < 6", age("n1"), age("n2")))
		p.saysNot("has not been heard of")
	})

	p.step("Redis stops and starts again", func() {
		redis.Stop(testenv.Fast)
		p.says("Redis is not reached by")
		p.audit("cluster without Redis")
		p.wait("coordination by the database", mode+" === 'db'")
		goesOn("without Redis")
		redis.Start()
		p.saysNot("Redis is not reached by")
		p.wait("the nodes", fmt.Sprintf("%s < 6 && %s < 6", age("n1"), age("n2")))
		goesOn("after the outage")
		p.wait("the page not to be loaded anew", "window.unchanged")
	})

	p.step("coordination is switched by hand", func() {
		if q := p.answer(true, func() { p.click("button", "Let it go to Redis") }); !strings.Contains(q, "Move coordination?") {
			p.t.Errorf("asked %q", q)
		}
		p.wait("coordination by Redis", mode+" === 'redis'")
		goesOn("with Redis again")
		p.answer(false, func() { p.click("button", "Move to the database and keep it there") })
		p.answer(true, func() { p.click("button", "Move to the database and keep it there") })
		p.wait("coordination by the database", mode+" === 'db'")
		p.says("kept there by an operator")
		p.audit("cluster after a switch")
		goesOn("with the database")
	})

	p.step("whoever signs out sees nothing any more", func() {
		p.click("button", "Sign out")
		p.at("/sign-in")
		p.visit("/cluster")
		p.at("/sign-in?next=")
	})
}
