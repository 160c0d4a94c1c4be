package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"deepcrawl/storage"
)

// Limits of one sitemap file (sitemaps.org/protocol.html, "Sitemap index files").
const (
	sitemapURLs  = 50_000
	sitemapBytes = 50 << 20
)

const (
	urlsetHead = xml.Header + `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	urlsetFoot = "</urlset>\n"
	indexHead  = xml.Header + `<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` + "\n"
	indexFoot  = "</sitemapindex>\n"
)

// sitemap writes the pages a search engine may index: HTML answered with 200, not noindex, canonical to themselves. More than one
// file's worth becomes FILE-1.xml and so on, with FILE as their index.
func (x *exporter) sitemap() error {
	x.noun = "URL"
	canon, err := x.canonicals()
	if err != nil {
		return err
	}
	w := &sitemapWriter{file: x.file, stdout: x.stdout}
	defer w.discard()
	err = x.eachPage(storage.PageQuery{States: []storage.State{storage.Fetched}, Status: 200, WithFacts: true}, func(rows []storage.PageRow) error {
		for _, r := range rows {
			facts, _, self, err := canon.of(r)
			if err != nil {
				return err
			}
			if len(r.Facts) == 0 || facts.NoIndex || !self {
				continue
			}
			if err := w.add(r.URL); err != nil {
				return err
			}
			x.rows++
		}
		return nil
	})
	if err != nil {
		return err
	}
	x.wrote, err = w.close(origin(x.spec.Seeds))
	return err
}

// origin is where the site would serve the files from.
func origin(seeds []string) string {
	if len(seeds) == 0 {
		return ""
	}
	scheme, rest, _ := strings.Cut(seeds[0], "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

type sitemapWriter struct {
	file   string
	stdout io.Writer

	parts []*newOutput // complete but the last, which is being written; none on stdout
	out   io.Writer
	urls  int
	bytes int
}

func (w *sitemapWriter) toFile() bool { return w.file != "" && w.file != "-" }

func (w *sitemapWriter) add(url string) error {
	var b bytes.Buffer
	b.WriteString("  <url><loc>")
	if err := xml.EscapeText(&b, []byte(url)); err != nil {
		return err
	}
	b.WriteString("</loc></url>\n")
	if w.out != nil && (w.urls == sitemapURLs || w.bytes+b.Len()+len(urlsetFoot) > sitemapBytes) {
		if !w.toFile() {
			return fmt.Errorf("more than one sitemap file holds (%d URLs): give -o FILE", w.urls)
		}
		if err := w.end(); err != nil {
			return err
		}
	}
	if err := w.begin(); err != nil {
		return err
	}
	w.urls++
	w.bytes += b.Len()
	_, err := w.out.Write(b.Bytes())
	return err
}

func (w *sitemapWriter) begin() error {
	if w.out != nil {
		return nil
	}
	w.out = w.stdout
	if w.toFile() {
		part, err := newFile(w.file)
		if err != nil {
			return err
		}
		w.parts = append(w.parts, part)
		w.out = part
	}
	w.urls, w.bytes = 0, len(urlsetHead)
	_, err := io.WriteString(w.out, urlsetHead)
	return err
}

func (w *sitemapWriter) end() error {
	_, err := io.WriteString(w.out, urlsetFoot)
	w.out = nil
	return err
}

// close completes the files and returns their names.
func (w *sitemapWriter) close(site string) ([]string, error) {
	if err := w.begin(); err != nil { // an empty sitemap is one too
		return nil, err
	}
	if err := w.end(); err != nil {
		return nil, err
	}
	switch len(w.parts) {
	case 0:
		return nil, nil
	case 1:
		return []string{w.file}, w.parts[0].commit(w.file)
	}
	ext := filepath.Ext(w.file)
	names := []string{w.file}
	var index bytes.Buffer
	index.WriteString(indexHead)
	for i, part := range w.parts {
		name := fmt.Sprintf("%s-%d%s", strings.TrimSuffix(w.file, ext), i+1, ext)
		if err := part.commit(name); err != nil {
			return nil, err
		}
		names = append(names, name)
		index.WriteString("  <sitemap><loc>")
		if err := xml.EscapeText(&index, []byte(site+"/"+filepath.Base(name))); err != nil {
			return nil, err
		}
		index.WriteString("</loc></sitemap>\n")
	}
	index.WriteString(indexFoot)
	return names, os.WriteFile(w.file, index.Bytes(), 0o644)
}

func (w *sitemapWriter) discard() {
	for _, p := range w.parts {
		p.discard()
	}
}
