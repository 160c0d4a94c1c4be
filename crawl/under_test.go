package crawl

import (
	"sync"
	"testing"
)

func TestUnderWayMayGrowWhileOthersWait(t *testing.T) {
	t.Run("nothing under way is not waited for", func(*testing.T) {
		var u underWay
		u.wait()
	})
	t.Run("wait ends after what began before it, whatever begins meanwhile", func(t *testing.T) {
		var u underWay
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 5000 {
					u.add()
					mine := make(chan struct{})
					go func() {
						close(mine)
						u.done()
					}()
					u.wait()
					select {
					case <-mine:
					default:
						t.Error("wait ended before what began before it")
					}
				}
			})
		}
		all.Wait()
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.n != 0 || u.none != nil {
			t.Errorf("%d left", u.n)
		}
	})
}
