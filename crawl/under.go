package crawl

import "sync"

// underWay counts what is under way. Unlike a sync.WaitGroup it may be added to while others wait for none to be left, as happens
// when one worker ends its turn on a run while another goes on.
type underWay struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n falls to 0; nil while n is 0
}

func (u *underWay) add() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n == 0 {
		u.none = make(chan struct{})
	}
	u.n++
}

func (u *underWay) done() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.n--
	if u.n == 0 {
		close(u.none)
		u.none = nil
	}
}

// wait returns at a moment when nothing is under way: all that began before the call has ended.
func (u *underWay) wait() {
	u.mu.Lock()
	none := u.none
	u.mu.Unlock()
	if none != nil {
		<-none
	}
}
