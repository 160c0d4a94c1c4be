package sqldb

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
)

// Sentinels. Every error of this package that one of these describes wraps it, and the driver's error beside it.
var (
	// ErrUnique: a unique or primary key forbids the row.
	ErrUnique = errors.New("not unique")
	// ErrMismatch: a statement run with ExecExactly met another number of rows. The transaction is rolled back.
	ErrMismatch = errors.New("another number of rows")
	// ErrContention: serialization failures, deadlocks or locks went on through all retries.
	ErrContention = errors.New("too much contention")
	// ErrUnavailable: the database cannot be reached or does not answer now.
	ErrUnavailable = errors.New("database unavailable")
	// ErrUnknown: the answer to a commit was lost; it may or may not have happened.
	ErrUnknown = errors.New("outcome unknown")
	// ErrFull: the disk or quota is used up.
	ErrFull = errors.New("no space left")
	// ErrReadOnly: the file, its folder, the server or the account does not allow writing.
	ErrReadOnly = errors.New("read-only")
	// ErrForeign: the file or database is not deepcrawl's.
	ErrForeign = errors.New("not a deepcrawl database")
	// ErrAuth: the server refuses the account or its rights.
	ErrAuth = errors.New("access denied")
	// ErrMissing: no such file or database.
	ErrMissing = errors.New("no such database")
	// ErrTooOld: the server is older than the oldest version supported.
	ErrTooOld = errors.New("server too old")
	// ErrUnsupported: the server is set up in a way that breaks what deepcrawl relies on.
	ErrUnsupported = errors.New("unsupported database setup")
	// ErrDSN: the data source name is malformed. Its text never holds the password.
	ErrDSN = errors.New("bad database address")
	// ErrSchema: a table or column is missing, or the schema's version is not one this binary serves.
	ErrSchema = errors.New("schema mismatch")
	// ErrTimeout: the server ended a statement that ran longer than it may.
	ErrTimeout = errors.New("statement timed out")
)

// fault is a driver's error with what it means.
type fault struct {
	kind  error
	retry bool // the whole transaction can be run again
	cause error
}

func (f *fault) Error() string {
	if f.kind == nil {
		return f.cause.Error()
	}
	return f.kind.Error() + ": " + f.cause.Error()
}

func (f *fault) Unwrap() []error {
	if f.kind == nil {
		return []error{f.cause}
	}
	return []error{f.kind, f.cause}
}

func retryable(err error) bool {
	var f *fault
	return errors.As(err, &f) && f.retry
}

// translate says what a driver's error means; err is returned unchanged where nothing is known about it.
func translate(err error) error {
	if err == nil {
		return nil
	}
	var f *fault
	if errors.As(err, &f) || errors.Is(err, context.Canceled) {
		return err
	}
	var se *sqlite.Error
	var pe *pgconn.PgError
	var me *mysql.MySQLError
	switch {
	case errors.As(err, &se):
		return translateSQLite(se.Code(), err)
	case errors.As(err, &pe):
		return translatePostgres(pe.Code, err)
	case errors.As(err, &me):
		return translateMySQL(me.Number, err)
	case isNetwork(err):
		return &fault{kind: ErrUnavailable, cause: line{err}}
	}
	return err
}

// line is an error whose message is on one line; the drivers list every address they tried on lines of their own.
type line struct{ error }

func (l line) Unwrap() error { return l.error }

func (l line) Error() string {
	parts := strings.FieldsFunc(l.error.Error(), func(r rune) bool { return r == '\n' || r == '\t' })
	return strings.Join(slices.Compact(parts), " ")
}

func isNetwork(err error) bool {
	var ne net.Error
	var ce *pgconn.ConnectError
	var te *tls.CertificateVerificationError
	return errors.As(err, &ne) || errors.As(err, &ce) || errors.As(err, &te) || errors.Is(err, mysql.ErrNoTLS) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrDeadlineExceeded) ||
		strings.Contains(err.Error(), "conn closed")
}

// translateSQLite follows https://www.sqlite.org/rescode.html; extended codes carry the primary one in the low byte.
func translateSQLite(code int, err error) error {
	f := &fault{cause: err}
	switch code & 0xff {
	case 5: // BUSY, after busy_timeout; while another process recovers the log it passes
		f.kind, f.retry = ErrUnavailable, code == 261
		f.cause = fmt.Errorf("another process has kept the file locked for 5 s: %w", err)
	case 6: // LOCKED
		f.kind, f.retry = ErrContention, true
	case 8: // READONLY
		f.kind = ErrReadOnly
	case 10: // IOERR: what the disk says may pass, a full one shows as such
		f.kind = ErrUnavailable
		if strings.Contains(err.Error(), "full") {
			f.kind = ErrFull
		}
	case 11, 26: // CORRUPT, NOTADB
		f.kind = ErrForeign
	case 13: // FULL
		f.kind = ErrFull
	case 14: // CANTOPEN
		f.kind = ErrMissing
	case 19: // CONSTRAINT: PRIMARYKEY 1555, UNIQUE 2067
		if code == 1555 || code == 2067 {
			f.kind = ErrUnique
		}
	case 1: // ERROR
		if strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "no such column") {
			f.kind = ErrSchema
		}
	}
	return f
}

// translatePostgres follows https://www.postgresql.org/docs/current/errcodes-appendix.html.
func translatePostgres(code string, err error) error {
	f := &fault{cause: err}
	switch code {
	case "40001", "40P01", "55P03": // serialization_failure, deadlock_detected, lock_not_available
		f.kind, f.retry = ErrContention, true
	case "23505":
		f.kind = ErrUnique
	case "22012": // division_by_zero: only ExecExactly divides
		f.kind = ErrMismatch
	case "57014":
		f.kind = ErrTimeout
	case "53100", "53400", "54000": // disk_full, configuration_limit_exceeded, program_limit_exceeded
		f.kind = ErrFull
	case "25006": // read_only_sql_transaction: a standby
		f.kind = ErrReadOnly
	case "28000", "28P01", "42501":
		f.kind = ErrAuth
	case "3D000":
		f.kind = ErrMissing
	case "42P01", "42703", "3F000":
		f.kind = ErrSchema
	default:
		switch {
		case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "53"), code == "25P03", code == "25P04":
			// connection_exception, operator_intervention, insufficient_resources, idle or long transaction ended
			f.kind = ErrUnavailable
		}
	}
	return f
}

// translateMySQL follows the error references of MySQL 8.0 and MariaDB.
func translateMySQL(code uint16, err error) error {
	f := &fault{cause: err}
	switch code {
	case 1213, 1205, 3572, 1412: // deadlock, lock wait timeout, NOWAIT, table definition changed
		f.kind, f.retry = ErrContention, true
	case 1020: // record has changed since last read (innodb_snapshot_isolation)
		f.kind, f.retry = ErrContention, true
	case 1062, 1586:
		f.kind = ErrUnique
	case 1242: // subquery returns more than one row: only ExecExactly's check does
		f.kind = ErrMismatch
	case 1969, 3024: // max_statement_time, max_execution_time
		f.kind = ErrTimeout
	case 1021, 1114, 3, 28:
		f.kind = ErrFull
	case 1290, 1792, 1836:
		f.kind = ErrReadOnly
	case 1044, 1045, 1142, 1143, 1227, 1698, 1370:
		f.kind = ErrAuth
	case 1049:
		f.kind = ErrMissing
	case 1146, 1054:
		f.kind = ErrSchema
	case 1040, 1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1203, 1226, 1317, 1927, 2006, 2013:
		f.kind = ErrUnavailable
	case 1665, 1772: // binlog_format STATEMENT with READ COMMITTED
		f.kind = ErrUnsupported
		f.cause = fmt.Errorf("binlog_format=STATEMENT forbids READ COMMITTED, set ROW or MIXED: %w", err)
	}
	return f
}
