package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTheAuditSeesTrouble shows pages with one defect each, which the audit must find: else it would find nothing elsewhere either.
func TestTheAuditSeesTrouble(t *testing.T) {
	t.Parallel()
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"
	defects := map[string]struct{ body, want string }{
		"nothing":             {``, ""},
		"an inline script":    {`<script>window.ran = 1</script>`, "security: "},
		"an inline handler":   {`<img src="/static/none.svg" alt="x" onload="window.ran = 1">`, "handler onload"},
		"a script that fails": {`<script src="/static/throws.js"></script>`, "exception: "},
		"a console error":     {`<script src="/static/complains.js"></script>`, "console.error: "},
		"a dialog":            {`<script src="/static/asks.js"></script>`, "a dialog that nobody asked for"},
		"a flag of a page":    {`<script src="/static/flags.js"></script>`, "something of another's has run"},
		"a script that is":    {`<a href="javascript:window.ran=1">link</a>`, "href leads away"},
		"another site":        {`<img alt="x" src="http://127.0.0.1:1/x.png">`, "src leads away"},
		"a missing file":      {`<script src="/static/nosuch.js"></script>`, "status of 404"},
		"too wide":            {`<pre>` + strings.Repeat("wide", 60) + `</pre>`, "at 375 px it is too wide"},
		"a hidden character":  {"<p>\u202egnp.exe</p>", "control character U+202e"},
		"a nameless picture":  {`<img src="/static/none.svg">`, "image-alt (critical)"},
		"a nameless field":    {`<input>`, "label (critical)"},
		"faint text by night": {`<p class="faint">Hardly to be read</p>`, "dark: color-contrast (serious)"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		file := map[string]string{
			"/static/throws.js": "nosuch.thing", "/static/complains.js": "console.error('no', 1)", "/static/asks.js": "alert('hello')",
			"/static/flags.js": "window.ran = 'here'", "/static/none.svg": `<svg xmlns="http://www.w3.org/2000/svg"/>`,
			"/static/style.css": "@media (prefers-color-scheme: dark) { body { background: #222; color: #ddd } .faint { color: #444 } }",
		}[r.URL.Path]
		switch {
		case file != "":
			w.Header().Set("Content-Type", map[string]string{"js": "text/javascript", "svg": "image/svg+xml", "css": "text/css"}[r.URL.Path[strings.LastIndex(r.URL.Path, ".")+1:]])
			_, _ = fmt.Fprint(w, file)
		case r.URL.Path == "/page":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = fmt.Fprintf(w, `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
				<title>Page</title><link rel="icon" href="/static/none.svg"><link rel="stylesheet" href="/static/style.css"><main><h1>Page</h1>%s</main>`, defects[r.URL.Query().Get("of")].body)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	p := newTab(t, server.URL)
	for name, d := range defects {
		p.visit("/page?of=" + strings.ReplaceAll(name, " ", "+"))
		found := append(p.inspect(look{1280, "light", allRules}, look{375, "dark", contrast}), p.taken()...)
		all := strings.Join(found, "\n")
		if d.want == "" && len(found) > 0 || !strings.Contains(all, d.want) {
			t.Errorf("%s: want %q, found %q", name, d.want, found)
		}
	}
}
