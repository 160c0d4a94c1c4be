package storage

import "errors"

// Sentinels. Implementations translate driver errors into these once, at their edge, and keep the cause in the chain.
var (
	// ErrNotFound: no such run, URL or step.
	ErrNotFound = errors.New("not found")
	// ErrState: the run's state does not allow what was asked (the wrapping error names both).
	ErrState = errors.New("not allowed in this state")
	// ErrFenced: a newer holder of the lease has written already.
	ErrFenced = errors.New("fenced by a newer holder")
	// ErrUnknown: the answer to a commit was lost; it may or may not have happened.
	ErrUnknown = errors.New("outcome unknown")
	// ErrUnavailable: the database cannot be reached or does not answer now; try again.
	ErrUnavailable = errors.New("database unavailable")
	// ErrFull: the disk or quota of the database is used up.
	ErrFull = errors.New("no space left")
	// ErrReadOnly: the database file, its folder or the account does not allow writing.
	ErrReadOnly = errors.New("read-only")
	// ErrSchema: the schema is missing, older or newer than this binary serves (the wrapping error says which).
	ErrSchema = errors.New("schema mismatch")
	// ErrForeign: the file or database is not deepcrawl's.
	ErrForeign = errors.New("not a deepcrawl database")
)
