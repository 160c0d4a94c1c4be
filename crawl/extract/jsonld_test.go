package extract_test

import (
	"strings"
	"testing"

	"deepcrawl/crawl/extract"
)

func TestJSONLD(t *testing.T) {
	for block, want := range map[string]struct {
		types string
		valid bool
	}{
		` {"@context":"https://schema.org","@type":"Product","name":"x","offers":{"@type":"Offer"}} `: {"Product", true},
		`[{"@type":"A"},{"@type":["B","C"]}]`:                       {"A B C", true},
		`{"@graph":[{"@type":"WebSite"},{"@type":"Organization"}]}`: {"WebSite Organization", true},
		`{"@type":"A\u0042\/"}`:                                     {"AB/", true},
		`{"@type":5,"@graph":{"@type":null}}`:                       {"", true},
		`{"@type":["A",1,{"@type":"B"}]}`:                           {"A", true},
		`{"a":[1,-0.5e+3,true,false,null,"\\\""],"b":{}}`:           {"", true},
		`{"@type":"A",}`:                                            {"A", false},
		`{"@type":"A"} trailing`:                                    {"A", false},
		`{"a":"` + "\n" + `","@type":"A"}`:                          {"", false},
		`{'@type':'A'}`:                                             {"", false},
		`{"a":01}`:                                                  {"", false},
		`{"a":1.}`:                                                  {"", false},
		`{"a":tru}`:                                                 {"", false},
		`{"a":"\x"}`:                                                {"", false},
		`"just a string"`:                                           {"", false},
		``:                                                          {"", false},
		`<!-- {"@type":"A"} -->`:                                    {"", false},
		strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600): {"", false}, // deeper than is read
	} {
		types, valid := extract.ScanJSONLD([]byte(block))
		if strings.Join(types, " ") != want.types || valid != want.valid {
			t.Errorf("%.80s: got %q %v, want %q %v", block, types, valid, want.types, want.valid)
		}
	}
}
