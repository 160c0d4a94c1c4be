package extract_test

import (
	"errors"
	"reflect"
	"testing"

	"deepcrawl/crawl/extract"
)

// sampleFacts sets every field.
func sampleFacts() extract.Facts {
	f := extract.Facts{}
	fill(reflect.ValueOf(&f).Elem(), 1)
	return f
}

// fill gives every field a value of its own, so that a field the codec forgets is noticed.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rune('a'+n%26)) + "\u00e9x")
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n * 300))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n + 7))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n+i)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n+i)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n+i)
		}
	}
}

func TestFactsCodec(t *testing.T) {
	t.Run("every field comes back", func(t *testing.T) {
		f := sampleFacts()
		blob, err := f.AppendBinary([]byte("prefix"))
		if err != nil {
			t.Fatal(err)
		}
		var back extract.Facts
		if err := back.UnmarshalBinary(blob[len("prefix"):]); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, f) {
			t.Errorf("got %+v\nwant %+v", back, f)
		}
		if whole, err := f.MarshalBinary(); err != nil || string(whole) != string(blob[len("prefix"):]) {
			t.Errorf("MarshalBinary: %v", err)
		}
	})
	t.Run("zero facts are one byte", func(t *testing.T) {
		var f, back extract.Facts
		blob, err := f.AppendBinary(nil)
		if err != nil || len(blob) != 1 {
			t.Fatalf("got %x, %v", blob, err)
		}
		if err := back.UnmarshalBinary(blob); err != nil || !reflect.DeepEqual(back, f) {
			t.Errorf("got %+v, %v", back, err)
		}
	})
	t.Run("empty strings in lists stay", func(t *testing.T) {
		f := extract.Facts{H1: []string{""}, OG: []extract.Pair{{}}, JSONLD: []extract.JSONLD{{}}}
		blob, _ := f.AppendBinary(nil)
		var back extract.Facts
		if err := back.UnmarshalBinary(blob); err != nil || !reflect.DeepEqual(back, f) {
			t.Errorf("got %+v, %v", back, err)
		}
	})
	t.Run("unknown tags are skipped", func(t *testing.T) {
		f := extract.Facts{Title: "T"}
		blob, _ := f.AppendBinary(nil)
		blob = append(blob, 0xF0, 0x07, 3, 'x', 'y', 'z') // tag 1008, three bytes
		var back extract.Facts
		if err := back.UnmarshalBinary(blob); err != nil || back.Title != "T" {
			t.Errorf("got %+v, %v", back, err)
		}
	})
	t.Run("cut or foreign blobs are refused and leave zero facts", func(t *testing.T) {
		f := sampleFacts()
		blob, _ := f.AppendBinary(nil)
		refused := 0
		for n := range len(blob) {
			var back extract.Facts
			err := back.UnmarshalBinary(blob[:n])
			if err == nil {
				continue // cut between two fields
			}
			refused++
			if !errors.Is(err, extract.ErrFacts) || !reflect.DeepEqual(back, extract.Facts{}) {
				t.Fatalf("cut at %d: %v, %+v", n, err, back)
			}
		}
		if refused < len(blob)/2 {
			t.Errorf("only %d of %d cuts refused", refused, len(blob))
		}
		var back extract.Facts
		if err := back.UnmarshalBinary([]byte{9, 1, 1, 'x'}); !errors.Is(err, extract.ErrFacts) {
			t.Errorf("version 9: %v", err)
		}
	})
	t.Run("the blob of an ordinary page is 400 to 500 bytes", func(t *testing.T) {
		p := page(t, extract.Input{Body: benchPage()})
		if n := blobSize(t, &p.Facts); n < 300 || n > 550 {
			t.Errorf("got %d bytes", n)
		}
	})
}
