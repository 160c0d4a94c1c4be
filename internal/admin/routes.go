package admin

import (
	"net/http"
	"strings"

	"deepcrawl/storage"
)

// access says who may ask for a route.
type access int

const (
	probe access = iota // nobody is asked who it is: the answer does not wait for the database
	anyone
	viewer   // who is signed in
	member   // who may change what is its tenant's
	operator // who runs the cluster
)

// may says whether a user has the access.
func (a access) may(u storage.User) bool {
	switch a {
	case probe, anyone:
		return true
	case viewer:
		return u.Name != ""
	case member:
		return u.Role == storage.RoleMember || u.Role == storage.RoleOperator
	}
	return u.Role == storage.RoleOperator
}

// route is one thing that can be asked for.
type route struct {
	method, path string
	who          access
	do           func(*request) error
	api          bool // also, as JSON, below apiPrefix
}

const apiPrefix = "/api/v1"

func (s *Server) table() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{get, "/healthz", probe, s.health, false},
		{get, "/readyz", probe, s.ready, false},
		{get, "/metrics", operator, s.metricsPage, false},
		{get, "/{$}", viewer, s.home, false},
		{get, "/set-up", anyone, s.setUpForm, false},
		{post, "/set-up", anyone, s.setUp, false},
		{get, "/sign-in", anyone, s.signInForm, false},
		{post, "/sign-in", anyone, s.signIn, false},
		{post, "/sign-out", anyone, s.signOut, false},

		{get, "/cluster", operator, s.cluster, true},
		{get, "/cluster/live", operator, s.clusterLive, false},
		{get, "/cluster/slots", operator, s.slots, true},
		{post, "/cluster/coordination", operator, s.coordinate, true},
		{get, "/cluster/check", operator, s.checkShow, true},
		{get, "/cluster/check/live", operator, s.checkLive, false},
		{post, "/cluster/check", operator, s.checkStart, true},
		{get, "/hosts", operator, s.hosts, true},
		{post, "/hosts/{action}", operator, s.steerHost, true},

		{get, "/runs", viewer, s.runs, true},
		{post, "/runs", member, s.startRun, true},
		{get, "/runs/new", member, s.newRun, false},
		{get, "/runs/{run}", viewer, s.run, true},
		{get, "/runs/{run}/live", viewer, s.runLive, false},
		{get, "/runs/{run}/timeline", viewer, s.timeline, true},
		{get, "/runs/{run}/pages", viewer, s.pageList, true},
		{get, "/runs/{run}/pages/{key}", viewer, s.pageRecord, true},
		{get, "/runs/{run}/export", viewer, s.export, true},
		{post, "/runs/{run}/look", viewer, s.lookAt, true},
		{post, "/runs/{run}/{action}", member, s.steerRun, true},

		{get, "/account", viewer, s.account, true},
		{post, "/account/password", viewer, s.changePassword, false},
		{post, "/tokens", viewer, s.addToken, true},
		{post, "/tokens/{id}/revoke", viewer, s.revokeToken, true},
		{get, "/users", operator, s.users, true},
		{post, "/users", operator, s.addUser, true},
		{post, "/users/{name}/remove", operator, s.removeUser, true},
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.table() {
		mux.Handle(r.method+" "+r.path, s.answer(r, false))
		if r.api {
			mux.Handle(r.method+" "+apiPrefix+r.path, s.answer(r, true))
		}
	}
	mux.Handle("GET /static/", s.static())
	mux.Handle("/", s.answer(route{who: anyone, do: func(*request) error { return storage.ErrNotFound }}, false))
	mux.Handle(apiPrefix+"/", s.answer(route{who: anyone, do: func(*request) error { return storage.ErrNotFound }}, true))
	guarded := http.NewCrossOriginProtection()
	guarded.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request{s: s, w: w, r: r, api: strings.HasPrefix(r.URL.Path, apiPrefix+"/")}
		q.fail(errCrossOrigin)
	}))
	return s.metrics.count(headers(guarded.Handler(mux)))
}

// policy lets a page load what this server embeds, and nothing else: no inline script or style, no frames, no other origin.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}
