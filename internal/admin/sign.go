package admin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"deepcrawl/storage"
)

// setUpFor is how long a set-up link works.
const setUpFor = 24 * time.Hour

// OfferSetUp makes the secret of a set-up link where there is no user yet; empty where there is one.
func (s *Server) OfferSetUp(ctx context.Context) (path string, err error) {
	secret, hash := NewSecret("")
	err = s.Store.OfferSetUp(ctx, hash, setUpFor)
	if errors.Is(err, storage.ErrState) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return "/set-up?secret=" + secret, nil
}

type setUpPage struct {
	Secret, Name string
	Open         bool
	Error        string
}

func (setUpPage) title() string { return say("setup.title") }

func (s *Server) setUpForm(q *request) error {
	p := setUpPage{Secret: q.r.URL.Query().Get("secret")}
	var err error
	if p.Open, err = s.Store.SetUpOpen(q.r.Context(), hashSecret(p.Secret)); err != nil {
		return err
	}
	status := http.StatusOK
	if !p.Open {
		status = http.StatusNotFound
	}
	q.render(status, "setup", p)
	return nil
}

func (s *Server) setUp(q *request) error {
	f, err := q.form()
	if err != nil {
		return err
	}
	p := setUpPage{Secret: f.Get("secret"), Name: userName(f.Get("name")), Open: true}
	hash := hashSecret(p.Secret)
	open, err := s.Store.SetUpOpen(q.r.Context(), hash) // before the costly hash
	if err != nil {
		return err
	}
	if !open {
		p.Open = false
		q.render(http.StatusNotFound, "setup", p)
		return nil
	}
	err = s.storeUser(q.r.Context(), storage.User{Name: p.Name, Role: storage.RoleOperator}, f.Get("password"), func(u storage.User) error {
		return s.Store.SetUp(q.r.Context(), hash, u)
	})
	var mistake *Mistake
	if errors.As(err, &mistake) {
		p.Error = mistake.Text
		q.render(http.StatusBadRequest, "setup", p)
		return nil
	}
	if err != nil {
		return err
	}
	s.Log.Info("set up", "user", p.Name)
	if err := q.signedIn(p.Name); err != nil {
		return err
	}
	return q.done(http.StatusCreated, nil, "/")
}

// userName is a name as it is stored.
func userName(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// CheckUserName returns a Mistake for what is not allowed as a name.
func CheckUserName(name string) error {
	ok := name != "" && len(name) <= 64 && name != "." && name != ".." // a browser takes those two out of a path
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.@", c))
	}
	if !ok {
		return mistakef("%s", say("error.username"))
	}
	return nil
}

// storeUser checks name and password and hands the user with its hash to store; an empty password is left out.
func (s *Server) storeUser(ctx context.Context, u storage.User, password string, store func(storage.User) error) error {
	if err := CheckUserName(u.Name); err != nil {
		return err
	}
	if err := CheckPassword(password); err != nil {
		return err
	}
	if err := s.hashed(ctx, func() { u.Hash = HashPassword(password) }); err != nil {
		return err
	}
	return store(u)
}

type signInPage struct {
	Name, Next string
	Error      string
}

func (signInPage) title() string { return say("signin.title") }

func (s *Server) signInForm(q *request) error {
	q.render(http.StatusOK, "signin", signInPage{Next: localPath(q.r.URL.Query().Get("next"))})
	return nil
}

// localPath keeps a path of this server, so that nobody is sent elsewhere after signing in.
func localPath(p string) string {
	if !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") || strings.ContainsAny(p, "\\\r\n\t") {
		return "/"
	}
	return p
}

func (s *Server) signIn(q *request) error {
	f, err := q.form()
	if err != nil {
		return err
	}
	p := signInPage{Name: userName(f.Get("name")), Next: localPath(f.Get("next"))}
	if wait := s.throttle.try(q.address(), p.Name); wait > 0 {
		s.metrics.signIns.WithLabelValues("throttled").Inc()
		seconds := int(wait/time.Second) + 1
		q.w.Header().Set("Retry-After", itoa(seconds))
		p.Error = say("error.toosoon", seconds)
		q.render(http.StatusTooManyRequests, "signin", p)
		return nil
	}
	u, err := s.Store.User(q.r.Context(), p.Name)
	hash := u.Hash
	if errors.Is(err, storage.ErrNotFound) {
		hash = nobody()
	} else if err != nil {
		return err
	}
	right := false
	password := f.Get("password")
	if len(password) <= maxPassword {
		if err := s.hashed(q.r.Context(), func() { right = passwordIs(hash, password) }); err != nil {
			return err
		}
	}
	if !right || u.Name == "" {
		s.metrics.signIns.WithLabelValues("refused").Inc()
		p.Error = say("signin.wrong")
		q.render(http.StatusUnauthorized, "signin", p)
		return nil
	}
	s.throttle.ok(q.address(), p.Name)
	s.metrics.signIns.WithLabelValues("ok").Inc()
	if err := q.signedIn(u.Name); err != nil {
		return err
	}
	return q.done(http.StatusOK, nil, p.Next)
}

func (s *Server) signOut(q *request) error {
	if c, err := q.r.Cookie(sessionCookie); err == nil {
		if err := s.Store.DropSession(q.r.Context(), hashSecret(c.Value)); err != nil {
			return err
		}
	}
	q.setCookie("", -1)
	return q.done(http.StatusOK, nil, "/sign-in")
}

func (s *Server) home(q *request) error {
	to := "/runs"
	if q.user.Role == storage.RoleOperator {
		to = "/cluster"
	}
	http.Redirect(q.w, q.r, to, http.StatusSeeOther)
	return nil
}
