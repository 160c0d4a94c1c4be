package extract_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"deepcrawl/crawl/extract"
)

func TestVisibleText(t *testing.T) {
	for name, c := range map[string]struct {
		body, text string
		words      int
	}{
		"white space collapses":                   {"<p> a\n\t b </p><p>c</p>", "a b c", 3},
		"inline tags do not separate":             {"<p>f<b>o</b>o <i>bar</i><span></span>baz", "foo barbaz", 2},
		"blocks and breaks do":                    {"a<br>b<div>c</div>d<td>e</td><li>f", "a b c d e f", 6},
		"references":                              {"a&nbsp;b &amp; c&#x2003;d &eacute;t&eacute;", "a b & c d \u00e9t\u00e9", 5},
		"punctuation alone is no word":            {"one - two \u2014 three | \u00b7 4 ... \u00bb", "one - two \u2014 three | \u00b7 4 ... \u00bb", 4},
		"inner punctuation stays inside":          {"don't e-mail a/b 3.14 x@y.z", "don't e-mail a/b 3.14 x@y.z", 5},
		"what a reader does not see":              {"x<script>a</script><style>b</style><noscript>c</noscript><template>d</template><textarea>e</textarea><iframe>f</iframe><svg><title>g</title><text>h</text></svg>y", "x y", 2},
		"foreignObject and MathML are seen":       {"<svg><foreignObject><p>in</p></foreignObject></svg> <math><mi>x</mi><mo>=</mo><mn>1</mn></math>", "in x=1", 2},
		"the title is not the body":               {"<title>no</title>yes", "yes", 1},
		"Cyrillic and Greek":                      {"\u041f\u0440\u0438\u0432\u0435\u0442, \u03ba\u03cc\u03c3\u03bc\u03b5!", "\u041f\u0440\u0438\u0432\u0435\u0442, \u03ba\u03cc\u03c3\u03bc\u03b5!", 2},
		"each ideograph is a word":                {"\u4e2d\u6587\u5b57, \u30ab\u30bf ABC\u4e2d", "\u4e2d\u6587\u5b57, \u30ab\u30bf ABC\u4e2d", 7},
		"CJK punctuation and ideographic space":   {"\u4e2d\u3002\u6587\u3000\u5b57\uff01", "\u4e2d\u3002\u6587 \u5b57\uff01", 3},
		"Hangul goes by spaces":                   {"\ud55c\uad6d\uc5b4 \ubb38\uc7a5", "\ud55c\uad6d\uc5b4 \ubb38\uc7a5", 2},
		"Thai goes by spaces and U+200B":          {"\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u200b\u0e0a\u0e32\u0e27", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35 \u0e0a\u0e32\u0e27", 2},
		"soft hyphens and controls vanish":        {"hy&shy;phen a\x00b c\x1fd \ufeffe", "hyphen ab cd e", 4},
		"a lone ampersand and less-than are text": {"a & b < c &; &x; 5<6", "a & b < c &; &x; 5<6", 5},
		"nothing": {"", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := page(t, extract.Input{Body: []byte(c.body), ContentType: "text/html; charset=utf-8"})
			if got := string(p.VisibleText()); got != c.text || p.Facts.Words != c.words || p.Facts.TextBytes != len(c.text) {
				t.Errorf("got %q, %d words, %d bytes, want %q, %d", got, p.Facts.Words, p.Facts.TextBytes, c.text, c.words)
			}
		})
	}
}

func TestContentHash(t *testing.T) {
	facts := func(body string) extract.Facts { return page(t, extract.Input{Body: []byte(body)}).Facts }
	a, b := facts("<p class=x>same  text</p><!-- 1 -->"), facts("<div>same</div>\n<b>text</b><script>2</script>")
	if a.ContentHash != b.ContentHash || a.Simhash != b.Simhash || a.ContentHash == ([16]byte{}) {
		t.Errorf("the same text hashes differently: %x %x", a.ContentHash, b.ContentHash)
	}
	if a.BodyHash == b.BodyHash || a.BodyHash == ([16]byte{}) {
		t.Error("different bodies hash alike")
	}
	if c := facts("<p>other text"); c.ContentHash == a.ContentHash {
		t.Error("different texts hash alike")
	}
	if c := facts("<p></p>"); c.ContentHash != ([16]byte{}) || c.Simhash != 0 {
		t.Error("no text has a hash")
	}
}

// vocabulary gives words with the skew of natural language: the n-th is about 1/n as frequent as the first.
func vocabulary(rng *rand.Rand) func() string {
	zipf := rand.NewZipf(rng, 1.2, 3, 20_000)
	return func() string { return fmt.Sprintf("word%d", zipf.Uint64()) }
}

func TestSimhashTellsNearDuplicates(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	word := vocabulary(rng)
	hash := func(words []string) uint64 {
		return page(t, extract.Input{Body: []byte("<p>" + strings.Join(words, " "))}).Facts.Simhash
	}
	text := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = word()
		}
		return out
	}
	const rounds, length = 200, 600
	var unrelated, oneWord, tenWords, paragraph int
	worstOne, closest := 0, 64
	for range rounds {
		a, b := text(length), text(length)
		d := extract.Distance(hash(a), hash(b))
		unrelated += d
		closest = min(closest, d)
		edited := append([]string{}, a...)
		edited[rng.IntN(length)] = "changed"
		d = extract.Distance(hash(a), hash(edited))
		oneWord += d
		worstOne = max(worstOne, d)
		for range 9 {
			edited[rng.IntN(length)] = word()
		}
		tenWords += extract.Distance(hash(a), hash(edited))
		paragraph += extract.Distance(hash(a), hash(append(append([]string{}, a...), text(60)...)))
	}
	mean := func(sum int) float64 { return float64(sum) / rounds }
	t.Logf("mean distance over %d words: unrelated %.1f (closest %d), one word changed %.1f (worst %d), ten %.1f, a tenth added %.1f",
		length, mean(unrelated), closest, mean(oneWord), worstOne, mean(tenWords), mean(paragraph))
	if m := mean(unrelated); m < 29 || m > 33 || closest < 12 {
		t.Errorf("unrelated pages: mean %.1f, closest %d, want about 32", m, closest)
	}
	if mean(oneWord) > 2 || worstOne > 6 {
		t.Errorf("one word changed: mean %.1f, worst %d", mean(oneWord), worstOne)
	}
	if mean(tenWords) > 7 || mean(paragraph) > 9 {
		t.Errorf("ten words changed %.1f, a tenth added %.1f", mean(tenWords), mean(paragraph))
	}
}

// TestSimhashCounts compares the bit-sliced counters with plain ones.
func TestSimhashCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for n := range 300 {
		features := make([]uint64, n)
		var counts [64]int
		bias := rng.Uint64()
		for i := range features {
			features[i] = rng.Uint64() | bias&rng.Uint64()
			for b := range 64 {
				counts[b] += int(features[i] >> b & 1)
			}
		}
		var want uint64
		for b := range 64 {
			if n > 0 && counts[b] > n/2 {
				want |= 1 << b
			}
		}
		if got := extract.SimhashOf(features); got != want {
			t.Fatalf("%d features: got %x, want %x", n, got, want)
		}
	}
}

// TestFastPathAgrees reads the same words with and without what the fast path for plain words takes.
func TestFastPathAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	letters := []string{"a", "B", "7", "-", ",", ".", "\u00e9", "&amp;", "z", "Q"}
	for range 2000 {
		var words []string
		for range 1 + rng.IntN(12) {
			w := ""
			for range 1 + rng.IntN(20) {
				w += letters[rng.IntN(len(letters))*rng.IntN(2)]
			}
			words = append(words, w)
		}
		fast := page(t, extract.Input{Body: []byte("<p>" + strings.Join(words, " ") + "                 "), ContentType: "text/html;charset=utf-8"})
		// Alone between tags a word is too short a run for the fast path.
		slow := "<p>" + strings.Join(words, "<b> </b>")
		p := page(t, extract.Input{Body: []byte(slow), ContentType: "text/html;charset=utf-8"})
		if string(fast.VisibleText()) != string(p.VisibleText()) || fast.Facts.Words != p.Facts.Words || fast.Facts.Simhash != p.Facts.Simhash {
			t.Fatalf("%q: %d words %x, cut up %d words %x", words, fast.Facts.Words, fast.Facts.Simhash, p.Facts.Words, p.Facts.Simhash)
		}
	}
}
