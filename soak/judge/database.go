package judge

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"
)

// DB is the judge's own way into the crawler's database: plain SQL that every engine understands.
type DB struct {
	db *sql.DB
}

// OpenDB opens the database of a DSN in the forms of DEEPCRAWL_DB. It does not touch the database yet.
func OpenDB(dsn string) (*DB, error) {
	scheme, rest, _ := strings.Cut(dsn, ":")
	var driver, name string
	switch scheme {
	case "sqlite":
		driver = "sqlite"
		name = "file:" + strings.TrimPrefix(rest, "//") + "?mode=ro&_pragma=busy_timeout(5000)"
	case "postgres", "postgresql", "pg":
		driver, name = "pgx", "postgres:"+rest
	case "mysql", "mariadb":
		u, err := url.Parse(dsn)
		if err != nil {
			return nil, fmt.Errorf("judge: address of the database: %w", err)
		}
		cfg := mysql.NewConfig()
		cfg.User = u.User.Username()
		cfg.Passwd, _ = u.User.Password()
		cfg.Net, cfg.Addr, cfg.DBName = "tcp", u.Host, strings.Trim(u.Path, "/")
		if u.Port() == "" {
			cfg.Addr = u.Hostname() + ":3306"
		}
		if socket := u.Query().Get("socket"); socket != "" {
			cfg.Net, cfg.Addr = "unix", socket
		}
		cfg.TLSConfig = u.Query().Get("tls")
		cfg.Logger = &mysql.NopLogger{} // a server that is down is what the soak is about
		driver, name = "mysql", cfg.FormatDSN()
	default:
		return nil, fmt.Errorf("judge: unknown database %q", scheme)
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		return nil, fmt.Errorf("judge: open the database: %w", err)
	}
	db.SetMaxOpenConns(2)
	return &DB{db}, nil
}

// Close closes the connections.
func (d *DB) Close() error { return d.db.Close() }

// rows runs a query without arguments and hands each row to scan.
func (d *DB) rows(ctx context.Context, query string, scan func(*sql.Rows) error) error {
	rows, err := d.db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("judge: %s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("judge: %s: %w", query, err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("judge: %s: %w", query, err)
	}
	return nil
}

// StoredRun is a run as the database ends with it.
type StoredRun struct {
	ID                    int64
	Tenant, State, Reason string
	URLs                  map[string]StoredURL // by URL
	Repeated              []string             // URLs with more than one row
}

// StoredURL says in which tables a URL has rows.
type StoredURL struct {
	Queued, Claimed, Pages int
	State                  int // of its page: 4 fetched, 5 failed, 6 excluded
	Status, Attempts       int
	Reason                 string
}

// Terminal states of a page row.
const (
	stateFetched  = 4
	stateFailed   = 5
	stateExcluded = 6
)

// Runs reads every run with all of its URLs, in one snapshot where the engine gives one.
func (d *DB) Runs(ctx context.Context) (map[int64]*StoredRun, error) {
	runs := map[int64]*StoredRun{}
	err := d.rows(ctx, "SELECT id, tenant, state, reason FROM run", func(r *sql.Rows) error {
		var run StoredRun
		run.URLs = map[string]StoredURL{}
		err := r.Scan(&run.ID, &run.Tenant, &run.State, &run.Reason)
		runs[run.ID] = &run
		return err
	})
	if err != nil {
		return nil, err
	}
	type urlID struct{ run, id int64 }
	names := map[urlID]string{}
	each := func(query string, add func(u *StoredURL, r *sql.Rows, run, id *int64) error) error {
		return d.rows(ctx, query, func(r *sql.Rows) error {
			var run, id int64
			var u StoredURL
			if err := add(&u, r, &run, &id); err != nil {
				return err
			}
			q, ok := runs[run]
			if !ok {
				return fmt.Errorf("run %d has rows and does not exist", run)
			}
			name, ok := names[urlID{run, id}]
			if !ok {
				name = fmt.Sprintf("row %d without a URL", id)
			}
			old := q.URLs[name]
			u.Queued, u.Claimed, u.Pages = u.Queued+old.Queued, u.Claimed+old.Claimed, u.Pages+old.Pages
			if u.State == 0 {
				u.State, u.Status, u.Attempts, u.Reason = old.State, old.Status, old.Attempts, old.Reason
			}
			q.URLs[name] = u
			return nil
		})
	}
	err = d.rows(ctx, "SELECT run_id, id, url FROM url", func(r *sql.Rows) error {
		var run, id int64
		var name string
		if err := r.Scan(&run, &id, &name); err != nil {
			return err
		}
		q, ok := runs[run]
		if !ok {
			return fmt.Errorf("run %d has URLs and does not exist", run)
		}
		if _, twice := q.URLs[name]; twice {
			q.Repeated = append(q.Repeated, name)
		}
		q.URLs[name] = StoredURL{}
		names[urlID{run, id}] = name
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = each("SELECT run_id, id FROM frontier", func(u *StoredURL, r *sql.Rows, run, id *int64) error {
		u.Queued = 1
		return r.Scan(run, id)
	})
	if err == nil {
		err = each("SELECT run_id, id FROM claim", func(u *StoredURL, r *sql.Rows, run, id *int64) error {
			u.Claimed = 1
			return r.Scan(run, id)
		})
	}
	if err == nil {
		err = each("SELECT run_id, id, state, status, attempts, reason FROM page", func(u *StoredURL, r *sql.Rows, run, id *int64) error {
			u.Pages = 1
			return r.Scan(run, id, &u.State, &u.Status, &u.Attempts, &u.Reason)
		})
	}
	return runs, err
}

// Sample is a moment of the cluster as the database shows it.
type Sample struct {
	At     time.Time
	States map[int64]string // of runs
	Tenant map[int64]string // of runs
	Seats  map[int64]int    // of runs
	Ready  int              // URLs that wait for nothing but a worker
	Mode   string           // of coordination
	Epoch  int64
}

// Sample reads the moment. Each figure is one statement, so that what it counts was so at one instant.
func (d *DB) Sample(ctx context.Context) (Sample, error) {
	s := Sample{States: map[int64]string{}, Tenant: map[int64]string{}, Seats: map[int64]int{}}
	err := d.rows(ctx, "SELECT id, tenant, state FROM run", func(r *sql.Rows) error {
		var id int64
		var tenant, state string
		if err := r.Scan(&id, &tenant, &state); err != nil {
			return err
		}
		s.States[id], s.Tenant[id] = state, tenant
		return nil
	})
	if err == nil {
		err = d.rows(ctx, "SELECT run_id, COUNT(*) FROM seat GROUP BY run_id", func(r *sql.Rows) error {
			var id int64
			var n int
			if err := r.Scan(&id, &n); err != nil {
				return err
			}
			s.Seats[id] = n
			return nil
		})
	}
	if err == nil {
		// A delayed row's position is the time when it is due, in microseconds; that of a queued one is small.
		err = d.rows(ctx, "SELECT run_id, COUNT(*) FROM frontier WHERE pos < 1000000000000 GROUP BY run_id", func(r *sql.Rows) error {
			var id int64
			var n int
			if err := r.Scan(&id, &n); err != nil {
				return err
			}
			if s.States[id] == "crawling" {
				s.Ready += n
			}
			return nil
		})
	}
	if err == nil {
		err = d.rows(ctx, "SELECT mode, epoch FROM coord_authority", func(r *sql.Rows) error { return r.Scan(&s.Mode, &s.Epoch) })
	}
	s.At = time.Now()
	return s, err
}

// Over reports whether every run has ended.
func (s Sample) Over() bool {
	for _, st := range s.States {
		switch st {
		case "done", "failed", "cancelled":
		default:
			return false
		}
	}
	return len(s.States) > 0
}

// Acts reads what the leaders did, in the order in which it was recorded.
func (d *DB) Acts(ctx context.Context) ([]Act, error) {
	var acts []Act
	err := d.rows(ctx, "SELECT owner, epoch, number, duty, at FROM leader_act WHERE name = 'leader' ORDER BY id", func(r *sql.Rows) error {
		var a Act
		var at int64
		err := r.Scan(&a.Node, &a.Epoch, &a.N, &a.What, &at)
		a.At = time.UnixMicro(at)
		acts = append(acts, a)
		return err
	})
	return acts, err
}
