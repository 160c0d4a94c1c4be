package extract_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"deepcrawl/crawl/extract"
)

// corpus is a folder of the shared test data, DEEPCRAWL_CORPORA or beside the checkout.
func corpus(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("DEEPCRAWL_CORPORA")
	if root == "" {
		root = "../../../shared/corpora"
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		if strings.Contains(os.Getenv("DEEPCRAWL_TEST_REQUIRE"), "corpora") {
			t.Fatalf("corpus %s is required: %v", name, err)
		}
		t.Skipf("no corpus %s: set DEEPCRAWL_CORPORA to the folder that holds it", name)
	}
	return dir
}

// htmlFiles reads every page of a corpus.
func htmlFiles(t *testing.T, name string) map[string][]byte {
	t.Helper()
	pages := map[string][]byte{}
	err := filepath.WalkDir(corpus(t, name), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".html" {
			return err
		}
		pages[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) == 0 {
		t.Fatalf("corpus %s holds no page", name)
	}
	return pages
}

func TestAgreesWithGoqueryOnCorpora(t *testing.T) {
	for _, name := range []string{"html-links-scrapy", "site-nutch"} {
		for path, body := range htmlFiles(t, name) {
			if filepath.Base(path) == "nested_spider_trap.html" {
				continue // the tree gives up on it; it has its own test
			}
			want, err := treeView(t, bytes.ToValidUTF8(body, []byte("\uFFFD")))
			if err != nil {
				t.Fatal(err)
			}
			if diff := differences(streamView(body), want); len(diff) > 0 {
				t.Errorf("%s\n\t%s", path, strings.Join(diff, "\n\t"))
			}
		}
	}
}

func hrefs(p *extract.Page, kind extract.LinkKind) []string {
	var out []string
	for _, l := range p.Links {
		if l.Kind == kind {
			out = append(out, string(l.Href))
		}
	}
	return out
}

func TestReadsTheNestedSpiderTrap(t *testing.T) {
	body, err := os.ReadFile(filepath.Join(corpus(t, "site-nutch"), "fetch-test-site/nested_spider_trap.html"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := html.Parse(bytes.NewReader(body)); err == nil {
		t.Log("x/net's tree builder takes the page now")
	}
	// The page has no links of its own, so one after the trap shows that all of it is read.
	body = bytes.Replace(body, []byte("</table>"), []byte("</table><h1>past it</h1><a href=/out>out</a>"), 1)
	p := page(t, extract.Input{Body: body})
	if got := hrefs(p, extract.Anchor); len(got) != 1 || got[0] != "/out" {
		t.Errorf("anchors: %q", got)
	}
	if p.Facts.Title != "nested spider trap" || len(p.Facts.H1) != 1 || p.Facts.Words != 7 {
		t.Errorf("title %q, h1 %q, %d words", p.Facts.Title, p.Facts.H1, p.Facts.Words)
	}
}

func TestReadsScrapysLinkPages(t *testing.T) {
	dir := corpus(t, "html-links-scrapy")
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, "link_extractor", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Run("every anchor with its text", func(t *testing.T) {
		p := page(t, extract.Input{Body: read("linkextractor.html")})
		want := "sample2.html http://example.com/sample3.html sample3.html sample3.html sample3.html#foo http://www.google.com/something http://example.com/innertag.html page 4.html"
		if got := strings.Join(hrefs(p, extract.Anchor), " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := hrefs(p, extract.Area); len(got) != 1 || got[0] != "sample1.html" {
			t.Errorf("areas: %q", got)
		}
		if p.Facts.Base != "http://example.com" {
			t.Errorf("base %q", p.Facts.Base)
		}
		for _, l := range p.Links {
			if string(l.Href) == "http://example.com/innertag.html" && string(l.Text) != "inner tag" {
				t.Errorf("text %q", l.Text)
			}
		}
	})
	t.Run("latin1 by meta", func(t *testing.T) {
		// The label "latin-1" is unknown to the Encoding standard, so bytes decide: they are not UTF-8, hence windows-1252.
		p := page(t, extract.Input{Body: read("linkextractor_latin1.html")})
		want := []string{"sample_\u00f1.html", "sample_\u00e1.html", "sample_\u00f6.html?price=\u00a3" + "32&\u00b5=unit"}
		if got := hrefs(p, extract.Anchor); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("got %q in %s, want %q", got, p.Facts.Charset, want)
		}
	})
	t.Run("no declared encoding", func(t *testing.T) {
		p := page(t, extract.Input{Body: read("linkextractor_noenc.html")})
		if got := hrefs(p, extract.Anchor); strings.Join(got, " ") != "sample_\u00f1.html sample_\u20ac.html" || p.Facts.Charset != "utf-8" {
			t.Errorf("got %q in %s", got, p.Facts.Charset)
		}
	})
	t.Run("anchors without href are no links", func(t *testing.T) {
		p := page(t, extract.Input{Body: read("linkextractor_no_href.html")})
		if got := strings.Join(hrefs(p, extract.Anchor), " "); got != "/author/Albert-Einstein /page/1/ /page/3/ /page/4/" {
			t.Errorf("got %q", got)
		}
	})
}
