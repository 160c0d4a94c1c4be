package robots_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deepcrawl/crawl/robots"
)

const origin = "https://a.example"

// site answers fetches from a table and records them.
type site struct {
	mu      sync.Mutex
	answers map[string]robots.Response
	urls    []string
}

func (s *site) fetch(_ context.Context, url string) robots.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls = append(s.urls, url)
	if r, ok := s.answers[url]; ok {
		return r
	}
	return robots.Response{Status: 404}
}

func (s *site) set(url string, r robots.Response) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = map[string]robots.Response{}
	}
	s.answers[url] = r
}

func (s *site) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.urls)
}

func body(s string) robots.Response { return robots.Response{Status: 200, Body: []byte(s)} }

func get(t *testing.T, c *robots.Cache) *robots.Policy {
	t.Helper()
	p, err := c.Get(t.Context(), origin)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOneAnswerMeansOneOutcome(t *testing.T) {
	tests := []struct {
		name    string
		r       robots.Response
		outcome robots.Outcome
		allowed bool
		pause   time.Duration
		retry   time.Duration
	}{
		{"a file", body("user-agent: *\ndisallow: /y"), robots.Found, true, 0, 0},
		{"an empty file", body(""), robots.Found, true, 0, 0},
		{"no content", robots.Response{Status: 204}, robots.Found, true, 0, 0},
		{"not found", robots.Response{Status: 404}, robots.AllowAll, true, 0, 0},
		{"forbidden", robots.Response{Status: 403}, robots.AllowAll, true, 0, 0},
		{"unauthorized", robots.Response{Status: 401}, robots.AllowAll, true, 0, 0},
		{"a redirect to nowhere", robots.Response{Status: 301}, robots.AllowAll, true, 0, 0},
		{"a redirect out of http", robots.Response{Status: 302, Location: "ftp://a.example/robots.txt"}, robots.AllowAll, true, 0, 0},
		{"a redirect that cannot be parsed", robots.Response{Status: 302, Location: "http://%zz/"}, robots.AllowAll, true, 0, 0},
		{"a server error", robots.Response{Status: 500}, robots.Unreachable, false, 0, 30 * time.Second},
		{"unavailable, with a time", robots.Response{Status: 503, RetryAfter: time.Hour}, robots.Unreachable, false, time.Hour, time.Hour},
		{"unavailable for a week", robots.Response{Status: 503, RetryAfter: 7 * 24 * time.Hour}, robots.Unreachable, false, 24 * time.Hour, 24 * time.Hour},
		{"a network error", robots.Response{Err: errors.New("connection refused")}, robots.Unreachable, false, 0, 30 * time.Second},
		{"a body that broke off", robots.Response{Status: 200, Body: []byte("user-agent: *"), Err: errors.New("reset")}, robots.Unreachable, false, 0, 30 * time.Second},
		{"no status at all", robots.Response{}, robots.Unreachable, false, 0, 30 * time.Second},
		{"too many requests", robots.Response{Status: 429, RetryAfter: 90 * time.Second}, robots.Pause, false, 90 * time.Second, 90 * time.Second},
		{"too many requests, no time", robots.Response{Status: 429}, robots.Pause, false, time.Minute, time.Minute},
		{"a negative time", robots.Response{Status: 429, RetryAfter: -time.Hour}, robots.Pause, false, time.Minute, time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(1_700_000_000, 0)
			s := &site{}
			s.set(origin+"/robots.txt", tt.r)
			p := get(t, robots.NewCache(robots.Config{Product: "bot", Fetch: s.fetch, Now: func() time.Time { return now }}))
			if p.Outcome != tt.outcome {
				t.Errorf("outcome %v, want %v", p.Outcome, tt.outcome)
			}
			if ok, _ := p.Allowed("/x"); ok != tt.allowed {
				t.Errorf("allowed %v, want %v", ok, tt.allowed)
			}
			if ok, _ := p.Allowed("/robots.txt"); !ok {
				t.Error("/robots.txt is refused")
			}
			at := func(d time.Duration) time.Time {
				if d == 0 {
					return time.Time{}
				}
				return now.Add(d)
			}
			if !p.PauseUntil.Equal(at(tt.pause)) || !p.RetryAt.Equal(at(tt.retry)) {
				t.Errorf("pause %v, retry %v, want %v, %v", p.PauseUntil.Sub(now), p.RetryAt.Sub(now), tt.pause, tt.retry)
			}
			if !tt.allowed && p.Err == "" {
				t.Error("no reason given")
			}
			if !p.FetchedAt.Equal(now) {
				t.Errorf("fetched at %v", p.FetchedAt)
			}
		})
	}
}

func TestRedirectsAreFollowedFiveTimes(t *testing.T) {
	chain := func(n int) *site {
		s := &site{}
		at := origin + "/robots.txt"
		for i := range n {
			next := fmt.Sprintf("http://h%d.example/r/robots.txt", i)
			s.set(at, robots.Response{Status: 301 + i%2*6, Location: next + "#part"})
			at = next
		}
		s.set(at, body("user-agent: *\ndisallow: /\nsitemap: s.xml"))
		return s
	}
	t.Run("five lead to the file, also on other hosts", func(t *testing.T) {
		s := chain(5)
		p := get(t, robots.NewCache(robots.Config{Product: "bot", Fetch: s.fetch}))
		if ok, _ := p.Allowed("/x"); ok || p.Outcome != robots.Found || p.URL != "http://h4.example/r/robots.txt" {
			t.Errorf("got %v at %s, allowed %v", p.Outcome, p.URL, ok)
		}
		if len(p.Sitemaps) != 1 || p.Sitemaps[0] != "http://h4.example/r/s.xml" {
			t.Errorf("sitemaps %q", p.Sitemaps)
		}
	})
	t.Run("six count as no file", func(t *testing.T) {
		s := chain(6)
		p := get(t, robots.NewCache(robots.Config{Product: "bot", Fetch: s.fetch}))
		if p.Outcome != robots.AllowAll || p.Err == "" || s.count() != 6 {
			t.Errorf("got %v (%s) after %d requests", p.Outcome, p.Err, s.count())
		}
	})
	t.Run("a relative target, and an error behind it", func(t *testing.T) {
		s := &site{}
		s.set(origin+"/robots.txt", robots.Response{Status: 308, Location: "../moved.txt"})
		s.set(origin+"/moved.txt", robots.Response{Status: 502})
		p := get(t, robots.NewCache(robots.Config{Product: "bot", Fetch: s.fetch}))
		if p.Outcome != robots.Unreachable || p.URL != origin+"/moved.txt" {
			t.Errorf("got %v at %s", p.Outcome, p.URL)
		}
	})
	t.Run("credentials in a target are not sent on", func(t *testing.T) {
		s := &site{}
		s.set(origin+"/robots.txt", robots.Response{Status: 302, Location: "https://u:p@b.example/robots.txt"})
		get(t, robots.NewCache(robots.Config{Product: "bot", Fetch: s.fetch}))
		if got := s.urls[len(s.urls)-1]; got != "https://b.example/robots.txt" {
			t.Errorf("fetched %s", got)
		}
	})
}

func TestCallersShareOneFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		s.set(origin+"/robots.txt", body("user-agent: *\ndisallow: /x"))
		c := robots.NewCache(robots.Config{Product: "bot", Fetch: func(ctx context.Context, url string) robots.Response {
			time.Sleep(time.Second)
			return s.fetch(ctx, url)
		}})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				p, err := c.Get(t.Context(), origin)
				if err != nil || p.Outcome != robots.Found {
					t.Errorf("got %v %v", p, err)
				}
			})
		}
		wg.Wait()
		if s.count() != 1 {
			t.Errorf("%d fetches, want 1", s.count())
		}
	})
}

func TestWhoLeavesDoesNotEndTheFetchOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		s.set(origin+"/robots.txt", body("user-agent: *\ndisallow: /x"))
		release := make(chan struct{})
		c := robots.NewCache(robots.Config{Product: "bot", Fetch: func(ctx context.Context, url string) robots.Response {
			select {
			case <-release:
				return s.fetch(ctx, url)
			case <-ctx.Done():
				return robots.Response{Err: ctx.Err()}
			}
		}})
		first, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := c.Get(first, origin)
			gone <- err
		}()
		synctest.Wait()
		stayed := make(chan *robots.Policy, 1)
		go func() {
			p, err := c.Get(t.Context(), origin)
			if err != nil {
				t.Error(err)
			}
			stayed <- p
		}()
		synctest.Wait()
		leave()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who left got %v", err)
		}
		close(release)
		if p := <-stayed; p == nil || p.Outcome != robots.Found {
			t.Errorf("the one who stayed got %+v", p)
		}
	})
}

func TestAFetchNobodyWaitsForIsCancelledAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, ended := 0, 0
		c := robots.NewCache(robots.Config{Product: "bot", Fetch: func(ctx context.Context, _ string) robots.Response {
			started++
			if started > 1 {
				return robots.Response{Status: 404}
			}
			<-ctx.Done()
			ended++
			return robots.Response{Err: ctx.Err()}
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Get(ctx, origin); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if ended != 1 {
			t.Error("the fetch goes on")
		}
		if p := c.Peek(origin); p != nil {
			t.Errorf("a cancelled fetch left %+v", p)
		}
		if p := get(t, c); p.Outcome != robots.AllowAll || started != 2 {
			t.Errorf("the next caller got %v after %d fetches", p.Outcome, started)
		}
		if _, err := c.Get(ctx, "https://other.example"); !errors.Is(err, context.DeadlineExceeded) || started != 2 {
			t.Errorf("a caller with an ended context started a fetch (%v)", err)
		}
	})
}

func TestAPanicInTheFetchWedgesNothing(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			bad := true
			c := robots.NewCache(robots.Config{Product: "bot", Now: func() time.Time { return now }, Fetch: func(context.Context, string) robots.Response {
				if bad {
					end()
				}
				return robots.Response{Status: 404}
			}})
			if p := get(t, c); p.Outcome != robots.Unreachable || p.Err == "" {
				t.Errorf("got %+v", p)
			}
			bad, now = false, now.Add(time.Minute)
			if p := get(t, c); p.Outcome != robots.AllowAll {
				t.Errorf("afterwards %+v", p)
			}
		})
	}
}

func TestFailuresAreRetriedLaterAndLater(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s := &site{}
	s.set(origin+"/robots.txt", robots.Response{Status: 500})
	c := robots.NewCache(robots.Config{Product: "bot", Fetch: s.fetch, Now: func() time.Time { return now }})
	want := 30 * time.Second
	for i := 1; i <= 10; i++ {
		p := get(t, c)
		if got := p.RetryAt.Sub(now); got != want || s.count() != i {
			t.Fatalf("failure %d: retry in %v after %d fetches, want %v", i, got, s.count(), want)
		}
		now = p.RetryAt.Add(-time.Second)
		if c.Peek(origin) != p || get(t, c) != p {
			t.Fatal("asked again before its time")
		}
		now = p.RetryAt
		if c.Peek(origin) != nil {
			t.Fatal("not due at its time")
		}
		want = min(2*want, 30*time.Minute)
	}
	t.Run("one success starts over", func(t *testing.T) {
		s.set(origin+"/robots.txt", robots.Response{Status: 404, MaxAge: time.Minute})
		get(t, c)
		now = now.Add(72 * time.Hour)
		s.set(origin+"/robots.txt", robots.Response{Status: 500})
		if p := get(t, c); p.RetryAt.Sub(now) != 30*time.Second {
			t.Errorf("retry in %v", p.RetryAt.Sub(now))
		}
	})
}

func TestAnOlderCopyServesWhileUnreachable(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	now := start
	s := &site{}
	s.set(origin+"/robots.txt", body("user-agent: *\ndisallow: /x"))
	c := robots.NewCache(robots.Config{Product: "bot", Fetch: s.fetch, Now: func() time.Time { return now }})
	get(t, c)
	s.set(origin+"/robots.txt", robots.Response{Err: errors.New("timeout")})
	now = now.Add(25 * time.Hour)
	p := get(t, c)
	if ok, _ := p.Allowed("/y"); !ok || p.Outcome != robots.Found {
		t.Errorf("the copy is not used: %+v", p)
	}
	if ok, _ := p.Allowed("/x"); ok {
		t.Error("the copy's rules are not used")
	}
	if p.Err != "timeout" || p.RetryAt.Sub(now) != 30*time.Second || !p.FetchedAt.Equal(start) {
		t.Errorf("err %q, retry in %v, fetched %v ago", p.Err, p.RetryAt.Sub(now), now.Sub(p.FetchedAt))
	}
	now = p.RetryAt
	if get(t, c).RetryAt.Sub(now) != time.Minute {
		t.Error("the wait does not grow")
	}
	t.Run("but not beyond its age limit", func(t *testing.T) {
		now = start.Add(48*time.Hour - time.Second)
		if p := get(t, c); p.Outcome != robots.Found {
			t.Errorf("just before: %v", p.Outcome)
		}
		now = start.Add(48 * time.Hour)
		if p := get(t, c); p.Outcome != robots.Unreachable {
			t.Errorf("at the limit: %v", p.Outcome)
		}
	})
	t.Run("and not while the origin asks for a pause", func(t *testing.T) {
		s.set(origin+"/robots.txt", body(""))
		now = now.Add(time.Hour)
		get(t, c)
		s.set(origin+"/robots.txt", robots.Response{Status: 429})
		now = now.Add(25 * time.Hour)
		if p := get(t, c); p.Outcome != robots.Pause {
			t.Errorf("got %v", p.Outcome)
		}
	})
}

func TestAnAnswerIsKeptAsLongAsItMay(t *testing.T) {
	tests := []struct {
		maxAge, ttl, want time.Duration
	}{
		{0, 0, 24 * time.Hour},
		{time.Hour, 0, time.Hour},
		{time.Second, 0, 10 * time.Minute},
		{1000 * time.Hour, 0, 24 * time.Hour},
		{0, time.Hour, time.Hour},
		{0, 100 * time.Hour, 24 * time.Hour},
		{time.Second, time.Minute, time.Minute},
	}
	for _, tt := range tests {
		now := time.Unix(1_700_000_000, 0)
		s := &site{}
		s.set(origin+"/robots.txt", robots.Response{Status: 200, MaxAge: tt.maxAge})
		c := robots.NewCache(robots.Config{Fetch: s.fetch, TTL: tt.ttl, Now: func() time.Time { return now }})
		get(t, c)
		now = now.Add(tt.want - 1)
		if c.Peek(origin) == nil {
			t.Errorf("%+v: gone early", tt)
		}
		now = now.Add(1)
		if c.Peek(origin) != nil {
			t.Errorf("%+v: kept too long", tt)
		}
	}
}

func TestCrawlDelayIsCapped(t *testing.T) {
	s := &site{}
	s.set(origin+"/robots.txt", body("user-agent: *\ncrawl-delay: 3600"))
	if p := get(t, robots.NewCache(robots.Config{Fetch: s.fetch})); p.Delay != 30*time.Second {
		t.Errorf("got %v, want 30s", p.Delay)
	}
	if p := get(t, robots.NewCache(robots.Config{Fetch: s.fetch, MaxDelay: 2 * time.Hour})); p.Delay != time.Hour {
		t.Errorf("got %v, want 1h", p.Delay)
	}
}

func TestForgetDropsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{}
		c := robots.NewCache(robots.Config{Fetch: func(ctx context.Context, url string) robots.Response {
			time.Sleep(time.Second)
			return s.fetch(ctx, url)
		}})
		get(t, c)
		c.Forget(origin)
		if c.Peek(origin) != nil {
			t.Error("still known")
		}
		done := make(chan *robots.Policy)
		go func() { done <- get(t, c) }()
		synctest.Wait()
		c.Forget(origin)
		if p := <-done; p == nil || p.Outcome != robots.AllowAll {
			t.Errorf("the one who waited got %+v", p)
		}
		if c.Peek(origin) != nil {
			t.Error("an answer was kept that was to be forgotten")
		}
		if get(t, c); s.count() != 3 {
			t.Errorf("%d fetches, want 3", s.count())
		}
	})
}

func TestTheCacheStaysWithinItsBounds(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	name := func(i int) string { return fmt.Sprintf("https://h%d.example", i) }
	fill := func(t *testing.T, cfg robots.Config, n int) (kept int) {
		c := robots.NewCache(cfg)
		for i := range n {
			if _, err := c.Get(t.Context(), name(i)); err != nil {
				t.Fatal(err)
			}
			c.Peek(name(0)) // in use all the time
		}
		if c.Peek(name(0)) == nil || c.Peek(name(n-1)) == nil {
			t.Error("what is in use was dropped")
		}
		for i := range n {
			if c.Peek(name(i)) != nil {
				kept++
			}
		}
		return kept
	}
	t.Run("of origins", func(t *testing.T) {
		s := &site{}
		if kept := fill(t, robots.Config{Fetch: s.fetch, Now: clock, MaxOrigins: 100}, 1000); kept > 100 || kept < 90 {
			t.Errorf("%d kept, want 90 to 100", kept)
		}
	})
	t.Run("of memory", func(t *testing.T) {
		big := body("user-agent: *\n" + strings.Repeat("disallow: /some/path\n", 5000))
		kept := fill(t, robots.Config{Now: clock, MaxMemory: 8 << 20, Fetch: func(context.Context, string) robots.Response { return big }}, 100)
		if kept > 20 || kept < 5 {
			t.Errorf("%d kept", kept)
		}
	})
}

func TestManyCallersOfManyOrigins(t *testing.T) {
	s := &site{}
	c := robots.NewCache(robots.Config{Product: "bot", Fetch: s.fetch, MaxOrigins: 20})
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 300 {
				o := fmt.Sprintf("https://h%d.example", (i*7+w)%50)
				ctx, cancel := context.WithCancel(t.Context())
				if i%5 == 0 {
					go cancel()
				}
				p, err := c.Get(ctx, o)
				if (p == nil) == (err == nil) {
					t.Errorf("got %v and %v", p, err)
				}
				c.Peek(o)
				if i%11 == 0 {
					c.Forget(o)
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

func BenchmarkPeek(b *testing.B) {
	s := &site{}
	s.set(origin+"/robots.txt", body("user-agent: *\ndisallow: /x"))
	c := robots.NewCache(robots.Config{Product: "bot", Fetch: s.fetch})
	if _, err := c.Get(b.Context(), origin); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if ok, _ := c.Peek(origin).Allowed("/y"); !ok {
			b.Fatal("refused")
		}
	}
}
