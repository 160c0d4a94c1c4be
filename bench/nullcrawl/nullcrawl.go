// Package nullcrawl is the yardstick of the benchmarks: the least a crawler
// written with net/http and goquery has to do. It fetches the pages of one
// host, parses each into a tree, collects the links, and keeps nothing but the
// set of paths it has seen, in memory. No robots.txt, no retries, no results.
//
// It is meant to be a good program of its kind: connections are reused, bodies
// are read into pooled buffers, and with Apart parsing does not hold back
// fetching, so that the number of requests in flight is what was asked for. The
// textbook way, in which each of the workers fetches and then parses, is a few
// percent slower where the site has latency and as fast where it has none.
package nullcrawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"github.com/PuerkitoBio/goquery"
)

// UserAgent tells the null crawler's hits in a site's log.
const UserAgent = "NullCrawler/1"

// Stats is what a crawl has to say for itself.
type Stats struct {
	Pages int   // answered with status 200
	Other int   // answered otherwise
	Links int64 // anchors found
	Bytes int64 // of bodies
}

type crawler struct {
	client  *http.Client
	bodies  sync.Pool
	fetched chan page // to the parsers
	host    string
	how     How

	mu      sync.Mutex
	wake    sync.Cond
	seen    map[string]struct{}
	queue   []string
	open    int // URLs queued, being fetched or being parsed
	err     error
	stats   Stats
	stopped bool
}

type page struct {
	base *url.URL
	body *bytes.Buffer
}

// How says who parses.
type How bool

// The ways to parse.
const (
	Apart   How = true  // goroutines of their own, one for each CPU
	Workers How = false // each worker, between two requests
)

// Crawl visits every page that can be reached from the home page without
// leaving its host, with up to inFlight requests at a time. It stops at the
// first request that fails.
func Crawl(ctx context.Context, home string, inFlight int, how How) (Stats, error) {
	base, err := url.Parse(home)
	if err != nil {
		return Stats{}, fmt.Errorf("null crawl: %w", err)
	}
	parsers := runtime.GOMAXPROCS(0)
	c := &crawler{
		client: &http.Client{
			Transport: &http.Transport{
				MaxIdleConns: 2 * inFlight, MaxIdleConnsPerHost: 2 * inFlight, IdleConnTimeout: time.Minute,
				DisableCompression: true,
			},
			Timeout:       time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		bodies:  sync.Pool{New: func() any { return new(bytes.Buffer) }},
		fetched: make(chan page, 2*parsers),
		host:    base.Host,
		how:     how,
		seen:    map[string]struct{}{},
	}
	c.wake.L = &c.mu
	c.add([]string{base.String()})
	stop := context.AfterFunc(ctx, func() { c.fail(ctx.Err()) })
	defer stop()

	var fetchers, parsing sync.WaitGroup
	for range parsers {
		parsing.Go(c.parseAll)
	}
	for range inFlight {
		fetchers.Go(func() { c.fetch(ctx) })
	}
	fetchers.Wait()
	close(c.fetched)
	parsing.Wait()
	c.client.CloseIdleConnections()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats, c.err
}

// add queues what was not seen before.
func (c *crawler) add(urls []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range urls {
		if _, ok := c.seen[u]; ok {
			continue
		}
		c.seen[u] = struct{}{}
		c.queue = append(c.queue, u)
		c.open++
		c.wake.Signal()
	}
}

// done takes a URL from the open ones; with the last the crawl is over.
func (c *crawler) done(count func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count(&c.stats)
	if c.open--; c.open == 0 {
		c.stopped = true
		c.wake.Broadcast()
	}
}

func (c *crawler) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped {
		c.err, c.stopped = err, true
		c.wake.Broadcast()
	}
}

// next waits for a URL; it reports false when the crawl is over.
func (c *crawler) next() (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 && !c.stopped {
		c.wake.Wait()
	}
	if c.stopped {
		return "", false
	}
	u := c.queue[0]
	c.queue = c.queue[1:]
	return u, true
}

func (c *crawler) fetch(ctx context.Context) {
	for {
		u, ok := c.next()
		if !ok {
			return
		}
		if err := c.fetchOne(ctx, u); err != nil {
			c.fail(fmt.Errorf("null crawl: %w", err))
			return
		}
	}
}

func (c *crawler) fetchOne(ctx context.Context, u string) (err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", UserAgent)
	resp, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	body := c.bodies.Get().(*bytes.Buffer)
	body.Reset()
	if resp.ContentLength > 0 && resp.ContentLength < 8<<20 {
		body.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	if _, err := io.Copy(body, resp.Body); err != nil {
		return fmt.Errorf("read %s: %w", u, err)
	}
	if resp.StatusCode != http.StatusOK {
		c.bodies.Put(body)
		c.done(func(s *Stats) { s.Other++ })
		return nil
	}
	if p := (page{r.URL, body}); c.how == Apart {
		c.fetched <- p
	} else {
		c.parse(p)
	}
	return nil
}

func (c *crawler) parseAll() {
	for p := range c.fetched {
		c.parse(p)
	}
}

func (c *crawler) parse(p page) {
	n := p.body.Len()
	links, found, err := c.links(p)
	c.bodies.Put(p.body)
	if err != nil {
		c.fail(fmt.Errorf("null crawl: parse %s: %w", p.base, err))
		return
	}
	c.add(links)
	c.done(func(s *Stats) {
		s.Pages++
		s.Links += int64(found)
		s.Bytes += int64(n)
	})
}

// links returns the links of a page that stay on the host, without fragments,
// and how many anchors there were.
func (c *crawler) links(p page) (links []string, found int, err error) {
	doc, err := goquery.NewDocumentFromReader(p.body)
	if err != nil {
		return nil, 0, err
	}
	anchors := doc.Find("a[href]")
	links = make([]string, 0, anchors.Length())
	anchors.Each(func(_ int, s *goquery.Selection) {
		href, _ := s.Attr("href")
		u, err := p.base.Parse(href)
		if err != nil || u.Host != c.host || u.Scheme != p.base.Scheme {
			return
		}
		u.Fragment, u.RawFragment = "", ""
		links = append(links, u.String())
	})
	return links, anchors.Length(), nil
}
