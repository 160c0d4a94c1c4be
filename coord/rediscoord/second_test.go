package rediscoord_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"deepcrawl/coord"
	"deepcrawl/coord/core"
	"deepcrawl/coord/rediscoord"
	"deepcrawl/internal/testenv"
)

func second(t testing.TB, url string, o rediscoord.Options) *rediscoord.Second {
	t.Helper()
	s, err := rediscoord.OpenSecond(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// kind is the sentinel of an error.
func kind(err error) error {
	for _, s := range []error{coord.ErrStale, coord.ErrNoView, coord.ErrFenced, coord.ErrUnknown, coord.ErrUnavailable} {
		if errors.Is(err, s) {
			return s
		}
	}
	return err
}

// TestSecondIsTheModel runs random calls on the scripts and on the core's Redis, and compares every answer.
func TestSecondIsTheModel(t *testing.T) {
	url, prefix := testenv.Redis(t)
	check := 0
	rapid.Check(t, func(rt *rapid.T) {
		check++
		s := second(t, url, rediscoord.Options{Prefix: prefix + string(rune('a'+check%26)) + strings.Repeat("x", check/26) + ":"})
		p, err := s.Probe(t.Context())
		if err != nil || !p.Eligible || p.Ident.Stamp != 0 {
			t.Fatalf("probe: %+v, %v", p, err)
		}
		model := core.NewRedis(0, p.Ident.RunID, p.Ident.ReplID)
		members := []coord.Member{{Node: "a", Incarnation: 1}, {Node: "a", Incarnation: 1 << 51}, {Node: "b", Incarnation: 3}}
		keys := []coord.Key{"host:a", "host:ü b", "run:1"}
		tokens, asked := map[coord.Member]coord.Token{}, map[coord.Member]coord.Ask{}
		var epoch coord.Epoch
		var real, modelled coord.RedisIdent
		now := func() coord.Micros { return coord.Micros(time.Now().UnixMicro()) }
		views := func() (a, b coord.View) {
			a = coord.View{Epoch: epoch, Mode: coord.ModeRedis, Redis: real, RedisUntil: now() + 3600e6}
			b = a
			b.Redis = modelled
			switch rapid.IntRange(0, 19).Draw(rt, "view") {
			case 0:
				a.Epoch++
				b.Epoch++
			case 1:
				a.Redis.Stamp++
				b.Redis.Stamp++
			case 2:
				a.Redis.RunID, b.Redis.RunID = "other", "other"
			case 3:
				a.Redis.ReplID, b.Redis.ReplID = "other", "other"
			case 4:
				a.RedisUntil, b.RedisUntil = now(), now()
			}
			return a, b
		}
		same := func(what string, a, b any, ae, be error) {
			if !errors.Is(kind(ae), kind(be)) || ae == nil && !reflect.DeepEqual(a, b) {
				rt.Fatalf("%s: redis says %+v, %v, the model %+v, %v", what, a, ae, b, be)
			}
		}
		member := rapid.SampledFrom(members)
		rt.Repeat(map[string]func(*rapid.T){
			"seed": func(rt *rapid.T) {
				e := epoch + coord.Epoch(rapid.IntRange(0, 1).Draw(rt, "up"))
				var carried []coord.Slot
				for _, x := range model.Occupied() {
					if rapid.Bool().Draw(rt, "carry") {
						x.Epoch = e
						carried = append(carried, x)
					}
				}
				a, ae := s.Seed(t.Context(), e, carried)
				id, guard, be := model.Seed(now(), e, carried)
				same("seed", a.Guard, guard, ae, be)
				if ae == nil {
					epoch, real, modelled = e, a.Ident, id
				} else if a.Guard != guard {
					rt.Fatalf("guard %d, the model's %d", a.Guard, guard)
				}
			},
			"grant": func(rt *rapid.T) {
				m := member.Draw(rt, "member")
				q := coord.Ask{Member: m}
				for range rapid.IntRange(1, 3).Draw(rt, "groups") {
					var g []coord.AskKey
					for _, k := range keys {
						if rapid.Bool().Draw(rt, "key") {
							tokens[m]++
							g = append(g, coord.AskKey{Key: k, Cap: rapid.IntRange(1, 4).Draw(rt, "cap"), Token: tokens[m]})
						}
					}
					if len(g) > 0 {
						q.Groups = append(q.Groups, g)
					}
				}
				if old, ok := asked[m]; ok && rapid.IntRange(0, 3).Draw(rt, "again") == 0 {
					q = old
				}
				asked[m] = q
				x, y := q, q
				x.View, y.View = views()
				a, ae := s.Grant(t.Context(), x)
				b, be := model.Grant(now(), y)
				same("grant", a, b, ae, be)
			},
			"return": func(rt *rapid.T) {
				m := member.Draw(rt, "member")
				q := coord.Return{Member: m, Tokens: []coord.Token{coord.Token(rapid.IntRange(1, int(tokens[m])+1).Draw(rt, "token"))}}
				x, y := q, q
				x.View, y.View = views()
				if err := s.Return(t.Context(), x); err != nil {
					rt.Fatal(err)
				}
				model.Return(y)
			},
			"reconcile": func(rt *rapid.T) {
				m := member.Draw(rt, "member")
				q := coord.Reconcile{Member: m, Upto: coord.Token(rapid.IntRange(0, int(tokens[m])).Draw(rt, "upto"))}
				for tok := range tokens[m] {
					if rapid.Float64().Draw(rt, "name") < 0.8 {
						q.Tokens = append(q.Tokens, tok+1)
					}
				}
				x, y := q, q
				x.View, y.View = views()
				a, ae := s.Reconcile(t.Context(), x)
				b, be := model.Reconcile(now(), y)
				a.Pressure, b.Pressure = nil, nil // depends on seconds that passed
				same("reconcile", a, b, ae, be)
			},
			"reap": func(rt *rapid.T) {
				x, y := views()
				live, before := []coord.Member{member.Draw(rt, "live")}, coord.Incarnation(rapid.SampledFrom([]uint64{0, 2, 1 << 52}).Draw(rt, "before"))
				a, ae := s.Reap(t.Context(), x, live, before)
				b, be := model.Reap(now(), y, live, before)
				same("reap", a, b, ae, be)
			},
			"take": func(rt *rapid.T) {
				q := coord.Take{Member: member.Draw(rt, "member"), Key: rapid.SampledFrom(keys).Draw(rt, "key"), Limit: coord.RateLimit{PerSecond: 1e-3, Burst: 2}}
				if rapid.IntRange(0, 4).Draw(rt, "late") == 0 {
					q.ClockBound = now() - 5e6
				}
				x, y := q, q
				x.View, y.View = views()
				a, ae := s.Take(t.Context(), x)
				b, be := model.Take(now(), y)
				if ae == nil && be == nil && (a.Wait-b.Wait).Abs() < 10*time.Second {
					a.Wait = b.Wait
				}
				same("take", a, b, ae, be)
			},
			"": func(rt *rapid.T) {
				if epoch == 0 {
					return
				}
				a, err := s.Occupied(t.Context(), epoch, "")
				if b := model.Occupied(); err != nil || len(a)+len(b) > 0 && !reflect.DeepEqual(a, b) {
					rt.Fatalf("redis has %v, %v, the model %v", a, err, b)
				}
			},
		})
	})
}

func TestEligibility(t *testing.T) {
	t.Run("a policy that could drop slots is named", func(t *testing.T) {
		s := second(t, testenv.PrivateRedis(t, "maxmemory-policy=allkeys-lru").DSN(), rediscoord.Options{})
		p, err := s.Probe(t.Context())
		if !errors.Is(err, rediscoord.ErrIneligible) || !strings.Contains(err.Error(), "allkeys-lru") || p.Eligible {
			t.Errorf("got %+v, %v", p, err)
		}
		if _, err := s.Seed(t.Context(), 5, nil); !errors.Is(err, coord.ErrUnavailable) {
			t.Errorf("seeded: %v", err)
		}
	})
	t.Run("a cluster is refused", func(t *testing.T) {
		server := testenv.PrivateRedis(t, "cluster-enabled=yes")
		s := second(t, server.DSN(), rediscoord.Options{})
		refused := func(what string) {
			t.Helper()
			if p, err := s.Probe(t.Context()); !errors.Is(err, rediscoord.ErrIneligible) || !strings.Contains(err.Error(), "it is a Redis Cluster") || p.Eligible {
				t.Errorf("%s: got %+v, %v", what, p, err)
			}
		}
		refused("without hash slots")
		opt, err := redis.ParseURL(server.DSN())
		if err != nil {
			t.Fatal(err)
		}
		admin := redis.NewClient(opt)
		defer admin.Close()
		if err := admin.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) { // it takes a cluster a moment to be up
			if info, err := admin.ClusterInfo(t.Context()).Result(); err == nil && strings.Contains(info, "cluster_state:ok") {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the cluster does not come up")
			}
		}
		refused("with all hash slots")
	})
	t.Run("a replica is refused", func(t *testing.T) {
		server, primary := testenv.PrivateRedis(t), testenv.PrivateRedis(t)
		opt, err := redis.ParseURL(server.DSN())
		if err != nil {
			t.Fatal(err)
		}
		admin := redis.NewClient(opt)
		defer admin.Close()
		if err := admin.ReplicaOf(t.Context(), "127.0.0.1", fmt.Sprint(primary.Port())).Err(); err != nil {
			t.Fatal(err)
		}
		p, err := second(t, server.DSN(), rediscoord.Options{}).Probe(t.Context())
		if err == nil || p.Eligible {
			t.Errorf("got %+v, %v", p, err)
		}
		t.Log(err)
	})
	t.Run("an ACL user with keys of its own and nothing dangerous is enough", func(t *testing.T) {
		server := testenv.PrivateRedis(t)
		opt, err := redis.ParseURL(server.DSN())
		if err != nil {
			t.Fatal(err)
		}
		admin := redis.NewClient(opt)
		defer admin.Close()
		if err := admin.Do(t.Context(), "ACL", "SETUSER", "dc", "on", ">s:cret@", "~dc:*", "+@all", "-@dangerous", "+info").Err(); err != nil {
			t.Fatal(err)
		}
		if err := admin.Do(t.Context(), "ACL", "SETUSER", "default", "off").Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := second(t, server.DSN(), rediscoord.Options{}).Probe(t.Context()); !errors.Is(err, coord.ErrUnavailable) || !strings.Contains(err.Error(), "NOAUTH") {
			t.Errorf("without a password: %v", err)
		}
		url := fmt.Sprintf("redis://dc:s%%3Acret%%40@127.0.0.1:%d/0", server.Port())
		s := second(t, url, rediscoord.Options{Prefix: "dc:"})
		if _, err := s.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Seed(t.Context(), 3, []coord.Slot{{Key: "host:x", N: 2, Member: coord.Member{Node: "a", Incarnation: 1}, Token: 1, Cap: 4}}); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Forget(t.Context(), coord.Member{Node: "a", Incarnation: 1}); n != 1 || err != nil {
			t.Errorf("freed %d, %v", n, err)
		}
	})
	for _, url := range []string{"http://h", "redis://h:99999", "redis://h/x", "redis://h?bogus=1", "unix:///s"} {
		if _, err := rediscoord.OpenSecond(url, rediscoord.Options{}); !errors.Is(err, rediscoord.ErrURL) {
			t.Errorf("%s: %v", url, err)
		}
	}
	t.Run("a server that is not there is unavailable", func(t *testing.T) {
		server := testenv.PrivateRedis(t)
		s := second(t, server.DSN(), rediscoord.Options{})
		server.Kill()
		if _, err := s.Grant(t.Context(), coord.Ask{}); !errors.Is(err, coord.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}
