package rediscoord

import (
	"strconv"

	"deepcrawl/coord"
)

// Keys. All begin with the root, the operator's prefix and "c:". Slots, wants and rates of an epoch are in a space of their own, so
// that one seed never meets another's rows; a Redis that stands alone keeps its in one.
//
//	ROOT guard                      hash: epoch and stamp of the last seed
//	ROOT authority, ROOT sessions, ROOT session:MEMBER, ROOT lease:NAME, ROOT gate, ROOT changed, ROOT closed     alone only
//	SPACE s:KEY, SPACE m:MEMBER, SPACE members     slots by key, by member, and who has any
//	SPACE w:KEY, SPACE q:MEMBER                    wants
//	SPACE r:KEY                                    rates
//
// The words after root and space are in lua/lib.lua.
func root(prefix string) string { return prefix + "c:" }

func aloneSpace(prefix string) string { return root(prefix) + "db:" }

func epochSpace(prefix string, e coord.Epoch) string {
	return root(prefix) + "e" + strconv.FormatUint(uint64(e), 10) + ":"
}
