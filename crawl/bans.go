package crawl

import (
	"context"
	"sync/atomic"
	"time"

	"deepcrawl/storage"
)

// bans is the list of banned hosts as this node last read it.
type bans struct {
	hosts atomic.Pointer[map[string]string]
	read  atomic.Int64 // when, in Unix nanoseconds
}

func (b *bans) has(host string) bool {
	m := b.hosts.Load()
	if m == nil || len(*m) == 0 {
		return false
	}
	_, ok := (*m)[host]
	return ok
}

// refresh reads the list.
func (b *bans) refresh(ctx context.Context, store storage.Bans, now time.Time) error {
	list, err := store.Bans(ctx)
	if err != nil {
		return err
	}
	m := make(map[string]string, len(list))
	for _, ban := range list {
		m[ban.Host] = ban.Reason
	}
	b.hosts.Store(&m)
	b.read.Store(now.UnixNano())
	return nil
}

// fresh reads the list where it is older than the watch would leave it: an idle node does not read it.
func (b *bans) fresh(ctx context.Context, store storage.Bans, now time.Time) error {
	if d := now.Sub(time.Unix(0, b.read.Load())); d >= 0 && d < 2*watchEvery {
		return nil
	}
	return b.refresh(ctx, store, now)
}
