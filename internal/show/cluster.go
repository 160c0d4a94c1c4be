package show

import (
	"deepcrawl/coord"
	"deepcrawl/crawl"
	"deepcrawl/storage"
)

// Cluster is the cluster at one moment.
type Cluster struct {
	At           *string      `json:"at"`
	Coordination Coordination `json:"coordination"`
	Leader       string       `json:"leader"` // session; empty: none
	LeaderSince  *string      `json:"leader_since"`
	Nodes        []Session    `json:"nodes"`
	Sessions     []Session    `json:"sessions,omitempty"`
	Active       []ClusterRun `json:"active"`
	Waiting      []ClusterRun `json:"waiting"`
	Hosts        []HostSlots  `json:"hosts"`
	Gates        []Host       `json:"gates"`
	Fairness     Fairness     `json:"fairness"`
	Warnings     []Warning    `json:"warnings"`
}

// Coordination is where slots, gates and rates are kept now.
type Coordination struct {
	Mode   coord.Mode  `json:"mode"`
	Epoch  coord.Epoch `json:"epoch"`
	Target coord.Mode  `json:"target,omitempty"` // while draining: where to
	Since  *string     `json:"since"`
	Reason string      `json:"reason"`
	Pinned bool        `json:"pinned"` // an operator keeps it in the database
	// Away says which nodes that are to use Redis do not reach it, and who coordinates meanwhile; empty: all do.
	Away      string  `json:"redis_away"`
	AwaySince *string `json:"redis_away_since"`
}

// Session is one process in the cluster.
type Session struct {
	Session    string      `json:"session"`
	Node       string      `json:"node"`
	Role       coord.Role  `json:"role"`
	State      coord.State `json:"state"`
	AgeSeconds float64     `json:"age_seconds"` // since its last beat
	Version    string      `json:"version"`
	Host       string      `json:"host"`
	PID        int         `json:"pid"`
	Workers    int         `json:"workers"`
	InFlight   int         `json:"in_flight"`
	Seats      int         `json:"seats"`
	Claims     int         `json:"claims"`
	Slots      int         `json:"slots"`
	Paused     string      `json:"paused"`
	Late       int         `json:"late_refused"`
}

// ClusterRun is an unfinished run with what it holds and waits for.
type ClusterRun struct {
	Run     storage.RunID    `json:"run"`
	State   storage.RunState `json:"state"`
	Tenant  string           `json:"tenant"`
	Site    string           `json:"site"`
	Seats   int              `json:"seats"`
	Allowed int              `json:"allowed"` // 0: no limit of tariff and profile
	Slots   int              `json:"slots"`
	Reason  string           `json:"reason"`
	Until   *string          `json:"until"`

	Wait crawl.Wait `json:"-"` // Reason and Until in one, for people
}

// HostSlots are the slots in use of one host.
type HostSlots struct {
	Host  string `json:"host"`
	Slots int    `json:"slots"`
	Cap   int    `json:"cap"`
}

// Host is a host that is banned, or has a closed gate: Until and Pause are the gate's.
type Host struct {
	Host   string  `json:"host"`
	Banned bool    `json:"banned"`
	Reason string  `json:"reason"` // of the ban
	Since  *string `json:"since"`
	Pause  string  `json:"pause"`
	Until  *string `json:"until"`
}

// Fairness is how evenly runs were served.
type Fairness struct {
	Dwell   Dwell   `json:"dwell"`
	Jain    float64 `json:"jain"` // of the last minute's runs that had work all along; 0: nothing to compare
	Runs    int     `json:"runs"`
	Starved string  `json:"starved"`
	// LongestGap is how long the active run that waits longest for a worker has been waiting.
	LongestGap float64 `json:"longest_gap_seconds"`
	GapRun     int64   `json:"longest_gap_run"`
}

// Dwell is how long runs waited for a worker in the last minute, of the node where it was worst.
type Dwell struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50_seconds"`
	P95 float64 `json:"p95_seconds"`
	Max float64 `json:"max_seconds"`
}

// Warning is something that is not as it should be; docs/operations.md explains each code.
type Warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// CheckLine is the outcome of one check of cluster check.
type CheckLine struct {
	Check  string `json:"check"`
	State  string `json:"state"` // ok, failed, skipped or note
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"` // what to do, where it failed
}
