package core

import (
	"errors"
	"fmt"
	"slices"

	"deepcrawl/coord"
)

// tickSlots does what is due with tokens: cooled ones are free, the long idle go back.
func (s *Session) tickSlots(now Now) {
	if len(s.cooling) > 0 {
		s.cooling = slices.DeleteFunc(s.cooling, func(t *token) bool {
			if now.Mono < t.since {
				return false
			}
			s.idle(now, t)
			return true
		})
	}
	for key, k := range s.keys {
		for len(k.idle) > 0 && now.Mono-k.idle[0].since >= s.keep(k) {
			t := k.idle[0]
			k.idle = slices.Delete(k.idle, 0, 1)
			s.drop(t)
		}
		if k.retryAt > 0 && now.Mono >= k.retryAt {
			k.retryAt = 0
			s.woken = true
		}
		if k.have == 0 && k.retryAt == 0 && now.Mono >= k.pressed && !s.asking(key) {
			delete(s.keys, key)
		}
	}
	s.flushReturns()
}

// asking reports whether an unanswered ask has the key.
func (s *Session) asking(key coord.Key) bool {
	for _, q := range s.asked {
		for _, ck := range q.keys {
			if ck.Key == key {
				return true
			}
		}
	}
	return false
}

// flushReturns sends the tokens that go back. Whether the call arrives does not matter: reconcile frees what it left.
func (s *Session) flushReturns() {
	if len(s.returning) == 0 || s.over != nil {
		return
	}
	slices.Sort(s.returning)
	s.out[s.call(coord.Return{Member: s.id, View: s.view, Tokens: s.returning})] = returnOut{}
	s.returning = nil
}

type returnOut struct{}

// afterBeat reconciles (rule 5) and reaps.
func (s *Session) afterBeat(now Now) {
	if s.mayAsk(now) && s.view.Mode != coord.ModeDrain {
		every := s.cfg.Rare
		if s.dirty || len(s.held) > 0 {
			every = 1
		}
		if s.counter > 0 && s.reconID == 0 && s.goodBeats%every == 0 && s.cfg.Off.on(R5Reconcile) {
			s.sendReconcile()
		}
	}
}

func (s *Session) sendReconcile() {
	r := coord.Reconcile{Member: s.id, View: s.view, Upto: s.counter}
	s.reconFor = make(map[coord.Token]struct{}, len(s.held))
	for id := range s.held {
		r.Tokens = append(r.Tokens, id)
		s.reconFor[id] = struct{}{}
	}
	if s.cfg.Off.on(R5Asked) {
		for _, q := range s.asked {
			if q.done {
				continue
			}
			for _, g := range q.groups {
				for _, ak := range g.asked {
					r.Tokens = append(r.Tokens, ak.Token)
				}
			}
		}
	}
	slices.Sort(r.Tokens)
	s.reconID = s.call(r)
	s.out[s.reconID] = s.view
}

func (s *Session) reconcileAnswer(now Now, a Answer) {
	v := s.out[a.ID].(coord.View)
	delete(s.out, a.ID)
	if a.Err != nil {
		if errors.Is(a.Err, coord.ErrFenced) {
			s.fence(a.Err)
			return
		}
		if errors.Is(a.Err, coord.ErrStale) {
			s.beatSoon(now)
		}
		return
	}
	r := a.Reply.(coord.Reconciled)
	if s.cfg.Off.on(R6Drop) && (r.Epoch != s.view.Epoch || v.Epoch != s.view.Epoch || v.Mode != s.view.Mode) {
		return
	}
	if s.dirty && now.Mono >= s.dirtyTill {
		s.dirty = false
	}
	for _, id := range r.Missing {
		t := s.held[id]
		if _, known := s.reconFor[id]; !known || t == nil || t.void {
			continue
		}
		// It was confirmed and is gone: the authority lost rows.
		t.void = true
		if s.view.Mode == coord.ModeRedis {
			s.redis.changed = true
		} else {
			s.lose(s.view.Epoch)
		}
		s.beatSoon(now)
	}
	for key, limit := range r.Caps {
		if k := s.keys[key]; k != nil {
			k.cap = limit
			s.trim(now, k)
		}
	}
	for _, p := range r.Pressure {
		if k := s.keys[p.Key]; k != nil {
			k.share, k.pressed = p.Share, now.Mono+2*s.cfg.Timing.Beat
			s.trim(now, k)
		}
	}
	s.flushReturns()
}

// Describe lists the tokens for people: number, key, state.
func (s *Session) Describe() string {
	out := ""
	for _, t := range s.heldTokens() {
		out += fmt.Sprintf("%d %s %s since %v; ", t.id, t.key, [...]string{"idle", "out", "reserved", "cooling"}[t.state], t.since)
	}
	return out
}
