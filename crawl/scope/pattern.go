package scope

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// pattern is a compiled Include or Exclude.
type pattern struct {
	literal []byte // set when the pattern has nothing but plain characters
	re      *regexp.Regexp
	rule    string
}

func (p *pattern) match(url []byte) bool {
	if p.literal != nil {
		return bytes.Contains(url, p.literal)
	}
	return p.re.Match(url)
}

func compilePatterns(flag string, sources []string) ([]pattern, error) {
	patterns := make([]pattern, 0, len(sources))
	for _, source := range sources {
		if source == "" {
			return nil, fmt.Errorf("%w: --%s is empty; want a regular expression such as /blog/", ErrConfig, flag)
		}
		re, err := regexp.Compile(escapeLetters(source))
		if err != nil {
			return nil, fmt.Errorf("%w: --%s %q: %w; want a regular expression that is searched in the URL, such as /cart/ or \\.pdf$ "+
				"(for any characters write .*, for the characters ? * + . themselves \\? \\* \\+ \\.)", ErrConfig, flag, source, err)
		}
		p := pattern{re: re, rule: "excluded by pattern " + source}
		if regexp.QuoteMeta(re.String()) == re.String() {
			p.literal = []byte(re.String())
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// escapeLetters writes letters beyond ASCII as canonical URLs have them. It
// leaves patterns with character classes alone, where an escape of several
// characters cannot stand.
func escapeLetters(source string) string {
	if strings.Contains(source, "[") {
		return source
	}
	var b strings.Builder
	for _, r := range source {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		b.WriteString("(?:")
		for _, c := range []byte(string(r)) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
		b.WriteString(")")
	}
	return b.String()
}
