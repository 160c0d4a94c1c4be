package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error is a mistake in the settings: one line that names the setting and what is allowed.
type Error struct {
	Name string // as the user wrote it: a flag, a variable, a line of a file
	Msg  string
}

func (e *Error) Error() string { return e.Name + ": " + e.Msg }

// DefaultFiles are looked for, in this order, when no settings file is named.
func DefaultFiles() []string { return []string{"deepcrawl.env", "/etc/deepcrawl/deepcrawl.env"} }

// Input is where settings come from.
type Input struct {
	Flags    map[string]string // by Key: only those given
	Environ  []string          // KEY=VALUE, as os.Environ returns it
	File     string            // --config; empty: the first of Files that exists
	Files    []string          // see DefaultFiles
	ReadFile func(name string) ([]byte, error)
	Version  string // of this program, for the default user agent
}

// Value is a setting in force and where it came from.
type Value struct {
	Setting
	Text   string // as given, or the default; not masked
	Source string // "default", "flag --db", "environment", "deepcrawl.env:3", "environment, older name SEOMASTER_NODE_ID"
	Given  bool   // by the user, rather than a default
}

// Shown is the value for people: masked, with words for a default that is no value.
func (v Value) Shown() string {
	switch {
	case v.Text == "" && v.DefaultText != "":
		return strings.Trim(v.DefaultText, "`")
	case v.Secret:
		return Mask(v.Text)
	}
	return v.Text
}

// Config is the settings in force.
type Config struct {
	DB           string
	NodeID       string // empty: to be generated
	Coord        string // "db" or "redis"
	RedisURL     string
	RedisPrefix  string
	HostInflight int
	Workers      int
	RunWorkers   int
	Reclaim      time.Duration
	UserAgent    string
	AllowPrivate bool
	BindAddr     netip.Addr // zero: the system's choice
	SeenMemory   int64      // bytes
	Listen       string
	MetricsAddr  string // "" for none
	LogLevel     slog.Level
	LogGiven     bool // the level was asked for
	LogFormat    string
	LogFile      string        // empty: standard error
	Retention    time.Duration // 0: off

	Values   []Value  // one for each Setting of Table
	Warnings []string // unknown keys; one line each
	File     string   // the settings file that was read, empty none
}

// Load reads the settings. A mistake is an *Error; a file that cannot be read is one too.
func Load(in Input) (*Config, error) {
	env := layer{name: "environment", values: map[string]entry{}}
	for _, kv := range in.Environ {
		if k, v, ok := strings.Cut(kv, "="); ok && v != "" {
			env.values[k] = entry{text: v, where: k, source: "environment"}
		}
	}
	file, err := readFile(in)
	if err != nil {
		return nil, err
	}
	l := loader{in: in, env: env, file: file}
	c := &Config{File: file.name}
	byKey := map[string]Value{}
	for _, s := range Table() {
		v, err := l.value(s)
		if err != nil {
			return nil, err
		}
		c.Values = append(c.Values, v)
		byKey[s.Key] = v
	}
	if err := l.refuseOldDB(byKey[KeyDB]); err != nil {
		return nil, err
	}
	c.Warnings = append(unknown(env), unknown(file)...)
	c.fill(byKey, in.Version)
	if c.Coord == "redis" && c.RedisURL == "" {
		return nil, &Error{KeyRedisURL, "not set, but " + KeyCoord + " is redis; allowed: " + setting(KeyRedisURL).Allowed}
	}
	return c, nil
}

// entry is one KEY=VALUE.
type entry struct{ text, where, source string }

// layer is the environment or a settings file.
type layer struct {
	name   string // of the file; empty where none was read
	values map[string]entry
}

type loader struct {
	in        Input
	env, file layer
}

// value finds a setting: flag, environment, file, then its older name in environment and file, then the default.
func (l loader) value(s Setting) (Value, error) {
	e := entry{text: s.Default, source: "default"}
	given := true
	if text, ok := l.in.Flags[s.Key]; ok {
		e = entry{text: text, where: "--" + s.Flag(), source: "flag --" + s.Flag()}
	} else if found, ok, err := l.lookup(s, s.Key, ""); err != nil {
		return Value{}, err
	} else if ok {
		e = found
	} else if found, ok, err := l.lookup(s, s.Older, "older name "+s.Older); err != nil {
		return Value{}, err
	} else if ok {
		e = found
	} else {
		given = false
	}
	if given {
		if err := s.Check(e.where, e.text); err != nil {
			return Value{}, err
		}
	}
	return Value{Setting: s, Text: e.text, Source: e.source, Given: given}, nil
}

// Check reports whether value may stand for the setting; name is what the error calls it.
func (s Setting) Check(name, value string) error {
	if value == "" {
		return &Error{name, "empty; allowed: " + s.Allowed}
	}
	if s.check == nil {
		return nil
	}
	if err := s.check(value); err != nil {
		shown := value
		if s.Secret {
			shown = Mask(value)
		}
		return &Error{name, fmt.Sprintf("%q: %v; allowed: %s", shown, Mask(err.Error()), s.Allowed)}
	}
	return nil
}

func (l loader) lookup(s Setting, key, note string) (entry, bool, error) {
	if key == "" {
		return entry{}, false, nil
	}
	for _, layer := range []layer{l.env, l.file} {
		e, ok := layer.values[key]
		if f, fromFile := layer.values[key+"_FILE"]; fromFile && s.Secret {
			if ok {
				return entry{}, false, &Error{f.where, "set together with " + key + "; allowed: one of the two"}
			}
			text, err := l.in.ReadFile(f.text)
			if err != nil {
				return entry{}, false, &Error{f.where, "cannot read the secret: " + plain(err)}
			}
			e, ok = entry{strings.TrimSpace(string(text)), f.where, f.source + ", file " + f.text}, true
		}
		if ok {
			if note != "" {
				e.source += ", " + note
			}
			return e, true, nil
		}
	}
	return entry{}, false, nil
}

// refuseOldDB stops the operator who has moved all settings but this one: a new empty file would be crawled into.
func (l loader) refuseOldDB(db Value) error {
	if db.Given {
		return nil
	}
	for _, layer := range []layer{l.env, l.file} {
		for _, k := range sortedKeys(layer.values) {
			if strings.HasPrefix(k, "SEOMASTER_DB_") {
				return &Error{layer.values[k].where, "no longer read; set " + KeyDB + " instead: " + db.Allowed}
			}
		}
	}
	return nil
}

// fill converts checked texts; conversions cannot fail after the checks.
func (c *Config) fill(v map[string]Value, version string) {
	text := func(key string) string { return v[key].Text }
	num := func(key string) int {
		n, _ := strconv.Atoi(text(key))
		return n
	}
	c.DB, c.NodeID, c.Coord = text(KeyDB), text(KeyNodeID), text(KeyCoord)
	c.RedisURL, c.RedisPrefix = text(KeyRedisURL), text(KeyRedisPrefix)
	c.HostInflight, c.Workers, c.RunWorkers = num(KeyHostInflight), num(KeyWorkers), num(KeyRunWorkers)
	if c.RunWorkers == 0 {
		c.RunWorkers = c.Workers
	}
	c.Reclaim = time.Duration(num(KeyReclaim)) * time.Second
	c.AllowPrivate, _ = parseBool(text(KeyAllowPrivate))
	c.BindAddr, _ = netip.ParseAddr(text(KeyBindAddr))
	c.SeenMemory, _ = parseSize(text(KeySeenMemory))
	c.Listen = text(KeyListen)
	c.MetricsAddr = text(KeyMetricsAddr)
	_ = c.LogLevel.UnmarshalText([]byte(text(KeyLog)))
	c.LogGiven = v[KeyLog].Given
	c.LogFormat, c.LogFile = text(KeyLogFormat), text(KeyLogFile)
	c.Retention, _ = parseRetention(text(KeyRetention))
	if c.UserAgent = text(KeyUserAgent); c.UserAgent == "" {
		c.UserAgent = DefaultUserAgent(version, text(KeyContact))
	}
	for i := range c.Values {
		switch c.Values[i].Key {
		case KeyUserAgent:
			c.Values[i].Text = c.UserAgent
		case KeyRunWorkers:
			c.Values[i].Text = strconv.Itoa(c.RunWorkers)
		}
	}
}

// DefaultUserAgent names this program and, where known, whom to ask about it.
func DefaultUserAgent(version, contact string) string {
	ua := Product + "/" + version
	if contact != "" {
		ua += " (+" + contact + ")"
	}
	return ua
}

func setting(key string) Setting {
	table := Table()
	return table[slices.IndexFunc(table, func(s Setting) bool { return s.Key == key })]
}

// plain is the cause of a file error without the path, which the caller has named already.
func plain(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Path + ": " + pe.Err.Error()
	}
	return err.Error()
}
