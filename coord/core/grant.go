package core

import (
	"cmp"
	"slices"
	"time"

	"deepcrawl/coord"
)

// Want is a recorded wish for a key that was full.
type Want struct {
	Key    coord.Key
	Member coord.Member
	Cap    int
	Since  coord.Micros // first refusal
	Seen   coord.Micros // last refusal
}

const (
	// WantAfter is how long a session must have waited before others give back surplus.
	WantAfter = 2 * time.Second
	// WantFresh is how long a want counts after its last refusal; sessions ask again at least every MaxRetry.
	WantFresh = 10 * time.Second
)

// Fresh reports whether the want still counts.
func (w Want) Fresh(now coord.Micros) bool { return now-w.Seen < micros(WantFresh) }

// micros is d on an authority's clock.
func micros(d time.Duration) coord.Micros { return coord.Micros(d / time.Microsecond) }

// CapOf is the cap of a key: the smallest of what is declared by the ask (0: none), the recorded slots and the fresh wants.
func CapOf(key coord.Key, declared int, slots []coord.Slot, wants []Want, now coord.Micros) int {
	least := declared
	lower := func(v int) {
		if v > 0 && (least == 0 || v < least) {
			least = v
		}
	}
	for i := range slots {
		if slots[i].Key == key {
			lower(slots[i].Cap)
		}
	}
	for i := range wants {
		if wants[i].Key == key && wants[i].Fresh(now) {
			lower(wants[i].Cap)
		}
	}
	return least
}

// PickFree is the smallest number from 1 that is not taken, if fewer than limit are.
func PickFree(taken []int, limit int) (int, bool) {
	if len(taken) >= limit {
		return 0, false
	}
	for n := 1; ; n++ {
		if !slices.Contains(taken, n) {
			return n, true
		}
	}
}

// Granting is what a Grant writes.
type Granting struct {
	Reply   coord.Granted
	Insert  []coord.Slot // sorted by key and number
	Wanted  []Want       // to insert, or to update Seen and Cap of
	Settled []coord.Key  // keys granted: the session's wants of them are over
}

// DecideGrant decides an ask whose view has been checked. slots and wants are all recorded ones of the ask's keys, at a
// moment at which nobody else can insert, or such that an insert of a taken (key, n) fails.
func DecideGrant(off Off, epoch coord.Epoch, now coord.Micros, a coord.Ask, slots []coord.Slot, wants []Want) Granting {
	g := Granting{Reply: coord.Granted{Epoch: epoch, Groups: make([]coord.GroupGrant, len(a.Groups)), Caps: map[coord.Key]int{}}}
	all := slices.Clone(slots)
	for i, group := range a.Groups {
		numbers := make([]int, len(group))
		var add []coord.Slot
		var full []coord.AskKey
		for j, k := range group {
			limit := CapOf(k.Key, k.Cap, all, wants, now)
			g.Reply.Caps[k.Key] = limit
			var taken []int
			for _, s := range all {
				if s.Key != k.Key {
					continue
				}
				if s.Member == a.Member && s.Token == k.Token {
					numbers[j] = s.N
				}
				taken = append(taken, s.N)
			}
			for _, s := range add {
				if s.Key == k.Key {
					taken = append(taken, s.N)
				}
			}
			if numbers[j] > 0 {
				continue
			}
			n, ok := PickFree(taken, limit)
			if !ok && !off.on(R4Cap) {
				n, ok = PickFree(slices.DeleteFunc(taken, func(n int) bool { return n > limit }), limit)
			}
			if !ok {
				full = append(full, k)
				continue
			}
			numbers[j] = n
			add = append(add, coord.Slot{Key: k.Key, N: n, Member: a.Member, Token: k.Token, Epoch: epoch, Cap: k.Cap})
		}
		if len(full) > 0 {
			for _, k := range full {
				g.want(Want{Key: k.Key, Member: a.Member, Cap: k.Cap, Since: now, Seen: now})
			}
			g.Reply.Groups[i].Full = full[0].Key
			g.Reply.Groups[i].Waiting = waiting(full[0].Key, a.Member, wants, now)
			if !off.on(R4Together) {
				g.Insert = append(g.Insert, add...)
				all = append(all, add...)
			}
			continue
		}
		g.Reply.Groups[i].N = numbers
		g.Insert = append(g.Insert, add...)
		all = append(all, add...)
		for _, k := range group {
			if !slices.Contains(g.Settled, k.Key) {
				g.Settled = append(g.Settled, k.Key)
			}
		}
	}
	// A key that was granted and then full is still wanted, but by a session that is being served: its wait begins anew.
	slices.SortFunc(g.Insert, SlotOrder)
	return g
}

// waiting is how many sessions wait for a key, me included.
func waiting(key coord.Key, me coord.Member, wants []Want, now coord.Micros) int {
	n := 1
	for i := range wants {
		if w := &wants[i]; w.Key == key && w.Member != me && w.Fresh(now) {
			n++
		}
	}
	return n
}

func (g *Granting) want(w Want) {
	for _, have := range g.Wanted {
		if have.Key == w.Key {
			return
		}
	}
	g.Wanted = append(g.Wanted, w)
}

// SlotOrder orders by key, then number: the order in which rows are inserted, so that two asks never wait for each other.
func SlotOrder(a, b coord.Slot) int {
	if c := cmp.Compare(a.Key, b.Key); c != 0 {
		return c
	}
	return cmp.Compare(a.N, b.N)
}

// Reconciling is what a Reconcile writes.
type Reconciling struct {
	Reply  coord.Reconciled
	Delete []coord.Slot
}

// DecideReconcile decides which of the session's slots nobody knows. own are all its recorded slots; slots and wants at least
// all of the keys of own that others want.
func DecideReconcile(off Off, epoch coord.Epoch, now coord.Micros, r coord.Reconcile, own, slots []coord.Slot, wants []Want) Reconciling {
	out := Reconciling{Reply: coord.Reconciled{Epoch: epoch, Caps: map[coord.Key]int{}}}
	var keep []coord.Slot
	recorded := make(map[coord.Token]struct{}, len(own))
	for _, s := range own {
		recorded[s.Token] = struct{}{}
		if !slices.Contains(r.Tokens, s.Token) && (s.Token <= r.Upto || !off.on(R5Upto)) {
			out.Delete = append(out.Delete, s)
			continue
		}
		keep = append(keep, s)
	}
	for _, t := range r.Tokens {
		if _, ok := recorded[t]; !ok {
			out.Reply.Missing = append(out.Reply.Missing, t)
		}
	}
	out.Reply.Freed = len(out.Delete)
	for _, s := range keep {
		if _, done := out.Reply.Caps[s.Key]; done {
			continue
		}
		limit := CapOf(s.Key, s.Cap, slots, wants, now)
		out.Reply.Caps[s.Key] = limit
		if share, waited := Share(s.Key, r.Member, limit, slots, wants, now); waited {
			out.Reply.Pressure = append(out.Reply.Pressure, coord.Pressure{Key: s.Key, Share: share, Cap: limit})
		}
	}
	return out
}

// Share is the equal share of a key among the sessions that have or want it, rounded down, and whether another than me has
// waited for WantAfter.
func Share(key coord.Key, me coord.Member, limit int, slots []coord.Slot, wants []Want, now coord.Micros) (share int, waited bool) {
	parties := map[coord.Member]struct{}{me: {}}
	for _, w := range wants {
		if w.Key != key || !w.Fresh(now) {
			continue
		}
		parties[w.Member] = struct{}{}
		if w.Member != me && now-w.Since >= micros(WantAfter) {
			waited = true
		}
	}
	for _, s := range slots {
		if s.Key == key {
			parties[s.Member] = struct{}{}
		}
	}
	return limit / len(parties), waited
}
