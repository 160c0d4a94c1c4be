package config_test

import (
	"errors"
	"flag"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"deepcrawl/internal/config"
)

var update = flag.Bool("update", false, "write the generated page")

// files is a folder of settings files by name.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func load(in config.Input, f files) (*config.Config, error) {
	in.ReadFile = f.read
	if in.Files == nil {
		in.Files = config.DefaultFiles()
	}
	if in.Version == "" {
		in.Version = "1.2.3"
	}
	return config.Load(in)
}

func value(c *config.Config, key string) config.Value {
	for _, v := range c.Values {
		if v.Key == key {
			return v
		}
	}
	return config.Value{}
}

func TestDefaults(t *testing.T) {
	t.Run("are those of the design", func(t *testing.T) {
		c, err := load(config.Input{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.DB != "sqlite:deepcrawl.db" || c.Coord != "db" || c.HostInflight != 24 || c.Workers != 1 || c.RunWorkers != 1 ||
			c.Reclaim != 120*time.Second || c.AllowPrivate || c.Listen != "127.0.0.1:8090" || c.LogLevel != slog.LevelInfo ||
			c.LogFormat != "text" || c.Retention != 90*24*time.Hour || c.RedisPrefix != "deepcrawl:" || c.BindAddr.IsValid() {
			t.Errorf("got %+v", c)
		}
		if c.UserAgent != "DeepcrawlCluster/1.2.3" {
			t.Errorf("got user agent %q", c.UserAgent)
		}
	})
	t.Run("each passes its own check and each setting says what is allowed", func(t *testing.T) {
		seen := map[string]bool{}
		for _, s := range config.Table() {
			if s.Default != "" {
				if err := s.Check(s.Key, s.Default); err != nil {
					t.Errorf("default: %v", err)
				}
			}
			if s.Meaning == "" || s.Allowed == "" || !strings.HasPrefix(s.Key, "DEEPCRAWL_") || seen[s.Key] || seen[s.Flag()] {
				t.Errorf("row %+v", s)
			}
			seen[s.Key], seen[s.Flag()] = true, true
		}
	})
	t.Run("run workers follow workers", func(t *testing.T) {
		c, err := load(config.Input{Environ: []string{"DEEPCRAWL_WORKERS=7"}}, nil)
		if err != nil || c.RunWorkers != 7 {
			t.Errorf("got %d, %v", c.RunWorkers, err)
		}
	})
	t.Run("a contact joins the default user agent", func(t *testing.T) {
		c, err := load(config.Input{Environ: []string{"DEEPCRAWL_CONTACT=https://example.com/bot"}}, nil)
		if err != nil || c.UserAgent != "DeepcrawlCluster/1.2.3 (+https://example.com/bot)" {
			t.Errorf("got %q, %v", c.UserAgent, err)
		}
	})
}

func TestOrder(t *testing.T) {
	named := files{
		"my.env":                       "DEEPCRAWL_WORKERS=3\n",
		"deepcrawl.env":                "DEEPCRAWL_WORKERS=4\nDEEPCRAWL_LISTEN=:1\n",
		"/etc/deepcrawl/deepcrawl.env": "DEEPCRAWL_WORKERS=5\nDEEPCRAWL_HOST_INFLIGHT=9\n",
	}
	for _, c := range []struct {
		name, source string
		in           config.Input
		f            files
		want         int
	}{
		{"a flag wins", "flag --workers", config.Input{Flags: map[string]string{config.KeyWorkers: "1"}, Environ: []string{"DEEPCRAWL_WORKERS=2"}, File: "my.env"}, named, 1},
		{"then the environment", "environment", config.Input{Environ: []string{"DEEPCRAWL_WORKERS=2"}, File: "my.env"}, named, 2},
		{"then the named file", "my.env:1", config.Input{File: "my.env"}, named, 3},
		{"then the file here", "deepcrawl.env:1", config.Input{}, named, 4},
		{"then the file in /etc", "/etc/deepcrawl/deepcrawl.env:1", config.Input{}, files{"/etc/deepcrawl/deepcrawl.env": named["/etc/deepcrawl/deepcrawl.env"]}, 5},
		{"an empty variable counts as unset", "deepcrawl.env:1", config.Input{Environ: []string{"DEEPCRAWL_WORKERS="}}, named, 4},
		{"an older name counts where the new one is nowhere", "environment, older name SEOMASTER_DEEP_WORKERS", config.Input{Environ: []string{"SEOMASTER_DEEP_WORKERS=6"}}, nil, 6},
		{"an older name never beats the new one, wherever that stands", "deepcrawl.env:1", config.Input{Environ: []string{"SEOMASTER_DEEP_WORKERS=6"}}, named, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := load(c.in, c.f)
			if err != nil {
				t.Fatal(err)
			}
			if got.Workers != c.want || value(got, config.KeyWorkers).Source != c.source {
				t.Errorf("got %d from %q, want %d from %q", got.Workers, value(got, config.KeyWorkers).Source, c.want, c.source)
			}
		})
	}
	t.Run("only one file is read", func(t *testing.T) {
		c, err := load(config.Input{}, named)
		if err != nil || c.HostInflight != 24 || c.Listen != ":1" {
			t.Errorf("got %d and %q, %v", c.HostInflight, c.Listen, err)
		}
	})
	t.Run("every older name of the design is read", func(t *testing.T) {
		c, err := load(config.Input{Environ: []string{
			"SEOMASTER_NODE_ID=a-1", "SEOMASTER_COORD=redis", "SEOMASTER_REDIS_URL=redis://h:1/2", "SEOMASTER_REDIS_PREFIX=p:",
			"SEOMASTER_DEEP_HOST_INFLIGHT=11", "SEOMASTER_DEEP_WORKERS=12", "SEOMASTER_DEEP_RUN_WORKERS=13", "SEOMASTER_DEEP_RECLAIM=140",
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.NodeID != "a-1" || c.Coord != "redis" || c.RedisURL != "redis://h:1/2" || c.RedisPrefix != "p:" || c.HostInflight != 11 ||
			c.Workers != 12 || c.RunWorkers != 13 || c.Reclaim != 140*time.Second {
			t.Errorf("got %+v", c)
		}
	})
}

func TestFile(t *testing.T) {
	t.Run("comments, quotes, export and a BOM are understood, nothing is expanded", func(t *testing.T) {
		c, err := load(config.Input{}, files{"deepcrawl.env": "\ufeff# nodes\r\n\r\nexport DEEPCRAWL_NODE_ID = 'web-1'\r\nDEEPCRAWL_DB=\"postgres://u:p$HOME@h/db\"\r\n"})
		if err != nil {
			t.Fatal(err)
		}
		if c.NodeID != "web-1" || c.DB != "postgres://u:p$HOME@h/db" || c.File != "deepcrawl.env" {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("a misspelt setting is warned of with the likely name", func(t *testing.T) {
		c, err := load(config.Input{Environ: []string{"DEEPCRAWL_WORKER=3", "DEEPCRAWL_TEST_REQUIRE=x", "DEEPCRAWL_CORPORA=y", "OTHER=1"}}, files{"deepcrawl.env": "DEEPCRAWL_LOGLEVEL=info"})
		if err != nil {
			t.Fatal(err)
		}
		want := "DEEPCRAWL_WORKER: unknown setting, ignored; did you mean DEEPCRAWL_WORKERS?\ndeepcrawl.env:1: DEEPCRAWL_LOGLEVEL: unknown setting, ignored"
		if got := strings.Join(c.Warnings, "\n"); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
	t.Run("a secret is read from its file", func(t *testing.T) {
		if _, err := load(config.Input{Environ: []string{"DEEPCRAWL_DB=mysql://u:p@/d?socket=/run/s.sock"}}, nil); err != nil {
			t.Errorf("a Unix socket: got %v", err)
		}
		c, err := load(config.Input{Environ: []string{"DEEPCRAWL_DB_FILE=/run/db"}}, files{"/run/db": "mysql://u:p@h:1/d\n"})
		if err != nil || c.DB != "mysql://u:p@h:1/d" {
			t.Fatalf("got %v", err)
		}
		if got := value(c, config.KeyDB).Source; got != "environment, file /run/db" {
			t.Errorf("got source %q", got)
		}
	})
}

// TestErrors fixes the one line each mistake gets.
func TestErrors(t *testing.T) {
	env := func(kv ...string) config.Input { return config.Input{Environ: kv} }
	dbAllowed := "; allowed: sqlite:PATH, postgres://USER:PASSWORD@HOST:PORT/DB or mysql://USER:PASSWORD@HOST:PORT/DB"
	for _, c := range []struct {
		in   config.Input
		f    files
		want string
	}{
		{env("DEEPCRAWL_WORKERS=many"), nil, `DEEPCRAWL_WORKERS: "many": not a number; allowed: a number from 1 to 1000`},
		{env("DEEPCRAWL_WORKERS=0"), nil, `DEEPCRAWL_WORKERS: "0": below 1; allowed: a number from 1 to 1000`},
		{config.Input{Flags: map[string]string{config.KeyHostInflight: "5000"}}, nil, `--host-inflight: "5000": above 1000; allowed: a number from 1 to 1000`},
		{config.Input{Flags: map[string]string{config.KeyDB: ""}}, nil, `--db: empty` + dbAllowed},
		{env("DEEPCRAWL_DB=crawl.db"), nil, `DEEPCRAWL_DB: "crawl.db": no scheme; perhaps sqlite:crawl.db` + dbAllowed},
		{env("DEEPCRAWL_DB=oracle://x"), nil, `DEEPCRAWL_DB: "oracle://x": unknown scheme "oracle"` + dbAllowed},
		{env("DEEPCRAWL_DB=sqlite:"), nil, `DEEPCRAWL_DB: "sqlite:": a path must follow the scheme` + dbAllowed},
		{env("DEEPCRAWL_DB=mysql://root:sesame@/x"), nil, `DEEPCRAWL_DB: "mysql://root:***@/x": no host, and no socket=PATH` + dbAllowed},
		{env("DEEPCRAWL_DB=mysql://root:sesame@h"), nil, `DEEPCRAWL_DB: "mysql://root:***@h": no database name after the host` + dbAllowed},
		{env("DEEPCRAWL_DB=mysql://root:ses/am@e@h/x"), nil, `DEEPCRAWL_DB: "mysql://root:***@h/x": not a URL (a password's special characters must be percent-encoded)` + dbAllowed},
		{env("DEEPCRAWL_NODE_ID=a_b"), nil, `DEEPCRAWL_NODE_ID: "a_b": '_' is not allowed; allowed: 1 to 16 letters, digits and hyphens`},
		{env("DEEPCRAWL_NODE_ID=12345678901234567"), nil, `DEEPCRAWL_NODE_ID: "12345678901234567": 17 characters; allowed: 1 to 16 letters, digits and hyphens`},
		{env("DEEPCRAWL_COORD=etcd"), nil, `DEEPCRAWL_COORD: "etcd": unknown word; allowed: db or redis`},
		{env("DEEPCRAWL_COORD=redis"), nil, `DEEPCRAWL_REDIS_URL: not set, but DEEPCRAWL_COORD is redis; allowed: redis://:PASSWORD@HOST:PORT/N or rediss://...[?tls-ca=FILE]`},
		{env("DEEPCRAWL_REDIS_URL=http://h"), nil, `DEEPCRAWL_REDIS_URL: "http://h": unknown scheme "http"; allowed: redis://:PASSWORD@HOST:PORT/N or rediss://...[?tls-ca=FILE]`},
		{env("DEEPCRAWL_RECLAIM=99"), nil, `DEEPCRAWL_RECLAIM: "99": below 100; allowed: a number of seconds from 100 to 86400`},
		{env("DEEPCRAWL_USER_AGENT=deepcrawl/1.0"), nil, `DEEPCRAWL_USER_AGENT: "deepcrawl/1.0": the name deepcrawl is another company's crawler; allowed: printable ASCII that starts with a product name of letters, - and _, followed by /VERSION; the name must not be deepcrawl, another company's crawler`},
		{env("DEEPCRAWL_BIND_ADDR=eth0"), nil, `DEEPCRAWL_BIND_ADDR: "eth0": not an IP address; allowed: an IP address of this machine`},
		{env("DEEPCRAWL_LISTEN=8090"), nil, `DEEPCRAWL_LISTEN: "8090": no port; allowed: HOST:PORT`},
		{env("DEEPCRAWL_ALLOW_PRIVATE=maybe"), nil, `DEEPCRAWL_ALLOW_PRIVATE: "maybe": unknown word; allowed: true or false`},
		{env("DEEPCRAWL_RETENTION=90"), nil, `DEEPCRAWL_RETENTION: "90": no unit; allowed: days or hours such as 90d or 12h, or off`},
		{env("DEEPCRAWL_SEEN_MEMORY=1"), nil, `DEEPCRAWL_SEEN_MEMORY: "1": out of range; allowed: a size from 1MB to 64GB, such as 256MB`},
		{env("DEEPCRAWL_LOG=loud"), nil, `DEEPCRAWL_LOG: "loud": unknown word; allowed: debug, info, warn or error`},
		{env("SEOMASTER_DEEP_WORKERS=x"), nil, `SEOMASTER_DEEP_WORKERS: "x": not a number; allowed: a number from 1 to 1000`},
		{env("SEOMASTER_DB_HOST=h"), nil, `SEOMASTER_DB_HOST: no longer read; set DEEPCRAWL_DB instead: sqlite:PATH, postgres://USER:PASSWORD@HOST:PORT/DB or mysql://USER:PASSWORD@HOST:PORT/DB`},
		{env("DEEPCRAWL_DB=sqlite:a", "DEEPCRAWL_DB_FILE=b"), nil, `DEEPCRAWL_DB_FILE: set together with DEEPCRAWL_DB; allowed: one of the two`},
		{env("DEEPCRAWL_DB_FILE=/none"), nil, `DEEPCRAWL_DB_FILE: cannot read the secret: /none: file does not exist`},
		{config.Input{File: "none.env"}, nil, `--config: none.env: file does not exist`},
		{config.Input{}, files{"deepcrawl.env": "A=1\nworkers 3"}, `deepcrawl.env:2: not a setting; allowed: KEY=VALUE, an empty line, or # and a comment`},
		{config.Input{}, files{"deepcrawl.env": "A='1"}, `deepcrawl.env:1: a quote is not closed at the end of the line`},
		{config.Input{}, files{"deepcrawl.env": "A=1\nA=2"}, `deepcrawl.env:2: A is set already at deepcrawl.env:1`},
		{config.Input{}, files{"deepcrawl.env": "\nDEEPCRAWL_WORKERS=x"}, `deepcrawl.env:2: DEEPCRAWL_WORKERS: "x": not a number; allowed: a number from 1 to 1000`},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, err := load(c.in, c.f)
			var ce *config.Error
			if !errors.As(err, &ce) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	t.Run("SEOMASTER_DB_ is no error beside DEEPCRAWL_DB", func(t *testing.T) {
		if _, err := load(env("SEOMASTER_DB_HOST=h", "DEEPCRAWL_DB=sqlite:x"), nil); err != nil {
			t.Error(err)
		}
	})
}

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		"postgres://u:secret@h:5432/d?sslmode=disable":  "postgres://u:***@h:5432/d?sslmode=disable",
		"redis://:secret@h/0":                           "redis://:***@h/0",
		"mysql://u:a@b/c@h/d":                           "mysql://u:***@h/d",
		"postgres://u@h/d?password=secret&x=1":          "postgres://u@h/d?password=***&x=1",
		"postgres://h/d?sslpassword=secret":             "postgres://h/d?sslpassword=***",
		"sqlite:a:b@c.db":                               "sqlite:a:b@c.db",
		"dial postgres://u:s@h/d: refused (mail a@b.c)": "dial postgres://u:***@h/d: refused (mail a@b.c)",
	} {
		if got := config.Mask(in); got != want {
			t.Errorf("mask %s: got %s, want %s", in, got, want)
		}
	}
	t.Run("a shown value is masked", func(t *testing.T) {
		c, err := load(config.Input{Environ: []string{"DEEPCRAWL_DB=postgres://u:secret@h/d"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := value(c, config.KeyDB).Shown(); got != "postgres://u:***@h/d" {
			t.Errorf("got %s", got)
		}
	})
}

func TestDocs(t *testing.T) {
	t.Run("docs/configuration.md is the table (make docs writes it)", func(t *testing.T) {
		const page = "../../docs/configuration.md"
		want := config.Markdown()
		if *update {
			if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s differs from the table; run make docs", page)
		}
	})
}

func FuzzLoad(f *testing.F) {
	f.Add("DEEPCRAWL_DB=sqlite:x\n#\nexport A='b'", "postgres://u:p@h/d")
	f.Fuzz(func(t *testing.T, file, db string) {
		c, err := load(config.Input{Environ: []string{"DEEPCRAWL_DB=" + db}}, files{"deepcrawl.env": file})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of more than one line: %q", err)
			}
			return
		}
		for _, v := range c.Values {
			_ = v.Shown()
		}
	})
}
