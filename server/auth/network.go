package auth

import "net/netip"

// Network is what attempts from an address are counted for. One caller has a whole /64 of IPv6.
func Network(ip string) string {
	a, err := netip.ParseAddr(ip)
	if err != nil || a.Unmap().Is4() {
		return ip
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return ip
	}
	return p.String()
}
