package extract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// tokensOf renders the tokens of a buffer as html5lib's tests write them, so that production code is what is tested.
func tokensOf(t *tokenizer) []string {
	t.listAll = true
	var out []string
	text := func(s []byte) {
		if len(s) == 0 {
			return
		}
		if n := len(out); n > 0 && strings.HasPrefix(out[n-1], "text ") {
			out[n-1] += string(s)
			return
		}
		out = append(out, "text "+string(s))
	}
	for {
		data := func() []byte { return t.buf[t.data.start:t.data.end] }
		switch kind := t.next(); kind {
		case tokenEOF:
			return out
		case tokenText:
			text(appendDecoded(nil, data(), false))
		case tokenRaw:
			text(plainText(data()))
		case tokenComment:
			out = append(out, "comment "+string(plainText(data())))
		case tokenDoctype:
			out = append(out, "doctype")
		case tokenStart, tokenEnd:
			name := string(plainText(lowered(t.buf[t.name.start:t.name.end])))
			if kind == tokenEnd {
				out = append(out, "end "+name)
				continue
			}
			var b strings.Builder
			fmt.Fprintf(&b, "start %s", name)
			seen := map[string]bool{}
			for i := 0; i < len(t.list); i += 2 {
				n := string(plainText(lowered(t.buf[t.list[i].start:t.list[i].end])))
				seen[n] = true
			}
			for _, n := range sortedKeys(seen) {
				for i := 0; i < len(t.list); i += 2 {
					if string(plainText(lowered(t.buf[t.list[i].start:t.list[i].end]))) == n {
						fmt.Fprintf(&b, " %q=%q", n, appendDecoded(nil, t.buf[t.list[i+1].start:t.list[i+1].end], true))
						break
					}
				}
			}
			if t.selfClosing {
				b.WriteString(" /")
			}
			out = append(out, b.String())
		}
	}
}

func lowered(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		out[i] = lowerTable[c]
	}
	return out
}

// plainText is what the standard's input preprocessing and NUL replacement make of bytes without references.
func plainText(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	b = bytes.ReplaceAll(b, []byte("\r"), []byte("\n"))
	return bytes.ReplaceAll(b, []byte{0}, []byte("\uFFFD"))
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

type html5libCase struct {
	Description   string
	Input         string
	Output        []json.RawMessage
	InitialStates []string
	LastStartTag  string
	DoubleEscaped bool
}

// html5libDir is the folder of html5lib's tokenizer tests that the module golang.org/x/net carries.
func html5libDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/net").Output()
	dir := filepath.Join(strings.TrimSpace(string(out)), "html/testdata/html5lib-tests/tokenizer")
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		t.Skipf("html5lib's tokenizer tests are not in the module cache (golang.org/x/net): %v", err)
	}
	return dir
}

// unescapeDouble undoes \uXXXX in a doubly escaped case; it reports false for a lone surrogate, which UTF-8 cannot carry.
func unescapeDouble(s string) (string, bool) {
	var units []uint16
	for i := 0; i < len(s); {
		if i+6 <= len(s) && s[i] == '\\' && s[i+1] == 'u' {
			n, err := strconv.ParseUint(s[i+2:i+6], 16, 16)
			if err == nil {
				units = append(units, uint16(n))
				i += 6
				continue
			}
		}
		r := []rune(s[i:])[0]
		units = utf16.AppendRune(units, r)
		i += len(string(r))
	}
	out := string(utf16.Decode(units))
	return out, !strings.ContainsRune(out, 0xFFFD)
}

func expectedTokens(t *testing.T, c html5libCase) []string {
	t.Helper()
	var out []string
	fix := func(s string) string {
		if c.DoubleEscaped {
			s, _ = unescapeDouble(s)
		}
		return s
	}
	for _, raw := range c.Output {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		str := func(i int) string {
			var s string
			if err := json.Unmarshal(list[i], &s); err != nil {
				t.Fatal(err)
			}
			return fix(s)
		}
		switch str(0) {
		case "DOCTYPE":
			out = append(out, "doctype")
		case "Comment":
			out = append(out, "comment "+str(1))
		case "EndTag":
			out = append(out, "end "+str(1))
		case "Character":
			s := strings.ReplaceAll(str(1), "\x00", "\uFFFD") // whether NUL stays is the tree builder's business
			if n := len(out); n > 0 && strings.HasPrefix(out[n-1], "text ") {
				out[n-1] += s
			} else {
				out = append(out, "text "+s)
			}
		case "StartTag":
			var attrs map[string]string
			if err := json.Unmarshal(list[2], &attrs); err != nil {
				t.Fatal(err)
			}
			names := map[string]bool{}
			values := map[string]string{}
			for n, v := range attrs {
				names[fix(n)] = true
				values[fix(n)] = fix(v)
			}
			s := "start " + str(1)
			for _, n := range sortedKeys(names) {
				s += fmt.Sprintf(" %q=%q", n, values[n])
			}
			if len(list) > 3 {
				s += " /"
			}
			out = append(out, s)
		}
	}
	return out
}

func TestTokenizerPassesHTML5Lib(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(html5libDir(t), "*.test"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	ran := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var set struct{ Tests []html5libCase }
		if err := json.Unmarshal(data, &set); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if filepath.Base(file) == "xmlViolation.test" {
			continue // about turning a token stream into XML, not about HTML
		}
		for _, c := range set.Tests {
			input := c.Input
			if c.DoubleEscaped {
				var ok bool
				if input, ok = unescapeDouble(input); !ok {
					continue // lone surrogates: not expressible in UTF-8
				}
			}
			states := c.InitialStates
			if len(states) == 0 {
				states = []string{"Data state"}
			}
			for _, state := range states {
				ran++
				var tok tokenizer
				buf := input
				name := c.LastStartTag
				if name == "" {
					name = "none\x00"
				}
				mode := rawNone
				switch state {
				case "PLAINTEXT state":
					mode = rawPlaintext
				case "RCDATA state":
					mode = rawRCDATA
				case "RAWTEXT state":
					mode = rawText
				case "Script data state":
					mode = rawScript
				case "CDATA section state":
					buf = "<![CDATA[" + buf
				}
				tok.reset([]byte(buf))
				tok.cdata = state == "CDATA section state"
				tok.raw, tok.rawName = mode, []byte(name)
				got, want := strings.Join(tokensOf(&tok), "\n"), strings.Join(expectedTokens(t, c), "\n")
				if got != want {
					t.Errorf("%s: %s (%s)\ninput %q\ngot  %q\nwant %q", filepath.Base(file), c.Description, state, input, got, want)
				}
			}
		}
	}
	if ran < 1000 {
		t.Errorf("ran %d cases, the set has thousands", ran)
	}
	t.Logf("%d cases", ran)
}
