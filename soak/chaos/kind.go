// Package chaos harms a cluster in ways it must bear: processes, the servers it stands on, and the network between.
package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// Kind names a fault.
type Kind string

// The faults.
const (
	Kill           Kind = "kill"            // SIGKILL of a node
	Stop           Kind = "stop"            // SIGSTOP of a node past every lease, then SIGCONT
	Term           Kind = "term"            // SIGTERM of a node, which drains and is started again
	DBRestart      Kind = "db-restart"      // the database's server is restarted; a private one only
	DBPartition    Kind = "db-partition"    // a node cannot reach the database for a while
	RedisKill      Kind = "redis-kill"      // kill -9 of Redis, started again empty
	RedisFlush     Kind = "redis-flush"     // FLUSHALL
	RedisRestart   Kind = "redis-restart"   // stopped cleanly, started again empty
	RedisPartition Kind = "redis-partition" // some nodes cannot reach Redis for a while, in one direction or both
	RedisPromote   Kind = "redis-promote"   // a replica takes over
	Clock          Kind = "clock"           // a node's clock is off and drifts
)

// All is the word for a seeded random mix of all faults that the soak's databases allow.
const All = "all"

// Kinds lists the faults.
func Kinds() []Kind {
	return []Kind{Kill, Stop, Term, DBRestart, DBPartition, RedisKill, RedisFlush, RedisRestart, RedisPartition, RedisPromote, Clock}
}

// Parse reads a list with commas. The error names the word and what is allowed.
func Parse(list string) (kinds []Kind, all bool, err error) {
	for _, word := range strings.Split(list, ",") {
		word = strings.TrimSpace(word)
		switch {
		case word == "":
		case word == All:
			all = true
		case slices.Contains(Kinds(), Kind(word)):
			if !slices.Contains(kinds, Kind(word)) {
				kinds = append(kinds, Kind(word))
			}
		default:
			return nil, false, fmt.Errorf("%q is not allowed; allowed, with commas: %s, %s", word, Words(Kinds()), All)
		}
	}
	return kinds, all, nil
}

// Words lists kinds with commas, for people.
func Words(kinds []Kind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, ", ")
}
