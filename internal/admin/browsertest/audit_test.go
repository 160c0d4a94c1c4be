package browsertest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// look is the width of a window and the colours its owner likes.
type look struct {
	width  int64
	scheme string
	rules  string // axe-core's options: which rules are looked at; empty: none
}

// Contrast is a matter of the colours, everything else of the width.
const (
	allRules = `{}`
	contrast = `{runOnly: ["color-contrast"]}`
)

// looks are those each page is seen in. The first is what a tab goes on with.
var looks = []look{{1280, "light", allRules}, {1280, "dark", contrast}, {375, "dark", allRules}, {375, "light", contrast}}

var axeSource = sync.OnceValues(func() ([]byte, error) { return os.ReadFile("testdata/axe-core/axe.min.js") })

func (p *tab) look(l look) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: l.width, Height: 800, DeviceScaleFactor: 1})
	if err == nil {
		_, err = chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// layout is for many pages of one kind, of which one was audited.
var layout = []look{{1280, "light", ""}, {375, "light", ""}}

// audit looks at the page as it is now in every width and colour.
func (p *tab) audit(name string) { p.t.Helper(); p.auditIn(name, looks) }

func (p *tab) auditIn(name string, in []look) {
	p.t.Helper()
	for _, f := range p.inspect(in...) {
		p.t.Errorf("%s: %s", name, f)
	}
	for _, f := range p.taken() {
		p.t.Errorf("%s: %s", name, f)
	}
}

// inspect returns what is wrong with the page.
func (p *tab) inspect(in ...look) (wrong []string) {
	p.t.Helper()
	note := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if n := get[int](p, "document.querySelectorAll('h1').length"); n != 1 {
		note("it has %d main headings, want 1", n)
	}
	for _, f := range get[[]string](p, foreignScript) {
		note("%s", f)
	}
	for _, l := range in {
		p.look(l)
		if out := p.tooWide(l.width); len(out) > 0 {
			note("at %d px it is too wide: %s", l.width, strings.Join(out, "; "))
		}
		if l.rules == "" {
			continue
		}
		for _, v := range p.violations(l.rules) {
			note("at %d px, %s: %s", l.width, l.scheme, v)
		}
	}
	p.look(looks[0])
	return wrong
}

// foreignScript finds what could run or load things that are not the page's own.
const foreignScript = `(() => {
	const wrong = [];
	if (window.ran !== undefined) wrong.push("something of another's has run: " + window.ran);
	for (const e of document.querySelectorAll("*")) {
		for (const a of e.attributes) {
			if (/^on/i.test(a.name)) wrong.push("handler " + a.name + " on " + e.outerHTML.slice(0, 120));
			if (["href", "src", "action", "formaction", "data", "poster", "srcset", "xlink:href"].includes(a.name)) {
				const u = new URL(a.value, location.href);
				if (u.origin !== location.origin) wrong.push(a.name + " leads away: " + a.value.slice(0, 120));
			}
		}
		if (["IFRAME", "OBJECT", "EMBED", "BASE", "FRAME"].includes(e.tagName)) wrong.push("element " + e.outerHTML.slice(0, 120));
		if (e.tagName === "SCRIPT" && (!e.getAttribute("src") || !e.getAttribute("src").startsWith("/static/"))) wrong.push("script " + e.outerHTML.slice(0, 120));
	}
	const text = document.body.textContent + document.title;
	const odd = text.match(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
	if (odd) wrong.push("control character U+" + odd[0].codePointAt(0).toString(16));
	return wrong;
})()`

// settle is how long a page may take to follow the width of its window (pictures are drawn anew).
const settle = 2 * time.Second

// tooWide says what is wider than the window, once the page has had time to follow it.
func (p *tab) tooWide(width int64) []string {
	p.t.Helper()
	for end := time.Now().Add(settle); ; {
		out := get[[]string](p, fmt.Sprintf(overflowScript, width))
		if len(out) == 0 || time.Now().After(end) {
			return out
		}
		if err := chromedp.Do(p.ctx, chromedp.Sleep(25*time.Millisecond)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// overflowScript says what is wider than the window, where the page is.
const overflowScript = `(() => {
	const width = %d, root = document.scrollingElement;
	if (innerWidth !== width) return ["the window has " + innerWidth + " px"];
	if (root.scrollWidth <= width) return [];
	const out = ["scrolls to " + root.scrollWidth];
	for (const e of document.querySelectorAll("body *")) {
		const r = e.getBoundingClientRect();
		if (r.right > width + 0.5 && out.length < 6) out.push(Math.round(r.right) + ": " + e.outerHTML.slice(0, 150));
	}
	return out;
})()`

// violations are what axe-core calls serious or critical.
func (p *tab) violations(rules string) (out []string) {
	p.t.Helper()
	source, err := axeSource()
	if err != nil {
		p.t.Fatal(err)
	}
	p.until("axe-core", func() (bool, error) { // the page may be changed under it, or be another by now
		if there, err := evaluate[bool](p, "typeof window.axe === 'object'"); err != nil || !there {
			if _, err := evaluate[bool](p, string(source)+";true"); err != nil {
				return false, err
			}
		}
		text, err := evaluate[string](p, fmt.Sprintf(axeScript, rules))
		if err != nil {
			return false, err
		}
		out = nil
		return true, json.Unmarshal([]byte(text), &out)
	})
	return out
}

// axeScript leaves out what is a matter of taste. Its own requests for style sheets are not needed.
const axeScript = `axe.run(document, {resultTypes: ["violations"], preload: false, ...%s}).then((r) => JSON.stringify(r.violations
	.filter((v) => v.impact === "serious" || v.impact === "critical")
	.map((v) => v.id + " (" + v.impact + "): " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " " + n.failureSummary.replace(/\s+/g, " ").slice(0, 300)).join(" | "))))`
