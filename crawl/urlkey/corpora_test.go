package urlkey_test

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deepcrawl/crawl/urlkey"
)

// corpus returns a file of other people's test data, which stands outside of
// the repository.
func corpus(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("DEEPCRAWL_CORPORA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpora")
	}
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil {
		return data
	}
	if strings.Contains(os.Getenv("DEEPCRAWL_TEST_REQUIRE"), "corpora") {
		t.Fatalf("corpus is required: %v", err)
	}
	t.Skipf("no corpus %s; set DEEPCRAWL_CORPORA to the folder of corpora", name)
	return nil
}

// notMet lists the cases that a test does not meet on purpose: a reason, and
// the pattern of the inputs it holds for. It is checked in both directions.
type notMet []struct {
	reason string
	inputs *regexp.Regexp
}

func (n notMet) check(t *testing.T, input string, ok bool, format string, args ...any) {
	t.Helper()
	for _, x := range n {
		if x.inputs.MatchString(input) {
			if ok {
				t.Errorf("%q is met, but listed as not met: %s", input, x.reason)
			}
			return
		}
	}
	if !ok {
		t.Errorf("%q: "+format, append([]any{input}, args...)...)
	}
}

var re = regexp.MustCompile

type wptCase struct {
	Input    string
	Base     *string
	Failure  bool
	Href     string
	Protocol string
	Hostname string
	Port     string
	Pathname string
	Search   string
}

func readWPT(t *testing.T, name string) (cases []wptCase) {
	t.Helper()
	var entries []json.RawMessage
	if err := json.Unmarshal(corpus(t, name), &entries); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e[0] == '"' {
			continue // a comment
		}
		var c wptCase
		if err := json.Unmarshal(e, &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

var emptyLabel = regexp.MustCompile(`^\.|\.\.|^\.?$`)

// TestWebPlatformTests holds the canonical form against the hrefs of the web
// platform tests, changed by the rules of the package comment.
func TestWebPlatformTests(t *testing.T) {
	all := notMet{}
	c := newCanonicalizer(t, urlkey.Options{})
	for _, file := range []string{"urltestdata.json", "ada_extra_urltestdata.json", "ada_long_urltestdata.json"} {
		t.Run(file, func(t *testing.T) {
			met, other := 0, 0
			for _, tc := range readWPT(t, filepath.Join("url-wpt", file)) {
				var u urlkey.URL
				var err error
				key := tc.Input
				if tc.Base != nil {
					key += " on " + *tc.Base
				}
				web := tc.Base != nil && (strings.HasPrefix(*tc.Base, "http://") || strings.HasPrefix(*tc.Base, "https://"))
				if web {
					var b *urlkey.Base
					if b, err = c.NewBase(*tc.Base); err == nil {
						u, _, err = b.Resolve(nil, []byte(tc.Input))
					}
				} else {
					u, err = c.Parse(tc.Input)
				}
				if errors.Is(err, urlkey.ErrTooLong) {
					err = nil
				}
				switch {
				case tc.Failure || emptyLabel.MatchString(tc.Hostname):
					all.check(t, key, err != nil, "got %q, want a failure", u.Raw)
				case tc.Protocol != "http:" && tc.Protocol != "https:":
					all.check(t, key, err != nil, "got %q for a URL that is not of the web", u.Raw)
					other++
					continue
				default:
					want, wantErr := oracleRules(tc.Protocol, tc.Hostname, tc.Port, tc.Pathname, strings.TrimPrefix(tc.Search, "?"))
					if wantErr != nil {
						t.Fatal(wantErr)
					}
					all.check(t, key, err == nil && string(u.Raw) == want, "got %q, %v, want %q", u.Raw, err, want)
				}
				met++
			}
			t.Logf("%d cases of http(s) or failure, %d of other schemes", met, other)
		})
	}
}

// TestInternationalNames counts, for the names whose tables are older in
// x/net/idna than in the data, and lists, for the rest.
func TestInternationalNames(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	for _, file := range []struct {
		name   string
		notMet int
	}{
		{"toascii.json", 13},
		{"IdnaTestV2.json", 176},
	} {
		t.Run(file.name, func(t *testing.T) {
			var entries []json.RawMessage
			if err := json.Unmarshal(corpus(t, filepath.Join("url-wpt", file.name)), &entries); err != nil {
				t.Fatal(err)
			}
			n, unmet := 0, 0
			for _, e := range entries {
				var tc struct {
					Input  string
					Output *string
				}
				if e[0] == '"' || json.Unmarshal(e, &tc) != nil {
					continue
				}
				if tc.Input == "" || strings.ContainsAny(tc.Input, ":/?#@\\ \t\r\n") {
					continue // other parts of a URL would begin there
				}
				n++
				u, err := c.Parse("http://" + tc.Input + "/x")
				if tc.Output == nil || emptyLabel.MatchString(*tc.Output) {
					if err == nil {
						t.Errorf("%q: got %q, want a failure", tc.Input, u.Raw)
					}
					continue
				}
				if string(u.Raw) == "http://"+strings.TrimSuffix(*tc.Output, ".")+"/x" {
					continue
				}
				unmet++
				if !beyondIDNA(tc.Input) {
					t.Errorf("%q: got %q, %v, want %q", tc.Input, u.Raw, err, *tc.Output)
				}
			}
			t.Logf("%d names, %d not met", n, unmet)
			if unmet > file.notMet {
				t.Errorf("%d names are not met, %d were", unmet, file.notMet)
			}
		})
	}
}

// beyondIDNA says that x/net/idna is known to go another way than UTS #46 of
// the data: code points that Unicode allows in names since 15.1 (the signs for
// unequal, capital sharp s, letters whose lower case came later, fillers and
// other ignored ones) and labels that are too long only for DNS.
func beyondIDNA(name string) bool {
	return len(name) > 200 || strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 })
}

func TestCrawlerCommons(t *testing.T) {
	c := newCanonicalizer(t, urlkey.Options{})
	read := func(t *testing.T, name string, comma rune) (rows [][]string) {
		r := csv.NewReader(strings.NewReader(string(corpus(t, filepath.Join("url-normalize-crawler-commons", name)))))
		r.Comment, r.TrimLeadingSpace, r.FieldsPerRecord, r.LazyQuotes, r.Comma = '#', true, -1, true, comma
		rows, err := r.ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	t.Run("weird URLs are normalised", func(t *testing.T) {
		not := notMet{
			{"slashes in a row name another page", re(`^http://foo\.com/.*[^:]//|^http://foo\.com//`)},
			{"not of the web", re(`^(file|ftp):`)},
			{"no host", re(`^http:/+$`)},
			{"the caller knows whether a scheme may be missing, as on a command line", re(`^foo\.com`)},
			{"a lone percent sign is sent as browsers send it", re(`90%\+of|foobar%2?$|p%zz`)},
			{"parameters keep their order: servers tell it apart", re(`\?b(=1|=2|=)?&a=1`)},
			{"an empty value is not a missing one, and an empty parameter stays", re(`&b=$|&$|\?&|\?=1`)},
		}
		rows := read(t, "weirdToNormalizedUrls.csv", ',')
		for _, row := range rows {
			u, err := c.Parse(row[0])
			not.check(t, row[0], err == nil && string(u.Raw) == strings.TrimSpace(row[1]), "got %q, %v, want %q", u.Raw, err, row[1])
		}
		t.Logf("%d cases", len(rows))
	})
	t.Run("invalid URLs are refused", func(t *testing.T) {
		for _, row := range read(t, "invalidUrls.csv", '\x01') {
			if u, err := c.Parse(row[0]); !errors.Is(err, urlkey.ErrInvalid) {
				t.Errorf("%q: got %q, %v", row[0], u.Raw, err)
			}
		}
	})
	t.Run("links are resolved", func(t *testing.T) {
		not := notMet{}
		rows := read(t, "url-resolve.csv", ',')
		for _, row := range rows {
			href, base, want := row[0], row[1], row[2]
			var u urlkey.URL
			var err error
			if base == "" {
				u, err = c.Parse(href)
			} else {
				var b *urlkey.Base
				if b, err = c.NewBase(base); err == nil {
					u, _, err = b.Resolve(nil, []byte(href))
				}
			}
			// Their data resolves without normalising; ours does both.
			full, fullErr := c.Parse(want)
			if fullErr != nil {
				not.check(t, href, err != nil, "got %q", u.Raw)
				continue
			}
			not.check(t, href, err == nil && string(u.Raw) == string(full.Raw), "got %q, %v, want %q", u.Raw, err, full.Raw)
		}
		t.Logf("%d cases", len(rows))
	})
}

// TestNutch reads the cases of Nutch's regular expression normaliser. It
// removes session ids and default pages, which is a guess about the site and
// not a canonical form; what it has in common with this package is tested.
func TestNutch(t *testing.T) {
	not := notMet{
		{"session ids are not removed: a site that redirects to a URL with one would never be left", re(`(?i)sess|[?&_]sid=`)},
		{"default pages are pages of their own", re(`(?i)/(index|default)\.(html?|aspx?|php\d?|phtml|cfm|cgi|jsp[xa]?|jsf)$`)},
		{"what follows a # is a fragment", re(`#something\?`)},
		{"empty parameters stay", re(`\?&x=y|&&&`)},
		{"slashes in a row name another page", re(`[^:]//path|//foo\.html`)},
		{"not of the web", re(`^file:`)},
	}
	c := newCanonicalizer(t, urlkey.Options{})
	lines := bufio.NewScanner(strings.NewReader(string(corpus(t, filepath.Join("url-normalize-nutch", "regex-normalize-default.test")))))
	n := 0
	for lines.Scan() {
		in, want, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if !ok || strings.HasPrefix(in, "#") {
			continue
		}
		n++
		want = strings.TrimSpace(want)
		u, err := c.Parse(in)
		not.check(t, in, err == nil && string(u.Raw) == want, "got %q, %v, want %q", u.Raw, err, want)
	}
	t.Logf("%d cases", n)
}
