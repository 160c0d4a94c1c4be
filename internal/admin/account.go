package admin

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"

	"deepcrawl/internal/show"
	"deepcrawl/storage"
)

// tokenRow is a token in lists; its secret is never shown again.
type tokenRow struct {
	ID      string  `json:"id"`
	Label   string  `json:"label"`
	Created *string `json:"created"`
	Used    *string `json:"used"`
}

type accountPage struct {
	Name   string       `json:"name"`
	Role   storage.Role `json:"role"`
	Tenant string       `json:"tenant"`
	Tokens []tokenRow   `json:"tokens"`

	Secret     string `json:"-"` // of the token just made
	TokenError string `json:"-"`
	Label      string `json:"-"`
	Error      string `json:"-"` // of the password
	Changed    bool   `json:"-"`
}

func (accountPage) title() string { return say("account.title") }

func (q *request) accountPage() (accountPage, error) {
	p := accountPage{Name: q.user.Name, Role: q.user.Role, Tenant: q.user.Tenant, Tokens: []tokenRow{}}
	list, err := q.s.Store.Tokens(q.r.Context(), q.user.Name)
	for _, t := range list {
		p.Tokens = append(p.Tokens, tokenRow{t.ID, t.Label, show.ISO(t.Created), show.ISO(t.Used)})
	}
	return p, err
}

func (s *Server) account(q *request) error {
	p, err := q.accountPage()
	if err != nil {
		return err
	}
	p.Changed = q.r.URL.Query().Has("changed")
	return q.show("account", p)
}

func (s *Server) changePassword(q *request) error {
	f, err := q.form()
	if err != nil {
		return err
	}
	if wait := s.throttle.try(q.address(), q.user.Name); wait > 0 {
		return &tooSoon{int(wait.Seconds()) + 1}
	}
	right := false
	if old := f.Get("old"); len(old) <= maxPassword {
		if err := s.hashed(q.r.Context(), func() { right = passwordIs(q.user.Hash, old) }); err != nil {
			return err
		}
	}
	if !right {
		err = mistakef("%s", say("account.oldwrong"))
	} else {
		s.throttle.ok(q.address(), q.user.Name)
		err = s.storeUser(q.r.Context(), q.user, f.Get("password"), func(u storage.User) error { return s.Store.PutUser(q.r.Context(), u) })
	}
	var mistake *Mistake
	if errors.As(err, &mistake) {
		p, err := q.accountPage()
		if err != nil {
			return err
		}
		p.Error = mistake.Text
		q.render(http.StatusBadRequest, "account", p)
		return nil
	}
	if err != nil {
		return err
	}
	// The change has ended all sessions, this one too.
	if err := q.signedIn(q.user.Name); err != nil {
		return err
	}
	return q.done(http.StatusOK, nil, "/account?changed=1")
}

const maxLabel = 100

// NewToken makes a token of a user; the secret is known to nobody after this.
func NewToken(user, label string) (secret string, hash storage.SecretHash, t storage.Token, err error) {
	label = strings.TrimSpace(label)
	if len(label) > maxLabel || show.Clean(label) != label {
		return "", hash, t, mistakef("%s", say("error.label", maxLabel))
	}
	secret, hash = NewSecret(TokenPrefix)
	return secret, hash, storage.Token{ID: strings.ToLower(rand.Text()[:10]), User: user, Label: label}, nil
}

func (s *Server) addToken(q *request) error {
	f, err := q.form()
	if err != nil {
		return err
	}
	secret, hash, t, err := NewToken(q.user.Name, f.Get("label"))
	var mistake *Mistake
	if errors.As(err, &mistake) && !q.api {
		p, err := q.accountPage()
		if err != nil {
			return err
		}
		p.TokenError, p.Label = mistake.Text, f.Get("label")
		q.render(http.StatusBadRequest, "account", p)
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.Store.AddToken(q.r.Context(), hash, t); err != nil {
		return err
	}
	if q.api {
		q.json(http.StatusCreated, map[string]string{"id": t.ID, "token": secret})
		return nil
	}
	p, err := q.accountPage()
	if err != nil {
		return err
	}
	p.Secret = secret
	q.render(http.StatusCreated, "account", p)
	return nil
}

func (s *Server) revokeToken(q *request) error {
	owner := q.user.Name
	if err := s.Store.RevokeToken(q.r.Context(), owner, q.r.PathValue("id")); err != nil {
		return err
	}
	return q.done(http.StatusOK, map[string]string{"state": "revoked"}, "/account")
}

type userRow struct {
	Name    string       `json:"name"`
	Role    storage.Role `json:"role"`
	Tenant  string       `json:"tenant"`
	Created *string      `json:"created"`
}

type usersPage struct {
	Users []userRow `json:"users"`

	Tenants []string     `json:"-"`
	Form    storage.User `json:"-"`
	Error   string       `json:"-"`
}

func (usersPage) title() string { return say("users.title") }

func (q *request) usersPage() (usersPage, error) {
	p := usersPage{Users: []userRow{}}
	list, err := q.s.Store.Users(q.r.Context())
	if err != nil {
		return p, err
	}
	for _, u := range list {
		p.Users = append(p.Users, userRow{u.Name, u.Role, u.Tenant, show.ISO(u.Created)})
	}
	p.Tenants, err = q.tenants()
	return p, err
}

// tenants are those the user may choose from.
func (q *request) tenants() ([]string, error) {
	if q.user.Role != storage.RoleOperator {
		return []string{q.user.Tenant}, nil
	}
	list, err := q.s.Store.Tenants(q.r.Context())
	names := make([]string, 0, len(list))
	for _, t := range list {
		if !t.Deleting {
			names = append(names, t.Name)
		}
	}
	return names, err
}

func (s *Server) users(q *request) error {
	p, err := q.usersPage()
	if err != nil {
		return err
	}
	return q.show("users", p)
}

func (s *Server) addUser(q *request) error {
	f, err := q.form()
	if err != nil {
		return err
	}
	u := storage.User{Name: userName(f.Get("name")), Role: storage.Role(f.Get("role")), Tenant: f.Get("tenant")}
	if u.Role == storage.RoleOperator {
		u.Tenant = ""
	}
	err = CheckRole(u)
	if err == nil {
		if _, had := s.Store.User(q.r.Context(), u.Name); had == nil {
			err = mistakef("%s", say("users.exists", u.Name))
		} else if !errors.Is(had, storage.ErrNotFound) {
			return had
		}
	}
	if err == nil {
		err = s.storeUser(q.r.Context(), u, f.Get("password"), func(u storage.User) error { return s.Store.PutUser(q.r.Context(), u) })
		if errors.Is(err, storage.ErrNotFound) {
			err = mistakef("%s", say("error.tenant", u.Tenant))
		}
	}
	var mistake *Mistake
	if errors.As(err, &mistake) && !q.api {
		p, err := q.usersPage()
		if err != nil {
			return err
		}
		p.Form, p.Error = u, mistake.Text
		q.render(http.StatusBadRequest, "users", p)
		return nil
	}
	if err != nil {
		return err
	}
	return q.done(http.StatusCreated, userRow{Name: u.Name, Role: u.Role, Tenant: u.Tenant}, "/users")
}

// CheckRole returns a Mistake for a role that is none, or that does not go with the tenant.
func CheckRole(u storage.User) error {
	switch u.Role {
	case storage.RoleOperator:
		if u.Tenant != "" {
			return mistakef("%s", say("error.optenant"))
		}
	case storage.RoleMember, storage.RoleViewer:
		if u.Tenant == "" {
			return mistakef("%s", say("error.notenant"))
		}
	default:
		return mistakef("%s", say("error.role"))
	}
	return nil
}

func (s *Server) removeUser(q *request) error {
	if err := s.Store.DropUser(q.r.Context(), q.r.PathValue("name")); err != nil {
		return err
	}
	return q.done(http.StatusOK, map[string]string{"state": "removed"}, "/users")
}
