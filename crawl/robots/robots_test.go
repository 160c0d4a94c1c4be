package robots_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"deepcrawl/crawl/robots"
)

func allowed(t *testing.T, body, path string) (bool, string) {
	t.Helper()
	return robots.Parse([]byte(body)).Group("bot").Allowed(path)
}

func TestEncodingsAreComparedByBothReadings(t *testing.T) {
	tests := []struct {
		name, rules, path string
		want              bool
	}{
		{"a refused path, its octets encoded in the rule", "Disallow: /%7Ejoe", "/~joe/x", false},
		{"a refused path, its octets encoded in the URL", "Disallow: /~joe", "/%7Ejoe/x", false},
		{"a refused path in raw UTF-8 in both", "Disallow: /ツ", "/ツ", false},
		{"a refused path in raw UTF-8 in the URL", "Disallow: /%E3%83%84", "/ツ", false},
		{"a refused path, hex digits of either case", "Disallow: /%e3%83%84", "/%E3%83%84", false},
		{"hex digits of the URL in lower case", "Disallow: /a%2Fb", "/a%2fb", false},
		{"a reserved octet is not its character", "Disallow: /a%2Fb", "/a/b", true},
		{"a star encoded is a character", "Disallow: /a%2Ab", "/axxb", true},
		{"a star encoded refuses the star encoded", "Disallow: /a%2Ab", "/a%2Ab", false},
		{"an allowed path, its octets encoded in the URL", "Disallow: /\nAllow: /~mak", "/%7Emak/mak.html", true},
		{"an allowed path, its octets encoded in the rule, stays Google's", "Disallow: /\nAllow: /%7Emak", "/~mak/", false},
		{"a broken encoding is text", "Disallow: /100%", "/100%zz", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, line := allowed(t, "User-agent: *\n"+tt.rules, tt.path); got != tt.want {
				t.Errorf("got %v by %q, want %v", got, line, tt.want)
			}
		})
	}
}

func TestTheLineThatDecidedIsReported(t *testing.T) {
	body := "user-agent: bot\nDISALLOW :  /private/*?id=  # secret\nallow: /private/ok\ndisalow: /Ünter\n"
	tests := []struct {
		path, line string
		ok         bool
	}{
		{"/private/x?id=1", "Disallow: /private/*?id=", false},
		{"/private/ok", "Allow: /private/ok", true},
		{"/%C3%9Cnter/x", "Disallow: /Ünter", false},
		{"/else", "", true},
		{"", "", true},
	}
	for _, tt := range tests {
		if ok, line := allowed(t, body, tt.path); ok != tt.ok || line != tt.line {
			t.Errorf("%s: got %v %q, want %v %q", tt.path, ok, line, tt.ok, tt.line)
		}
	}
}

func TestGroupsAreChosenByProductToken(t *testing.T) {
	body := "User-agent: *\nDisallow: /all\n\nUser-agent: Bot\nDisallow: /bot\n\nUser-agent: bots\nDisallow: /bots\n\n" +
		"User-agent: 360Spider/1.2\nDisallow: /360\n\nUser-agent: BOT/2.0\nDisallow: /two\n"
	tests := []struct {
		product string
		refused []string
		allowed []string
	}{
		{"bot", []string{"/bot", "/two"}, []string{"/all"}},
		{"Bot/7.1", []string{"/bot", "/two"}, []string{"/all"}},
		{"bots", []string{"/bots"}, []string{"/bot/", "/all"}},
		{"botx", []string{"/all"}, []string{"/bot"}},
		{"360spider", []string{"/360"}, []string{"/all"}},
		{"", []string{"/all"}, []string{"/bot"}},
		{"*", []string{"/all"}, []string{"/bot"}},
	}
	for _, tt := range tests {
		g := robots.Parse([]byte(body)).Group(tt.product)
		for _, p := range tt.refused {
			if ok, _ := g.Allowed(p); ok {
				t.Errorf("%q may fetch %s", tt.product, p)
			}
		}
		for _, p := range tt.allowed {
			if ok, line := g.Allowed(p); !ok {
				t.Errorf("%q may not fetch %s by %q", tt.product, p, line)
			}
		}
	}
}

func TestCrawlDelayIsReadLeniently(t *testing.T) {
	tests := []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"10", 10 * time.Second, true}, {"0.5", 500 * time.Millisecond, true}, {".25", 250 * time.Millisecond, true},
		{"10s", 10 * time.Second, true}, {"2 # comment", 2 * time.Second, true}, {"0", 0, true},
		{"99999999999999999999999", 24 * time.Hour, true}, {strings.Repeat("9", 400), 24 * time.Hour, true},
		{"-1", 0, false}, {"NaN", 0, false}, {"inf", 0, false}, {"", 0, false}, {"soon", 0, false}, {"1.2.3", 0, false},
	}
	for _, tt := range tests {
		d, ok := robots.Parse([]byte("user-agent: bot\ncrawl-delay: " + tt.value)).Group("bot").CrawlDelay()
		if d != tt.want || ok != tt.ok {
			t.Errorf("%q: got %v %v, want %v %v", tt.value, d, ok, tt.want, tt.ok)
		}
	}
	t.Run("the longest counts where several apply", func(t *testing.T) {
		d, _ := robots.Parse([]byte("user-agent: bot\ncrawl-delay: 5\ndisallow: /x\nuser-agent: bot\ncrawl-delay: 2\n")).Group("bot").CrawlDelay()
		if d != 5*time.Second {
			t.Errorf("got %v, want 5s", d)
		}
	})
}

func TestALongBodyIsCutAtAWholeLine(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("user-agent: *\ndisallow: /first\n")
	for b.Len() < robots.MaxBytes-20 {
		b.WriteString("# 345678\n")
	}
	b.WriteString("\ndisallow: /only-a-part-of-this-line-is-within-the-limit\n")
	b.WriteString("disallow: /beyond\n")
	g := robots.Parse(b.Bytes()).Group("bot")
	if ok, _ := g.Allowed("/first"); ok {
		t.Error("the beginning was not read")
	}
	for _, p := range []string{"/beyond", "/only-a-part-of-this-line-is-within-the-limit", "/", "/only"} {
		if ok, line := g.Allowed(p); !ok {
			t.Errorf("%s is refused by %q", p, line)
		}
	}
	t.Run("one endless line is no rule", func(t *testing.T) {
		body := append([]byte("user-agent: *\ndisallow: /"), bytes.Repeat([]byte("a"), 2*robots.MaxBytes)...)
		if ok, line := robots.Parse(body).Group("bot").Allowed("/aaa"); !ok {
			t.Errorf("refused by %d bytes", len(line))
		}
	})
}

func TestMatchingAllocatesNothing(t *testing.T) {
	g := robots.Parse([]byte("user-agent: *\ndisallow: /a/*/b$\ndisallow: /c\nallow: /*.html\ndisallow: /%C3%A9\n")).Group("bot")
	for _, p := range []string{"/a/x/b", "/c/%C3%A9?q=%2F", "/nothing/matches/here.php?x=1"} {
		if n := testing.AllocsPerRun(100, func() { g.Allowed(p) }); n != 0 {
			t.Errorf("%s: %v allocations", p, n)
		}
	}
}

// A backtracking matcher needs longer than the age of the universe here.
func TestManyWildcardsEndSoon(t *testing.T) {
	g := robots.Parse([]byte("user-agent: *\ndisallow: /" + strings.Repeat("*a", 2000) + "b$\n")).Group("bot")
	path := "/" + strings.Repeat("a", 2047)
	done := make(chan bool)
	go func() {
		ok, _ := g.Allowed(path)
		done <- ok
	}()
	select {
	case ok := <-done:
		if !ok {
			t.Error("matched a path without b")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("still matching after 10 s")
	}
}

func BenchmarkAllowed(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 20000} {
		var body strings.Builder
		body.WriteString("user-agent: *\n")
		for i := range n {
			fmt.Fprintf(&body, "disallow: /section%d/\n", i)
			if i%10 == 0 {
				fmt.Fprintf(&body, "disallow: /*/print%d$\n", i)
			}
		}
		g := robots.Parse([]byte(body.String())).Group("bot")
		b.Run(fmt.Sprintf("%d rules, none matches", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Allowed("/products/shoes/red-running-shoe-42.html?ref=home&page=2")
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	body := []byte("user-agent: *\n" + strings.Repeat("disallow: /some/path/of/usual/length/*?x=\n", 10000))
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		robots.Parse(body).Group("bot")
	}
}
