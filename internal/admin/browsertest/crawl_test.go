package browsertest

import (
	"encoding/csv"
	"fmt"
	"os"
	"testing"
)

func TestSetUpAndSignIn(t *testing.T) {
	t.Parallel()
	chromium(t)
	place := newPlace(t)
	base, setUp := place.serve()
	p := newTab(t, base)
	p.refusing("404", func() {
		p.visit("/set-up?secret=wrong")
		p.says("used up or too old")
		p.audit("a wrong set-up link")
	})
	p.visit(setUp)
	p.audit("set-up")
	p.fill("Name", "Boss")
	p.fill("Password", password)
	p.click("button", "Make the operator")
	p.at("/cluster")
	p.has("heading", "Cluster")
	p.audit("cluster without a node")
	p.refusing("404", func() {
		p.visit(setUp)
		p.says("used up or too old")
		p.visit("/no-such-page")
		p.audit("not found")
	})
	p.visit("/")
	p.at("/cluster")

	p.click("button", "Sign out")
	p.at("/sign-in")
	p.visit("/runs?state=done")
	p.at("/sign-in?next=")
	p.audit("sign-in")
	p.refusing("401", func() {
		p.fill("Name", "boss")
		p.fill("Password", "not the password")
		p.click("button", "Sign in")
		p.says("Name or password is wrong")
		p.audit("sign-in, refused")
	})
	p.fill("Password", password)
	p.click("button", "Sign in")
	p.at("/runs?state=done")
	p.says("No crawl here yet")
	p.audit("no crawls")

	p.step("the keyboard reaches the content first", func() {
		p.visit("/account")
		p.press("Tab")
		p.wait("the skip link to be seen", `document.activeElement.matches(".skip") && document.activeElement.getBoundingClientRect().left >= 0`)
		p.press("Enter")
		p.wait("the focus to be at the content", `document.activeElement.id === "main"`)
	})
}

func TestACrawlIsWatchedAndSteered(t *testing.T) {
	t.Parallel()
	chromium(t)
	const pages = 130
	site, place := newGatedSite(t, pages), newPlace(t)
	p := place.operator()
	place.node("a", "--workers", "2")

	p.click("link", "Crawls")
	p.at("/runs")
	p.click("link", "New crawl")
	p.at("/runs/new")
	p.audit("new crawl")
	p.refusing("400", func() {
		p.fill("Start URLs", "ftp://files.example/")
		p.fill("Most pages", "500")
		p.click("button", "Start")
		p.wait("one mistake, told once", `document.querySelectorAll("[role=alert]").length === 1`)
		p.wait("what was typed", `document.querySelector("[name=url]").value === "ftp://files.example/" && document.querySelector("[name=max_pages]").value === "500"`)
		p.audit("new crawl, mistaken")
	})
	p.fill("Start URLs", site.URL)
	p.choose("Profile", "fast: up to the host's cap")
	p.click("button", "Start")
	p.at("/runs/1")

	p.step("the figures move by themselves", func() {
		get[bool](p, "window.unchanged = true")
		site.let(5)
		p.wait("five pages", p.number("Fetched")+" >= 4")
		p.wait("crawling", `document.querySelector(".state .badge").textContent === "crawling"`)
		before := get[int](p, p.number("Fetched"))
		site.let(10)
		p.wait("more pages", fmt.Sprintf("%s > %d", p.number("Fetched"), before))
		p.wait("the page not to be loaded anew", "window.unchanged")
		p.audit("a run under way")
	})
	p.step("it is paused and resumed", func() {
		p.click("button", "Pause")
		p.wait("paused", `document.querySelector(".state .badge").textContent === "paused"`)
		p.has("button", "Resume")
		p.wait("no colour of an error", `!document.querySelector(".badge.bad, .mistake")`)
		p.audit("a paused run")
		site.let(1 << 20)
		p.click("button", "Resume")
		p.wait("done", `document.querySelector(".state .badge").textContent === "done"`)
		p.wait("all pages", fmt.Sprintf("%s === %d", p.number("Fetched"), pages))
		p.audit("a run that is done")
	})
	p.step("pages are searched, paged and opened", func() {
		p.fillRole("searchbox", "Part of URL or title", "item-12")
		p.click("button", "Find")
		p.at("/runs/1/pages?q=item-12")
		p.wait("eleven pages", `document.querySelectorAll("tbody tr").length === 11`)
		p.audit("pages searched")
		p.click("link", site.URL+"/item-12")
		p.at("/runs/1/pages/")
		p.has("heading", "Item 12 of the shop")
		p.audit("a page's record")

		p.visit("/runs/1/pages")
		seen := get[[]string](p, rowsScript)
		for get[bool](p, `!!document.querySelector("a[rel=next]")`) {
			here := get[string](p, "location.search")
			p.click("link", "Next page")
			p.wait("the next page", fmt.Sprintf(`location.search !== %q && document.readyState === "complete"`, here))
			seen = append(seen, get[[]string](p, rowsScript)...)
		}
		once := map[string]bool{}
		for _, s := range seen {
			once[s] = true
		}
		if len(seen) != pages || len(once) != pages {
			p.t.Errorf("paging shows %d pages, %d different ones, want %d", len(seen), len(once), pages)
		}
		p.choose("State", "fetched")
		p.fill("Status", "404")
		p.click("button", "Find")
		p.wait("the missing ones", fmt.Sprintf(`location.search.includes("404") && document.querySelectorAll("tbody tr").length === %d`, pages/10))
		p.fillRole("searchbox", "Part of URL or title", "no such thing")
		p.click("button", "Find")
		p.says("No such page.")
		p.audit("no pages")
	})
	p.step("the pages are exported", func() {
		p.visit("/runs/1")
		file, name := p.download("Pages CSV")
		f, err := os.Open(file)
		if err != nil {
			p.t.Fatal(err)
		}
		defer f.Close()
		rows, err := csv.NewReader(f).ReadAll()
		if err != nil || len(rows) != pages+1 || rows[0][0] != "url" || name != "run-1-pages.csv" {
			p.t.Errorf("got %d rows in %s, %v", len(rows), name, err)
		}
	})
	p.step("what cannot be taken back is asked about", func() {
		p.visit("/runs")
		p.audit("crawls")
		p.visit("/runs/1")
		if q := p.answer(false, func() { p.click("button", "Delete") }); q != "Delete this run and all that was stored of it?" {
			p.t.Errorf("asked %q", q)
		}
		p.visit("/runs/1")
		p.answer(true, func() { p.click("button", "Delete") })
		p.wait("the list", `location.pathname === "/runs"`)
		p.says("No crawl here yet")
	})
}

const rowsScript = `[...document.querySelectorAll("tbody td.url")].map((e) => e.textContent)`

// TestLookedAtURLsLeaveFirst opens the record of a URL at the end of a queue, which is fetched long before its turn then.
func TestLookedAtURLsLeaveFirst(t *testing.T) {
	t.Parallel()
	chromium(t)
	const pages, turn, last = 300, 100, "/item-298"
	site, place := newGatedSite(t, pages), newPlace(t)
	site.flat = true
	p := place.operator()
	place.node("a")
	p.visit("/runs/new")
	p.fill("Start URLs", site.URL)
	p.click("button", "Start")
	p.at("/runs/1")
	site.let(1)
	p.wait("the queue", p.number("Queued")+" > 200")
	p.visit("/runs/1/pages?q=" + last)
	p.click("link", site.URL+last)
	p.at("/runs/1/pages/")
	p.says("claimed before others while this is open")
	p.audit("a record that waits")
	site.let(turn)
	await(t, "the pages", func() bool { _, n := site.hit(last); return n == 1+turn })
	if n, _ := site.hit(last); n != 1 {
		t.Errorf("of %d pages the one that is looked at was asked for %d times among the first %d", pages, n, turn)
	}
	p.wait("the record to be shown", `document.querySelector("h1").textContent === "Item 298 of the shop" && document.querySelector(".state .badge").textContent === "fetched"`)
	site.let(pages) // else the node's end would wait for what is held
}

func TestUsersAndTokens(t *testing.T) {
	t.Parallel()
	chromium(t)
	site, place := newGatedSite(t, 5), newPlace(t)
	p := place.operator()
	p.click("link", "Users")
	p.at("/users")
	p.fill("Name", "Ann")
	p.fill("Password", password)
	p.choose("Role", "member: starts and steers the tenant's crawls")
	p.click("button", "Add a user")
	p.wait("two users", `document.querySelectorAll("tbody tr").length === 2`)
	p.fill("Name", "vic")
	p.fill("Password", password)
	p.choose("Role", "viewer: sees the tenant's crawls")
	p.click("button", "Add a user")
	p.wait("three users", `document.querySelectorAll("tbody tr").length === 3`)
	p.audit("users")

	signIn := func(name string) {
		p.t.Helper()
		p.click("button", "Sign out")
		p.at("/sign-in")
		p.fill("Name", name)
		p.fill("Password", password)
		p.click("button", "Sign in")
	}
	p.step("a member works on what is the tenant's", func() {
		signIn("ann")
		p.at("/runs")
		if nav := get[[]string](p, `[...document.querySelectorAll("nav a")].slice(0, 4).map((a) => a.textContent)`); len(nav) != 2 {
			p.t.Errorf("a member is offered %q", nav)
		}
		p.refusing("403", func() {
			p.visit("/cluster")
			p.says("Your role does not allow this.")
			p.auditIn("forbidden", layout)
		})
		p.visit("/runs/new")
		p.fill("Start URLs", site.URL)
		p.click("button", "Start")
		p.at("/runs/1")
		p.says("no node is running")
		p.wait("waiting not to look like a failure", `!document.querySelector(".badge.bad, .why.bad, .mistake")`)
		p.audit("a run that waits")
	})
	p.step("a token is shown once and revoked", func() {
		p.click("link", "Account")
		p.at("/account")
		p.fill("What for", "nightly")
		p.click("button", "Make a token")
		p.wait("the token", `document.querySelector("code.secret")?.textContent.length > 20`)
		p.audit("account with a token")
		p.visit("/account")
		p.wait("it not to be shown again", `!document.querySelector("code.secret") && document.querySelectorAll("tbody tr").length === 1`)
		p.click("button", "Revoke")
		p.says("No token.")
	})
	p.step("a viewer only looks", func() {
		signIn("vic")
		p.at("/runs")
		p.wait("the run", `document.querySelectorAll("tbody tr").length === 1 && !document.body.innerText.includes("New crawl")`)
		p.visit("/runs/1")
		p.wait("no way to steer", `!document.querySelector("main form[method=post]")`)
	})
	p.step("who is removed is out at once", func() {
		other := newTab(p.t, p.base)
		other.look(looks[0])
		other.visit("/sign-in")
		other.fill("Name", "boss")
		other.fill("Password", password)
		other.click("button", "Sign in")
		other.at("/cluster")
		other.visit("/users")
		other.wait("a way to remove", `[...document.querySelectorAll("tr")].find((r) => r.textContent.includes("vic"))?.querySelector("button")`)
		other.answer(true, func() {
			get[bool](other, `[...document.querySelectorAll("tr")].find((r) => r.textContent.includes("vic")).querySelector("button").click(), true`)
		})
		other.wait("two users", `document.querySelectorAll("tbody tr").length === 2`)
		p.says("You are not signed in any more.")
		p.click("link", "Sign in")
		p.at("/sign-in")
		p.visit("/runs/1")
		p.at("/sign-in?next=")
	})
}
