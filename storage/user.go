package storage

import (
	"context"
	"time"
)

// Role is what a user may do.
type Role string

// Roles. An operator sees and changes everything. A member sees and steers what belongs to its tenant; a viewer only sees it.
const (
	RoleOperator Role = "operator"
	RoleMember   Role = "member"
	RoleViewer   Role = "viewer"
)

// UserRoles lists all roles, the mightiest first.
func UserRoles() []Role { return []Role{RoleOperator, RoleMember, RoleViewer} }

// User is a person who may sign in.
type User struct {
	Name    string // lower-case letters, digits, '-', '_', '.', '@'; up to 64
	Role    Role
	Tenant  string // of a member or viewer; empty for an operator
	Hash    string // of the password, opaque here
	Created time.Time
}

// Token is a key to the API. Its secret is kept as a hash only.
type Token struct {
	ID      string // names it in lists; letters, digits and '-', up to 32
	User    string // it may do what this user may
	Label   string // what it is for, up to 100 bytes
	Created time.Time
	Used    time.Time // about when it was last used, zero never
}

// SecretHash is the SHA-256 of a random secret of at least 128 bits: such a secret needs no slow hash.
type SecretHash [32]byte

// Users keeps who may sign in and what proves that they did. It is beside [Store], since only the pages need it.
type Users interface {
	Accounts
	Sessions
	Tokens
}

// Accounts keeps users.
type Accounts interface {
	// PutUser creates a user or changes one; an empty Hash keeps the password there is. Changing the password, the role or the
	// tenant ends the user's sessions. ErrNotFound for an unknown tenant, ErrState where the last operator would be lost.
	PutUser(ctx context.Context, u User) error
	// User returns one, or ErrNotFound.
	User(ctx context.Context, name string) (User, error)
	// Users lists them by name.
	Users(ctx context.Context) ([]User, error)
	// DropUser removes a user with sessions and tokens. ErrNotFound; ErrState for the last operator.
	DropUser(ctx context.Context, name string) error
	// OfferSetUp keeps the hash of the secret that makes the first user, for a time; it replaces an earlier one. ErrState where
	// there is a user already.
	OfferSetUp(ctx context.Context, secret SecretHash, valid time.Duration) error
	// SetUpOpen reports whether the secret would be taken now.
	SetUpOpen(ctx context.Context, secret SecretHash) (bool, error)
	// SetUp makes the first user, an operator, and uses up the secret: of two calls at once one wins. ErrState where the secret is
	// not the one offered, is too old or used up, or there is a user already.
	SetUp(ctx context.Context, secret SecretHash, u User) error
}

// Sessions keeps who is signed in.
type Sessions interface {
	// AddSession signs a user in for a time. ErrNotFound where the user is gone.
	AddSession(ctx context.Context, secret SecretHash, user string, valid time.Duration) error
	// Session returns the user of a session that is not over, or ErrNotFound.
	Session(ctx context.Context, secret SecretHash) (User, error)
	// DropSession signs out; a session that is over is no error.
	DropSession(ctx context.Context, secret SecretHash) error
	// PruneSessions removes sessions that are over.
	PruneSessions(ctx context.Context) error
}

// Tokens keeps keys to the API.
type Tokens interface {
	// AddToken stores a token. ErrNotFound where the user is gone.
	AddToken(ctx context.Context, secret SecretHash, t Token) error
	// TokenUser returns the user of a token and notes its use, at most once a minute. ErrNotFound for one that is unknown or revoked.
	TokenUser(ctx context.Context, secret SecretHash) (User, error)
	// Tokens lists those of a user, of all users where it is empty, by id.
	Tokens(ctx context.Context, user string) ([]Token, error)
	// RevokeToken ends a token of a user (of any where it is empty) for good. ErrNotFound.
	RevokeToken(ctx context.Context, user, id string) error
}

// Bucket counts what a run's pages came to in one stretch of time.
type Bucket struct {
	From                      time.Time
	Fetched, Failed, Excluded int64
}

// Timelines tells how a run went over time.
type Timelines interface {
	// Timeline counts the run's finished URLs in stretches of width, oldest first; stretches without any are left out. It reads one
	// row for each page: callers keep the answer for a while.
	Timeline(ctx context.Context, run RunID, width time.Duration) ([]Bucket, error)
}
