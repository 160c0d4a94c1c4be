package extract_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"

	"deepcrawl/crawl/extract"
)

// view is what the tree and the stream are compared on.
type view struct {
	Title, Canonical, Base, Description, Lang string
	Titles, Canonicals, H1, H2, Images, NoAlt int
	Links                                     []string // distinct "kind href", sorted
	H1Texts                                   []string // without white space
	Text                                      string   // characters of the visible text, sorted
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// asciiSpace collapses ASCII white space only, as HTML does.
func asciiSpace(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n\f\r", r) }), " ")
}

func sortedRunes(s string) string {
	r := []rune(s)
	slices.Sort(r)
	return string(r)
}

// streamView is the extractor's answer.
func streamView(body []byte) view {
	p := extract.New(extract.Config{}).HTML(extract.Input{Body: body, ContentType: "text/html; charset=utf-8"})
	defer p.Release()
	f := p.Facts
	v := view{Title: f.Title, Canonical: f.Canonical, Base: f.Base, Description: f.Description, Lang: f.Lang, Titles: f.TitleCount,
		Canonicals: f.CanonicalCount, H1: f.H1Count, H2: f.H2Count, Images: f.Images, NoAlt: f.ImagesNoAlt}
	for _, l := range p.Links {
		switch l.Kind {
		case extract.Anchor, extract.Area, extract.Iframe, extract.Frame, extract.Image, extract.Canonical, extract.Next, extract.Stylesheet, extract.Script:
			v.Links = append(v.Links, fmt.Sprintf("%v %s", l.Kind, l.Href))
		}
	}
	slices.Sort(v.Links)
	v.Links = slices.Compact(v.Links)
	for _, h := range f.H1 {
		v.H1Texts = append(v.H1Texts, squeeze(h))
	}
	v.Text = sortedRunes(squeeze(string(p.VisibleText())))
	return v
}

// treeView is goquery's answer: x/net's tree with scripting off.
func treeView(t *testing.T, body []byte) (view, error) {
	t.Helper()
	root, err := html.ParseWithOptions(bytes.NewReader(body), html.ParseOptionEnableScripting(false))
	if err != nil {
		return view{}, err
	}
	doc := goquery.NewDocumentFromNode(root)
	var v view
	within := func(n *html.Node, names ...string) bool {
		for p := n.Parent; p != nil; p = p.Parent {
			if p.Type == html.ElementNode && slices.Contains(names, p.Data) && (p.Data != "template" || p.Namespace == "" && !shadow(p)) {
				return true
			}
		}
		return false
	}
	attr := func(n *html.Node, key string) (string, bool) {
		for _, a := range n.Attr {
			if a.Namespace == "" && a.Key == key {
				return a.Val, true
			}
		}
		return "", false
	}
	link := func(kind, href string) {
		v.Links = append(v.Links, kind+" "+strings.TrimFunc(href, func(r rune) bool { return r <= ' ' }))
	}
	doc.Find("*").Each(func(_ int, s *goquery.Selection) {
		n := s.Nodes[0]
		if within(n, "template") {
			return
		}
		fact := !within(n, "noscript")
		href, hasHref := attr(n, "href")
		src, hasSrc := attr(n, "src")
		if n.Namespace == "svg" {
			if !hasHref {
				for _, a := range n.Attr {
					if a.Namespace == "xlink" && a.Key == "href" {
						href, hasHref = a.Val, true
					}
				}
			}
			kind := map[string]string{"a": "anchor", "image": "image", "script": "script"}[n.Data]
			if kind != "" && hasHref && !strings.HasPrefix(href, "data:") {
				link(kind, href)
			}
			return
		}
		if n.Namespace != "" {
			return
		}
		switch n.Data {
		case "title":
			if fact {
				if v.Titles++; v.Titles == 1 {
					v.Title = asciiSpace(s.Text())
				}
			}
		case "html":
			if lang, ok := attr(n, "lang"); ok && v.Lang == "" {
				v.Lang = asciiSpace(lang)
			}
		case "a", "area":
			if hasHref {
				link(map[string]string{"a": "anchor", "area": "area"}[n.Data], href)
			}
		case "iframe", "frame", "script":
			if hasSrc && (src != "" || n.Data == "frame") {
				link(n.Data, src)
			}
		case "img":
			if src = strings.TrimFunc(src, func(r rune) bool { return r <= ' ' }); src != "" && !strings.HasPrefix(strings.ToLower(src), "data:") {
				link("image", src)
			}
			if fact {
				v.Images++
				if _, ok := attr(n, "alt"); !ok {
					v.NoAlt++
				}
			}
		case "h1", "h2":
			switch {
			case !fact:
			case n.Data == "h2":
				v.H2++
			default:
				v.H1++
				v.H1Texts = append(v.H1Texts, squeeze(visible(n)))
			}
		case "base":
			if hasHref && v.Base == "" && fact {
				v.Base = strings.TrimFunc(href, func(r rune) bool { return r <= ' ' })
			}
		case "meta":
			if name, _ := attr(n, "name"); strings.EqualFold(strings.TrimSpace(name), "description") && fact && v.Description == "" {
				c, _ := attr(n, "content")
				v.Description = asciiSpace(c)
			}
		case "link":
			rel, _ := attr(n, "rel")
			for _, r := range strings.Fields(strings.ToLower(rel)) {
				switch r {
				case "canonical":
					if hasHref {
						link("canonical", href)
						if fact {
							if v.Canonicals++; v.Canonical == "" || within(n, "head") && v.Canonicals == 1 {
								v.Canonical = strings.TrimSpace(href)
							}
						}
					}
				case "next", "stylesheet":
					if strings.TrimSpace(href) != "" {
						link(r, href)
					}
				}
			}
		}
	})
	slices.Sort(v.Links)
	v.Links = slices.Compact(v.Links)
	if len(v.H1Texts) > extract.MaxHeadings {
		v.H1Texts = v.H1Texts[:extract.MaxHeadings]
	}
	if b := doc.Find("body").First(); b.Length() > 0 {
		v.Text = sortedRunes(squeeze(visible(b.Nodes[0])))
	}
	return v, nil
}

func shadow(n *html.Node) bool {
	for _, a := range n.Attr {
		if a.Key == "shadowrootmode" && (strings.EqualFold(a.Val, "open") || strings.EqualFold(a.Val, "closed")) {
			return true
		}
	}
	return false
}

// visible is the text below a node without what a reader does not see.
func visible(n *html.Node) string {
	var b strings.Builder
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			for _, r := range n.Data {
				if r >= ' ' && r != 0xAD && r != 0xFEFF && r != 0x2060 && r != 0x200B {
					b.WriteRune(r)
				} else {
					b.WriteByte(' ')
				}
			}
		case n.Type == html.ElementNode && n.Namespace == "":
			switch n.Data {
			case "script", "style", "noscript", "textarea", "title", "iframe", "noembed", "noframes":
				return
			case "template":
				if !shadow(n) {
					return
				}
			}
		case n.Type == html.ElementNode && n.Namespace == "svg" && n.Data != "foreignObject":
			for c := n.FirstChild; c != nil; c = c.NextSibling {
				if c.Type == html.ElementNode && c.Namespace == "svg" {
					if c.Data != "title" && c.Data != "desc" {
						walk(c)
					}
				}
			}
			return
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(n)
	return b.String()
}

// differences lists the fields in which two views differ.
func differences(got, want view) []string {
	var out []string
	add := func(name string, g, w any) {
		if gs, ws := fmt.Sprint(g), fmt.Sprint(w); gs != ws {
			out = append(out, fmt.Sprintf("%s: stream %q, tree %q", name, gs, ws))
		}
	}
	add("title", got.Title, want.Title)
	add("titles", got.Titles, want.Titles)
	add("canonical", got.Canonical, want.Canonical)
	add("canonicals", got.Canonicals, want.Canonicals)
	add("base", got.Base, want.Base)
	add("description", got.Description, want.Description)
	add("lang", got.Lang, want.Lang)
	add("h1", got.H1, want.H1)
	add("h2", got.H2, want.H2)
	add("h1 texts", got.H1Texts, want.H1Texts)
	add("images", got.Images, want.Images)
	add("images without alt", got.NoAlt, want.NoAlt)
	add("links", got.Links, want.Links)
	add("text", got.Text, want.Text)
	return out
}
