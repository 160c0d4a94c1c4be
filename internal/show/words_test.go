package show_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"deepcrawl/internal/show"
)

func TestCleanKeepsWritingAndDropsTricks(t *testing.T) {
	for in, want := range map[string]string{
		"plain <b>text</b>":                 "plain <b>text</b>",
		"con\x00\x01\x1b[31mtrol\x7f\u0085": "con[31mtrol",
		"\u202egnp.exe\u202c \u2066x\u2069": "gnp.exe x",
		"Việt Nam, שָׁלוֹם, नमस्ते, 👩\u200d👩\u200d👧, می\u200cروم":                    "Việt Nam, שָׁלוֹם, नमस्ते, 👩\u200d👩\u200d👧, می\u200cروم",
		"Z" + strings.Repeat("\u0335\u0489", 50) + "y" + strings.Repeat("\u0301", 3): "Z" + strings.Repeat("\u0335\u0489", 4) + "y" + strings.Repeat("\u0301", 3),
	} {
		if got := show.Clean(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestEscapeKeepsWhatJSONMeans(t *testing.T) {
	in := map[string]string{"title": "a\x00\x7f\u0085\u202eb\n" + "Z" + strings.Repeat("\u0335", 12) + strings.Repeat("\U0001E000", 9), "b": "Việt"}
	b, err := json.MarshalIndent(in, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text := show.Escape(string(b))
	if bad := strings.ReplaceAll(text, "\n", ""); show.Clean(bad) != bad {
		t.Errorf("got %q", text)
	}
	var out map[string]string
	if err := json.Unmarshal([]byte(text), &out); err != nil || !maps.Equal(in, out) {
		t.Errorf("got %q, %v", out, err)
	}
}
