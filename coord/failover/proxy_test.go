package failover_test

import (
	"testing"

	"deepcrawl/soak/chaos"
)

// newProxy passes connections to a server until the test cuts them, and ends with the test.
func newProxy(t testing.TB, target string) *chaos.Proxy {
	t.Helper()
	p, err := chaos.NewProxy("tcp", target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// lead ends what is open and takes new connections to another server, as an address that moves does.
func lead(p *chaos.Proxy, target string) {
	p.Retarget(target)
	p.Reset()
}
