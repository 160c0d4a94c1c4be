package web

import "strings"

const fillers = 256

// text is the filler shared by all pages of a site: made-up words whose
// frequencies fall as those of a language do, so that word counts and
// similarity hashes of pages mean something, set in the kinds of blocks pages
// are made of. The blocks have about as much markup to a word as pages of the
// web have (a token each 15 bytes, 60 words to a kilobyte), for what a crawler
// costs depends on it.
type text struct {
	words  []string
	plain  [fillers][]byte // sentences
	blocks [fillers][]byte // HTML
}

// writer makes filler from a stream of random numbers.
type writer struct {
	state uint64
	words []string
}

func (w *writer) next(n int) int {
	w.state = mix(w.state)
	return int(w.state % uint64(n))
}

func newText(seed uint64) *text {
	onsets := strings.Fields("b br c ch d f fl g gr h j k l m n p pl qu r s sh st t th tr v w")
	vowels := strings.Fields("a e i o u ai ea ou ee")
	codas := []string{"", "", "", "n", "r", "s", "l", "t", "nd", "st", "ck"}
	w := &writer{state: mix(seed ^ 0x74657874<<32)}
	for len(w.words) < 2000 {
		var word strings.Builder
		for range 1 + w.next(3) {
			word.WriteString(onsets[w.next(len(onsets))] + vowels[w.next(len(vowels))] + codas[w.next(len(codas))])
		}
		w.words = append(w.words, word.String())
	}
	t := &text{words: w.words}
	for i := range t.plain {
		t.plain[i] = w.sentences(nil, 4+w.next(3), false)
		t.blocks[i] = w.block(i)
	}
	return t
}

// word chooses a word; the product of two draws favours the front of the list.
func (w *writer) word() string { return w.words[w.next(45)*w.next(45)] }

func (w *writer) phrase(b []byte, n int) []byte {
	for i := range n {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, w.word()...)
	}
	return b
}

// sentences appends n sentences, with some words marked up.
func (w *writer) sentences(b []byte, n int, markup bool) []byte {
	inline := [...][2]string{
		{"<em>", "</em>"}, {"<strong>", "</strong>"}, {`<span class="term highlight">`, "</span>"}, {"<code>", "</code>"}, {"<b>", "</b>"},
	}
	for i := range n {
		if i > 0 {
			b = append(b, ' ')
		}
		for k := range 7 + w.next(10) {
			word := w.word()
			if k == 0 {
				b = append(append(b, word[0]-'a'+'A'), word[1:]...)
				continue
			}
			b = append(b, ' ')
			if markup && w.next(14) == 0 {
				tag := inline[w.next(len(inline))]
				b = append(append(append(b, tag[0]...), word...), tag[1]...)
				continue
			}
			b = append(b, word...)
		}
		b = append(b, '.')
	}
	return b
}

// block writes one of the blocks pages are made of.
func (w *writer) block(kind int) []byte {
	var b []byte
	switch kind % 7 {
	case 0:
		b = append(b, "<ul class=\"list list-compact\">\n"...)
		for range 4 + w.next(3) {
			b = w.phrase(append(b, `  <li class="list-item mb-2"><span class="label text-muted">`...), 1)
			b = w.phrase(append(b, `</span> `...), 4+w.next(4))
			b = append(b, "</li>\n"...)
		}
		return append(b, "</ul>\n"...)
	case 1:
		b = append(b, "<table class=\"data table-striped\">\n<tbody>\n"...)
		for range 3 + w.next(3) {
			b = w.phrase(append(b, "  <tr><th scope=\"row\">"...), 1)
			b = append(b, "</th>"...)
			for range 3 {
				b = w.phrase(append(b, "<td>"...), 2+w.next(3))
				b = append(b, "</td>"...)
			}
			b = append(b, "</tr>\n"...)
		}
		return append(b, "</tbody>\n</table>\n"...)
	case 2:
		b = w.phrase(append(b, "<div class=\"card shadow-sm\" data-kind=\"teaser\">\n  <div class=\"card-body\">\n    <h3 class=\"card-title\">"...), 3)
		b = w.sentences(append(b, "</h3>\n    <p class=\"card-text\">"...), 2, true)
		b = w.phrase(append(b, "</p>\n    <span class=\"badge\">"...), 1)
		return append(b, "</span>\n  </div>\n</div>\n"...)
	default:
		b = w.sentences(append(b, "<p class=\"text\">"...), 3+w.next(3), true)
		return append(b, "</p>\n"...)
	}
}
