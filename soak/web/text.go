package web

import "strings"

const paragraphs = 256

// text is the filler shared by all pages of a site: paragraphs of made-up words
// whose frequencies fall as those of a language do, so that word counts and
// similarity hashes of pages mean something.
type text struct {
	words []string
	paras [paragraphs][]byte
}

func newText(seed uint64) *text {
	onsets := strings.Fields("b br c ch d f fl g gr h j k l m n p pl qu r s sh st t th tr v w")
	vowels := strings.Fields("a e i o u ai ea ou ee")
	codas := []string{"", "", "", "n", "r", "s", "l", "t", "nd", "st", "ck"}
	state := mix(seed ^ 0x7465787400000000)
	next := func(n int) int {
		state = mix(state)
		return int(state % uint64(n))
	}
	t := &text{}
	for len(t.words) < 2000 {
		var w strings.Builder
		for range 1 + next(3) {
			w.WriteString(onsets[next(len(onsets))] + vowels[next(len(vowels))] + codas[next(len(codas))])
		}
		t.words = append(t.words, w.String())
	}
	for i := range t.paras {
		var p []byte
		for sentence := range 5 + next(4) {
			if sentence > 0 {
				p = append(p, ' ')
			}
			for w := range 8 + next(12) {
				// The product of two draws favours the words at the front of the list.
				word := t.words[next(45)*next(45)]
				if w == 0 {
					p = append(p, word[0]-'a'+'A')
					p = append(p, word[1:]...)
					continue
				}
				p = append(p, ' ')
				p = append(p, word...)
			}
			p = append(p, '.')
		}
		t.paras[i] = p
	}
	return t
}

// paragraph returns the filler paragraph a random number chooses.
func (t *text) paragraph(r uint64) []byte { return t.paras[r%paragraphs] }
