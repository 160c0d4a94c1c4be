package sqldb

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// maxText bounds the statements sent at once: max_allowed_packet is 16 MB on MariaDB, 64 MB on MySQL, and may be lowered.
const maxText = 2 << 20

type mysqlDB struct {
	rw, ro *sql.DB
	cfg    *mysql.Config
	limit  time.Duration
}

func openMySQL(ctx context.Context, a address, opt *Options) (backend, error) {
	cfg, err := mysqlConfig(a.dsn)
	if err != nil {
		return nil, err
	}
	if opt.RoundTrip != nil {
		cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			var d net.Dialer
			c, err := d.DialContext(ctx, network, addr)
			return countTrips(c, opt.RoundTrip), err
		}
	}
	base, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, badDSN("%v", err)
	}
	c := &mysqlConnector{Connector: base, opt: opt}
	db := &mysqlDB{rw: sql.OpenDB(c), ro: sql.OpenDB(c), cfg: cfg, limit: opt.StatementTimeout + 5*time.Second}
	for h, n := range map[*sql.DB]int{db.rw: opt.Writers, db.ro: opt.Readers} {
		h.SetMaxOpenConns(n)
		h.SetMaxIdleConns(n)
		h.SetConnMaxIdleTime(5 * time.Minute)
	}
	if err := db.check(ctx); err != nil {
		db.close()
		return nil, translate(err)
	}
	return db, nil
}

// mysqlConfig turns a URL into the driver's configuration. Parameters it does not know are refused: a misspelt tls= must not
// pass as no TLS.
func mysqlConfig(dsn string) (*mysql.Config, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, badDSN("it does not parse")
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.DBName = strings.Trim(u.Path, "/")
	cfg.Net, cfg.Addr = "tcp", u.Host
	if u.Host == "" {
		cfg.Addr = "127.0.0.1:3306"
	} else if u.Port() == "" {
		cfg.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	cfg.MultiStatements = true
	cfg.ClientFoundRows = true
	cfg.Timeout = 10 * time.Second
	cfg.Logger = &mysql.NopLogger{}
	if err := cfg.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, err
	}
	var t tlsFiles
	for key, vals := range u.Query() {
		v := vals[len(vals)-1]
		switch key {
		case "socket":
			cfg.Net, cfg.Addr = "unix", v
		case "tls":
			if v != "true" && v != "false" && v != "skip-verify" && v != "preferred" {
				return nil, badDSN("tls=%s (true, false, skip-verify or preferred)", cutTo(v, 20))
			}
			cfg.TLSConfig = v
		case "tls-ca":
			t.ca = v
		case "tls-cert":
			t.cert = v
		case "tls-key":
			t.key = v
		case "timeout":
			if cfg.Timeout, err = time.ParseDuration(v); err != nil {
				return nil, badDSN("timeout=%s is no duration", cutTo(v, 20))
			}
		default:
			return nil, badDSN("unknown parameter %s of a MySQL address", cutTo(key, 20))
		}
	}
	return cfg, t.apply(cfg, u.Hostname())
}

type tlsFiles struct{ ca, cert, key string }

func (t tlsFiles) apply(cfg *mysql.Config, host string) error {
	if t == (tlsFiles{}) {
		return nil
	}
	c := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, InsecureSkipVerify: cfg.TLSConfig == "skip-verify"}
	if t.ca != "" {
		pem, err := os.ReadFile(t.ca)
		if err != nil {
			return badDSN("tls-ca: %v", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return badDSN("tls-ca: %s holds no certificate", t.ca)
		}
	}
	if t.cert != "" || t.key != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return badDSN("tls-cert and tls-key: %v", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	cfg.TLS, cfg.TLSConfig = c, ""
	return nil
}

// mysqlConnector sets up each session.
type mysqlConnector struct {
	driver.Connector
	opt *Options
}

func (c *mysqlConnector) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	// The mode is ours: escaping relies on backslashes, and a value that does not fit must be an error.
	set := "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'" +
		", transaction_isolation = 'READ-COMMITTED', innodb_lock_wait_timeout = 10, wait_timeout = 28800"
	version, err := mysqlVersion(ctx, dc)
	if err != nil {
		dc.Close()
		return nil, err
	}
	if version.maria {
		set = strings.Replace(set, "transaction_isolation", "tx_isolation", 1) // its name until MariaDB 11.1, still taken there
		set += fmt.Sprintf(", max_recursive_iterations = 4294967295, max_statement_time = %d, idle_transaction_timeout = %d",
			max(1, int(c.opt.StatementTimeout.Seconds())), max(1, int(c.opt.IdleTimeout.Seconds())))
	} else {
		set += fmt.Sprintf(", cte_max_recursion_depth = 4294967295, max_execution_time = %d", c.opt.StatementTimeout.Milliseconds())
	}
	if _, err := dc.(driver.ExecerContext).ExecContext(ctx, set, nil); err != nil {
		dc.Close()
		return nil, err
	}
	return dc, nil
}

type mysqlVersionInfo struct {
	maria bool
	text  string
	num   int // 10.11.6: 101106
}

func mysqlVersion(ctx context.Context, dc driver.Conn) (v mysqlVersionInfo, err error) {
	vals, err := mysqlOne(ctx, dc, "SELECT VERSION()")
	if err != nil {
		return v, err
	}
	v.text = vals[0]
	v.maria = strings.Contains(strings.ToLower(v.text), "mariadb")
	text := strings.TrimPrefix(v.text, "5.5.5-") // what old MariaDB servers put in front for replication's sake
	num, _, _ := strings.Cut(text, "-")
	for i, f := range strings.SplitN(num, ".", 3) {
		n, _ := strconv.Atoi(f)
		v.num += n * [...]int{10000, 100, 1}[i]
	}
	return v, nil
}

// mysqlOne returns the first row of a query as text.
func mysqlOne(ctx context.Context, dc driver.Conn, query string) ([]string, error) {
	rows, err := dc.(driver.QueryerContext).QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	r := Row{vals: make([]driver.Value, len(rows.Columns()))}
	if err := rows.Next(r.vals); err != nil {
		return nil, err
	}
	out := make([]string, len(r.vals))
	for i := range out {
		out[i] = r.Text(i)
	}
	return out, nil
}

func (db *mysqlDB) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	c, err := db.rw.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Raw(func(dc any) error {
		conn := dc.(driver.Conn)
		v, err := mysqlVersion(ctx, conn)
		if err != nil {
			return err
		}
		if v.maria && v.num < 100600 {
			return &fault{kind: ErrTooOld, cause: fmt.Errorf("MariaDB %s, 10.6 or newer is needed", v.text)}
		}
		if !v.maria && v.num < 80000 {
			return &fault{kind: ErrTooOld, cause: fmt.Errorf("MySQL %s, 8.0 or newer is needed", v.text)}
		}
		vals, err := mysqlOne(ctx, conn, "SELECT @@log_bin, @@binlog_format, @@read_only, @@max_allowed_packet")
		if err != nil {
			return err
		}
		packet, _ := strconv.Atoi(vals[3])
		switch {
		case vals[0] == "1" && strings.EqualFold(vals[1], "STATEMENT"):
			return &fault{kind: ErrUnsupported, cause: errors.New("binlog_format is STATEMENT, which forbids READ COMMITTED and SKIP LOCKED; set ROW or MIXED")}
		case vals[2] == "1":
			return &fault{kind: ErrReadOnly, cause: errors.New("the server is read_only, the primary is needed")}
		case packet < 2*maxText:
			return &fault{kind: ErrUnsupported, cause: fmt.Errorf("max_allowed_packet is %d, at least %d is needed", packet, 2*maxText)}
		}
		galera, err := mysqlOne(ctx, conn, "SELECT COUNT(*) FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_CLUSTER_SIZE' AND VARIABLE_VALUE > 0")
		if v.maria && err == nil && galera[0] != "0" {
			return &fault{kind: ErrUnsupported, cause: errors.New("the server is part of a Galera cluster, which does not keep row locks over its nodes")}
		}
		return nil
	})
}

func (db *mysqlDB) write(ctx context.Context) (session, error) { return db.session(ctx, db.rw, false) }
func (db *mysqlDB) read(ctx context.Context) (session, error)  { return db.session(ctx, db.ro, true) }

func (db *mysqlDB) session(ctx context.Context, h *sql.DB, view bool) (session, error) {
	c, err := h.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &mysqlSession{c: c, limit: db.limit, view: view}, nil
}

func (db *mysqlDB) migrator(context.Context) (*sql.DB, func(), error) {
	cfg := db.cfg.Clone()
	cfg.MultiStatements = false
	base, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, nil, err
	}
	opt := Options{StatementTimeout: time.Hour}
	opt.defaults()
	h := sql.OpenDB(&mysqlConnector{Connector: base, opt: &opt})
	return h, func() { h.Close() }, nil
}

func (db *mysqlDB) identity(ctx context.Context) (durable, life string, err error) {
	c, err := db.ro.Conn(ctx)
	if err != nil {
		return "", "", err
	}
	defer c.Close()
	err = c.Raw(func(dc any) error {
		conn := dc.(driver.Conn)
		v, err := mysqlVersion(ctx, conn)
		if err != nil {
			return err
		}
		id := "@@server_uuid"
		if v.maria {
			id = "CONCAT(@@server_id, '/', @@hostname, '/', @@datadir)"
			if v.num >= 101100 { // server_uid came with MariaDB 10.11 and the releases of that day
				if vals, err := mysqlOne(ctx, conn, "SELECT @@server_uid"); err == nil && vals[0] != "" {
					id = "@@server_uid"
				}
			}
		}
		vals, err := mysqlOne(ctx, conn, "SELECT CONCAT("+id+", '/', DATABASE()), CAST(UNIX_TIMESTAMP(NOW(6)) AS SIGNED)")
		if err != nil {
			return err
		}
		rows, err := mysqlOne(ctx, conn, "SHOW GLOBAL STATUS LIKE 'Uptime'")
		if err != nil {
			return err
		}
		now, _ := strconv.ParseInt(vals[1], 10, 64)
		up, _ := strconv.ParseInt(rows[1], 10, 64)
		durable, life = vals[0], strconv.FormatInt((now-up+1)/4*4, 10) // both count whole seconds: rounded to hold still
		return nil
	})
	return durable, life, err
}

func (db *mysqlDB) compact(context.Context) error { return nil }

func (db *mysqlDB) close() error { return errors.Join(db.rw.Close(), db.ro.Close()) }

type mysqlSession struct {
	c     *sql.Conn
	limit time.Duration
	view  bool
	begun bool
	dead  bool
	buf   []byte
}

func (s *mysqlSession) eager() bool { return false }

func (s *mysqlSession) flush(ctx context.Context, ops []op, last bool) (unknown bool, err error) {
	if len(ops) == 0 && !s.begun {
		return false, nil
	}
	ctx, cancel := detach(ctx, s.limit)
	defer cancel()
	text := s.buf[:0]
	if !s.begun && s.view {
		text = append(text, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"...)
	} else if !s.begun {
		text = append(text, "START TRANSACTION"...)
	}
	s.begun = true
	from := 0
	for i := range ops {
		text = ops[i].appendMySQL(text)
		if len(text) > maxText && i+1 < len(ops) { // more than one packet should hold: this much now
			if err := s.send(ctx, text, ops[from:i+1]); err != nil {
				return false, err
			}
			text, from = text[:0], i+1
		}
	}
	if last {
		if len(text) > 0 {
			text = append(text, ';')
		}
		text = append(text, "COMMIT"...)
	}
	s.buf = text
	if err = s.send(ctx, text, ops[from:]); err != nil {
		var me *mysql.MySQLError
		return last && !s.view && !errors.As(err, &me) && isNetwork(err) && !errors.Is(err, driver.ErrBadConn), err
	}
	s.begun = !last
	return false, nil
}

// send runs a text of statements and gives their results to ops, in order. Only statements with columns show as results.
func (s *mysqlSession) send(ctx context.Context, text []byte, ops []op) error {
	err := s.c.Raw(func(dc any) error {
		rows, err := dc.(driver.QueryerContext).QueryContext(ctx, string(text), nil)
		if err != nil {
			s.dead = errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
			return err
		}
		defer rows.Close()
		return mysqlResults(rows.(driver.RowsNextResultSet), ops)
	})
	return err
}

func mysqlResults(rows driver.RowsNextResultSet, ops []op) error {
	first := true
	for i := range ops {
		o := &ops[i]
		for range o.results() {
			if !first {
				if err := rows.NextResultSet(); err != nil {
					return fmt.Errorf("%s: %w", o.st.name, err)
				}
			}
			first = false
			each := o.each
			if each == nil {
				each = func(r *Row) error { o.count.N += r.Int(0); return nil }
			}
			r := Row{vals: make([]driver.Value, len(rows.Columns()))}
			for {
				err := rows.Next(r.vals)
				if err == io.EOF {
					break
				}
				if err == nil {
					err = each(&r)
				}
				if err == nil {
					err = r.err
				}
				if err != nil {
					return fmt.Errorf("%s: %w", o.st.name, err)
				}
			}
		}
	}
	// What is left has no columns; an error among it, or of the COMMIT, shows here.
	for {
		err := rows.NextResultSet()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *mysqlSession) close(ok bool) {
	if !ok && s.begun && !s.dead {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		err := s.c.Raw(func(dc any) error {
			_, err := dc.(driver.ExecerContext).ExecContext(ctx, "ROLLBACK", nil)
			if err != nil {
				return driver.ErrBadConn // drops the connection, and the server rolls back
			}
			return nil
		})
		_ = err
	}
	_ = s.c.Close()
}
