package main

import (
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"deepcrawl/crawl"
	"deepcrawl/storage"
)

func (p *program) runWhyCommand() *cli.Command {
	return &cli.Command{
		Name: "why", Usage: "say what a run, or a URL of it, waits for", ArgsUsage: "RUN [URL]", Flags: listFlags(), Action: p.runWhy,
	}
}

// whyAnswer is run why in JSON.
type whyAnswer struct {
	Run    storage.RunID    `json:"run"`
	State  storage.RunState `json:"state"`
	Reason string           `json:"reason"` // what keeps it first; empty: it goes on
	Until  *string          `json:"until"`
	URL    string           `json:"url,omitempty"`
	Clues  []crawl.Clue     `json:"clues"`
}

func (p *program) runWhy(c *cli.Context) error {
	if c.NArg() == 0 {
		return usagef("why: which run? give its number, or last")
	}
	if c.NArg() > 2 {
		return usagef("%s: unexpected argument; why takes a run and a URL", c.Args().Get(2))
	}
	return p.withCluster(c, func(o opened) error {
		id, err := parseRun(c.Context, o.store, c.Command.Name, c.Args().First())
		if err != nil {
			return err
		}
		r, ledger, err := loadRun(c.Context, o.store, id)
		if err != nil {
			return err
		}
		s, err := p.look(c.Context, o)
		if err != nil {
			return err
		}
		f := crawl.RunFacts{Waiting: storage.Waiting{Run: r}, Ledger: ledger}
		if i := slices.IndexFunc(s.runs, func(w storage.Waiting) bool { return w.Run.ID == id }); i >= 0 {
			f.Waiting = s.runs[i]
		}
		if f.Tariff.StoredPages > 0 {
			if f.Stored, err = o.store.StoredPages(c.Context, r.Tenant); err != nil {
				return err
			}
		}
		ready, err := o.store.Ready(c.Context, []storage.RunID{id}, hostsShown)
		if err != nil {
			return err
		}
		if len(ready) > 0 {
			f.Ready = ready[0]
		}
		scene := s.scene()
		wait := scene.WaitOf(f.Waiting)
		a := whyAnswer{Run: id, State: f.Run.State, Reason: wait.Reason, Until: isoTime(wait.Until)}
		if c.NArg() == 2 {
			err = p.whyURL(c, o, scene, f, &a)
		} else {
			a.Clues = scene.WhyRun(f)
		}
		if err != nil {
			return err
		}
		return p.sayWhy(c, a)
	})
}

// hostsShown bounds the hosts of a run that are looked at one by one.
const hostsShown = 20

func (p *program) whyURL(c *cli.Context, o opened, scene *crawl.Scene, f crawl.RunFacts, a *whyAnswer) error {
	spec, err := crawl.DecodeSpec(f.Run.Spec)
	if err != nil {
		return err
	}
	place, err := spec.Find(seedOf(c.Args().Get(1)))
	if err != nil {
		return usagef("why: %q is not a URL that can be crawled; allowed: an http or https URL", c.Args().Get(1))
	}
	a.URL = place.URL
	u, err := o.store.FindURL(c.Context, f.Run.ID, place.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound) && place.Outside != "":
		a.Clues = []crawl.Clue{{Topic: "url", Text: "not part of the run: " + place.Outside, Holds: true}}
	case errors.Is(err, storage.ErrNotFound):
		a.Clues = []crawl.Clue{{Topic: "url", Text: "not discovered: no page or sitemap read so far names it, nor is it a seed", Holds: true}}
	case err != nil:
		return err
	default:
		a.Clues = scene.WhyURL(u, f.Waiting)
	}
	return nil
}

func (p *program) sayWhy(c *cli.Context, a whyAnswer) error {
	if c.Bool("json") {
		return p.printJSON(a)
	}
	if a.URL != "" {
		_, _ = fmt.Fprintln(p.stdout, clean(a.URL))
	}
	w := tabwriter.NewWriter(p.stdout, 0, 4, 2, ' ', 0)
	for _, clue := range a.Clues {
		mark := " "
		if clue.Holds {
			mark = ">"
		}
		_, _ = fmt.Fprintf(w, "%s %s\t%s\n", mark, clue.Topic, clean(clue.Text))
	}
	return w.Flush()
}
