package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"deepcrawl/crawl"
	"deepcrawl/crawl/scope"
	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

// errNoAction: the path names nothing that can be done.
var errNoAction = fmt.Errorf("no such action: %w", storage.ErrNotFound)

// runsShown is how many runs a page of the list has.
const runsShown = 50

type runsPage struct {
	Runs []show.Run `json:"runs"`
	Next string     `json:"next,omitempty"` // query of the next page

	State   string   `json:"-"`
	Tenant  string   `json:"-"`
	States  []string `json:"-"`
	Tenants []string `json:"-"`
	Paged   bool     `json:"-"` // not the first page
	Start   bool     `json:"-"` // may start crawls
}

func (runsPage) title() string { return say("runs.title") }

func (s *Server) runs(q *request) error {
	ctx, v := q.r.Context(), q.r.URL.Query()
	p := runsPage{Runs: []show.Run{}, State: v.Get("state"), Start: member.may(q.user), Paged: v.Has("before")}
	f := storage.RunFilter{Tenant: q.user.Tenant, Limit: runsShown + 1}
	if q.user.Role == storage.RoleOperator {
		f.Tenant = v.Get("tenant")
		p.Tenant = f.Tenant
		var err error
		if p.Tenants, err = q.tenants(); err != nil {
			return err
		}
	}
	for _, st := range storage.RunStates() {
		p.States = append(p.States, string(st))
	}
	if p.State != "" {
		if !slices.Contains(p.States, p.State) {
			return mistakef("%s", say("error.runstate", strings.Join(p.States, ", ")))
		}
		f.States = []storage.RunState{storage.RunState(p.State)}
	}
	if before := v.Get("before"); before != "" {
		n, err := strconv.ParseInt(before, 10, 64)
		if err != nil || n < 1 {
			return mistakef("%s", say("error.before"))
		}
		f.Before = storage.RunID(n)
	}
	list, err := s.Store.ListRuns(ctx, f)
	if err != nil {
		return err
	}
	more := len(list) > runsShown
	list = list[:min(len(list), runsShown)]
	if err := s.Operations.Waits(ctx, list); err != nil {
		return err
	}
	ids := make([]storage.RunID, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	tallies, err := s.Store.Tallies(ctx, ids)
	if err != nil {
		return err
	}
	for _, r := range list {
		p.Runs = append(p.Runs, show.NewRun(r, tallies[r.ID]))
	}
	if more {
		next := url.Values{"before": {list[len(list)-1].ID.String()}}
		if p.State != "" {
			next.Set("state", p.State)
		}
		if p.Tenant != "" {
			next.Set("tenant", p.Tenant)
		}
		p.Next = next.Encode()
	}
	return q.show("runs", p)
}

// newRunPage is the form that starts a crawl, with what was entered.
type newRunPage struct {
	URL, Tenant, Scope, Profile, Include, Exclude string
	MaxPages, Depth, Time                         string
	NoSitemaps, FollowNofollow                    bool

	Tenants, Scopes, Profiles []string
	Error                     string
}

func (newRunPage) title() string { return say("new.title") }

func (q *request) newRunPage(f url.Values) (newRunPage, error) {
	p := newRunPage{
		URL: f.Get("url"), Tenant: f.Get("tenant"), Scope: f.Get("scope"), Profile: f.Get("profile"), Include: f.Get("include"), Exclude: f.Get("exclude"),
		MaxPages: f.Get("max_pages"), Depth: f.Get("max_depth"), Time: f.Get("max_time"),
		NoSitemaps: f.Get("no_sitemaps") != "", FollowNofollow: f.Get("follow_nofollow") != "",
		Scopes: []string{string(scope.ModeHost), string(scope.ModeDomain), string(scope.ModeSubdomains), string(scope.ModePrefix)},
	}
	for _, x := range crawl.Profiles() {
		p.Profiles = append(p.Profiles, x.Name)
	}
	if p.Profile == "" {
		p.Profile = crawl.DefaultProfile
	}
	var err error
	p.Tenants, err = q.tenants()
	if p.Tenant == "" && slices.Contains(p.Tenants, storage.DefaultTenant) {
		p.Tenant = storage.DefaultTenant
	}
	return p, err
}

func (s *Server) newRun(q *request) error {
	p, err := q.newRunPage(q.r.URL.Query())
	if err != nil {
		return err
	}
	return q.show("new", p)
}

// specOf reads the definition of a run; what it means is checked where runs are started.
func specOf(f url.Values) (crawl.Spec, error) {
	spec := crawl.Spec{
		Seeds: lines(f["url"]), Scope: scope.Mode(f.Get("scope")), Profile: f.Get("profile"), Include: lines(f["include"]), Exclude: lines(f["exclude"]),
		NoSitemaps: isSet(f.Get("no_sitemaps")), FollowNofollow: isSet(f.Get("follow_nofollow")),
	}
	spec.Seeds = append(spec.Seeds, lines(f["seeds"])...)
	if len(spec.Seeds) == 0 {
		return spec, mistakef("%s", say("error.nourl"))
	}
	for _, n := range []struct {
		name string
		to   *int
	}{{"max_pages", &spec.MaxPages}, {"max_depth", &spec.MaxDepth}} {
		if v := strings.TrimSpace(f.Get(n.name)); v != "" {
			x, err := strconv.ParseInt(v, 10, 32)
			if err != nil || x < 0 {
				return spec, mistakef("%s", say("error.number", say("new."+n.name)))
			}
			*n.to = int(x)
		}
	}
	if v := strings.TrimSpace(f.Get("max_time")); v != "" && v != "0" {
		d, err := time.ParseDuration(v)
		if err != nil || d < 0 {
			return spec, mistakef("%s", say("error.duration"))
		}
		spec.MaxTime = crawl.Duration(d)
	}
	return spec, nil
}

func isSet(v string) bool { return v != "" && v != "false" && v != "0" }

// lines are the lines of texts that are not blank.
func lines(texts []string) (out []string) {
	for _, t := range texts {
		for line := range strings.Lines(t) {
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	return out
}

func (s *Server) startRun(q *request) error {
	f, err := q.form()
	if err != nil {
		return err
	}
	tenant := f.Get("tenant")
	if q.user.Role != storage.RoleOperator {
		tenant = q.user.Tenant // whatever was asked for
	} else if tenant == "" {
		tenant = storage.DefaultTenant
	}
	var run storage.Run
	spec, err := specOf(f)
	if err == nil {
		run, err = s.Operations.Start(q.r.Context(), tenant, spec)
	}
	var mistake *Mistake
	if errors.As(err, &mistake) && !q.api {
		p, err := q.newRunPage(f)
		if err != nil {
			return err
		}
		p.Error = mistake.Text
		q.render(http.StatusBadRequest, "new", p)
		return nil
	}
	if err != nil {
		return err
	}
	s.Log.Info("run starts", "run", int64(run.ID), "tenant", tenant, "user", q.user.Name)
	return q.done(http.StatusCreated, show.NewRun(run, storage.Ledger{}), "/runs/"+run.ID.String())
}

type runPage struct {
	show.RunDetail
	Steer bool  `json:"-"` // may be steered by who looks
	Chart chart `json:"-"`
}

func (p runPage) title() string { return say("run.title", int64(p.Run.Run)) }

// Done is the part of the discovered URLs that is finished, in thousandths.
func (p runPage) Done() int64 {
	if p.Discovered == 0 {
		return 0
	}
	return (p.Fetched + p.Failed + p.Excluded) * 1000 / p.Discovered
}

// Actions are what can be done to the run in its state.
func (p runPage) Actions() []string {
	switch {
	case !p.Steer:
		return nil
	case p.State == storage.RunPaused:
		return []string{"resume", "cancel", "delete"}
	case p.State.Terminal():
		return []string{"delete"}
	}
	return []string{"pause", "cancel"}
}

// maxAgain bounds what a link to the form carries.
const maxAgain = 4000

// Again leads to the form with what the run was started with, where all of it has failed; empty where there is nothing to try again.
func (p runPage) Again() string {
	if !p.Steer || p.State != storage.RunFailed || len(p.Spec.Seeds) == 0 {
		return ""
	}
	v := url.Values{"url": {strings.Join(p.Spec.Seeds, "\n")}, "tenant": {p.Tenant}}
	for name, value := range map[string]string{
		"scope": string(p.Spec.Scope), "profile": p.Spec.Profile, "include": strings.Join(p.Spec.Include, "\n"), "exclude": strings.Join(p.Spec.Exclude, "\n"),
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, n := range map[string]int{"max_pages": p.Spec.MaxPages, "max_depth": p.Spec.MaxDepth} {
		if n > 0 {
			v.Set(name, strconv.Itoa(n))
		}
	}
	if p.Spec.MaxTime > 0 {
		v.Set("max_time", time.Duration(p.Spec.MaxTime).String())
	}
	for name, set := range map[string]bool{"no_sitemaps": p.Spec.NoSitemaps, "follow_nofollow": p.Spec.FollowNofollow} {
		if set {
			v.Set(name, "1")
		}
	}
	if q := v.Encode(); len(q) <= maxAgain {
		return q
	}
	return ""
}

// Over says that nothing will change any more.
func (p runPage) Over() bool { return p.State.Terminal() }

// Waits says that the run does not go on now, which is no failure.
func (p runPage) Waits() bool { return !p.State.Terminal() && p.Reason != "" }

// Worked is the time the run was worked on.
func (p runPage) Worked() string { return show.Span(time.Duration(p.Seconds * float64(time.Second))) }

func (q *request) runPage(ctx context.Context) (runPage, error) {
	r, err := q.run()
	if err != nil {
		return runPage{}, err
	}
	l, err := q.s.Store.Ledger(ctx, r.ID)
	if err != nil {
		return runPage{}, err
	}
	one := []storage.Run{r}
	if err := q.s.Operations.Waits(ctx, one); err != nil {
		return runPage{}, err
	}
	spec, err := crawl.DecodeSpec(r.Spec)
	if err != nil {
		spec = crawl.Spec{} // of another release: the figures are shown all the same
	}
	p := runPage{RunDetail: show.NewRunDetail(one[0], l, spec), Steer: member.may(q.user)}
	if !q.api {
		p.Chart, err = q.s.chart(ctx, r)
	}
	return p, err
}

func (s *Server) run(q *request) error {
	p, err := q.runPage(q.r.Context())
	if err != nil {
		return err
	}
	return q.show("run", p)
}

func (s *Server) runLive(q *request) error {
	return q.live([]string{"run-head", "run-rest"}, func(ctx context.Context) (any, bool, error) {
		p, err := q.runPage(ctx)
		return p, err == nil && p.Over(), err
	})
}

func (s *Server) steerRun(q *request) error {
	action := q.r.PathValue("action")
	if !slices.Contains([]string{"pause", "resume", "cancel", "delete"}, action) {
		return errNoAction
	}
	r, err := q.run()
	if err != nil {
		return err
	}
	state, err := s.Operations.SteerRun(q.r.Context(), action, r.ID)
	if err != nil {
		return err
	}
	s.Log.Info("run steered", "run", int64(r.ID), "action", action, "user", q.user.Name)
	to := "/runs/" + r.ID.String()
	if action == "delete" {
		to = "/runs"
	}
	return q.done(http.StatusOK, map[string]any{"run": r.ID, "state": state}, to)
}

// exportKinds are what can be exported in which formats, with the media type of each.
var exportKinds = map[string]map[string]string{
	"pages":   {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"},
	"links":   {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"},
	"sitemap": {"xml": "application/xml"},
}

func (s *Server) export(q *request) error {
	r, err := q.run()
	if err != nil {
		return err
	}
	v := q.r.URL.Query()
	what, format := v.Get("what"), v.Get("format")
	if what == "" {
		what = "pages"
	}
	if format == "" {
		if format = "csv"; what == "sitemap" {
			format = "xml"
		}
	}
	media, ok := exportKinds[what][format]
	if !ok {
		return mistakef("%s", say("error.export"))
	}
	w := &late{q: q, media: media, name: fmt.Sprintf("run-%d-%s.%s", r.ID, what, format)}
	if err := s.Operations.Export(q.r.Context(), r, what, format, w); err != nil {
		return err
	}
	w.begin() // an export without rows is a file all the same
	return nil
}

// late writes the head of a download when its first bytes are there, so that an error before them has its own status.
type late struct {
	q           *request
	media, name string
}

func (w *late) begin() {
	if w.q.sent {
		return
	}
	h := w.q.w.Header()
	h.Set("Content-Type", w.media)
	h.Set("Content-Disposition", `attachment; filename="`+w.name+`"`)
	w.q.sent = true
}

func (w *late) Write(b []byte) (int, error) {
	w.begin()
	return w.q.w.Write(b)
}
