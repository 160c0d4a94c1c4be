package storagetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"deepcrawl/storage"
)

// testContention lets many workers of several stores crawl one run, each page linking to others, until it is empty.
func testContention(t *testing.T, open Open) {
	const workers, total = 6, 300
	first := open(t)
	run := crawling(t, first)
	discover(t, first, run, finds(0, 3)...)
	var mu sync.Mutex
	requested := map[string]int{}
	var wg sync.WaitGroup
	var done atomic.Int64
	for w := range workers {
		s := first
		if w%2 == 1 {
			s = open(t)
		}
		owner := storage.Owner(fmt.Sprint("worker", w))
		wg.Go(func() {
			for deadline := time.Now().Add(time.Minute); done.Load() < total && time.Now().Before(deadline); {
				claims, err := s.Claim(t.Context(), owner, []storage.ClaimRequest{{Run: run, Host: host, N: 4}})
				if err != nil {
					t.Error(err)
					return
				}
				var results []storage.Result
				for _, c := range claims {
					mu.Lock()
					requested[c.URL]++
					mu.Unlock()
					var n int
					if _, err := fmt.Sscanf(c.URL, "https://"+host+"/p/%d", &n); err != nil {
						t.Error(err)
					}
					// Links to the same pages from many sides, in differing order.
					var found []storage.Discovery
					for _, to := range []int{n*2 + 1, n*2 + 2, n + 1, n + 3, (n * 7) % total} {
						if to < total {
							found = append(found, find(pageURL(to), 1+to%999, 1))
						}
					}
					rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
					results = append(results, fetched(c, found...))
				}
				out, err := s.Finish(t.Context(), owner, results)
				if err != nil {
					t.Error(err)
					return
				}
				for _, o := range out {
					if o != storage.OutcomeDone {
						t.Errorf("got outcome %v", o)
					}
				}
				done.Add(int64(len(results)))
			}
		})
	}
	wg.Wait()
	wantLedger(t, first, run, total, total, 0, 0, 0, 0, 0)
	for u, n := range requested {
		if n != 1 {
			t.Errorf("%s was claimed %d times", u, n)
		}
	}
	if ready := must(first.Ready(t.Context(), []storage.RunID{run}, 1))(t)[0]; !ready.Empty {
		t.Errorf("got %+v", ready)
	}
}

// claimOp is what a history says about one URL.
type claimOp struct {
	kind  string // "claim", "finish", "return", "delay" or "reclaim"
	token storage.ClaimToken
	owner storage.Owner
}

// urlState is what the model of one URL remembers; the zero state is queued.
type urlState struct {
	claimed storage.ClaimToken // 0: not claimed
	owner   storage.Owner
	last    storage.ClaimToken // delayed by this claim, and not claimed since
	done    storage.ClaimToken // finished by this claim
}

// claimModel says which histories of one URL are linearizable: it is claimed only while queued, a result counts only for the claim that holds.
var claimModel = porcupine.Model{
	Init: func() any { return urlState{} },
	Step: func(state, input, output any) (bool, any) {
		s, op, out := state.(urlState), input.(claimOp), output.(storage.Outcome)
		holds := s.claimed == op.token && op.token != 0
		switch op.kind {
		case "claim":
			return s.claimed == 0 && s.done == 0, urlState{claimed: op.token, owner: op.owner}
		case "finish":
			if out == storage.OutcomeStale {
				return !holds && s.done != op.token, s
			}
			if s.done == op.token {
				return true, s
			}
			return holds, urlState{done: op.token}
		case "delay":
			if out == storage.OutcomeStale {
				// What was delayed and is due may be told stale: its row has moved on.
				return !holds, s
			}
			if s.done == op.token || s.last == op.token {
				return true, s
			}
			return holds, urlState{last: op.token}
		case "return":
			if holds {
				return true, urlState{}
			}
			return true, s
		case "reclaim":
			if s.claimed != 0 && s.owner == op.owner {
				return true, urlState{}
			}
			return true, s
		}
		return false, s
	},
	Equal: func(a, b any) bool { return a.(urlState) == b.(urlState) },
	DescribeOperation: func(input, output any) string {
		op := input.(claimOp)
		return fmt.Sprintf("%s(%x by %s) = %v", op.kind, int64(op.token)&0xffff, op.owner, output)
	},
}

// history records operations by URL.
type history struct {
	mu    sync.Mutex
	start time.Time
	ops   map[storage.URLID][]porcupine.Operation
}

func (h *history) now() int64 { return int64(time.Since(h.start)) }

func (h *history) add(client int, call int64, id storage.URLID, op claimOp, out storage.Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops[id] = append(h.ops[id], porcupine.Operation{ClientId: client, Input: op, Call: call, Output: out, Return: h.now()})
}

// testHistories records what clients of two stores do to a few URLs at random, with results handed in by the wrong ones and owners reclaimed
// while they live, and checks the history of each URL.
func testHistories(t *testing.T, open Open) {
	const clients, steps, pages = 5, 40, 8
	stores := []storage.Store{open(t), open(t)}
	run := crawling(t, stores[0])
	discover(t, stores[0], run, finds(0, pages)...)
	h := &history{start: time.Now(), ops: map[storage.URLID][]porcupine.Operation{}}
	var mu sync.Mutex
	var issued []storage.Claim // every claim ever given out
	var ids []storage.URLID    // known from the start: a claim may be reclaimed before whoever made it has heard of it
	for _, row := range must(stores[0].ListPages(t.Context(), run, storage.PageQuery{Unfinished: true}))(t) {
		ids = append(ids, row.ID)
	}
	if len(ids) != pages {
		t.Fatalf("%d URLs, want %d", len(ids), pages)
	}
	owner := func(c int) storage.Owner { return storage.Owner(fmt.Sprint("client", c)) }
	var wg sync.WaitGroup
	for c := range clients {
		s := stores[c%2]
		rnd := rand.New(rand.NewPCG(uint64(c), 7))
		wg.Go(func() {
			for range steps {
				call := h.now()
				mu.Lock()
				known := slices.Clone(issued)
				mu.Unlock()
				if len(known) == 0 || rnd.IntN(3) == 0 {
					claims, err := s.Claim(t.Context(), owner(c), []storage.ClaimRequest{{Run: run, Host: host, N: 1 + rnd.IntN(3)}})
					if err != nil {
						t.Error(err)
						return
					}
					for _, cl := range claims {
						h.add(c, call, cl.ID, claimOp{"claim", cl.Token, owner(c)}, storage.OutcomeDone)
						mu.Lock()
						issued = append(issued, cl)
						mu.Unlock()
					}
					continue
				}
				cl := known[len(known)-1-rnd.IntN(min(len(known), 6))] // a recent one, whoever has it
				switch rnd.IntN(8) {
				case 0:
					if err := s.Return(t.Context(), owner(c), []storage.Claim{cl}); err != nil {
						t.Error(err)
						return
					}
					h.add(c, call, cl.ID, claimOp{"return", cl.Token, owner(c)}, storage.OutcomeDone)
				case 1:
					victim := owner(rnd.IntN(clients))
					if _, _, err := s.Reclaim(t.Context(), victim, 100); err != nil {
						t.Error(err)
					}
					for _, id := range ids {
						h.add(c, call, id, claimOp{"reclaim", 0, victim}, storage.OutcomeDone)
					}
				default:
					kind, r := "delay", delay(cl, 0, 0)
					if rnd.IntN(6) == 0 {
						kind, r = "finish", fetched(cl)
					}
					out, err := s.Finish(t.Context(), owner(c), []storage.Result{r})
					if err != nil {
						t.Error(err)
						return
					}
					h.add(c, call, cl.ID, claimOp{kind, cl.Token, owner(c)}, out[0])
				}
			}
		})
	}
	wg.Wait()
	for id, ops := range h.ops {
		if res := porcupine.CheckOperationsTimeout(claimModel, ops, 20*time.Second); res != porcupine.Ok {
			t.Errorf("URL %d: its history of %d operations is %v", id, len(ops), res)
			for _, op := range ops {
				t.Logf("%d..%d client %d: %s", op.Call, op.Return, op.ClientId, claimModel.DescribeOperation(op.Input, op.Output))
			}
		}
	}
}
