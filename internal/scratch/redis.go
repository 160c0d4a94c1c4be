package scratch

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"github.com/redis/go-redis/v9"
)

// redisDo runs one command on a server.
func redisDo(ctx context.Context, redisURL string, command ...any) error {
	opt, err := redis.ParseURL(redisURL)
	if err != nil {
		return err
	}
	opt.MaxRetries = -1
	c := redis.NewClient(opt)
	defer c.Close()
	if err := c.Do(ctx, command...).Err(); err != nil {
		return fmt.Errorf("redis: %v: %w", command[0], err)
	}
	return nil
}

// FlushRedis removes everything from a private server.
func FlushRedis(ctx context.Context, redisURL string) error {
	return redisDo(ctx, redisURL, "FLUSHALL")
}

// FollowRedis makes a private server the replica of another; an empty primary makes it a primary itself.
func FollowRedis(ctx context.Context, redisURL, primaryURL string) error {
	if primaryURL == "" {
		return redisDo(ctx, redisURL, "REPLICAOF", "NO", "ONE")
	}
	u, err := url.Parse(primaryURL)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		return err
	}
	return redisDo(ctx, redisURL, "REPLICAOF", host, port)
}
