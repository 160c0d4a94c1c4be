package web

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Site is a synthetic site. Its methods may be called concurrently.
type Site struct {
	cfg       Config
	graph     graph
	text      *text
	mix       []share
	faultless bool
	log       *hitLog
	before    counters // requests to pages with a transient fault, and to robots.txt
	bufs      sync.Pool
	sessions  atomic.Uint64
}

// New builds the site a configuration describes. The error names the field
// that is out of range.
func New(c Config) (*Site, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Site{cfg: c, graph: newGraph(c), text: newText(c.Seed), mix: c.Errors.shares(), log: newHitLog(), faultless: true}
	for _, sh := range s.mix {
		s.faultless = s.faultless && sh.v == 0
	}
	s.bufs.New = func() any { b := make([]byte, 0, c.PageBytes+c.PageBytes/4+2048); return &b }
	return s, nil
}

// Config is the site's configuration with defaults filled in.
func (s *Site) Config() Config { return s.cfg }

// Handler serves the site. The host a request is for is read from its Host
// header: 127.0.0.N is host N, every other name is the first host.
func (s *Site) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// hostNumber is 0 for 127.0.0.1, 1 for 127.0.0.2, and so on.
func (s *Site) hostNumber(name string) int {
	if last, ok := strings.CutPrefix(name, "127.0.0."); ok {
		if n, err := strconv.Atoi(last); err == nil && n >= 1 && n <= s.cfg.Hosts {
			return n - 1
		}
	}
	return 0
}

// hostName is the name of host n, without port.
func hostName(n int) string { return "127.0.0." + strconv.Itoa(n+1) }

func (s *Site) serve(w http.ResponseWriter, r *http.Request) {
	name := hostOnly(r.Host)
	x := &exchange{site: s, w: w, r: r, host: s.hostNumber(name), path: r.URL.Path, origin: origin("http://" + r.Host)}
	x.shard, x.rec = s.log.begin(record{
		method: r.Method, path: r.RequestURI, kind: KindUnknown,
		host: s.log.names.id(name), agent: s.log.names.id(r.UserAgent()), source: s.log.names.id(hostOnly(r.RemoteAddr)),
	})
	defer x.end()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		x.kind = KindMethod
		w.Header().Set("Allow", "GET, HEAD")
		x.sendText(http.StatusMethodNotAllowed, "only GET and HEAD\n")
		return
	}
	x.route()
}

// route answers by path. The latency has not been waited yet.
func (x *exchange) route() {
	s := x.site
	switch first, rest, _ := strings.Cut(x.path[min(1, len(x.path)):], "/"); first {
	case "":
		if rest != "" {
			break
		}
		x.page(0, KindPage)
		return
	case "robots.txt":
		x.robots()
		return
	case "static":
		x.asset(rest)
		return
	case "private":
		if n, ok := s.privatePage(rest); ok {
			x.page(n, KindPage)
			return
		}
	case "moved":
		if hop, n, ok := s.movedNumber(x.host, rest); ok {
			if hop == 0 {
				x.page(n, KindPage)
			} else {
				x.redirect(n, hop)
			}
			return
		}
	case "orphan":
		if n, ok := s.orphanPage(x.host, rest); ok {
			x.page(n, KindPage)
			return
		}
	case "trap":
		if x.trap(rest) {
			return
		}
	default:
		if s.cfg.Sitemap && strings.HasPrefix(first, "sitemap") && x.sitemap(first) {
			return
		}
		if n, ok := s.graph.number(x.host, x.path[1:], s.cfg.Pages); ok && n > 0 {
			x.treePage(n)
			return
		}
	}
	if x.wait(s.cfg.Latency) {
		x.sendText(http.StatusNotFound, "no such page\n")
	}
}

// treePage answers for a page of the tree, which may misbehave.
func (x *exchange) treePage(n int) {
	s := x.site
	final, before := s.fault(x.host, n)
	if before != "" && s.before.add(x) <= s.cfg.Errors.Times {
		x.misbehave(n, before)
		return
	}
	switch final {
	case KindPage:
		x.page(n, KindPage)
	case KindRedirect:
		x.redirect(n, s.hops(x.host, n))
	default:
		x.permanent(n, final)
	}
}

// page answers 200 with a page. n is a graph page, or for orphans a number
// beyond them.
func (x *exchange) page(n int, kind Kind) {
	s, c := x.site, &x.site.cfg
	latency := c.Latency
	if n > 0 && c.SlowShare > 0 && s.graph.chance(x.host, n, saltSlow) < c.SlowShare {
		latency = c.SlowLatency
	}
	x.kind = kind
	if !x.wait(latency) {
		return
	}
	size := c.PageBytes
	if kind == KindBig {
		size = c.Errors.BigBytes
	}
	buf := s.bufs.Get().(*[]byte)
	*buf = s.appendPage((*buf)[:0], x.origin, x.host, n, x.r.URL.EscapedPath(), size, x.extras(n))
	zip := c.GzipShare > 0 && s.graph.chance(x.host, n, saltGzip) < c.GzipShare && acceptsGzip(x.r)
	if zip {
		x.sendGzip("text/html; charset=utf-8", *buf)
	} else {
		x.send(http.StatusOK, "text/html; charset=utf-8", *buf)
	}
	if cap(*buf) <= 1<<20 {
		s.bufs.Put(buf)
	}
}

// extras are the anchors of a page to what is not in the graph.
func (x *exchange) extras(page int) extras {
	c := &x.site.cfg
	var more extras
	if page < c.Robots.Private {
		more = append(more, privatePath(page))
	}
	if page != 0 {
		return more
	}
	for _, t := range c.Traps {
		more = append(more, t.entry())
	}
	if c.CrossHost && c.Hosts > 1 {
		_, port, _ := strings.Cut(x.r.Host, ":")
		more = append(more, "http://"+hostName((x.host+1)%c.Hosts)+":"+port+"/")
	}
	return more
}

// wait waits for d or until the peer closes; it reports whether to go on.
func (x *exchange) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.r.Context().Done():
		x.aborted = true
		return false
	}
}

// counters count requests by host, path and agent.
type counters struct {
	mu sync.Mutex
	n  map[counterKey]int
}

type counterKey struct {
	host        int
	path, agent string
}

// add counts a request and returns how many there were, this one included.
func (c *counters) add(x *exchange) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[counterKey]int{}
	}
	k := counterKey{x.host, x.path, x.r.UserAgent()}
	c.n[k]++
	return c.n[k]
}
