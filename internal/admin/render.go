package admin

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"deepcrawl/crawl"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

//go:embed template static
var files embed.FS

// titled is the typed struct of a page.
type titled interface{ title() string }

// layout is what every page stands in.
type layout struct {
	Title   string
	Section string // first part of the path: which link of the menu is the present one
	User    storage.User
	Version string
	Page    titled
}

// SignedIn says that there is a menu to show.
func (l layout) SignedIn() bool { return l.User.Name != "" }

// Operator says that the cluster and the users are shown.
func (l layout) Operator() bool { return operator.may(l.User) }

// pages are the parsed templates, one set a page, and the parts that are also sent live.
type pages struct {
	by    map[string]*template.Template
	parts *template.Template
}

func itoa(n int) string { return strconv.Itoa(n) }

func escape(s string) string { return url.QueryEscape(s) }

// functions are what templates can do beside showing fields.
func functions() template.FuncMap {
	return template.FuncMap{
		"t":      say,
		"query":  func(encoded string) template.URL { return template.URL(encoded) }, // url.Values wrote it: its = and & stay
		"count":  countAny,
		"plural": func(n int, one string) string { return show.Plural(int64(n), one) },
		"size":   show.Size,
		"local":  show.Local,
		"until":  until,
		"reason": func(r storage.Reason) string { return crawl.ReasonWords(r) },
		"clean":  show.Clean,
		"clip":   func(n int, s string) string { return show.Clip(show.Clean(s), n) },
		"age":    func(seconds float64) string { return fmt.Sprintf("%.1f s", seconds) },
		"fixed":  func(f float64) string { return fmt.Sprintf("%.3f", f) },
		"tone":   tone,
		"cooled": cooled,
		"before": func(s, sep string) string { part, _, _ := strings.Cut(s, sep); return part },
		"after":  func(s, sep string) string { _, part, _ := strings.Cut(s, sep); return part },
		"less":   func(a, b int) int { return a - b },
		"part":   func(of, n int64) string { return percent(n, of) },
		"list":   func(words ...string) []string { return words },
		"in": func(s string, list []string) bool {
			return strings.Contains("\x00"+strings.Join(list, "\x00")+"\x00", "\x00"+s+"\x00")
		},
	}
}

func percent(n, of int64) string {
	if of == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", float64(n)*100/float64(of))
}

func countAny(n any) (string, error) {
	switch v := n.(type) {
	case int:
		return show.Count(int64(v)), nil
	case int64:
		return show.Count(v), nil
	}
	return "", fmt.Errorf("count: %T is no number", n)
}

// until writes when a wait ends: the time alone while it is near.
func until(iso *string) string {
	if iso == nil {
		return ""
	}
	t, err := time.Parse(time.RFC3339, *iso)
	if err != nil {
		return *iso
	}
	if d := time.Until(t); d < 20*time.Hour && d > -20*time.Hour {
		return t.Local().Format("15:04:05 MST")
	}
	return show.Stamp(t)
}

// tone is how a state is coloured: only what failed has the colour of errors. Waiting and pausing are neutral.
func tone(state any) string {
	switch fmt.Sprint(state) {
	case "preparing", "crawling", "finishing", "claimed":
		return "active"
	case "done", "fetched", "ok", "live":
		return "good"
	case "failed":
		return "bad"
	}
	return "neutral"
}

func parsePages() (*pages, error) {
	p := &pages{by: map[string]*template.Template{}}
	base, err := template.New("base").Funcs(functions()).Option("missingkey=error").ParseFS(files, "template/base.html", "template/part-*.html")
	if err != nil {
		return nil, err
	}
	p.parts = base
	all, err := fs.Glob(files, "template/page-*.html")
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		set, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if set, err = set.ParseFS(files, f); err != nil {
			return nil, err
		}
		p.by[strings.TrimSuffix(strings.TrimPrefix(path.Base(f), "page-"), ".html")] = set
	}
	// A template that has been executed cannot be cloned, so the parts get a copy of their own.
	p.parts, err = base.Clone()
	return p, err
}

// part renders a part of a page that is sent live.
func (p *pages) part(name string, page any) ([]byte, error) {
	var b bytes.Buffer
	err := p.parts.ExecuteTemplate(&b, name, page)
	return b.Bytes(), err
}

// render answers with a page. It is made whole before the first byte is sent.
func (q *request) render(status int, name string, page titled) {
	set := q.s.pages.by[name]
	var b bytes.Buffer
	section, _, _ := strings.Cut(strings.TrimPrefix(q.r.URL.Path, "/"), "/")
	err := fmt.Errorf("no page is named %q", name)
	if set != nil {
		err = set.ExecuteTemplate(&b, "base", layout{Title: page.title(), Section: section, User: q.user, Version: q.s.Version, Page: page})
	}
	if err != nil {
		q.s.Log.Error("render", "page", name, "err", err)
		status = http.StatusInternalServerError
		b.Reset()
		b.WriteString(say("error.internal"))
		q.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	} else {
		q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	}
	q.w.WriteHeader(status)
	q.sent = true
	_, _ = q.w.Write(b.Bytes()) // who has gone needs no answer
}

// static serves style, scripts and what is vendored; browsers ask whether what they have is still the same.
func (s *Server) static() http.Handler {
	tags := map[string]string{}
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(name)
		tags["/"+name] = fmt.Sprintf("\"%x\"", sha256.Sum256(b))[:18] + "\""
		return err
	})
	if err != nil {
		panic(err) // the files are embedded
	}
	from := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tag, ok := tags[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		from.ServeHTTP(w, r)
	})
}
