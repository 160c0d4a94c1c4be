package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/urfave/cli/v2"

	"deepcrawl/internal/config"
)

// newLogger writes to the log file where one is set, else to out. Passwords in texts are masked on the way.
func (p *program) newLogger(cfg *config.Config, level slog.Level, out io.Writer) (*slog.Logger, func(), error) {
	done := func() {}
	if cfg.LogFile != "" {
		f, err := os.OpenFile(cfg.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, nil, usagef("%s: cannot write %s: %v", config.KeyLogFile, cfg.LogFile, pathCause(err))
		}
		out, done = f, func() { _ = f.Close() }
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: maskAttr}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(out, opts)), done, nil
	}
	return slog.New(slog.NewTextHandler(out, opts)), done, nil
}

// checkLogFile finds out whether the log can be written before anything is changed for a run. The error names the flag where it was
// one.
func checkLogFile(c *cli.Context, cfg *config.Config) error {
	if cfg.LogFile == "" {
		return nil
	}
	f, err := os.OpenFile(cfg.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		return f.Close()
	}
	name := config.KeyLogFile
	if flag := setting(name).Flag(); c.IsSet(flag) {
		name = "--" + flag
	}
	return usagef("%s: cannot write %s: %v; allowed: a file in a folder that exists", name, cfg.LogFile, pathCause(err))
}

// tellOnce leaves out what the command says at its end by itself.
type tellOnce struct{ slog.Handler }

func (h tellOnce) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "run failed" {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h tellOnce) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tellOnce{h.Handler.WithAttrs(attrs)}
}
func (h tellOnce) WithGroup(name string) slog.Handler { return tellOnce{h.Handler.WithGroup(name)} }

func maskAttr(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case error:
		a.Value = slog.StringValue(config.Mask(v.Error()))
	case string:
		a.Value = slog.StringValue(config.Mask(v))
	}
	return a
}
