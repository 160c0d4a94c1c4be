package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"deepcrawl/storage"
)

// Argon2id with the least memory OWASP's Password Storage Cheat Sheet recommends (19 MiB, 2 passes, 1 lane).
const (
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
	argonSalt   = 16
	argonKey    = 32
)

// Limits of a password, in bytes. No rules about its letters: length is what helps (NIST SP 800-63B section 5.1.1.2).
const (
	minPassword = 10
	maxPassword = 200
)

// CheckPassword returns a Mistake for a password that is too short or too long.
func CheckPassword(password string) error {
	if n := len(password); n < minPassword || n > maxPassword || !utf8.ValidString(password) {
		return mistakef("%s", say("error.password", minPassword, maxPassword))
	}
	return nil
}

// HashPassword makes what is stored of a password.
func HashPassword(password string) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails since Go 1.24
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, 1, argonKey)
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s", argon2.Version, argonMemory, argonTime, enc.EncodeToString(salt), enc.EncodeToString(key))
}

// passwordIs says whether a hash is that of the password. Hashes made with other costs keep working, within bounds.
func passwordIs(hash, password string) bool {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	var version int
	var memory, passes uint32
	var lanes uint8
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return false
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &lanes); err != nil || memory > 1<<20 || passes < 1 || passes > 20 || lanes < 1 {
		return false
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || err2 != nil || len(want) < 16 {
		return false
	}
	got := argon2.IDKey([]byte(password), salt, passes, memory, lanes, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1
}

// nobody is the hash that passwords of unknown users are compared with, so that both take the same time.
var nobody = sync.OnceValue(func() string { return HashPassword(rand.Text()) })

// hashed runs fn, which hashes a password, when memory for it is free.
func (s *Server) hashed(ctx context.Context, fn func()) error {
	select {
	case s.hashing <- struct{}{}:
		defer func() { <-s.hashing }()
		fn()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// NewSecret makes a random secret of 256 bits with a prefix that names its kind, and what is stored of it.
func NewSecret(prefix string) (secret string, hash storage.SecretHash) {
	var b [32]byte
	_, _ = rand.Read(b[:])
	secret = prefix + base64.RawURLEncoding.EncodeToString(b[:])
	return secret, hashSecret(secret)
}

func hashSecret(secret string) storage.SecretHash { return sha256.Sum256([]byte(secret)) }

const (
	sessionCookie = "deepcrawl_session"
	sessionFor    = 7 * 24 * time.Hour
	// TokenPrefix begins every API token, so that people and scanners tell what it is.
	TokenPrefix = "dct_"
)

// authenticate finds out whose request it is: by bearer token, else by cookie. A wrong token is an error, not nobody.
func (q *request) authenticate() (err error) {
	if header := q.r.Header.Get("Authorization"); header != "" {
		token, ok := strings.CutPrefix(header, "Bearer ")
		if !ok {
			return errSignIn
		}
		q.user, err = q.s.Store.TokenUser(q.r.Context(), hashSecret(strings.TrimSpace(token)))
		if errors.Is(err, storage.ErrNotFound) {
			return errSignIn
		}
		return err
	}
	c, err := q.r.Cookie(sessionCookie)
	if err != nil || c.Value == "" {
		return nil
	}
	q.user, err = q.s.Store.Session(q.r.Context(), hashSecret(c.Value))
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// secure says whether the browser came by TLS, here or at a proxy before.
func (q *request) secure() bool {
	return q.r.TLS != nil || strings.EqualFold(q.r.Header.Get("X-Forwarded-Proto"), "https")
}

func (q *request) setCookie(value string, maxAge int) {
	http.SetCookie(q.w, &http.Cookie{
		Name: sessionCookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: q.secure(), SameSite: http.SameSiteLaxMode,
	})
}

// signedIn begins a session.
func (q *request) signedIn(user string) error {
	secret, hash := NewSecret("")
	if err := q.s.Store.AddSession(q.r.Context(), hash, user, sessionFor); err != nil {
		return err
	}
	q.setCookie(secret, int(sessionFor.Seconds()))
	return nil
}

// address is where a request comes from. A proxy on this machine says whom it asks for, in the last place of X-Forwarded-For; without
// that all who come through it would be slowed down together.
func (q *request) address() string {
	host, _, err := net.SplitHostPort(q.r.RemoteAddr)
	if err != nil {
		return q.r.RemoteAddr
	}
	if near, err := netip.ParseAddr(host); err == nil && near.IsLoopback() {
		if list := q.r.Header.Values("X-Forwarded-For"); len(list) > 0 {
			last := list[len(list)-1]
			if a, err := netip.ParseAddr(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); err == nil {
				return a.String()
			}
		}
	}
	return host
}

// throttle slows down who guesses passwords: after some free attempts each failure doubles the wait.
type throttle struct {
	now func() time.Time
	mu  sync.Mutex
	by  map[string]failures
}

type failures struct {
	n     int
	until time.Time
	last  time.Time
}

// Attempts that cost nothing: of one address for one name, of one address, for one name from anywhere.
const (
	freePair    = 5
	freeAddress = 30
	freeName    = 100
	maxWait     = 15 * time.Minute
	forgetAfter = time.Hour
	maxThrottle = 20_000
)

type throttleKey struct {
	key  string
	free int
}

func throttleKeys(address, name string) []throttleKey {
	return []throttleKey{{"p\x00" + address + "\x00" + name, freePair}, {"a\x00" + address, freeAddress}, {"n\x00" + name, freeName}}
}

// try returns how long to wait before the next attempt. Where it is now, the attempt counts as failed until ok is called, so that
// attempts made at once do not slip through together.
func (t *throttle) try(address, name string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.by == nil {
		t.by = map[string]failures{}
	}
	if len(t.by) > maxThrottle {
		for k, f := range t.by {
			if now.Sub(f.last) > forgetAfter/4 && now.After(f.until) {
				delete(t.by, k)
			}
		}
		if len(t.by) > maxThrottle {
			return time.Minute // under attack from very many addresses: everybody waits a little
		}
	}
	keys := throttleKeys(address, name)
	for _, k := range keys {
		if f := t.by[k.key]; now.Before(f.until) {
			return f.until.Sub(now)
		}
	}
	for _, k := range keys {
		f := t.by[k.key]
		if now.Sub(f.last) > forgetAfter {
			f = failures{}
		}
		f.n++
		f.last = now
		if over := f.n - k.free; over >= 0 {
			f.until = now.Add(min(time.Second<<min(over, 20), maxWait))
		}
		t.by[k.key] = f
	}
	return 0
}

// ok takes the attempt back.
func (t *throttle) ok(address, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, k := range throttleKeys(address, name) {
		f := t.by[k.key]
		if f.n--; f.n <= 0 || i == 0 {
			delete(t.by, k.key)
			continue
		}
		if f.n < k.free {
			f.until = time.Time{}
		}
		t.by[k.key] = f
	}
}
