package sitemap_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"deepcrawl/crawl/sitemap"
)

// corpus returns a folder of the shared test data, or skips with the variable to set.
func corpus(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("DEEPCRAWL_CORPORA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "corpora")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		if strings.Contains(os.Getenv("DEEPCRAWL_TEST_REQUIRE"), "corpora") {
			t.Fatalf("corpora are required: %v", err)
		}
		t.Skipf("no corpora at %s; set DEEPCRAWL_CORPORA", root)
	}
	return dir
}

func decode(t testing.TB, body []byte, l sitemap.Limits) ([]sitemap.Entry, sitemap.Info, error) {
	t.Helper()
	var out []sitemap.Entry
	info, err := sitemap.Decode(t.Context(), bytes.NewReader(body), l, func(e sitemap.Entry) error {
		out = append(out, e)
		return nil
	})
	if info.Entries != len(out) {
		t.Errorf("Info.Entries %d, yielded %d", info.Entries, len(out))
	}
	return out, info, err
}

// TestCrawlerCommonsSitemaps holds what crawler-commons' own tests expect of its
// files (its SiteMapParserTest and SiteMapParserExtensionTest), and for files
// added later what is plain in them.
func TestCrawlerCommonsSitemaps(t *testing.T) {
	dir := corpus(t, "sitemaps-crawler-commons")
	tests := map[string]struct {
		kind  sitemap.Kind
		n     int
		first string
		last  string
	}{
		"sitemaps/atom.xml":          {sitemap.Atom, 1, "http://example.org/2003/12/13/atom03", ""},
		"sitemaps/sitemap.ns.xml":    {sitemap.URLSet, 2, "http://www.example.com/1", "http://www.example.com/2"},
		"sitemaps/sitemap.badns.xml": {sitemap.URLSet, 2, "http://www.example.com/1", "http://www.example.com/2"},
		"sitemaps/sitemap.index.xml": {sitemap.Index, 15, "https://example.com/sitemap.jss?portalCode=10260&lang=en",
			"https://example.com/sitemap.jss?portalCode=10570&lang=en"},
		"sitemaps/do-not-visit.txt":     {sitemap.Text, 1, "http://www.example.com/do-not-visit-here", ""},
		"sitemaps/sitemap.txt":          {sitemap.Text, 2, "http://www.domain.com/page1.html", "http://www.domain.com/page2.html"},
		"sitemaps/sitemap-with-bom.txt": {sitemap.Text, 2, "http://www.domain.com/page1.html", "http://www.domain.com/page2.html"},
		"sitemaps/sitemap.txt.gz":       {sitemap.Text, 5, "http://www.example.com/", "http://www.example.com/catalog?item=83&desc=vacation_usa"},
		"sitemaps/xmlSitemap.gz":        {sitemap.URLSet, 5, "http://www.example.com/", "http://www.example.com/catalog?item=83&desc=vacation_usa"},
		"sitemaps/extension/hebdenbridgetimes-articles-sitemap.xml": {sitemap.URLSet, 74,
			"http://www.hebdenbridgetimes.co.uk/news/local/video-tour-de-yorkshire-in-calderdale-1-7242580", ""},
		"sitemaps/extension/pagemaps-sitemap.xml": {sitemap.URLSet, 2, "http://www.example.com/foo", "http://www.example.com/bar"},
		"sitemaps/extension/shinpaideshou-news-sitemap.xml": {sitemap.URLSet, 3,
			"https://shinpaideshou.wordpress.com/2017/04/25/job-opening-reischauer-policy-research-fellow/", ""},
		"sitemaps/extension/sitemap-images.xml": {sitemap.URLSet, 1, "http://www.example.com/images/some_image_landing_page.html", ""},
		"sitemaps/extension/sitemap-links.xml":  {sitemap.URLSet, 3, "http://www.example.com/english/", "http://www.example.com/schweiz-deutsch/"},
		"sitemaps/extension/sitemap-mobile.xml": {sitemap.URLSet, 3, "http://www.example.com/mobile-friendly-1/", "http://www.example.com/no-mobile/"},
		"sitemaps/extension/sitemap-news.xml": {sitemap.URLSet, 2, "http://www.example.org/business/article55.html",
			"http://www.example.org/empty_news_name.html"},
		"sitemaps/extension/sitemap-videos.xml": {sitemap.URLSet, 3, "http://www.example.com/videos/some_video_landing_page.html",
			"http://www.example.com/videos/some_video_landing_page-3.html"},
		"sitemaps/extension/sitemap-videos-tvshow.xml": {sitemap.URLSet, 1, "https://example.org/my-tv-show/23/13/", ""},
		"rss/feed.rss":           {sitemap.RSS, 4, "https://www.example.com/blog/post/1", "https://www.example.com/foo?q=a&l=fr"},
		"rss/xmlRss_pubDate.xml": {sitemap.RSS, 7, "http://www.example.com/article_1", "http://www.example.com/article_7"},
	}
	seen := 0
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Dir(p) == dir {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		tt, ok := tests[filepath.ToSlash(name)]
		if !ok {
			t.Errorf("%s: no expectations", name)
			return nil
		}
		seen++
		body, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		got, info, err := decode(t, body, sitemap.Limits{})
		if err != nil || info.Kind != tt.kind || len(got) != tt.n || info.Skipped != 0 || len(info.Warnings) != 0 {
			t.Errorf("%s: got %d entries, %+v, %v", name, len(got), info, err)
			return nil
		}
		if got[0].Loc != tt.first || tt.last != "" && got[len(got)-1].Loc != tt.last {
			t.Errorf("%s: got %q to %q", name, got[0].Loc, got[len(got)-1].Loc)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != len(tests) {
		t.Errorf("%d of %d files are there", seen, len(tests))
	}
}

func TestCrawlerCommonsDetails(t *testing.T) {
	dir := corpus(t, "sitemaps-crawler-commons")
	read := func(name string) []sitemap.Entry {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := decode(t, body, sitemap.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	t.Run("publication dates in seven forms", func(t *testing.T) {
		want := []string{"2017-01-05T12:34:51Z", "2017-01-05T12:34:52Z", "2017-01-05T12:34:53Z", "2017-01-05T12:34:54Z", "2017-01-05T13:34:55Z", "", ""}
		for i, e := range read("rss/xmlRss_pubDate.xml") {
			got := ""
			if !e.LastMod.IsZero() {
				got = e.LastMod.Format(time.RFC3339)
			}
			if got != want[i] {
				t.Errorf("item %d: got %q, want %q", i+1, got, want[i])
			}
		}
	})
	t.Run("the protocol's own example", func(t *testing.T) {
		got := read("sitemaps/xmlSitemap.gz")
		if e := got[0]; e.Priority != 0.8 || !e.HasPriority || e.ChangeFreq != "monthly" || e.LastMod.Format(time.DateOnly) != "2005-01-01" {
			t.Errorf("got %+v", e)
		}
		if e := got[1]; e.HasPriority || e.ChangeFreq != "weekly" || !e.LastMod.IsZero() || e.Loc != "http://www.example.com/catalog?item=12&desc=vacation_hawaii" {
			t.Errorf("got %+v", e)
		}
	})
	t.Run("three languages on each of three pages", func(t *testing.T) {
		for _, e := range read("sitemaps/extension/sitemap-links.xml") {
			want := []sitemap.Alternate{{Lang: "de", Href: "http://www.example.com/deutsch/"},
				{Lang: "de-ch", Href: "http://www.example.com/schweiz-deutsch/"}, {Lang: "en", Href: "http://www.example.com/english/"}}
			if !slices.Equal(e.Alternates, want) {
				t.Errorf("%s: got %v", e.Loc, e.Alternates)
			}
		}
	})
}

// TestFeedparserCorpus reads 1,800 ill-formed and oddly encoded feeds. Each ends
// in entries, in nothing, or in one of the package's errors; the same whether the
// body comes at once or byte by byte.
func TestFeedparserCorpus(t *testing.T) {
	file, err := os.Open(filepath.Join(corpus(t, "feeds-feedparser"), "illformed_wellformed_encoding.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	gz, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	tr := tar.NewReader(gz)
	files, feeds, entries, checked := 0, 0, 0, 0
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		body, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		files++
		got, info, err := decode(t, body, sitemap.Limits{})
		if err != nil && !errors.Is(err, sitemap.ErrSyntax) && !errors.Is(err, sitemap.ErrNotSitemap) {
			t.Errorf("%s: %v", h.Name, err)
		}
		if info.Kind != sitemap.Unknown {
			feeds++
		}
		entries += len(got)
		checked += expected(t, h.Name, body, got)
		var slow []sitemap.Entry
		_, slowErr := sitemap.Decode(t.Context(), iotest.OneByteReader(bytes.NewReader(body)), sitemap.Limits{}, func(e sitemap.Entry) error {
			slow = append(slow, e)
			return nil
		})
		if !reflect.DeepEqual(got, slow) || (err == nil) != (slowErr == nil) {
			t.Errorf("%s: at once %v %v, byte by byte %v %v", h.Name, got, err, slow, slowErr)
		}
	}
	t.Logf("%d files, %d recognised, %d entries with a URL, %d links and dates as expected", files, feeds, entries, checked)
	if files < 1800 || feeds < files*9/10 || checked < 25 {
		t.Errorf("%d of %d files recognised, %d checked", feeds, files, checked)
	}
}

var (
	expectLink = regexp.MustCompile(`Expect:.*entries\[0\](?:\['link'\]|\.link) == .*?'(http[^']*)'`)
	expectDate = regexp.MustCompile(`Expect:.*entries\[0\]\['(?:updated|published)_parsed'\] == \((\d+), (\d+), (\d+), (\d+), (\d+), (\d+)`)
)

// notMet are expectations that do not hold, with the reason.
var notMet = map[string]string{
	"wellformed/atom/entry_published_parsed_date_overwriting.xml": "of several dates of one rank the first counts, not the last",
	"wellformed/atom/entry_updated_multiple_values.xml":           "of several dates of one rank the first counts, not the last",
	"wellformed/base/http_item_link_base_docuri.xml":              "Loc is as written; the caller knows the base",
	"wellformed/base/http_item_link_base_content_location.xml":    "Loc is as written; the caller knows the base",
	"wellformed/cdf/item_href_map_link.xml":                       "CDF (1997) keeps its links in attributes; no site serves it as a sitemap",
	"wellformed/cdf/item_lastmod_parsed.xml":                      "CDF (1997) keeps its links in attributes; no site serves it as a sitemap",
}

// expected compares the first entry with the file's own Expect line, where that is
// about its link or its date, and returns how many expectations held.
func expected(t *testing.T, name string, body []byte, got []sitemap.Entry) int {
	if _, ok := notMet[name]; ok {
		return 0
	}
	if m := expectLink.FindSubmatch(body); m != nil {
		if len(got) == 0 || got[0].Loc != string(m[1]) {
			t.Errorf("%s: got %+v, want the link %s", name, got, m[1])
			return 0
		}
		return 1
	}
	m := expectDate.FindSubmatch(body)
	if m == nil {
		return 0
	}
	// These items have no link; give them one.
	body = bytes.ReplaceAll(body, []byte("<item>"), []byte("<item><link>http://x.example/</link>"))
	body = bytes.ReplaceAll(body, []byte("<entry>"), []byte(`<entry><link href="http://x.example/"/>`))
	got, _, _ = decode(t, body, sitemap.Limits{})
	var n [6]int
	for i := range n {
		n[i], _ = strconv.Atoi(string(m[i+1]))
	}
	want := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, time.UTC)
	if len(got) == 0 || !got[0].LastMod.Equal(want) {
		t.Errorf("%s: got %+v, want the date %v", name, got, want)
		return 0
	}
	return 1
}
