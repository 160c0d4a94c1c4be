package storage

import "time"

// State of a URL. The last three are terminal.
type State uint8

// URL states.
const (
	Queued State = iota + 1
	Claimed
	Delayed
	Fetched
	Failed
	Excluded
)

var stateNames = [...]string{"", "queued", "claimed", "delayed", "fetched", "failed", "excluded"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Terminal reports whether a URL in this state is finished.
func (s State) Terminal() bool { return s >= Fetched && s <= Excluded }

// ParseState is the inverse of String; ok is false for an unknown word.
func ParseState(word string) (s State, ok bool) {
	for i, n := range stateNames {
		if i > 0 && n == word {
			return State(i), true
		}
	}
	return 0, false
}

// Reason says why a URL failed, was excluded or is delayed; empty for a plain fetched one. The words are those of the
// reports; a store keeps any printable ASCII word up to 32 bytes.
type Reason string

// Limits of what a URL row can carry.
const (
	MaxURL      = 2048 // bytes; a longer canonical URL is discovered as Excluded "too-long" with its text cut here and the Key of the whole
	MinPriority = 1
	MaxPriority = 999
	MaxDepth    = 65535
)

// Discovery is one URL found: by a seed, a sitemap, a page. The first discovery of a Key in a run is stored, later ones
// change nothing.
type Discovery struct {
	Key      Key
	URL      string // canonical
	Host     string // unit of politeness, the HOST of a claim; up to 255 bytes
	Priority int    // MinPriority..MaxPriority, lower first
	Depth    int    // link hops from a seed; breaks ties of Priority
	Via      URLID  // page it was found on, 0 for seeds and sitemaps
	LastMod  int64  // sitemap's lastmod, unix microseconds, 0 none
	// Exclude, when not empty, stores the URL as Excluded with this reason instead of queueing it.
	Exclude Reason
}

// ClaimRequest asks for the next URLs of one host of one run.
type ClaimRequest struct {
	Run  RunID
	Host string
	N    int // at most
	// MaxPages is the run's page limit, 0 none: URLs requested or claimed for their first attempt never exceed it. A claim
	// that is returned, or finished as Excluded, gives its place back.
	MaxPages int
}

// Claim is a URL to work on. It belongs to the Owner that claimed it until it is finished, returned, delayed or reclaimed.
type Claim struct {
	Run      RunID
	ID       URLID
	Token    ClaimToken
	URL      string
	Host     string
	Priority int
	Depth    int
	Via      URLID
	Attempts int  // attempts recorded so far; the one to be made is Attempts+1
	Boosted  bool // somebody looks at it: it goes before others
}

// Result is the end of a claim. Exactly one of Page and Delay is set.
type Result struct {
	Run   RunID
	ID    URLID
	Token ClaimToken
	// Page finishes the URL.
	Page *PageResult
	// Delay puts it back for later.
	Delay *Delay
	// Discovered are the URLs found on it, in the order found; duplicates are allowed.
	Discovered []Discovery
}

// Delay puts a claimed URL back, not to be claimed before For has passed.
type Delay struct {
	For      time.Duration
	Reason   Reason
	Attempts int // new value of Claim.Attempts
}

// PageResult is what is stored of a finished URL.
type PageResult struct {
	State       State // Fetched, Failed or Excluded
	Reason      Reason
	Status      int // HTTP status of the last attempt, 0 none
	ContentType string
	Bytes       int64 // decoded body
	WireBytes   int64 // as transferred
	TTFB        time.Duration
	Total       time.Duration
	Attempts    int
	Title       string // cut to 512 bytes at a rune boundary by the store
	RedirectTo  string
	Outlinks    int
	Facts       []byte // opaque
	Links       []byte // opaque; kept in a table of its own
}

// Outcome is what became of one Result.
type Outcome uint8

// Outcomes.
const (
	OutcomeDone  Outcome = iota + 1 // written by this call, or by an earlier call with the same token
	OutcomeStale                    // the row no longer carries the token: nothing of this Result was written
)
