package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

// exports are what can be exported, and in which formats, the usual one first.
var exports = []struct {
	what    string
	formats []string
	run     func(x *exporter) error
}{
	{"pages", []string{"csv", "jsonl"}, (*exporter).pages},
	{"links", []string{"csv", "jsonl"}, (*exporter).links},
	{"sitemap", []string{"xml"}, (*exporter).sitemap},
}

func (p *program) exportCommand() *cli.Command {
	var whats []string
	for _, e := range exports {
		whats = append(whats, e.what)
	}
	return &cli.Command{
		Name: "export", Usage: "write a run's pages, links or sitemap", ArgsUsage: "RUN",
		Description: "RUN is a run's number, or last. Rows are streamed, also while the run goes on.",
		Flags: append(settingFlags(sharedKeys()...),
			&cli.StringFlag{Name: "what", Usage: strings.Join(whats, ", "), Value: "pages"},
			&cli.StringFlag{Name: "format", Usage: "csv, jsonl or xml (default: by the ending of -o, else csv; a sitemap is xml)"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write to `FILE` instead of standard output"},
			&cli.BoolFlag{Name: "json", Usage: "the same as --format jsonl"},
		),
		Action: func(c *cli.Context) error {
			i := slices.IndexFunc(exports, func(e struct {
				what    string
				formats []string
				run     func(x *exporter) error
			}) bool {
				return e.what == c.String("what")
			})
			if i < 0 {
				return usagef("--what: %q cannot be exported; allowed: %s", c.String("what"), strings.Join(whats, ", "))
			}
			what := exports[i]
			format, err := exportFormat(c, what.formats)
			if err != nil {
				return err
			}
			return p.withStore(c, mustExist, func(st storage.Store) error {
				id, err := oneRun(c, st)
				if err != nil {
					return err
				}
				run, err := st.Run(c.Context, id)
				if err != nil {
					return ofRun(id, err)
				}
				x := &exporter{ctx: c.Context, store: st, run: run, format: format, file: c.String("output"), stdout: p.stdout}
				if x.spec, err = crawl.DecodeSpec(run.Spec); err != nil {
					return ofRun(id, err)
				}
				if err := what.run(x); err != nil {
					return fmt.Errorf("export %s of run %d: %w", what.what, id, err)
				}
				if x.file != "" && x.file != "-" {
					p.note(fmt.Sprintf("%s in %s", plural(x.rows, x.noun), strings.Join(x.wrote, ", ")))
				}
				return nil
			})
		},
	}
}

func exportFormat(c *cli.Context, allowed []string) (string, error) {
	format := c.String("format")
	if c.Bool("json") {
		if format != "" && format != "jsonl" {
			return "", usagef("--json: not together with --format %s", format)
		}
		format = "jsonl"
	}
	if format == "" {
		format = allowed[0]
		if ext := strings.TrimPrefix(filepath.Ext(c.String("output")), "."); slices.Contains(allowed, ext) {
			format = ext
		}
	}
	if !slices.Contains(allowed, format) {
		return "", usagef("--format: %q is not a format of %s; allowed: %s", format, c.String("what"), strings.Join(allowed, ", "))
	}
	return format, nil
}

// exporter writes one export of one run.
type exporter struct {
	ctx    context.Context
	store  storage.Store
	run    storage.Run
	spec   crawl.Spec
	format string
	file   string // empty or "-": stdout
	stdout io.Writer

	rows  int64
	noun  string
	wrote []string
}

// exportBatch is how many rows are read at a time; memory stays bounded by it.
const exportBatch = 1000

// output runs fn with the table to write to. A file appears under its name only when it is complete.
func (x *exporter) output(noun string, names []string, fn func(t table) error) error {
	x.noun = noun
	write := func(w io.Writer) error {
		var t table
		if x.format == "jsonl" {
			t = newJSONLines(w)
		} else {
			t = newCSV(w, names)
		}
		if err := fn(t); err != nil {
			return err
		}
		return t.close()
	}
	if x.file == "" || x.file == "-" {
		return write(x.stdout)
	}
	f, err := newFile(x.file)
	if err != nil {
		return err
	}
	defer f.discard()
	if err := write(f); err != nil {
		return err
	}
	x.wrote = []string{x.file}
	return f.commit(x.file)
}

// newOutput is a file written beside its place and moved there when complete. What is there already and no file, as a device or a
// pipe, is written to, never replaced.
type newOutput struct {
	*bufio.Writer
	f       *os.File
	inPlace bool
}

func newFile(path string) (*newOutput, error) {
	fi, err := os.Stat(path)
	switch {
	case err == nil && fi.IsDir():
		return nil, usagef("-o %s: it is a folder; name a file in it", path)
	case err == nil && !fi.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, usagef("-o %s: %v", path, pathCause(err))
		}
		return &newOutput{bufio.NewWriterSize(f, 64<<10), f, true}, nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".deepcrawl-export-*")
	if err != nil {
		return nil, usagef("-o %s: %v", path, pathCause(err))
	}
	return &newOutput{bufio.NewWriterSize(f, 64<<10), f, false}, nil
}

func (o *newOutput) commit(path string) error {
	if err := o.Flush(); err != nil {
		return err
	}
	if o.inPlace {
		return o.f.Close()
	}
	if err := o.f.Chmod(0o644); err != nil {
		return err
	}
	if err := o.f.Close(); err != nil {
		return err
	}
	err := os.Rename(o.f.Name(), path)
	if err != nil {
		_ = os.Remove(o.f.Name())
	}
	return err
}

// discard removes what was not committed; after commit it does nothing.
func (o *newOutput) discard() {
	if o.f.Close() == nil && !o.inPlace {
		_ = os.Remove(o.f.Name())
	}
}

// eachPage calls fn for the run's URLs in the order they were discovered, a batch at a time.
func (x *exporter) eachPage(q storage.PageQuery, fn func(rows []storage.PageRow) error) error {
	q.Limit = exportBatch
	for {
		rows, err := x.store.ListPages(x.ctx, x.run.ID, q)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return nil
		}
		if err := fn(rows); err != nil {
			return err
		}
		q.After = rows[len(rows)-1].ID
	}
}
