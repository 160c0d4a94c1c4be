package sqldb

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Stmt is one statement compiled for a dialect. It is immutable and safe for concurrent use.
type Stmt struct {
	name    string
	dialect Dialect
	in      []column // scalar inputs, in the order of arguments
	rows    []column // columns of the table input
	bulk    bool     // one execution takes the whole table; else one execution a row
	text    string   // SQLite and PostgreSQL: what is prepared
	exact   string   // PostgreSQL: text wrapped to check its row count, the last parameter
	parts   []string // MySQL: the text around the inputs, one more than refs
	any     *Stmt    // MySQL: the condition on a row of the table, for refAny
	refs    []ref    // inputs in order of their placeholders
	base    string   // source text, for tests and messages
}

type column struct {
	name string
	typ  colType
}

type colType uint8

const (
	typeInt colType = iota + 1
	typeText
	typeBytes
)

func (t colType) postgres() string {
	switch t {
	case typeText:
		return "text"
	case typeBytes:
		return "bytea"
	}
	return "bigint"
}

// ref says what a placeholder stands for.
type ref struct {
	kind refKind
	i    int // index into in or rows
}

type refKind uint8

const (
	refIn refKind = iota + 1
	refCol
	refArray  // PostgreSQL: one column of the table as an array
	refNow    // SQLite: this machine's clock
	refRows   // MySQL: the table as a derived table
	refValues // MySQL: the table as VALUES
	refAny    // MySQL: the condition for each row of the table, one of which holds
)

// Name returns the name the statement was loaded under.
func (s *Stmt) Name() string { return s.name }

// Text returns the statement as this dialect gets it, for query plan tests: placeholders are ? on SQLite and MySQL, $1 on
// PostgreSQL.
func (s *Stmt) Text() string {
	if s.dialect == MySQL {
		return strings.Join(s.parts, "?")
	}
	return s.text
}

// Set is the statements of one consumer, compiled for one dialect.
type Set struct {
	dialect    Dialect
	stmts      map[string]*Stmt
	overridden []string
}

// Get returns a statement. It panics when there is none of that name: names are constants of the program.
func (s *Set) Get(name string) *Stmt {
	st, ok := s.stmts[name]
	if !ok {
		panic("sqldb: no statement named " + strconv.Quote(name))
	}
	return st
}

// Find returns a statement that only some dialects have; nil where this one does not.
func (s *Set) Find(name string) *Stmt { return s.stmts[name] }

// Names returns the names of all statements, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.stmts)) }

// Overridden returns the names of those statements whose text comes from the dialect's folder, sorted.
func (s *Set) Overridden() []string { return s.overridden }

// Load reads the statements in the .sql files of fsys and compiles them for a dialect. Files in the folder named like the
// dialect override statements of the same name; an override without a portable statement is an error.
//
// A file holds statements, each under a header of comment lines:
//
//	-- name: seat_take
//	-- in: run int, owner text            scalar inputs, in the order of arguments; int, text or bytes
//	-- rows: id int, key bytes            columns of the table input, where there is one
//	-- Any other comment.
//	INSERT INTO seat (run_id, id) SELECT :run, r.id FROM :rows r
//
// Inputs are written :name. :now is the server's clock in unix microseconds. A statement with a table input either names its
// columns (:id), and is executed once a row, or takes it whole: as ":rows alias" in a FROM clause, or as ":values" in the
// place of VALUES of an INSERT (on SQLite those are executed once a row too). A query that looks up a few rows for each one of the table
// writes its condition as :any(u.id = :id): it is executed once a row where that is cheap, and on MySQL, whose statements cost more than
// a look at an index, at once with one condition for each row. Overrides inherit the inputs of what they override.
//
// Where a dialect does in one statement what takes several elsewhere, that statement says so with a header
// "-- instead: claim_pick, claim_insert" naming them, and is found with [Set.Find].
func Load(fsys fs.FS, d Dialect) (*Set, error) {
	return load(fsys, d, true)
}

// LoadPortable is Load without the overrides, for tests of the portable statements.
func LoadPortable(fsys fs.FS, d Dialect) (*Set, error) {
	return load(fsys, d, false)
}

func load(fsys fs.FS, d Dialect, overrides bool) (*Set, error) {
	base, err := readStatements(fsys, ".")
	if err != nil {
		return nil, err
	}
	set := &Set{dialect: d, stmts: make(map[string]*Stmt, len(base))}
	if overrides {
		over, err := readStatements(fsys, d.String())
		if err != nil {
			return nil, err
		}
		added := map[string]source{}
		for name, o := range over {
			b, ok := base[name]
			if !ok && len(o.instead) > 0 {
				for _, other := range o.instead {
					if _, ok := base[other]; !ok {
						return nil, fmt.Errorf("sqldb: statement %s of %s stands for %s, which there is not", name, d, other)
					}
				}
				added[name] = o
				continue
			}
			if !ok {
				return nil, fmt.Errorf("sqldb: statement %s of %s overrides nothing", name, d)
			}
			if o.in != nil || o.rows != nil {
				return nil, fmt.Errorf("sqldb: statement %s of %s declares inputs of its own", name, d)
			}
			b.text = o.text
			base[name] = b
			set.overridden = append(set.overridden, name)
		}
		slices.Sort(set.overridden)
		maps.Copy(base, added)
	}
	for name, src := range base {
		if set.stmts[name], err = compile(name, src, d); err != nil {
			return nil, err
		}
	}
	return set, nil
}

type source struct {
	in, rows []column
	instead  []string // statements this one of a dialect stands for
	text     string
}

func readStatements(fsys fs.FS, dir string) (map[string]source, error) {
	files, err := fs.Glob(fsys, path.Join(dir, "*.sql"))
	if err != nil {
		return nil, err
	}
	out := map[string]source{}
	for _, f := range files {
		b, err := fs.ReadFile(fsys, f)
		if err != nil {
			return nil, fmt.Errorf("read statements: %w", err)
		}
		if err := splitStatements(f, string(b), out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func splitStatements(file, text string, out map[string]source) error {
	var name string
	var cur source
	var body strings.Builder
	end := func() error {
		if name == "" {
			return nil
		}
		cur.text = strings.TrimSuffix(strings.TrimSpace(body.String()), ";")
		if cur.text == "" {
			return fmt.Errorf("sqldb: %s: statement %s is empty", file, name)
		}
		if _, dup := out[name]; dup {
			return fmt.Errorf("sqldb: %s: statement %s stands there twice", file, name)
		}
		out[name] = cur
		return nil
	}
	for line := range strings.Lines(text) {
		comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "--")
		if !isComment {
			body.WriteString(line)
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSpace(comment), ":")
		var err error
		switch key {
		case "name":
			if err := end(); err != nil {
				return err
			}
			name, cur = strings.TrimSpace(value), source{}
			body.Reset()
		case "in":
			cur.in, err = parseColumns(value)
		case "rows":
			cur.rows, err = parseColumns(value)
		case "instead":
			for other := range strings.SplitSeq(value, ",") {
				cur.instead = append(cur.instead, strings.TrimSpace(other))
			}
		}
		if err != nil {
			return fmt.Errorf("sqldb: %s: statement %s: %w", file, name, err)
		}
	}
	return end()
}

func parseColumns(list string) ([]column, error) {
	out := []column{}
	for item := range strings.SplitSeq(list, ",") {
		f := strings.Fields(item)
		if len(f) != 2 {
			return nil, fmt.Errorf("input %q is not NAME TYPE", strings.TrimSpace(item))
		}
		c := column{name: f[0]}
		switch f[1] {
		case "int":
			c.typ = typeInt
		case "text":
			c.typ = typeText
		case "bytes":
			c.typ = typeBytes
		default:
			return nil, fmt.Errorf("input %s has the unknown type %s", f[0], f[1])
		}
		out = append(out, c)
	}
	return out, nil
}

// compile replaces the inputs of a statement by a dialect's placeholders.
func compile(name string, src source, d Dialect) (*Stmt, error) {
	s := &Stmt{name: name, dialect: d, in: src.in, rows: src.rows, base: src.text}
	c := compiler{s: s}
	if err := c.run(src.text); err != nil {
		return nil, fmt.Errorf("sqldb: statement %s: %w", name, err)
	}
	s.parts = append(c.parts, c.cur.String())
	if d != MySQL {
		s.text, s.parts = s.parts[0], nil
	}
	if d == Postgres {
		s.exact = fmt.Sprintf("WITH checked AS (%s RETURNING 1) SELECT 1 / (CASE WHEN count(*) = $%d::bigint THEN 1 ELSE 0 END) FROM checked",
			s.text, len(s.refs)+1)
	}
	return s, nil
}

type compiler struct {
	s     *Stmt
	cur   strings.Builder
	parts []string
	nums  map[string]int // PostgreSQL: numbers of placeholders already given
}

func (c *compiler) run(text string) error {
	for i := 0; i < len(text); {
		switch b := text[i]; {
		case b == '\'' || b == '"' || b == '`':
			end := strings.IndexByte(text[i+1:], b)
			if end < 0 {
				return fmt.Errorf("unterminated %c", b)
			}
			c.cur.WriteString(text[i : i+end+2])
			i += end + 2
		case b == '-' && strings.HasPrefix(text[i:], "--"):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return nil
			}
			i += end
		case b == ':' && i+1 < len(text) && text[i+1] == ':':
			c.cur.WriteString("::")
			i += 2
		case b == ':' && i+1 < len(text) && isLetter(text[i+1]):
			j := i + 1
			for j < len(text) && (isLetter(text[j]) || text[j] >= '0' && text[j] <= '9') {
				j++
			}
			if text[i+1:j] == "any" {
				var err error
				if j, err = c.condition(text, j); err != nil {
					return err
				}
			} else if err := c.input(text[i+1 : j]); err != nil {
				return err
			}
			i = j
		case b == '\n' || b == '\t' || b == ' ':
			for i < len(text) && (text[i] == '\n' || text[i] == '\t' || text[i] == ' ') {
				i++
			}
			c.cur.WriteByte(' ')
		default:
			c.cur.WriteByte(b)
			i++
		}
	}
	return nil
}

func isLetter(b byte) bool { return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }

func (c *compiler) input(name string) error {
	switch name {
	case "now":
		if c.s.dialect == SQLite {
			c.place(ref{kind: refNow}, "")
		} else {
			c.cur.WriteString(c.s.dialect.now())
		}
		return nil
	case "rows", "values":
		if c.s.rows == nil {
			return fmt.Errorf(":%s without a table input", name)
		}
		c.table(name)
		return nil
	}
	for i, in := range c.s.in {
		if in.name == name {
			c.place(ref{kind: refIn, i: i}, in.typ.postgres())
			return nil
		}
	}
	for i, col := range c.s.rows {
		if col.name == name {
			c.place(ref{kind: refCol, i: i}, col.typ.postgres())
			return nil
		}
	}
	return fmt.Errorf("no input is named %s", name)
}

// condition compiles what stands in parentheses at i behind ":any", and returns where it ends.
func (c *compiler) condition(text string, i int) (end int, err error) {
	depth := 0
	for end = i; end < len(text); end++ {
		switch text[end] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			break
		}
	}
	if c.s.rows == nil || end == i || end == len(text) {
		return 0, fmt.Errorf(":any without a table input or a condition in parentheses")
	}
	end++
	if c.s.dialect != MySQL {
		return end, c.run(text[i:end])
	}
	if c.s.any != nil {
		return 0, fmt.Errorf(":any stands there twice")
	}
	inner := compiler{s: &Stmt{dialect: MySQL, in: c.s.in, rows: c.s.rows}}
	if err := inner.run(text[i:end]); err != nil {
		return 0, err
	}
	inner.s.parts = append(inner.parts, inner.cur.String())
	c.s.any, c.s.bulk = inner.s, true
	c.place(ref{kind: refAny}, "")
	return end, nil
}

// place writes a placeholder. On PostgreSQL it says its type, since the server cannot always tell, and an input that is used
// twice is sent once.
func (c *compiler) place(r ref, pgType string) {
	switch c.s.dialect {
	case Postgres:
		key := strconv.Itoa(int(r.kind)) + ":" + strconv.Itoa(r.i)
		n, ok := c.nums[key]
		if !ok {
			c.s.refs = append(c.s.refs, r)
			n = len(c.s.refs)
			if c.nums == nil {
				c.nums = map[string]int{}
			}
			c.nums[key] = n
		}
		c.cur.WriteString("$" + strconv.Itoa(n) + "::" + pgType)
	case MySQL:
		c.s.refs = append(c.s.refs, r)
		c.parts = append(c.parts, c.cur.String())
		c.cur.Reset()
	default:
		c.s.refs = append(c.s.refs, r)
		c.cur.WriteByte('?')
	}
}

// table writes the whole table input as a derived table or in the place of VALUES.
func (c *compiler) table(name string) {
	switch c.s.dialect {
	case Postgres:
		c.s.bulk = true
		c.cur.WriteString(map[string]string{"rows": "(SELECT * FROM unnest(", "values": "SELECT * FROM unnest("}[name])
		names := make([]string, len(c.s.rows))
		for i, col := range c.s.rows {
			if i > 0 {
				c.cur.WriteString(", ")
			}
			c.place(ref{kind: refArray, i: i}, col.typ.postgres()+"[]")
			names[i] = col.name
		}
		c.cur.WriteString(") AS input(" + strings.Join(names, ", ") + ")")
		if name == "rows" {
			c.cur.WriteByte(')')
		}
	case MySQL:
		c.s.bulk = true
		c.place(ref{kind: map[string]refKind{"rows": refRows, "values": refValues}[name]}, "")
	default:
		if name == "rows" {
			c.cur.WriteString("(SELECT ")
		} else {
			c.cur.WriteString("VALUES (")
		}
		for i, col := range c.s.rows {
			if i > 0 {
				c.cur.WriteString(", ")
			}
			c.place(ref{kind: refCol, i: i}, "")
			if name == "rows" {
				c.cur.WriteString(" AS " + col.name)
			}
		}
		c.cur.WriteByte(')')
	}
}
