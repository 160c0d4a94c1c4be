package config

import (
	"strings"
)

// Setting is one row of the table.
type Setting struct {
	Key     string // environment variable, and the key in a settings file
	Default string // as a user would write it; empty: none
	// DefaultText describes a default that is not a value ("generated"); shown instead of Default where set.
	DefaultText string
	Meaning     string // one line, without a full stop
	Allowed     string // what may stand there; part of the error for anything else
	Older       string // the name it had before, read where Key is set nowhere
	// Secret settings may be given as Key_FILE, and their passwords are masked wherever they are shown.
	Secret bool
	// Bool settings are switches on the command line.
	Bool bool

	check func(value string) error // nil: anything; the error says what is wrong, not what is allowed
}

// Keys of the settings.
const (
	KeyDB           = "DEEPCRAWL_DB"
	KeyNodeID       = "DEEPCRAWL_NODE_ID"
	KeyCoord        = "DEEPCRAWL_COORD"
	KeyRedisURL     = "DEEPCRAWL_REDIS_URL"
	KeyRedisPrefix  = "DEEPCRAWL_REDIS_PREFIX"
	KeyHostInflight = "DEEPCRAWL_HOST_INFLIGHT"
	KeyWorkers      = "DEEPCRAWL_WORKERS"
	KeyRunWorkers   = "DEEPCRAWL_RUN_WORKERS"
	KeyReclaim      = "DEEPCRAWL_RECLAIM"
	KeyUserAgent    = "DEEPCRAWL_USER_AGENT"
	KeyContact      = "DEEPCRAWL_CONTACT"
	KeyAllowPrivate = "DEEPCRAWL_ALLOW_PRIVATE"
	KeyBindAddr     = "DEEPCRAWL_BIND_ADDR"
	KeySeenMemory   = "DEEPCRAWL_SEEN_MEMORY"
	KeyListen       = "DEEPCRAWL_LISTEN"
	KeyMetricsAddr  = "DEEPCRAWL_METRICS_ADDR"
	KeyLog          = "DEEPCRAWL_LOG"
	KeyLogFormat    = "DEEPCRAWL_LOG_FORMAT"
	KeyLogFile      = "DEEPCRAWL_LOG_FILE"
	KeyRetention    = "DEEPCRAWL_RETENTION"
)

const prefix = "DEEPCRAWL_"

// Product is the product name of the default user agent, which is what robots.txt groups are matched with.
const Product = "DeepcrawlCluster"

// Table returns the settings in the order of the documentation.
func Table() []Setting {
	return []Setting{
		{
			Key: KeyDB, Default: "sqlite:deepcrawl.db", Secret: true, check: checkDB,
			Meaning: "database; `crawl` creates a missing SQLite file, other commands never do",
			Allowed: "sqlite:PATH, postgres://USER:PASSWORD@HOST:PORT/DB or mysql://USER:PASSWORD@HOST:PORT/DB",
		},
		{
			Key: KeyNodeID, DefaultText: "generated", Older: "SEOMASTER_NODE_ID", check: checkNodeID,
			Meaning: "name of this node; of two live nodes with one name the newer refuses to work",
			Allowed: "1 to 16 letters, digits and hyphens",
		},
		{
			Key: KeyCoord, Default: "db", Older: "SEOMASTER_COORD", check: oneOf("db", "redis"),
			Meaning: "coordinator; redis falls back to the database and returns by itself",
			Allowed: "db or redis",
		},
		{
			Key: KeyRedisURL, Secret: true, Older: "SEOMASTER_REDIS_URL", check: checkRedisURL,
			Meaning: "Redis server, needed when the coordinator is redis",
			Allowed: "redis://:PASSWORD@HOST:PORT/N or rediss://...[?tls-ca=FILE]",
		},
		{
			Key: KeyRedisPrefix, Default: "deepcrawl:", Older: "SEOMASTER_REDIS_PREFIX", check: checkRedisPrefix,
			Meaning: "start of every Redis key",
			Allowed: "1 to 64 printable ASCII characters without spaces and braces",
		},
		{
			Key: KeyHostInflight, Default: "24", Older: "SEOMASTER_DEEP_HOST_INFLIGHT", check: number(1, 1000),
			Meaning: "requests in flight to one host, over all nodes, runs and tenants; where nodes differ the smallest wins",
			Allowed: "a number from 1 to 1000",
		},
		{
			Key: KeyWorkers, Default: "1", Older: "SEOMASTER_DEEP_WORKERS", check: number(1, 1000),
			Meaning: "workers on this node",
			Allowed: "a number from 1 to 1000",
		},
		{
			Key: KeyRunWorkers, DefaultText: "`" + KeyWorkers + "`", Older: "SEOMASTER_DEEP_RUN_WORKERS", check: number(1, 100000),
			Meaning: "workers on one run over all nodes; with tariff and profile the smallest wins",
			Allowed: "a number from 1 to 100000",
		},
		{
			Key: KeyReclaim, Default: "120", Older: "SEOMASTER_DEEP_RECLAIM", check: number(minReclaim(), 86400),
			Meaning: "seconds of silence after which a session counts as dead and its URLs return",
			Allowed: allowedReclaim(),
		},
		{
			Key: KeyUserAgent, DefaultText: "`" + Product + "/VERSION (+CONTACT)`", check: checkUserAgent,
			Meaning: "User-Agent of requests; the product name before `/` is what robots.txt is matched with",
			Allowed: "printable ASCII that starts with a product name of letters, - and _, followed by /VERSION; the name must not be deepcrawl, another company's crawler",
		},
		{
			Key: KeyContact, check: checkContact,
			Meaning: "page or address where site owners reach you; part of the default user agent",
			Allowed: "an http(s) URL or a mail address",
		},
		{
			Key: KeyAllowPrivate, Default: "false", Bool: true, check: checkBool,
			Meaning: "allow requests to loopback, private and link-local addresses",
			Allowed: "true or false",
		},
		{
			Key: KeyBindAddr, DefaultText: "the system's choice", check: checkIP,
			Meaning: "source address of requests",
			Allowed: "an IP address of this machine",
		},
		{
			Key: KeySeenMemory, Default: "256MB", check: checkSize,
			Meaning: "memory for the set of known URLs (some 40 bytes each); beyond it the database decides",
			Allowed: "a size from 1MB to 64GB, such as 256MB",
		},
		{
			Key: KeyListen, Default: "127.0.0.1:8090", check: checkListen,
			Meaning: "address of `serve`",
			Allowed: "HOST:PORT",
		},
		{
			Key: KeyMetricsAddr, DefaultText: "not at all", check: checkListen,
			Meaning: "address at which `node` answers /metrics and /debug/pprof/; keep it private",
			Allowed: "HOST:PORT",
		},
		{
			Key: KeyLog, Default: "info", check: oneOf("debug", "info", "warn", "error"),
			Meaning: "least level of what is logged",
			Allowed: "debug, info, warn or error",
		},
		{
			Key: KeyLogFormat, Default: "text", check: oneOf("text", "json"),
			Meaning: "form of log lines",
			Allowed: "text or json",
		},
		{
			Key: KeyLogFile, DefaultText: "standard error",
			Meaning: "file that log lines are appended to",
			Allowed: "a path",
		},
		{
			Key: KeyRetention, Default: "90d", check: checkRetention,
			Meaning: "age at which finished runs are pruned by the leader, in small pieces",
			Allowed: "days or hours such as 90d or 12h, or off",
		},
	}
}

// Flag is the setting's command-line flag, without dashes: DEEPCRAWL_HOST_INFLIGHT is host-inflight.
func (s Setting) Flag() string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(s.Key, prefix)), "_", "-")
}

// ShownDefault is the default for people.
func (s Setting) ShownDefault() string {
	switch {
	case s.DefaultText != "":
		return s.DefaultText
	case s.Default != "":
		return "`" + s.Default + "`"
	}
	return "none"
}
