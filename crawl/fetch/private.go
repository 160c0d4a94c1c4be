package fetch

import "net/netip"

// notPublic lists what the IANA special-purpose registries (RFC 6890 and
// successors) do not call globally reachable, and the transition prefixes that
// can carry any IPv4 address inside (RFC 3056, 4380, 6052, 8215): a public
// site has no need of them, and through a gateway they reach private ones.
var notPublic = func() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range [...]string{
		"0.0.0.0/8",        // this network, RFC 791
		"10.0.0.0/8",       // private, RFC 1918
		"100.64.0.0/10",    // carrier-grade NAT, RFC 6598; some clouds' metadata (100.100.100.200)
		"127.0.0.0/8",      // loopback, RFC 1122
		"169.254.0.0/16",   // link-local, RFC 3927; metadata of most clouds
		"172.16.0.0/12",    // private, RFC 1918
		"192.0.0.0/24",     // IETF protocol assignments, RFC 6890; Oracle's metadata (192.0.0.192)
		"192.0.2.0/24",     // documentation, RFC 5737
		"192.31.196.0/24",  // AS112-v4, RFC 7535
		"192.52.193.0/24",  // AMT, RFC 7450
		"192.88.99.0/24",   // 6to4 relay anycast, RFC 7526
		"192.168.0.0/16",   // private, RFC 1918
		"192.175.48.0/24",  // AS112, RFC 7534
		"198.18.0.0/15",    // benchmarks, RFC 2544
		"198.51.100.0/24",  // documentation, RFC 5737
		"203.0.113.0/24",   // documentation, RFC 5737
		"224.0.0.0/4",      // multicast, RFC 1112
		"240.0.0.0/4",      // reserved and broadcast, RFC 1112
		"168.63.129.16/32", // Azure's platform address, reachable from its guests only

		// Of IPv6 only 2000::/3 is considered at all, which leaves out
		// loopback, IPv4-compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48),
		// discard, segment routing, unique local, link-local and multicast.
		"2001::/23",         // IETF protocol assignments, Teredo, benchmarks, ORCHID
		"2001:db8::/32",     // documentation, RFC 3849
		"2002::/16",         // 6to4, RFC 3056
		"2620:4f:8000::/48", // AS112, RFC 7534
		"3fff::/20",         // documentation, RFC 9637
	} {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}()

// globalUnicast6 is all of IPv6 that IANA has given out for unicast so far.
var globalUnicast6 = netip.MustParsePrefix("2000::/3")

// public reports whether a is a globally reachable unicast address. An
// IPv4-mapped address is judged by the IPv4 address inside: that is what the
// kernel dials.
func public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	if a = a.Unmap(); a.Is6() && !globalUnicast6.Contains(a) {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
