package scope_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"deepcrawl/crawl/scope"
)

func today() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

const origin = "https://example.com"

// website answers with the links of a page: paths from the root.
type website func(path string) []string

// outcome is what a crawl in breadth-first order came to.
type outcome struct {
	fetched int
	refused map[string]int // reasons
	example map[string]string
	visited map[string]bool
	depth   int
}

func (o outcome) String() string {
	return fmt.Sprintf("%d fetched down to depth %d, refused %v, such as %v", o.fetched, o.depth, o.refused, o.example)
}

// crawl follows every link that traps let pass, up to most pages.
func crawl(traps *scope.Traps, most int, site website, starts ...string) outcome {
	o := outcome{refused: map[string]int{}, example: map[string]string{}, visited: map[string]bool{}}
	type page struct {
		path  string
		depth int
	}
	var queue []page
	discover := func(path string, depth int) {
		if o.visited[path] {
			return
		}
		o.visited[path] = true
		if reason, trap := traps.Check([]byte(origin+path), len(origin), depth); trap {
			o.refused[reason]++
			o.example[reason] = path
			delete(o.visited, path)
			o.visited[path] = true
			return
		}
		queue = append(queue, page{path, depth})
	}
	for _, s := range starts {
		discover(s, 0)
	}
	for ; len(queue) > 0 && o.fetched < most; queue = queue[1:] {
		p := queue[0]
		o.fetched++
		o.depth = p.depth
		for _, link := range site(p.path) {
			discover(link, p.depth+1)
		}
	}
	return o
}

func random(r *rand.Rand) string { return fmt.Sprintf("%016x", r.Uint64()) }

func uuid(r *rand.Rand) string {
	s := random(r) + random(r)
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// number is the last number of a path; without one it is 0.
func number(path string) int {
	i := len(path)
	for i > 0 && '0' <= path[i-1] && path[i-1] <= '9' {
		i--
	}
	n, _ := strconv.Atoi(path[i:])
	return n
}

func query(path, name string) string {
	_, q, _ := strings.Cut(path, "?")
	for p := range strings.SplitSeq(q, "&") {
		if v, ok := strings.CutPrefix(p, name+"="); ok {
			return v
		}
	}
	return ""
}

// months is a calendar: pages of months, which link to the months beside them
// and to their days, which link to the month.
func months(layout, dayLayout string, first, last time.Time) website {
	return func(path string) (links []string) {
		day := false
		at, err := time.Parse(layout, path)
		if err != nil {
			if at, err = time.Parse(dayLayout, path); err != nil {
				return nil
			}
			day = true
		}
		month := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		for _, m := range []time.Time{month.AddDate(0, -1, 0), month, month.AddDate(0, 1, 0)} {
			if !m.Before(first) && !m.After(last) {
				links = append(links, m.Format(layout))
			}
		}
		if dayLayout != "" && !day {
			for d := month; d.Month() == month.Month(); d = d.AddDate(0, 0, 1) {
				links = append(links, d.Format(dayLayout))
			}
		}
		return links
	}
}

var (
	always = time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC)
	ever   = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

func TestTrapsEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, tc := range []struct {
		name   string
		site   website
		start  string
		most   int // pages it may cost
		reason string
	}{
		{"a calendar of months and days in the path", months("/trap/calendar/2006/01", "/trap/calendar/2006/01/02", always, ever),
			"/trap/calendar/2024/01", 3000, "endless calendar"},
		{"a calendar that starts today", months("/events/2006-01", "/events/2006-01-02", always, ever), "/events/2026-11", 2000, "endless calendar"},
		{"a calendar of months", months("/2006/01/", "", always, ever), "/2026/11/", 2000, "endless calendar"},
		{"a calendar in one parameter", months("/cal?date=2006-01-02", "", always, ever), "/cal?date=2026-11-01", 2000, "endless calendar"},
		{"a calendar in two parameters without zeros", months("/i.php?year=2006&month=1", "", always, ever), "/i.php?year=2026&month=11", 2000, "endless calendar"},
		{"a calendar in three parameters", months("/i.php?id=7&y=2006&m=01&d=02&view=month", "", always, ever), "/i.php?id=7&y=2026&m=11&d=01&view=month", 2000, "endless calendar"},
		{"a calendar with the day first", months("/calendar/02.01.2006", "", always, ever), "/calendar/01.11.2026", 2000, "endless calendar"},
		{"a calendar without separators", months("/kalender/200601", "/kalender/20060102", always, ever), "/kalender/202611", 2000, "endless calendar"},
		{"a calendar of years", func(p string) []string {
			return []string{"/calendar/" + strconv.Itoa(number(p)+1), "/calendar/" + strconv.Itoa(number(p)-1)}
		}, "/calendar/2026", 500, "endless calendar"},
		{"relative links to two directories", func(p string) []string { return []string{p + "news/", p + "archive/"} }, "/trap/repeat/", 500, "repeating path"},
		{"relative links to eight directories", func(p string) (links []string) {
			for _, d := range strings.Fields("news archive about team jobs press shop blog") {
				links = append(links, p+d+"/")
			}
			return links
		}, "/", 8000, "repeating path"},
		{"a link that adds a directory", func(p string) []string { return []string{p + "next/", p + "a/b/"} }, "/x/", 500, "repeating path"},
		{"directories that count", func(p string) []string { return []string{p + strconv.Itoa(len(p)) + "/"} }, "/", 40, "path segments"},
		{"a link that adds a parameter", func(p string) []string { return []string{p + "&sort=name"} }, "/list?sort=name", 10, "repeating parameter sort"},
		{"a session id that is new in every link", func(string) (links []string) {
			for i := range 10 {
				links = append(links, fmt.Sprintf("/trap/session/%d?sid=%x", i, r.Uint64()))
			}
			return links
		}, "/trap/session", 120, "session id in parameter sid"},
		{"a session id that is new for each request", func(string) (links []string) {
			id := random(r) + random(r)
			for i := range 30 {
				links = append(links, fmt.Sprintf("/page/%d?a=1&PHPSESSID=%s&b=2", i, id))
			}
			return links
		}, "/", 150, "session id in parameter PHPSESSID"},
		{"a session id of Java in the path", func(string) (links []string) {
			id := strings.ToUpper(random(r) + random(r))
			for i := range 30 {
				links = append(links, fmt.Sprintf("/page/%d.do;jsessionid=%s?b=2", i, id))
			}
			return links
		}, "/", 150, "session id in parameter jsessionid"},
		{"a session id of ASP.NET in the path", func(string) (links []string) {
			id := (random(r) + random(r))[:24]
			for i := range 30 {
				links = append(links, fmt.Sprintf("/(S(%s))/page/%d.aspx", id, i))
			}
			return links
		}, "/", 150, "session id in parameter (S)"},
		{"a session id of a number", func(string) (links []string) {
			id := 1_000_000_000 + r.IntN(1_000_000_000)
			for i := range 30 {
				links = append(links, fmt.Sprintf("/page/%d?sid=%d", i, id))
			}
			return links
		}, "/", 800, "session id in parameter sid"},
		{"a session id under another name", func(string) (links []string) {
			id := uuid(r)
			for i := range 30 {
				links = append(links, fmt.Sprintf("/page/%d?visit=%s", i, id))
			}
			return links
		}, "/", 800, "session id in parameter visit"},
		{"a page that links to itself under a new session", func(string) []string { return []string{"/login?sessionid=" + random(r) + random(r)} },
			"/login", 50, "session id in parameter sessionid"},
		{"a small site under new sessions", func(string) (links []string) {
			id := random(r) + random(r)
			return []string{"/a?sid=" + id, "/b?sid=" + id}
		}, "/", 2000, "session id in parameter sid"},
		{"numbers that only link to the next", func(p string) []string { return []string{"/offset/" + strconv.Itoa(number(p)+1)} }, "/offset/1", 10_002, "links from a seed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := crawl(scope.NewTraps(scope.Limits{Now: today}), tc.most+1, tc.site, tc.start)
			if o.fetched > tc.most {
				t.Fatalf("still going on: %v", o)
			}
			for reason := range o.refused {
				if !strings.Contains(reason, tc.reason) && !strings.Contains(reason, "path segments") {
					t.Errorf("reason %q, want %q", reason, tc.reason)
				}
			}
			if len(o.refused) == 0 {
				t.Errorf("ended without a reason: %v", o)
			}
			t.Logf("%d pages, down to depth %d", o.fetched, o.depth)
		})
	}
}

func TestSessionsDoNotHidePages(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	// Each page links to the three after it, under the session of the request.
	o := crawl(scope.NewTraps(scope.Limits{Now: today}), 5000, func(p string) (links []string) {
		id := random(r) + random(r)
		p, _, _ = strings.Cut(p, "?")
		for i := range 3 {
			if n := number(p) + i; n < 300 {
				links = append(links, fmt.Sprintf("/page/%d?sid=%s", n, id))
			}
		}
		return links
	}, "/")
	pages := map[string]bool{}
	for u := range o.visited {
		p, _, _ := strings.Cut(u, "?")
		pages[p] = true
	}
	if len(pages) != 301 || o.fetched > 1000 || len(o.refused) != 1 {
		t.Errorf("got %d of 301 pages: %v", len(pages), o)
	}
}

func TestBigSitesAreNoTraps(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	seeds := func(n int) (ids []string) {
		for range n {
			ids = append(ids, uuid(r))
		}
		return ids
	}
	documents, talks := seeds(20_000), seeds(800)
	day := func(n int) time.Time { return today().AddDate(0, 0, -n) }
	for _, tc := range []struct {
		name  string
		site  website
		start string
		least int // pages that have to be reached
	}{
		{"100,000 products in listings", func(p string) (links []string) {
			switch {
			case p == "/":
				for i := range 1000 {
					links = append(links, "/list/"+strconv.Itoa(i))
				}
			case strings.HasPrefix(p, "/list/"):
				for i := range 100 {
					links = append(links, "/product/"+strconv.Itoa(100_000+number(p)*100+i))
				}
			}
			return links
		}, "/", 101_001},
		{"products that link to related ones", func(p string) (links []string) {
			n := number(p)
			for i := range 5 {
				links = append(links, "/product/"+strconv.Itoa(202_000+(n*7+i*13)%60_000))
			}
			return links
		}, "/product/202000", 60_000},
		{"ids that look like dates", func(p string) (links []string) {
			n := number(p)
			return []string{fmt.Sprintf("/item/%d", 20_300_000+(n*3+1)%30_000), fmt.Sprintf("/item/%d", 20_300_000+(n*3+2)%30_000)}
		}, "/item/20300000", 20_000},
		{"500 pages of a list, each linking to the next only", func(p string) (links []string) {
			page, _ := strconv.Atoi(query(p, "page"))
			if page == 0 {
				return nil
			}
			for i := range 20 {
				links = append(links, "/product/"+strconv.Itoa(page*20+i))
			}
			if page < 500 {
				links = append(links, "/list?page="+strconv.Itoa(page+1))
			}
			return links
		}, "/list?page=1", 10_500},
		{"a list of 5,000 pages, each linking to the next only", func(p string) []string {
			if n := number(p); n < 5000 {
				return []string{"/page/" + strconv.Itoa(n+1)}
			}
			return nil
		}, "/page/1", 5000},
		{"a list with opaque cursors", func(p string) []string { return []string{"/feed?cursor=" + random(r)} }, "/feed", 3000},
		{"archives of months behind each other", months("/2006/01/", "", day(365*25), day(30)), "/2026/10/", 298},
		{"archives of months and days", months("/2006/01/", "/2006/01/02/", day(365*2), day(30)), "/2026/10/", 720},
		{"calendar two years ahead and back", months("/calendar/2006-01", "/calendar/2006-01-02", day(365*2), day(-365*2)), "/calendar/2026-11", 1400},
		{"a daily comic behind each other", func(p string) []string {
			at, err := time.Parse("/comic/2006/01/02", p)
			if err != nil || at.Year() < 2001 {
				return nil
			}
			return []string{at.AddDate(0, 0, -1).Format("/comic/2006/01/02"), at.AddDate(0, 0, 1-at.Day()).Format("/comic/2006/01/02")}
		}, "/comic/2026/11/30", 9000},
		{"a newspaper since 1851", func(p string) (links []string) {
			if p == "/" {
				for y := 1851; y <= 2026; y++ {
					links = append(links, fmt.Sprintf("/%d/", y))
				}
				return links
			}
			at, err := time.Parse("/2006/", p)
			if err != nil {
				return nil
			}
			for d := at; d.Year() == at.Year(); d = d.AddDate(0, 0, 1) {
				links = append(links, d.Format("/2006/01/02/"))
			}
			return links
		}, "/", 60_000},
		{"episodes by day in a list of next pages", func(p string) (links []string) {
			page := number(p)
			if !strings.HasPrefix(p, "/episodes/") || page > 300 {
				return nil
			}
			for i := range 10 {
				links = append(links, day(page*10+i).Format("/episode/2006-01-02"))
			}
			return append(links, "/episodes/"+strconv.Itoa(page+1))
		}, "/episodes/0", 3000},
		{"articles by day and number, found ever deeper", func(p string) (links []string) {
			page := number(p)
			if !strings.HasPrefix(p, "/archive/") || page > 400 {
				return nil
			}
			for i := range 20 {
				links = append(links, fmt.Sprintf("%s%d.html", day(page*3+i/7).Format("/news/2006/01/02/"), page*20+i))
			}
			return append(links, "/archive/"+strconv.Itoa(page+1))
		}, "/archive/0", 8000},
		{"years up to 2100 for 200 countries", func(p string) (links []string) {
			if p == "/" {
				for i := range 200 {
					links = append(links, fmt.Sprintf("/country%c%c/2026/", 'a'+i/20, 'a'+i%20))
				}
				return links
			}
			country, year, _ := strings.Cut(strings.Trim(p, "/"), "/")
			y, _ := strconv.Atoi(year)
			for _, d := range []int{-50, -10, -5, -1, 1, 5, 10, 50} {
				if n := y + d; 1950 <= n && n <= 2100 {
					links = append(links, fmt.Sprintf("/%s/%d/", country, n))
				}
			}
			return links
		}, "/", 30_000},
		{"a forum of threads and pages", func(p string) (links []string) {
			var thread, page int
			if _, err := fmt.Sscanf(p, "/thread/%d/%d", &thread, &page); err != nil {
				return []string{"/thread/1000/1"}
			}
			if page < 14 {
				links = append(links, fmt.Sprintf("/thread/%d/%d", thread, page+1))
			}
			if thread < 4000 {
				links = append(links, fmt.Sprintf("/thread/%d/1", thread+1))
			}
			return links
		}, "/", 42_000},
		{"a forum with its sections first", func(p string) (links []string) {
			var section, thread int
			if _, err := fmt.Sscanf(p, "/forum/%d/%d", &section, &thread); err != nil {
				return []string{"/forum/1/1000"}
			}
			if thread < 3000 {
				links = append(links, fmt.Sprintf("/forum/%d/%d", section, thread+1))
			}
			if section < 14 {
				links = append(links, fmt.Sprintf("/forum/%d/%d", section+1, thread))
			}
			return links
		}, "/", 28_000},
		{"documents with random ids on three paths", func(p string) (links []string) {
			if i := number(p); strings.HasPrefix(p, "/browse/") && i*20 < len(documents) {
				for _, id := range documents[i*20 : i*20+20] {
					links = append(links, "/view?asset="+id)
				}
				return append(links, "/browse/"+strconv.Itoa(i+1))
			}
			if id := query(p, "asset"); id != "" && strings.HasPrefix(p, "/view") {
				return []string{"/print?asset=" + id, "/share?to=mail&asset=" + id}
			}
			return nil
		}, "/browse/0", 61_000},
		{"talks of a conference are called sessions", func(p string) (links []string) {
			if p == "/" {
				for _, id := range talks {
					links = append(links, "/talk?sessionId="+id, "/talk/ics?sessionId="+id, "/talk/rate?stars=5&sessionId="+id)
				}
			}
			return links
		}, "/", 2401},
		{"stories are called sid", func(p string) (links []string) {
			if p == "/" {
				for i := range 5000 {
					links = append(links, "/article.php?sid="+strconv.Itoa(i), "/print.php?sid="+strconv.Itoa(i), "/comments.php?sid="+strconv.Itoa(i))
				}
			}
			return links
		}, "/", 15_001},
		{"signed pictures", func(p string) (links []string) {
			if p == "/" {
				for i := range 20_000 {
					links = append(links, fmt.Sprintf("/img/%d.html?sig=%s", i, random(r)))
				}
			}
			return links
		}, "/", 20_001},
		{"a source tree with repeated names", func(p string) (links []string) {
			if p == "/" {
				for i := range 200 {
					links = append(links, fmt.Sprintf("/project%d/", i))
				}
			} else if n := strings.Count(p, "/"); n == 2 {
				for _, d := range []string{"main", "test"} {
					links = append(links, p+"src/"+d+"/java/org/example/"+strings.Trim(p, "/")+"/")
				}
			} else if strings.HasSuffix(p, "/") {
				for i := range 20 {
					links = append(links, fmt.Sprintf("%sClass%d%d.java", p, len(p), i+r.IntN(1000)*20))
				}
			}
			return links
		}, "/", 8000},
		{"facets in the path", func(p string) (links []string) {
			for _, f := range []string{"color-red", "color-blue", "size-40", "size-41", "brand-a", "brand-b", "sale"} {
				if !strings.Contains(p, f) && strings.Count(p, "/") < 6 {
					links = append(links, p+f+"/")
				}
			}
			return links
		}, "/shoes/", 800},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := crawl(scope.NewTraps(scope.Limits{Now: today}), tc.least, tc.site, tc.start)
			if o.fetched < tc.least || len(o.refused) > 0 {
				t.Errorf("want %d pages and nothing refused: %v", tc.least, o)
			}
		})
	}
}

func TestTrapsAreSafeForConcurrentUse(t *testing.T) {
	traps := scope.NewTraps(scope.Limits{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range 2000 {
				for _, u := range []string{"/cal/2031/0" + strconv.Itoa(i%9+1), "/a?sid=" + random(r), "/a/b/a/" + random(r)} {
					traps.Check([]byte(origin+u), len(origin), 12)
				}
			}
		})
	}
	wg.Wait()
	if _, trap := traps.Check([]byte(origin+"/cal/2031/05"), len(origin), 12); !trap {
		t.Error("what several goroutines saw was not added up")
	}
}
