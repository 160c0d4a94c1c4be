package main

import (
	"errors"
	"fmt"

	"deepcrawl/crawl"
	"deepcrawl/crawl/extract"
	"deepcrawl/crawl/urlkey"
	"deepcrawl/storage"
)

var pageFields = []string{
	"url", "state", "reason", "status", "depth", "via", "content_type", "bytes", "ttfb_ms", "title", "canonical", "robots", "redirect_to",
	"inlinks", "outlinks", "priority", "attempts", "fetched_at",
}

// pages writes one row a URL of the run, unfinished ones included. Text that is not there is empty, a number not known is null.
func (x *exporter) pages() error {
	canon, err := x.canonicals()
	if err != nil {
		return err
	}
	return x.output("URL", pageFields, func(t table) error {
		return x.eachPage(storage.PageQuery{Unfinished: true, WithFacts: true}, func(rows []storage.PageRow) error {
			var vias []storage.URLID
			for _, r := range rows {
				if r.Via != 0 {
					vias = append(vias, r.Via)
				}
			}
			via, err := x.store.URLs(x.ctx, x.run.ID, vias)
			if err != nil {
				return err
			}
			for _, r := range rows {
				facts, canonical, _, err := canon.of(r)
				if err != nil {
					return err
				}
				if err := t.write(pageRow(r, via[r.Via], facts, canonical)); err != nil {
					return err
				}
				x.rows++
			}
			return nil
		})
	})
}

func pageRow(r storage.PageRow, via string, facts *extract.Facts, canonical string) []field {
	var status, inlinks, ttfb *int64
	if r.Status != 0 {
		status = ptr(int64(r.Status))
		ttfb = ptr(r.TTFB.Milliseconds())
	}
	if r.Inlinks >= 0 {
		inlinks = ptr(r.Inlinks)
	}
	return []field{
		{"url", r.URL}, {"state", r.State.String()}, {"reason", string(r.Reason)}, {"status", status}, {"depth", int64(r.Depth)}, {"via", via},
		{"content_type", r.ContentType}, {"bytes", r.Bytes}, {"ttfb_ms", ttfb}, {"title", r.Title}, {"canonical", canonical},
		{"robots", facts.Robots}, {"redirect_to", r.RedirectTo}, {"inlinks", inlinks}, {"outlinks", int64(r.Outlinks)},
		{"priority", int64(r.Priority)}, {"attempts", int64(r.Attempts)}, {"fetched_at", isoTime(r.FetchedAt)},
	}
}

func ptr[T any](v T) *T { return &v }

// canonicals resolves the canonical links of pages.
type canonicals struct {
	canon *urlkey.Canonicalizer
	base  *urlkey.Base
	buf   []byte
}

func (x *exporter) canonicals() (*canonicals, error) {
	c, err := urlkey.New(urlkey.Options{TrackingParams: x.spec.Tracking, KeepTracking: x.spec.KeepTracking})
	if err != nil {
		return nil, err
	}
	return &canonicals{canon: c}, nil
}

// of decodes a page's facts and resolves its canonical link. self says that it has none, or that it names the page itself.
func (c *canonicals) of(r storage.PageRow) (facts *extract.Facts, canonical string, self bool, err error) {
	facts = &extract.Facts{}
	if len(r.Facts) > 0 {
		if err := facts.UnmarshalBinary(r.Facts); err != nil {
			return nil, "", false, fmt.Errorf("facts of %s: %w", r.URL, err)
		}
	}
	href, base := facts.Canonical, facts.Base
	if href == "" {
		href, base = facts.HeaderCanonical, "" // the header's is relative to the page (RFC 8288 section 3.1)
	}
	if href == "" {
		return facts, "", true, nil
	}
	if base != "" {
		if u, err := c.resolve(r.URL, base); err == nil {
			base = string(u.Raw)
		} else {
			base = r.URL
		}
	} else {
		base = r.URL
	}
	u, err := c.resolve(base, href)
	if err != nil && !errors.Is(err, urlkey.ErrTooLong) {
		return facts, href, false, nil // not a URL of the web: shown as it stands
	}
	return facts, string(u.Raw), storage.Key(u.Key) == r.Key, nil
}

// resolve returns a URL that is valid until the next call.
func (c *canonicals) resolve(base, href string) (urlkey.URL, error) {
	if c.base == nil {
		b, err := c.canon.NewBase(base)
		if err != nil {
			return urlkey.URL{}, err
		}
		c.base = b
	} else if err := c.base.Reset(base); err != nil {
		return urlkey.URL{}, err
	}
	u, buf, err := c.base.Resolve(c.buf[:0], []byte(href))
	c.buf = buf
	return u, err
}

var linkFields = []string{"source", "target", "kind", "nofollow", "target_state", "target_status", "target_reason"}

// links writes one row a link of the stored pages. The target's state is empty where it is not one of the run's URLs.
func (x *exporter) links() error {
	return x.output("link", linkFields, func(t table) error {
		var after storage.URLID
		for {
			pages, err := x.store.Links(x.ctx, x.run.ID, after, exportBatch)
			if err != nil {
				return err
			}
			if len(pages) == 0 {
				return nil
			}
			after = pages[len(pages)-1].ID
			if err := x.linksOf(t, pages); err != nil {
				return err
			}
		}
	})
}

func (x *exporter) linksOf(t table, pages []storage.PageLinks) error {
	ids := make([]storage.URLID, 0, len(pages))
	wanted := map[[8]byte]bool{}
	for _, p := range pages {
		ids = append(ids, p.ID)
		if err := crawl.EachEdge(p.Links, func(e crawl.Edge) {
			if len(e.URL) == 0 {
				wanted[e.Prefix] = true
			}
		}); err != nil {
			return err
		}
	}
	sources, err := x.store.URLs(x.ctx, x.run.ID, ids)
	if err != nil {
		return err
	}
	targets, err := x.targets(wanted)
	if err != nil {
		return err
	}
	for _, p := range pages {
		var failed error
		err := crawl.EachEdge(p.Links, func(e crawl.Edge) {
			if failed != nil {
				return
			}
			failed = t.write(linkRow(sources[p.ID], e, targets))
			x.rows++
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}

// targets resolves key prefixes in pieces that any database takes as one statement.
func (x *exporter) targets(wanted map[[8]byte]bool) (map[[8]byte]storage.URLRef, error) {
	all := make(map[[8]byte]storage.URLRef, len(wanted))
	piece := make([][8]byte, 0, exportBatch)
	take := func() error {
		found, err := x.store.URLsByPrefix(x.ctx, x.run.ID, piece)
		for k, v := range found {
			all[k] = v
		}
		piece = piece[:0]
		return err
	}
	for p := range wanted {
		if piece = append(piece, p); len(piece) == cap(piece) {
			if err := take(); err != nil {
				return nil, err
			}
		}
	}
	if len(piece) > 0 {
		if err := take(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func linkRow(source string, e crawl.Edge, targets map[[8]byte]storage.URLRef) []field {
	target, state, reason := string(e.URL), "", ""
	var status *int64
	if target == "" {
		ref := targets[e.Prefix]
		target, reason = ref.URL, string(ref.Reason)
		if ref.State != 0 {
			state = ref.State.String()
		}
		if ref.Status != 0 {
			status = ptr(int64(ref.Status))
		}
	}
	return []field{
		{"source", source}, {"target", target}, {"kind", e.Kind.String()}, {"nofollow", e.Nofollow},
		{"target_state", state}, {"target_status", status}, {"target_reason", reason},
	}
}
