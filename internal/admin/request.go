package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"deepcrawl/storage"
)

// request is one request being answered.
type request struct {
	s    *Server
	w    http.ResponseWriter
	r    *http.Request
	user storage.User // zero: not signed in
	api  bool         // JSON is wanted
	sent bool         // the answer has begun
}

var (
	errSignIn      = errors.New("sign in first")
	errForbidden   = errors.New("not allowed")
	errCrossOrigin = errors.New("request of another site")
	errBusy        = errors.New("too many at once")
)

// tooSoon is an attempt that has to wait.
type tooSoon struct{ seconds int }

func (t *tooSoon) Error() string { return fmt.Sprintf("try again in %d s", t.seconds) }

// answer runs a route for those who may ask for it.
func (s *Server) answer(rt route, api bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := &request{s: s, w: w, r: r, api: api}
		var err error
		if rt.who != probe {
			err = q.authenticate()
		}
		if rt.who == anyone && errors.Is(err, errSignIn) {
			err = nil // a token that is none is no reason to keep somebody from signing in
		}
		if err == nil && !rt.who.may(q.user) {
			if err = errForbidden; q.user.Name == "" {
				err = errSignIn
			}
		}
		if err == nil {
			err = q.readable()
		}
		if err == nil {
			err = rt.do(q)
		}
		if err != nil {
			q.fail(err)
		}
	})
}

// fail tells a person or program what went wrong.
func (q *request) fail(err error) {
	if q.sent {
		panic(http.ErrAbortHandler) // the answer has begun: only cutting it says that it is not whole
	}
	status, text := q.verdict(err)
	// A program that sends a token, such as one that reads metrics, is told; a person is led to where to sign in.
	if errors.Is(err, errSignIn) && !q.api && q.r.Method == http.MethodGet && q.r.Header.Get("Authorization") == "" {
		http.Redirect(q.w, q.r, "/sign-in?next="+url.QueryEscape(q.r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	if status == http.StatusUnauthorized {
		q.w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if status >= 500 && q.r.Context().Err() == nil { // who has gone made the error by going
		q.s.Log.Error("request", "method", q.r.Method, "path", q.r.URL.Path, "err", err)
	}
	if q.api {
		q.json(status, map[string]string{"error": text})
		return
	}
	q.render(status, "error", errorPage{Status: status, Text: text, Retry: status >= 500 && q.r.Method == http.MethodGet})
}

type errorPage struct {
	Status int
	Text   string
	Retry  bool
}

func (p errorPage) title() string { return http.StatusText(p.Status) }

// verdict is the status of an error, and what is said of it: nothing of a thing that is another's, nor of what only the log may know.
func (q *request) verdict(err error) (status int, text string) {
	var mistake *Mistake
	var soon *tooSoon
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &mistake):
		return http.StatusBadRequest, mistake.Text
	case errors.As(err, &soon):
		q.w.Header().Set("Retry-After", strconv.Itoa(soon.seconds))
		return http.StatusTooManyRequests, say("error.toosoon", soon.seconds)
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, say("error.large")
	case errors.Is(err, errSignIn):
		return http.StatusUnauthorized, say("error.signin")
	case errors.Is(err, errForbidden):
		return http.StatusForbidden, say("error.forbidden")
	case errors.Is(err, errCrossOrigin):
		return http.StatusForbidden, say("error.crossorigin")
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable, say("error.busy")
	case errors.Is(err, storage.ErrNotFound):
		return http.StatusNotFound, say("error.notfound")
	case errors.Is(err, storage.ErrState):
		text = strings.TrimSuffix(err.Error(), ": "+storage.ErrState.Error())
		return http.StatusConflict, say("error.state", text)
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrUnknown):
		return http.StatusServiceUnavailable, say("error.unavailable")
	}
	return http.StatusInternalServerError, say("error.internal")
}

func (q *request) json(status int, v any) {
	b, err := json.Marshal(v) // escapes < > & too: an answer taken for a page could do nothing
	if err != nil {
		q.s.Log.Error("encode an answer", "err", err)
		status, b = http.StatusInternalServerError, []byte(`{"error":"`+say("error.internal")+`"}`)
	}
	q.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	q.w.WriteHeader(status)
	q.sent = true
	_, _ = q.w.Write(append(b, '\n')) // who has gone needs no answer
}

// show answers with a page, or with its figures as JSON.
func (q *request) show(name string, page titled) error {
	if q.api {
		q.json(http.StatusOK, page)
	} else {
		q.render(http.StatusOK, name, page)
	}
	return nil
}

// done answers a change: programs get what it came to, people the page to go on with.
func (q *request) done(status int, v any, to string) error {
	if q.api {
		q.json(status, v)
		return nil
	}
	q.sent = true
	http.Redirect(q.w, q.r, to, http.StatusSeeOther)
	return nil
}

// bodyWithin is how long the body of a change may take to arrive.
const bodyWithin = 30 * time.Second

// form reads a change's fields into a flat form; programs may send them as a JSON object.
func (q *request) form() (url.Values, error) {
	c := http.NewResponseController(q.w)
	if err := c.SetReadDeadline(time.Now().Add(bodyWithin)); err == nil {
		defer func() { _ = c.SetReadDeadline(time.Time{}) }() // the connection has gone where this fails
	}
	if strings.HasPrefix(q.r.Header.Get("Content-Type"), "application/json") {
		v, err := q.jsonForm()
		if err == nil && !plain(v) {
			err = mistakef("%s", say("error.text"))
		}
		return v, err
	}
	if err := q.r.ParseForm(); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return nil, err
		}
		return nil, mistakef("%s", say("error.form"))
	}
	if !plain(q.r.PostForm) {
		return nil, mistakef("%s", say("error.text"))
	}
	return q.r.PostForm, nil
}

// jsonForm reads a JSON object; a field that is null is like one that is not there.
func (q *request) jsonForm() (url.Values, error) {
	fields := map[string]any{}
	d := json.NewDecoder(q.r.Body)
	err := d.Decode(&fields)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			err = errors.New("more than one value")
		}
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, err
	}
	if err != nil {
		return nil, mistakef("%s", say("error.json"))
	}
	v := url.Values{}
	for k, x := range fields {
		list, ok := x.([]any)
		if !ok {
			list = []any{x}
		}
		for _, y := range list {
			switch y := y.(type) {
			case nil:
			case string:
				v.Add(k, y)
			case bool:
				v.Add(k, strconv.FormatBool(y))
			case float64:
				v.Add(k, strconv.FormatFloat(y, 'f', -1, 64))
			default:
				return nil, mistakef("%s", say("error.field", k))
			}
		}
	}
	return v, nil
}

// readable turns away what no database takes as text: a path with such bytes leads nowhere, a query is a mistake.
func (q *request) readable() error {
	if !plainText(q.r.URL.Path) {
		return storage.ErrNotFound
	}
	if !plain(q.r.URL.Query()) {
		return mistakef("%s", say("error.text"))
	}
	return nil
}

func plain(v url.Values) bool {
	for k, list := range v {
		if !plainText(k) || slices.ContainsFunc(list, func(s string) bool { return !plainText(s) }) {
			return false
		}
	}
	return true
}

func plainText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// run is the run of the path, where the user may see it: another tenant's is not found, like one that is not there.
func (q *request) run() (storage.Run, error) {
	id, err := strconv.ParseInt(q.r.PathValue("run"), 10, 64)
	if err != nil || id < 1 {
		return storage.Run{}, storage.ErrNotFound
	}
	r, err := q.s.Store.Run(q.r.Context(), storage.RunID(id))
	if err == nil && !q.sees(r.Tenant) {
		err = storage.ErrNotFound
	}
	return r, err
}

func (q *request) sees(tenant string) bool {
	return q.user.Role == storage.RoleOperator || q.user.Tenant == tenant && tenant != ""
}
