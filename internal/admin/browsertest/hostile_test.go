package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// What hostile pages try to get into the pages that show them: each would set window.ran, or break the markup around it.
const (
	runs      = `<script>window.ran=1</script>`
	breaksOut = `"'></td></tr></table></title></textarea><img src=x onerror="window.ran=2"><svg onload=window.ran=3>`
	scheme    = `javascript:window.ran=4`
)

// hostileTitles are titles of pages, and what must be seen of them as text.
var hostileTitles = map[string][2]string{
	"script":  {runs + " title", runs + " title"},
	"quotes":  {breaksOut, `"'></td></tr></table>`},
	"scheme":  {scheme, scheme},
	"braces":  {`{{.Secret}} ${window.ran=5} {%raw%} <%= 1 %>`, `{{.Secret}} ${window.ran=5}`},
	"events":  {"first\n\ndata: " + runs + "\n\nevent: gone\ndata: x", "first data: " + runs + " event: gone data: x"},
	"control": {"con\x01\x02\x07\x1b[31mtrol\x7f\u0085", "con"},
	"order":   {"\u202egnp.exe\u202c \u2066mirrored\u2069 \u200b\ufeffend", "gnp.exe"},
	"comment": {"<!-- <![CDATA[ --!> " + runs, "<![CDATA["},
	"long":    {strings.Repeat("W", 6000), "WWWWWWWW"},
	"marks":   {"Z" + strings.Repeat("\u0335\u0489", 400), "Z"},
}

// hostileSite has a page of each title, and URLs and headers of the same kind.
func hostileSite(t *testing.T) *httptest.Server {
	t.Helper()
	longPath := "/long/" + strings.Repeat("a-long-way/", 180)
	links := []string{
		scheme, "JaVaScRiPt:window.ran=4", " javascript:window.ran=4", "data:text/html," + runs, "vbscript:x", "//evil.example/" + breaksOut,
		"/path/<script>window.ran=6</script>", "/path/\"onmouseover=\"window.ran=7", "/path/?q=<svg onload=window.ran=8>&x='\"", "/path/\u202efdp.exe",
		"/path/%00%0d%0aSet-Cookie:x=1", longPath, "/unbroken/" + strings.Repeat("x", 1900), "/redirect", "/away", "/headers", "http://user:<b>@evil.example/",
	}
	for name := range hostileTitles {
		links = append(links, "/title/"+name)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		name, title := strings.CutPrefix(r.URL.Path, "/title/")
		switch {
		case r.URL.Path == "/robots.txt", r.URL.Path == "/sitemap.xml":
			http.NotFound(w, r)
			return
		case r.URL.Path == "/redirect":
			h["Location"] = []string{scheme}
			w.WriteHeader(http.StatusFound)
			return
		case r.URL.Path == "/away":
			h["Location"] = []string{`//evil.example/` + breaksOut}
			w.WriteHeader(http.StatusFound)
			return
		case r.URL.Path == "/headers":
			h["Content-Type"] = []string{`text/html; charset=utf-8; x="` + runs + breaksOut + `"`}
			h["X-Robots-Tag"] = []string{"noindex, " + runs}
			h["Link"] = []string{`<` + scheme + `>; rel="canonical"`, `<"><img src=x onerror=window.ran=9>>; rel="canonical"`}
		}
		shown := "Page of a hostile site"
		if title {
			shown = hostileTitles[name][0]
		}
		escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;").Replace(shown)
		attribute := strings.NewReplacer("&", "&amp;", `"`, "&quot;").Replace(breaksOut)
		_, _ = fmt.Fprintf(w, `<!doctype html><html lang="%s"><head><title>%s</title><meta name="description" content="%s"><meta name="robots" content="%s">
			<link rel="canonical" href="%s"></head><body><h1>%s</h1><h1>&lt;b&gt;bold&lt;/b&gt;</h1>`, attribute, escaped, attribute, attribute, scheme, escaped)
		if r.URL.Path == "/" {
			for _, l := range links {
				_, _ = fmt.Fprintf(w, `<a href="%s">link</a>`, strings.NewReplacer("&", "&amp;", `"`, "&quot;").Replace(l))
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAHostileSiteIsShownAsText(t *testing.T) {
	t.Parallel()
	chromium(t)
	site, place := hostileSite(t), newPlace(t)
	place.run(append([]string{"crawl", site.URL, "--quiet", "--profile", "fast"}, place.args...)...)
	p := place.operator()

	p.visit("/runs/1")
	p.audit("the run")
	p.visit("/runs/1/pages")
	p.audit("its pages")
	for name, title := range hostileTitles {
		p.wait("the title "+name, fmt.Sprintf("document.querySelector('main').innerText.includes(%q)", title[1][:min(len(title[1]), 60)]))
	}
	records := get[[]string](p, `[...document.querySelectorAll("tbody td.url a")].map((a) => a.getAttribute("href"))`)
	if want := len(hostileTitles) + 10; len(records) < want {
		t.Errorf("%d pages were stored, want at least %d", len(records), want)
	}
	titles := map[string]bool{}
	for i, at := range records {
		p.visit(at)
		titles[get[string](p, `document.querySelector("h1").innerText`)] = true
		in := layout
		if i == 0 {
			in = looks
		}
		p.auditIn(fmt.Sprintf("record %d, %s", i+1, get[string](p, `document.querySelector("p.url").innerText.slice(0, 120)`)), in)
	}
	if len(titles) < len(hostileTitles) {
		t.Errorf("the records have %d titles, want at least %d", len(titles), len(hostileTitles))
	}

	p.step("what is typed is shown as text too", func() {
		escaped := url.QueryEscape(breaksOut + runs)
		for _, path := range []string{
			"/runs/1/pages?q=" + escaped, "/runs/1/pages?reason=" + escaped, "/cluster?said=" + escaped + "%E2%80%AEx", "/runs?tenant=" + escaped,
			"/runs/new?url=" + escaped + "&tenant=" + escaped + "&include=" + escaped,
		} {
			p.visit(path)
			p.auditIn(path[:20], layout)
		}
		p.refusing("400", func() {
			p.visit("/runs?state=" + escaped)
			p.auditIn("a state that is none", layout)
			p.visit("/runs/1/pages?state=" + escaped)
			p.audit("a state of pages that is none")
		})
		p.visit("/account")
		p.fill("What for", breaksOut[:90])
		p.click("button", "Make a token")
		p.has("button", "Revoke")
		p.audit("a token")
		p.visit("/cluster")
		p.fill("Host", "evil.example")
		p.fill("Why", breaksOut+runs)
		p.click("button", "Ban a host")
		p.has("button", "Unban")
		p.audit("a ban")
	})
	p.step("a link after sign-in leads nowhere else", func() {
		p.click("button", "Sign out")
		for _, next := range []string{"//evil.example/", scheme, "https://evil.example/", "/\\evil.example"} {
			p.at("/sign-in")
			p.visit("/sign-in?next=" + url.QueryEscape(next))
			p.auditIn("sign-in for "+next, layout)
			p.fill("Name", "boss")
			p.fill("Password", password)
			p.click("button", "Sign in")
			p.at("/cluster")
			p.click("button", "Sign out")
		}
	})
}
