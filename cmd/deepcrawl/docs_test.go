package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var codeName = regexp.MustCompile("`([A-Za-z_.]+)`")

func TestArchitecture(t *testing.T) {
	t.Run("every identifier of the life of a URL is in the code", func(t *testing.T) {
		page, err := os.ReadFile("../../docs/architecture.md")
		if err != nil {
			t.Fatal(err)
		}
		_, life, ok := strings.Cut(string(page), "## Life of a URL")
		if !ok {
			t.Fatal("the page has no life of a URL")
		}
		declared := declarations(t, "../..")
		names := codeName.FindAllStringSubmatch(life, -1)
		if len(names) < 20 {
			t.Errorf("only %d identifiers", len(names))
		}
		states := " queued preparing crawling finishing done delayed fetched failed excluded "
		for _, m := range names {
			name := m[1][strings.LastIndexByte(m[1], '.')+1:]
			if !declared[name] && !strings.Contains(states, " "+name+" ") {
				t.Errorf("`%s` is not declared anywhere", m[1])
			}
		}
	})
}

var declaration = regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |\t)([A-Za-z_]+)(?:\[|\(| struct| interface| func| u?int)`)

// declarations are the names of packages, functions, methods and types of the module, tests left out.
func declarations(t *testing.T, root string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all[filepath.Base(filepath.Dir(path))] = true
		for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
			all[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
