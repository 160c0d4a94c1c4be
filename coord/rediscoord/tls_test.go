package rediscoord_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"deepcrawl/coord"
	"deepcrawl/coord/rediscoord"
	"deepcrawl/internal/testenv"
)

func TestTLS(t *testing.T) {
	cert, key := testenv.Certificate(t, "redis")
	other, _ := testenv.Certificate(t, "redis")
	port := testenv.FreePort(t)
	server := testenv.PrivateRedis(t, fmt.Sprintf("tls-port=%d", port), "tls-cert-file="+cert, "tls-key-file="+key, "tls-ca-cert-file="+cert,
		"tls-auth-clients=no")
	opt, err := redis.ParseURL(server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(opt)
	defer admin.Close()
	if err := admin.ConfigSet(t.Context(), "requirepass", "s:cret@").Err(); err != nil {
		t.Fatal(err)
	}
	at := func(scheme, query string) string {
		return fmt.Sprintf("%s://:s%%3Acret%%40@127.0.0.1:%d/0%s", scheme, port, query)
	}
	t.Run("a server whose authority is named is used", func(t *testing.T) {
		s := second(t, at("rediss", "?tls-ca="+cert), rediscoord.Options{})
		p, err := s.Probe(t.Context())
		if err != nil || !p.Eligible {
			t.Fatalf("got %+v, %v", p, err)
		}
		v, err := s.Seed(t.Context(), 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Grant(t.Context(), coord.Ask{
			Member: coord.Member{Node: "a", Incarnation: 1}, Groups: [][]coord.AskKey{{{Key: "host:x", Cap: 1, Token: 1}}},
			View: coord.View{Epoch: 3, Mode: coord.ModeRedis, Redis: v.Ident, RedisUntil: p.Now + 3600e6},
		})
		if err != nil || len(g.Groups[0].N) != 1 {
			t.Errorf("got %+v, %v", g, err)
		}
	})
	for name, url := range map[string]string{
		"an authority nobody named is not trusted": at("rediss", ""),
		"another authority is not trusted":         at("rediss", "?tls-ca="+other),
		"plain text to a TLS port":                 at("redis", ""),
		"a wrong password":                         fmt.Sprintf("rediss://:wrong@127.0.0.1:%d/0?tls-ca=%s", port, cert),
		"TLS to a plain port":                      fmt.Sprintf("rediss://127.0.0.1:%d/0?tls-ca=%s", server.Port(), cert),
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := second(t, url, rediscoord.Options{}).Probe(t.Context()); err == nil || p.Eligible {
				t.Errorf("got %+v, %v", p, err)
			} else {
				t.Log(err)
			}
		})
	}
	for name, url := range map[string]string{
		"an authority that is not there": at("rediss", "?tls-ca=/none.pem"),
		"a file without certificates":    at("rediss", "?tls-ca="+key),
		"an authority without TLS":       at("redis", "?tls-ca="+cert),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := rediscoord.OpenSecond(url, rediscoord.Options{}); !errors.Is(err, rediscoord.ErrURL) {
				t.Errorf("got %v", err)
			}
		})
	}
}
