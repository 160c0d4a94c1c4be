package crawl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"deepcrawl/coord"
	"deepcrawl/storage"
)

// Scene is the cluster at one moment: what decides, beside a run itself, whether the run goes on. Whoever shows runs to people
// gathers one; what is said then is decided here and nowhere else.
type Scene struct {
	Now time.Time
	// Halted says why nothing starts anywhere (coordination changes hands); empty: requests may start.
	Halted string
	Gates  map[string]Wait      // closed gates, by host
	Bans   map[string]string    // the operators' reasons, by host
	Slots  map[coord.Key]Usage  // slots taken
	Live   map[string]Session   // live sessions by name ("node/incarnation")
	Owners map[string]OwnerLoad // claims and seats by name of the session
}

// Usage is how much of a key's cap is taken.
type Usage struct{ Taken, Cap int }

// OwnerLoad is what a session holds.
type OwnerLoad struct{ Claims, Seats int }

// Session is a live session for people.
type Session struct {
	Node    string
	Role    coord.Role
	Age     time.Duration // since its last beat
	Workers int
	Paused  string // why it takes no work, such as a full disk; empty: it does
}

// Wait is why something does not go on now. Without a reason it goes on.
type Wait struct {
	Reason string
	Until  time.Time // zero: not known
}

// String is the reason with its end, in local time with its zone.
func (w Wait) String() string {
	if w.Reason == "" || w.Until.IsZero() {
		return w.Reason
	}
	layout := "15:04:05 MST"
	if d := time.Until(w.Until); d > 20*time.Hour || d < -20*time.Hour {
		layout = "2006-01-02 15:04:05 MST"
	}
	return w.Reason + " until " + w.Until.Local().Format(layout)
}

// WaitOf says why an unfinished run does not go on, the first thing that keeps it first: nobody is helped by hearing of a gate
// while the tariff does not let the run start.
func (s *Scene) WaitOf(w storage.Waiting) Wait {
	r := w.Run
	switch {
	case r.State.Terminal():
		return Wait{Reason: r.Reason}
	case r.State == storage.RunPaused:
		return Wait{cmp.Or(r.Reason, "paused"), r.Until}
	case w.Suspended:
		return Wait{Reason: "tenant " + r.Tenant + " is suspended"}
	case w.Occupied > 0:
		if h := s.hostWait(r); h.Reason != "" {
			return h
		}
		return Wait{Reason: s.allPaused()}
	case r.Home != "" && !s.running(r.Home):
		return Wait{Reason: cmp.Or(r.Reason, homeWords(r))}
	}
	if p := w.Tariff.Parallel; r.State == storage.RunQueued && p > 0 && w.Active+w.Ahead >= p {
		if w.Active >= p {
			return Wait{Reason: fmt.Sprintf("tariff: %d of %d runs active", w.Active, p)}
		}
		return Wait{Reason: fmt.Sprintf("tariff: %s of the tenant before it, %d of %d active", some(int64(w.Ahead), "run"), w.Active, p)}
	}
	if h := s.hostWait(r); h.Reason != "" {
		return h
	}
	if why := s.noWorker(r); why != "" {
		return Wait{Reason: why}
	}
	if r.Reason != "" {
		return Wait{r.Reason, r.Until}
	}
	if r.State == storage.RunQueued {
		return Wait{Reason: "next: a free worker takes it within seconds"}
	}
	return Wait{}
}

func homeWords(r storage.Run) string {
	if r.Home == "crawl" {
		return fmt.Sprintf("reserved: goes on with deepcrawl crawl --resume %d", r.ID)
	}
	return "reserved for node " + r.Home + ", which is not running"
}

func (s *Scene) running(home string) bool {
	for _, l := range s.Live {
		if l.Role == coord.RoleNode && l.Node == home {
			return true
		}
	}
	return false
}

// hostWait is what keeps requests from the host the run is about.
func (s *Scene) hostWait(r storage.Run) Wait {
	if why, ok := s.Bans[r.Site]; ok {
		return Wait{Reason: banWords(r.Site, why)}
	}
	if s.Halted != "" && r.State != storage.RunQueued {
		return Wait{Reason: "coordination: " + s.Halted}
	}
	if g, ok := s.Gates[r.Site]; ok && r.State != storage.RunFinishing {
		return Wait{gateWords(r.Site, g.Reason), g.Until}
	}
	return Wait{}
}

func banWords(host, why string) string {
	if why == "" {
		return host + " is banned"
	}
	return host + " is banned: " + why
}

// gateWords puts a gate into words: what was answered where the host asked for it, what went wrong where it is left alone.
func gateWords(host, reason string) string {
	if class, ok := strings.CutPrefix(reason, leftAlone); ok {
		return "cooldown: " + host + " is left alone, " + class
	}
	if answer, ok := strings.CutSuffix(reason, askedToWait); ok {
		return "gate: " + host + askedToWait[len(" and"):] + " (" + answer + ")"
	}
	return "gate: " + host + ": " + reason
}

// Reasons of gates as the engine writes them.
const (
	leftAlone   = "left alone for a while: "
	askedToWait = " and asked to wait"
)

// allPaused says why nobody in the cluster begins anything; empty where somebody does.
func (s *Scene) allPaused() string {
	why := ""
	for _, l := range s.Live {
		if l.Role != coord.RoleNode && l.Role != coord.RoleCrawl {
			continue
		}
		if l.Paused == "" {
			return ""
		}
		why = l.Paused
	}
	return why
}

// noWorker says why no worker can serve a run now; empty where one can.
func (s *Scene) noWorker(r storage.Run) string {
	nodes, workers, busy := 0, 0, 0
	paused := map[string]bool{}
	for name, l := range s.Live {
		if l.Role != coord.RoleNode || r.Home != "" && l.Node != r.Home {
			continue
		}
		nodes++
		if l.Paused != "" {
			paused[l.Node+": "+l.Paused] = true
			continue
		}
		workers += l.Workers
		busy += min(s.Owners[name].Seats, l.Workers) // the seat of a turn that has ended may still be held
	}
	switch {
	case nodes == 0:
		return "no free worker: no node is running"
	case len(paused) == nodes:
		return "no free worker: " + strings.Join(slices.Sorted(maps.Keys(paused)), "; ")
	case busy >= workers:
		return fmt.Sprintf("no free worker: %d of %d are busy", busy, workers)
	}
	return ""
}

func some(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// Clue is one thing that decides whether a run or a URL goes on, in plain words.
type Clue struct {
	Topic string `json:"topic"`
	Text  string `json:"text"`
	// Holds says that this is what keeps it.
	Holds bool `json:"holds"`
}

// RunFacts are what WhyRun looks at.
type RunFacts struct {
	storage.Waiting
	Ledger storage.Ledger
	Ready  storage.RunReady
	Stored int64 // pages of the tenant
}

// WhyRun traces a run through everything that decides whether it goes on, in the order in which it is decided.
func (s *Scene) WhyRun(f RunFacts) []Clue {
	r := f.Run
	wait := s.WaitOf(f.Waiting)
	clues := []Clue{{"run", fmt.Sprintf("run %d of %s is %s", r.ID, r.Site, r.State), false}}
	add := func(topic string, holds bool, format string, args ...any) {
		clues = append(clues, Clue{topic, fmt.Sprintf(format, args...), holds})
	}
	if wait.Reason != "" {
		add("waits", true, "%s", wait)
	} else if r.State.Active() {
		add("waits", false, "for nothing: it goes on")
	}
	if r.State.Terminal() {
		return clues
	}
	if f.Suspended {
		add("tenant", true, "%s is suspended; deepcrawl tenant resume %s lets it go on", r.Tenant, r.Tenant)
	} else {
		add("tenant", false, "%s is served", r.Tenant)
	}
	full := r.State == storage.RunQueued && f.Tariff.Parallel > 0 && f.Active+f.Ahead >= f.Tariff.Parallel
	add("tariff", full, "%s", tariffWords(f))
	if r.Home != "" {
		add("home", !s.running(r.Home) && f.Occupied == 0, "reserved for %s", r.Home)
	}
	if f.Allowed > 0 {
		add("seats", false, "%d of %d taken by workers", f.Occupied, f.Allowed)
	} else {
		add("seats", false, "%d taken by workers, no limit but %s", f.Occupied, "DEEPCRAWL_RUN_WORKERS")
	}
	if why := s.noWorker(r); why != "" && f.Occupied == 0 {
		add("workers", true, "%s", why)
	}
	if s.Halted != "" {
		add("coordination", true, "%s", s.Halted)
	}
	s.hostClues(add, f)
	if spec, err := DecodeSpec(r.Spec); err == nil {
		profile, err := ParseProfile(spec.Profile)
		switch {
		case err != nil:
		case profile.PerSecond > 0:
			add("rate", false, "profile %s: %g a second and %d at a time, over all nodes", profile.Name, profile.PerSecond, profile.Concurrency)
		case profile.Concurrency > 0:
			add("rate", false, "profile %s: %d at a time over all nodes, no limit a second", profile.Name, profile.Concurrency)
		default:
			add("rate", false, "profile %s: as many at a time as the host cap allows", profile.Name)
		}
	}
	if u, ok := s.Slots[coord.RunKey(int64(r.ID))]; ok {
		add("slots", false, "the run has %d of %d", u.Taken, u.Cap)
	}
	l := f.Ledger
	add("frontier", false, "%d queued, %d claimed, %d delayed of %d discovered", l.Queued, l.Claimed, l.Delayed, l.Discovered)
	if f.Ready.NextDue > 0 && len(f.Ready.Hosts) == 0 && l.Claimed == 0 {
		add("delayed", true, "URLs that met trouble are tried again at %s", s.Now.Add(f.Ready.NextDue).Local().Format("15:04:05 MST"))
	}
	return clues
}

// hostClues are gates, bans and slots of the hosts that have something to request.
func (s *Scene) hostClues(add func(topic string, holds bool, format string, args ...any), f RunFacts) {
	hosts := slices.Clone(f.Ready.Hosts)
	if !slices.Contains(hosts, f.Run.Site) {
		hosts = append(hosts, f.Run.Site)
	}
	slices.Sort(hosts)
	for _, host := range hosts {
		if why, ok := s.Bans[host]; ok {
			add("ban", true, "%s; deepcrawl host unban %s lifts it", banWords(host, why), host)
		}
		if g, ok := s.Gates[host]; ok {
			add("gate", true, "%s; deepcrawl host clear %s lifts it", Wait{gateWords(host, g.Reason), g.Until}, host)
		}
		if u, ok := s.Slots[coord.HostKey(host)]; ok {
			add("slots", u.Taken >= u.Cap, "%s has %d of %d, over all runs and nodes", host, u.Taken, u.Cap)
		}
	}
}

func tariffWords(f RunFacts) string {
	t := f.Tariff
	var parts []string
	if t.Parallel > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d runs active", f.Active, t.Parallel))
	} else {
		parts = append(parts, some(int64(f.Active), "run")+" active, no limit")
	}
	if f.Ahead > 0 {
		parts = append(parts, some(int64(f.Ahead), "run")+" before this one")
	}
	if t.RunPages > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d pages of the run", f.Ledger.Fetched+f.Ledger.Failed, t.RunPages))
	}
	if t.StoredPages > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d pages stored", f.Stored, t.StoredPages))
	}
	return t.Name + ": " + strings.Join(parts, ", ")
}

// WhyURL says where a URL is and what it waits for.
func (s *Scene) WhyURL(u storage.URLWait, w storage.Waiting) []Clue {
	var clues []Clue
	add := func(topic string, holds bool, format string, args ...any) {
		clues = append(clues, Clue{topic, fmt.Sprintf(format, args...), holds})
	}
	switch u.State {
	case storage.Queued:
		add("url", false, "queued: %s of %s before it, priority %d", some(u.Ahead, "URL"), u.Host, u.Priority)
	case storage.Delayed:
		add("url", true, "delayed after %s (%s): tried again %s", some(int64(u.Attempts), "attempt"), ReasonWords(u.Reason), untilWords(u.Due))
	case storage.Claimed:
		s.claimClue(add, u)
	case storage.Fetched:
		add("url", false, "fetched at %s: status %d%s", u.FetchedAt.Local().Format("2006-01-02 15:04:05 MST"), u.Status, reasonIn(u.Reason))
	case storage.Failed:
		add("url", false, "failed after %s: %s", some(int64(u.Attempts), "attempt"), ReasonWords(u.Reason))
	case storage.Excluded:
		add("url", false, "excluded: %s", ReasonWords(u.Reason))
	}
	if u.State.Terminal() {
		return clues
	}
	if why, ok := s.Bans[u.Host]; ok {
		add("ban", true, "%s", banWords(u.Host, why))
	}
	if g, ok := s.Gates[u.Host]; ok {
		add("gate", true, "%s", Wait{gateWords(u.Host, g.Reason), g.Until})
	}
	if t, ok := s.Slots[coord.HostKey(u.Host)]; ok {
		add("slots", t.Taken >= t.Cap, "%s has %d of %d, over all runs and nodes", u.Host, t.Taken, t.Cap)
	}
	if wait := s.WaitOf(w); wait.Reason != "" && u.Host != w.Run.Site || !w.Run.State.Active() && wait.Reason != "" {
		add("run", true, "%s", wait)
	}
	return clues
}

func (s *Scene) claimClue(add func(string, bool, string, ...any), u storage.URLWait) {
	l, ok := s.Live[string(u.Owner)]
	if !ok {
		add("url", true, "claimed by session %s, which is over: it returns to the queue within seconds of the leader's next look", u.Owner)
		return
	}
	add("url", false, "claimed by session %s (last heard of %s ago): requested, or about to be", u.Owner, l.Age.Round(100*time.Millisecond))
}

func untilWords(t time.Time) string {
	if t.IsZero() {
		return "soon"
	}
	return "at " + t.Local().Format("15:04:05 MST")
}

func reasonIn(r storage.Reason) string {
	if r == "" {
		return ""
	}
	return ", " + ReasonWords(r)
}

// ReasonWords puts a reason code into words; codes without words are returned as they are.
func ReasonWords(r storage.Reason) string {
	switch r {
	case ReasonRobots:
		return "robots.txt disallows it"
	case ReasonUnreachable:
		return "robots.txt could not be had, so nothing may be requested"
	case ReasonScope:
		return "outside the scope of the run"
	case ReasonDepth:
		return "more link hops from the start than the run allows"
	case ReasonLimit:
		return "the run's page or time limit was reached first"
	case ReasonTrap:
		return "an endless space of URLs (a crawler trap)"
	case ReasonTooLong:
		return fmt.Sprintf("longer than %d bytes", storage.MaxURL)
	case ReasonChain:
		return "too many redirects in a row"
	case ReasonHTTP:
		return "an error status that stayed"
	case ReasonRateLimited:
		return "its host asked to wait"
	case ReasonBanned:
		return "an operator banned its host"
	case ReasonPanic:
		return "an error in deepcrawl itself"
	case ReasonTruncated:
		return "its body ended early"
	case ReasonHostDown:
		return "its host gave no answer for so long that it was given up"
	}
	return string(r)
}

// Place is a URL in the terms of a run.
type Place struct {
	Key     storage.Key
	URL     string // canonical
	Host    string // unit of politeness
	Outside string // why it does not belong to the run; empty: it does
}

// Find gives a URL as a run of this Spec knows it. Errors say what is wrong with the URL.
func (s Spec) Find(raw string) (Place, error) {
	r, err := s.compile()
	if err != nil {
		return Place{}, err
	}
	u, err := r.canon.Parse(strings.TrimSpace(raw))
	if err != nil {
		return Place{}, err
	}
	v := r.scope.Check(u.Host, u.Raw, u.PathAt)
	p := Place{Key: storage.Key(u.Key), URL: string(u.Raw), Host: u.Host}
	if !v.In {
		p.Outside = cmp.Or(v.Rule, "outside the scope")
	}
	return p, nil
}
