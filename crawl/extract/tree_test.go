package extract_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// knownTreeDifferences are the inputs on which the stream means to differ.
var knownTreeDifferences = map[string]string{
	"<head><noscript>XXX<!--foo--></noscript></head>":        "text in noscript is not visible where scripts run",
	"<!doctype html><html><noscript><plaintext></plaintext>": "text in noscript is not visible where scripts run",
	"<!doctype html><h1><div><h3><span></h1>foo":             "a heading inside a heading ends it",
}

// TestAgreesWithTheTreeOnHTML5Lib compares the stream with x/net's tree on the inputs of html5lib's tree construction tests: some
// 1,500 snippets written to trip parsers up.
func TestAgreesWithTheTreeOnHTML5Lib(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/net").Output()
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "html/testdata/html5lib-tests/tree-construction/*.dat"))
	if err != nil || len(files) == 0 {
		t.Skipf("html5lib's tree construction tests are not in the module cache (golang.org/x/net): %v", err)
	}
	ran := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split("\n"+string(data), "\n#data\n")[1:] {
			input, rest, _ := strings.Cut(block, "\n#errors")
			if strings.Contains(rest, "#document-fragment") {
				continue
			}
			want, err := treeView(t, []byte(input))
			if err != nil {
				t.Fatal(err)
			}
			ran++
			if diff := differences(streamView([]byte(input)), want); len(diff) > 0 && knownTreeDifferences[input] == "" {
				t.Errorf("%s %q\n\t%s", filepath.Base(file), input, strings.Join(diff, "\n\t"))
			}
		}
	}
	t.Logf("%d inputs", ran)
}
