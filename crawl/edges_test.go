package crawl

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"deepcrawl/crawl/extract"
)

func TestLinkRowsReadBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var row []byte
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Edge {
			e := Edge{
				Kind:     extract.LinkKind(rapid.SampledFrom([]int{1, 2, 7, 10, int(KindRedirect)}).Draw(t, "kind")),
				Nofollow: rapid.Bool().Draw(t, "nofollow"),
			}
			if rapid.Bool().Draw(t, "inline") {
				e.URL = []byte(rapid.StringN(1, 40, 2048).Draw(t, "url"))
			} else {
				e.Self = rapid.Bool().Draw(t, "self")
				copy(e.Prefix[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "prefix"))
			}
			return e
		}), 0, 30).Draw(t, "edges")
		for _, e := range want {
			if len(e.URL) > 0 {
				row = appendEdgeURL(row, e.Kind, e.Nofollow, e.URL)
			} else {
				row = appendEdgeKey(row, e.Kind, e.Nofollow, e.Self, e.Prefix)
			}
		}
		i := 0
		err := EachEdge(row, func(e Edge) {
			w := want[i]
			if e.Kind != w.Kind || e.Nofollow != w.Nofollow || e.Self != w.Self || e.Prefix != w.Prefix || !bytes.Equal(e.URL, w.URL) {
				t.Fatalf("edge %d: got %+v, want %+v", i, e, w)
			}
			i++
		})
		if err != nil || i != len(want) {
			t.Fatalf("read %d of %d edges, error %v", i, len(want), err)
		}
	})
}

func FuzzEachEdge(f *testing.F) {
	f.Add([]byte{1, 1, 1, 2, 3, 4, 5, 6, 7, 8})
	f.Add([]byte{1, 0x41, 3, 'a', 'b', 'c'})
	f.Add([]byte{1, 0x41, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, row []byte) {
		n := 0
		if err := EachEdge(row, func(Edge) { n++ }); err == nil && len(row) > 1 && n == 0 {
			t.Fatalf("no edge and no error for %d bytes", len(row))
		}
	})
}

func TestADamagedLinkRowIsAnError(t *testing.T) {
	for name, row := range map[string][]byte{
		"unknown codec":  {9, 1, 2, 3},
		"short key":      {1, 1, 1, 2, 3},
		"short URL":      {1, 0x41, 5, 'a'},
		"length missing": {1, 0x41},
		"length too big": {1, 0x41, 0xff, 0xff, 0xff, 0xff, 0x0f, 'a'},
	} {
		t.Run(name, func(t *testing.T) {
			if err := EachEdge(row, func(Edge) {}); err == nil {
				t.Error("no error")
			}
		})
	}
}
