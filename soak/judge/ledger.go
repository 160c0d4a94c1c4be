package judge

import (
	"cmp"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"time"

	"deepcrawl/soak/web"
)

// Rules checked with the database.
const (
	RuleRun    Rule = "run"    // a run is not done, or done with work left
	RuleLedger Rule = "ledger" // a URL is not in exactly one terminal state that the site explains
	RuleTariff Rule = "tariff" // more active runs of a tenant, or more seats on a run, than its tariff allows
)

// Ordered is a run as it was ordered.
type Ordered struct {
	ID     int64
	Tenant string
	Agent  string // the user agent of its requests
	// MaxPages, when not 0, is the page limit the run was given: it saw part of the site only.
	MaxPages int
	// PerSecond, when not 0, is the run's own budget of starts over all nodes.
	PerSecond float64
	// Seats it may have at a time; 0 is not checked.
	Seats int
}

// Ledger compares what the database ends with to what the site is made of and saw.
func Ledger(stored map[int64]*StoredRun, ordered []Ordered, expected iter.Seq[web.Expectation], hits []web.Hit) []Violation {
	seen := map[Request]bool{}
	for _, h := range hits {
		seen[requestOf(h)] = true
	}
	var vs []Violation
	for _, o := range ordered {
		run := stored[o.ID]
		add := func(rule Rule, host, path, format string, args ...any) {
			vs = append(vs, Violation{Rule: rule, Host: host, Path: path, Agent: o.Agent, Detail: fmt.Sprintf("run %d: ", o.ID) + fmt.Sprintf(format, args...)})
		}
		if run == nil {
			add(RuleRun, "", "", "it is not in the database")
			continue
		}
		if run.State != "done" {
			add(RuleRun, "", "", "it is %s (%s), want done", run.State, run.Reason)
		}
		for _, name := range run.Repeated {
			add(RuleLedger, "", name, "it is stored as two URLs")
		}
		left, pages := 0, 0
		found := make(map[Request]StoredURL, len(run.URLs))
		for _, name := range sortedKeys(run.URLs) {
			u := run.URLs[name]
			host, path := split(name)
			found[Request{o.Agent, host, path}] = u
			left += u.Queued + u.Claimed
			if u.State == stateFetched || u.State == stateFailed {
				pages++
			}
			switch n := u.Queued + u.Claimed + u.Pages; {
			case n != 1:
				add(RuleLedger, host, path, "it is in %d states at once (queued %d, claimed %d, finished %d)", n, u.Queued, u.Claimed, u.Pages)
			case u.Pages == 1 && u.State != stateFetched && u.Reason == "":
				add(RuleLedger, host, path, "it is %s without a reason", stateName(u.State))
			case u.State == stateFetched && !seen[Request{o.Agent, host, path}]:
				add(RuleLedger, host, path, "it is fetched, and the site never saw a request for it")
			}
		}
		if run.State == "done" && left > 0 {
			add(RuleRun, "", "", "it is done with %d URLs left", left)
		}
		if o.MaxPages > 0 {
			if pages != o.MaxPages {
				add(RuleLedger, "", "", "%d pages were fetched under a limit of %d", pages, o.MaxPages)
			}
			continue
		}
		for e := range expected {
			u, ok := found[Request{o.Agent, e.Host, e.Path}]
			switch {
			case !ok:
				add(RuleLedger, e.Host, e.Path, "it was never discovered")
			case u.Pages == 0: // told above where the run is done
			case !e.Allowed && u.State != stateExcluded:
				add(RuleLedger, e.Host, e.Path, "robots.txt forbids it, and it is %s", stateName(u.State))
			case e.Allowed && u.State == stateExcluded:
				add(RuleLedger, e.Host, e.Path, "it is excluded (%s), and nothing at the site says so", u.Reason)
			case e.Allowed && u.State == stateFailed && !mayFail(e.Kind):
				add(RuleLedger, e.Host, e.Path, "it failed (%s), and the site answers %d", u.Reason, e.Status)
			case e.Allowed && u.State == stateFetched && u.Status != e.Status:
				add(RuleLedger, e.Host, e.Path, "it is stored with status %d, and the site answers %d", u.Status, e.Status)
			}
		}
	}
	return vs
}

// mayFail says whether a URL that finally gives this may end as failed.
func mayFail(k web.Kind) bool {
	switch k {
	case web.KindPage, web.KindRedirect, web.KindBig:
		return false
	}
	return true
}

func stateName(n int) string {
	switch n {
	case stateFetched:
		return "fetched"
	case stateFailed:
		return "failed"
	case stateExcluded:
		return "excluded"
	}
	return fmt.Sprintf("in state %d", n)
}

func split(name string) (host, path string) {
	u, err := url.Parse(name)
	if err != nil {
		return "", name
	}
	return u.Hostname(), u.RequestURI()
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Tariff are the limits of a tenant; 0 is none.
type Tariff struct {
	Parallel int // active runs
	Workers  int // seats on one run
}

// OverTariff finds moments at which a tenant had more active runs, or a run more seats, than allowed; one violation for each
// tenant or run that was ever over.
func OverTariff(samples []Sample, tariffs map[string]Tariff, ordered []Ordered) []Violation {
	var vs []Violation
	told := map[string]bool{}
	once := func(key string, at time.Time, format string, args ...any) {
		if !told[key] {
			told[key] = true
			vs = append(vs, Violation{Rule: RuleTariff, At: at, Detail: fmt.Sprintf(format, args...)})
		}
	}
	seats := map[int64]int{}
	for _, o := range ordered {
		seats[o.ID] = o.Seats
	}
	for _, s := range samples {
		active := map[string]int{}
		for _, id := range sortedKeys(s.States) {
			switch s.States[id] {
			case "preparing", "crawling", "finishing":
				active[s.Tenant[id]]++
			}
			allowed := seats[id]
			if t := tariffs[s.Tenant[id]].Workers; t > 0 && (allowed == 0 || t < allowed) {
				allowed = t
			}
			if allowed > 0 && s.Seats[id] > allowed {
				once(fmt.Sprint("run ", id), s.At, "run %d has %d seats, allowed are %d", id, s.Seats[id], allowed)
			}
		}
		for _, tenant := range sortedKeys(active) {
			if most := tariffs[tenant].Parallel; most > 0 && active[tenant] > most {
				once("tenant "+tenant, s.At, "tenant %s has %d active runs, its tariff allows %d", tenant, active[tenant], most)
			}
		}
	}
	return sorted(vs)
}
