package browsertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a person at a browser. Its methods fail the test.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string // of the server

	mu      sync.Mutex
	faults  []string // what the page should not have done
	refused string   // a status that the test brings about
	answers []bool   // to the next questions
	asked   []string // questions so far
}

// newTab opens a tab with cookies of its own. At the end of the test it must have heard of nothing wrong.
func newTab(t *testing.T, base string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(chromium(t), chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	p := &tab{t: t, ctx: ctx, base: base}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.well)
	return p
}

// step is a part of a test that the rest builds on.
func (p *tab) step(name string, do func()) {
	p.t.Helper()
	whole := p.t
	defer func() { p.t = whole }()
	if !whole.Run(name, func(t *testing.T) { p.t = t; do() }) {
		whole.FailNow()
	}
}

func (p *tab) fault(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, fmt.Sprintf(format, args...))
}

// hear is called for each event of the tab and must not ask the browser anything.
func (p *tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		p.fault("exception: %s", text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			p.fault("console.%s: %s", e.Type, strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError && e.Entry.Level != log.EntryLevelWarning {
			return
		}
		p.mu.Lock()
		expected := p.refused != "" && e.Entry.Source == log.EntrySourceNetwork && strings.Contains(e.Entry.Text, "status of "+p.refused)
		p.mu.Unlock()
		if !expected {
			p.fault("console: %s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; p.base != "" && !strings.HasPrefix(u, p.base+"/") {
			p.fault("the page asks for %s", u)
		}
	case *page.EventJavascriptDialogOpening:
		p.mu.Lock()
		p.asked = append(p.asked, e.Message)
		yes := false
		if known := len(p.answers) > 0 && e.Type == page.DialogTypeConfirm; known {
			yes, p.answers = p.answers[0], p.answers[1:]
		} else {
			p.faults = append(p.faults, fmt.Sprintf("a dialog that nobody asked for: %s %q", e.Type, e.Message))
		}
		p.mu.Unlock()
		go func() {
			_, _ = chromedp.Call(p.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: yes}) // the tab may be gone
		}()
	}
}

// well reports what was heard so far.
func (p *tab) well() {
	p.t.Helper()
	for _, f := range p.taken() {
		p.t.Error(f)
	}
}

// taken returns what was heard so far and forgets it.
func (p *tab) taken() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.faults
	p.faults = nil
	return f
}

// refusing lets the server answer with a status that is an error, once brought about by the test on purpose.
func (p *tab) refusing(status string, do func()) {
	p.t.Helper()
	p.mu.Lock()
	p.refused = status
	p.mu.Unlock()
	do()
	p.mu.Lock()
	p.refused = ""
	p.mu.Unlock()
}

// evaluate runs an expression in the page; a promise is waited for.
func evaluate[T any](p *tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

func get[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := evaluate[T](p, expression)
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait polls an expression until it is true, over navigations too.
func (p *tab) wait(what, expression string) {
	p.t.Helper()
	p.until(what, func() (bool, error) { return evaluate[bool](p, "!!("+expression+")") })
}

func (p *tab) until(what string, done func() (bool, error)) {
	p.t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		ok, err := done()
		if ok && err == nil {
			return
		}
		last = err
		select {
		case <-deadline:
			where, _ := evaluate[string](p, "location.href + '\\n' + document.body.innerText")
			p.t.Fatalf("waited %v for %s (last error: %v; heard: %q); at %s", within, what, last, p.taken(), where)
		case <-p.ctx.Done():
			p.t.Fatalf("waiting for %s: %v", what, p.ctx.Err())
		case <-tick.C:
		}
	}
}

// visit goes to a path of the server.
func (p *tab) visit(path string) {
	p.t.Helper()

	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(p.base+path)); err != nil {
		p.t.Fatalf("visit %s: %v", path, err)
	}
}

// at waits until the tab shows a path (a prefix of what stands after the host), loaded.
func (p *tab) at(path string) {
	p.t.Helper()

	p.wait("the page "+path, fmt.Sprintf("document.readyState === 'complete' && (location.pathname + location.search).startsWith(%q)", path))
}

// says waits until the page shows a text.
func (p *tab) says(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("the text %q", text), fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// says waits until the page does not show a text any more.
func (p *tab) saysNot(text string) {
	p.t.Helper()
	p.wait(fmt.Sprintf("the text %q to go", text), fmt.Sprintf("!document.body.innerText.includes(%q)", text))
}

// errAway says that an element went while it was used; it is looked for again.
var errAway = errors.New("the element has gone")

// on calls a function on the element of a role and an accessible name, as soon as there is exactly one.
func (p *tab) on(role, name, function string) {
	p.t.Helper()
	p.until(fmt.Sprintf("one %s %q", role, name), func() (bool, error) {
		ctx, cancel := context.WithTimeout(p.ctx, within)
		defer cancel()
		_, err := chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
			return chromedp.Void{}, onElement(ctx, t, role, name, function)
		})
		return err == nil, err
	})
}

func onElement(ctx context.Context, t *chromedp.Target, role, name, function string) error {
	root, err := cdp.Call(ctx, t, runtime.Evaluate, runtime.EvaluateParams{Expression: "document"})
	if err != nil {
		return err
	}
	found, err := cdp.Call(ctx, t, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: root.Result.ObjectID, Role: role, AccessibleName: name})
	if err != nil {
		return err
	}
	var ids []cdp.BackendNodeID
	for _, n := range found.Nodes {
		if !n.Ignored && n.BackendDOMNodeID != 0 {
			ids = append(ids, n.BackendDOMNodeID)
		}
	}
	if len(ids) != 1 {
		return fmt.Errorf("there are %d", len(ids))
	}
	node, err := cdp.Call(ctx, t, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: ids[0]})
	if err != nil {
		return errors.Join(errAway, err)
	}
	res, err := cdp.Call(ctx, t, runtime.CallFunctionOn, runtime.CallFunctionOnParams{
		ObjectID: node.Object.ObjectID, FunctionDeclaration: function, UserGesture: new(true), ReturnByValue: new(true),
	})
	if err != nil {
		return errors.Join(errAway, err)
	}
	if x := res.ExceptionDetails; x != nil {
		if x.Exception != nil {
			return errors.New(x.Exception.Description)
		}
		return errors.New(x.Text)
	}
	return nil
}

// click presses an element that a pointer would reach.
func (p *tab) click(role, name string) {
	p.t.Helper()
	p.on(role, name, `function () {
		this.scrollIntoView({block: "center", behavior: "instant"});
		const r = this.getClientRects()[0];
		if (!r) throw new Error("not visible");
		const top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
		if (!top || top !== this && !this.contains(top)) throw new Error("covered by " + (top ? top.outerHTML.slice(0, 80) : "nothing"));
		if (this.disabled) throw new Error("disabled");
		this.click();
	}`)
}

// fill replaces what stands in a field.
func (p *tab) fill(name, value string) { p.t.Helper(); p.fillRole("textbox", name, value) }

func (p *tab) fillRole(role, name, value string) {
	p.t.Helper()
	p.on(role, name, `function () { this.focus(); this.select(); }`)
	if _, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: value}); err != nil {
		p.t.Fatal(err)
	}
	p.on(role, name, fmt.Sprintf(`function () { if (this.value !== %q) throw new Error("holds " + this.value); }`, value))
}

// choose takes an option of a list by its text.
func (p *tab) choose(name, option string) {
	p.t.Helper()
	p.on("combobox", name, fmt.Sprintf(`function () {
		const o = [...this.options].find((o) => o.text === %q);
		if (!o) throw new Error("no such option");
		this.value = o.value;
		this.dispatchEvent(new Event("input", {bubbles: true}));
		this.dispatchEvent(new Event("change", {bubbles: true}));
	}`, option))
}

// has waits until the page has one element of a role and a name.
func (p *tab) has(role, name string) { p.t.Helper(); p.on(role, name, `function () {}`) }

// answer says yes or no to the next question the page asks, and returns after what was done has asked it.
func (p *tab) answer(yes bool, do func()) (question string) {
	p.t.Helper()
	p.mu.Lock()
	p.answers = append(p.answers, yes)
	before := len(p.asked)
	p.mu.Unlock()
	do()
	p.until("a question", func() (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.asked) > before {
			question = p.asked[before]
		}
		return question != "", nil
	})
	return question
}

// download returns the path of the file that clicking a link brings.
func (p *tab) download(link string) (file, name string) {
	p.t.Helper()
	dir := p.t.TempDir()
	id := chromedp.FromContext(p.ctx).BrowserContextID
	if _, err := chromedp.CallBrowser(p.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, BrowserContextID: id, DownloadPath: dir, EventsEnabled: new(true),
	}); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	began := chromedp.BrowserEvents(ctx, browser.DownloadWillBegin)
	progress := chromedp.BrowserEvents(ctx, browser.DownloadProgress)
	p.click("link", link)
	var guid string
	for e, err := range began {
		if err != nil {
			p.t.Fatalf("download %s: %v", link, err)
		}
		guid, name = e.GUID, e.SuggestedFilename
		break
	}
	for e, err := range progress {
		if err != nil {
			p.t.Fatalf("download %s: %v", link, err)
		}
		if e.GUID != guid || e.State == browser.DownloadProgressStateInProgress {
			continue
		}
		if e.State != browser.DownloadProgressStateCompleted {
			p.t.Fatalf("download %s: %s", link, e.State)
		}
		return dir + "/" + guid, name
	}
	p.t.Fatalf("download %s: no end", link)
	return "", ""
}

// press presses and releases a key.
func (p *tab) press(name string) {
	p.t.Helper()
	key := map[string]input.DispatchKeyEventParams{
		"Tab":   {Key: "Tab", Code: "Tab", WindowsVirtualKeyCode: 9},
		"Enter": {Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, Text: "\r"},
	}[name]
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
		if key.Type = kind; kind == input.DispatchKeyEventTypeKeyUp {
			key.Text = ""
		}
		if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, key); err != nil {
			p.t.Fatal(err)
		}
	}
}
