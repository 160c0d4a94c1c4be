package soak

import (
	"context"
	"sync"
	"time"

	"deepcrawl/internal/scratch"
	"deepcrawl/soak/chaos"
)

// restartDB ends the private database server, cleanly or not, and starts it again.
func (t *trial) restartDB(ctx context.Context, mending *sync.WaitGroup) bool {
	if !t.dbBusy.CompareAndSwap(false, true) {
		return false
	}
	server, down := t.ground.server, t.between(0, 4*time.Second)
	hard := t.rand.IntN(2) == 0
	mending.Go(func() {
		defer t.dbBusy.Store(false)
		f := Fault{Kind: chaos.DBRestart, At: time.Now(), Note: "shut down"}
		if hard {
			f.Note = "killed"
			server.Kill()
		} else {
			server.Stop(scratch.Fast)
		}
		pause(ctx, down)
		if err := server.Start(); err != nil {
			t.fail(err)
		}
		f.To = time.Now()
		t.noteFault(f)
	})
	return true
}

// primary is the Redis that the nodes use now.
func (t *trial) primary() *scratch.Server { return t.ground.redises[t.first] }

// harmRedis injects a fault of the private Redis.
func (t *trial) harmRedis(ctx context.Context, kind chaos.Kind, mending *sync.WaitGroup) bool {
	if !t.redisBusy.CompareAndSwap(false, true) {
		return false
	}
	down, some := t.between(0, 8*time.Second), t.some(func(*node) bool { return true })
	mending.Go(func() {
		defer t.redisBusy.Store(false)
		f := Fault{Kind: kind, At: time.Now()}
		var err error
		switch kind {
		case chaos.RedisKill:
			t.primary().Kill()
			pause(ctx, down)
			err = t.primary().Start()
		case chaos.RedisRestart:
			t.primary().Stop(scratch.Fast)
			err = t.primary().Start()
		case chaos.RedisFlush:
			err = scratch.FlushRedis(context.WithoutCancel(ctx), t.primary().DSN())
		case chaos.RedisPromote:
			err = t.promote(ctx, some, down)
		}
		if err != nil {
			t.fail(err)
		}
		f.To = time.Now()
		t.noteFault(f)
	})
	return true
}

// promote makes the replica a primary. Some nodes are sent there at once, the others go on with the old one, which knows nothing
// of it, until that comes back as the replica.
func (t *trial) promote(ctx context.Context, some []*node, apart time.Duration) error {
	lasting := context.WithoutCancel(ctx)
	old, fresh := t.primary(), t.ground.redises[1-t.first]
	to, err := wayTo(fresh.DSN())
	if err != nil {
		return err
	}
	if err := scratch.FollowRedis(lasting, fresh.DSN(), ""); err != nil {
		return err
	}
	for _, n := range t.nodes {
		n.ways.redisTo.Retarget(to.addr)
	}
	for _, n := range some {
		n.ways.redisTo.Reset()
	}
	pause(ctx, apart)
	err = scratch.FollowRedis(lasting, old.DSN(), fresh.DSN())
	for _, n := range t.nodes {
		n.ways.redisTo.Reset()
	}
	t.first = 1 - t.first
	return err
}

// fail ends the soak with an error: something of its own did not do its part.
func (t *trial) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil {
		t.broken = err
	}
}

func (t *trial) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.broken
}
