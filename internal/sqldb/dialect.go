package sqldb

// Dialect names the SQL a database speaks. MySQL and MariaDB are one dialect: what is written for it runs on both.
type Dialect uint8

// Dialects.
const (
	SQLite Dialect = iota + 1
	Postgres
	MySQL
)

// String returns the dialect's name, which is also that of its folders of overrides and migrations.
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "sqlite"
	case Postgres:
		return "postgres"
	case MySQL:
		return "mysql"
	}
	return "unknown"
}

// now returns an expression for the server's clock in unix microseconds, evaluated once a statement so that an index can be
// searched with it; SQLite has none and binds this machine's clock, which is its server's.
func (d Dialect) now() string {
	switch d {
	case Postgres:
		return "(SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"
	case MySQL:
		return "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"
	}
	return "?"
}
