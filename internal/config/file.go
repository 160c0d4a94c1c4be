package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// readFile reads the one settings file; a layer without name when there is none.
func readFile(in Input) (layer, error) {
	names := in.Files
	if in.File != "" {
		names = []string{in.File}
	}
	for _, name := range names {
		text, err := in.ReadFile(name)
		if err != nil && in.File == "" && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			label := name
			if in.File != "" {
				label = "--config"
			}
			return layer{}, &Error{label, plain(err)}
		}
		values, err := parseFile(name, string(text))
		return layer{name, values}, err
	}
	return layer{}, nil
}

// parseFile reads KEY=VALUE lines: blank lines and those starting with # are skipped, "export " before a key and one pair of
// quotes around a value are taken off. Nothing is expanded.
func parseFile(name, text string) (map[string]entry, error) {
	values := map[string]entry{}
	text = strings.TrimPrefix(text, "\ufeff")
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		where := fmt.Sprintf("%s:%d", name, n)
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		key = strings.TrimSpace(key)
		if !ok || !isKey(key) {
			return nil, &Error{where, "not a setting; allowed: KEY=VALUE, an empty line, or # and a comment"}
		}
		value = strings.TrimSpace(value)
		if len(value) > 0 && (value[0] == '"' || value[0] == '\'') {
			if len(value) < 2 || value[len(value)-1] != value[0] {
				return nil, &Error{where, "a quote is not closed at the end of the line"}
			}
			value = value[1 : len(value)-1]
		}
		if old, ok := values[key]; ok {
			return nil, &Error{where, key + " is set already at " + old.source}
		}
		if value != "" {
			values[key] = entry{text: value, where: where + ": " + key, source: where}
		}
	}
	return values, nil
}

func isKey(k string) bool {
	for _, r := range k {
		if !(r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_') {
			return false
		}
	}
	return k != ""
}

// notSettings are variables that start like settings and are none: tests and corpora.
func notSetting(key string) bool {
	return strings.HasPrefix(key, "DEEPCRAWL_TEST_") || key == "DEEPCRAWL_CORPORA"
}

// unknown warns of keys that look like ours and are not: a misspelt limit that silently stays at its default is worse. It is
// no error, so that a file shared by all nodes can carry a newer release's settings during an upgrade.
func unknown(l layer) []string {
	known := map[string]bool{}
	var keys []string
	for _, s := range Table() {
		known[s.Key] = true
		keys = append(keys, s.Key)
		if s.Secret {
			known[s.Key+"_FILE"] = true
		}
	}
	var out []string
	for _, k := range sortedKeys(l.values) {
		if known[k] || notSetting(k) || !strings.HasPrefix(k, prefix) {
			continue
		}
		msg := l.values[k].where + ": unknown setting, ignored"
		if near := nearest(k, keys); near != "" {
			msg += "; did you mean " + near + "?"
		}
		out = append(out, msg)
	}
	return out
}

func sortedKeys(m map[string]entry) []string { return slices.Sorted(maps.Keys(m)) }

// nearest returns the candidate within two edits, or none.
func nearest(word string, candidates []string) string {
	best, dist := "", 3
	for _, c := range candidates {
		if d := edits(word, c); d < dist {
			best, dist = c, d
		}
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			prev, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, prev+cost)
		}
	}
	return row[len(b)]
}
