package sitemap_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"deepcrawl/crawl/sitemap"
)

func TestPlanWalksAnIndex(t *testing.T) {
	p := sitemap.NewPlan(sitemap.PlanLimits{})
	if n := p.Add("root", "other", "root", ""); n != 2 {
		t.Errorf("%d added, want 2", n)
	}
	n, ok := p.Next()
	if again, _ := p.Next(); !ok || n != again || n != (sitemap.Node{URL: "root"}) {
		t.Errorf("got %+v, then %+v", n, again)
	}
	p.Done("root", []string{"a", "b", "other", "root", "a"}, 0, "")
	p.Failed("other", "404")
	p.Done("a", nil, 10, "line 3: broken")
	if n, _ := p.Next(); n != (sitemap.Node{URL: "b", Depth: 1, Parent: "root"}) {
		t.Errorf("got %+v", n)
	}
	p.Done("b", nil, 5, "")
	p.Done("b", []string{"never"}, 5, "reported twice")
	p.Failed("unknown", "x")
	if _, ok := p.Next(); ok {
		t.Error("there is more")
	}
	if got, want := p.Stats(), (sitemap.Stats{Done: 3, Failed: 1, URLs: 15}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := p.Troubles(); !slices.Equal(got, []sitemap.Trouble{{URL: "other", Err: "404"}, {URL: "a", Err: "line 3: broken"}}) {
		t.Errorf("got %+v", got)
	}
}

func TestPlanLimits(t *testing.T) {
	t.Run("an endless chain of indexes ends at the depth limit", func(t *testing.T) {
		p := sitemap.NewPlan(sitemap.PlanLimits{})
		p.Add("s0")
		read := 0
		for {
			n, ok := p.Next()
			if !ok {
				break
			}
			read++
			p.Done(n.URL, []string{fmt.Sprintf("s%d", n.Depth+1)}, 0, "")
		}
		if st := p.Stats(); read != 4 || st.Dropped != 1 {
			t.Errorf("read %d, %+v", read, st)
		}
	})
	t.Run("URLs are used up", func(t *testing.T) {
		p := sitemap.NewPlan(sitemap.PlanLimits{MaxURLs: 100})
		p.Add("a", "b", "c")
		p.Done("a", nil, 60, "")
		if p.Remaining() != 40 {
			t.Errorf("%d remain", p.Remaining())
		}
		p.Done("b", nil, 60, "")
		if _, ok := p.Next(); ok || p.Remaining() != 0 || p.Stats().Pending != 1 {
			t.Errorf("%d remain, %+v", p.Remaining(), p.Stats())
		}
	})
	t.Run("files are used up", func(t *testing.T) {
		p := sitemap.NewPlan(sitemap.PlanLimits{MaxSitemaps: 3})
		p.Add("a")
		p.Done("a", []string{"b", "c", "d", "b"}, 0, "")
		if st := p.Stats(); st.Pending != 2 || st.Dropped != 1 {
			t.Errorf("%+v", st)
		}
	})
	t.Run("the list of troubles is bounded", func(t *testing.T) {
		p := sitemap.NewPlan(sitemap.PlanLimits{})
		for i := range 200 {
			p.Add(fmt.Sprint(i))
			p.Failed(fmt.Sprint(i), "404")
		}
		if len(p.Troubles()) != 100 || p.Stats().Failed != 200 {
			t.Errorf("%d kept, %+v", len(p.Troubles()), p.Stats())
		}
	})
}

// A plan stored and loaded at any points visits the same files in the same order
// as one that is not.
func TestPlanGoesOnWhereItStopped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := sitemap.PlanLimits{MaxDepth: rapid.IntRange(1, 4).Draw(t, "depth"), MaxURLs: rapid.IntRange(1, 300).Draw(t, "urls"),
			MaxSitemaps: rapid.IntRange(1, 20).Draw(t, "sitemaps")}
		name := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("http://x/%d.xml", rapid.IntRange(0, 15).Draw(t, "name")) })
		type file struct {
			children []string
			entries  int
			fails    bool
		}
		site := map[string]file{}
		for i := range 16 {
			site[fmt.Sprintf("http://x/%d.xml", i)] = file{
				children: rapid.SliceOfN(name, 0, 6).Draw(t, "children"),
				entries:  rapid.IntRange(0, 20).Draw(t, "entries"),
				fails:    rapid.IntRange(0, 4).Draw(t, "fails") == 0,
			}
		}
		roots := rapid.SliceOfN(name, 1, 4).Draw(t, "roots")
		walk := func(stop func() bool) (visits []sitemap.Node, st sitemap.Stats, tr []sitemap.Trouble) {
			p := sitemap.NewPlan(limits)
			p.Add(roots...)
			for {
				if stop() {
					b, err := json.Marshal(p)
					if err != nil {
						t.Fatal(err)
					}
					p = new(sitemap.Plan)
					if err := json.Unmarshal(b, p); err != nil {
						t.Fatal(err)
					}
				}
				n, ok := p.Next()
				if !ok {
					return visits, p.Stats(), p.Troubles()
				}
				visits = append(visits, n)
				f := site[n.URL]
				if f.fails {
					p.Failed(n.URL, "broken")
				} else {
					p.Done(n.URL, f.children, f.entries, "")
				}
			}
		}
		visits, st, tr := walk(func() bool { return false })
		visits2, st2, tr2 := walk(func() bool { return rapid.Bool().Draw(t, "stop") })
		if !slices.Equal(visits, visits2) || st != st2 || !slices.Equal(tr, tr2) {
			t.Fatalf("without a stop %v %+v %v\nwith stops %v %+v %v", visits, st, tr, visits2, st2, tr2)
		}
		seen := map[string]bool{}
		for _, n := range visits {
			if seen[n.URL] || n.Depth > limits.MaxDepth {
				t.Fatalf("%+v is visited again or too deep", n)
			}
			seen[n.URL] = true
		}
		if len(visits) > limits.MaxSitemaps {
			t.Fatalf("%d files", len(visits))
		}
	})
}

func TestAStoredPlanStaysSmall(t *testing.T) {
	p := sitemap.NewPlan(sitemap.PlanLimits{})
	index := "https://www.shop.example/sitemaps/index-of-all-products.xml"
	p.Add(index)
	var children []string
	for i := range 9000 {
		children = append(children, fmt.Sprintf("https://www.shop.example/sitemaps/products-%d.xml.gz", i))
	}
	p.Done(index, children, 0, "")
	for _, c := range children[:8900] {
		p.Done(c, nil, 10, "")
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 8900*11+100*100 {
		t.Errorf("%d bytes for 100 files to do and 8,901 done", len(b))
	}
}

func TestABrokenPlanIsRefused(t *testing.T) {
	for _, s := range []string{`[]`, `{"seen":"?"}`, `{"seen":"AAAA"}`, `{"queue":[{"u":"a","p":1}]}`, `{"queue":[{"u":"a","p":-1}]}`} {
		p := sitemap.NewPlan(sitemap.PlanLimits{})
		p.Add("kept")
		err := json.Unmarshal([]byte(s), p)
		if err == nil || !strings.Contains(err.Error(), "sitemap plan") {
			t.Errorf("%s: got %v", s, err)
		}
		if n, _ := p.Next(); n.URL != "kept" {
			t.Errorf("%s: the plan was changed to %+v", s, n)
		}
	}
}
