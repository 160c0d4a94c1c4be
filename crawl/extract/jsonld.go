package extract

import (
	"bytes"
	"encoding/json"
)

// maxJSONDepth bounds nesting; deeper JSON-LD is called invalid.
const maxJSONDepth = 500

// jsonScanner checks one JSON text (RFC 8259) and collects the @type values of its top-level nodes and of their @graph.
type jsonScanner struct {
	b     []byte
	i     int
	depth int
	types []string
	cut   bool // more types than are kept
}

// scanJSONLD reads one block. It stops at the first error, keeping the types found so far.
func scanJSONLD(b []byte) (types []string, valid, cut bool) {
	s := jsonScanner{b: b}
	s.space()
	if s.i >= len(b) || b[s.i] != '{' && b[s.i] != '[' {
		return nil, false, false
	}
	if s.value(true) {
		s.space()
		valid = s.i == len(b)
	}
	return s.types, valid, s.cut
}

func (s *jsonScanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// value reads one value; node says that objects in it are nodes whose types are wanted.
func (s *jsonScanner) value(node bool) bool {
	s.space()
	if s.i >= len(s.b) {
		return false
	}
	switch c := s.b[s.i]; {
	case c == '{':
		return s.nested('}', func() bool { return s.member(node) })
	case c == '[':
		return s.nested(']', func() bool { return s.value(node) })
	case c == '"':
		_, ok := s.text()
		return ok
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	}
	return s.number()
}

// nested reads an object or array whose items the callback reads.
func (s *jsonScanner) nested(closing byte, item func() bool) bool {
	if s.depth++; s.depth > maxJSONDepth {
		return false
	}
	s.i++
	s.space()
	if s.i < len(s.b) && s.b[s.i] == closing {
		s.i++
		s.depth--
		return true
	}
	for {
		if !item() {
			return false
		}
		s.space()
		if s.i >= len(s.b) {
			return false
		}
		switch s.b[s.i] {
		case ',':
			s.i++
		case closing:
			s.i++
			s.depth--
			return true
		default:
			return false
		}
	}
}

func (s *jsonScanner) member(node bool) bool {
	s.space()
	if s.i >= len(s.b) || s.b[s.i] != '"' {
		return false
	}
	key, ok := s.text()
	if !ok {
		return false
	}
	s.space()
	if s.i >= len(s.b) || s.b[s.i] != ':' {
		return false
	}
	s.i++
	switch {
	case node && string(key) == `"@graph"`:
		return s.value(true)
	case node && string(key) == `"@type"`:
		return s.typeValue()
	}
	return s.value(false)
}

// typeValue reads the value of @type: a string, or an array of them.
func (s *jsonScanner) typeValue() bool {
	s.space()
	if s.i >= len(s.b) {
		return false
	}
	switch s.b[s.i] {
	case '"':
		raw, ok := s.text()
		if ok {
			s.addType(raw)
		}
		return ok
	case '[':
		return s.nested(']', func() bool {
			s.space()
			if s.i < len(s.b) && s.b[s.i] == '"' {
				raw, ok := s.text()
				if ok {
					s.addType(raw)
				}
				return ok
			}
			return s.value(false)
		})
	}
	return s.value(false)
}

func (s *jsonScanner) addType(raw []byte) {
	if len(s.types) >= MaxTypes || len(raw) > MaxHeading {
		s.cut = true
		return
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			s.types = append(s.types, text)
		}
		return
	}
	s.types = append(s.types, string(raw[1:len(raw)-1]))
}

// text reads a string and returns it with its quotes.
func (s *jsonScanner) text() (raw []byte, ok bool) {
	start := s.i
	for s.i++; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start:s.i], true
		case c < ' ':
			return nil, false
		case c == '\\':
			s.i++
			if s.i >= len(s.b) {
				return nil, false
			}
			switch s.b[s.i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for n := 0; n < 4; n++ {
					s.i++
					if s.i >= len(s.b) || !isHex(s.b[s.i]) {
						return nil, false
					}
				}
			default:
				return nil, false
			}
		}
	}
	return nil, false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= lowerTable[c] && lowerTable[c] <= 'f'
}

func (s *jsonScanner) word(w string) bool {
	if !bytes.HasPrefix(s.b[s.i:], []byte(w)) {
		return false
	}
	s.i += len(w)
	return true
}

func (s *jsonScanner) digits() int {
	start := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i - start
}

func (s *jsonScanner) number() bool {
	if s.b[s.i] == '-' {
		s.i++
	}
	zero := s.i < len(s.b) && s.b[s.i] == '0'
	if n := s.digits(); n == 0 || zero && n > 1 {
		return false
	}
	if s.i < len(s.b) && s.b[s.i] == '.' {
		s.i++
		if s.digits() == 0 {
			return false
		}
	}
	if s.i < len(s.b) && lowerTable[s.b[s.i]] == 'e' {
		s.i++
		if s.i < len(s.b) && (s.b[s.i] == '+' || s.b[s.i] == '-') {
			s.i++
		}
		if s.digits() == 0 {
			return false
		}
	}
	return true
}
