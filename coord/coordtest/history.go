package coordtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"deepcrawl/coord"
)

// testHistories records what concurrent clients asked and were told, unknown outcomes included, and has porcupine look for an
// order in which a semaphore and a lease would have answered so. An undecided history is a failure.
func testHistories(t *testing.T, authority Authority) {
	t.Run("slots are a semaphore", func(t *testing.T) { testSemaphore(t, authority) })
	t.Run("a lease is a register with growing fences", func(t *testing.T) { testRegister(t, authority) })
}

// checkTime bounds porcupine's search.
const checkTime = 30 * time.Second

// outcome of a call.
type outcome int

const (
	outcomeYes outcome = iota
	outcomeNo
	outcomeUnknown
	outcomeNone // it certainly had no effect, whatever it was
)

func outcomeOf(yes bool, err error) outcome {
	switch {
	case errors.Is(err, coord.ErrUnavailable):
		return outcomeNone
	case errors.Is(err, coord.ErrUnknown):
		return outcomeUnknown
	case err == nil && yes:
		return outcomeYes
	}
	return outcomeNo
}

// history records calls of several clients.
type history struct {
	mu    sync.Mutex
	begin time.Time
	ops   []porcupine.Operation
}

func (h *history) now() int64 { return time.Since(h.begin).Nanoseconds() }

func (h *history) add(client int, input, output any, call int64, o outcome) {
	if o == outcomeNone {
		return
	}
	ret := h.now()
	if o == outcomeUnknown {
		ret = math.MaxInt64 / 2 // it may take effect at any time after its call
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: input, Output: output, Call: call, Return: ret})
}

func (h *history) check(t *testing.T, m porcupine.Model) {
	t.Helper()
	unknown := 0
	for i := range h.ops {
		// Clients that go on after an unknown outcome are others to porcupine, which lets a client do one thing at a time.
		if h.ops[i].Return == math.MaxInt64/2 {
			unknown++
			h.ops[i].ClientId = 1000 + i
		}
	}
	switch r := porcupine.CheckOperationsTimeout(m, h.ops, checkTime); r {
	case porcupine.Ok:
		t.Logf("%d calls, %d of them with unknown outcome, are in order", len(h.ops), unknown)
	default:
		t.Errorf("%d calls, %d with unknown outcome: %s", len(h.ops), unknown, r)
	}
}

// historyFaults leave few unknown outcomes, since each doubles the search.
func historyFaults() Faults {
	return Faults{Before: 0.03, After: 0.03, Hang: 0.01, Late: 300 * time.Millisecond}
}

type semIn struct {
	acquire bool
	id      string // member and token
}

// semaphore is the model of one key: its state is the sorted holders, separated by spaces.
func semaphore(limit int) porcupine.Model {
	parse := func(state any) []string { return strings.Fields(state.(string)) }
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{""} },
		Step: func(state, input, output any) []any {
			holders, in, out := parse(state), input.(semIn), output.(outcome)
			i, has := slices.BinarySearch(holders, in.id)
			with := func() []any {
				if has {
					return []any{state}
				}
				if len(holders) >= limit {
					return nil
				}
				return []any{strings.Join(slices.Insert(slices.Clone(holders), i, in.id), " ")}
			}
			without := func() []any {
				if !has {
					return []any{state}
				}
				return []any{strings.Join(slices.Delete(slices.Clone(holders), i, i+1), " ")}
			}
			switch {
			case in.acquire && out == outcomeYes:
				return with()
			case in.acquire && out == outcomeNo:
				if len(holders) < limit {
					return nil
				}
				return []any{state}
			case in.acquire:
				return append(with(), state)
			case out == outcomeYes:
				return without()
			}
			return append(without(), state)
		},
		Equal: func(a, b any) bool { return a == b },
	}).ToModel()
}

func testSemaphore(t *testing.T, authority Authority) {
	const limit, clients, turns = 2, 4, 25
	open := authority(t)
	h := &history{begin: time.Now()}
	var wg sync.WaitGroup
	for i := range clients {
		m := register(t, open(t), coord.NodeID(fmt.Sprintf("n%d", i)))
		c := Faulty(m.c, uint64(i+1), historyFaults())
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		wg.Go(func() {
			for range turns {
				k := m.key("host:x", limit)
				in := semIn{acquire: true, id: fmt.Sprintf("%s:%d", m.id, k.Token)}
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				call := h.now()
				r, err := c.Grant(ctx, coord.Ask{Member: m.id, View: m.v, Groups: [][]coord.AskKey{{k}}})
				o := outcomeOf(err == nil && r.Groups[0].N != nil, err)
				h.add(i, in, o, call, o)
				cancel()
				if o == outcomeNo || o == outcomeNone {
					time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond) // spread the clients
					continue
				}
				for { // until it is known to be back
					ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
					in.acquire = false
					call := h.now()
					err := c.Return(ctx, coord.Return{Member: m.id, View: m.v, Tokens: []coord.Token{k.Token}})
					b := outcomeOf(true, err)
					h.add(i, in, b, call, b)
					cancel()
					if b == outcomeYes {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	h.check(t, semaphore(limit))
}

type regIn struct {
	hold   bool
	member coord.Member
	token  coord.Token
}

type regOut struct {
	o     outcome
	lost  bool
	fence coord.Fence
}

// regState is the lease: the fence is that of the last acquisition that told it; unknown ones are greater.
type regState struct {
	member coord.Member
	token  coord.Token
	free   bool
	fence  coord.Fence
	told   bool
}

func leaseModel() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{regState{free: true}} },
		Step: func(state, input, output any) []any {
			s, in, out := state.(regState), input.(regIn), output.(regOut)
			mine := s.member == in.member
			if !in.hold {
				after := s
				if mine && s.token == in.token {
					after.free = true
				}
				if out.o == outcomeUnknown {
					return []any{after, s}
				}
				return []any{after}
			}
			renew := mine && s.token == in.token && !s.free
			over := mine && (in.token < s.token || in.token == s.token && s.free)
			take := !renew && !over && (s.free || mine)
			switch {
			case out.o == outcomeUnknown:
				if take {
					return []any{regState{member: in.member, token: in.token, fence: s.fence}, s}
				}
				return []any{s}
			case out.o == outcomeNo && out.lost:
				if over {
					return []any{s}
				}
				return nil
			case out.o == outcomeNo:
				if !renew && !over && !take {
					return []any{s}
				}
				return nil
			case renew:
				if s.told && out.fence != s.fence || !s.told && !s.fence.Less(out.fence) {
					return nil
				}
				s.fence, s.told = out.fence, true
				return []any{s}
			case take && s.fence.Less(out.fence):
				return []any{regState{member: in.member, token: in.token, fence: out.fence, told: true}}
			}
			return nil
		},
		Equal: func(a, b any) bool { return a == b },
	}).ToModel()
}

func testRegister(t *testing.T, authority Authority) {
	const clients, turns = 3, 25
	open := authority(t)
	h := &history{begin: time.Now()}
	var wg sync.WaitGroup
	for i := range clients {
		m := register(t, open(t), coord.NodeID(fmt.Sprintf("n%d", i)))
		c := Faulty(m.c, uint64(i+50), historyFaults())
		rng := rand.New(rand.NewPCG(uint64(i), 2))
		token := coord.Token(1)
		wg.Go(func() {
			for range turns {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				in := regIn{hold: rng.Float64() < 0.7, member: m.id, token: token}
				call := h.now()
				var out regOut
				if in.hold {
					held, err := c.Hold(ctx, coord.Hold{Member: m.id, View: m.v, Name: "l", Token: token, TTL: time.Hour})
					out = regOut{o: outcomeOf(true, err), lost: errors.Is(err, coord.ErrLost), fence: held.Fence}
					if out.lost || out.o == outcomeUnknown && rng.IntN(2) == 0 {
						token++
					}
				} else {
					out.o = outcomeOf(true, c.Drop(ctx, coord.Hold{Member: m.id, Name: "l", Token: token}))
				}
				h.add(i, in, out, call, out.o)
				cancel()
				time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond) // spread the clients
			}
		})
	}
	wg.Wait()
	h.check(t, leaseModel())
}
