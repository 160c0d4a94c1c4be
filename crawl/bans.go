package crawl

import (
	"context"
	"sync/atomic"

	"deepcrawl/storage"
)

// bans is the list of banned hosts as this node last read it.
type bans struct {
	hosts atomic.Pointer[map[string]string]
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
func (b *bans) refresh(ctx context.Context, store storage.Bans) error {
	list, err := store.Bans(ctx)
	if err != nil {
		return err
	}
	m := make(map[string]string, len(list))
	for _, ban := range list {
		m[ban.Host] = ban.Reason
	}
	b.hosts.Store(&m)
	return nil
}
