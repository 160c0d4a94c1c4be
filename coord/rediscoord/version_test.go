package rediscoord

import (
	"strings"
	"testing"
)

func TestIneligible(t *testing.T) {
	for _, c := range []struct{ version, mode, role, policy, why string }{
		{"6.2.0", "standalone", "master", "noeviction", ""},
		{"7.0.15", "standalone", "master", "noeviction", ""},
		{"8.0.1", "standalone", "master", "noeviction", ""},
		{"10.0", "standalone", "master", "noeviction", ""},
		{"6.0.16", "standalone", "master", "noeviction", "version 6.0.16, needed is 6.2"},
		{"5.0.14", "standalone", "master", "noeviction", "version 5.0.14"},
		{"", "standalone", "master", "noeviction", "version"},
		{"7.0.15", "cluster", "master", "noeviction", "Redis Cluster"},
		{"7.0.15", "sentinel", "sentinel", "", "sentinel"},
		{"7.0.15", "standalone", "slave", "noeviction", "replica"},
		{"7.0.15", "standalone", "master", "volatile-ttl", "volatile-ttl"},
	} {
		if why := ineligible(c.version, c.mode, c.role, c.policy); (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%+v: %q", c, why)
		}
	}
}
